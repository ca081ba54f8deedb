//! A tree of calls turned over: by function, from the leaves to their callers, and from the roots down.
//!
//! It reads a tree that may come out of any file: an index that leads nowhere ends a walk and never loops.

use std::collections::BTreeMap;

use explain::{Frame, Kind, Tree};

/// Callers above a node that are looked at. V8 keeps 255 of a stack, the kernel 127; what is deeper was made by no profiler.
const DEEP_MAX: usize = 1024;
/// Levels of callers above a function.
const CALLERS_DEEP: usize = 4;
/// A caller below this share of what it calls is left out.
const CALLER_SHARE_MIN: f64 = 0.05;
/// Callers of one function that are told.
const CALLERS_MAX: usize = 3;
/// A chain of calls is shortened where nearly all of each goes on to the next.
const CHAIN_SHARE_MIN: f64 = 0.95;

/// A function and what it took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// Index into the tree's frames.
    pub frame: usize,
    /// Value of its own.
    pub self_value: f64,
    /// With what it calls, counted once where it calls itself.
    pub total: f64,
}

/// A function seen from below: what it took on behalf of whom.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Caller {
    /// Index into the tree's frames.
    pub frame: usize,
    /// What passes through it.
    pub value: f64,
    /// Who calls it, the most expensive first.
    pub callers: Vec<Caller>,
}

/// A line of the tree from above.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Index into the tree's frames.
    pub frame: usize,
    /// Levels below a root, those not counted that are left out.
    pub depth: usize,
    /// Value with what it calls.
    pub total: f64,
    /// Value of its own.
    pub self_value: f64,
    /// Calls between it and the line above that are left out.
    pub left_out: usize,
}

/// Who called a node, and who called that, to the root.
fn ancestors(tree: &Tree, node: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(tree.caller(node), |above| tree.caller(*above)).take(DEEP_MAX)
}

fn frame(tree: &Tree, node: usize) -> Option<&Frame> {
    tree.frames.get(tree.nodes.get(node)?.frame)
}

/// Nodes that took CPU time or bytes: with a frame, and not waiting.
fn working(tree: &Tree) -> impl Iterator<Item = usize> {
    let works = |node: &usize| frame(tree, *node).is_some_and(|frame| frame.kind != Kind::Waiting);
    (0..tree.nodes.len()).filter(works)
}

/// Sum of what worked.
pub(crate) fn worked(tree: &Tree) -> f64 {
    working(tree).map(|node| tree.nodes[node].self_value).sum()
}

/// Sum of what waited.
pub(crate) fn waited(tree: &Tree) -> f64 {
    (tree.total() - worked(tree)).max(0.0)
}

/// Value of each node with all below it; what waits is nothing.
fn totals(tree: &Tree) -> Vec<f64> {
    let mut totals = vec![0.0; tree.nodes.len()];
    for node in working(tree) {
        totals[node] = tree.nodes[node].self_value;
    }
    for node in (0..tree.nodes.len()).rev() {
        if let Some(parent) = tree.caller(node) {
            totals[parent] += totals[node];
        }
    }
    totals
}

/// Every function that worked, by its own value, the most expensive first.
pub(crate) fn functions(tree: &Tree) -> Vec<Function> {
    let totals = totals(tree);
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for node in working(tree) {
        let of = tree.nodes[node].frame;
        let sum = sums.entry(of).or_default();
        sum.0 += tree.nodes[node].self_value;
        if !ancestors(tree, node).any(|caller| tree.nodes[caller].frame == of) {
            sum.1 += totals[node];
        }
    }
    let function = |(frame, (self_value, total))| Function { frame, self_value, total };
    let mut functions: Vec<Function> = sums.into_iter().map(function).collect();
    functions.sort_by(|one, other| other.self_value.total_cmp(&one.self_value));
    functions
}

/// What worked by whose code it is, the most expensive first.
pub(crate) fn kinds(tree: &Tree) -> Vec<(Kind, f64)> {
    let worked = tree.sums(|frame| (frame.kind != Kind::Waiting).then_some(frame.kind));
    let mut kinds: Vec<(Kind, f64)> = worked.into_iter().collect();
    kinds.sort_by(|one, other| other.1.total_cmp(&one.1));
    kinds
}

/// The most expensive functions with their callers.
pub(crate) fn heavy(tree: &Tree, most: usize) -> Vec<Caller> {
    let mut places: BTreeMap<usize, Places> = BTreeMap::new();
    for node in working(tree).filter(|node| tree.nodes[*node].self_value > 0.0) {
        places.entry(tree.nodes[node].frame).or_default().push((node, tree.nodes[node].self_value));
    }
    let of = |function: &Function| {
        let places = places.get(&function.frame)?;
        Some(Caller {
            frame: function.frame,
            value: function.self_value,
            callers: callers(tree, places, CALLERS_DEEP),
        })
    };
    functions(tree).iter().filter(|function| function.self_value > 0.0).take(most).filter_map(of).collect()
}

