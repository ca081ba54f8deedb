//! A sheet as text for a terminal. Colours are ANSI sequences; whoever prints strips them where they do not belong.

use anstyle::{AnsiColor, Style};
use audit::{Comparison, Conclusion, Grade, Outcome};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::figure::{change, change_alone};
use crate::sheet::{Answer, Sheet};

const BOLD: Style = Style::new().bold();
/// One line below the headings is all the frame a table needs.
const RULE: LineStyle = LineStyle::none().fill('─').junction('─');
/// Columns of the names before lines of the method.
const MARGIN: usize = 10;
const FAINT: Style = Style::new().dimmed();

/// The whole report, in lines of at most `width` columns where that can be.
pub fn text(sheet: &Sheet, width: usize) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n\n", sheet.title);
    for answer in &sheet.answers {
        out += &answer_text(answer, width);
    }
    if !sheet.answers.is_empty() {
        out.push('\n');
    }
    out += &table(sheet);
    out += "\n\n";
    for finding in &sheet.findings {
        let (style, name) = grade(finding.grade);
        // The grade is inside what is wrapped, so that it counts; its colour is put on afterwards.
        let evidence = wrapped(&format!("{name}: {}", finding.evidence), "", "  ", width);
        out += &evidence.replacen(name, &format!("{style}{name}{style:#}"), 1);
        out += &format!("{FAINT}{}{FAINT:#}", wrapped(&finding.remedy, "  ", "  ", width));
    }
    if !sheet.findings.is_empty() {
        out.push('\n');
    }
    for (name, line) in &sheet.method {
        out += &named(name, line, width);
    }
    for step in &sheet.next {
        out += &named("next", step, width);
    }
    out
}

/// A line with its name in the margin.
fn named(name: &str, line: &str, width: usize) -> String {
    let margin = " ".repeat(MARGIN);
    let wrapped = wrapped(line, &margin, &margin, width);
    format!("{FAINT}{name:>8}{FAINT:#}  {}", wrapped.trim_start())
}

fn wrapped(text: &str, first: &str, rest: &str, width: usize) -> String {
    // A path or a command that is longer than a line stays whole, so that it can be copied.
    let options = textwrap::Options::new(width).initial_indent(first).subsequent_indent(rest);
    textwrap::fill(text, options.break_words(false)) + "\n"
}

/// Each comparison so far in a line of its own, for progress: a factor before there can be an interval.
pub fn so_far(conclusion: &Conclusion) -> Vec<String> {
    let line = |comparison: &Comparison| {
        let so_far = match &comparison.estimate {
            Some(estimate) => {
                let (value, interval) = change(estimate);
                format!("{value} ({interval})")
            }
            None => format!("{} (no interval yet)", change_alone(comparison.ratio_so_far?)),
        };
        Some(format!("{}: {so_far}", comparison.label))
    };
    conclusion.comparisons.iter().filter_map(line).collect()
}

fn answer_text(answer: &Answer, width: usize) -> String {
    let style = match answer.outcome {
        Outcome::Better => AnsiColor::Green.on_default().bold(),
        Outcome::Worse | Outcome::Void => AnsiColor::Red.on_default().bold(),
        Outcome::Equivalent => AnsiColor::Cyan.on_default().bold(),
        Outcome::Inconclusive => AnsiColor::Yellow.on_default().bold(),
    };
    let verdict = answer.verdict.to_uppercase();
    let indented = |text: &str| wrapped(text, "    ", "    ", width);
    let also = answer.also.iter().map(|also| indented(&format!("also {also}, not judged")));
    let also: String = also.collect();
    format!(
        "{style}{verdict}{style:#}  {BOLD}{}{BOLD:#}\n{}{FAINT}{also}{FAINT:#}",
        answer.comparison,
        indented(&answer.detail)
    )
}

fn table(sheet: &Sheet) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(RULE)).set_header(&sheet.columns);
    for row in &sheet.rows {
        table.add_row(&row.cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn grade(grade: Grade) -> (Style, &'static str) {
    match grade {
        Grade::Void => (AnsiColor::Red.on_default().bold(), "void"),
        Grade::Warning => (AnsiColor::Yellow.on_default().bold(), "warning"),
        Grade::Note => (FAINT, "note"),
    }
}
