//! Two records side by side: what the figures of one say beside those of the other, if anything.
//!
//! Blocks of two runs are no pairs: whatever changed between the runs is inside the ratio. On two machines nothing of it is the
//! service's, so that absolute figures are void there, and not shown.

use model::{Check, Finding, Metric};
use plan::{Deployed, Variant};
use record::{Environment, Record};
use serde::Serialize;
use stats::{Welch, welch};

use crate::metric::BlockFigures;
use crate::{Conclusion, conclude};

/// Two machines whose memory differs by less, as a share, may be one: kernels keep a little more or less for themselves.
pub const MEMORY_TOLERANCE: f64 = 0.02;
/// The chance that any interval of a comparison of two records misses.
const ALPHA: f64 = 0.05;

/// What may be said of two records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Across {
    /// What voids or qualifies it, the gravest first.
    pub findings: Vec<Finding>,
    /// Each variant that both have, by metric; empty where nothing may be compared.
    pub shifts: Vec<Shift>,
    /// What is not compared, and why, in words.
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
    /// The same of the second.
    pub after: f64,
    /// Blocks of the first and of the second.
    pub blocks: (usize, usize),
    /// Second over first with its interval, at 95 % for all of them together; `None` where there are too few blocks.
    pub ratio: Option<Welch>,
}

/// Compares two records, the earlier one first.
pub fn across(before: &Record, after: &Record) -> Across {
    let mut findings: Vec<Finding> = other_machine(before, after).into_iter().collect();
    let mut left_out = Vec::new();
    if before.is_open_loop() != after.is_open_loop() {
        left_out.push("all: one was loaded in closed loop, the other at a rate".to_owned());
    }
    let mut shifts = Vec::new();
    if findings.is_empty() && left_out.is_empty() {
        shifts = shifted(before, after, &mut left_out);
    }
    findings.sort_by_key(|finding| finding.grade);
    Across { findings, shifts, left_out }
}

fn shifted(before: &Record, after: &Record, left_out: &mut Vec<String>) -> Vec<Shift> {
    let conclusions = (conclude(before), conclude(after));
    let blocks = (BlockFigures::all(before), BlockFigures::all(after));
    let mut sides = Vec::new();
    for (there, variant) in after.header.plan.variants.iter().enumerate() {
        let here = before.header.plan.variants.iter().position(|other| other.name == variant.name);
        let Some(here) = here else {
            left_out.push(format!("{}: only in the second record", variant.name));
            continue;
        };
        let void = void_of(&conclusions.0, here).map(|check| ("first", check));
        let void = void.or_else(|| void_of(&conclusions.1, there).map(|check| ("second", check)));
        if before.header.plan.variants[here].load != variant.load {
            left_out.push(format!("{}: another load was asked for", variant.name));
        } else if hosts_of(&before.header.plan.variants[here]) != hosts_of(variant) {
            left_out.push(format!("{}: its services ran on other machines", variant.name));
        } else if let Some((which, check)) = void {
            left_out.push(format!("{}: void in the {which} record ({check})", variant.name));
        } else {
            sides.extend(metrics(before, after).into_iter().map(|metric| (metric, here, there)));
        }
    }
    let missing = before
        .header
        .plan
        .variants
        .iter()
        .filter(|variant| !after.header.plan.variants.iter().any(|other| other.name == variant.name));
    left_out.extend(missing.map(|variant| format!("{}: only in the first record", variant.name)));
    let level = 1.0 - ALPHA / sides.len().max(1) as f64;
    let logs = |blocks: &[BlockFigures], metric, variant| -> Vec<f64> {
        blocks.iter().filter_map(|block| block.log_value(metric, variant)).collect()
    };
    let shift = |(metric, here, there): (Metric, usize, usize)| {
        let (first, second) = (logs(&blocks.0, metric, here), logs(&blocks.1, metric, there));
        let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let whole = !first.is_empty() && !second.is_empty();
        whole.then(|| Shift {
            variant: after.header.plan.variants[there].name.clone(),
            metric,
            before: mean(&first),
            after: mean(&second),
            blocks: (first.len(), second.len()),
            ratio: welch(&first, &second, level).ok(),
        })
    };
    sides.into_iter().filter_map(shift).collect()
}

