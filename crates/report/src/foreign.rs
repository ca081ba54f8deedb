//! Conclusions from the output of other tools, as a document and as JSON. Pure. The crate `foreign` draws the
//! conclusions.

use std::collections::BTreeMap;

use foreign::{
    About, Audit, CheckResult, ComparisonAnswer, FindingCase, LabelComparison, RunGroup, ToolRun,
};
use model::quantity::{Quantity, count, many, rate, span};
use model::{FindingCode, Grade};
use serde_json::{Value, json};

use crate::form::Report;
use model::document::{
    Cell, Column, ColumnFit, Document, DocumentPart, QuestionAnswer, Remark, Table, TableRow, Tone,
};

/// Maximum number of places of a finding that are listed.
const CASES_MAX: usize = 5;
/// The same in the brief report.
const BRIEF_CASES_MAX: usize = 2;
/// Maximum length of a statement with its case on one line in the brief report.
const JOINED_CHARS_MAX: usize = 85;
/// Maximum number of conclusions in the brief report.
const BRIEF_STANDS_MAX: usize = 4;
/// Maximum number of labels that are listed for the same evidence.
const LABELS_MAX: usize = 8;
/// An interval whose ends differ by more than this factor is not printed.
const INTERVAL_MAX: f64 = 4.0;
/// Longer labels are in the table, and are referred to by their number.
const LABEL_SHORT: usize = 24;
/// Maximum number of runs in the table, to keep it readable.
const ROWS_MAX: usize = 60;
/// Maximum number of load configurations that are listed.
const WAYS_MAX: usize = 4;

/// An audit, and the requested comparison.
#[derive(Debug)]
pub struct Audited<'a> {
    /// Input and findings.
    pub audit: &'a Audit,
    /// The comparison, if one was requested.
    pub comparison: Option<LabelComparison>,
}

impl Report for Audited<'_> {
    fn document(&self) -> Document {
        let audit = self.audit;
        let mut blocks = self.measured();
        blocks.extend(self.answers());
        let mut remarks: Vec<Remark> = audit
            .findings
            .iter()
            .map(|found| remark(found, audit, CASES_MAX))
            .collect();
        // Findings of one kind have the same remedy, which is shown once.
        for at in (1..remarks.len())
            .filter(|at| audit.findings[*at].remedy == audit.findings[*at - 1].remedy)
        {
            remarks[at].remedy.clear();
        }
        blocks.push(DocumentPart::Findings(remarks, None));
        blocks.push(DocumentPart::Heading(
            Tone::Strong,
            "What stands".to_owned(),
        ));
        blocks.extend(
            self.stands()
                .into_iter()
                .map(|text| DocumentPart::Paragraph(Tone::Plain, text)),
        );
        blocks.push(DocumentPart::Steps(self.steps()));
        Document::new(self.title(), blocks)
    }

    /// The conclusion first, then the figures, and the findings without explanations.
    fn brief(&self) -> Document {
        let audit = self.audit;
        let mut stands = self.stands();
        let rest = stands.len().saturating_sub(BRIEF_STANDS_MAX);
        stands.truncate(BRIEF_STANDS_MAX);
        if rest > 0 {
            stands.push(format!("and {} more (-v)", count(rest as u64)));
        }
        let stands = stands
            .into_iter()
            .map(|text| DocumentPart::Paragraph(Tone::Plain, text));
        let mut blocks: Vec<DocumentPart> = stands.collect();
        blocks.extend(self.measured());
        blocks.extend(self.answers());
        let mut remarks: Vec<Remark> = audit
            .findings
            .iter()
            .map(|found| remark(found, audit, BRIEF_CASES_MAX))
            .collect();
        for remark in &mut remarks {
            remark.remedy.clear();
            join_case(remark);
        }
        let mut steps = self.steps();
        if !remarks.is_empty() {
            steps.push("-v explains the findings".to_owned());
        }
        blocks.push(DocumentPart::Findings(remarks, None));
        // One line, because the brief report fits on a screen.
        let steps = (!steps.is_empty()).then(|| steps.join("; "));
        blocks.push(DocumentPart::Steps(steps.into_iter().collect()));
        Document::new(self.title(), blocks)
    }

    fn data(&self) -> Value {
        json!({
            "files": self.audit.files,
            "runs": self.audit.runs,
            "groups": self.audit.groups,
            "findings": self.audit.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "comparison": self.comparison,
        })
    }
}

