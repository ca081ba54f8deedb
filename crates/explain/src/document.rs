//! The text of explanations, profiles and differences: tables, rows and their order. Each wording is defined
//! once.
//!
//! Function names come from foreign code and may contain anything, so renderers must escape them. This module
//! knows no output format, and omits no doubt.

use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, Remark, Table, TableRow, Tone,
};
use model::quantity::{NONE, Quantity, change_alone, many, micros};
use serde_json::{Value, json};

use crate::label::shown;
use crate::tree::without_waiting;
use crate::views::on_behalf_of;
use crate::{
    CodeKind, CostChange, CostComparison, CostInterval, ExplainedService, Explanation, Frame,
    LineCost, Tree, TreeUnit, WorkerShare,
};

mod calls;

use calls::{from_the_root, heaviest};

/// The unit of nearly all figures.
const US: TreeUnit = TreeUnit::MicrosPerRequest;
/// Number of comparisons with tables in a report. The others have only their reconciliation and story.
const DETAILED_MAX: usize = 3;
/// The row of the measured values.
pub(crate) const WITHOUT: &str = "measured without them";
/// Number of variants whose profiler overhead is listed separately.
const TAXED_MAX: usize = 3;

/// An explanation in a report, independent of the output format.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// For each comparison: its heading, and sentences about the explained share, the cause if clear, and
    /// where requests wait.
    pub reasons: Vec<(String, Vec<String>)>,
    /// Tables by kind, package, function and memory. Without comparisons, the costs of each variant and where
    /// requests wait.
    pub tables: Vec<Table>,
    /// How it was captured.
    pub method: Vec<NamedText>,
    /// Doubts and missing data.
    pub doubts: Vec<Remark>,
}

impl Why {
    /// Converts an explanation into text.
    pub fn of(explanation: &Explanation) -> Why {
        let compared = explanation.comparisons.iter().take(DETAILED_MAX);
        let mut tables: Vec<Table> = compared.flat_map(|of| explained(explanation, of)).collect();
        if explanation.comparisons.is_empty() {
            tables.extend(
                explanation
                    .subjects
                    .iter()
                    .flat_map(|of| spent(of, &called(explanation, of))),
            );
        }
        tables.push(waiting(explanation));
        tables.retain(|table| !table.rows.is_empty());
        let doubt = |of: &crate::Doubt| {
            let remark = Remark::from(of);
            Remark {
                statement: remark.statement.trim_end_matches('.').to_owned(),
                ..remark
            }
        };
        Why {
            reasons: explanation.comparisons.iter().map(reason).collect(),
            tables,
            method: method(explanation),
            doubts: explanation.doubts.iter().map(doubt).collect(),
        }
    }

    /// The answer on the first screen: what explains the largest explained difference, in about eight lines.
    pub fn brief(explanation: &Explanation) -> Vec<DocumentPart> {
        let size = |of: &&CostComparison| of.measured_us.value.abs();
        let known = explanation.comparisons.iter();
        let known = known.filter(|of| of.explained_share.is_some());
        let Some(of) = known.max_by(|one, other| size(one).total_cmp(&size(other))) else {
            return unexplained(explanation);
        };
        let heading = format!("Why {}: {}", heading(of), of.reconciliation);
        let story = of.story.iter().cloned();
        let story = story.map(|text| DocumentPart::Paragraph(Tone::Plain, text));
        std::iter::once(DocumentPart::Heading(Tone::Strong, heading))
            .chain(story)
            .chain([DocumentPart::Table(parts_of_difference(of))])
            .collect()
    }

    /// The same in order: text visible, tables folded.
    pub fn blocks(self) -> Vec<DocumentPart> {
        let reason = |(heading, sentences): (String, Vec<String>)| {
            let sentences = sentences
                .into_iter()
                .map(|text| DocumentPart::Paragraph(Tone::Plain, text));
            std::iter::once(DocumentPart::Heading(Tone::Strong, heading)).chain(sentences)
        };
        let mut blocks: Vec<DocumentPart> = self.reasons.into_iter().flat_map(reason).collect();
        let tables = self.tables.into_iter().map(DocumentPart::Table).collect();
        blocks.push(DocumentPart::Folded(
            "Functions, packages and waiting".to_owned(),
            tables,
        ));
        blocks.push(DocumentPart::Lines(self.method));
        blocks.push(DocumentPart::Findings(self.doubts, None));
        blocks
    }
}

