//! An explanation put into words: which tables, which rows, in which order.
//!
//! Must not: draw, or leave out a doubt.

use profile::{Change, Comparison, Cost, Explanation, Frame, Interval, Kind, Row, Subject, Waiting};

use super::name::{function, harmless, place};
use super::unit::percent;
use super::{Table, Unit, Why, calls};
use crate::figure::{count, micros, signed};

/// Rows of tables in the section of a report.
const FUNCTIONS_MAX: usize = 8;
const PACKAGES_MAX: usize = 5;
const ALLOCATIONS_MAX: usize = 5;
/// What is below this share of the largest of its table is not worth a row.
const CHANGE_SHARE_MIN: f64 = 0.02;
/// Comparisons whose tables are in the section; the others have their reconciliation and their story.
const DETAILED_MAX: usize = 3;
/// Variants whose tax is told one by one.
const TAXED_MAX: usize = 3;

/// Why one comparison came out as it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    /// Reads as "variant against baseline".
    pub heading: String,
    /// How much of the measured difference is accounted for.
    pub reconciliation: String,
    /// The cause, where it is clear.
    pub story: Option<String>,
    /// Where requests wait, where it is not CPU time.
    pub waiting: Option<String>,
    /// By kind, package, function, and memory.
    pub tables: Vec<Table>,
}

impl Why {
    /// Puts an explanation into words.
    pub(crate) fn new(explanation: &Explanation) -> Why {
        let reasons = explanation.comparisons.iter().enumerate();
        let reason = |(index, comparison)| reason(explanation, comparison, index < DETAILED_MAX);
        let several = several_services(explanation);
        let alone = explanation.comparisons.is_empty();
        let spent = explanation.subjects.iter().filter(|_| alone).flat_map(|subject| spent(subject, several));
        let doubt = |doubt: &profile::Doubt| (harmless_long(&doubt.evidence), harmless_long(&doubt.remedy));
        Why {
            reasons: reasons.map(reason).collect(),
            spent: spent.collect(),
            waiting: waiting(explanation, several),
            method: method(explanation, several),
            doubts: explanation.doubts.iter().map(doubt).collect(),
        }
    }
}

