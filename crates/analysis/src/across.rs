//! Comparison of two records: whether and how their figures differ.
//!
//! Blocks of two runs cannot be paired, so the ratio contains all changes between the runs. Only further runs
//! show how much runs of the same plan differ. Between two machines no ratio can be attributed to the
//! service, so absolute figures are invalid and not shown.

use model::{Finding, Metric, quantity};
use plan::{Deployed, Design, Generators, Limit, Plan, Url, Variant, comparable_contract};
use record::{MachineFingerprint, Record};
use serde::Serialize;
use stats::Interval;

use crate::checks::Check;
use crate::checks::v47_other_machine::other_machine;
use crate::essentials::{Conditions, Essentials, plan_mark};
use crate::metric::{BlockFigures, log_values};
use crate::sums::mean;
use crate::{Conclusion, conclude};

/// Maximum relative difference in memory within one machine, because kernels reserve slightly different
/// amounts.
const MEMORY_TOLERANCE: f64 = 0.02;
/// Probability that any interval of a comparison of two records misses the true value.
const ALPHA: f64 = 0.05;

/// Comparison of two records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Across {
    /// Findings that qualify the comparison or make it invalid, most severe first.
    pub findings: Vec<Finding<Check>>,
    /// Each variant in both records, by metric. Empty if nothing may be compared.
    pub shifts: Vec<Shift>,
    /// Parts that are not compared, with the reasons as text.
    pub left_out: Vec<String>,
}

/// One variant's metric in both records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shift {
    /// Name of the variant.
    pub variant: String,
    /// The metric.
    pub metric: Metric,
    /// Geometric mean over the first record's blocks, in the metric's unit: 1/s, µs or bytes.
    pub before: f64,
    /// Geometric mean over the second record's blocks.
    pub after: f64,
    /// Number of blocks in the first and in the second record.
    pub blocks: (usize, usize),
    /// Second over first.
    pub ratio: f64,
    /// Interval of the ratio, at 95 % for all ratios together, based on the variation between other runs.
    /// `None` if there are too few.
    pub interval: Option<Interval>,
    /// Number of other runs of the same plan on this machine.
    pub sessions: usize,
}

/// Minimum number of other runs for estimating the variation between runs.
pub const SESSIONS_MIN: usize = 4;

/// Compares two records, the earlier one first. `all` are records of any kind. Those with the same plan,
/// machine and conditions determine the variation between runs.
pub fn across<'a>(
    before: &Record,
    after: &Record,
    all: impl IntoIterator<Item = &'a Essentials>,
) -> Across {
    let apart = differences(&before.header.environment, &after.header.environment);
    let findings: Vec<Finding<Check>> = other_machine(&apart).into_iter().collect();
    let differences = Conditions::of(before).differences(&Conditions::of(after));
    let mut left_out: Vec<String> = differences
        .iter()
        .map(|one| format!("all: {one}"))
        .collect();
    let plans = [before, after].map(|record| &record.header.plan);
    left_out.extend(other_plan(plans[0], plans[1]).map(|what| format!("all: {what}")));
    let [one, other] = plans.map(|plan| asked(&plan.design));
    let ramp = |record: &Record| record.rate.as_ref().and_then(|rate| rate.ramp_per_s);
    for (differs, what) in [
        (ramp(before) != ramp(after), "different ramps of the rate"),
        (one.0 != other.0, "capacities within different SLOs"),
        (one.1 != other.1, "response times of different requests"),
        (one.2 != other.2, "quantiles of each process and of all"),
    ] {
        left_out.extend(differs.then(|| format!("all: {what}")));
    }
    for (which, record) in [("first", before), ("second", after)] {
        let is_whole = record
            .ended
            .as_ref()
            .is_some_and(|ended| ended.reason.is_own());
        left_out.extend((!is_whole).then(|| format!("all: the {which} record is unfinished")));
        left_out.extend(
            (!record.damage.is_empty()).then(|| format!("all: the {which} record is damaged")),
        );
    }
    let mut shifts = Vec::new();
    if findings.is_empty() && left_out.is_empty() {
        let sessions: Vec<&Essentials> = all
            .into_iter()
            .filter(|of| is_like(of, before, after))
            .collect();
        shifts = shifted(before, after, &sessions, &mut left_out);
    }
    Across {
        findings,
        shifts,
        left_out,
    }
}