impl Audited<'_> {
    /// The load, the runs, and what was not read.
    fn measured(&self) -> Vec<DocumentPart> {
        let audit = self.audit;
        let mut blocks: Vec<DocumentPart> = ways(audit)
            .into_iter()
            .map(|way| DocumentPart::Paragraph(Tone::Faint, way))
            .collect();
        blocks.push(DocumentPart::Table(runs(audit)));
        for file in audit.files.iter().filter(|file| !file.unread.is_empty()) {
            let text = format!("{}: {}", file.file, file.not_read());
            blocks.push(DocumentPart::Paragraph(Tone::Doubtful, text));
        }
        for file in audit.files.iter().filter(|file| file.too_many_runs) {
            let most = count(foreign::RUNS_MAX as u64);
            let text = format!(
                "{}: only the first {most} runs were read; split the file to read the others",
                file.file
            );
            blocks.push(DocumentPart::Paragraph(Tone::Doubtful, text));
        }
        blocks
    }

    fn answers(&self) -> Option<DocumentPart> {
        let comparison = self.comparison.as_ref()?;
        Some(DocumentPart::Answers(vec![answer(comparison)]))
    }

    fn steps(&self) -> Vec<String> {
        let compares = self.comparison.is_none() && self.audit.groups.len() > 1;
        let text = "--compare A B compares two labels (by name or number)";
        compares.then(|| text.to_owned()).into_iter().collect()
    }

    fn title(&self) -> String {
        let runs = many(self.audit.runs.len() as u64, "run");
        let labels = match self.audit.groups.len() {
            all if all == self.audit.runs.len() => String::new(),
            all => format!(" of {}", many(all as u64, "label")),
        };
        let [file] = self.audit.files.as_slice() else {
            return format!("{runs}{labels} in {} files", self.audit.files.len());
        };
        format!(
            "{runs}{labels} in {}",
            if file.file == "-" {
                "what was piped in"
            } else {
                &file.file
            }
        )
    }

    /// Valid statements despite the findings.
    fn stands(&self) -> Vec<String> {
        let lines: Vec<String> = self
            .audit
            .groups
            .iter()
            .filter_map(|group| self.pooled(group))
            .collect();
        if !lines.is_empty() {
            return lines;
        }
        let void = |about: About| {
            let voids =
                |found: &CheckResult| found.grade == Grade::Invalid && found.check.about() == about;
            self.audit.findings.iter().any(voids)
        };
        let text = match self.audit.runs.len() {
            1 if self.audit.is_void() => {
                "What is invalid says nothing; all else describes this one run."
            }
            1 => {
                "The figures describe this one run. How far another would come out from it, one run cannot tell."
            }
            _ if void(About::Run) || void(About::Throughput) => {
                "No difference between labels. What is not invalid describes single runs."
            }
            _ => {
                "The requests per second, as figures of single runs, and no difference between labels."
            }
        };
        vec![text.to_owned()]
    }

    /// The interval of a label's repetitions, unless it is void.
    fn pooled(&self, group: &RunGroup) -> Option<String> {
        let pooled = group.pooled?;
        let mut runs = group.runs.iter().filter_map(|at| self.audit.runs.get(*at));
        // A fixed rate is no result.
        if runs.any(|run| run.load.rate_per_s.is_some()) {
            return None;
        }
        let voids = |found: &CheckResult| {
            found.check.about() != About::Comparison && found.voids_throughput_of(&group.runs)
        };
        if self.audit.findings.iter().any(voids) {
            return None;
        }
        let (label, mean, runs) = (&group.label, rate(pooled.rate_per_s), pooled.runs);
        let (low, high) = (rate(pooled.low_per_s), rate(pooled.high_per_s));
        let says_nothing = pooled.high_per_s / pooled.low_per_s > INTERVAL_MAX;
        let wide = "too few or too far apart for an interval that says anything";
        Some(match says_nothing {
            true => format!("{label}: {mean} on average of {runs} runs, {wide}"),
            false => format!("{label}: {mean}, {low} to {high} (95 % over {runs} runs)"),
        })
    }
}

fn answer(comparison: &LabelComparison) -> QuestionAnswer {
    let subject = format!("{} vs {}", comparison.candidate, comparison.baseline);
    let (reasons, ratio) = match &comparison.answer {
        ComparisonAnswer::Invalid { reasons } => (reasons.as_slice(), None),
        other => (&[][..], other.shown()),
    };
    let answer = match ratio {
        Some(ratio) => QuestionAnswer::new(
            subject,
            Tone::Strong,
            "ratio",
            format!("{ratio} throughput"),
        ),
        None => QuestionAnswer::new(subject, Tone::Bad, "invalid", "no ratio"),
    };
    QuestionAnswer {
        notes: reasons
            .iter()
            .chain(&comparison.worth)
            .map(|note| format!("– {note}"))
            .collect(),
        ..answer
    }
}

