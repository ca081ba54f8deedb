//! What captures tell of the differences, as blocks: the words in sight, the tables folded away.

use analysis::Grade;
use explain::Explanation;

use crate::document::{Block, Cell, Column, Fit, Line, Remark, Table, Tone};
use crate::why::{self, Why};

/// The section.
pub(super) fn blocks(explanation: &Explanation) -> Vec<Block> {
    let why = Why::new(explanation);
    let mut blocks = vec![Block::Heading(Tone::Strong, "Where the time goes".to_owned())];
    for reason in &why.reasons {
        blocks.push(Block::Paragraph(Tone::Strong, reason.heading.clone()));
        let sentences = [&reason.reconciliation].into_iter().chain(&reason.story).chain(&reason.waiting);
        blocks.extend(sentences.map(|text| Block::Paragraph(Tone::Plain, text.clone())));
    }
    let titled = why.reasons.iter().flat_map(|reason| {
        reason.tables.iter().map(|of| table(of, format!("{}: {}", reason.heading, of.heading)))
    });
    let own = why.spent.iter().chain(&why.waiting).map(|of| table(of, of.heading.clone()));
    let tables: Vec<Block> = titled.chain(own).map(Block::Table).collect();
    blocks.push(Block::Folded("Functions, packages and waiting".to_owned(), tables));
    blocks.push(Block::Lines(why.method.iter().map(|(name, text)| Line::new(name, text)).collect()));
    let doubt = |(seen, remedy): &(String, String)| Remark {
        grade: Grade::Note,
        mark: None,
        statement: seen.trim_end_matches('.').to_owned(),
        cases: Vec::new(),
        remedy: remedy.clone(),
    };
    blocks.push(Block::Findings(why.doubts.iter().map(doubt).collect(), None));
    blocks
}

/// A table of names and figures: the first name is cut at its end where room is short, others at their beginning.
fn table(of: &why::Table, heading: String) -> Table {
    let column = |(at, heading): (usize, &String)| match at {
        0 => Column::text(heading, Fit::CutEnd),
        at if at < of.names => Column::text(heading, Fit::CutStart),
        _ => Column::figure(heading),
    };
    let mut table = Table::new(heading, of.columns.iter().enumerate().map(column).collect());
    of.rows.iter().for_each(|row| table.push(row.iter().map(Cell::text).collect()));
    table
}
