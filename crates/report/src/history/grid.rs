//! Rows whose columns line up, by what characters are wide, and text that is cut to fit.
//!
//! Text from records may be anybody's: what would steer a terminal is shown as a mark.

use anstyle::Style;
use textwrap::core::display_width;

/// Columns between two cells.
const GAP: usize = 2;

/// A cell: its text and how it looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub text: String,
    pub style: Style,
    /// Whether it ends where its column ends, as figures do.
    pub right: bool,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: clean(&text.into()), ..Cell::default() }
    }

    pub fn figure(text: impl Into<String>) -> Cell {
        Cell { right: true, ..Cell::text(text) }
    }

    pub fn styled(self, style: Style) -> Cell {
        Cell { style, ..self }
    }
}

/// Without what would steer a terminal, also where a name was made up to do that.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The widths of the columns of all rows.
pub(super) fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| display_width(&cell.text)).max().unwrap_or(0)
    };
    (0..columns).map(widest).collect()
}

/// Columns that rows of such widths take.
pub(super) fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// The rows, each a line.
pub(super) fn lines(rows: &[Vec<Cell>]) -> String {
    let widths = widths(rows);
    let line = |row: &Vec<Cell>| {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blanks = " ".repeat(width - display_width(&cell.text));
            let text = format!("{}{}{:#}", cell.style, cell.text, cell.style);
            // Nothing stands behind the last one, so that no line ends in blanks.
            let (before, behind) = match (cell.right, index + 1 == row.len()) {
                (true, _) => (blanks.as_str(), ""),
                (false, true) => ("", ""),
                (false, false) => ("", blanks.as_str()),
            };
            let gap = if index > 0 { " ".repeat(GAP) } else { String::new() };
            line += &format!("{gap}{before}{text}{behind}");
        }
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A text that is at most so wide: its middle is left out, for names begin with what and end with when.
pub(super) fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let tail_room = room.min(16).min(room * 2 / 3);
    let tail: Vec<char> = fitting(text.chars().rev(), tail_room);
    let head: String = fitting(text.chars(), room - tail_room).into_iter().collect();
    format!("{head}…{}", tail.into_iter().rev().collect::<String>())
}

/// A text that is at most so wide: its end is left out.
pub(super) fn cut_end(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    fitting(text.chars(), width.saturating_sub(1)).into_iter().collect::<String>() + "…"
}

fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += display_width(c.encode_utf8(&mut [0; 4]));
        taken <= room
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_keeps_both_ends_and_fits_whatever_the_characters() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a-very-long-experiment-20261121-145057", 24), "a-very-l…20261121-145057");
        for text in ["配置配置配置配置配置-20261121-145057", "a-very-long-name-of-an-experiment"] {
            for width in 0..20 {
                assert!(display_width(&cut(text, width)) <= width.max(1), "{width}: {}", cut(text, width));
                assert!(display_width(&cut_end(text, width)) <= width.max(1));
            }
        }
    }

    #[test]
    fn no_text_of_a_record_steers_the_terminal() {
        assert_eq!(Cell::text("a\x1b[31m\nb").text, "a\u{fffd}[31m\u{fffd}b");
    }
}