fn remark(found: &CheckResult, audit: &Audit, cases_max: usize) -> Remark {
    let about = match found.check.about() {
        About::Latency => Some("latency"),
        About::Throughput => Some("throughput"),
        About::Comparison => Some("comparison"),
        About::Run => None,
    };
    let mark = about
        .filter(|_| found.grade == Grade::Invalid)
        .map(str::to_owned);
    Remark {
        mark,
        cases: case_lines(found, audit, cases_max),
        ..Remark::from(&found.finding)
    }
}

/// Appends a single short case to the statement, so that both are one line.
fn join_case(remark: &mut Remark) {
    let [case] = remark.cases.as_slice() else {
        return;
    };
    let joined = format!("{}: {case}", remark.statement);
    if joined.chars().count() <= JOINED_CHARS_MAX {
        remark.statement = joined;
        remark.cases.clear();
    }
}

/// A finding in version 1 of the format: its evidence is a statement, and figures are plain numbers whose
/// names end in their unit.
fn finding_json(found: &CheckResult) -> Value {
    let case = |case: &FindingCase| {
        let figures = case
            .evidence
            .figures()
            .map(|(name, quantity)| (name, quantity.value));
        json!({
            "label": case.label,
            "runs": case.runs,
            "evidence": case.evidence.as_str(),
            "figures": figures.collect::<BTreeMap<_, _>>(),
        })
    };
    let finding = &found.finding;
    json!({
        "check": finding.check.code(),
        "grade": finding.grade,
        "about": finding.check.about(),
        "evidence": finding.evidence.as_str(),
        "cases": found.cases.iter().map(case).collect::<Vec<_>>(),
        "remedy": finding.remedy.text,
    })
}

/// Combines cases with the same evidence in one line, and limits the number of lines.
fn case_lines(found: &CheckResult, audit: &Audit, cases_max: usize) -> Vec<String> {
    let mut alike: Vec<(&str, Vec<&FindingCase>)> = Vec::new();
    for case in &found.cases {
        match alike
            .iter()
            .position(|(evidence, _)| *evidence == case.evidence.as_str())
        {
            Some(at) => alike[at].1.push(case),
            // Cases beyond the limit need not be grouped.
            None if alike.len() <= cases_max => alike.push((&case.evidence, vec![case])),
            None => {}
        }
    }
    // Evidence without a figure that applies to all runs is part of the statement.
    if let [("", cases)] = alike.as_slice()
        && cases.len() == audit.runs.len()
    {
        return Vec::new();
    }
    let told: usize = alike
        .iter()
        .take(cases_max)
        .map(|(_, cases)| cases.len())
        .sum();
    let lines = alike
        .iter()
        .take(cases_max)
        .map(|(evidence, cases)| case_line(evidence, cases, audit));
    let rest = found.cases.len().saturating_sub(told);
    let more =
        (rest > 0).then(|| format!("and in {} more (--json lists them)", count(rest as u64)));
    lines.chain(more).collect()
}

fn case_line(evidence: &str, cases: &[&FindingCase], audit: &Audit) -> String {
    let runs: Vec<&ToolRun> = cases
        .iter()
        .flat_map(|case| &case.runs)
        .filter_map(|at| audit.runs.get(*at))
        .collect();
    let mut labels: Vec<String> = cases.iter().map(|case| short(&case.label, audit)).collect();
    labels.dedup();
    let names = match labels.as_slice() {
        _ if audit.runs.len() == 1 => String::new(),
        _ if runs.len() == audit.runs.len() && labels.len() > 1 => "all runs".to_owned(),
        few if few.len() <= LABELS_MAX => few.join(", "),
        many => format!(
            "{} and {} more",
            many[..LABELS_MAX - 1].join(", "),
            many.len() - (LABELS_MAX - 1)
        ),
    };
    let place = if let [one] = runs[..] {
        format!(" (line {})", one.lines.first)
    } else {
        String::new()
    };
    let between = if names.is_empty() || evidence.is_empty() {
        ""
    } else {
        ": "
    };
    format!("{names}{between}{evidence}{place}")
}

/// A label, or its number in the table if it is long.
fn short(label: &str, audit: &Audit) -> String {
    let number = audit.groups.iter().position(|group| group.label == label);
    match number.filter(|_| label.chars().count() > LABEL_SHORT) {
        Some(at) => format!("#{}", at + 1),
        None => label.to_owned(),
    }
}

/// The distinct configurations of the tools.
fn ways(audit: &Audit) -> Vec<String> {
    let url = shared_url(audit);
    let mut ways: Vec<String> = Vec::new();
    for way in audit.runs.iter().map(|run| way(run, url.as_deref())) {
        if ways.len() <= WAYS_MAX && !ways.contains(&way) {
            ways.push(if ways.len() < WAYS_MAX {
                way
            } else {
                "and otherwise".to_owned()
            });
        }
    }
    ways
}

