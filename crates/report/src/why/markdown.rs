//! The section "Why" as Markdown that fits a pull request comment: the words in sight, the tables folded away.

use super::{Reason, Table, Why};
use crate::markdown::escaped;

/// The section.
pub(super) fn section(why: &Why) -> String {
    let mut out = "\n### Why\n\n".to_owned();
    out.extend(why.reasons.iter().map(words));
    let tables: Vec<String> =
        why.reasons.iter().flat_map(titled).chain(why.spent.iter().chain(&why.waiting).map(table)).collect();
    if !tables.is_empty() {
        out +=
            &format!("\n<details><summary>Where the time goes</summary>\n{}\n</details>\n", tables.concat());
    }
    if !why.method.is_empty() {
        out.push('\n');
    }
    out.extend(why.method.iter().map(|(name, line)| format!("- {name}: {}\n", escaped(line))));
    for (evidence, remedy) in &why.doubts {
        out += &format!("\n> **Note**: {}. {}\n", escaped(evidence.trim_end_matches('.')), escaped(remedy));
    }
    out
}

fn words(reason: &Reason) -> String {
    let more = reason.story.iter().chain(&reason.waiting).map(|text| format!("<br>{}", escaped(text)));
    let more: String = more.collect();
    format!("- **{}**: {}{more}\n", escaped(&reason.heading), escaped(&reason.reconciliation))
}

fn titled(reason: &Reason) -> Vec<String> {
    let title = |of: &Table| Table { heading: format!("{}: {}", reason.heading, of.heading), ..of.clone() };
    reason.tables.iter().map(|of| table(&title(of))).collect()
}

fn table(of: &Table) -> String {
    let line = |cells: &[String]| {
        // An arrow's indentation would be lost, and is none of the name.
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell.trim())).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let figures = of.columns.len().saturating_sub(of.names);
    let rule = format!("|{}{}\n", "---|".repeat(of.names), "--:|".repeat(figures));
    let rows: String = of.rows.iter().map(|row| line(row)).collect();
    format!("\n{}:\n\n{}{rule}{rows}", escaped(&of.heading), line(&of.columns))
}
