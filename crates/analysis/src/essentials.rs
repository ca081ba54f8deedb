//! Summary of a record for lists and trends, in the form stored by an index, so that conclusions need not be
//! recomputed.
//!
//! Estimates and verdicts are copied from [`Conclusion`]. All data here can be recomputed from the record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{ArrivalProcess, Digest, Pacing, Rate, quantity};
use plan::{
    Design, LookRule, Measure, Metric, Plan, PlanPaths, Service, ServiceCommand, Tune, Variant,
    comparable_contract,
};
use record::{Ended, MachineFingerprint, Record, Slice};
use serde::{Deserialize, Serialize};
use stats::{Estimate, plain_t};

use crate::comparison::Outcome;
use crate::metric::{BlockFigures, log_values, metrics};
use crate::sums::mean;
use crate::throughput::per_core;
use crate::usage::cpus;
use crate::{Conclusion, Grade};

/// Version of this form and its content. An index with another version is recomputed.
pub const ESSENTIALS_VERSION: u32 = 12;
/// Confidence level of the interval of one variant's figure, based only on its blocks.
const LEVEL: f64 = 0.95;
/// Maximum ratio between rates, and between warm-ups. Warm-ups that differ by at most this many seconds also
/// count as equal.
const RATE_FACTOR: f64 = 1.02;
const WARM_UP_FACTOR: f64 = 2.0;
const WARM_UP_S: f64 = 1.0;
/// Length of a plan's mark. Two of a thousand plans have the same mark with a probability of one in 10^8.
const MARK_LETTERS: usize = 12;

/// Summary of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Essentials {
    /// Name of the experiment.
    pub experiment: String,
    /// Question of the experiment.
    pub question: Option<String>,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
    /// Position among other records if the time does not determine it, as in [`record::Header::order`].
    pub order: Option<(String, u32)>,
    /// Version of the Proofload that ran it.
    pub proofload: String,
    /// Seed of the run.
    pub seed: u64,
    /// Machine and software of the run.
    pub environment: MachineFingerprint,
    /// Mark of the plan.
    pub plan: String,
    /// Further conditions of the figures.
    pub conditions: Conditions,
    /// The metric of the verdict.
    pub metric: Metric,
    /// Number of complete blocks.
    pub blocks: u32,
    /// Number of discarded blocks.
    pub blocks_dropped: usize,
    /// How the run ended. `None` if it was killed or is still running.
    pub ended: Option<Ended>,
    /// Each comparison, once for each metric with a verdict or an estimate.
    pub compared: Vec<ComparedMetric>,
    /// Each metric of each variant except the copy, if it may be shown.
    pub figures: Vec<MetricFigure>,
    /// Numbers of the checks that make something invalid, such as `V8`, most severe first.
    pub void: Vec<String>,
    /// Number of warnings.
    pub warnings: usize,
    /// Number of captures.
    pub captures: usize,
    /// Descriptions of unreadable parts of the record.
    pub damage: Vec<String>,
}

/// Conditions that a run determined and that affect its figures. Figures of runs with different conditions
/// are not comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Requests due per second, in open loop.
    pub rate_per_s: Option<f64>,
    /// Requests per second at start and end of each slice of a measurement. `None` in closed loop and if
    /// variants are compared.
    pub measured_per_s: Option<RatesMeasured>,
    /// Distribution of arrivals in time. `None` in closed loop.
    pub arrivals: Option<ArrivalProcess>,
    /// Length of the warm-up in seconds.
    pub warm_up_s: Option<f64>,
    /// Number of processors that services ran on. `None` if the record does not contain it.
    pub cpus: Option<usize>,
    /// Whether the generator shared these processors.
    pub cpus_shared: bool,
    /// Digests of the load's files by name.
    pub files: BTreeMap<String, Digest>,
    /// Whether ratios of throughput are per core-second. Figures of variants never are, so this is not one of
    /// the [`differences`](Self::differences).
    pub per_core: bool,
}

/// Requests per second at start and end of each slice.
pub type RatesMeasured = Vec<(f64, f64)>;

