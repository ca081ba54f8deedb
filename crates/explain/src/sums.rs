//! Trees of calls made of others: without waiting, scaled, together, below a root.
//!
//! Trees may come out of any file: an index that leads nowhere makes a root or counts for nothing, and a value that is no amount of
//! time is none. Nothing here compares or judges.

use std::collections::BTreeMap;

use crate::{Frame, Kind, Node, Tree, merge};

/// A tree whose nodes have the factors given by `factor`; places at which and below which nothing is left are gone.
pub(crate) fn scaled(tree: &Tree, factor: impl Fn(&Frame) -> f64) -> Tree {
    let factors: Vec<f64> = tree.frames.iter().map(factor).collect();
    let value = |node: &Node| {
        let value = node.self_value * factors.get(node.frame).copied().unwrap_or(0.0);
        if value.is_finite() && value > 0.0 { value } else { 0.0 }
    };
    let values: Vec<f64> = tree.nodes.iter().map(value).collect();
    let mut kept: Vec<bool> = values.iter().map(|value| *value > 0.0).collect();
    for index in (0..kept.len()).rev() {
        if let Some(parent) = tree.caller(index).filter(|_| kept[index]) {
            kept[parent] = true;
        }
    }
    let mut made = Tree::default();
    let mut frame_places: Vec<Option<usize>> = vec![None; tree.frames.len()];
    let mut places: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    for (index, node) in tree.nodes.iter().enumerate().filter(|(index, _)| kept[*index]) {
        let Some(frame) = tree.frames.get(node.frame) else { continue };
        let frame = *frame_places[node.frame].get_or_insert_with(|| {
            made.frames.push(frame.clone());
            made.frames.len() - 1
        });
        let parent = tree.caller(index).and_then(|parent| places[parent]);
        let lines = lines_scaled(node, values[index]);
        places[index] = Some(made.nodes.len());
        made.nodes.push(Node { frame, parent, self_value: values[index], lines });
    }
    made
}

fn lines_scaled(node: &Node, value: f64) -> BTreeMap<u32, f64> {
    if value <= 0.0 {
        return BTreeMap::new();
    }
    let factor = value / node.self_value;
    let lines = node.lines.iter().map(|(line, value)| (*line, value * factor));
    lines.filter(|(_, value)| value.is_finite() && *value > 0.0).collect()
}

/// The same without what takes no CPU time.
pub(crate) fn without_waiting(tree: &Tree) -> Tree {
    scaled(tree, |frame| if frame.kind == Kind::Waiting { 0.0 } else { 1.0 })
}

/// The sum of trees.
pub(crate) fn together<'t>(trees: impl IntoIterator<Item = &'t Tree>) -> Tree {
    merge(&trees.into_iter().map(|tree| (tree, 1.0)).collect::<Vec<_>>())
}

/// A tree of one root that has no caller and calls nothing.
pub(crate) fn root(name: &str, kind: Kind, value: f64) -> Tree {
    let frame = Frame { function: name.into(), file: String::new(), line: 0, kind, package: None };
    let node = Node { frame: 0, parent: None, self_value: value, lines: BTreeMap::new() };
    scaled(&Tree { frames: vec![frame], nodes: vec![node] }, |_| 1.0)
}

/// The tree as something that `root` called. What begins with it already stays as it is.
pub(crate) fn below(root: Frame, tree: &Tree) -> Tree {
    let is_root = |index: usize| {
        tree.caller(index).is_none()
            && tree.frames.get(tree.nodes[index].frame).is_some_and(|frame| *frame == root)
    };
    let caller = |index: usize| match tree.caller(index) {
        None if is_root(index) => None,
        None => Some(0),
        Some(caller) => Some(caller + 1),
    };
    let node = |(index, node): (usize, &Node)| Node {
        frame: node.frame.saturating_add(1),
        parent: caller(index),
        ..node.clone()
    };
    let first = Node { frame: 0, parent: None, self_value: 0.0, lines: BTreeMap::new() };
    let nodes = std::iter::once(first).chain(tree.nodes.iter().enumerate().map(node)).collect();
    let frames = std::iter::once(root.clone()).chain(tree.frames.iter().cloned()).collect();
    // The same root twice becomes one.
    together([&Tree { frames, nodes }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(&str, Kind, Option<usize>, f64)]) -> Tree {
        let mut made = Tree::default();
        for (name, kind, parent, self_value) in nodes {
            let frame =
                Frame { function: (*name).into(), file: "a.js".into(), line: 1, kind: *kind, package: None };
            let known = made.frames.iter().position(|seen| *seen == frame);
            let frame = known.unwrap_or_else(|| {
                made.frames.push(frame);
                made.frames.len() - 1
            });
            let lines = [(3, *self_value)].into();
            made.nodes.push(Node { frame, parent: *parent, self_value: *self_value, lines });
        }
        made
    }

    #[test]
    fn waiting_goes_and_callers_of_what_is_left_stay() {
        let all = tree(&[
            ("(root)", Kind::Core, None, 0.0),
            ("(idle)", Kind::Waiting, Some(0), 70.0),
            ("work", Kind::Application, Some(0), 30.0),
        ]);
        let left = without_waiting(&all);
        assert_eq!(left.nodes.iter().map(|node| node.self_value).collect::<Vec<f64>>(), [0.0, 30.0]);
        assert_eq!(left.nodes[1].parent, Some(0));
        assert_eq!(left.nodes[1].lines[&3], 30.0);
    }

    #[test]
    fn what_begins_with_the_root_has_it_once() {
        let root = Frame {
            function: "(pool)".into(),
            ..tree(&[("x", Kind::ThreadPool, None, 1.0)]).frames[0].clone()
        };
        let both = tree(&[
            ("(pool)", Kind::ThreadPool, None, 1.0),
            ("f", Kind::ThreadPool, Some(0), 2.0),
            ("g", Kind::ThreadPool, None, 4.0),
        ]);
        let made = below(root, &both);
        assert_eq!((made.total(), made.nodes.iter().filter(|node| node.parent.is_none()).count()), (7.0, 1));
        assert_eq!(made.frames.len(), 3);
    }

    #[test]
    fn what_leads_nowhere_hurts_nobody() {
        let mut all =
            tree(&[("f", Kind::Application, Some(7), 5.0), ("g", Kind::Application, Some(0), f64::NAN)]);
        all.nodes.push(Node { frame: 99, parent: Some(0), self_value: 3.0, lines: BTreeMap::new() });
        all.nodes.push(Node {
            frame: 1,
            parent: Some(2),
            self_value: f64::NEG_INFINITY,
            lines: BTreeMap::new(),
        });
        let left = without_waiting(&all);
        assert_eq!(left.total(), 5.0);
        assert_eq!(left.frames.len(), 1);
    }
}
