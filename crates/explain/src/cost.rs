//! The cost of a request in one service, by kind, package and function, over all workers and capture rounds.
//!
//! **Method.** Cost(f) = Σ over the service's threads of the CPU time with f on top of the stack ÷ successful
//! responses of the same window, in µs per request. Responses are counted at the entry, so that the costs of
//! several services add up. Each round has one value, see `explanation`. A function that is missing in a
//! round counts as zero there.
//!
//! **Tax.** CPU time per request during profiling ÷ the same without it, in the same trial, both by the
//! kernel's accounting, and likewise responses per second. Costs are not deflated by it, because it is
//! unknown whose code the profiler slowed down. Instead, a tax above 10 % is mentioned in the reconciliation,
//! and one above 30 % is a doubt.
//!
//! **Workers.** A worker's cost of a function is per own request: its share of the requests counted by all
//! workers, applied to the responses of the window. If they are not counted, its share of the CPU time is
//! used. The cheapest and the most expensive worker of a round are shown, as means over rounds.

use std::collections::BTreeMap;

use crate::captures::Use;
use crate::explanation::mean;
use crate::observed::{Observed, ProcessTree};
use crate::{
    Cost, CostInterval, ExplainedService, Frame, FunctionCost, FunctionValue, LineCost, Tax, Tree,
    merge, tree,
};

/// Maximum number of lines shown per function.
const LINES_MAX: usize = 5;

impl Observed {
    /// The observed time per request, in microseconds.
    pub fn per_request(&self) -> Tree {
        let requests = self.requests.max(1) as f64;
        tree::scaled(&self.tree, |_| 1.0 / (requests * 1e3))
    }
}

/// The mean of trees, one per round.
pub(crate) fn mean_tree<'t>(rounds: impl ExactSizeIterator<Item = &'t Tree>) -> Tree {
    let weight = 1.0 / rounds.len().max(1) as f64;
    merge(&rounds.map(|tree| (tree, weight)).collect::<Vec<_>>())
}

impl ExplainedService {
    /// Aggregates trees, one per round. With observations, adds the spread between workers. Other fields stay
    /// empty.
    pub(crate) fn over(rounds: &[Tree], observed: &[Observed]) -> ExplainedService {
        let tree = mean_tree(rounds.iter());
        ExplainedService {
            variant: String::new(),
            service: String::new(),
            requests: 0,
            cpu_us: CostInterval::exactly(tree.total()),
            tax: Tax {
                cpu_ratio: CostInterval::exactly(1.0),
                throughput_ratio: CostInterval::exactly(1.0),
            },
            kinds: costs(rounds, |frame| Some(frame.kind)),
            packages: costs(rounds, Frame::package_name),
            functions: rows(&tree, rounds, observed),
            workers: Vec::new(),
            waiting: None,
            heap: None,
            tree,
        }
    }
}

/// The profiler's overhead, from the resource use with and without it, by round. Zero if no round has both.
pub(crate) fn tax(with: &BTreeMap<u32, Use>, without: &BTreeMap<u32, Use>) -> Tax {
    let ratios = |of: fn(&Use) -> f64| {
        let both = with
            .iter()
            .filter_map(|(round, with)| Some((of(with), of(without.get(round)?))));
        CostInterval::over(
            both.filter(|(_, without)| *without > 0.0)
                .map(|(with, without)| with / without),
        )
    };
    Tax {
        cpu_ratio: ratios(|used| used.cpu_us),
        throughput_ratio: ratios(|used| used.per_s),
    }
}

/// Values of each key, one per round. Zero if a round has none.
pub(crate) fn by_round<K: Ord + Clone>(rounds: &[BTreeMap<K, f64>]) -> BTreeMap<K, Vec<f64>> {
    let mut values: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for (place, round) in rounds.iter().enumerate() {
        for (key, value) in round {
            values
                .entry(key.clone())
                .or_insert_with(|| vec![0.0; rounds.len()])[place] = *value;
        }
    }
    values
}

