//! Makes a report fit a comment: where it is too long lines are left out, the least needed first, and each place says how many.

/// Characters that GitHub takes in a comment.
pub(super) const CHARACTERS_MAX: usize = 65_536;
/// Kept for a section's word on what was left out of it; the record's path stands in it as well.
const NOTE_MAX: usize = 200;
/// Lines that a section keeps as long as others have more.
const LINES_KEPT: usize = 25;

/// A part of the report.
#[derive(Debug)]
pub(super) struct Section {
    opening: String,
    lines: Vec<String>,
    closing: String,
    /// What its lines are, in the plural.
    what: &'static str,
    /// Those with the lowest number are cut first; `None` is never cut.
    rank: Option<u8>,
    /// Lines that were left out.
    gone: usize,
}

impl Section {
    /// One that stays as it is.
    pub fn whole(text: String) -> Section {
        Section { opening: text, lines: Vec::new(), closing: String::new(), what: "", rank: None, gone: 0 }
    }

    /// One whose last lines may be left out; without lines it is nothing.
    pub fn lines(opening: &str, lines: impl Iterator<Item = String>, closing: &str) -> Section {
        let lines: Vec<String> = lines.collect();
        let part = |text: &str| if lines.is_empty() { String::new() } else { text.to_owned() };
        Section {
            opening: part(opening),
            closing: part(closing),
            lines,
            what: "lines",
            rank: Some(0),
            gone: 0,
        }
    }

    /// The same with what its lines are, and when they are cut.
    pub fn called(self, what: &'static str, rank: u8) -> Section {
        Section { what, rank: Some(rank), ..self }
    }

    fn length(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| length(line)).sum();
        let note = if self.gone > 0 { NOTE_MAX } else { 0 };
        length(&self.opening) + lines + note + length(&self.closing)
    }

    /// Leaves out its last lines until so many characters are gone, or only so many lines are left.
    fn shorten(&mut self, over: usize, keep: usize) {
        let mut room = over + NOTE_MAX;
        while room > 0 && self.lines.len() > keep {
            room = room.saturating_sub(self.lines.pop().map_or(0, |line| length(&line)));
            self.gone += 1;
        }
    }

    fn written(&self, record: &str) -> String {
        let note = match self.gone {
            0 => String::new(),
            gone => {
                format!("\n… and {gone} more {}: `proofload report` {record} `--format text`\n", self.what)
            }
        };
        format!("{}{}{note}{}", self.opening, self.lines.concat(), self.closing)
    }
}

/// As GitHub counts at worst: a character outside the first plane as two.
fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// All sections, shortened where they must be.
pub(super) fn fit(mut sections: Vec<Section>, record: &str) -> String {
    // A path of any length would be no help in a note.
    let path = if record.is_empty() || record.len() > NOTE_MAX / 2 { "RECORD" } else { record };
    let mut order: Vec<usize> = (0..sections.len()).filter(|index| sections[*index].rank.is_some()).collect();
    order.sort_by_key(|index| sections[*index].rank);
    // A few lines of everything tell more than all of one.
    for (keep, index) in
        [LINES_KEPT, 0].into_iter().flat_map(|keep| order.iter().map(move |index| (keep, *index)))
    {
        let total: usize = sections.iter().map(Section::length).sum();
        if total <= CHARACTERS_MAX {
            break;
        }
        sections[index].shorten(total - CHARACTERS_MAX, keep);
    }
    sections.iter().map(|section| section.written(path)).collect()
}
