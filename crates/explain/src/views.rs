//! A call tree as a list of lines: from the leaves to their callers, and from the roots down. Expects a tree
//! in canonical form.

use std::collections::BTreeMap;

use crate::{CodeKind, Frame, Tree};

/// Levels of callers above a function.
const CALLERS_DEEP: usize = 4;
/// A chain of calls is shortened if nearly all of each call continues in the next.
const CHAIN_SHARE_MIN: f64 = 0.95;

/// A line of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Index into the tree's frames.
    pub frame: usize,
    /// Levels below a root, without omitted calls.
    pub depth: usize,
    /// Value including callees.
    pub total: f64,
    pub self_value: f64,
    /// Value of the parent line. For a root, the total.
    pub of: f64,
    /// Number of omitted calls between it and the line above.
    pub left_out: usize,
}

/// Limits for omitting parts of a tree.
struct Pruning {
    /// Maximum lines, maximum roots, maximum lines below one.
    lines: usize,
    roots: usize,
    below: usize,
    /// Minimum of a line, as fractions of the total and of the parent line.
    of_all: f64,
    of_line: f64,
    /// Whether the middle of chains is omitted.
    chains: bool,
}

/// The most expensive functions, each with its callers.
pub(crate) fn bottom_up(tree: &Tree, roots: usize) -> (Tree, Vec<Call>) {
    let turned = tree.bottom_up(CALLERS_DEEP);
    let pruning = Pruning {
        lines: usize::MAX,
        roots,
        below: 3,
        of_all: 0.0,
        of_line: 0.05,
        chains: false,
    };
    let calls = walk(&turned, &pruning);
    (turned, calls)
}

/// The expensive calls, without those below this fraction of the total and without the middle of chains.
pub(crate) fn top_down(tree: &Tree, of_all: f64, lines: usize) -> Vec<Call> {
    let pruning = Pruning {
        lines,
        roots: usize::MAX,
        below: usize::MAX,
        of_all,
        of_line: 0.0,
        chains: true,
    };
    walk(tree, &pruning)
}

fn walk(tree: &Tree, pruning: &Pruning) -> Vec<Call> {
    let (totals, (roots, children)) = (tree.totals(), tree.children());
    let whole: f64 = roots.iter().map(|root| totals[*root]).sum();
    // Reversed, because the last is the next.
    let kept = |places: &[usize], of: f64, most: usize| {
        let least = (pruning.of_all * whole).max(pruning.of_line * of);
        // Trees are also read from files, where a node may refer to a missing function.
        let is_known = |place: usize| tree.nodes[place].frame < tree.frames.len();
        let is_kept =
            |place: &usize| totals[*place] > 0.0 && totals[*place] >= least && is_known(*place);
        let mut kept: Vec<usize> = places.iter().copied().filter(is_kept).collect();
        kept.sort_by(|one, other| totals[*other].total_cmp(&totals[*one]));
        kept.truncate(most);
        kept.into_iter().rev().collect::<Vec<usize>>()
    };
    let mut calls = Vec::new();
    let roots = kept(&roots, 0.0, pruning.roots);
    let mut open: Vec<(usize, Call)> = roots
        .into_iter()
        .map(|root| (root, line(tree, &totals, root, (0, whole, 0))))
        .collect();
    while let Some((place, call)) = open.pop() {
        if calls.len() == pruning.lines {
            break;
        }
        let below = kept(&children[place], call.total, pruning.below);
        let goes_on = below
            .last()
            .is_some_and(|next| totals[*next] >= call.total * CHAIN_SHARE_MIN);
        let is_own = tree.frames[call.frame].kind == CodeKind::Application;
        let skipped = pruning.chains && goes_on && !is_own;
        let next = if skipped {
            (call.depth, call.of, call.left_out + 1)
        } else {
            (call.depth + 1, call.total, 0)
        };
        open.extend(
            below
                .into_iter()
                .map(|place| (place, line(tree, &totals, place, next))),
        );
        if !skipped {
            calls.push(call);
        }
    }
    calls
}

fn line(
    tree: &Tree,
    totals: &[f64],
    place: usize,
    (depth, of, left_out): (usize, f64, usize),
) -> Call {
    let node = &tree.nodes[place];
    Call {
        frame: node.frame,
        depth,
        total: totals[place],
        self_value: node.self_value,
        of,
        left_out,
    }
}

/// The main caller of a function: the nearest function of the service's own above it, otherwise its caller.
/// Also returns the share of the function's self value.
pub(crate) fn on_behalf_of<'t>(tree: &'t Tree, of: &Frame) -> Option<(&'t Frame, f64)> {
    let frame = |place: usize| tree.frames.get(tree.nodes[place].frame);
    let mut shares: BTreeMap<&Frame, f64> = BTreeMap::new();
    let mut whole = 0.0;
    for place in (0..tree.nodes.len()).filter(|place| frame(*place) == Some(of)) {
        let value = tree.nodes[place].self_value;
        whole += value;
        let mut above = std::iter::successors(tree.caller(place), |caller| tree.caller(*caller));
        let own = above.find_map(|caller| {
            frame(caller).filter(|frame| frame.kind == CodeKind::Application && *frame != of)
        });
        if let Some(caller) = own.or_else(|| frame(tree.caller(place)?)) {
            *shares.entry(caller).or_default() += value;
        }
    }
    let (frame, value) = shares
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    (whole > 0.0).then_some((frame, value / whole))
}