fn costs<K: Ord + Clone>(rounds: &[Tree], key: impl Fn(&Frame) -> Option<K>) -> Vec<Cost<K>> {
    let sums: Vec<BTreeMap<K, f64>> = rounds.iter().map(|tree| tree.sums(&key)).collect();
    let values = by_round(&sums).into_iter();
    let mut costs: Vec<Cost<K>> = values
        .map(|(what, values)| Cost {
            what,
            us: CostInterval::over(values),
        })
        .collect();
    costs.sort_by(|one, other| other.us.value.total_cmp(&one.us.value));
    costs
}

fn rows(tree: &Tree, rounds: &[Tree], observed: &[Observed]) -> Vec<FunctionCost> {
    let sums: Vec<BTreeMap<Frame, f64>> = rounds
        .iter()
        .map(|tree| tree.sums(|frame| Some(frame.clone())))
        .collect();
    let self_us = by_round(&sums);
    let spreads = spreads(observed);
    let row = |function: FunctionValue| {
        let frame = &tree.frames[function.frame];
        let self_us = CostInterval::over(self_us.get(frame).into_iter().flatten().copied());
        FunctionCost {
            frame: frame.clone(),
            self_us,
            total_us: function.total,
            workers_us: spreads
                .get(frame)
                .copied()
                .unwrap_or((self_us.value, self_us.value)),
            lines: most_expensive(&function.lines),
        }
    };
    let mut rows: Vec<FunctionCost> = tree.functions().into_iter().map(row).collect();
    rows.sort_by(|one, other| {
        other
            .self_us
            .value
            .total_cmp(&one.self_us.value)
            .then(other.total_us.total_cmp(&one.total_us))
    });
    rows
}

fn most_expensive(lines: &BTreeMap<u32, f64>) -> Vec<LineCost> {
    let mut lines: Vec<LineCost> = lines
        .iter()
        .map(|(line, us)| LineCost {
            line: *line,
            us: *us,
        })
        .collect();
    lines.sort_by(|one, other| other.us.total_cmp(&one.us));
    lines.truncate(LINES_MAX);
    lines
}

/// The smallest and largest cost of each function among workers, as means over rounds.
fn spreads(observed: &[Observed]) -> BTreeMap<Frame, (f64, f64)> {
    let rounds = observed.len().max(1) as f64;
    let mut means: BTreeMap<Frame, (f64, f64)> = BTreeMap::new();
    for round in observed {
        let costs = own_requests(round).into_iter().map(|(process, requests)| {
            let mut costs = process.tree.sums(|frame| Some(frame.clone()));
            costs.values_mut().for_each(|ns| *ns /= requests * 1e3);
            costs
        });
        for (frame, values) in by_round(&costs.collect::<Vec<_>>()) {
            let mean = means.entry(frame).or_default();
            mean.0 += values.iter().copied().fold(f64::INFINITY, f64::min) / rounds;
            mean.1 += values.iter().copied().fold(0.0, f64::max) / rounds;
        }
    }
    means
}

/// Processes that serve requests, each with its share of the window's responses.
fn own_requests(observed: &Observed) -> Vec<(&ProcessTree, f64)> {
    let said = |process: &ProcessTree| process.share.requests.unwrap_or(0) as f64;
    let spent = |process: &ProcessTree| process.tree.total();
    let processes = || observed.processes.iter();
    let told = processes().any(|process| said(process) > 0.0);
    let part = |process: &ProcessTree| if told { said(process) } else { spent(process) };
    let each = observed.requests as f64 / processes().map(part).sum::<f64>();
    let working = processes().filter(|process| part(process) > 0.0);
    working
        .map(|process| (process, part(process) * each))
        .collect()
}

/// CPU time seen by profiles and threads, and CPU time counted by the kernel in the same windows (positive):
/// per request, as means over rounds. `None` if the kernel counted nothing.
pub(crate) fn seen(observed: &[Observed]) -> Option<(f64, f64)> {
    let mean_of = |of: fn(&Observed) -> f64| {
        let per_request = observed
            .iter()
            .map(|one| of(one) / one.requests.max(1) as f64 / 1e3);
        mean(per_request).unwrap_or(0.0)
    };
    let (seen_us, counted_us) = (mean_of(|one| one.tree.total()), mean_of(|one| one.cpu_ns));
    (counted_us > 0.0).then_some((seen_us, counted_us))
}
