//! A document as Markdown for a pull request comment: the answer in the first line, and details folded. If it
//! is too long, lines are left out from the end, with a note on their number.
//!
//! Texts are escaped: no markup, no link, no formula, and no user is mentioned. This module does not know the
//! meaning of the contents.

use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Remark, Table, TableRow,
    Tone, VerdictBlock,
};
use model::text::{capitalised, code_spans, cut};

use crate::chart::chart_drawn;

/// Maximum number of characters of a text. Names and responses of services may be arbitrarily long.
const TEXT_MAX: usize = 1_000;
/// Maximum number of characters of a comment on GitHub.
const CHARACTERS_MAX: usize = 65_536;
/// Reserved for a section's note on omitted lines.
const NOTE_MAX: usize = 120;
/// Width of a chart, which is a code block.
const CHART_COLUMNS: usize = 80;
/// Minimum number of lines of a section while others are longer.
const LINES_KEPT: usize = 25;

/// A part of the text, whose last lines may be left out.
#[derive(Debug)]
struct MarkdownSection {
    opening: String,
    lines: Vec<String>,
    /// Number of omitted lines.
    gone: usize,
}

impl MarkdownSection {
    fn new(opening: impl Into<String>, lines: impl IntoIterator<Item = String>) -> MarkdownSection {
        MarkdownSection {
            opening: opening.into(),
            lines: lines.into_iter().collect(),
            gone: 0,
        }
    }

    fn length(&self) -> usize {
        let note = if self.gone > 0 { NOTE_MAX } else { 0 };
        note + length(&self.opening) + self.lines.iter().map(|line| length(line)).sum::<usize>()
    }

    /// Omits the last lines until `over` characters are removed, or only `keep` lines are left.
    fn shorten(&mut self, over: usize, keep: usize) {
        let mut room = over + NOTE_MAX;
        while room > 0 && self.lines.len() > keep {
            room = room.saturating_sub(self.lines.pop().map_or(0, |line| length(&line)));
            self.gone += 1;
        }
    }

    fn written(&self) -> String {
        let note = match self.gone {
            0 => String::new(),
            gone => format!(
                "\n… and {gone} more that a comment has no room for; `--format text` has all\n"
            ),
        };
        format!("{}{}{note}", self.opening, self.lines.concat())
    }
}

/// The whole document, within GitHub's limit for comments.
pub fn markdown(document: &Document) -> String {
    let title = escaped(&document.title);
    let title = match &document.headline {
        Some(headline) => format!("### {}\n\n{title}\n", escaped(headline)),
        None => format!("### {title}\n"),
    };
    let mut sections = vec![MarkdownSection::new(title, [])];
    document
        .blocks
        .iter()
        .for_each(|block| put(block, &mut sections));
    fit(sections)
}

/// Adds a block as one or several sections.
fn put(block: &DocumentPart, sections: &mut Vec<MarkdownSection>) {
    let section = match block {
        DocumentPart::Heading(_, text) => {
            MarkdownSection::new(format!("\n#### {}\n", escaped(text)), [])
        }
        DocumentPart::Paragraph(_, text) => {
            MarkdownSection::new(format!("\n{}\n", escaped(text)), [])
        }
        DocumentPart::Answers(answers) | DocumentPart::Verdicts(answers) => {
            MarkdownSection::new("\n", answers.iter().map(answer))
        }
        DocumentPart::Table(table) => self::table(table),
        // In one piece, because a code block without its end would swallow the rest.
        DocumentPart::Chart(chart) => {
            let (heading, drawn) = chart_drawn(chart, CHART_COLUMNS);
            let drawn = drawn.replace('`', "'");
            let block = format!("\n{}:\n\n```text\n{drawn}```\n", escaped(&heading));
            MarkdownSection::new(block, [])
        }
        DocumentPart::Findings(all, command) => {
            let command = command
                .iter()
                .map(|command| format!("\nMore: {}\n", code(command)));
            MarkdownSection::new("", all.iter().map(finding).chain(command))
        }
        DocumentPart::Lines(lines) => MarkdownSection::new("\n", lines.iter().map(line)),
        // The reader of a pull request did not run it.
        DocumentPart::Steps(_) => return,
        DocumentPart::Folded(summary, blocks) => {
            let summary = format!("\n<details><summary>{}</summary>\n", escaped(summary));
            sections.push(MarkdownSection::new(summary, []));
            blocks.iter().for_each(|block| put(block, sections));
            MarkdownSection::new("\n</details>\n", [])
        }
    };
    sections.push(section);
}

