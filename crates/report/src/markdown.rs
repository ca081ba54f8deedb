//! A sheet as Markdown that fits a pull request comment: the answer in the first line, then the figures, then what qualifies them,
//! and folded away how it was measured.

use analysis::{Assumption, Grade, Standing};

use crate::names::cut;
use crate::sheet::{Answer, Effects, Part, Remark, Row, Sheet};
use crate::why::Why;

mod headline;
mod room;

use room::Section;

/// Characters of one text that are shown: names and answers of services may have any number.
const TEXT_MAX: usize = 1_000;

/// The whole report, of no more characters than a comment on GitHub may have.
pub fn markdown(sheet: &Sheet) -> String {
    let title = format!("{}\n\n{}\n", headline::headline(&sheet.answers), escaped(&sheet.title));
    let mut sections = vec![Section::whole(title)];
    let alone = sheet.answers.len() == 1;
    let answers = sheet.answers.iter().filter_map(|answer| answer_text(answer, alone));
    sections.push(Section::lines("\n", answers, "").called("comparisons", 6));
    sections.push(table("", &sheet.columns, &sheet.rows, 1).called("variants", 5));
    sections.push(Section::lines("", findings(sheet), "").called("findings", 7));
    sections.extend(sheet.effects.as_ref().map(|effects| effects_text(effects).called("effects", 4)));
    sections.extend(sheet.parts.iter().map(|part| part_text(part).called("lines", 3)));
    let why = sheet.why.as_ref().map(Why::markdown);
    sections.push(Section::lines("", why.into_iter(), "").called("sections on where the time goes", 2));
    sections.push(folded(sheet).called("lines", 1));
    let record = sheet.place.iter().find(|(name, _)| name == "record").map(|(_, path)| escaped(path));
    room::fit(sections, &record.unwrap_or_default())
}

/// A comparison below the first line; nothing where it is alone and that line has said it all.
fn answer_text(answer: &Answer, alone: bool) -> Option<String> {
    if let ([one], [], true) = (answer.judged.as_slice(), answer.also.as_slice(), alone)
        && one.estimate.as_ref() == Some(&one.detail)
    {
        return None;
    }
    let comparison = escaped(&answer.comparison);
    let mut out = match answer.judged.as_slice() {
        [one] => format!("- **{}**: {comparison}: {}", one.verdict, escaped(&one.detail)),
        several => {
            let lines =
                several.iter().map(|one| format!("<br>**{}**: {}", one.verdict, escaped(&one.detail)));
            format!("- {comparison}:{}", lines.collect::<String>())
        }
    };
    out.extend(answer.also.iter().map(|also| format!("<br>also {}, not judged", escaped(also))));
    Some(out + "\n")
}

fn findings(sheet: &Sheet) -> impl Iterator<Item = String> {
    let explained = sheet.explained_by.iter().map(|command| {
        // Numbers of checks alone: nothing in it is from outside.
        format!("\nWhy, and what else may be done: `{command}`\n")
    });
    sheet.findings.iter().map(finding).chain(explained)
}

fn finding(finding: &Remark) -> String {
    let grade = match finding.grade {
        Grade::Void => "Void",
        Grade::Warning => "Warning",
        Grade::Note => "Note",
        Grade::Fine => "Fine",
    };
    let number = finding.number.map(|number| format!(" {number}")).unwrap_or_default();
    let (evidence, remedy) = (escaped(&finding.evidence), escaped(&finding.remedy));
    format!("\n> **{grade}{number}**: {evidence}. {remedy}\n")
}

fn effects_text(effects: &Effects) -> Section {
    let line = |line: &crate::sheet::EffectLine| {
        format!("- **{}**: {}: {}\n", line.verdict, escaped(&line.label), escaped(&line.detail))
    };
    let note = effects.note.iter().map(|note| format!("- {}\n", escaped(note)));
    let heading = format!("\n{}:\n\n", escaped(&effects.heading));
    Section::lines(&heading, effects.lines.iter().map(line).chain(note), "")
}

fn part_text(part: &Part) -> Section {
    table(&format!("\n{}:\n", escaped(&part.heading)), &part.columns, &part.rows, 2)
}

/// A table whose first `names` columns are text; the others are figures.
fn table(heading: &str, columns: &[String], rows: &[Row], names: usize) -> Section {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let figures = columns.len().saturating_sub(names);
    let rule = format!("|{}{}\n", "---|".repeat(names), "--:|".repeat(figures));
    Section::lines(
        &format!("{heading}\n{}{rule}", line(columns)),
        rows.iter().map(|row| line(&row.cells)),
        "",
    )
}

/// How it was measured, and what it takes for granted.
fn folded(sheet: &Sheet) -> Section {
    let named = |(name, line): &(String, String)| format!("- {name}: {}\n", escaped(line));
    let assumption = |assumption: &Assumption| {
        let standing = match assumption.standing {
            Standing::Doubtful => "**doubtful**",
            Standing::Unchecked => "unchecked",
            Standing::Supported => "supported",
        };
        let (statement, evidence) = (escaped(&assumption.statement), escaped(&assumption.evidence));
        format!("- {standing}: {statement}: {evidence}\n")
    };
    let lines = sheet.place.iter().map(named).chain(sheet.method.iter().map(named));
    let lines = lines.chain(sheet.assumptions.iter().map(assumption));
    let opening = "\n<details><summary>How it was measured, and what it takes for granted</summary>\n\n";
    Section::lines(opening, lines, "\n</details>\n")
}

/// Text from an experiment file or a service's answer, made harmless in Markdown and the HTML inside it: no markup, no link, no
/// formula, and nobody is called by it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in cut(text.replace(['\n', '\r', '\t'], " ").as_str(), TEXT_MAX).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            // A comment between it and the name: GitHub tells people whose name follows the sign.
            '@' if !before.is_alphanumeric() => out += "@<!-- -->",
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}
