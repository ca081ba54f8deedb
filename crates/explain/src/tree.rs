//! The common stack model for the profiles of Node.js, of the kernel and of other tools, with its queries.
//!
//! Stacks may be deep, so nothing here recurses. A tree may come from any file, so its links are not trusted:
//! an invalid index makes a root or is ignored, and an invalid value is dropped. Naming of functions is
//! implemented elsewhere.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The owner of the code in which time is spent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CodeKind")]
pub enum CodeKind {
    /// The service's own files.
    Application,
    /// The web framework: express, fastify, koa, hapi and their routers.
    Framework,
    /// Any other package below `node_modules`.
    Middleware,
    /// JavaScript of Node.js itself: `node:` modules.
    Core,
    /// Compiled code: bindings of Node.js, addons, services that are not Node.js.
    Native,
    /// Garbage collection.
    Gc,
    /// Compiling and optimising JavaScript.
    Jit,
    /// Threads of libuv's pool: file system, DNS, crypto, compression.
    ThreadPool,
    /// The kernel, on behalf of the service.
    Kernel,
    /// No CPU time: the event loop was idle.
    Waiting,
}

/// Presentation of a kind.
pub(crate) struct KindRow {
    pub kind: CodeKind,
    pub name: &'static str,
    /// Its colour in flame graphs: red, green, blue.
    pub fill: [u8; 3],
}

/// Each kind, in reading order. All are distinguishable with protanopia, deuteranopia or tritanopia, and
/// black text is readable on each. A test of `flame` checks this.
pub(crate) static KINDS: [KindRow; 10] = [
    KindRow {
        kind: CodeKind::Application,
        name: "application",
        fill: [0xf5, 0xa7, 0x42],
    },
    KindRow {
        kind: CodeKind::Framework,
        name: "framework",
        fill: [0x8c, 0xcb, 0xfa],
    },
    KindRow {
        kind: CodeKind::Middleware,
        name: "middleware",
        fill: [0x2f, 0xae, 0x83],
    },
    KindRow {
        kind: CodeKind::Core,
        name: "Node core",
        fill: [0xf5, 0xe5, 0x6b],
    },
    KindRow {
        kind: CodeKind::Native,
        name: "native",
        fill: [0xdd, 0x5f, 0x3b],
    },
    KindRow {
        kind: CodeKind::Gc,
        name: "GC",
        fill: [0xd5, 0x9b, 0xd8],
    },
    KindRow {
        kind: CodeKind::Jit,
        name: "JIT",
        fill: [0x6b, 0x80, 0xe6],
    },
    KindRow {
        kind: CodeKind::ThreadPool,
        name: "thread pool",
        fill: [0xcd, 0xea, 0xb0],
    },
    KindRow {
        kind: CodeKind::Kernel,
        name: "kernel",
        fill: [0x7b, 0x82, 0x8c],
    },
    KindRow {
        kind: CodeKind::Waiting,
        name: "waiting",
        fill: [0xe6, 0xe8, 0xee],
    },
];

impl CodeKind {
    /// Its display name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    pub(crate) const fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
    }

    /// Whether it is JavaScript: the service's, a package's, or of Node.js itself.
    pub(crate) const fn is_javascript(self) -> bool {
        matches!(
            self,
            CodeKind::Application | CodeKind::Framework | CodeKind::Middleware | CodeKind::Core
        )
    }
}

/// A package of a package manager.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Package {
    /// Its name, with its scope.
    pub name: String,
    /// Its version. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A function, identified the same in every process, worker and variant.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Frame {
    /// Its name, or `(anonymous FILE:LINE)` if it has none. Comes from foreign code and may contain anything.
    pub function: String,
    /// Its file, independent of the machine: relative to its package or to the service's directory,
    /// `node:http`, or the name of a library. Empty if there is none.
    pub file: String,
    /// Line at which the function begins, from 1. 0 if unknown.
    pub line: u32,
    /// The owner of the code.
    pub kind: CodeKind,
    /// The package that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
}

impl Frame {
    /// A function of no package.
    pub(crate) fn new(function: &str, file: &str, line: u32, kind: CodeKind) -> Frame {
        Frame {
            function: function.into(),
            file: file.into(),
            line,
            kind,
            package: None,
        }
    }
}

/// A node in a call tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreePlace {
    /// Index into [`Tree::frames`].
    pub frame: usize,
    /// Index of the caller's node, always smaller than the node's own. `None` for a root.
    pub parent: Option<usize>,
    /// Time in nanoseconds in this frame itself on this path. For a heap profile, bytes.
    pub self_value: f64,
    /// The same by line of the file, from 1, if the profile has lines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lines: BTreeMap<u32, f64>,
}

