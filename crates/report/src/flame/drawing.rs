//! Where each call path of a forest stands in a drawing that stands still. Pure geometry: it knows no colour and no name.

use super::forest::Forest;

/// A call path's place: how far from the left and how wide, in the forest's unit, and how many callers are above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub place: usize,
    pub left: f64,
    pub width: f64,
    pub depth: usize,
}

/// The spans that are at least `width_min` wide and not deeper than `depth_max`, callers before what they call; and the width
/// of all.
///
/// A path is as wide as what it calls, plus the greater of its own times in the trees: so one that is gone in the second tree is
/// seen beside one that is new there.
pub(super) fn spans(forest: &Forest<'_>, width_min: f64, depth_max: usize) -> (Vec<Span>, f64) {
    let widths = widths(forest);
    let mut calls: Vec<Vec<usize>> = vec![Vec::new(); forest.places.len()];
    let mut roots = Vec::new();
    for (index, place) in forest.places.iter().enumerate() {
        place.parent.map_or(&mut roots, |parent| &mut calls[parent]).push(index);
    }
    let all = roots.iter().map(|root| widths[*root]).sum();
    let mut out = Vec::new();
    let mut open: Vec<Span> = in_a_row(&mut roots, &widths, 0.0, 0);
    while let Some(span) = open.pop() {
        if span.width < width_min || span.width <= 0.0 || span.depth >= depth_max {
            continue;
        }
        open.extend(in_a_row(&mut calls[span.place], &widths, span.left, span.depth + 1));
        out.push(span);
    }
    (out, all)
}

/// Widest first, one after the other; in reverse, because they are taken from the end.
fn in_a_row(places: &mut [usize], widths: &[f64], mut left: f64, depth: usize) -> Vec<Span> {
    places.sort_by(|one, other| widths[*other].total_cmp(&widths[*one]).then(one.cmp(other)));
    let mut row = Vec::with_capacity(places.len());
    for place in places {
        row.push(Span { place: *place, left, width: widths[*place], depth });
        left += widths[*place];
    }
    row.reverse();
    row
}

fn widths(forest: &Forest<'_>) -> Vec<f64> {
    let greatest = |own: &Vec<f64>| own.iter().copied().fold(0.0, f64::max);
    let mut widths: Vec<f64> = forest.places.iter().map(|place| greatest(&place.own)).collect();
    for index in (0..widths.len()).rev() {
        if let Some(parent) = forest.places[index].parent {
            widths[parent] += widths[index];
        }
    }
    widths
}
