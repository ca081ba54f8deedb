//! What every text for a terminal is drawn with: styles, margins, wrapped lines, findings.
//!
//! Must not: know what is said.

use analysis::Grade;
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
/// One line below the headings is all the frame a table needs.
pub(crate) const RULE: LineStyle = LineStyle::none().fill('─').junction('─');
/// Columns of the names before lines of the method.
const MARGIN: usize = 11;

/// A line with its name in the margin.
pub(crate) fn named(style: Style, name: &str, line: &str, width: usize) -> String {
    let margin = " ".repeat(MARGIN);
    let wrapped = wrapped(line, &margin, &margin, width);
    format!("{style}{name:>9}{style:#}  {}", wrapped.trim_start())
}

pub(crate) fn wrapped(text: &str, first: &str, rest: &str, width: usize) -> String {
    // A path or a command that is longer than a line stays whole, so that it can be copied.
    let options = textwrap::Options::new(width).initial_indent(first).subsequent_indent(rest);
    textwrap::fill(text, options.break_words(false)) + "\n"
}

/// A finding: its evidence with its grade and number, and below it what to do.
pub(crate) fn remark(of: Grade, number: Option<&str>, evidence: &str, remedy: &str, width: usize) -> String {
    let (style, name) = grade(of);
    let head = number.map_or_else(|| name.to_owned(), |number| format!("{name} {number}"));
    // The grade is inside what is wrapped, so that it counts; its colour is put on afterwards.
    let evidence = wrapped(&format!("{head}: {evidence}"), "", "  ", width);
    let evidence = evidence.replacen(&head, &format!("{style}{head}{style:#}"), 1);
    format!("{evidence}{FAINT}{}{FAINT:#}", wrapped(remedy, "  ", "  ", width))
}

/// The line below findings that says where they are explained; nothing where there are none.
pub(crate) fn explained(command: Option<&str>, width: usize) -> String {
    let Some(command) = command else { return String::new() };
    let line = wrapped(&format!("why, and what else may be done: {command}"), "  ", "    ", width);
    format!("{FAINT}{line}{FAINT:#}")
}

/// A table whose first `names` columns are text; the others are figures.
pub fn table<'a>(columns: &[String], rows: impl Iterator<Item = &'a Vec<String>>, names: usize) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(RULE)).set_header(columns);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

pub(crate) fn grade(grade: Grade) -> (Style, &'static str) {
    match grade {
        Grade::Void => (AnsiColor::Red.on_default().bold(), "void"),
        Grade::Warning => (AnsiColor::Yellow.on_default().bold(), "warning"),
        Grade::Note => (FAINT, "note"),
        Grade::Fine => (AnsiColor::Green.on_default(), "fine"),
    }
}
