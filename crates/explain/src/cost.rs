//! What a request costs in one service, by kind, package and function, over all workers and capture rounds.
//!
//! **Method.** Cost(f) = Σ over the service's threads of the CPU time with f on top of the stack ÷ successful responses of the same window,
//! in µs per request. Responses are those that the entry gave, so that the costs of several services add up. Each round has one value,
//! see `interval`. Where rounds differ in what they saw, a function that is missing in one counts as zero there.
//!
//! **Tax.** CPU time per request while profiles were taken ÷ the same without, of the same trial, both by the kernel's accounting, and
//! likewise responses per second. Costs are not deflated by it: nobody knows whose code the profiler slowed down. Instead a tax above
//! 10 % stands in the reconciliation, and above 30 % it is a doubt.
//!
//! **Workers.** A worker's cost of a function is per request of its own: its part of the requests that all of them say they answered, of
//! the responses of the window; by its part of the CPU time where they do not say. Shown are the cheapest and the most expensive worker of a
//! round, as means over rounds.

use std::collections::BTreeMap;

use crate::captures::Use;
use crate::explanation::mean;
use crate::observed::{Observed, ProcessTree};
use crate::{Change, Cost, Frame, FunctionValue, Interval, Kind, LineCost, Row, Subject, Tax, Tree, Waiting};
use crate::{merge, tree};

/// Lines that are shown of a function.
const LINES_MAX: usize = 5;

/// All that is known of a service in a variant.
pub(crate) struct Material<'a> {
    /// The variant's name.
    pub variant: &'a str,
    /// The service's name.
    pub service: &'a str,
    /// What profiles of CPU saw; rounds without a response are not among them.
    pub observed: Vec<Observed>,
    /// By the kernel's accounting, without a profiler.
    pub plain: BTreeMap<u32, Use>,
    /// The same while profiles were taken.
    pub taxed: BTreeMap<u32, Use>,
    /// Where its requests wait.
    pub waiting: Option<Waiting>,
    /// Bytes per request.
    pub heap: Option<Tree>,
}

impl Observed {
    /// What was seen per request, in microseconds.
    pub fn per_request(&self) -> Tree {
        let requests = self.requests.max(1) as f64;
        tree::scaled(&self.tree, |_| 1.0 / (requests * 1e3))
    }
}

/// The mean of trees, one a round.
pub(crate) fn mean_tree(rounds: &[Tree]) -> Tree {
    let weight = 1.0 / rounds.len().max(1) as f64;
    merge(&rounds.iter().map(|tree| (tree, weight)).collect::<Vec<_>>())
}

impl Material<'_> {
    /// What it amounts to.
    pub fn subject(&self) -> Subject {
        let rounds: Vec<Tree> = self.observed.iter().map(Observed::per_request).collect();
        let tree = mean_tree(&rounds);
        let without: Vec<f64> = self.plain.values().map(|used| used.cpu_us).collect();
        let with: Vec<f64> = self.taxed.values().map(|used| used.cpu_us).collect();
        Subject {
            variant: self.variant.into(),
            service: self.service.into(),
            requests: self.observed.iter().map(|one| one.requests).fold(0, u64::saturating_add),
            cpu_us: Interval::over(if without.is_empty() { &with } else { &without }),
            tax: self.tax(),
            kinds: costs(&rounds, |frame| Some(frame.kind)),
            packages: costs(&rounds, Frame::package_name),
            functions: rows(&tree, &rounds, &self.observed),
            workers: self.observed.iter().flat_map(|one| one.shares.iter().cloned()).collect(),
            waiting: self.waiting,
            tree,
            heap: self.heap.clone(),
        }
    }

    fn tax(&self) -> Tax {
        let ratios = |of: fn(&Use) -> f64| {
            let both =
                self.taxed.iter().filter_map(|(round, with)| Some((of(with), of(self.plain.get(round)?))));
            let ratios: Vec<f64> =
                both.filter(|(_, without)| *without > 0.0).map(|(with, without)| with / without).collect();
            if ratios.is_empty() { Interval::exactly(1.0) } else { Interval::over(&ratios) }
        };
        Tax { cpu_ratio: ratios(|used| used.cpu_us), throughput_ratio: ratios(|used| used.per_s) }
    }
}

/// Values of each key, one a round, zero where a round has none.
pub(crate) fn by_round<K: Ord + Clone>(rounds: &[BTreeMap<K, f64>]) -> BTreeMap<K, Vec<f64>> {
    let mut values: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for (place, round) in rounds.iter().enumerate() {
        for (key, value) in round {
            values.entry(key.clone()).or_insert_with(|| vec![0.0; rounds.len()])[place] = *value;
        }
    }
    values
}

fn costs<K: Ord + Clone>(rounds: &[Tree], key: impl Fn(&Frame) -> Option<K>) -> Vec<Cost<K>> {
    let sums: Vec<BTreeMap<K, f64>> = rounds.iter().map(|tree| tree.sums(&key)).collect();
    let values = by_round(&sums).into_iter();
    let mut costs: Vec<Cost<K>> =
        values.map(|(what, values)| Cost { what, us: Interval::over(&values) }).collect();
    costs.sort_by(|one, other| other.us.value.total_cmp(&one.us.value));
    costs
}

