//! Explanations of findings, from the checks themselves: in reports, in a terminal, and in docs/validity.md.
//!
//! This module contains no explanations itself. For a terminal it supports only the Markdown that they use:
//! headings, paragraphs, lists, links, bold words.

use analysis::{Check, Finding};
use serde_json::{Value, json};

use crate::form::Report;
use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, Table, Tone, grade_word,
};

/// Text below the list.
const GRADES: &str = "invalid: a fault forbids the conclusion, whatever the figures say, and none is printed; warning: it may change \
                      the conclusion; note: it does not";

/// The command that explains these findings, each once. `None` without findings.
pub(crate) fn explained_by<'a>(
    findings: impl Iterator<Item = &'a Finding<Check>>,
) -> Option<String> {
    let numbers = model::distinct(findings.map(|finding| finding.check.number()));
    (!numbers.is_empty()).then(|| format!("proofload explain {}", numbers.join(" ")))
}

/// Checks: a list of all, or explanations of some.
#[derive(Debug)]
pub struct Explained<'a> {
    /// The requested checks. Empty for the list.
    pub checks: &'a [Check],
}

impl Report for Explained<'_> {
    fn document(&self) -> Document {
        if self.checks.is_empty() {
            return list();
        }
        let title = |check: Check| format!("{}. {}", check.number(), check.title());
        let heading = |check: Check| DocumentPart::Heading(Tone::Strong, title(check));
        let lines = |check: Check| DocumentPart::Lines(lines(&section(check)));
        match self.checks {
            [one] => Document::new(title(*one), [lines(*one)]),
            several => Document::new(
                "What these findings mean",
                several
                    .iter()
                    .flat_map(|check| [heading(*check), lines(*check)]),
            ),
        }
    }

    /// Each check with its section in Markdown.
    fn data(&self) -> Value {
        let one = |check: &Check| {
            json!({
                "number": check.number(),
                "check": check.name(),
                "subject": check.row().subject,
                "grades": check.row().grades,
                "title": check.title(),
                "text": section(*check),
            })
        };
        let checks = if self.checks.is_empty() {
            Check::ALL
        } else {
            self.checks
        };
        let checks: Vec<Value> = checks.iter().map(one).collect();
        json!({ "checks": checks })
    }
}

/// All checks, by subject.
fn list() -> Document {
    use ColumnFit::{Whole, Wrapped};
    let of_subject = |checks: &[Check]| {
        let columns = [
            ("number", Whole),
            ("grade", Whole),
            ("name", Whole),
            ("what it finds", Wrapped),
        ];
        let mut table = Table::new(checks[0].row().subject.heading(), columns);
        for check in checks {
            let cells = [check.number(), &grades(*check), check.name(), check.title()];
            table.push(cells.map(Cell::text).into());
        }
        DocumentPart::Table(table)
    };
    let tables = Check::ALL
        .chunk_by(|one, next| one.row().subject == next.row().subject)
        .map(of_subject);
    let notes = [
        GRADES,
        "one of them explained, by its number or name: proofload explain V8",
    ];
    let notes = notes.map(|note| DocumentPart::Paragraph(Tone::Faint, note.to_owned()));
    Document::new("Checks of validity", tables.chain(notes))
}

/// The explanation of a check, as paragraphs of plain text without the heading.
pub(crate) fn paragraphs(check: Check) -> Vec<String> {
    plain(&section(check))
        .map(|item| item.replace("**", ""))
        .collect()
}

/// The possible grades of a check: `void or warning`.
fn grades(check: Check) -> String {
    check
        .row()
        .grades
        .iter()
        .map(|of| grade_word(*of))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// A check's section of docs/validity.md, with its heading.
fn section(check: Check) -> String {
    format!(
        "### {}. {}\n\n`{}`, {}.\n\n{}",
        check.number(),
        check.title(),
        check.name(),
        grades(check),
        check.explanation()
    )
}

/// The paragraphs of a section, each with its first word as name.
fn lines(markdown: &str) -> Vec<NamedText> {
    let line = |text: String| {
        let labelled = text
            .strip_prefix("**")
            .and_then(|rest| rest.split_once(".**"));
        let (name, text) =
            labelled.map_or(("", text.as_str()), |(label, rest)| (label, rest.trim()));
        NamedText::new(name.to_lowercase(), text.replace("**", ""))
    };
    plain(markdown).map(line).collect()
}

/// The paragraphs of a section without its heading. Bold words remain as the only Markdown.
fn plain(markdown: &str) -> impl Iterator<Item = String> {
    let paragraphs = markdown
        .split("\n\n")
        .filter(|paragraph| !paragraph.starts_with("### "));
    paragraphs.flat_map(items).map(|item| without_links(&item))
}

/// A paragraph, or the items of a list, each in one line.
fn items(paragraph: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in paragraph.lines().map(str::trim) {
        match items.last_mut() {
            Some(item) if !line.starts_with("- ") => *item += &format!(" {line}"),
            _ => items.push(line.to_owned()),
        }
    }
    items
}

/// Replaces links by their text, with the target if it is another page: a terminal cannot follow links.
fn without_links(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(middle) = out.find("](") {
        let (Some(open), Some(close)) = (out[..middle].rfind('['), out[middle..].find(')')) else {
            break;
        };
        let (name, page) = (&out[open + 1..middle], &out[middle + 2..middle + close]);
        let page = if page.starts_with('#') {
            String::new()
        } else {
            format!(" [docs/{page}]")
        };
        out = format!("{}{name}{page}{}", &out[..open], &out[middle + close + 1..]);
    }
    out
}

#[cfg(test)]
mod tests;