/// Nodes, each with the value that passes through it.
type Places = Vec<(usize, f64)>;

/// Who calls what stands at these nodes.
fn callers(tree: &Tree, places: &Places, deep: usize) -> Vec<Caller> {
    let sum = |places: &Places| places.iter().map(|(_, value)| value).sum::<f64>();
    let whole = sum(places);
    if deep == 0 {
        return Vec::new();
    }
    let mut above: BTreeMap<usize, Places> = BTreeMap::new();
    for (node, value) in places {
        if let Some(caller) = tree.caller(*node).filter(|caller| is_told(tree, *caller)) {
            above.entry(tree.nodes[caller].frame).or_default().push((caller, *value));
        }
    }
    let mut found: Vec<(usize, Places)> = above.into_iter().collect();
    found.retain(|(_, places)| sum(places) >= whole * CALLER_SHARE_MIN);
    found.sort_by(|one, other| sum(&other.1).total_cmp(&sum(&one.1)));
    found.truncate(CALLERS_MAX);
    let caller = |(frame, places): (usize, Places)| Caller {
        frame,
        value: sum(&places),
        callers: callers(tree, &places, deep - 1),
    };
    found.into_iter().map(caller).collect()
}

/// V8 puts `(root)` and `(program)` above all: they call nothing.
fn is_told(tree: &Tree, node: usize) -> bool {
    frame(tree, node).is_some_and(|frame| frame.function != "(root)")
}

/// On whose behalf a function worked for the most part: the nearest function of the service's own above it, else its caller. With
/// the share of the function's own value.
pub(crate) fn on_behalf_of(tree: &Tree, of: &Frame) -> Option<(usize, f64)> {
    let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
    let mut whole = 0.0;
    for node in working(tree).filter(|node| frame(tree, *node) == Some(of)) {
        let value = tree.nodes[node].self_value;
        whole += value;
        let own = |caller: &usize| {
            frame(tree, *caller).is_some_and(|frame| frame.kind == Kind::Application && frame != of)
        };
        let direct = tree.caller(node).filter(|caller| is_told(tree, *caller));
        if let Some(caller) = ancestors(tree, node).find(own).or(direct) {
            *shares.entry(tree.nodes[caller].frame).or_default() += value;
        }
    }
    let (frame, value) = shares.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    (whole > 0.0).then_some((frame, value / whole))
}

/// The tree from above, the expensive calls first, without what is below `least` and without the middle of chains.
pub(crate) fn top_down(tree: &Tree, least: f64, most: usize) -> Vec<Call> {
    let totals = totals(tree);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for node in 0..tree.nodes.len() {
        match tree.caller(node) {
            Some(parent) => children[parent].push(node),
            None => roots.push(node),
        }
    }
    let sorted = |mut nodes: Vec<usize>| {
        nodes.retain(|node| totals[*node] >= least && totals[*node] > 0.0 && frame(tree, *node).is_some());
        nodes.sort_by(|one, other| totals[*one].total_cmp(&totals[*other]));
        nodes
    };
    let mut calls = Vec::new();
    // The last is the next: what costs most is put on the stack last.
    let mut stack: Vec<(usize, usize, usize)> = sorted(roots).into_iter().map(|node| (node, 0, 0)).collect();
    while let Some((node, depth, left_out)) = stack.pop() {
        if calls.len() == most {
            break;
        }
        let below = sorted(std::mem::take(&mut children[node]));
        let of = &tree.nodes[node];
        let goes_on = below.last().is_some_and(|child| totals[*child] >= totals[node] * CHAIN_SHARE_MIN);
        let is_own = frame(tree, node).is_some_and(|frame| frame.kind == Kind::Application);
        if goes_on && !is_own {
            stack.extend(below.into_iter().map(|child| (child, depth, left_out + 1)));
            continue;
        }
        calls.push(Call { frame: of.frame, depth, total: totals[node], self_value: of.self_value, left_out });
        stack.extend(below.into_iter().map(|child| (child, depth + 1, 0)));
    }
    calls
}

/// The most expensive lines: frame, line and value.
pub(crate) fn lines(tree: &Tree, most: usize) -> Vec<(usize, u32, f64)> {
    let mut sums: BTreeMap<(usize, u32), f64> = BTreeMap::new();
    for node in working(tree) {
        let of = &tree.nodes[node];
        for (line, value) in &of.lines {
            *sums.entry((of.frame, *line)).or_default() += value;
        }
    }
    let mut lines: Vec<(usize, u32, f64)> =
        sums.into_iter().map(|((frame, line), value)| (frame, line, value)).collect();
    lines.sort_by(|one, other| other.2.total_cmp(&one.2));
    lines.truncate(most);
    lines
}