/// Rates, arrivals and warm-up of a measurement.
fn measured<'a>(
    slices: impl Iterator<Item = &'a Slice>,
    measure: &Measure,
) -> (Option<RatesMeasured>, Option<ArrivalProcess>, Option<f64>) {
    // The length is ignored: longer slices give the same figures with more digits.
    let Measure {
        until: _,
        rates,
        arrivals,
        warmup,
    } = measure;
    let open = |slice: &Slice| slice.asked.and_then(|asked| asked.open);
    let ends = |rate: Rate| {
        rate.ramp()
            .map_or((rate.at(0.0), rate.at(0.0)), |(from, to, _)| (from, to))
    };
    let rates = rates.as_ref().map(|_| {
        slices
            .filter_map(open)
            .map(|open| ends(open.rate))
            .collect()
    });
    let arrivals = rates.is_some().then_some(*arrivals);
    (rates, arrivals, Some(warmup.as_secs_f64()))
}

impl Conditions {
    /// Reads the conditions of a record.
    pub fn of(record: &Record) -> Conditions {
        let trial = record.trials().next();
        let plan = &record.header.plan;
        let settled_s = record.warm_up.as_ref().map(|warm_up| warm_up.seconds);
        let (measured_per_s, arrivals, warm_up_s) = match &plan.measure {
            Some(measure) => measured(record.trials().flat_map(|trial| trial.measured()), measure),
            None => (
                None,
                record.is_open_loop().then_some(plan.design.arrivals),
                settled_s,
            ),
        };
        Conditions {
            rate_per_s: record.rate.as_ref().map(|rate| rate.per_s),
            measured_per_s,
            arrivals,
            warm_up_s,
            files: record.header.files.clone(),
            cpus: trial
                .map(|trial| cpus(&trial.started))
                .filter(|count| *count > 0),
            cpus_shared: trial.is_some_and(|trial| trial.started.cpus_shared),
            per_core: per_core(record),
        }
    }

    /// Describes the differences between two runs, with both values. A value missing in one of them is not a
    /// difference.
    pub fn differences(&self, other: &Conditions) -> Vec<String> {
        let apart = |one: f64, other: f64, factor: f64| one.max(other) > one.min(other) * factor;
        // The pattern names every field, so that none is forgotten.
        let Conditions {
            rate_per_s,
            measured_per_s,
            arrivals,
            warm_up_s,
            files,
            cpus,
            cpus_shared,
            per_core: _,
        } = self;
        let mut found = Vec::new();
        if let (Some(one), Some(other)) = (measured_per_s, &other.measured_per_s) {
            let is_apart = |((from, to), (from_then, to_then)): (&(f64, f64), &(f64, f64))| {
                apart(*from, *from_then, RATE_FACTOR) || apart(*to, *to_then, RATE_FACTOR)
            };
            if one.len() != other.len() || one.iter().zip(other).any(is_apart) {
                found.push(format!(
                    "rates of {} and {}",
                    rates_told(one),
                    rates_told(other)
                ));
            }
        }
        let is_open = |of: &Conditions| of.rate_per_s.is_some() || of.measured_per_s.is_some();
        if is_open(self) != is_open(other) {
            found.push("closed loop and a rate".to_owned());
        }
        let is_other = |name: &&String| {
            other
                .files
                .get(*name)
                .is_some_and(|then| *then != files[*name])
        };
        found.extend(
            files
                .keys()
                .filter(is_other)
                .map(|name| format!("two contents of {name}")),
        );
        if arrivals
            .zip(other.arrivals)
            .is_some_and(|(one, other)| one != other)
        {
            found.push("random arrivals and even ones".to_owned());
        }
        let rates = rate_per_s.zip(other.rate_per_s);
        let rates = rates.filter(|(one, other)| apart(*one, *other, RATE_FACTOR));
        let told = |(one, other)| {
            format!(
                "rates of {} and {}",
                quantity::rate(one),
                quantity::rate(other)
            )
        };
        found.extend(rates.map(told));
        let warm_ups = warm_up_s.zip(other.warm_up_s);
        let warm_ups = warm_ups.filter(|(one, other)| {
            apart(*one, *other, WARM_UP_FACTOR) && (one - other).abs() > WARM_UP_S
        });
        let told = |(one, other)| {
            format!(
                "warm-ups of {} and {}",
                quantity::span(one),
                quantity::span(other)
            )
        };
        found.extend(warm_ups.map(told));
        let cpus = cpus.zip(other.cpus).filter(|(one, other)| one != other);
        found.extend(cpus.map(|(one, other)| {
            format!(
                "services on {one} and on {}",
                quantity::many(other as u64, "processor")
            )
        }));
        if *cpus_shared != other.cpus_shared {
            found.push("a generator on other processors and on those of the services".to_owned());
        }
        found
    }
}

