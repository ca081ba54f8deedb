//! The first screen of a load: what was asked, what came of it, how long it took, and what makes that doubtful.

use analysis::Window;
use model::document::{Block, Document, Line, Tone};

use super::{Loaded, kinds, requests, service};
use crate::experiment::{invalid, warnings};
use crate::form::Report;

impl Loaded<'_> {
    /// Of several steps, and with the longer distribution, it is the whole.
    pub(super) fn first_screen(&self) -> Document {
        let of = analysis::measurement(self.record()).filter(|_| !self.distribution);
        let Some((of, window)) = of.as_ref().and_then(|of| Some((of, of.only()?))) else {
            return self.document();
        };
        let findings = &self.measured.conclusion.findings;
        let mut blocks = vec![Block::Paragraph(Tone::Plain, self.asked(of).join(", ")), invalid(findings)];
        blocks.extend(super::capacity(of).map(|line| Block::Lines(vec![line])));
        blocks.extend([
            Block::Lines(lines(window)),
            // What a user waits, or what a request took where nobody waits.
            Block::Table(super::latencies(&kinds(window)[..1])),
            Block::Lines(warnings(findings)),
        ]);
        let notes = self.notes(of).into_iter().chain(self.differences.iter().cloned());
        blocks.extend(notes.map(|note| Block::Paragraph(Tone::Faint, note)));
        Document::new(self.title(), blocks)
    }
}

fn lines(window: &Window<'_>) -> Vec<Line> {
    let mut lines = vec![Line::new("requests", requests(window)), super::throughput(window)];
    lines.extend(super::verdict(window));
    lines.extend(service(window).map(|used| Line::new("service", used)));
    lines.extend(super::outcomes(window));
    lines.extend(super::errors(window));
    lines.extend(window.slice.counts.tls_error.as_ref().map(|error| Line::new("TLS error", error.clone())));
    lines
}
