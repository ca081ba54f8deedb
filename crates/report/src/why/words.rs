//! An explanation put into words: which tables, which rows, in which order.
//!
//! Must not: draw, or leave out a doubt.

use explain::{Change, Comparison, Cost, Explanation, Frame, Kind, Subject, Waiting};

use super::columns::{Figures, beside, with_figures};
use super::name::{function, harmless, place};
use super::unit::percent;
use super::{Table, Unit, Why, calls};
use model::quantity::{count, signed};

/// Rows of tables in the section of a report.
const FUNCTIONS_MAX: usize = 8;
const PACKAGES_MAX: usize = 5;
const ALLOCATIONS_MAX: usize = 5;
/// What is below this share of the largest of its table is not worth a row.
const CHANGE_SHARE_MIN: f64 = 0.02;
/// Comparisons whose tables are in the section; the others have their reconciliation and their story.
const DETAILED_MAX: usize = 3;
/// What nearly all figures are.
pub(super) const US: Unit = Unit::MicrosPerRequest;
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
        let doubt =
            |doubt: &explain::Doubt| (harmless_long(doubt.evidence.as_str()), harmless_long(&doubt.remedy));
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
    let worked = comparison.kinds.iter().filter(|change| change.what != Kind::Waiting);
    let least = largest(worked) * CHANGE_SHARE_MIN;
    let told: Vec<Change<String>> =
        comparison.packages.iter().filter(|of| size(of) >= least).cloned().collect();
    let packages = changes(&told, PACKAGES_MAX, US, |of| vec![harmless(of)]);
    let behalf = |change: &Change<Frame>| on_behalf(explanation, comparison, change);
    let tables =
        [
            kinds(explanation, comparison),
            table(comparison, "by package", 1, "package").with(packages),
            table(comparison, "by function, the largest changes of its own time", 2, "function")
                .with(functions(&comparison.functions, FUNCTIONS_MAX, US, behalf)),
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
    let shown = |change: &&Change<Kind>| {
        change.what != Kind::Waiting && change.baseline.abs().max(change.variant.abs()) >= 0.05
    };
    let told = || comparison.kinds.iter().filter(shown);
    let sum = |of: fn(&Change<Kind>) -> f64| {
        comparison.kinds.iter().filter(|change| change.what != Kind::Waiting).map(of).sum::<f64>()
    };
    let seen = Figures {
        baseline: sum(|change| change.baseline),
        variant: sum(|change| change.variant),
        difference: comparison.profiled_us,
    };
    let measured = Figures {
        baseline: cpu_us(explanation, &comparison.baseline),
        variant: cpu_us(explanation, &comparison.variant),
        difference: comparison.measured_us,
    };
    told().next()?;
    let sums = ["all that profiles saw", "measured without them"];
    let names = told().map(|change| change.what.name()).chain(sums).map(|name| vec![name.to_owned()]);
    let figures: Vec<Figures> = told().map(Figures::from).chain([seen, measured]).collect();
    let rows = with_figures(names.collect(), &figures, US);
    table(comparison, "CPU time per request, by whose code it is", 1, "whose code").with(rows)
}

/// CPU time per request of a variant's services, by the kernel's accounting without a profiler.
fn cpu_us(explanation: &Explanation, variant: &str) -> f64 {
    let of = explanation.subjects.iter().filter(|subject| subject.variant == variant);
    of.map(|subject| subject.cpu_us.value).sum()
}

/// The largest changes, as rows.
pub(super) fn changes<T>(
    changes: &[Change<T>],
    most: usize,
    unit: Unit,
    names: impl Fn(&T) -> Vec<String>,
) -> Vec<Vec<String>> {
    let told: Vec<&Change<T>> = worth_telling(changes, most, unit).collect();
    let figures: Vec<Figures> = told.iter().map(|change| Figures::from(*change)).collect();
    with_figures(told.iter().map(|change| names(&change.what)).collect(), &figures, unit)
}