/// Formats rates as `500/s, 1,000/s`, and ramps as `100/s..5,000/s`.
fn rates_told(all: &[(f64, f64)]) -> String {
    let told = |(from, to): &(f64, f64)| match from == to {
        true => quantity::rate(*from),
        false => format!("{}..{}", quantity::rate(*from), quantity::rate(*to)),
    };
    all.iter().map(told).collect::<Vec<_>>().join(", ")
}

/// One metric of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedMetric {
    /// Label of the form "candidate vs baseline".
    pub label: String,
    /// Names of the candidate and of the baseline.
    pub of: [String; 2],
    /// The metric.
    pub metric: Metric,
    /// The verdict. `None` if the metric is only shown.
    pub outcome: Option<Outcome>,
    /// Candidate over baseline, if there is an estimate.
    pub estimate: Option<Estimate>,
}

/// One metric of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricFigure {
    /// Name of the variant.
    pub variant: String,
    /// The metric.
    pub metric: Metric,
    /// Geometric mean over blocks, in the metric's unit: 1/s, µs or bytes.
    pub value: f64,
    /// Number of blocks.
    pub blocks: u32,
    /// 95 % interval based only on these blocks, if they differ.
    pub interval: Option<(f64, f64)>,
    /// Standard error of the logarithm. 0 if all blocks are equal, `None` if there is only one.
    pub standard_error: Option<f64>,
}

impl Essentials {
    /// Whether the run ended by its rule: it was not killed or stopped, and nothing failed.
    pub fn is_whole(&self) -> bool {
        self.ended
            .as_ref()
            .is_some_and(|ended| ended.reason.is_own())
    }

    /// Summarizes a record and its conclusions.
    pub fn of(record: &Record, conclusion: &Conclusion) -> Essentials {
        let header = &record.header;
        let graded = |grade| {
            conclusion
                .findings
                .iter()
                .filter(move |finding| finding.grade == grade)
        };
        let void = graded(Grade::Invalid).map(|finding| finding.check.number().to_owned());
        Essentials {
            experiment: header.plan.name.clone(),
            question: header.plan.question.clone(),
            created: header.created.clone(),
            order: header.order.clone(),
            proofload: header.proofload.clone(),
            seed: header.seed,
            environment: header.environment.clone(),
            plan: plan_mark(&header.plan),
            conditions: Conditions::of(record),
            metric: header.plan.design.metric,
            blocks: conclusion.blocks,
            blocks_dropped: conclusion.blocks_dropped.len(),
            ended: record.ended.clone(),
            compared: compared(&header.plan, conclusion),
            figures: figures(record, conclusion),
            void: model::distinct(void),
            warnings: graded(Grade::Warning).count(),
            captures: record.captures.len(),
            damage: record.damage.clone(),
        }
    }

    /// Iterates over the comparisons with a verdict.
    pub fn judged(&self) -> impl Iterator<Item = (&ComparedMetric, Outcome)> {
        self.compared
            .iter()
            .filter_map(|compared| Some((compared, compared.outcome?)))
    }
}

