//! A sheet as Markdown that fits a pull request comment.

use audit::{Grade, Standing};

use crate::sheet::{Answer, Effects, Row, Sheet};
use crate::why::Why;

/// The whole report.
pub fn markdown(sheet: &Sheet) -> String {
    let mut out = format!("## {}\n\n", escaped(&sheet.title));
    out.extend(sheet.answers.iter().map(answer_text));
    out += &sheet.effects.as_ref().map(effects_text).unwrap_or_default();
    out += &format!("\n{}", table(&sheet.columns, &sheet.rows, 1));
    for part in &sheet.parts {
        out += &format!("\n{}:\n\n{}", escaped(&part.heading), table(&part.columns, &part.rows, 2));
    }
    out += &sheet.why.as_ref().map(Why::markdown).unwrap_or_default();
    for finding in &sheet.findings {
        let grade = match finding.grade {
            Grade::Void => "Void",
            Grade::Warning => "Warning",
            Grade::Note => "Note",
        };
        let number = finding.number.map(|number| format!(" {number}")).unwrap_or_default();
        let (evidence, remedy) = (escaped(&finding.evidence), escaped(&finding.remedy));
        out += &format!("\n> **{grade}{number}**: {evidence}. {remedy}\n");
    }
    if let Some(command) = &sheet.explained_by {
        out += &format!("\nWhy, and what else may be done: `{command}`\n");
    }
    out += "\n<details><summary>How it was measured, and what it takes for granted</summary>\n\n";
    let named = |(name, line): &(String, String)| format!("- {name}: {}\n", escaped(line));
    out.extend(sheet.method.iter().map(named));
    for assumption in &sheet.assumptions {
        let standing = match assumption.standing {
            Standing::Doubtful => "**doubtful**",
            Standing::Unchecked => "unchecked",
            Standing::Supported => "supported",
        };
        let (statement, evidence) = (escaped(&assumption.statement), escaped(&assumption.evidence));
        out += &format!("- {standing}: {statement}: {evidence}\n");
    }
    out.extend(sheet.place.iter().map(named));
    out += "\n</details>\n";
    out
}

fn answer_text(answer: &Answer) -> String {
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
    out + "\n"
}

fn effects_text(effects: &Effects) -> String {
    let mut out = format!("\n{}:\n\n", escaped(&effects.heading));
    for line in &effects.lines {
        out += &format!("- **{}**: {}: {}\n", line.verdict, escaped(&line.label), escaped(&line.detail));
    }
    out.extend(effects.note.iter().map(|note| format!("- {}\n", escaped(note))));
    out
}

/// A table whose first `names` columns are text; the others are figures.
fn table(columns: &[String], rows: &[Row], names: usize) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let figures = columns.len().saturating_sub(names);
    let rule = format!("|{}{}\n", "---|".repeat(names), "--:|".repeat(figures));
    let rows: String = rows.iter().map(|row| line(&row.cells)).collect();
    line(columns) + &rule + &rows
}

/// Text from an experiment file or a service's answer, made harmless in Markdown and the HTML inside it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