/// Sentences hold names from outside too, and may be longer than a name.
fn harmless_long(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Whether a variant has more than one service with a profile, so that its name alone does not tell them apart.
pub(super) fn several_services(explanation: &Explanation) -> bool {
    let subjects = &explanation.subjects;
    subjects.iter().any(|one| subjects.iter().filter(|other| other.variant == one.variant).count() > 1)
}

/// What a subject is called.
pub(super) fn called(subject: &Subject, several: bool) -> String {
    let variant = harmless(&subject.variant);
    if several { format!("{variant}: {}", harmless(&subject.service)) } else { variant }
}

fn reason(explanation: &Explanation, comparison: &Comparison, detailed: bool) -> Reason {
    let tables = if detailed { tables(explanation, comparison) } else { Vec::new() };
    Reason {
        heading: format!("{} against {}", harmless(&comparison.variant), harmless(&comparison.baseline)),
        reconciliation: harmless_long(&comparison.reconciliation),
        story: comparison.story.as_deref().map(harmless_long),
        waiting: comparison.waiting.as_deref().map(harmless_long),
        tables,
    }
}

fn tables(explanation: &Explanation, comparison: &Comparison) -> Vec<Table> {
    let us = Unit::MicrosPerRequest;
    let worked = comparison.kinds.iter().filter(|change| change.what != Kind::Waiting);
    let least = largest(worked) * CHANGE_SHARE_MIN;
    let told: Vec<Change<String>> =
        comparison.packages.iter().filter(|of| size(of) >= least).cloned().collect();
    let packages = changes(&told, PACKAGES_MAX, us, |of| vec![harmless(of)]);
    let behalf = |of: &Frame| on_behalf(explanation, comparison, of);
    let tables =
        [
            kinds(explanation, comparison),
            table(comparison, "by package", 1, "package").with(packages),
            table(comparison, "by function, the largest changes of its own time", 2, "function")
                .with(functions(&comparison.functions, FUNCTIONS_MAX, us, behalf)),
            table(comparison, "memory kept per request, by function that allocates", 2, "function")
                .with(functions(&comparison.heap, ALLOCATIONS_MAX, Unit::BytesPerRequest, |_| None)),
        ];
    tables.into_iter().flatten().collect()
}

/// A table of changes without rows.
pub(super) fn table(comparison: &Comparison, heading: &str, names: usize, of: &str) -> Table {
    let (baseline, variant) = (harmless(&comparison.baseline), harmless(&comparison.variant));
    let mut columns = vec![of, "where"];
    columns.truncate(names);
    columns.extend([baseline.as_str(), variant.as_str(), "difference", "95 %"]);
    Table::new(heading, names, &columns)
}

fn kinds(explanation: &Explanation, comparison: &Comparison) -> Option<Table> {
    let us = Unit::MicrosPerRequest;
    let shown = |change: &&Change<Kind>| {
        change.what != Kind::Waiting && change.baseline.abs().max(change.variant.abs()) >= 0.05
    };
    let row = |change: &Change<Kind>| figures(vec![change.what.name().to_owned()], change, us);
    let mut rows: Vec<Vec<String>> = comparison.kinds.iter().filter(shown).map(row).collect();
    let sum = |of: fn(&Change<Kind>) -> f64| {
        comparison.kinds.iter().filter(|change| change.what != Kind::Waiting).map(of).sum::<f64>()
    };
    let seen = Change {
        what: (),
        baseline: sum(|change| change.baseline),
        variant: sum(|change| change.variant),
        difference: comparison.profiled_us,
    };
    let measured = Change {
        what: (),
        baseline: cpu_us(explanation, &comparison.baseline),
        variant: cpu_us(explanation, &comparison.variant),
        difference: comparison.measured_us,
    };
    if !rows.is_empty() {
        rows.push(figures(vec!["all that profiles saw".to_owned()], &seen, us));
        rows.push(figures(vec!["measured without them".to_owned()], &measured, us));
    }
    table(comparison, "CPU time per request, by whose code it is", 1, "whose code").with(rows)
}

/// CPU time per request of a variant's services, by the kernel's accounting without a profiler.
fn cpu_us(explanation: &Explanation, variant: &str) -> f64 {
    let of = explanation.subjects.iter().filter(|subject| subject.variant == variant);
    of.map(|subject| subject.cpu_us.value).sum()
}

/// Names, and then the figures of a change.
pub(super) fn figures<T>(mut names: Vec<String>, change: &Change<T>, unit: Unit) -> Vec<String> {
    let (value, interval) = unit.change(&change.difference);
    names.extend([
        unit.show(change.baseline),
        unit.show(change.variant),
        value,
        interval.unwrap_or_else(dash),
    ]);
    names
}

/// A dash is "not known"; a zero would be a figure.
fn dash() -> String {
    "–".to_owned()
}

/// The largest changes, as rows.
pub(super) fn changes<T>(
    changes: &[Change<T>],
    most: usize,
    unit: Unit,
    names: impl Fn(&T) -> Vec<String>,
) -> Vec<Vec<String>> {
    let told = worth_telling(changes, most);
    told.map(|change| figures(names(&change.what), change, unit)).collect()
}

fn worth_telling<T>(changes: &[Change<T>], most: usize) -> impl Iterator<Item = &Change<T>> {
    let largest = largest(changes.iter());
    let told = move |change: &&Change<T>| largest > 0.0 && size(change) >= largest * CHANGE_SHARE_MIN;
    changes.iter().filter(told).take(most)
}

fn size<T>(change: &Change<T>) -> f64 {
    change.difference.value.abs()
}

fn largest<'a, T: 'a>(changes: impl Iterator<Item = &'a Change<T>>) -> f64 {
    changes.map(size).fold(0.0, f64::max)
}

/// On whose behalf a function worked.
pub(super) struct Behalf {
    /// The function that had it work.
    caller: String,
    /// Where that stands.
    place: String,
    /// How much of its work that was.
    share: String,
}

/// The same of functions, each with a line below it that says on whose behalf it worked, where `behalf` tells.
pub(super) fn functions(
    changes: &[Change<Frame>],
    most: usize,
    unit: Unit,
    behalf: impl Fn(&Frame) -> Option<Behalf>,
) -> Vec<Vec<String>> {
    let rows = |change: &Change<Frame>| {
        let own = figures(vec![function(&change.what), place(&change.what)], change, unit);
        let below = behalf(&change.what).map(|behalf| {
            let mut row = vec![format!("  ← {}", behalf.caller), behalf.place];
            // Below the difference, for that is what it is a part of.
            row.resize(own.len() - 2, String::new());
            row.extend([behalf.share, String::new()]);
            row
        });
        [Some(own), below]
    };
    worth_telling(changes, most).flat_map(rows).flatten().collect()
}

/// Who had a function work, in the variant where it cost more.
fn on_behalf(explanation: &Explanation, comparison: &Comparison, of: &Frame) -> Option<Behalf> {
    let change = comparison.functions.iter().find(|change| change.what == *of)?;
    let dearer = if change.variant >= change.baseline { &comparison.variant } else { &comparison.baseline };
    let subjects = explanation.subjects.iter().filter(|subject| subject.variant == *dearer);
    subjects.filter_map(|subject| behalf_in(subject, of)).next()
}

fn behalf_in(subject: &Subject, of: &Frame) -> Option<Behalf> {
    // Where several services are compared their files carry the service's name; in its own tree they do not.
    let named = format!("{}: ", subject.service);
    let file = of.file.strip_prefix(&named).unwrap_or(&of.file).to_owned();
    let (caller, share) = calls::on_behalf_of(&subject.tree, &Frame { file, ..of.clone() })?;
    let caller = subject.tree.frames.get(caller)?;
    Some(Behalf {
        caller: function(caller),
        place: place(caller),
        share: format!("{:.0} % of it", share * 100.0),
    })
}

/// What a variant spends, where there is nothing to compare it with.
fn spent(subject: &Subject, several: bool) -> Vec<Table> {
    let called = called(subject, several);
    let heading = format!("{called}: CPU time per request, by whose code it is");
    let functions_heading = format!("{called}: by function, its own time");
    let tables = [
        Table::new(heading, 1, &["whose code", "CPU/request", "95 %", "share"]).with(costs(subject)),
        Table::new(functions_heading, 2, &["function", "where", "own", "95 %", "with calls"])
            .with(subject.functions.iter().take(FUNCTIONS_MAX).map(function_row).collect()),
    ];
    tables.into_iter().flatten().collect()
}

/// By kind, without what waits.
pub(super) fn costs(subject: &Subject) -> Vec<Vec<String>> {
    let shown: Vec<&Cost<Kind>> = subject.kinds.iter().filter(|cost| cost.what != Kind::Waiting).collect();
    let whole: f64 = shown.iter().map(|cost| cost.us.value).sum();
    let row = |cost: &&Cost<Kind>| {
        let value = cost.us.value;
        vec![cost.what.name().to_owned(), micros_or_none(value), range(&cost.us), percent(value, whole)]
    };
    shown.iter().filter(|cost| cost.us.value >= 0.05).map(row).collect()
}

/// A function's costs.
pub(super) fn function_row(row: &Row) -> Vec<String> {
    let own = row.self_us.value;
    let names = [function(&row.frame), place(&row.frame)];
    let figures = [micros_or_none(own), range(&row.self_us), micros_or_none(row.total_us)];
    names.into_iter().chain(figures).collect()
}

pub(super) fn micros_or_none(us: f64) -> String {
    Unit::MicrosPerRequest.show(us)
}

/// Both ends of an interval; a dash where one capture is all there is.
pub(super) fn range(interval: &Interval) -> String {
    if interval.high <= interval.low {
        return dash();
    }
    let (low, high) = (micros_or_none(interval.low.max(0.0)), micros_or_none(interval.high));
    // One unit for both where it is one.
    let unit = high.rsplit(' ').next().unwrap_or_default();
    format!("{} to {high}", low.strip_suffix(unit).unwrap_or(&low).trim_end())
}

fn waiting(explanation: &Explanation, several: bool) -> Option<Table> {
    let columns = [
        "variant",
        "event loop busy",
        "timers late, p99",
        "for a pool thread",
        "GC pauses",
        "for a processor",
    ];
    let row = |subject: &Subject| {
        let Waiting { loop_utilisation, loop_delay_p99_ms, pool_wait_us, gc_share, run_delay_share } =
            subject.waiting?;
        Some(vec![
            called(subject, several),
            format!("{:.0} %", loop_utilisation * 100.0),
            micros(loop_delay_p99_ms * 1e3),
            pool_wait_us.map_or_else(dash, micros_or_none),
            percent(gc_share, 1.0),
            percent(run_delay_share, 1.0),
        ])
    };
    let rows = explanation.subjects.iter().filter_map(row).collect();
    Table::new("where requests wait: each service's busiest worker", 1, &columns).with(rows)
}

fn method(explanation: &Explanation, several: bool) -> Vec<(String, String)> {
    let requests: u64 = explanation.subjects.iter().map(|subject| subject.requests).sum();
    let rounds = explanation.rounds;
    let plural = if rounds == 1 { "" } else { "s" };
    let captures = format!(
        "{rounds} round{plural} of trials of their own, {} requests under the profiler; verdicts rest on trials without it",
        count(requests)
    );
    let mut lines = vec![("captures".to_owned(), captures)];
    lines.extend(tax(explanation, several).map(|tax| ("tax".to_owned(), tax)));
    lines
}

/// What the profiler cost. Of many variants from the least to the most.
fn tax(explanation: &Explanation, several: bool) -> Option<String> {
    let known =
        |subject: &&Subject| subject.tax.cpu_ratio.value.is_finite() && subject.tax.cpu_ratio.value > 0.0;
    let taxed: Vec<&Subject> = explanation.subjects.iter().filter(known).collect();
    let added = |ratio: f64| signed((ratio - 1.0) * 100.0, 1);
    let told = |subject: &&Subject| {
        let (cpu, rate) = (subject.tax.cpu_ratio.value, subject.tax.throughput_ratio.value);
        format!("{} CPU, {} throughput ({})", added(cpu), added(rate), called(subject, several))
    };
    let told = if taxed.len() > TAXED_MAX {
        let ratios = || taxed.iter().map(|subject| subject.tax.cpu_ratio.value);
        let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
        format!("between {} and {} CPU, by variant", added(least), added(most))
    } else {
        taxed.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    (!taxed.is_empty()).then(|| format!("what profiling a request cost besides: {told}"))
}