fn compared(plan: &Plan, conclusion: &Conclusion) -> Vec<ComparedMetric> {
    let name = |index: usize| {
        plan.variants
            .get(index)
            .map(|of| of.name.clone())
            .unwrap_or_default()
    };
    let mut all = Vec::new();
    for comparison in &conclusion.comparisons {
        let (label, of) = (
            &comparison.label,
            [name(comparison.candidate), name(comparison.baseline)],
        );
        let one = |metric, outcome, estimate| ComparedMetric {
            label: label.clone(),
            of: of.clone(),
            metric,
            outcome,
            estimate,
        };
        all.push(one(
            comparison.metric,
            Some(comparison.outcome),
            comparison.estimate,
        ));
        let others = comparison.exploratory.iter();
        all.extend(others.map(|other| one(other.metric, None, Some(other.estimate))));
    }
    all
}

/// Figures of variants without an invalidating finding. Invalid figures are never stored.
fn figures(record: &Record, conclusion: &Conclusion) -> Vec<MetricFigure> {
    let (plan, blocks) = (&record.header.plan, BlockFigures::all(record));
    let copy = plan.aa.as_ref().map(|aa| aa.candidate);
    let shown = 0..plan.variants.len();
    let shown = shown.filter(|variant| Some(*variant) != copy && !conclusion.voids(*variant));
    let of = |(variant, metric): (usize, Metric)| {
        let found = figure(
            &plan.variants[variant].name,
            metric,
            &log_values(&blocks, metric, variant)?,
        )?;
        let bias = conclusion.bias(metric, variant);
        Some(MetricFigure {
            interval: found.interval.map(|(low, high)| (low / bias, high * bias)),
            ..found
        })
    };
    shown
        .flat_map(|variant| metrics(record).map(move |metric| (variant, metric)))
        .filter_map(of)
        .collect()
}

fn figure(variant: &str, metric: Metric, logs: &[f64]) -> Option<MetricFigure> {
    let blocks = logs.len() as u32;
    let value = mean(logs.iter().copied())?.exp();
    let estimate = plain_t(blocks, LEVEL).map(|t| Estimate::of(logs, t));
    let standard_error = match &estimate {
        Some(Ok(estimate)) => Some(estimate.sd_log / f64::from(blocks).sqrt()),
        Some(Err(stats::Error::NoSpread { .. })) => Some(0.0),
        Some(Err(_)) | None => None,
    };
    let interval = estimate
        .and_then(Result::ok)
        .map(|estimate| (estimate.low, estimate.high));
    Some(MetricFigure {
        variant: variant.to_owned(),
        metric,
        value,
        blocks,
        interval,
        standard_error,
    })
}

/// Mark of a plan's content. Plans have the same mark if they differ only in the following: time limits,
/// seed, explanations, gate limits, the settings of `tune`, the wording of the question, folders of the
/// experiment's files, case of header names, or discovered ports.
pub(crate) fn plan_mark(plan: &Plan) -> String {
    let mut plan = plan.clone();
    let pacing = plan.design.pacing();
    let PlanPaths { directories, files } = plan.paths_mut();
    for path in directories.into_iter().chain(files) {
        *path = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
    }
    // The patterns here and below name every field, so that none is forgotten.
    let Plan {
        question,
        design,
        gate,
        tune,
        against,
        variants,
        name: _,
        factors: _,
        comparisons: _,
        aa: _,
        prepare: _,
        building: _,
        generators: _,
        measure: _,
        secrets: _,
    } = &mut plan;
    // Variants' names contain the commits. Uncommitted changes are not part of the plan.
    (*question, *tune, *against) = (None, Tune::default(), None);
    gate.clear();
    forget_length(design);
    variants
        .iter_mut()
        .for_each(|variant| forget_findings(variant, pacing));
    // Plain values with string keys always convert to JSON.
    let text = serde_json::to_vec(&plan).unwrap_or_default();
    Digest::of(&text).to_string()[..MARK_LETTERS].to_owned()
}

/// Resets the fields of a design for the measuring time, the number of looks, and later steps.
fn forget_length(design: &mut Design) {
    let Design {
        budget,
        seed,
        blocks,
        looks,
        explain,
        metric: _,
        co_primary: _,
        endpoint: _,
        cpus: _,
        margin: _,
        warmup: _,
        slice: _,
        slices: _,
        per_core: _,
        pooled: _,
        drop_disturbed: _,
        rate: _,
        ramp_to: _,
        arrivals: _,
        slo: _,
    } = design;
    (*budget, *seed, *blocks) = (Duration::ZERO, None, None);
    (*looks, *explain) = (LookRule::default(), false);
}

