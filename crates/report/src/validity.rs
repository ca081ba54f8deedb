//! docs/validity.md, the page that explains each finding, as this binary carries it: what a report says of it, the list of all
//! checks, and its sections for a terminal.
//!
//! Must not: explain anything itself, or read more of Markdown than the page uses: headings, paragraphs, lists, links, bold words.

use analysis::{Check, Finding};
use model::Subject;
use serde_json::{Value, json};

use crate::document::{Block, Cell, Column, Document, Fit, Line, Table, Tone, grade_word};
use crate::form::Report;

/// The page as it lies in the repository.
const PAGE: &str = include_str!("../../../docs/validity.md");
/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// What stands below the list.
const GRADES: &str = "invalid: a fault forbids the conclusion, whatever the figures say, and none is printed; warning: it stands, with \
                      this in mind; note: good to know";

/// The command that explains these findings, each once; `None` where there is none.
pub(crate) fn explained_by<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let mut command = "proofload validity".to_owned();
    let mut told: Vec<Check> = Vec::new();
    for Finding { check, .. } in findings {
        if !told.contains(check) {
            told.push(*check);
            command += " ";
            command += check.number();
        }
    }
    (!told.is_empty()).then_some(command)
}

/// Checks: all of them as a list, or some of them explained.
#[derive(Debug)]
pub struct Explained<'a> {
    /// Those that are asked for; empty for the list.
    pub checks: &'a [Check],
}

impl Report for Explained<'_> {
    fn document(&self) -> Document {
        if self.checks.is_empty() {
            return list();
        }
        let title = |check: Check| format!("{}. {}", check.number(), check.row().title);
        let heading = |check: Check| Block::Heading(Tone::Strong, title(check));
        let lines = |check: Check| Block::Lines(lines(section(check).unwrap_or_default()));
        match self.checks {
            [one] => Document { title: title(*one), headline: None, blocks: vec![lines(*one)] },
            several => Document {
                title: "What these findings mean".to_owned(),
                headline: None,
                blocks: several.iter().flat_map(|check| [heading(*check), lines(*check)]).collect(),
            },
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
                "title": check.row().title,
                "text": section(*check),
            })
        };
        let checks = if self.checks.is_empty() { Check::ALL } else { self.checks };
        let checks: Vec<Value> = checks.iter().map(one).collect();
        json!({ "validity_version": VERSION, "checks": checks })
    }
}

/// All checks, by subject.
fn list() -> Document {
    let mut tables: Vec<(Subject, Table)> = Vec::new();
    for check in Check::ALL {
        let row = check.row();
        if tables.last().is_none_or(|(subject, _)| *subject != row.subject) {
            let names = ["number", "grade", "name"].map(|name| Column::text(name, Fit::Whole));
            let columns = names.into_iter().chain([Column::text("what it finds", Fit::Wrapped)]);
            tables.push((row.subject, Table::new(row.subject.heading(), columns.collect())));
        }
        if let Some((_, table)) = tables.last_mut() {
            let cells = [check.number(), &grades(*check), check.name(), row.title].map(Cell::text);
            table.push(cells.into());
        }
    }
    let mut blocks: Vec<Block> = tables.into_iter().map(|(_, table)| Block::Table(table)).collect();
    let notes = [GRADES, "one of them explained, by its number or name: proofload validity V8"];
    blocks.extend(notes.map(|note| Block::Paragraph(Tone::Faint, note.to_owned())));
    Document { title: "Checks of validity".to_owned(), headline: None, blocks }
}

/// What the page says of a check, as paragraphs of plain text without the heading.
pub(crate) fn paragraphs(check: Check) -> Vec<String> {
    let section = section(check).unwrap_or_default();
    let paragraphs = section.split("\n\n").filter(|paragraph| !paragraph.starts_with("### "));
    paragraphs.flat_map(items).map(|item| without_links(&item).replace("**", "")).collect()
}

/// The grades a check may have: `void or warning`.
fn grades(check: Check) -> String {
    check.row().grades.iter().map(|of| grade_word(*of)).collect::<Vec<_>>().join(" or ")
}

/// A check's section of the page, with its heading; `None` where it has none, which a test forbids.
fn section(check: Check) -> Option<&'static str> {
    let anchor = format!("<a id=\"{}\"></a>", check.number().to_lowercase());
    let (_, rest) = PAGE.split_once(&anchor)?;
    let end = ["\n<a id=\"", "\n## "].iter().filter_map(|next| rest.find(next)).min();
    Some(rest[..end.unwrap_or(rest.len())].trim())
}

/// The paragraphs of a section, each with the word that it begins with.
fn lines(markdown: &str) -> Vec<Line> {
    let paragraphs = markdown.split("\n\n").filter(|paragraph| !paragraph.starts_with("### "));
    let line = |item: String| {
        let text = without_links(&item);
        let labelled = text.strip_prefix("**").and_then(|rest| rest.split_once(".**"));
        let (name, text) = labelled.map_or(("", text.as_str()), |(label, rest)| (label, rest.trim()));
        Line::new(name.to_lowercase(), text.replace("**", ""))
    };
    paragraphs.flat_map(items).map(line).collect()
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

/// Links as their text, and where they lead if that is another page: a terminal cannot follow them.
fn without_links(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(middle) = out.find("](") {
        let (Some(open), Some(close)) = (out[..middle].rfind('['), out[middle..].find(')')) else { break };
        let (name, page) = (&out[open + 1..middle], &out[middle + 2..middle + close]);
        let page = if page.starts_with('#') { String::new() } else { format!(" [docs/{page}]") };
        out = format!("{}{name}{page}{}", &out[..open], &out[middle + close + 1..]);
    }
    out
}

#[cfg(test)]
mod tests;