/// Where each service of a variant runs.
fn hosts_of(variant: &Variant) -> Vec<(&str, Option<&str>, Option<&Deployed>)> {
    let services = variant.services.iter();
    services.map(|one| (one.name.as_str(), one.host.as_deref(), one.kubernetes.as_ref())).collect()
}

/// The metrics that either judges, and CPU per request, which is the steadiest between runs.
fn metrics(before: &Record, after: &Record) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let judged = before.header.plan.design.metrics().chain(after.header.plan.design.metrics());
    for metric in judged.chain([Metric::CpuPerRequest]) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// The check that voids a variant, if one does.
fn void_of(conclusion: &Conclusion, variant: usize) -> Option<&'static str> {
    conclusion
        .findings
        .iter()
        .find(|finding| finding.voids(variant, variant))
        .map(|finding| finding.check.name())
}

/// What tells the machines of two records apart.
pub fn other_machine(before: &Record, after: &Record) -> Option<Finding> {
    let differences = differences(&before.header.environment, &after.header.environment);
    let evidence =
        || format!("the two were not measured on the same machine and software: {}", differences.join("; "));
    let remedy = "absolute figures of one say nothing beside those of the other; what each found between its own variants stands. To compare two \
                  states of a service, make variants of them and run both here, in one experiment";
    (!differences.is_empty()).then(|| Finding::void(Check::OtherMachine, evidence(), remedy))
}

/// What tells two machines apart, or their software, in words with both values. What one of them does not tell is no difference.
pub fn differences(before: &Environment, after: &Environment) -> Vec<String> {
    let mut found = Vec::new();
    let mut text = |name: &str, one: Option<&str>, other: Option<&str>| {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            found.push(format!("{name} {one} and {other}"));
        }
    };
    text("processor", before.cpu_model.as_deref(), after.cpu_model.as_deref());
    let processors = |of: &Environment| (of.cpus > 0).then(|| of.cpus.to_string());
    text("processors", processors(before).as_deref(), processors(after).as_deref());
    text("kernel", before.kernel.as_deref(), after.kernel.as_deref());
    text("C library", before.libc.as_deref(), after.libc.as_deref());
    text("frequency governor", before.governor.as_deref(), after.governor.as_deref());
    for (program, version) in &before.runtimes {
        text(program, Some(version), after.runtimes.get(program).map(String::as_str));
    }
    if let (Some(one), Some(other)) = (before.memory_bytes, after.memory_bytes)
        && one.abs_diff(other) as f64 > one.max(other) as f64 * MEMORY_TOLERANCE
    {
        let gb = |bytes: u64| bytes as f64 / 1e9;
        found.push(format!("memory {:.1} GB and {:.1} GB", gb(one), gb(other)));
    }
    found.extend(differences_of_hosts(before, after));
    found
}

/// The same of the other machines that services ran on. Which these are is told by every record that has any.
fn differences_of_hosts(before: &Environment, after: &Environment) -> Vec<String> {
    let names = |of: &Environment| match of.hosts.len() {
        0 => "this machine alone".to_owned(),
        _ => of.hosts.keys().cloned().collect::<Vec<_>>().join(", "),
    };
    if !before.hosts.keys().eq(after.hosts.keys()) {
        return vec![format!("services on {} and on {}", names(before), names(after))];
    }
    let pairs = before.hosts.iter().zip(after.hosts.values());
    let of_each = pairs.flat_map(|((host, one), other)| {
        differences(one, other).into_iter().map(move |difference| format!("on {host} {difference}"))
    });
    of_each.collect()
}