fn answer(answer: &QuestionAnswer) -> String {
    let subject = escaped(&answer.subject);
    let word = |one: &VerdictBlock| format!("**{}**", escaped(&one.word));
    let mut out = match answer.verdicts.as_slice() {
        [one] => format!("- {}: {subject}{}", word(one), detail(&one.detail)),
        several => {
            let lines = several
                .iter()
                .map(|one| format!("<br>{}{}", word(one), detail(&one.detail)));
            format!("- {subject}:{}", lines.collect::<String>())
        }
    };
    out.extend(
        answer
            .notes
            .iter()
            .map(|note| format!("<br>{}", escaped(note))),
    );
    out + "\n"
}

/// The text after a colon, if there is any.
fn detail(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {}", prose(text))
    }
}

/// Prose, in which our texts mark code by pairs of backticks.
fn prose(text: &str) -> String {
    let parts = code_spans(text).into_iter().enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escaped(part),
        _ => code(part),
    };
    parts.map(part).collect()
}

fn command(command: Option<&String>) -> String {
    command
        .map(|command| format!("<br>{}", code(command)))
        .unwrap_or_default()
}

/// Inline code. Backticks and line breaks are replaced, because they would end it or begin another block.
fn code(text: &str) -> String {
    format!(
        "`{}`",
        cut(
            &text.replace('`', "'").replace(['\n', '\r', '\t'], " "),
            TEXT_MAX
        )
    )
}

fn finding(remark: &Remark) -> String {
    let head = capitalised(&escaped(&remark.head()));
    let statements = [&remark.statement].into_iter().chain(&remark.cases);
    let statements: Vec<String> = statements.map(|text| format!("{}.", prose(text))).collect();
    let mut out = format!("\n> **{head}**: {}", statements.join("<br>"));
    if !remark.remedy.is_empty() {
        let between = if remark.cases.is_empty() { " " } else { "<br>" };
        // Without a check it may be a command.
        let remedy = match remark.mark {
            Some(_) => capitalised(&remark.remedy),
            None => remark.remedy.clone(),
        };
        out += &format!("{between}{}", prose(&remedy));
    }
    out + &command(remark.command.as_ref()) + "\n"
}

fn line(line: &NamedText) -> String {
    let name = escaped(&line.name);
    let name = if line.tone == Tone::Faint {
        name
    } else {
        format!("**{name}**")
    };
    let (text, command) = (prose(&line.text), command(line.command.as_ref()));
    format!("- {name}: {text}{}{command}\n", detail(&line.detail))
}

/// A table, without the drawings for terminals.
fn table(table: &Table) -> MarkdownSection {
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|at| table.columns[*at].fit != ColumnFit::Drawing)
        .collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let headings = line(
        shown
            .iter()
            .map(|at| escaped(&table.columns[*at].heading))
            .collect(),
    );
    let rule = |at: &usize| {
        if table.columns[*at].fit == ColumnFit::Figure {
            "--:|"
        } else {
            "---|"
        }
    };
    let heading = if table.heading.is_empty() {
        String::new()
    } else {
        format!("\n{}:\n", escaped(&table.heading))
    };
    let mut texts = table.texts().into_iter();
    let rows = table.rows.iter().map(|row| match row {
        TableRow::Note(_, text) => line(vec![escaped(text)]),
        TableRow::Cells(cells) => {
            let texts = texts.next().unwrap_or_default();
            let cell = |at: &usize| match &cells[*at] {
                Cell::Word(tone, _) if *tone != Tone::Good && *tone != Tone::Plain => {
                    format!("**{}**", escaped(&texts[*at]))
                }
                // Indentation would be lost, and is not part of the name.
                _ => escaped(texts[*at].trim()),
            };
            line(shown.iter().map(cell).collect())
        }
    });
    let opening = format!(
        "{heading}\n{headings}|{}\n",
        shown.iter().map(rule).collect::<String>()
    );
    MarkdownSection::new(opening, rows)
}