/// Resets the fields of a variant that a run discovered, and normalizes its load.
fn forget_findings(variant: &mut Variant, pacing: Pacing) {
    let Variant {
        name: _,
        levels: _,
        services,
        entry: _,
        load,
        expect,
    } = variant;
    *load = load.comparable(pacing);
    *expect = comparable_contract(expect);
    for command in services.iter_mut().filter_map(Service::command_mut) {
        let ServiceCommand {
            listens_on,
            other_ports,
            command: _,
            directory: _,
            address: _,
            container: _,
            env: _,
            port: _,
            stop_timeout: _,
            launcher: _,
            workers: _,
            pmx: _,
            templates: _,
        } = command;
        *listens_on = None;
        other_ports.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn rates_and_warm_ups_of_measurements_are_conditions() {
        let of = |measure: &str| {
            let text = format!(
                "name = \"x\"\n[services.api]\nurl = \"http://127.0.0.1:1\"\n[measure]\n{measure}"
            );
            let plan = plan::parse(&text, Path::new("/")).expect("a plan");
            let measure = plan.measure.as_ref().expect("a measurement");
            // The rates come from the slices.
            let (rates, arrivals, warm_up_s) = measured(std::iter::empty(), measure);
            let asked = measure
                .rates
                .as_ref()
                .map(|rates| rates.written().parse().expect("a number"));
            let measured_per_s = rates.and(asked.map(|per_s| vec![(per_s, per_s)]));
            Conditions {
                measured_per_s,
                arrivals,
                warm_up_s,
                rate_per_s: None,
                cpus: None,
                ..full()
            }
        };
        let slow = of("rate = \"100\"");
        for (other, told) in [
            ("rate = \"1000\"", "rates of 100/s and 1,000/s"),
            ("", "closed loop and a rate"),
            (
                "rate = \"100\"\nwarmup = \"10s\"",
                "warm-ups of 0ms and 10s",
            ),
            (
                "rate = \"100\"\narrivals = \"constant\"",
                "random arrivals and even ones",
            ),
        ] {
            assert_eq!(slow.differences(&of(other)), [told]);
        }
        assert!(
            slow.differences(&of("rate = \"100\"\nduration = \"3s\""))
                .is_empty()
        );
    }

    /// No field uses a default, so that a new field does not compile without a change here.
    fn full() -> Conditions {
        Conditions {
            rate_per_s: Some(100.0),
            measured_per_s: Some(vec![(100.0, 100.0)]),
            arrivals: Some(ArrivalProcess::Poisson),
            warm_up_s: Some(1.0),
            files: [("body.json".to_owned(), Digest::of(b"1"))].into(),
            cpus: Some(2),
            cpus_shared: false,
            per_core: false,
        }
    }

    #[test]
    fn each_change_of_conditions_is_noticed() {
        let full = full();
        let whole = serde_json::to_value(&full).expect("JSON");
        let mut unnoticed: Vec<String> = whole
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        unnoticed.retain(|name| {
            let mut other = whole.clone();
            other[name] = match (name.as_str(), &whole[name]) {
                ("measured_per_s", _) => serde_json::json!([[100.0, 200.0]]),
                ("files", _) => serde_json::json!({ "body.json": Digest::of(b"2").to_string() }),
                ("arrivals", _) => serde_json::to_value(ArrivalProcess::Constant).expect("JSON"),
                (_, serde_json::Value::Bool(truth)) => (!truth).into(),
                _ => 10.into(),
            };
            full.differences(&serde_json::from_value(other).expect("conditions"))
                .is_empty()
        });
        // Only ratios are per core, figures of variants never are.
        assert_eq!(unnoticed, ["per_core"]);
    }

    /// Returns JSON pointers to all strings, numbers and booleans.
    fn leaves(value: &serde_json::Value, at: &str) -> Vec<String> {
        use serde_json::Value;
        match value {
            Value::Object(fields) => fields
                .iter()
                .flat_map(|(name, of)| leaves(of, &format!("{at}/{name}")))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .flat_map(|(index, of)| leaves(of, &format!("{at}/{index}")))
                .collect(),
            Value::Null => Vec::new(),
            _ => vec![at.to_owned()],
        }
    }

    const WHOLE: &str = "name = \"x\"\nquestion = \"?\"\n[services.api]\ncommand = [\"x\", \"{prepare.data}\"]\n\
        env = { A = \"1\" }\nport = 80\nready = \"/r\"\n[prepare.data]\ncommand = [\"make\", \"{output}\"]\n[load]\nconnections = 3\n\
        headers = { Accept = \"x\" }\n[expect]\nheaders = { etag = \"e\" }\n[factors.v]\na = {}\nb = { api.env.B = \"2\" }\n[design]\n\
        metric = \"p99\"\nrate = 1000\nseed = 3\nblocks = 9\nslices = 2\nslice = \"20s\"\nwarmup = \"1s\"\nbudget = \"4h\"\n[gate]\n\
        p99 = \"< 50ms\"\n[tune]\nonly = [\"x\"]\n";

    #[test]
    fn each_change_of_what_is_measured_changes_the_mark() {
        let plan = plan::parse(WHOLE, Path::new("/")).expect("a plan");
        let mut whole = serde_json::to_value(&plan).expect("JSON");
        let found = &mut whole["variants"][0]["services"][0];
        (found["listens_on"], found["other_ports"]) = (81.into(), serde_json::json!([82]));
        let read = |value: &serde_json::Value| serde_json::from_value::<Plan>(value.clone());
        let mark = plan_mark(&read(&whole).expect("a plan"));
        let mut unnoticed = leaves(&whole, "");
        unnoticed.retain(|at| {
            let mut other = whole.clone();
            let leaf = other.pointer_mut(at).expect("a leaf");
            *leaf = match &*leaf {
                serde_json::Value::Bool(truth) => (!truth).into(),
                serde_json::Value::String(text) => format!("{text}1").into(),
                number => number.as_u64().map_or(7, |number| number + 1).into(),
            };
            // A value of an enumeration is invalid with a changed letter.
            read(&other).is_ok_and(|plan| plan_mark(&plan) == mark)
        });
        assert_eq!(
            unnoticed
                .iter()
                .map(|at| at.replace("/0", "").replace("/1", ""))
                .collect::<BTreeSet<_>>(),
            [
                "/design/blocks",
                "/design/budget/nanos",
                "/design/budget/secs",
                "/design/explain",
                "/design/seed",
                "/gate/line",
                "/question",
                "/tune/only",
                "/variants/load/connections_typed",
                "/variants/services/listens_on",
                "/variants/services/other_ports",
            ]
            .map(str::to_owned)
            .into()
        );
        let moved = whole.to_string().replace("\"Accept\"", "\"accept\"");
        assert_eq!(
            plan_mark(&serde_json::from_str(&moved).expect("a plan")),
            mark
        );
    }

    #[test]
    fn folders_make_no_other_mark() {
        let mark = |folder: &str| {
            let text = "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n";
            let mut plan = plan::parse(text, Path::new("/")).expect("a plan");
            let load = &mut plan.variants[0].load;
            load.requests[0].values = Some(Path::new(folder).join("rows.csv"));
            load.requests[0].body_file = Some(Path::new(folder).join("body.json"));
            plan_mark(&plan)
        };
        assert_eq!(mark("/one"), mark("/other"));
    }

    #[test]
    fn limits_and_the_line_that_they_stand_in_are_no_part_of_what_is_measured() {
        let mark = |more: &str| {
            let text = format!("name = \"x\"\n[services.api]\ncommand = [\"x\"]\n{more}");
            plan_mark(&plan::parse(&text, Path::new("/")).expect("a plan"))
        };
        assert_eq!(mark(""), mark("[gate]\nthroughput = \"> 900/s\"\n"));
        assert_ne!(mark(""), mark("[load]\nconnections = 3\n"));
    }
}
