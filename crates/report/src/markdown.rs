//! A sheet as Markdown that fits a pull request comment.

use audit::Grade;

use crate::sheet::Sheet;

/// The whole report.
pub fn markdown(sheet: &Sheet) -> String {
    let mut out = format!("## {}\n\n", escaped(&sheet.title));
    for answer in &sheet.answers {
        let also: String =
            answer.also.iter().map(|also| format!("<br>also {}, not judged", escaped(also))).collect();
        let (comparison, detail) = (escaped(&answer.comparison), escaped(&answer.detail));
        out += &format!("- **{}**: {comparison}: {detail}{also}\n", answer.verdict);
    }
    out += &format!("\n{}", table(sheet));
    for finding in &sheet.findings {
        let grade = match finding.grade {
            Grade::Void => "Void",
            Grade::Warning => "Warning",
            Grade::Note => "Note",
        };
        out += &format!("\n> **{grade}**: {}. {}\n", escaped(&finding.evidence), escaped(&finding.remedy));
    }
    out += "\n<details><summary>How it was measured</summary>\n\n";
    for (name, line) in &sheet.method {
        out += &format!("- {name}: {}\n", escaped(line));
    }
    out += "\n</details>\n";
    out
}

fn table(sheet: &Sheet) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|---{}|\n", "|--:".repeat(sheet.columns.len().saturating_sub(1)));
    let rows: String = sheet.rows.iter().map(|row| line(&row.cells)).collect();
    line(&sheet.columns) + &rule + &rows
}

/// Text from an experiment file or a service's answer, made harmless in Markdown and the HTML inside it.
fn escaped(text: &str) -> String {
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
