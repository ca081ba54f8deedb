//! A document as text for a terminal. Colours are ANSI sequences; whoever prints strips them where they do not belong.
//!
//! Texts may be anybody's: whatever would steer a terminal is shown as a mark. Must not: know what is said.

use crate::document::{Answer, Block, Document, Line, Tone};
use crate::drawing::{BOLD, FAINT, NAMES, finding, in_margin, named, styled, wrapped};
use crate::names::line as clean;

mod course;
pub(crate) mod table;

/// The most that lines below a verdict are moved to the right, so that narrow terminals keep room for them.
const INDENT_MAX: usize = 24;
/// Most columns of names before lines.
const NAMES_MAX: usize = 16;

/// The whole document, in lines of at most `width` columns where that can be.
pub fn text(document: &Document, width: usize) -> String {
    let title = wrapped(&clean(&document.title), "", "", width);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", title.trim_end());
    let mut before = None;
    blocks(&document.blocks, &mut before, width, &mut out);
    out
}

/// All blocks, with an empty line between two that do not belong together.
fn blocks<'a>(all: &'a [Block], before: &mut Option<&'a Block>, width: usize, out: &mut String) {
    for block in all {
        if let Block::Folded(_, inner) = block {
            blocks(inner, before, width, out);
            continue;
        }
        let joined = match (&*before, block) {
            (Some(Block::Heading(..)), _) => true,
            (Some(Block::Paragraph(one, _)), Block::Paragraph(other, _)) => one == other,
            _ => false,
        };
        if !joined {
            out.push('\n');
        }
        *out += &drawn(block, width);
        *before = Some(block);
    }
}

fn drawn(block: &Block, width: usize) -> String {
    match block {
        Block::Heading(tone, text) => styled(tone.style(), &clean(text)) + "\n",
        Block::Paragraph(tone, text) => paragraph(*tone, text, width),
        Block::Answers(answers) => answers.iter().map(|of| answer(of, width)).collect(),
        Block::Table(table) => table::drawn(table, width),
        Block::Findings(all, command) => {
            let told: String = all.iter().map(|remark| finding(&remark.cleaned(), width)).collect();
            let command = command.as_ref().map(|command| {
                let text = format!("why, and what else may be done: {command}");
                styled(FAINT, &wrapped(&text, "  ", "    ", width))
            });
            told + &command.unwrap_or_default()
        }
        Block::Lines(all) => lines(all, width),
        Block::Steps(steps) => steps.iter().map(|step| named(FAINT, "next", &clean(step), width)).collect(),
        Block::Folded(..) => String::new(),
    }
}

fn paragraph(tone: Tone, text: &str, width: usize) -> String {
    styled(tone.style(), wrapped(&clean(text), "", "", width).trim_end()) + "\n"
}

fn answer(answer: &Answer, width: usize) -> String {
    let indented = |text: &str| wrapped(&clean(text), "    ", "    ", width);
    let subject = styled(BOLD, &clean(&answer.subject));
    let mut out = match answer.verdicts.as_slice() {
        [one] => {
            let word = styled(one.tone.style(), &one.word.to_uppercase());
            let detail = if one.detail.is_empty() { String::new() } else { indented(&one.detail) };
            wrapped(&format!("{word}  {subject}"), "", "    ", width) + &detail
        }
        several => {
            let widest = several.iter().map(|one| one.word.chars().count()).max().unwrap_or(0);
            let rest = " ".repeat((4 + widest + 2).min(INDENT_MAX));
            let line = |one: &crate::document::Verdict| {
                let word = format!("{:widest$}", one.word.to_uppercase());
                // Wrapped with the verdict in it, so that it counts; textwrap knows that colours have no width.
                let text = format!("{}  {}", styled(one.tone.style(), &word), clean(&one.detail));
                wrapped(&text, "    ", &rest, width)
            };
            let lines: String = several.iter().map(line).collect();
            format!("{subject}\n{lines}")
        }
    };
    out.extend(answer.notes.iter().map(|note| styled(FAINT, &indented(note))));
    out
}

fn lines(all: &[Line], width: usize) -> String {
    let widest = all.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let names = widest.clamp(NAMES, NAMES_MAX);
    let margin = " ".repeat(names + 2);
    let line = |line: &Line| {
        let mut out = in_margin((line.tone.style(), &clean(&line.name), names), &clean(&line.text), width);
        if !line.detail.is_empty() {
            out += &styled(FAINT, &wrapped(&clean(&line.detail), &margin, &margin, width));
        }
        // However long a command is, it stays on one line, so that it can be copied.
        out.extend(line.command.iter().map(|command| format!("{margin}{BOLD}{}{BOLD:#}\n", clean(command))));
        out
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_record_steers_the_terminal() {
        let hostile = || "a\x1b[31m\nb".to_owned();
        let blocks = vec![
            Block::Heading(Tone::Plain, hostile()),
            Block::Paragraph(Tone::Plain, hostile()),
            Block::Lines(vec![Line { detail: hostile(), ..Line::new(hostile(), hostile()) }]),
            Block::Steps(vec![hostile()]),
        ];
        let drawn = text(&Document { title: hostile(), headline: None, blocks }, 80);
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert_eq!(plain.matches("a\u{fffd}[31m b").count(), 7, "{plain}");
        assert!(!drawn.contains("\x1b[31m"), "{drawn:?}");
    }
}