/// Parts of a design that affect figures and are not conditions: SLO, request, and whether quantiles are
/// pooled.
fn asked(design: &Design) -> (&[Limit], Option<&str>, bool) {
    // The pattern names every field, so that none is forgotten. Ignored fields determine how long and how
    // often is measured, are judged elsewhere, or are conditions.
    let Design {
        metric: _,
        co_primary: _,
        endpoint,
        cpus: _,
        margin: _,
        budget: _,
        seed: _,
        warmup: _,
        slice: _,
        slices: _,
        blocks: _,
        looks: _,
        per_core: _,
        pooled,
        drop_disturbed: _,
        explain: _,
        rate: _,
        ramp_to: _,
        arrivals: _,
        slo,
    } = design;
    (
        slo,
        endpoint.as_ref().map(|endpoint| endpoint.name.as_str()),
        *pooled,
    )
}

/// Why figures of two plans are not comparable, whatever their variants.
fn other_plan(one: &Plan, other: &Plan) -> Option<&'static str> {
    // The pattern names every field, so that none is forgotten.
    let Plan {
        generators,
        // Compared by `asked`, `other_variant` and the conditions.
        design: _,
        variants: _,
        measure: _,
        // How services are built is a reason to compare two records.
        prepare: _,
        building: _,
        against: _,
        // Names, comparisons within a record, and limits.
        name: _,
        question: _,
        factors: _,
        comparisons: _,
        aa: _,
        gate: _,
        tune: _,
        secrets: _,
    } = one;
    let places = |of: &Generators| {
        // The path of the program and its address of this machine do not change the load.
        let Generators {
            local,
            ssh,
            kubernetes,
            program: _,
            address: _,
        } = of.clone();
        (local, ssh, kubernetes)
    };
    (places(generators) != places(&other.generators)).then_some("load from other generators")
}

/// Why two variants of the same name, each given with its record, are not comparable. `None` if they are.
fn other_variant(one: (&Variant, &Record), other: (&Variant, &Record)) -> Option<&'static str> {
    let ((one, before), (other, after)) = (one, other);
    // Different start commands of services are a reason to compare two records.
    let Variant {
        name: _,
        levels: _,
        services: _,
        entry: _,
        load,
        expect,
    } = one;
    if load.comparable(before.pacing()) != other.load.comparable(after.pacing()) {
        return Some("another load was asked for");
    }
    if comparable_contract(expect) != comparable_contract(&other.expect) {
        return Some("other responses were expected");
    }
    (places(one) != places(other)).then_some("its services, or where they run, differ")
}

/// Whether a record is another run of the later record's plan.
fn is_like(known: &Essentials, before: &Record, after: &Record) -> bool {
    let compared = [before, after]
        .iter()
        .any(|record| record.header.created == known.created);
    !compared
        && known.is_whole()
        && known.plan == plan_mark(&after.header.plan)
        && differences(&known.environment, &after.header.environment).is_empty()
        && known
            .conditions
            .differences(&Conditions::of(after))
            .is_empty()
}

/// Half-width of the logarithm of a ratio of two runs, from the spread of the logarithms of other runs'
/// values.
fn half_width(
    sessions: &[&Essentials],
    variant: &str,
    metric: Metric,
    level: f64,
) -> (usize, Option<f64>) {
    let figures = sessions.iter().flat_map(|one| &one.figures);
    let of_it = figures.filter(|figure| figure.variant == variant && figure.metric == metric);
    let logs: Vec<f64> = of_it.map(|figure| figure.value.ln()).collect();
    let width = || {
        let t = stats::plain_t(logs.len() as u32, level)?;
        let mean = stats::MeanInterval::of(&logs, t)?;
        // For the mean of n values the half-width is t s/√n. For a difference of two values it is t s √2.
        Some((mean.high - mean.value) * (2.0 * logs.len() as f64).sqrt())
    };
    (
        logs.len(),
        if logs.len() < SESSIONS_MIN {
            None
        } else {
            width()
        },
    )
}