/// A call tree with the cost of each path. Callers come before callees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    /// The functions, each once.
    pub frames: Vec<Frame>,
    /// The nodes.
    pub nodes: Vec<TreePlace>,
}

/// The cost of a function over all its callers.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionValue {
    /// Index into [`Tree::frames`].
    pub frame: usize,
    /// Self value.
    pub self_value: f64,
    /// Value including callees. Recursion is counted once.
    pub total: f64,
    /// Self value by line, if the profile has lines.
    pub lines: BTreeMap<u32, f64>,
}

impl Tree {
    /// Sum over all nodes.
    pub fn total(&self) -> f64 {
        self.nodes.iter().map(|node| node.self_value).sum()
    }

    /// Index of a node's caller. None for a root.
    pub fn caller(&self, node: usize) -> Option<usize> {
        self.nodes.get(node)?.parent.filter(|parent| *parent < node)
    }

    /// Total of each node, including its callees.
    pub fn totals(&self) -> Vec<f64> {
        let mut totals: Vec<f64> = self.nodes.iter().map(|node| node.self_value).collect();
        for node in (0..totals.len()).rev() {
            if let Some(caller) = self.caller(node) {
                totals[caller] += totals[node];
            }
        }
        totals
    }

    /// The nodes without a caller, and the callees of each node.
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

    /// All functions, largest self value first.
    pub fn functions(&self) -> Vec<FunctionValue> {
        let empty = |frame| FunctionValue {
            frame,
            self_value: 0.0,
            total: 0.0,
            lines: BTreeMap::new(),
        };
        let mut functions: Vec<FunctionValue> = (0..self.frames.len()).map(empty).collect();
        for node in &self.nodes {
            let Some(function) = functions.get_mut(node.frame) else {
                continue;
            };
            function.self_value += node.self_value;
            for (line, value) in &node.lines {
                *function.lines.entry(*line).or_insert(0.0) += value;
            }
        }
        // The total of a node counts only if its function is not among its callers.
        let (totals, (roots, children)) = (self.totals(), self.children());
        let mut on_stack = vec![0u32; self.frames.len()];
        let mut todo: Vec<(usize, bool)> =
            roots.into_iter().rev().map(|root| (root, true)).collect();
        while let Some((node, entering)) = todo.pop() {
            let frame = self.nodes[node].frame;
            if let Some(count) = on_stack.get_mut(frame) {
                if !entering {
                    *count -= 1;
                    continue;
                }
                functions[frame].total += if *count == 0 { totals[node] } else { 0.0 };
                *count += 1;
                todo.push((node, false));
            }
            todo.extend(children[node].iter().rev().map(|child| (*child, true)));
        }
        functions.sort_by(|a, b| {
            b.self_value
                .total_cmp(&a.self_value)
                .then(a.frame.cmp(&b.frame))
        });
        functions
    }

    /// Self values of functions, summed by `key`. Functions with a zero sum or without a key are omitted.
    pub fn sums<K: Ord>(&self, key: impl Fn(&Frame) -> Option<K>) -> BTreeMap<K, f64> {
        let mut values = vec![0.0; self.frames.len()];
        for node in &self.nodes {
            if let Some(value) = values.get_mut(node.frame) {
                *value += node.self_value;
            }
        }
        let mut sums = BTreeMap::new();
        for (frame, value) in self
            .frames
            .iter()
            .zip(values)
            .filter(|(_, value)| *value != 0.0)
        {
            if let Some(key) = key(frame) {
                *sums.entry(key).or_insert(0.0) += value;
            }
        }
        sums
    }