/// The answer if no difference is explained: why not, and where requests wait.
fn unexplained(explanation: &Explanation) -> Vec<DocumentPart> {
    let told = explanation.comparisons.iter().take(1).map(|of| {
        let sentences = std::iter::once(&of.reconciliation).chain(&of.waiting);
        let sentences: Vec<&str> = sentences.map(String::as_str).collect();
        let text = format!("Why {}: {}", heading(of), sentences.join("; "));
        DocumentPart::Paragraph(Tone::Plain, text)
    });
    told.collect()
}

/// Maximum functions on the first screen.
const BRIEF_MAX: usize = 5;

/// The functions with the largest parts of a difference, and their shares of what profiles saw of it, as in the
/// sentences about causes.
fn parts_of_difference(of: &CostComparison) -> Table {
    let profiled_us = of.profiled_us.value;
    let part = |change: &CostChange<Frame>| change.difference.value / profiled_us;
    let told = of.functions.iter();
    let told = told.filter(|change| part(change) >= CHANGE_SHARE_MIN);
    let told: Vec<&CostChange<Frame>> = told.take(BRIEF_MAX).collect();
    let differences = US.differences(told.iter().map(|change| &change.difference));
    let row = |(change, (value, _)): (&&CostChange<Frame>, (String, Option<String>))| {
        let share = Cell::Figure(Quantity::share(part(change)));
        let [name, place] = function(&change.what);
        vec![name, place, Cell::Text(value), share]
    };
    let figures = ["per request", "of the difference"];
    let table = table("", &["function", "where"], &figures);
    filled(table, told.iter().zip(differences).map(row))
}

fn reason(of: &CostComparison) -> (String, Vec<String>) {
    let sentences = std::iter::once(&of.reconciliation)
        .chain(&of.story)
        .chain(&of.waiting);
    (heading(of), sentences.cloned().collect())
}

fn heading(of: &CostComparison) -> String {
    format!("{} vs {}", shown(&of.variant), shown(&of.baseline))
}

/// The name of a variant. Includes the service's name if several of its services have a profile.
fn called(explanation: &Explanation, of: &ExplainedService) -> String {
    let subjects = &explanation.subjects;
    let has_several = |one: &ExplainedService| {
        subjects
            .iter()
            .filter(|other| other.variant == one.variant)
            .count()
            > 1
    };
    let several = subjects.iter().any(has_several);
    let service = if several {
        format!(": {}", shown(&of.service))
    } else {
        String::new()
    };
    shown(&of.variant) + &service
}

fn method(explanation: &Explanation) -> Vec<NamedText> {
    // All services of a variant served the same requests.
    let requests = model::grouped(
        explanation
            .subjects
            .iter()
            .map(|of| (&of.variant, of.requests)),
    );
    let requests: u64 = requests
        .iter()
        .filter_map(|(_, each)| each.iter().max())
        .sum();
    let captures = format!(
        "{} of trials of their own, {} under the profiler; verdicts rest on trials without it",
        many(explanation.rounds.into(), "round"),
        many(requests, "request")
    );
    let tax = tax(explanation).map(|tax| NamedText::new("tax", tax));
    std::iter::once(NamedText::new("captures", captures))
        .chain(tax)
        .collect()
}

