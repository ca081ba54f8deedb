//! Trees of several variants laid over each other: each call path once, with its own time in every variant.
//!
//! It adds up and prunes; it must not know how anything is drawn.

use std::collections::HashMap;

use explain::{Frame, Kind, Tree};

/// A function, or what stands for many calls that are small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Name<'a> {
    /// A function.
    Function(&'a Frame),
    /// Calls below a limit, of code of this kind.
    Smaller(Kind),
}

impl Name<'_> {
    pub(super) fn kind(self) -> Kind {
        match self {
            Name::Function(frame) => frame.kind,
            Name::Smaller(kind) => kind,
        }
    }
}

/// A call path.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub name: Name<'a>,
    /// Index of the caller's, always smaller than its own.
    pub parent: Option<usize>,
    /// Time in it itself, in each tree.
    pub own: Vec<f64>,
}

/// The trees.
#[derive(Debug, Clone)]
pub(super) struct Forest<'a> {
    pub places: Vec<Place<'a>>,
    /// How many trees.
    pub trees: usize,
}

/// A forest without its small calls.
pub(super) struct Pruned<'a> {
    pub forest: Forest<'a>,
    /// How many call paths were summed up.
    pub smaller: usize,
}

impl<'a> Forest<'a> {
    /// Lays trees over each other. They may have been edited by hand: a node whose function is not there is left out, and one
    /// whose caller does not stand before it is taken for a root.
    pub(super) fn of(trees: &[&'a Tree]) -> Self {
        let mut forest = Forest { places: Vec::new(), trees: trees.len() };
        let mut known = HashMap::new();
        for (column, tree) in trees.iter().enumerate() {
            let mut places: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
            for node in &tree.nodes {
                let place = tree.frames.get(node.frame).map(|frame| {
                    let parent = node.parent.and_then(|parent| places.get(parent).copied().flatten());
                    let name = Name::Function(frame);
                    *known.entry((parent, name)).or_insert_with(|| forest.push(name, parent))
                });
                if let Some(place) = place {
                    forest.places[place].own[column] += sane(node.self_value);
                }
                places.push(place);
            }
        }
        forest
    }

    fn push(&mut self, name: Name<'a>, parent: Option<usize>) -> usize {
        self.places.push(Place { name, parent, own: vec![0.0; self.trees] });
        self.places.len() - 1
    }

    /// Time in each call path and in what it calls, in each tree.
    pub(super) fn totals(&self) -> Vec<Vec<f64>> {
        let mut totals: Vec<Vec<f64>> = self.places.iter().map(|place| place.own.clone()).collect();
        for index in (0..totals.len()).rev() {
            let Some(parent) = self.places[index].parent else { continue };
            let (before, rest) = totals.split_at_mut(index);
            add(&mut before[parent], &rest[0]);
        }
        totals
    }

    /// Sum of each tree.
    pub(super) fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.trees];
        self.places.iter().for_each(|place| add(&mut sums, &place.own));
        sums
    }

    /// Keeps what is at least `share` of some tree. The rest is summed up below its nearest caller that is kept, by kind, so that
    /// no time is lost and none changes its kind.
    pub(super) fn pruned(&self, share: f64) -> Pruned<'a> {
        let limits: Vec<f64> = self.sums().iter().map(|sum| sum * share).collect();
        let is_kept =
            |total: &Vec<f64>| total.iter().zip(&limits).any(|(total, limit)| *total > 0.0 && total >= limit);
        let mut forest = Forest { places: Vec::new(), trees: self.trees };
        let mut summed_up: HashMap<(Option<usize>, Kind), usize> = HashMap::new();
        let mut homes: Vec<Option<usize>> = Vec::with_capacity(self.places.len());
        let mut smaller = 0;
        for (place, total) in self.places.iter().zip(self.totals()) {
            let home = place.parent.and_then(|parent| homes[parent]);
            if is_kept(&total) {
                let index = forest.push(place.name, home);
                forest.places[index].own.clone_from(&place.own);
                homes.push(Some(index));
                continue;
            }
            homes.push(home);
            if place.own.iter().all(|own| *own <= 0.0) {
                continue;
            }
            smaller += 1;
            let kind = place.name.kind();
            let rest =
                *summed_up.entry((home, kind)).or_insert_with(|| forest.push(Name::Smaller(kind), home));
            add(&mut forest.places[rest].own, &place.own);
        }
        Pruned { forest, smaller }
    }
}

fn add(sums: &mut [f64], values: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// A time that can be drawn. What is kept on disk may have been edited.
fn sane(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}
