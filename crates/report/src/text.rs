//! A sheet as text for a terminal. Colours are ANSI sequences; whoever prints strips them where they do not belong.

use analysis::{Assumption, Comparison, Conclusion, Grade, Kind, Outcome, Standing};
use anstyle::{AnsiColor, Style};

use crate::drawing::{BOLD, FAINT, explained, grade, named, remark, table, wrapped};
use crate::figure::{change, change_alone, factor};
use crate::sheet::{Answer, Effects, Row, Sheet, metric_name};

/// The most that lines below a verdict are moved to the right, so that narrow terminals keep room for them.
const INDENT_MAX: usize = 24;
/// An interaction that is there.
const THERE: Style = AnsiColor::Magenta.on_default().bold();

/// The whole report, in lines of at most `width` columns where that can be.
pub fn text(sheet: &Sheet, width: usize) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n\n", sheet.title);
    for answer in &sheet.answers {
        out += &answer_text(answer, width);
    }
    if !sheet.answers.is_empty() {
        out.push('\n');
    }
    out += &sheet.effects.as_ref().map(|effects| effects_text(effects, width)).unwrap_or_default();
    out += &table(&sheet.columns, cells(&sheet.rows), 1);
    out += "\n\n";
    for part in &sheet.parts {
        out += &format!("{BOLD}{}{BOLD:#}\n{}\n\n", part.heading, table(&part.columns, cells(&part.rows), 2));
    }
    out += &sheet.why.as_ref().map(|why| why.text(width)).unwrap_or_default();
    for finding in &sheet.findings {
        out += &remark(finding.grade, finding.number, &finding.evidence, &finding.remedy, width);
    }
    out += &explained(sheet.explained_by.as_deref(), width);
    if !sheet.findings.is_empty() {
        out.push('\n');
    }
    for (name, line) in &sheet.method {
        out += &named(FAINT, name, line, width);
    }
    out += &assumptions_text(&sheet.assumptions, width);
    for (name, line) in &sheet.place {
        out += &named(FAINT, name, line, width);
    }
    for step in &sheet.next {
        out += &named(FAINT, "next", step, width);
    }
    out
}

/// What the result takes for granted, with empty lines around.
fn assumptions_text(assumptions: &[Assumption], width: usize) -> String {
    if assumptions.is_empty() {
        return String::new();
    }
    let line = |assumption: &Assumption| {
        let (style, name) = match assumption.standing {
            Standing::Doubtful => (grade(Grade::Warning).0, "doubtful"),
            Standing::Unchecked => (FAINT, "unchecked"),
            Standing::Supported => (FAINT, "supported"),
        };
        let text = format!("{}: {FAINT}{}{FAINT:#}", assumption.statement, assumption.evidence);
        named(style, name, &text, width)
    };
    let lines: String = assumptions.iter().map(line).collect();
    format!("\n{BOLD}What this takes for granted{BOLD:#}\n{lines}\n")
}

/// Each comparison so far in a line of its own, for progress: a factor before there can be an interval.
pub fn so_far(conclusion: &Conclusion) -> Vec<String> {
    let comparisons = &conclusion.comparisons;
    let several = comparisons.iter().any(|other| other.metric != comparisons[0].metric);
    let line = |comparison: &Comparison| {
        let so_far = match (&comparison.estimate, comparison.without_spread) {
            _ if comparison.no_success.is_some() => comparison.no_success.clone()?,
            (Some(estimate), _) => {
                let (value, interval) = change(estimate);
                format!("{value} ({interval})")
            }
            (None, Some(ratio)) => format!("{} in every block, so no interval", factor(ratio)),
            // Even a ratio would be a look.
            (None, None) if conclusion.awaits_look => "nothing is shown before the end".to_owned(),
            (None, None) => format!("{} (no interval yet)", change_alone(comparison.ratio_so_far?, 0)),
        };
        let metric = if several { format!(", {}", metric_name(comparison.metric)) } else { String::new() };
        Some(format!("{}{metric}: {so_far}", comparison.label))
    };
    comparisons.iter().filter_map(line).collect()
}

fn answer_text(answer: &Answer, width: usize) -> String {
    let indented = |text: &str| wrapped(text, "    ", "    ", width);
    let also = answer.also.iter().map(|also| indented(&format!("also {also}, not judged")));
    let also: String = also.collect();
    let heading = format!("{BOLD}{}{BOLD:#}", answer.comparison);
    let text = match answer.judged.as_slice() {
        [one] => {
            let verdict = verdict(style(one.outcome), &one.verdict, 0);
            format!("{verdict}  {heading}\n{}", indented(&one.detail))
        }
        several => {
            let lines = several.iter().map(|one| (style(one.outcome), &*one.verdict, one.detail.clone()));
            format!("{heading}\n{}", verdicts(&lines.collect::<Vec<_>>(), "    ", width))
        }
    };
    format!("{text}{FAINT}{also}{FAINT:#}")
}

fn effects_text(effects: &Effects, width: usize) -> String {
    let widest = effects.lines.iter().map(|line| line.detail.chars().count()).max().unwrap_or(0);
    let lines = effects.lines.iter().map(|line| {
        let there = matches!(line.outcome, Outcome::Better | Outcome::Worse);
        // That two factors depend on each other is neither good nor bad.
        let style = if line.kind == Kind::Interaction && there { THERE } else { style(line.outcome) };
        (style, &*line.verdict, format!("{:widest$}  {}", line.detail, line.label))
    });
    let lines = verdicts(&lines.collect::<Vec<_>>(), "  ", width);
    let note = effects.note.iter().map(|note| wrapped(note, "  ", "  ", width)).collect::<String>();
    let heading = wrapped(&effects.heading, "", "", width);
    format!("{BOLD}{}{BOLD:#}\n{lines}{FAINT}{note}{FAINT:#}\n", heading.trim_end())
}

/// Lines that begin with a verdict, one below the other.
fn verdicts(lines: &[(Style, &str, String)], indent: &str, width: usize) -> String {
    let widest = lines.iter().map(|(_, word, _)| word.chars().count()).max().unwrap_or(0);
    let rest = " ".repeat((indent.len() + widest + 2).min(INDENT_MAX));
    let line = |(style, word, text): &(Style, &str, String)| {
        // Wrapped with the verdict in it, so that it counts; textwrap knows that colours have no width.
        wrapped(&format!("{}  {text}", verdict(*style, word, widest)), indent, &rest, width)
    };
    lines.iter().map(line).collect()
}

fn verdict(style: Style, word: &str, width: usize) -> String {
    format!("{style}{:width$}{style:#}", word.to_uppercase())
}

/// The colour of a verdict.
pub(crate) fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Better => AnsiColor::Green.on_default().bold(),
        Outcome::Worse | Outcome::Void | Outcome::NoSuccess => AnsiColor::Red.on_default().bold(),
        Outcome::Equivalent => AnsiColor::Cyan.on_default().bold(),
        Outcome::Inconclusive => AnsiColor::Yellow.on_default().bold(),
    }
}

fn cells(rows: &[Row]) -> impl Iterator<Item = &Vec<String>> {
    rows.iter().map(|row| &row.cells)
}