/// The overhead of the profiler. For many variants, from the smallest to the largest.
fn tax(explanation: &Explanation) -> Option<String> {
    let known =
        |of: &&ExplainedService| of.tax.cpu_ratio.value.is_finite() && of.tax.cpu_ratio.value > 0.0;
    let taxed: Vec<&ExplainedService> = explanation.subjects.iter().filter(known).collect();
    let added = |ratio: f64| change_alone(ratio, 1);
    let told = |of: &&ExplainedService| {
        let (cpu, rate) = (of.tax.cpu_ratio.value, of.tax.throughput_ratio.value);
        format!(
            "{} CPU, {} throughput ({})",
            added(cpu),
            added(rate),
            called(explanation, of)
        )
    };
    let told = if taxed.len() > TAXED_MAX {
        let ratios = || taxed.iter().map(|of| of.tax.cpu_ratio.value);
        let (least, most) = (
            ratios().fold(f64::INFINITY, f64::min),
            ratios().fold(0.0, f64::max),
        );
        format!(
            "between {} and {} CPU, by variant",
            added(least),
            added(most)
        )
    } else {
        taxed.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    (!taxed.is_empty()).then(|| format!("what profiling a request cost besides: {told}"))
}

/// All text of an explanation, variant by variant.
pub fn all_of(explanation: &Explanation, title: &str) -> Document {
    let mut blocks = Vec::new();
    for of in &explanation.subjects {
        let cpu = match US.ranges(std::iter::once(&of.cpu_us)).concat() {
            _ if of.cpu_us.low >= of.cpu_us.high => micros(of.cpu_us.value),
            range => format!("{} ({range})", micros(of.cpu_us.value)),
        };
        let without = match of.cpu_us.value > 0.0 {
            true => format!("; without it {cpu} of CPU time per request"),
            false => String::new(),
        };
        let line = format!(
            "{} under the profiler{without}",
            many(of.requests, "request")
        );
        blocks.push(DocumentPart::Heading(Tone::Strong, called(explanation, of)));
        blocks.push(DocumentPart::Paragraph(Tone::Plain, line));
        blocks.extend(all_spent(of, US).map(DocumentPart::Table));
    }
    let mut why = Why::of(explanation);
    if explanation.comparisons.is_empty() {
        // The costs of variants are already above.
        why.tables = vec![waiting(explanation)];
    }
    blocks.extend(why.blocks());
    Document::new(shown(title), blocks)
}

/// One profile: by kind, package, function and line, bottom up and top down.
pub fn profile(title: &str, tree: &Tree, unit: TreeUnit) -> Document {
    let worked = without_waiting(tree);
    let waited = tree.total() - worked.total();
    let waited = match unit.quantity(waited) {
        none if none.value <= 0.0 => String::new(),
        waited => format!(", and {waited} of waiting"),
    };
    let line = format!(
        "{} of {}{waited}",
        unit.quantity(worked.total()),
        unit.of_what()
    );
    let spent = ExplainedService::over(&[worked], &[]);
    let tables = all_spent(&spent, unit).map(DocumentPart::Table);
    Document::new(
        shown(title),
        std::iter::once(DocumentPart::Paragraph(Tone::Plain, line)).chain(tables),
    )
}

/// The same as JSON, without omissions.
pub fn profile_json(title: &str, tree: &Tree, unit: TreeUnit) -> Value {
    let worked = without_waiting(tree);
    let functions = worked.functions().into_iter().map(
        |of| json!({ "frame": worked.frames[of.frame], "self": of.self_value, "total": of.total }),
    );
    json!({
        "profile": title,
        "unit": unit.name(),
        "worked": worked.total(),
        "waited": (tree.total() - worked.total()).max(0.0),
        "kinds": worked.sums(|frame| Some(frame.kind)),
        "functions": functions.collect::<Vec<Value>>(),
        "tree": tree,
    })
}

/// One profile compared with another: by kind, package and function.
pub fn difference(comparison: &CostComparison, unit: TreeUnit) -> Document {
    let (value, interval) = unit.difference(&comparison.profiled_us);
    let interval = interval
        .map(|interval| format!(" ({interval})"))
        .unwrap_or_default();
    let line = format!("{value}{interval} of {}", unit.of_what());
    let tables = compared(comparison, unit);
    let is_equal = tables.iter().all(|table| table.rows.is_empty());
    let remark = if is_equal { "no function differs" } else { "" };
    let texts = [line, remark.to_owned()].map(|text| DocumentPart::Paragraph(Tone::Plain, text));
    Document::new(
        shown(&heading(comparison)),
        texts.into_iter().chain(tables.map(DocumentPart::Table)),
    )
}

/// The same as JSON.
pub fn difference_json(comparison: &CostComparison, unit: TreeUnit) -> Value {
    json!({ "unit": unit.name(), "difference": comparison })
}

/// Whether the kind is CPU time or bytes, not waiting.
fn works(kind: &CodeKind) -> bool {
    *kind != CodeKind::Waiting
}

/// Maximum table rows in a report.
const FUNCTIONS_MAX: usize = 8;
const PACKAGES_MAX: usize = 5;
/// Maximum rows of tables and trees of one profile.
const ALL_FUNCTIONS_MAX: usize = 20;
const ALL_PACKAGES_MAX: usize = 12;
const LINES_MAX: usize = 12;
const WORKERS_MAX: usize = 24;
/// A change below this share of the largest one in its table is omitted.
const CHANGE_SHARE_MIN: f64 = 0.02;
/// Smaller shares are shown as zero.
const SHARE_MIN: f64 = 5e-4;

/// A table of names and figures. If space is short, the first column is truncated at its end, other names at
/// their start.
fn table(heading: impl Into<String>, names: &[&str], figures: &[&str]) -> Table {
    let fits = std::iter::once(ColumnFit::CutEnd).chain(std::iter::repeat(ColumnFit::CutStart));
    Table::of_figures(
        heading,
        names.iter().copied().zip(fits),
        figures.iter().copied(),
    )
}

fn filled(table: Table, rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    Table {
        rows: rows.map(TableRow::Cells).collect(),
        ..table
    }
}

/// A part of a whole. Negligible parts are shown as zero.
fn share(part: f64, whole: f64) -> Cell {
    let share = if part < SHARE_MIN * whole {
        0.0
    } else {
        part / whole
    };
    Cell::figure((whole > 0.0).then(|| Quantity::share(share)))
}

fn figure(unit: TreeUnit, value: f64) -> Cell {
    Cell::Figure(unit.quantity(value))
}

fn function(frame: &Frame) -> [Cell; 2] {
    [Cell::Text(frame.name()), Cell::Text(frame.place())]
}

/// Prefixes a table's heading with its subject.
fn titled(of: &str, table: Table) -> Table {
    Table {
        heading: format!("{of}: {}", table.heading),
        ..table
    }
}

/// Costs of a variant by kind of code and by function, if there is nothing to compare it with.
fn spent(of: &ExplainedService, called: &str) -> [Table; 2] {
    [by_kind(of, US), by_function(of, US, FUNCTIONS_MAX)].map(|table| titled(called, table))
}

/// All costs.
fn all_spent(of: &ExplainedService, unit: TreeUnit) -> impl Iterator<Item = Table> {
    let heap = of
        .heap
        .as_ref()
        .map(|heap| heaviest(heap, TreeUnit::BytesPerRequest));
    let tables = [
        by_kind(of, unit),
        by_package(of, unit),
        by_function(of, unit, ALL_FUNCTIONS_MAX),
        by_line(of, unit),
        processes(&of.workers),
        between_workers(of, unit),
        heaviest(&of.tree, unit),
        from_the_root(&of.tree, unit),
    ];
    tables.into_iter().chain(heap)
}

/// Rows of names and costs with their share of the total. The column of intervals is omitted if all are
/// empty.
fn costs<'a>(
    of: &ExplainedService,
    mut table: Table,
    rows: impl Iterator<Item = (Vec<Cell>, &'a CostInterval, Vec<Cell>)>,
    unit: TreeUnit,
) -> Table {
    let (whole, _) = of.share_of(|_| true);
    let rows: Vec<_> = rows.filter(|(_, us, _)| us.value >= unit.least()).collect();
    let ranges = unit.ranges(rows.iter().map(|(_, interval, _)| *interval));
    let known = ranges.iter().any(|range| range != NONE);
    table
        .columns
        .retain(|column| known || column.heading != RANGE);
    for ((mut cells, interval, more), range) in rows.into_iter().zip(ranges) {
        cells.push(figure(unit, interval.value));
        cells.extend(known.then_some(Cell::Text(range)));
        cells.push(share(interval.value, whole));
        cells.extend(more);
        table.push(cells);
    }
    table
}

/// Heading of columns of intervals.
const RANGE: &str = "95 %";

fn by_kind(of: &ExplainedService, unit: TreeUnit) -> Table {
    let told = of.kinds.iter().filter(|cost| works(&cost.what));
    let row = told.map(|cost| (vec![Cell::text(cost.what.name())], &cost.us, Vec::new()));
    let heading = format!("{}, by whose code it is", unit.of_what());
    costs(
        of,
        table(heading, &["whose code"], &["own", RANGE, "share"]),
        row,
        unit,
    )
}

fn by_package(of: &ExplainedService, unit: TreeUnit) -> Table {
    let told = of.packages.iter().take(ALL_PACKAGES_MAX);
    let row = told.map(|cost| (vec![Cell::Text(shown(&cost.what))], &cost.us, Vec::new()));
    costs(
        of,
        table("by package", &["package"], &["own", RANGE, "share"]),
        row,
        unit,
    )
}

fn by_function(of: &ExplainedService, unit: TreeUnit, most: usize) -> Table {
    let told = of.functions.iter().take(most);
    let row = told.map(|row| {
        (
            function(&row.frame).to_vec(),
            &row.self_us,
            vec![figure(unit, row.total_us)],
        )
    });
    let figures = ["own", RANGE, "share", "with calls"];
    costs(
        of,
        table("by function", &["function", "where"], &figures),
        row,
        unit,
    )
}

/// The most expensive lines of all functions.
fn by_line(of: &ExplainedService, unit: TreeUnit) -> Table {
    let lines = of
        .functions
        .iter()
        .flat_map(|row| row.lines.iter().map(|line| (&row.frame, line)));
    let mut told: Vec<_> = lines.filter(|(_, line)| line.us >= unit.least()).collect();
    told.sort_by(|one, other| other.1.us.total_cmp(&one.1.us));
    let row = |(frame, of): (&Frame, &LineCost)| {
        vec![
            Cell::Text(frame.name()),
            Cell::Text(frame.place_at(of.line)),
            figure(unit, of.us),
        ]
    };
    let table = table("by line", &["function", "line"], &["own"]);
    filled(table, told.into_iter().take(LINES_MAX).map(row))
}

/// The processes and the distribution of requests among them.
fn processes(shares: &[WorkerShare]) -> Table {
    let row = |of: &WorkerShare| {
        let round = || shares.iter().filter(|other| other.round == of.round);
        let all: u64 = round().filter_map(|other| other.requests).sum();
        let cpu: u64 = round().map(|other| other.cpu_ns).sum();
        vec![
            Cell::text(of.round.to_string()),
            Cell::text(of.pid.to_string()),
            Cell::figure(of.requests.map(Quantity::count)),
            of.requests
                .map_or(Cell::Missing, |requests| share(requests as f64, all as f64)),
            share(of.cpu_ns as f64, cpu as f64),
            Cell::text(if of.profiled { "yes" } else { "no" }),
        ]
    };
    let figures = ["process", "requests", "share", "share of CPU", "profile"];
    filled(
        table("processes", &["round"], &figures),
        shares.iter().take(WORKERS_MAX).map(row),
    )
}

/// Functions whose cost per request differs between workers.
fn between_workers(of: &ExplainedService, unit: TreeUnit) -> Table {
    let told = of
        .functions
        .iter()
        .take(LINES_MAX / 2)
        .filter(|row| row.workers_us.1 > row.workers_us.0);
    let rows = told.map(|row| {
        let ends = [row.workers_us.0, row.workers_us.1].map(|us| figure(unit, us));
        function(&row.frame).into_iter().chain(ends).collect()
    });
    filled(
        table(
            "spread between workers",
            &["function", "where"],
            &["least", "most"],
        ),
        rows,
    )
}

fn compared(of: &CostComparison, unit: TreeUnit) -> [Table; 3] {
    [
        kinds(of, unit, &[]),
        packages(of, unit, ALL_PACKAGES_MAX),
        functions(of, &of.functions, (ALL_FUNCTIONS_MAX, unit), |_| None),
    ]
}

/// One variant vs another: the profiled change beside the measured one.
fn explained(explanation: &Explanation, of: &CostComparison) -> [Table; 4] {
    let sum = |value: fn(&CostChange<CodeKind>) -> f64| {
        Some(
            of.kinds
                .iter()
                .filter(|of| works(&of.what))
                .map(value)
                .sum::<f64>(),
        )
    };
    let cpu_us = |variant: &str| {
        let subjects = explanation
            .subjects
            .iter()
            .filter(|of| of.variant == variant);
        Some(subjects.map(|of| of.cpu_us.value).sum::<f64>()).filter(|us| *us > 0.0)
    };
    let profiled = [sum(|of| of.baseline), sum(|of| of.variant)];
    let mut sums = vec![("all that profiles saw", profiled, of.profiled_us)];
    if of.measured_us != CostInterval::exactly(0.0) {
        sums.push((
            WITHOUT,
            [cpu_us(&of.baseline), cpu_us(&of.variant)],
            of.measured_us,
        ));
    }
    let behalf = |change: &CostChange<Frame>| on_behalf(explanation, of, change);
    let memory = Table {
        heading: "memory kept per request, by function that allocates".to_owned(),
        ..functions(
            of,
            &of.heap,
            (PACKAGES_MAX, TreeUnit::BytesPerRequest),
            |_| None,
        )
    };
    let tables = [
        kinds(of, US, &sums),
        packages(of, US, PACKAGES_MAX),
        functions(of, &of.functions, (FUNCTIONS_MAX, US), behalf),
        memory,
    ];
    tables.map(|table| titled(&heading(of), table))
}

/// Rows of changes: names, the figures of both sides, and further rows below each.
fn changes<'a>(
    of: &CostComparison,
    (heading, names): (String, &[&str]),
    rows: impl Iterator<
        Item = (
            Vec<Cell>,
            ([Option<f64>; 2], &'a CostInterval),
            Vec<Vec<Cell>>,
        ),
    >,
    unit: TreeUnit,
) -> Table {
    let (baseline, variant) = (shown(&of.baseline), shown(&of.variant));
    let mut table = table(heading, names, &[&baseline, &variant, "difference", RANGE]);
    let rows: Vec<_> = rows.collect();
    let differences = unit.differences(rows.iter().map(|(_, (_, difference), _)| *difference));
    for ((mut cells, (sides, _), below), (value, ends)) in rows.into_iter().zip(differences) {
        cells.extend(sides.map(|side| Cell::figure(side.map(|value| unit.quantity(value)))));
        cells.extend([Cell::Text(value), Cell::optional(ends)]);
        table.push(cells);
        below.into_iter().for_each(|cells| table.push(cells));
    }
    table
}

/// The smallest change worth a row, relative to the largest of these.
fn least<'a, T: 'a>(changes: impl Iterator<Item = &'a CostChange<T>>, unit: TreeUnit) -> f64 {
    changes
        .map(|of| of.difference.value.abs() * CHANGE_SHARE_MIN)
        .fold(unit.least(), f64::max)
}

/// The costs of both sides of a change, and the difference.
fn sides<T>(of: &CostChange<T>) -> ([Option<f64>; 2], &CostInterval) {
    ([Some(of.baseline), Some(of.variant)], &of.difference)
}

/// `sums` are further rows: a label, the costs of both sides if known, and the difference.
fn kinds(
    of: &CostComparison,
    unit: TreeUnit,
    sums: &[(&str, [Option<f64>; 2], CostInterval)],
) -> Table {
    let told = |change: &&CostChange<CodeKind>| {
        works(&change.what)
            && change.baseline.abs().max(change.variant.abs()) >= 10.0 * unit.least()
    };
    let kinds = of.kinds.iter().filter(told);
    let kinds = kinds.map(|of| (vec![Cell::text(of.what.name())], sides(of), Vec::new()));
    let sums = sums
        .iter()
        .map(|(name, sides, us)| (vec![Cell::text(*name)], (*sides, us), Vec::new()));
    let heading = format!("{}, by whose code it is", unit.of_what());
    changes(of, (heading, &["whose code"]), kinds.chain(sums), unit)
}

fn packages(of: &CostComparison, unit: TreeUnit, most: usize) -> Table {
    // Relative to all changes, because a package is a part of them.
    let least = least(of.kinds.iter().filter(|of| works(&of.what)), unit);
    let told = of
        .packages
        .iter()
        .filter(|of| of.difference.value.abs() >= least)
        .take(most);
    let name = |of: &CostChange<String>| vec![Cell::Text(shown(&of.what))];
    let rows = told.map(|of| (name(of), sides(of), Vec::new()));
    changes(of, ("by package".to_owned(), &["package"]), rows, unit)
}

/// Changes by function. Below each is its place in the baseline, if it differs, and its caller, if `behalf`
/// returns one.
fn functions(
    of: &CostComparison,
    all: &[CostChange<Frame>],
    (most, unit): (usize, TreeUnit),
    behalf: impl Fn(&CostChange<Frame>) -> Option<Vec<Cell>>,
) -> Table {
    let moved = |was: &Frame| below("moved from".to_owned(), was.place(), Cell::text(""));
    let least = least(all.iter(), unit);
    let told = all
        .iter()
        .filter(|of| of.difference.value.abs() >= least)
        .take(most);
    let rows = told.map(|of| {
        let more = of
            .was
            .as_ref()
            .map(moved)
            .into_iter()
            .chain(behalf(of))
            .collect();
        (function(&of.what).to_vec(), sides(of), more)
    });
    let heading = "by function, the largest changes of its own".to_owned();
    changes(of, (heading, &["function", "where"]), rows, unit)
}

/// A row below a function. Its figure is in the difference column, because it is a part of the difference.
fn below(name: String, place: String, part: Cell) -> Vec<Cell> {
    let none = || Cell::text("");
    vec![
        Cell::Text(format!("  {name}")),
        Cell::Text(place),
        none(),
        none(),
        part,
        none(),
    ]
}

/// The caller of a function, in the variant where it costs more.
fn on_behalf(
    explanation: &Explanation,
    of: &CostComparison,
    change: &CostChange<Frame>,
) -> Option<Vec<Cell>> {
    let (variant, frame) = match change.variant >= change.baseline {
        true => (&of.variant, &change.what),
        false => (&of.baseline, change.was.as_ref().unwrap_or(&change.what)),
    };
    let caller = |subject: &'_ ExplainedService| {
        // If several services are compared, their files carry the service's name. In the service's own tree
        // they do not.
        let named = format!("{}: ", subject.service);
        let file = frame
            .file
            .strip_prefix(&named)
            .unwrap_or(&frame.file)
            .to_owned();
        let (caller, share) = on_behalf_of(
            &subject.tree,
            &Frame {
                file,
                ..frame.clone()
            },
        )?;
        let part = Cell::Text(format!("{} of it", Quantity::share(share)));
        Some(below(format!("← {}", caller.name()), caller.place(), part))
    };
    let mut callers = explanation
        .subjects
        .iter()
        .filter(|of| of.variant == *variant)
        .filter_map(caller);
    // If several services call a function, it is unknown which of them calls it more.
    callers.next().filter(|_| callers.next().is_none())
}

fn waiting(explanation: &Explanation) -> Table {
    let figures = [
        "event loop busy",
        "timers late, p99",
        "for a pool thread",
        "GC pauses",
        "for a processor",
    ];
    let row = |of: &ExplainedService| {
        let waiting = of.waiting?;
        Some(vec![
            Cell::Text(called(explanation, of)),
            share(waiting.loop_utilisation, 1.0),
            figure(US, waiting.loop_delay_p99_ms * 1e3),
            Cell::figure(waiting.pool_wait_us.map(Quantity::us)),
            share(waiting.gc_share, 1.0),
            share(waiting.run_delay_share, 1.0),
        ])
    };
    let table = table(
        "where requests wait: each service's busiest worker",
        &["variant"],
        &figures,
    );
    filled(table, explanation.subjects.iter().filter_map(row))
}