fn rows(tree: &Tree, rounds: &[Tree], observed: &[Observed]) -> Vec<Row> {
    let sums: Vec<BTreeMap<Frame, f64>> =
        rounds.iter().map(|tree| tree.sums(|frame| Some(frame.clone()))).collect();
    let self_us = by_round(&sums);
    let spreads = spreads(observed);
    let row = |function: FunctionValue| {
        let frame = &tree.frames[function.frame];
        let self_us = Interval::over(self_us.get(frame).map(Vec::as_slice).unwrap_or_default());
        Row {
            frame: frame.clone(),
            self_us,
            total_us: function.total,
            workers_us: spreads.get(frame).copied().unwrap_or((self_us.value, self_us.value)),
            lines: most_expensive(&function.lines),
        }
    };
    let mut rows: Vec<Row> = tree.functions().into_iter().map(row).collect();
    rows.sort_by(|one, other| {
        other.self_us.value.total_cmp(&one.self_us.value).then(other.total_us.total_cmp(&one.total_us))
    });
    rows
}

fn most_expensive(lines: &BTreeMap<u32, f64>) -> Vec<LineCost> {
    let mut lines: Vec<LineCost> = lines.iter().map(|(line, us)| LineCost { line: *line, us: *us }).collect();
    lines.sort_by(|one, other| other.us.total_cmp(&one.us));
    lines.truncate(LINES_MAX);
    lines
}

/// The smallest and largest cost of each function among workers: means over rounds.
fn spreads(observed: &[Observed]) -> BTreeMap<Frame, (f64, f64)> {
    let rounds: Vec<BTreeMap<Frame, (f64, f64)>> = observed.iter().map(spread).collect();
    let count = rounds.len().max(1) as f64;
    let mut means: BTreeMap<Frame, (f64, f64)> = BTreeMap::new();
    for (frame, (least, most)) in rounds.into_iter().flatten() {
        let mean = means.entry(frame).or_insert((0.0, 0.0));
        mean.0 += least / count;
        mean.1 += most / count;
    }
    means
}

fn spread(observed: &Observed) -> BTreeMap<Frame, (f64, f64)> {
    let workers: Vec<(&ProcessTree, f64)> = own_requests(observed);
    let of = |(process, requests): &(&ProcessTree, f64)| {
        let costs = process.tree.sums(|frame| Some(frame.clone()));
        costs.into_iter().map(|(frame, ns)| (frame, ns / requests / 1e3)).collect()
    };
    let costs: Vec<BTreeMap<Frame, f64>> = workers.iter().map(of).collect();
    let ends = |values: Vec<f64>| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, values.iter().copied().fold(0.0, f64::max))
    };
    by_round(&costs).into_iter().map(|(frame, values)| (frame, ends(values))).collect()
}

/// Processes that answer, each with its part of the window's responses.
fn own_requests(observed: &Observed) -> Vec<(&ProcessTree, f64)> {
    let all = observed.requests as f64;
    let said: Vec<&ProcessTree> = observed
        .processes
        .iter()
        .filter(|process| process.requests.is_some_and(|requests| requests > 0))
        .collect();
    let requests = |process: &ProcessTree| process.requests.unwrap_or(0) as f64;
    let sum: f64 = said.iter().map(|process| requests(process)).sum();
    if sum > 0.0 {
        return said.into_iter().map(|process| (process, all * requests(process) / sum)).collect();
    }
    let sum: f64 = observed.processes.iter().map(|process| process.tree.total()).sum();
    let working = observed.processes.iter().filter(|process| process.tree.total() > 0.0);
    working.map(|process| (process, all * process.tree.total() / sum)).collect()
}

/// How much of the CPU time was seen, per request, means over rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// By profiles and by threads.
    pub seen_us: f64,
    /// By the kernel's accounting of the same windows, above zero.
    pub counted_us: f64,
}

/// `None` where the kernel counted nothing.
pub(crate) fn seen(observed: &[Observed]) -> Option<Seen> {
    let mean = |of: &dyn Fn(&Observed) -> f64| {
        let values: Vec<f64> =
            observed.iter().map(|one| of(one) / one.requests.max(1) as f64 / 1e3).collect();
        mean(&values)
    };
    let (seen_us, counted_us) = (mean(&|one| one.tree.total()), mean(&|one| one.cpu_ns));
    (counted_us > 0.0).then_some(Seen { seen_us, counted_us })
}

/// The change of a kind, of those that a comparison has.
pub(crate) fn of_kind(kinds: &[Change<Kind>], kind: Kind) -> (f64, f64) {
    kinds
        .iter()
        .find(|change| change.what == kind)
        .map_or((0.0, 0.0), |change| (change.baseline, change.variant))
}