fn worth_telling<T>(changes: &[Change<T>], most: usize, unit: Unit) -> impl Iterator<Item = &Change<T>> {
    let least = unit.least().max(largest(changes.iter()) * CHANGE_SHARE_MIN);
    let told = move |change: &&Change<T>| size(change) >= least;
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

/// The same of functions, each with a line below it that says on whose behalf it worked, where `behalf` tells, and one that says where
/// it stood in the baseline, where that was elsewhere.
pub(super) fn functions(
    changes: &[Change<Frame>],
    most: usize,
    unit: Unit,
    behalf: impl Fn(&Change<Frame>) -> Option<Behalf>,
) -> Vec<Vec<String>> {
    let own = self::changes(changes, most, unit, |of| vec![function(of), place(of)]);
    let rows = |(own, change): (Vec<String>, &Change<Frame>)| {
        let below = |name: String, place: String, share: String| {
            let mut row = vec![name, place];
            // Below the difference, for that is what it is a part of.
            row.resize(own.len() - 2, String::new());
            row.extend([share, String::new()]);
            row
        };
        let moved =
            change.was.as_ref().map(|was| below("  moved from".to_owned(), place(was), String::new()));
        let behalf = behalf(change).map(|of| below(format!("  ← {}", of.caller), of.place, of.share));
        [Some(own), moved, behalf]
    };
    own.into_iter().zip(worth_telling(changes, most, unit)).flat_map(rows).flatten().collect()
}

/// Who had a function work, in the variant where it cost more.
fn on_behalf(explanation: &Explanation, comparison: &Comparison, change: &Change<Frame>) -> Option<Behalf> {
    let (dearer, frame) = match change.variant >= change.baseline {
        true => (&comparison.variant, &change.what),
        false => (&comparison.baseline, change.was.as_ref().unwrap_or(&change.what)),
    };
    let subjects = explanation.subjects.iter().filter(|subject| subject.variant == *dearer);
    subjects.filter_map(|subject| behalf_in(subject, frame)).next()
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
            .with(function_rows(subject, FUNCTIONS_MAX)),
    ];
    tables.into_iter().flatten().collect()
}

/// By kind, without what waits.
pub(super) fn costs(subject: &Subject) -> Vec<Vec<String>> {
    let shown: Vec<&Cost<Kind>> = subject.kinds.iter().filter(|cost| cost.what != Kind::Waiting).collect();
    let whole: f64 = shown.iter().map(|cost| cost.us.value).sum();
    let told = || shown.iter().filter(|cost| cost.us.value >= 0.05);
    beside(vec![
        told().map(|cost| cost.what.name().to_owned()).collect(),
        US.column(told().map(|cost| Some(cost.us.value))),
        US.ranges(told().map(|cost| &cost.us)),
        told().map(|cost| percent(cost.us.value, whole)).collect(),
    ])
}

/// The most expensive functions and their costs.
pub(super) fn function_rows(subject: &Subject, most: usize) -> Vec<Vec<String>> {
    let told = || subject.functions.iter().take(most);
    beside(vec![
        told().map(|row| function(&row.frame)).collect(),
        told().map(|row| place(&row.frame)).collect(),
        US.column(told().map(|row| Some(row.self_us.value))),
        US.ranges(told().map(|row| &row.self_us)),
        US.column(told().map(|row| Some(row.total_us))),
    ])
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
    let told = || explanation.subjects.iter().filter_map(|subject| Some((subject, subject.waiting?)));
    let text = |of: fn(&Waiting) -> String| told().map(|(_, waiting)| of(&waiting)).collect();
    let rows = beside(vec![
        told().map(|(subject, _)| called(subject, several)).collect(),
        text(|of| format!("{:.0} %", of.loop_utilisation * 100.0)),
        US.column(told().map(|(_, of)| Some(of.loop_delay_p99_ms * 1e3))),
        US.column(told().map(|(_, of)| of.pool_wait_us)),
        text(|of| percent(of.gc_share, 1.0)),
        text(|of| percent(of.run_delay_share, 1.0)),
    ]);
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
