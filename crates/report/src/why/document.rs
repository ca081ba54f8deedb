//! What captures tell of the differences, as a document: the words in sight, the tables folded away.

use analysis::Grade;
use explain::Explanation;

use super::Why;
use crate::document::{Block, Document, Line, Remark, Table, Tone};

/// The section.
pub fn document(explanation: &Explanation) -> Document {
    let why = Why::new(explanation);
    let mut blocks = Vec::new();
    for reason in &why.reasons {
        blocks.push(Block::Heading(Tone::Strong, reason.heading.clone()));
        let sentences = [&reason.reconciliation].into_iter().chain(&reason.story).chain(&reason.waiting);
        blocks.extend(sentences.map(|text| Block::Paragraph(Tone::Plain, text.clone())));
    }
    let titled = why.reasons.iter().flat_map(|reason| {
        let heading = |of: &super::Table| format!("{}: {}", reason.heading, of.heading);
        reason.tables.iter().map(move |of| Table { heading: heading(of), ..of.typed() })
    });
    let own = why.spent.iter().chain(&why.waiting).map(super::Table::typed);
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
    blocks.retain(|block| !block.is_empty());
    Document { title: "Where the time goes".to_owned(), headline: None, blocks }
}