/// Length as GitHub counts in the worst case: a character outside the basic plane counts as two.
fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Joins all sections, shortening the last ones first, because the first ones are more important. A few lines
/// of each section are more useful than one complete section.
fn fit(mut sections: Vec<MarkdownSection>) -> String {
    let last_first = || (0..sections.len()).rev();
    let order: Vec<(usize, usize)> = [LINES_KEPT, 0]
        .iter()
        .flat_map(|keep| last_first().map(|at| (*keep, at)))
        .collect();
    for (keep, at) in order {
        let total: usize = sections.iter().map(MarkdownSection::length).sum();
        if total <= CHARACTERS_MAX {
            break;
        }
        sections[at].shorten(total - CHARACTERS_MAX, keep);
    }
    sections.iter().map(MarkdownSection::written).collect()
}

/// Renders as nothing, and interrupts text that GitHub would link as an address, a name or an issue.
const NOTHING: &str = "<!-- -->";

/// Whether GitHub may turn the end of `before` and the beginning of `rest` into a link.
fn begins_link(before: &str, rest: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric();
    let at_begin = |word: &str| {
        let head = before
            .len()
            .checked_sub(word.len())
            .filter(|at| before.is_char_boundary(*at));
        head.is_some_and(|at| {
            before[at..].eq_ignore_ascii_case(word)
                && !before[..at].chars().next_back().is_some_and(is_word)
        })
    };
    let next = rest.chars().next();
    match next {
        // Addresses with a scheme, or with only `www.`.
        Some('/') => before.ends_with(':') && rest.starts_with("//"),
        Some('.') => at_begin("www"),
        // E-mail addresses and user names.
        Some(c) if before.ends_with('@') => is_word(c) || c == '_',
        // Issues: `GH-12`, and `#12` behind its escape.
        Some(c) if c.is_ascii_digit() => at_begin("GH-") || before.ends_with('#'),
        // Schemes without slashes.
        Some(_) => at_begin("mailto:") || at_begin("xmpp:"),
        None => false,
    }
}

/// Escapes text from an experiment file or a service's response for Markdown and the HTML inside it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = cut(text.replace(['\n', '\r', '\t'], " ").as_str(), TEXT_MAX);
    for (at, c) in text.char_indices() {
        if begins_link(&text[..at], &text[at..]) {
            out += NOTHING;
        }
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_become_no_links() {
        for (text, shown) in [
            ("https://evil.example/x", "https:<!-- -->//evil.example/x"),
            ("see www.evil.example", "see www<!-- -->.evil.example"),
            ("WWW.evil.example", "WWW<!-- -->.evil.example"),
            ("foo@evil.example", "foo@<!-- -->evil.example"),
            ("@octocat and a@_b", "@<!-- -->octocat and a@<!-- -->\\_b"),
            ("GH-12, o/r#12", "GH-<!-- -->12, o/r\\#<!-- -->12"),
            ("mailto:a", "mailto:<!-- -->a"),
            (
                "p99 12:30 a.b 4 // c, 100-GHz",
                "p99 12:30 a.b 4 // c, 100-GHz",
            ),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    #[test]
    fn a_command_stays_in_its_line_of_code() {
        let hostile = "a`\n\n@octocat [x](https://evil.example)\r".to_owned();
        assert_eq!(
            command(Some(&hostile)),
            "<br>`a'  @octocat [x](https://evil.example) `"
        );
    }
}
