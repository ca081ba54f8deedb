//! One tree out of many: workers, rounds, and the places of one profile that are the same call path.
//!
//! A tree made here is canonical: a function stands in it once, and so does each path of calls. It must not know what its values
//! are.

use std::collections::HashMap;

use crate::{Frame, Node, Tree};

/// Makes a canonical tree.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    tree: Tree,
    frames: HashMap<Frame, usize>,
    places: HashMap<(Option<usize>, usize), usize>,
}

impl Builder {
    /// The number of a function.
    pub fn frame(&mut self, frame: &Frame) -> usize {
        if let Some(known) = self.frames.get(frame) {
            return *known;
        }
        self.tree.frames.push(frame.clone());
        let number = self.tree.frames.len() - 1;
        self.frames.insert(frame.clone(), number);
        number
    }

    /// A function by its number.
    pub fn frame_at(&self, number: usize) -> Option<&Frame> {
        self.tree.frames.get(number)
    }

    /// The function of a place.
    pub fn frame_of(&self, place: usize) -> Option<&Frame> {
        self.frame_at(self.tree.nodes.get(place)?.frame)
    }

    /// The place of a function below a caller.
    pub fn place(&mut self, parent: Option<usize>, frame: usize) -> usize {
        let next = self.tree.nodes.len();
        let place = *self.places.entry((parent, frame)).or_insert(next);
        if place == next {
            self.tree.nodes.push(Node { frame, parent, self_value: 0.0, lines: Default::default() });
        }
        place
    }

    /// Adds to what a place took itself.
    pub fn add(&mut self, place: usize, value: f64) {
        if let Some(node) = self.tree.nodes.get_mut(place) {
            node.self_value += value;
        }
    }

    /// Adds to what a line of a place took.
    pub fn add_line(&mut self, place: usize, line: u32, value: f64) {
        if let Some(node) = self.tree.nodes.get_mut(place) {
            *node.lines.entry(line).or_insert(0.0) += value;
        }
    }

    /// The tree.
    pub fn tree(self) -> Tree {
        self.tree
    }
}

/// The sum of trees, each multiplied by its weight. Same path of calls, same place; order is that of first appearance. Places that
/// lead nowhere, as a file may have them, become roots or count for nothing.
pub fn merge(trees: &[(&Tree, f64)]) -> Tree {
    let mut merged = Builder::default();
    for (tree, weight) in trees {
        let numbers: Vec<usize> = tree.frames.iter().map(|frame| merged.frame(frame)).collect();
        let mut places: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
        for (index, node) in tree.nodes.iter().enumerate() {
            let place = numbers.get(node.frame).map(|frame| {
                let parent = tree.caller(index).and_then(|parent| places[parent]);
                let place = merged.place(parent, *frame);
                merged.add(place, node.self_value * weight);
                for (line, value) in &node.lines {
                    merged.add_line(place, *line, value * weight);
                }
                place
            });
            places.push(place);
        }
    }
    merged.tree()
}