fn shifted(
    before: &Record,
    after: &Record,
    runs: &[&Essentials],
    left_out: &mut Vec<String>,
) -> Vec<Shift> {
    let conclusions = (conclude(before), conclude(after));
    let blocks = (BlockFigures::all(before), BlockFigures::all(after));
    let (ours, theirs) = (&before.header.plan.variants, &after.header.plan.variants);
    let mut sides = Vec::new();
    for (there, variant) in theirs.iter().enumerate() {
        let here = ours
            .iter()
            .enumerate()
            .find(|(_, other)| other.name == variant.name);
        let void = |here| {
            let void = void_of(&conclusions.0, here).map(|check| ("first", check));
            void.or_else(|| void_of(&conclusions.1, there).map(|check| ("second", check)))
        };
        let why = match here {
            None => "only in the second record".to_owned(),
            Some((here, other)) => {
                match (other_variant((other, before), (variant, after)), void(here)) {
                    (Some(why), _) => why.to_owned(),
                    (None, Some((which, check))) => {
                        format!("invalid in the {which} record ({check})")
                    }
                    (None, None) => {
                        sides.extend(
                            metrics(before, after)
                                .into_iter()
                                .map(|metric| (metric, here, there)),
                        );
                        continue;
                    }
                }
            }
        };
        left_out.push(format!("{}: {why}", variant.name));
    }
    let missing = ours
        .iter()
        .filter(|of| theirs.iter().all(|other| other.name != of.name));
    left_out.extend(missing.map(|variant| format!("{}: only in the first record", variant.name)));
    let level = 1.0 - ALPHA / sides.len().max(1) as f64;
    let shift = |(metric, here, there): (Metric, usize, usize)| {
        let variant = &theirs[there].name;
        let logs = (
            log_values(&blocks.0, metric, here),
            log_values(&blocks.1, metric, there),
        );
        let (Some(first), Some(second)) = logs else {
            let title = metric.row().title;
            left_out.push(format!("{variant}: {title}, which some trials do not tell"));
            return None;
        };
        let (sessions, width) = half_width(runs, variant, metric, level);
        let (one, other) = (
            mean(first.iter().copied())?.exp(),
            mean(second.iter().copied())?.exp(),
        );
        let ratio = other / one;
        Some(Shift {
            variant: variant.clone(),
            metric,
            before: one,
            after: other,
            blocks: (first.len(), second.len()),
            ratio,
            interval: width.map(|width| Interval {
                low: ratio * (-width).exp(),
                high: ratio * width.exp(),
            }),
            sessions,
        })
    };
    sides.into_iter().filter_map(shift).collect()
}

/// Name of a service, and its place if it runs already.
type ServicePlace<'a> = (&'a str, Option<&'a Deployed>, Option<&'a Url>);

/// The place of each service of a variant.
fn places(variant: &Variant) -> Vec<ServicePlace<'_>> {
    variant
        .services
        .iter()
        .map(|one| (one.name.as_str(), one.deployed(), one.url()))
        .collect()
}

/// The metrics judged in either record, and CPU per request, which varies least between runs.
fn metrics(before: &Record, after: &Record) -> Vec<Metric> {
    let judged = before
        .header
        .plan
        .design
        .metrics()
        .chain(after.header.plan.design.metrics());
    model::distinct(judged.chain([Metric::CpuPerRequest]))
}

/// The check that makes a variant invalid, if any.
fn void_of(conclusion: &Conclusion, variant: usize) -> Option<&'static str> {
    let voids = conclusion
        .findings
        .iter()
        .find(|finding| finding.voids(variant, variant));
    voids.map(|finding| finding.check.name())
}

/// Describes the differences of two machines or their software, with both values. A value missing in one of
/// them is not a difference.
pub fn differences(before: &MachineFingerprint, after: &MachineFingerprint) -> Vec<String> {
    // The pattern names every field, so that none is forgotten.
    let MachineFingerprint {
        kernel,
        libc,
        cpu_model,
        cpus,
        memory_bytes,
        governor,
        runtimes,
        // Values of the moment, and the version of the services' code.
        load_average: _,
        descriptors: _,
        commit: _,
    } = before;
    let mut found = Vec::new();
    let mut text = |name: &str, one: Option<&str>, other: Option<&str>| {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            found.push(format!("{name} {one} and {other}"));
        }
    };
    text(
        "processor",
        cpu_model.as_deref(),
        after.cpu_model.as_deref(),
    );
    let processors = |cpus: usize| (cpus > 0).then(|| cpus.to_string());
    text(
        "processors",
        processors(*cpus).as_deref(),
        processors(after.cpus).as_deref(),
    );
    text("kernel", kernel.as_deref(), after.kernel.as_deref());
    text("C library", libc.as_deref(), after.libc.as_deref());
    text(
        "frequency governor",
        governor.as_deref(),
        after.governor.as_deref(),
    );
    for (program, version) in runtimes {
        text(
            program,
            Some(version),
            after.runtimes.get(program).map(String::as_str),
        );
    }
    if let (Some(one), Some(other)) = (*memory_bytes, after.memory_bytes)
        && one.abs_diff(other) as f64 > one.max(other) as f64 * MEMORY_TOLERANCE
    {
        let bytes = |bytes: u64| quantity::bytes(bytes as f64);
        found.push(format!("memory {} and {}", bytes(one), bytes(other)));
    }
    found
}