    /// The inverted tree, as in a table of the heaviest functions. Functions with a self value are roots,
    /// with their callers below, at most `callers` on each path, without lines. The sum is the same: the
    /// total of a root is the function's self value.
    pub fn bottom_up(&self, callers: usize) -> Tree {
        let mut made = Builder::default();
        let numbers: Vec<usize> = self.frames.iter().map(|frame| made.frame(frame)).collect();
        for (index, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.self_value != 0.0)
        {
            let Some(frame) = numbers.get(node.frame) else {
                continue;
            };
            let mut place = made.place(None, *frame);
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

/// Builds a canonical tree: each function and each path of calls occurs once. It does not know the unit of
/// its values.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    frames: IndexSet<Frame>,
    nodes: Vec<TreePlace>,
    places: HashMap<(Option<usize>, usize), usize>,
}

impl Builder {
    /// The index of a function, which is added if new.
    pub fn frame(&mut self, frame: &Frame) -> usize {
        let known = self.frames.get_index_of(frame);
        known.unwrap_or_else(|| self.frames.insert_full(frame.clone()).0)
    }

    pub fn frame_at(&self, number: usize) -> Option<&Frame> {
        self.frames.get_index(number)
    }

    /// The function of a node.
    pub fn frame_of(&self, place: usize) -> Option<&Frame> {
        self.frame_at(self.nodes.get(place)?.frame)
    }

    /// The node of a function below a caller, which is added if new.
    pub fn place(&mut self, parent: Option<usize>, frame: usize) -> usize {
        let next = self.nodes.len();
        let place = *self.places.entry((parent, frame)).or_insert(next);
        if place == next {
            self.nodes.push(TreePlace {
                frame,
                parent,
                self_value: 0.0,
                lines: BTreeMap::new(),
            });
        }
        place
    }

    /// Adds to the self value of a node. Ignores values that are not finite.
    pub fn add(&mut self, place: usize, value: f64) {
        if let Some(node) = self.nodes.get_mut(place).filter(|_| value.is_finite()) {
            node.self_value += value;
        }
    }

    /// Adds to the value of a line of a node.
    pub fn add_line(&mut self, place: usize, line: u32, value: f64) {
        if let Some(node) = self
            .nodes
            .get_mut(place)
            .filter(|_| value.is_finite() && value > 0.0)
        {
            *node.lines.entry(line).or_insert(0.0) += value;
        }
    }

    /// Adds a tree below a node, with the values of each of its nodes multiplied by `weight`. A node without
    /// a weight is omitted with its callees. A root with the function of the target node is merged into it.
    pub fn graft(
        &mut self,
        below: Option<usize>,
        tree: &Tree,
        weight: impl Fn(usize) -> Option<f64>,
    ) {
        let mut numbers: Vec<Option<usize>> = vec![None; tree.frames.len()];
        let top = below.and_then(|place| Some(self.nodes.get(place)?.frame));
        let mut places: Vec<Option<usize>> = vec![None; tree.nodes.len()];
        for (index, node) in tree.nodes.iter().enumerate() {
            let (Some(frame), Some(weight)) = (tree.frames.get(node.frame), weight(index)) else {
                continue;
            };
            let frame = *numbers[node.frame].get_or_insert_with(|| self.frame(frame));
            let place = match tree.caller(index).and_then(|caller| places[caller]) {
                None if top == Some(frame) => below.unwrap_or_default(),
                None => self.place(below, frame),
                caller => self.place(caller, frame),
            };
            self.add(place, node.self_value * weight);
            node.lines
                .iter()
                .for_each(|(line, value)| self.add_line(place, *line, value * weight));
            places[index] = Some(place);
        }
    }

    pub fn tree(self) -> Tree {
        Tree {
            frames: self.frames.into_iter().collect(),
            nodes: self.nodes,
        }
    }
}

/// The sum of trees, each multiplied by its weight. Equal paths of calls are merged, in order of first
/// appearance.
pub fn merge(trees: &[(&Tree, f64)]) -> Tree {
    let mut merged = Builder::default();
    trees
        .iter()
        .for_each(|(tree, weight)| merged.graft(None, tree, |_| Some(*weight)));
    merged.tree()
}

/// The sum of trees.
pub(crate) fn together<'t>(trees: impl IntoIterator<Item = &'t Tree>) -> Tree {
    merge(
        &trees
            .into_iter()
            .map(|tree| (tree, 1.0))
            .collect::<Vec<_>>(),
    )
}

/// The tree as callees of `root`. Roots that are already `root` are unchanged.
pub(crate) fn below(root: &Frame, tree: &Tree) -> Tree {
    let mut made = Builder::default();
    let frame = made.frame(root);
    let top = made.place(None, frame);
    made.graft(Some(top), tree, |_| Some(1.0));
    made.tree()
}

/// A tree of one function without callers and callees. Empty if the value is zero.
pub(crate) fn root(name: &str, kind: CodeKind, value: f64) -> Tree {
    let node = TreePlace {
        frame: 0,
        parent: None,
        self_value: value,
        lines: BTreeMap::new(),
    };
    scaled(
        &Tree {
            frames: vec![Frame::new(name, "", 0, kind)],
            nodes: vec![node],
        },
        |_| 1.0,
    )
}

/// A tree whose nodes are multiplied by `factor`. Nodes are removed if nothing is left in them and below
/// them.
pub(crate) fn scaled(tree: &Tree, factor: impl Fn(&Frame) -> f64) -> Tree {
    let factors: Vec<f64> = tree.frames.iter().map(factor).collect();
    let factor = |node: &TreePlace| {
        let factor = factors.get(node.frame).copied().unwrap_or(0.0);
        let value = node.self_value * factor;
        if value.is_finite() && value > 0.0 {
            factor
        } else {
            0.0
        }
    };
    let factors: Vec<f64> = tree.nodes.iter().map(factor).collect();
    let mut kept: Vec<bool> = factors.iter().map(|factor| *factor != 0.0).collect();
    for index in (0..kept.len()).rev() {
        if let Some(parent) = tree.caller(index).filter(|_| kept[index]) {
            kept[parent] = true;
        }
    }
    let mut made = Builder::default();
    made.graft(None, tree, |index| kept[index].then(|| factors[index]));
    made.tree()
}

/// The same tree without waiting, which takes no CPU time.
pub(crate) fn without_waiting(tree: &Tree) -> Tree {
    scaled(tree, |frame| {
        if frame.kind == CodeKind::Waiting {
            0.0
        } else {
            1.0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(usize, Option<usize>, f64)]) -> Tree {
        let node = |(frame, parent, self_value): &(usize, Option<usize>, f64)| TreePlace {
            frame: *frame,
            parent: *parent,
            self_value: *self_value,
            lines: [(3, *self_value)].into(),
        };
        let frames = [
            ("a", CodeKind::Application),
            ("b", CodeKind::Application),
            ("c", CodeKind::Core),
            ("(idle)", CodeKind::Waiting),
        ];
        let frames = frames
            .map(|(name, kind)| Frame::new(name, "a.js", 1, kind))
            .to_vec();
        Tree {
            frames,
            nodes: nodes.iter().map(node).collect(),
        }
    }

    #[test]
    fn recursion_counts_once() {
        // a → b → a → c, and b alone.
        let tree = tree(&[
            (0, None, 1.0),
            (1, Some(0), 2.0),
            (0, Some(1), 4.0),
            (2, Some(2), 8.0),
            (1, None, 16.0),
        ]);
        assert_eq!(tree.totals(), [15.0, 14.0, 12.0, 8.0, 16.0]);
        let found: Vec<(usize, f64, f64)> = tree
            .functions()
            .iter()
            .map(|it| (it.frame, it.self_value, it.total))
            .collect();
        assert_eq!(found[..3], [(1, 18.0, 30.0), (2, 8.0, 8.0), (0, 5.0, 15.0)]);
    }

    #[test]
    fn waiting_goes_and_callers_of_what_is_left_stay() {
        let left = without_waiting(&tree(&[
            (0, None, 0.0),
            (3, Some(0), 70.0),
            (1, Some(0), 30.0),
        ]));
        assert_eq!(
            left.nodes
                .iter()
                .map(|node| node.self_value)
                .collect::<Vec<f64>>(),
            [0.0, 30.0]
        );
        assert_eq!(
            (left.nodes[1].parent, left.nodes[1].lines[&3]),
            (Some(0), 30.0)
        );
    }

    #[test]
    fn what_begins_with_the_root_has_it_once() {
        let both = tree(&[(0, None, 1.0), (1, Some(0), 2.0), (2, None, 4.0)]);
        let made = below(&both.frames[0], &both);
        assert_eq!(
            (
                made.total(),
                made.nodes
                    .iter()
                    .filter(|node| node.parent.is_none())
                    .count()
            ),
            (7.0, 1)
        );
        assert_eq!(
            made.nodes
                .iter()
                .map(|node| node.parent)
                .collect::<Vec<_>>(),
            [None, Some(0), Some(0)]
        );
    }

    #[test]
    fn what_leads_nowhere_hurts_nobody() {
        let stray = tree(&[(7, Some(0), 1.0), (0, Some(9), 2.0), (1, Some(0), 4.0)]);
        assert_eq!(stray.totals(), [5.0, 2.0, 4.0]);
        assert_eq!(stray.functions()[0].total, 4.0);
        assert_eq!(
            stray.sums(|frame| Some(frame.kind))[&CodeKind::Application],
            6.0
        );
        assert_eq!(
            (stray.bottom_up(3).total(), merge(&[(&stray, 1.0)]).total()),
            (6.0, 6.0)
        );
        assert_eq!(crate::views::top_down(&stray, 0.0, 9).len(), 1);
        let nonsense = tree(&[
            (0, Some(7), 5.0),
            (1, Some(0), f64::NAN),
            (1, Some(1), f64::NEG_INFINITY),
            (99, Some(0), 3.0),
        ]);
        let left = without_waiting(&nonsense);
        assert_eq!((left.total(), left.frames.len()), (5.0, 1));
    }
}
