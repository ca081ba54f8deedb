//! Functions that only moved from a baseline to a variant, under one name in both, so that what they call lies over each other.
//!
//! Without it a line more at the top of a file, as between two commits, would make everything below it vanish and come anew.

use explain::{Explanation, Tree, moved};

/// The explanation with each baseline's functions under what they are in the variant that is compared with it.
pub(super) fn of_explanation(explanation: &Explanation) -> Explanation {
    let mut aligned = explanation.clone();
    for comparison in &explanation.comparisons {
        let of = |variant: &str, service: &str| {
            explanation.subjects.iter().find(|one| one.variant == variant && one.service == service)
        };
        for subject in aligned.subjects.iter_mut().filter(|one| one.variant == comparison.baseline) {
            let Some(other) = of(&comparison.variant, &subject.service) else { continue };
            subject.tree = like(&subject.tree, &other.tree);
            if let Some((heap, other)) = subject.heap.as_mut().zip(other.heap.as_ref()) {
                *heap = like(heap, other);
            }
        }
    }
    aligned
}

/// A tree with its functions under what they are in the other one.
pub(super) fn like(tree: &Tree, other: &Tree) -> Tree {
    let mut moved = moved(tree, other);
    let mut tree = tree.clone();
    for frame in &mut tree.frames {
        if let Some(to) = moved.remove(frame) {
            *frame = to;
        }
    }
    tree
}