/// Assigns a machine number to each environment, from 0 in order of first occurrence.
///
/// A missing value is not a difference, so environments that count as equal may still be of different
/// machines. Each machine therefore collects the values of all its records.
pub fn machines<'a>(environments: impl IntoIterator<Item = &'a MachineFingerprint>) -> Vec<usize> {
    let mut known: Vec<MachineFingerprint> = Vec::new();
    let number = |environment: &'a MachineFingerprint| {
        // Searches the latest machine first. After an update, an environment without the changed value
        // belongs to the current machine.
        let found = known
            .iter()
            .rposition(|machine| differences(machine, environment).is_empty());
        let number = found.unwrap_or(known.len());
        match known.get_mut(number) {
            Some(machine) => learn(machine, environment),
            None => known.push(environment.clone()),
        }
        number
    };
    environments.into_iter().map(number).collect()
}

/// Adds values that are missing in the machine's earlier records.
fn learn(machine: &mut MachineFingerprint, more: &MachineFingerprint) {
    // The same fields as in `differences`.
    let MachineFingerprint {
        kernel,
        libc,
        cpu_model,
        cpus,
        memory_bytes,
        governor,
        runtimes,
        load_average: _,
        descriptors: _,
        commit: _,
    } = more;
    let pairs = [
        (&mut machine.kernel, kernel),
        (&mut machine.libc, libc),
        (&mut machine.cpu_model, cpu_model),
        (&mut machine.governor, governor),
    ];
    pairs
        .into_iter()
        .filter(|(known, _)| known.is_none())
        .for_each(|(known, more)| known.clone_from(more));
    machine.memory_bytes = machine.memory_bytes.or(*memory_bytes);
    if machine.cpus == 0 {
        machine.cpus = *cpus;
    }
    for (program, version) in runtimes {
        machine
            .runtimes
            .entry(program.clone())
            .or_insert_with(|| version.clone());
    }
}

/// Letters for a machine in lists: `A` to `Z`, then `AA`.
pub fn machine_mark(number: usize) -> String {
    let letter = char::from(b'A' + (number % 26) as u8);
    if number < 26 {
        letter.to_string()
    } else {
        machine_mark(number / 26 - 1) + &letter.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(kernel: Option<&str>, program: &str, version: &str) -> MachineFingerprint {
        let runtimes = [(program.to_owned(), version.to_owned())].into();
        MachineFingerprint {
            kernel: kernel.map(str::to_owned),
            runtimes,
            cpus: 2,
            ..MachineFingerprint::default()
        }
    }

    #[test]
    fn a_machine_is_known_by_all_that_its_records_tell() {
        let told = [
            environment(Some("6.1"), "node", "v20"),
            environment(None, "nginx", "1.22"),
            environment(Some("6.1"), "nginx", "1.24"),
            environment(Some("6.1"), "node", "v20"),
            environment(Some("6.2"), "node", "v20"),
        ];
        // The third differs from the second, whose values the first has taken over.
        assert_eq!(machines(&told), [0, 0, 1, 1, 2]);
        assert_eq!(
            [0, 25, 26, 701, 702].map(machine_mark),
            ["A", "Z", "AA", "ZZ", "AAA"]
        );
        let counted = [0, 2, 4].map(|cpus| MachineFingerprint {
            cpus,
            ..environment(None, "node", "v20")
        });
        assert_eq!(machines(&counted), [0, 0, 1]);
    }

    /// No field uses a default, so that a new field does not compile without a value here.
    fn full() -> MachineFingerprint {
        let text = |text: &str| Some(text.to_owned());
        MachineFingerprint {
            kernel: text("6.1"),
            libc: text("glibc 2.41"),
            cpu_model: text("a processor"),
            cpus: 2,
            memory_bytes: Some(8 << 30),
            governor: text("performance"),
            load_average: Some(0.5),
            descriptors: Some(1024),
            runtimes: [("node".to_owned(), "v20".to_owned())].into(),
            commit: text("1a2b"),
        }
    }

    #[test]
    fn each_change_of_a_machine_is_noticed() {
        let whole = serde_json::to_value(full()).expect("JSON");
        let mut unnoticed: Vec<String> = whole
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        unnoticed.retain(|name| {
            let mut other = whole.clone();
            other[name] = match &whole[name] {
                serde_json::Value::String(text) => format!("{text}x").into(),
                serde_json::Value::Number(number) => (number.as_u64().unwrap_or(1) * 2).into(),
                serde_json::Value::Object(_) if name == "runtimes" => {
                    serde_json::json!({ "node": "v22" })
                }
                _ => serde_json::json!({}),
            };
            differences(
                &full(),
                &serde_json::from_value(other).expect("an environment"),
            )
            .is_empty()
        });
        unnoticed.sort();
        assert_eq!(unnoticed, ["commit", "descriptors", "load_average"]);
    }
}
