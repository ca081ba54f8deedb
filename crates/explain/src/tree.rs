//! What is asked of a tree: totals, callers, functions, and the same tree upside down. Stacks may be deep, so nothing here calls
//! itself; and a tree that was read from a file may have links that lead nowhere, so nothing trusts them.

use std::collections::BTreeMap;

use crate::merge::Builder;
use crate::{Frame, Tree};

/// What a function took, wherever it was called from.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionValue {
    /// Index into [`Tree::frames`].
    pub frame: usize,
    /// In it itself.
    pub self_value: f64,
    /// In it and in what it calls, counted once where it calls itself.
    pub total: f64,
    /// In it itself, by line, where the profile tells.
    pub lines: BTreeMap<u32, f64>,
}

impl Tree {
    /// Index of a place's caller; none for a root.
    pub fn caller(&self, node: usize) -> Option<usize> {
        self.nodes.get(node)?.parent.filter(|parent| *parent < node)
    }

    /// What each place took with all that was called from it.
    pub fn totals(&self) -> Vec<f64> {
        let mut totals: Vec<f64> = self.nodes.iter().map(|node| node.self_value).collect();
        for node in (0..totals.len()).rev() {
            if let Some(caller) = self.caller(node) {
                totals[caller] += totals[node];
            }
        }
        totals
    }

    /// The places without a caller, and what each place calls.
    pub fn children(&self) -> (Vec<usize>, Vec<Vec<usize>>) {
        let (mut roots, mut children) = (Vec::new(), vec![Vec::new(); self.nodes.len()]);
        for node in 0..self.nodes.len() {
            match self.caller(node) {
                Some(caller) => children[caller].push(node),
                None => roots.push(node),
            }
        }
        (roots, children)
    }

    /// All functions, those that took most themselves first.
    pub fn functions(&self) -> Vec<FunctionValue> {
        let empty = |frame| FunctionValue { frame, self_value: 0.0, total: 0.0, lines: BTreeMap::new() };
        let mut functions: Vec<FunctionValue> = (0..self.frames.len()).map(empty).collect();
        for node in &self.nodes {
            let Some(function) = functions.get_mut(node.frame) else { continue };
            function.self_value += node.self_value;
            for (line, value) in &node.lines {
                *function.lines.entry(*line).or_insert(0.0) += value;
            }
        }
        for (node, total) in self.outermost() {
            if let Some(function) = functions.get_mut(self.nodes[node].frame) {
                function.total += total;
            }
        }
        functions.sort_by(|a, b| b.self_value.total_cmp(&a.self_value).then(a.frame.cmp(&b.frame)));
        functions
    }

    /// Places whose function is not among their callers, with their totals.
    fn outermost(&self) -> Vec<(usize, f64)> {
        let totals = self.totals();
        let (roots, children) = self.children();
        let mut on_stack = vec![0u32; self.frames.len()];
        let mut outermost = Vec::new();
        let mut todo: Vec<(usize, bool)> = roots.into_iter().rev().map(|root| (root, true)).collect();
        while let Some((node, entering)) = todo.pop() {
            if let Some(count) = on_stack.get_mut(self.nodes[node].frame) {
                if !entering {
                    *count -= 1;
                    continue;
                }
                if *count == 0 {
                    outermost.push((node, totals[node]));
                }
                *count += 1;
                todo.push((node, false));
            }
            todo.extend(children[node].iter().rev().map(|child| (*child, true)));
        }
        outermost
    }

    /// What functions took themselves, summed by what `key` says of each. What took nothing, and what it says nothing of, is left out.
    pub fn sums<K: Ord>(&self, key: impl Fn(&Frame) -> Option<K>) -> BTreeMap<K, f64> {
        let mut values = vec![0.0; self.frames.len()];
        for node in &self.nodes {
            if let Some(value) = values.get_mut(node.frame) {
                *value += node.self_value;
            }
        }
        let mut sums = BTreeMap::new();
        for (frame, value) in self.frames.iter().zip(values).filter(|(_, value)| *value != 0.0) {
            if let Some(key) = key(frame) {
                *sums.entry(key).or_insert(0.0) += value;
            }
        }
        sums
    }

