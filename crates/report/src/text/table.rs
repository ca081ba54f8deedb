//! A table in the room there is: columns that may be spared go first, then names are cut or broken; drawings take what is left.

use anstyle::Style;
use model::quantity::Unit;
use textwrap::core::display_width;

use super::course;
use crate::axis::Axis;
use crate::document::{Cell, Column, Fit, Row, Table, Tone};
use crate::drawing::{styled, wrapped};
use crate::names::line as clean;

/// Columns between two cells.
const GAP: usize = 3;
/// Narrowest column of names, and of a drawing.
const NAME_MIN: usize = 12;
const DRAWING_MIN: usize = 8;
/// Widest drawing: more is no more exact.
const DRAWING_MAX: usize = 60;

/// A cell that is drawn: its lines, and how they look.
struct Drawn {
    lines: Vec<String>,
    style: Style,
}

/// The table in lines of at most `width` columns where that can be, below its heading.
pub(crate) fn drawn(table: &Table, width: usize) -> String {
    let mut out = String::new();
    if !table.heading.is_empty() {
        out += &styled(Tone::Strong.style(), wrapped(&clean(&table.heading), "", "", width).trim_end());
        out.push('\n');
    }
    let texts: Vec<Vec<String>> =
        table.texts().iter().map(|row| row.iter().map(|text| clean(text)).collect()).collect();
    let (kept, widths) = layout(table, &texts, width);
    let axes: Vec<_> = (0..table.columns.len()).map(|at| course::axis_of(table, at)).collect();
    let headings =
        kept.iter().zip(&widths).map(|(at, width)| heading(&table.columns[*at], axes[*at], *width));
    let align = |at: &usize| table.columns[*at].fit == Fit::Figure;
    let right: Vec<bool> = kept.iter().map(align).collect();
    out += &row(&headings.collect::<Vec<_>>(), &right, &widths);
    let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) + 2;
    out += &format!("{}\n", "─".repeat(total.min(width)));
    let mut texts = texts.iter();
    for of in &table.rows {
        match of {
            Row::Note(tone, text) => {
                let text = cut(&format!(" {}", clean(text)), width, Fit::CutEnd);
                out += &(styled(tone.style(), &text) + "\n");
            }
            Row::Cells(cells) => {
                let Some(texts) = texts.next() else { continue };
                let cell = |(at, width): (&usize, &usize)| {
                    let of = (&cells[*at], texts[*at].as_str());
                    cell(of, table.columns[*at].fit, axes[*at], *width)
                };
                out += &row(&kept.iter().zip(&widths).map(cell).collect::<Vec<_>>(), &right, &widths);
            }
        }
    }
    out
}

/// The columns that are shown, and how wide each is.
fn layout(table: &Table, texts: &[Vec<String>], width: usize) -> (Vec<usize>, Vec<usize>) {
    let natural = |at: usize| {
        let cells = texts.iter().map(|row| display_width(&row[at]));
        let least = if table.columns[at].fit == Fit::Drawing { DRAWING_MIN } else { 0 };
        cells.max().unwrap_or(0).max(display_width(&table.columns[at].heading)).max(least)
    };
    let total = |kept: &[usize], of: &dyn Fn(usize) -> usize| {
        kept.iter().map(|at| of(*at)).sum::<usize>() + GAP * kept.len().saturating_sub(1) + 1
    };
    // What names need at least: one long name must not cost all others their columns.
    let needed = |at: usize| match table.columns[at].fit {
        Fit::Figure | Fit::Whole | Fit::Drawing => natural(at),
        Fit::Wrapped | Fit::CutEnd | Fit::CutStart | Fit::CutMiddle => natural(at).min(width * 2 / 5),
    };
    let mut kept: Vec<usize> = (0..table.columns.len()).collect();
    while total(&kept, &needed) > width {
        let spare = |at: &&usize| table.columns[**at].spare;
        let Some(last) = kept.iter().filter(|at| spare(at) > 0).max_by_key(spare).copied() else { break };
        kept.retain(|at| *at != last);
    }
    let mut widths: Vec<usize> = kept.iter().map(|at| natural(*at)).collect();
    let mut over =
        (widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1) + 1).saturating_sub(width);
    let gives = |at: usize| {
        matches!(table.columns[at].fit, Fit::Wrapped | Fit::CutEnd | Fit::CutStart | Fit::CutMiddle)
    };
    while over > 0 {
        let widest = (0..kept.len()).filter(|place| gives(kept[*place]) && widths[*place] > NAME_MIN);
        let Some(widest) = widest.max_by_key(|place| widths[*place]) else { break };
        widths[widest] -= 1;
        over -= 1;
    }
    let used = widths.iter().sum::<usize>() + GAP * kept.len().saturating_sub(1) + 1;
    let drawing = |place: &usize| table.columns[kept[*place]].fit == Fit::Drawing;
    if let Some(place) = (0..kept.len()).find(drawing) {
        widths[place] = (widths[place] + width.saturating_sub(used)).min(DRAWING_MAX);
    }
    (kept, widths)
}

