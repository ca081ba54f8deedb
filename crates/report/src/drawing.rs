//! What every text for a terminal is drawn with: styles, margins, wrapped lines.
//!
//! Must not: know what is said.

use analysis::Grade;
use anstyle::{AnsiColor, Style};

use crate::document::{Remark, Tone};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Columns of names before lines.
pub(crate) const NAMES: usize = 9;

impl Tone {
    /// How it looks on a terminal.
    pub(crate) fn style(self) -> Style {
        match self {
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Same => AnsiColor::Cyan.on_default().bold(),
            Tone::Doubtful => AnsiColor::Yellow.on_default().bold(),
            Tone::Notable => AnsiColor::Magenta.on_default().bold(),
            Tone::Plain => Style::new(),
            Tone::Strong => BOLD,
            Tone::Faint => FAINT,
        }
    }
}

/// A text in a style; nothing in none.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A line with its name in the margin.
pub(crate) fn named(style: Style, name: &str, line: &str, width: usize) -> String {
    in_margin((style, name, NAMES), line, width)
}

/// The same with so many columns for names.
pub(crate) fn in_margin((style, name, names): (Style, &str, usize), line: &str, width: usize) -> String {
    let margin = " ".repeat(names + 2);
    let wrapped = wrapped(line, &margin, &margin, width);
    format!("{style}{name:>names$}{style:#}  {}", wrapped.trim_start())
}

pub(crate) fn wrapped(text: &str, first: &str, rest: &str, width: usize) -> String {
    // A path or a command that is longer than a line stays whole, so that it can be copied.
    let options = textwrap::Options::new(width).initial_indent(first).subsequent_indent(rest);
    textwrap::fill(text, options.break_words(false)) + "\n"
}

/// A finding: what was found with its grade and number, where, and what to do.
pub(crate) fn finding(remark: &Remark, width: usize) -> String {
    let style = Tone::from(remark.grade).style();
    let head = remark.head();
    // The grade is inside what is wrapped, so that it counts; its colour is put on afterwards.
    let statement = wrapped(&format!("{head}: {}", remark.statement), "", "  ", width);
    let mut out = statement.replacen(&head, &styled(style, &head), 1);
    out.extend(remark.cases.iter().map(|case| wrapped(case, "  ", "    ", width)));
    if !remark.remedy.is_empty() {
        out += &styled(FAINT, &wrapped(&remark.remedy, "  ", "  ", width));
    }
    out
}

/// The same of its parts.
pub(crate) fn remark(of: Grade, mark: Option<&str>, evidence: &str, remedy: &str, width: usize) -> String {
    let remark = Remark {
        grade: of,
        mark: mark.map(str::to_owned),
        statement: evidence.to_owned(),
        cases: Vec::new(),
        remedy: remedy.to_owned(),
    };
    finding(&remark, width)
}