    /// The same tree upside down, as a heavy table shows it: functions that took something are roots, and below each stand its
    /// callers, at most `callers` of them on each path. The sum is the same: what a function took is the total of its root.
    pub fn bottom_up(&self, callers: usize) -> Tree {
        let mut made = Builder::default();
        let numbers: Vec<usize> = self.frames.iter().map(|frame| made.frame(frame)).collect();
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.self_value != 0.0) {
            let Some(frame) = numbers.get(node.frame) else { continue };
            let mut place = made.place(None, *frame);
            for (line, value) in &node.lines {
                made.add_line(place, *line, *value);
            }
            let above = std::iter::successors(self.caller(index), |caller| self.caller(*caller));
            for caller in above.take(callers) {
                if let Some(frame) = numbers.get(self.nodes[caller].frame) {
                    place = made.place(Some(place), *frame);
                }
            }
            made.add(place, node.self_value);
        }
        made.tree()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Node};

    fn tree(nodes: &[(usize, Option<usize>, f64)]) -> Tree {
        let frame = |name: &str| Frame {
            function: name.into(),
            file: "a.js".into(),
            line: 1,
            kind: Kind::Application,
            package: None,
        };
        let node = |(frame, parent, self_value): &(usize, Option<usize>, f64)| Node {
            frame: *frame,
            parent: *parent,
            self_value: *self_value,
            lines: BTreeMap::new(),
        };
        Tree { frames: ["a", "b", "c"].map(frame).to_vec(), nodes: nodes.iter().map(node).collect() }
    }

    #[test]
    fn recursion_counts_once() {
        // a → b → a → c, and b alone.
        let tree =
            tree(&[(0, None, 1.0), (1, Some(0), 2.0), (0, Some(1), 4.0), (2, Some(2), 8.0), (1, None, 16.0)]);
        assert_eq!(tree.totals(), [15.0, 14.0, 12.0, 8.0, 16.0]);
        let found: Vec<(usize, f64, f64)> =
            tree.functions().iter().map(|it| (it.frame, it.self_value, it.total)).collect();
        assert_eq!(found, [(1, 18.0, 30.0), (2, 8.0, 8.0), (0, 5.0, 15.0)]);
    }

    #[test]
    fn upside_down_it_sums_up_to_the_same() {
        let tree = tree(&[(0, None, 1.0), (1, Some(0), 2.0), (2, Some(1), 4.0), (2, Some(0), 8.0)]);
        let heavy = tree.bottom_up(usize::MAX);
        assert_eq!(heavy.total(), tree.total());
        let (roots, children) = heavy.children();
        let totals = heavy.totals();
        let of: Vec<(usize, f64)> =
            roots.iter().map(|root| (heavy.nodes[*root].frame, totals[*root])).collect();
        assert_eq!(of, [(0, 1.0), (1, 2.0), (2, 12.0)]);
        let callers: Vec<(usize, f64)> =
            children[roots[2]].iter().map(|node| (heavy.nodes[*node].frame, totals[*node])).collect();
        assert_eq!(callers, [(1, 4.0), (0, 8.0)]);
        assert_eq!(tree.bottom_up(0).nodes.len(), 3);
    }

    #[test]
    fn links_that_lead_nowhere_hurt_nobody() {
        let tree = tree(&[(7, Some(0), 1.0), (0, Some(9), 2.0), (1, Some(0), 4.0)]);
        assert_eq!(tree.totals(), [5.0, 2.0, 4.0]);
        assert_eq!(tree.functions()[0].total, 4.0);
        assert_eq!(tree.sums(|frame| Some(frame.kind))[&Kind::Application], 6.0);
        assert_eq!(tree.bottom_up(3).total(), 6.0);
        assert_eq!(crate::merge(&[(&tree, 1.0)]).total(), 6.0);
    }
}