/// What stands above a column: above intervals, the ends of their axis.
fn heading(column: &Column, axis: Option<(Axis, Unit)>, width: usize) -> Drawn {
    let ends = axis.and_then(|axis| course::ends(axis, width));
    Drawn { lines: vec![ends.unwrap_or_else(|| column.heading.clone())], style: Style::new() }
}

fn cell((cell, text): (&Cell, &str), fit: Fit, axis: Option<(Axis, Unit)>, width: usize) -> Drawn {
    let plain = |lines| Drawn { lines, style: Style::new() };
    match cell {
        Cell::Word(tone, _) => Drawn { lines: vec![cut(text, width, fit)], style: tone.style() },
        Cell::Interval(value, interval) => {
            let bar = axis.map(|axis| course::bar(axis, (value.value, *interval), width));
            plain(vec![bar.unwrap_or_default()])
        }
        Cell::Course(values, breaks) => plain(vec![course::line(values, breaks, width)]),
        Cell::Missing | Cell::Text(_) | Cell::Figure(_) | Cell::AtLeast(_) => plain(match fit {
            Fit::Wrapped => broken(text, width),
            _ => vec![cut(text, width, fit)],
        }),
    }
}

/// A text in lines, its first one's indent kept.
fn broken(text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(text.chars().take_while(|c| *c == ' ').count());
    let options = textwrap::Options::new(width).initial_indent(&indent).subsequent_indent(&indent);
    textwrap::wrap(text.trim_start(), options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// The lines of a row: as many as its highest cell has.
fn row(cells: &[Drawn], right: &[bool], widths: &[usize]) -> String {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
    let mut out = String::new();
    for at in 0..height {
        let mut line = String::new();
        for ((cell, right), width) in cells.iter().zip(right).zip(widths) {
            let text = cell.lines.get(at).map_or("", String::as_str);
            let blanks = " ".repeat(width.saturating_sub(display_width(text)));
            let text = if text.is_empty() { String::new() } else { styled(cell.style, text) };
            let gap = " ".repeat(if line.is_empty() { 1 } else { GAP });
            line += &if *right { format!("{gap}{blanks}{text}") } else { format!("{gap}{text}{blanks}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// A text that is at most so wide.
pub(crate) fn cut(text: &str, width: usize, fit: Fit) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let end = |room| fitting(text.chars().rev(), room).into_iter().rev().collect::<String>();
    let begin = |room| fitting(text.chars(), room).into_iter().collect::<String>();
    match fit {
        Fit::Figure | Fit::Whole | Fit::Wrapped | Fit::Drawing => text.to_owned(),
        Fit::CutEnd => format!("{}…", begin(room)),
        Fit::CutStart => format!("…{}", end(room)),
        Fit::CutMiddle => {
            let tail = room.min(16).min(room * 2 / 3);
            format!("{}…{}", begin(room - tail), end(tail))
        }
    }
}

fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += display_width(c.encode_utf8(&mut [0; 4]));
        taken <= room
    };
    characters.take_while(fits).collect()
}

/// Rows of text below headings; those columns after the first `names` are figures.
pub fn plain<'a>(columns: &[String], rows: impl Iterator<Item = &'a Vec<String>>, names: usize) -> String {
    let column = |(at, heading): (usize, &String)| match at < names {
        true => Column::text(heading, Fit::Whole),
        false => Column::figure(heading),
    };
    let mut table = Table::new("", columns.iter().enumerate().map(column).collect());
    rows.for_each(|row| table.push(row.iter().map(Cell::text).collect()));
    drawn(&table, usize::MAX).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_keeps_both_ends_and_fits_whatever_the_characters() {
        let cut = |text, width| cut(text, width, Fit::CutMiddle);
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("a-very-long-experiment-20261121-145057", 24), "a-very-l…20261121-145057");
        for text in ["配置配置配置配置配置-20261121-145057", "a-very-long-name-of-an-experiment"] {
            for width in 0..20 {
                assert!(display_width(&cut(text, width)) <= width.max(1), "{width}: {}", cut(text, width));
            }
        }
    }

    #[test]
    fn a_narrow_table_spares_columns_and_then_cuts_names() {
        let columns = vec![
            Column::text("name", Fit::CutEnd),
            Column::figure("much").spare(1),
            Column::figure("less").spare(2),
        ];
        let mut table = Table::new("", columns);
        table.push(vec![Cell::text("a name that is rather long"), Cell::text("1"), Cell::text("2")]);
        assert!(drawn(&table, 60).contains("less"));
        let narrow = drawn(&table, 22);
        assert!(!narrow.contains("less") && narrow.contains('…'), "{narrow}");
        assert!(narrow.lines().all(|line| display_width(line) <= 22), "{narrow}");
    }
}
