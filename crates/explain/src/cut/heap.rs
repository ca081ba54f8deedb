//! A profile of the heap as a tree of bytes. It has no times: there is nothing to cut.

use super::Cut;
use super::growing::Growing;
use crate::key::Namer;
use crate::{HeapProfile, Naming, Tree};

/// Bytes that were allocated and still lived at the end, by stack.
pub fn heap_tree(profile: &HeapProfile, naming: &Naming<'_>) -> Tree {
    grow(profile, &mut Namer::of(naming, &profile.calls))
}

/// The same with what makes it poorer.
pub(crate) fn heap_cut(profile: &HeapProfile, naming: &Naming<'_>) -> Cut {
    let mut namer = Namer::of(naming, &profile.calls);
    let tree = grow(profile, &mut namer);
    let total = tree.total();
    Cut { tree, busy_ns: total, covered_ns: total, capped_ns: 0.0, samples: 0, notes: namer.notes() }
}

fn grow(profile: &HeapProfile, namer: &mut Namer<'_>) -> Tree {
    let mut totals: Vec<f64> = profile.nodes.iter().map(|node| node.bytes).collect();
    for (index, node) in profile.nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            totals[parent as usize] += totals[index];
        }
    }
    let mut growing = Growing::over(&profile.calls);
    for (node, total) in profile.nodes.iter().zip(totals) {
        if total > 0.0 {
            growing.push(node.call, node.parent, node.bytes, namer);
        } else {
            growing.skip();
        }
    }
    growing.made.tree()
}
