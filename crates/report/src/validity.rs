//! docs/validity.md, the page that explains each finding, as this binary carries it: what a report says of it, the list of all
//! checks, and its sections for a terminal.
//!
//! Must not: explain anything itself, or read more of Markdown than the page uses: headings, paragraphs, lists, links, bold words.

use model::{Check, Subject};
use serde_json::{Value, json};

use crate::drawing::{BOLD, FAINT, grade, wrapped};

/// The page as it lies in the repository.
const PAGE: &str = include_str!("../../../docs/validity.md");
/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// What stands below the list.
const GRADES: &str = "void: a fault forbids the conclusion, whatever the figures say, and none is printed; warning: it stands, with this \
                      in mind; note: good to know";

/// The command that explains these findings, each once; `None` where there is none.
pub(crate) fn explained_by<'a>(numbers: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut command = "proofload validity".to_owned();
    let mut told: Vec<&str> = Vec::new();
    for number in numbers.flatten() {
        if !told.contains(&number) {
            told.push(number);
            command += " ";
            command += number;
        }
    }
    (!told.is_empty()).then_some(command)
}

/// All checks, by subject, in lines of at most `width` columns where that can be.
pub fn list(width: usize) -> String {
    let widest = Check::ALL.iter().map(|check| check.name().len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut subject: Option<Subject> = None;
    for check in Check::ALL {
        let row = check.row();
        if subject != Some(row.subject) {
            let gap = if subject.is_some() { "\n" } else { "" };
            out += &format!("{gap}{BOLD}{}{BOLD:#}\n", row.subject.heading());
            subject = Some(row.subject);
        }
        let (number, name, title) = (check.number(), check.name(), row.title);
        let line = format!("{number:>4}  {:<15}  {name:<widest$}  {title}", grades(*check));
        out += &wrapped(&line, "", "      ", width);
    }
    let notes = [GRADES, "one of them explained, by its number or name: proofload validity V8"];
    let notes: String = notes.iter().map(|note| wrapped(note, "", "  ", width)).collect();
    format!("{out}\n{FAINT}{notes}{FAINT:#}")
}

/// What the page says of these checks, in lines of at most `width` columns where that can be.
pub fn explained(checks: &[Check], width: usize) -> String {
    let one = |check: &Check| drawn(section(*check).unwrap_or_default(), width);
    checks.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// What the page says of a check, by its number, as paragraphs of plain text without the heading; empty where there is no such check.
pub(crate) fn paragraphs(number: &str) -> Vec<String> {
    let check = Check::ALL.iter().find(|check| check.number() == number);
    let section = check.and_then(|check| section(*check)).unwrap_or_default();
    let paragraphs = section.split("\n\n").filter(|paragraph| !paragraph.starts_with("### "));
    paragraphs.flat_map(items).map(|item| without_links(&item).replace("**", "")).collect()
}

/// The same for other programs: each check with its section in Markdown.
pub fn as_json(checks: &[Check]) -> Value {
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
    json!({ "validity_version": VERSION, "checks": checks.iter().map(one).collect::<Vec<_>>() })
}

/// The grades a check may have: `void or warning`.
fn grades(check: Check) -> String {
    let names = check.row().grades.iter().map(|of| grade(*of).1);
    names.collect::<Vec<_>>().join(" or ")
}

/// A check's section of the page, with its heading; `None` where it has none, which a test forbids.
fn section(check: Check) -> Option<&'static str> {
    let anchor = format!("<a id=\"{}\"></a>", check.number().to_lowercase());
    let (_, rest) = PAGE.split_once(&anchor)?;
    let end = ["\n<a id=\"", "\n## "].iter().filter_map(|next| rest.find(next)).min();
    Some(rest[..end.unwrap_or(rest.len())].trim())
}

/// Markdown as text for a terminal. Paragraphs are filled anew; what is in a list keeps its bullets.
fn drawn(markdown: &str, width: usize) -> String {
    let mut out = String::new();
    for paragraph in markdown.split("\n\n") {
        if !out.is_empty() {
            out.push('\n');
        }
        match paragraph.strip_prefix("### ") {
            Some(heading) => out += &format!("{BOLD}{heading}{BOLD:#}\n"),
            None => items(paragraph).iter().for_each(|item| out += &filled(item, width)),
        }
    }
    out
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

fn filled(item: &str, width: usize) -> String {
    let text = in_bold(&without_links(item));
    wrapped(&text, "  ", if item.starts_with("- ") { "    " } else { "  " }, width)
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

fn in_bold(text: &str) -> String {
    let parts = text.split("**").enumerate();
    parts
        .map(|(at, part)| if at % 2 == 1 { format!("{BOLD}{part}{BOLD:#}") } else { part.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests;
