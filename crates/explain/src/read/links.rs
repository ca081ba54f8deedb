//! From who calls whom, as a file says it, to an order in which callers stand before what they call. A file may say anything:
//! circles are cut open, and nothing is followed by recursion.

/// Places in an order, and what became of the links.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arranged {
    /// The old index of each place.
    pub order: Vec<u32>,
    /// The place of each one's caller.
    pub parents: Vec<Option<u32>>,
    /// How many circles were cut open.
    pub circles: u32,
}

const NONE: u32 = u32::MAX;

/// Brings calls into order; `parents` has the caller of each. There must be fewer than 2³² of them.
pub(crate) fn callers_first(parents: &[Option<u32>]) -> Arranged {
    let size = parents.len();
    let parent_of = |node: usize| parents[node].filter(|parent| (*parent as usize) < size);
    // Children as linked lists in two tables. Backwards, so that each list has the order of the file.
    let (mut first, mut next) = (vec![NONE; size], vec![NONE; size]);
    for node in (0..size).rev() {
        if let Some(parent) = parent_of(node) {
            next[node] = std::mem::replace(&mut first[parent as usize], node as u32);
        }
    }
    let mut place = vec![NONE; size];
    let mut arranged =
        Arranged { order: Vec::with_capacity(size), parents: Vec::with_capacity(size), circles: 0 };
    let mut done = 0;
    let roots = (0..size).filter(|node| parent_of(*node).is_none());
    // What no root reaches is in a circle, or below one: the first of it becomes a root.
    for start in roots.chain(0..size) {
        if place[start] != NONE {
            continue;
        }
        arranged.circles += u32::from(parent_of(start).is_some());
        settle(&mut arranged, &mut place, start as u32, None);
        while done < arranged.order.len() {
            let mut child = first[arranged.order[done] as usize];
            while child != NONE {
                if place[child as usize] == NONE {
                    settle(&mut arranged, &mut place, child, Some(done as u32));
                }
                child = next[child as usize];
            }
            done += 1;
        }
    }
    arranged
}

fn settle(arranged: &mut Arranged, place: &mut [u32], node: u32, parent: Option<u32>) {
    place[node as usize] = arranged.order.len() as u32;
    arranged.order.push(node);
    arranged.parents.push(parent);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn circles_are_cut_open_and_nothing_is_lost() {
        // 0 → 1; 2 ⇄ 3 with 4 below; 5 calls itself; 6 is called by what is not there.
        let arranged = callers_first(&[None, Some(0), Some(3), Some(2), Some(2), Some(5), Some(99)]);
        assert_eq!(arranged.circles, 2);
        assert_eq!(arranged.order, [0, 1, 6, 2, 3, 4, 5]);
        assert_eq!(arranged.parents, [None, Some(0), None, None, Some(3), Some(3), None]);
    }

    proptest! {
        #[test]
        fn every_call_has_one_place_after_its_caller(links in prop::collection::vec(prop::option::of(0u32..40), 0..40)) {
            let arranged = callers_first(&links);
            let mut seen = arranged.order.clone();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..links.len() as u32).collect::<Vec<_>>());
            for (place, parent) in arranged.parents.iter().enumerate() {
                prop_assert!(parent.is_none_or(|parent| (parent as usize) < place));
            }
        }
    }
}