/// The common part of all runs' addresses.
fn shared_url(audit: &Audit) -> Option<String> {
    let urls: Vec<&str> = audit
        .runs
        .iter()
        .map(|run| run.url.as_deref())
        .collect::<Option<_>>()?;
    let first = *urls.first()?;
    let host = |url: &str| Some(url.split_once("://")?.1.split('/').next()?.to_owned());
    match urls.iter().all(|url| *url == first) {
        true => Some(first.to_owned()),
        false => host(first).filter(|_| urls.iter().all(|url| host(url) == host(first))),
    }
}

fn way(run: &ToolRun, url: Option<&str>) -> String {
    let some = |value: Option<u64>, noun: &str| value.map(|value| many(value, noun));
    let parts = [
        Some(run.tool.name().to_owned()),
        some(run.load.threads, "thread"),
        some(run.load.connections, "connection"),
        some(run.load.requests, "request"),
        run.load.duration_s.map(span),
        run.load
            .rate_per_s
            .map(|per_s| format!("at {}", rate(per_s))),
        url.map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// All runs, or the first ones of very many. Columns without any value are left out.
fn runs(audit: &Audit) -> Table {
    let measured = ["req/s", "requests", "failed", "mean", "p99"].map(Column::figure);
    let names = [
        Column::figure("#"),
        Column::text("label", ColumnFit::Wrapped),
    ];
    // Findings report bytes if they matter.
    let bytes = Column::figure("bytes").spare(1);
    let mut table = Table::new("", names.into_iter().chain(measured).chain([bytes]));
    let mut above: &[String] = &[];
    for (index, group) in audit.groups.iter().enumerate() {
        // Labels that are paths below headings are shown below these.
        let path = group.path.as_slice();
        let inner = path.len().saturating_sub(1);
        let shared = path
            .iter()
            .take(inner)
            .zip(above)
            .take_while(|(one, other)| one == other)
            .count();
        for (depth, part) in path.iter().enumerate().take(inner).skip(shared) {
            let mut heading = vec![Cell::text(""); table.columns.len()];
            heading[1] = Cell::Text("  ".repeat(depth) + part);
            table.push(heading);
        }
        for (place, run) in group
            .runs
            .iter()
            .filter_map(|at| audit.runs.get(*at))
            .enumerate()
        {
            let (number, label) = match place {
                0 => ((index + 1).to_string(), path[inner].as_str()),
                _ => (String::new(), "  again"),
            };
            let label = "  ".repeat(inner) + label;
            table.push([vec![Cell::Text(number), Cell::Text(label)], figures(run)].concat());
        }
        above = path;
    }
    let rest = table.rows.len().saturating_sub(ROWS_MAX);
    table.rows.truncate(ROWS_MAX);
    let is_known = |cell: &Cell| !matches!(cell, Cell::Missing) && *cell != Cell::text("");
    let known = |at: usize| table.cells().any(|cells| is_known(&cells[at]));
    for at in (0..table.columns.len())
        .rev()
        .filter(|at| !known(*at))
        .collect::<Vec<_>>()
    {
        table.columns.remove(at);
        for row in &mut table.rows {
            if let TableRow::Cells(cells) = row {
                cells.remove(at);
            }
        }
    }
    if rest > 0 {
        table.rows.push(TableRow::Note(
            Tone::Faint,
            format!("and {} (--json lists them)", many(rest as u64, "more run")),
        ));
    }
    table
}

fn figures(run: &ToolRun) -> Vec<Cell> {
    let failed = run.failures.total();
    let known = run.unread.is_empty();
    let told = [
        run.failures.timeouts,
        run.failures.status,
        run.failures.other,
    ]
    .iter()
    .any(Option::is_some);
    let requests = run.requests.map(count);
    // Printed in the tool's own unit, because figures of other tools vary widely.
    let us = |value: Option<f64>| Cell::optional(value.map(|us| Quantity::us(us).to_string()));
    vec![
        Cell::figure(run.rate().map(Quantity::number)),
        Cell::optional(requests.map(|count| {
            if run.rounded {
                format!("≈ {count}")
            } else {
                count
            }
        })),
        Cell::optional((failed > 0 || told && known).then(|| count(failed))),
        us(run.latency.mean_us),
        us(run.latency.quantile(99.0)),
        Cell::optional(
            run.bytes_per_response()
                .map(|bytes| Quantity::bytes(bytes).to_string()),
        ),
    ]
}
