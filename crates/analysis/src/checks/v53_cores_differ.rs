//! Variants that had different cores' time, or lacked cores
//!
//! **Seen.** `the candidate's services had 94 % of the cores' time that the baseline's had`, or `services
//! were confined to 1 core (cpus = "separate"), and wanted 2.04 in the candidate and 1.02 in the baseline`.
//!
//! **Why.** [Throughput per core-second](methodology.md#throughput) requires equal cores. On too few, more
//! threads or processes seem useless.
//!
//! **What to do.** Different time: nothing, if throughput by the clock agrees; else find the wait, or set
//! `per_core = false`. Lacked cores: omit [`cpus`](methodology.md#cores), use more cores, or judge only
//! `cpu_per_request`.
//!
//! **Threshold.** More than `CORES_APART_MAX = 0.5` of the margin, with a confidence of
//! `CORES_APART_LEVEL = 0.99` over blocks. Or, with `cpus = "separate"`, `LACKED_MIN = 0.9` more cores wanted
//! than available, in the median of the trials. Invalid if the two differ by more than
//! `LACKED_APART_MAX = 0.5`.

use model::quantity::many;
use model::{Metric, Quantity, evidence};
use plan::{Comparison, Cpus};

use super::finding::{CheckFinding, either, warning};
use super::input::{CheckedRun, CheckedTrial, CheckedVariant};
use super::row::{CheckRow, EITHER, Maker, OFF, Subject, row};
use crate::metric::BlockFigures;
use crate::only_if;
use crate::usage::{confined_cores, wanted_confined};

pub(super) static ROW: CheckRow = row(Subject::Service, EITHER, &[Maker::Pair(cores_differ)])
    .of_pairs()
    .alone(OFF);

/// Maximum difference between the busy cores of two compared variants, as a share of the margin.
const CORES_APART_MAX: f64 = 0.5;
/// Confidence level of that difference.
const CORES_APART_LEVEL: f64 = 0.99;

/// Reports that one side had more CPU time, or would have used more.
fn cores_differ(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    cores_lacked(run, asked).or_else(|| cores_apart(run, asked))
}

/// Number of additional cores above which confined services lack cores. Helper threads of Node.js with one
/// busy thread wanted up to 0.8, mostly for garbage collection. A second busy thread wants 1.
const LACKED_MIN: f64 = 0.9;
/// Maximum difference in wanted cores between two variants, if one of them lacks cores.
const LACKED_APART_MAX: f64 = 0.5;

/// Reports that the plan confines services to fewer cores than they want. With `auto` they would have got all
/// of them.
fn cores_lacked(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let design = &run.plan.design;
    let judged = run.plan.judges_throughput();
    only_if(judged && design.cpus == Cpus::Separate && !run.is_open_loop())?;
    let pair = run.pair(asked)?;
    let cores = pair
        .iter()
        .filter_map(|of| confined_cores(run.machine, of.trials.first()?.started))
        .min()?;
    let wanted = |of: &CheckedVariant<'_>| {
        let of_trial = |trial: &CheckedTrial<'_>| {
            wanted_confined(run.machine, trial.started, trial.measured())
        };
        stats::median(of.trials.iter().filter_map(of_trial))
    };
    let (one, other) = (wanted(pair[0])?, wanted(pair[1])?);
    only_if(one.max(other) >= cores as f64 + LACKED_MIN)?;
    let apart = (one - other).abs() > LACKED_APART_MAX;
    let confined = many(cores as u64, "core");
    let evidence = evidence!(
        "services were confined to {confined} (cpus = \"separate\"), and wanted {candidate} in the candidate and {baseline} in the baseline";
        candidate = Quantity::number(other), baseline = Quantity::number(one));
    let remedy = if apart {
        "threads and processes that share these cores gain nothing by each other, which hides what the one variant would gain; leave out \
         `cpus` (--cpus), use a machine with more cores, or judge `cpu_per_request` alone"
    } else {
        "both want about as many, so they compare on these cores; with more of them the difference may be another one. Leave out `cpus` \
         (--cpus) to give them all cores of this machine"
    };
    Some(either(apart, evidence, remedy))
}

/// Reports that one side had more CPU time, if throughput is judged per core-second.
fn cores_apart(run: &CheckedRun<'_>, asked: &Comparison) -> Option<CheckFinding> {
    let design = &run.plan.design;
    only_if(
        run.figures.first()?.per_core
            && design.metrics().any(|metric| metric == Metric::Throughput),
    )?;
    let (metric, one, other) = (Metric::Throughput, asked.baseline, asked.candidate);
    let apart = |of: &BlockFigures| {
        Some(of.plain_log_ratio(metric, one, other)? - of.log_ratio(metric, one, other)?)
    };
    let apart: Vec<f64> = run.figures.iter().filter_map(apart).collect();
    let critical_t = stats::plain_t(apart.len() as u32, CORES_APART_LEVEL)?;
    let mean = stats::MeanInterval::of(&apart, critical_t)?;
    let large = mean.value.abs() > CORES_APART_MAX * design.margin.ln_1p();
    let evidence = evidence!(
        "throughput is judged per core-second, and the candidate's services had {share} of the cores' time that the baseline's had";
        share = Quantity::share(mean.value.exp()));
    let remedy = "find out what the one waits for, or who took its cores. The report shows throughput per second of the clock as well; with \
                  `per_core = false` in [design] the verdict is about that";
    (large && (mean.low > 0.0 || mean.high < 0.0)).then(|| warning(evidence, remedy))
}
