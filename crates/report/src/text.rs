//! A document as text for a terminal. Colours are ANSI sequences, which the caller strips if necessary.
//!
//! Texts are untrusted: terminal control characters are shown as a mark. A table uses the available width:
//! optional columns are dropped first, then names are truncated or wrapped, and drawings take the rest. This
//! module does not know the meaning of the contents.

use anstyle::{AnsiColor, Style};
use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Remark, Table, TableRow,
    Tone, VerdictBlock,
};
use model::quantity::{Quantity, Unit, interval};
use model::text::{code_spans, line as clean};
use textwrap::core::display_width;

use crate::axis::Axis;
use crate::chart::chart_drawn;

/// Maximum indentation of lines below a verdict, so that narrow terminals have room for them.
const INDENT_MAX: usize = 24;
/// Maximum width of names before lines.
const NAMES_MAX: usize = 16;

/// The whole document, in lines of at most `width` columns if possible.
pub fn text(document: &Document, width: usize) -> String {
    let title = wrapped(&clean(&document.title), "", "", width);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", title.trim_end());
    let mut before = None;
    blocks(&document.blocks, &mut before, width, &mut out);
    out
}

/// All blocks, with an empty line between unrelated ones.
fn blocks<'a>(
    all: &'a [DocumentPart],
    before: &mut Option<&'a DocumentPart>,
    width: usize,
    out: &mut String,
) {
    for block in all {
        if let DocumentPart::Folded(_, inner) = block {
            blocks(inner, before, width, out);
            continue;
        }
        let joined = match (&*before, block) {
            (Some(DocumentPart::Heading(..)), _) => true,
            (Some(DocumentPart::Paragraph(one, _)), DocumentPart::Paragraph(other, _)) => {
                one == other
            }
            _ => false,
        };
        if !joined {
            out.push('\n');
        }
        *out += &drawn(block, width);
        *before = Some(block);
    }
}

/// Prose without control characters and without marks of code.
fn prose(text: &str) -> String {
    clean(&code_spans(text).concat())
}

fn drawn(block: &DocumentPart, width: usize) -> String {
    match block {
        DocumentPart::Heading(tone, text) => {
            let text = wrapped(&clean(text), "", "", width);
            styled(style(*tone), text.trim_end()) + "\n"
        }
        DocumentPart::Paragraph(tone, text) => {
            styled(
                style(*tone),
                wrapped(&prose(text), "", "", width).trim_end(),
            ) + "\n"
        }
        DocumentPart::Answers(answers) => answers.iter().map(|of| answer(of, width)).collect(),
        DocumentPart::Verdicts(answers) => verdicts(answers, width),
        DocumentPart::Table(table) => table_drawn(table, width),
        DocumentPart::Chart(chart) => {
            let (heading, drawn) = chart_drawn(chart, width);
            format!("{}\n{drawn}", styled(BOLD, &heading))
        }
        DocumentPart::Findings(all, command) => {
            let told = all.iter().map(|remark| finding(remark, width));
            let more = |command| {
                styled(
                    FAINT,
                    &wrapped(&format!("more: {command}"), "  ", "    ", width),
                )
            };
            told.chain(command.iter().map(more)).collect()
        }
        DocumentPart::Lines(all) => lines(all, width),
        DocumentPart::Steps(steps) => steps
            .iter()
            .map(|step| in_margin((FAINT, "next", NAMES), &clean(step), width))
            .collect(),
        DocumentPart::Folded(..) => String::new(),
    }
}

fn answer(answer: &QuestionAnswer, width: usize) -> String {
    let indented = |text: &str| wrapped(&prose(text), "    ", "    ", width);
    let subject = styled(BOLD, &clean(&answer.subject));
    let mut out = match answer.verdicts.as_slice() {
        [one] => {
            let detail = if one.detail.is_empty() {
                String::new()
            } else {
                indented(&one.detail)
            };
            wrapped(&format!("{}  {subject}", word(one, 0)), "", "    ", width) + &detail
        }
        several => {
            let widest = widest(several.iter());
            let rest = " ".repeat((4 + widest + 2).min(INDENT_MAX));
            // Wrapped with the verdict in it, so that it counts. Textwrap ignores the width of colours.
            let text =
                |one: &VerdictBlock| format!("{}  {}", word(one, widest), prose(&one.detail));
            let lines = several
                .iter()
                .map(|one| wrapped(&text(one), "    ", &rest, width));
            format!("{subject}\n{}", lines.collect::<String>())
        }
    };
    out.extend(
        answer
            .notes
            .iter()
            .map(|note| styled(FAINT, &indented(note))),
    );
    out
}

/// A verdict's word, padded to the column width.
fn word(of: &VerdictBlock, width: usize) -> String {
    styled(
        style(of.tone),
        &format!("{:width$}", of.word.to_uppercase()),
    )
}

fn widest<'a>(verdicts: impl Iterator<Item = &'a VerdictBlock>) -> usize {
    verdicts
        .map(|one| one.word.chars().count())
        .max()
        .unwrap_or(0)
}

/// Each verdict's word in its own column, followed by its subject, with notes below.
fn verdicts(answers: &[QuestionAnswer], width: usize) -> String {
    let all = || {
        answers
            .iter()
            .flat_map(|answer| answer.verdicts.iter().map(move |one| (answer, one)))
    };
    let widest = widest(all().map(|(_, one)| one));
    let margin = " ".repeat((widest + 2).min(INDENT_MAX));
    let line = |(answer, one): (&QuestionAnswer, &VerdictBlock)| {
        let subject = styled(BOLD, &clean(&answer.subject));
        let text = format!("{}  {subject}: {}", word(one, widest), prose(&one.detail));
        let notes = answer
            .notes
            .iter()
            .map(|note| wrapped(&prose(note), &margin, &margin, width));
        wrapped(&text, "", &margin, width)
            + &notes.map(|note| styled(FAINT, &note)).collect::<String>()
    };
    all().map(line).collect()
}

fn lines(all: &[NamedText], width: usize) -> String {
    let widest = all
        .iter()
        .map(|line| line.name.chars().count())
        .max()
        .unwrap_or(0);
    let names = widest.clamp(NAMES, NAMES_MAX);
    let margin = " ".repeat(names + 2);
    let line = |line: &NamedText| {
        if let (true, Some(command)) = (line.text.is_empty(), &line.command) {
            let name = format!("{:>names$}", clean(&line.name));
            return format!("{}  {}\n", styled(style(line.tone), &name), clean(command));
        }
        let mut out = in_margin(
            (style(line.tone), &clean(&line.name), names),
            &prose(&line.text),
            width,
        );
        if !line.detail.is_empty() {
            out += &styled(
                FAINT,
                &wrapped(&prose(&line.detail), &margin, &margin, width),
            );
        }
        // A command stays on one line of any length, so that it can be copied.
        out.extend(
            line.command
                .iter()
                .map(|command| format!("{margin}{BOLD}{}{BOLD:#}\n", clean(command))),
        );
        out
    };
    all.iter().map(line).collect()
}

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
/// Width of names before lines.
const NAMES: usize = 9;

/// Terminal style of a tone.
fn style(tone: Tone) -> Style {
    match tone {
        Tone::Good => AnsiColor::Green.on_default().bold(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Same => AnsiColor::Cyan.on_default().bold(),
        Tone::Doubtful => AnsiColor::Yellow.on_default().bold(),
        Tone::Notable => AnsiColor::Magenta.on_default().bold(),
        Tone::Plain => Style::new(),
        Tone::Strong => BOLD,
        Tone::Faint => FAINT,
    }
}

/// Applies a style to a text.
fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A line with its name in a margin of `names` columns.
fn in_margin((style, name, names): (Style, &str, usize), line: &str, width: usize) -> String {
    let margin = " ".repeat(names + 2);
    let wrapped = wrapped(line, &margin, &margin, width);
    format!("{style}{name:>names$}{style:#}  {}", wrapped.trim_start())
}

fn wrapped(text: &str, first: &str, rest: &str, width: usize) -> String {
    // A path or a command that is longer than a line is not broken, so that it can be copied.
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest);
    textwrap::fill(text, options.break_words(false)) + "\n"
}

/// A finding: its statement with grade and number, places, and remedy.
fn finding(remark: &Remark, width: usize) -> String {
    let head = clean(&remark.head());
    // The grade is part of the wrapped text, so that its width counts. Its colour is added afterwards.
    let statement = wrapped(
        &format!("{head}: {}", prose(&remark.statement)),
        "",
        "  ",
        width,
    );
    let mut out = statement.replacen(&head, &styled(style(remark.grade.into()), &head), 1);
    out.extend(
        remark
            .cases
            .iter()
            .map(|case| wrapped(&prose(case), "  ", "    ", width)),
    );
    if !remark.remedy.is_empty() {
        out += &styled(FAINT, &wrapped(&prose(&remark.remedy), "  ", "  ", width));
    }
    // A command stays on one line of any length, so that it can be copied.
    out.extend(
        remark
            .command
            .iter()
            .map(|command| format!("  {BOLD}{}{BOLD:#}\n", clean(command))),
    );
    out
}

/// Columns between two cells.
const GAP: usize = 3;
/// Minimum width of a column of names, and of a drawing.
const NAME_MIN: usize = 12;
const DRAWING_MIN: usize = 8;
/// Maximum width of a drawing. More would not be more precise.
const DRAWING_MAX: usize = 60;

/// A rendered cell: its lines, and their style.
type DrawnCell = (Vec<String>, Style);

/// The table with its heading, in lines of at most `width` columns if possible.
fn table_drawn(table: &Table, width: usize) -> String {
    let mut out = String::new();
    if !table.heading.is_empty() {
        let heading = wrapped(&clean(&table.heading), "", "", width);
        out += &(styled(style(Tone::Strong), heading.trim_end()) + "\n");
    }
    let texts: Vec<Vec<String>> = table
        .texts()
        .iter()
        .map(|row| row.iter().map(|text| clean(text)).collect())
        .collect();
    let (kept, widths) = layout(table, &texts, width);
    let axes: Vec<_> = (0..table.columns.len())
        .map(|at| axis_of(table, at))
        .collect();
    let right: Vec<bool> = kept
        .iter()
        .map(|at| table.columns[*at].fit == ColumnFit::Figure)
        .collect();
    let columns = || kept.iter().copied().zip(widths.iter().copied());
    // The ends of their axis are shown above intervals.
    let heading = |(at, width): (usize, usize)| {
        let ends = axes[at].and_then(|axis| ends(axis, width));
        (
            vec![ends.unwrap_or_else(|| table.columns[at].heading.clone())],
            Style::new(),
        )
    };
    out += &row(&columns().map(heading).collect::<Vec<_>>(), &right, &widths);
    out += &format!("{}\n", "─".repeat((total(&widths) + 1).min(width)));
    let mut texts = texts.iter();
    for of in &table.rows {
        match of {
            TableRow::Note(tone, text) => {
                let text = cut(&format!(" {}", clean(text)), width, ColumnFit::CutEnd);
                out += &(styled(style(*tone), &text) + "\n");
            }
            TableRow::Cells(cells) => {
                let Some(texts) = texts.next() else { continue };
                let cell = |(at, width): (usize, usize)| {
                    cell(
                        (&cells[at], &texts[at]),
                        table.columns[at].fit,
                        axes[at],
                        width,
                    )
                };
                out += &row(&columns().map(cell).collect::<Vec<_>>(), &right, &widths);
            }
        }
    }
    out
}

/// Total width of columns with the gaps between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) + 1
}

/// Selects the columns to show, and their widths.
fn layout(table: &Table, texts: &[Vec<String>], width: usize) -> (Vec<usize>, Vec<usize>) {
    let columns = &table.columns;
    let natural = |at: usize| {
        let cells = texts.iter().map(|row| display_width(&row[at]));
        let least = if columns[at].fit == ColumnFit::Drawing {
            DRAWING_MIN
        } else {
            0
        };
        cells
            .max()
            .unwrap_or(0)
            .max(display_width(&columns[at].heading))
            .max(least)
    };
    let gives = |at: usize| match columns[at].fit {
        ColumnFit::Figure | ColumnFit::Whole | ColumnFit::Drawing => false,
        ColumnFit::Wrapped | ColumnFit::CutEnd | ColumnFit::CutStart | ColumnFit::CutMiddle => true,
    };
    // Minimum width of names: one long name must not displace all other columns.
    let needed = |at: usize| {
        if gives(at) {
            natural(at).min(width * 2 / 5)
        } else {
            natural(at)
        }
    };
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    while total(&kept.iter().map(|at| needed(*at)).collect::<Vec<_>>()) > width {
        let spare = |at: &usize| columns[*at].spare;
        let Some(last) = kept
            .iter()
            .copied()
            .filter(|at| spare(at) > 0)
            .max_by_key(spare)
        else {
            break;
        };
        kept.retain(|at| *at != last);
    }
    let mut widths: Vec<usize> = kept.iter().map(|at| natural(*at)).collect();
    for _ in 0..total(&widths).saturating_sub(width) {
        let widest =
            (0..kept.len()).filter(|place| gives(kept[*place]) && widths[*place] > NAME_MIN);
        let Some(widest) = widest.max_by_key(|place| widths[*place]) else {
            break;
        };
        widths[widest] -= 1;
    }
    let room = width.saturating_sub(total(&widths));
    if let Some(place) = kept
        .iter()
        .position(|at| columns[*at].fit == ColumnFit::Drawing)
    {
        widths[place] = (widths[place] + room).min(DRAWING_MAX);
    }
    (kept, widths)
}

fn cell(
    (cell, text): (&Cell, &str),
    fit: ColumnFit,
    axis: Option<(Axis, Unit)>,
    width: usize,
) -> DrawnCell {
    let lines = match cell {
        Cell::Interval(value, interval) => {
            let bar = axis.map(|(axis, unit)| {
                bar(axis, (value.value, *interval), width, unit == Unit::Ratio)
            });
            vec![bar.unwrap_or_default()]
        }
        Cell::Course(values, breaks) => vec![course(values, breaks, width)],
        Cell::Word(tone, _) => return (vec![cut(text, width, fit)], style(*tone)),
        Cell::Missing | Cell::Text(_) | Cell::Figure(_) | Cell::AtLeast(_)
            if fit == ColumnFit::Wrapped =>
        {
            broken(text, width)
        }
        Cell::Missing | Cell::Text(_) | Cell::Figure(_) | Cell::AtLeast(_) => {
            vec![cut(text, width, fit)]
        }
    };
    (lines, Style::new())
}

/// Wraps a text. The indentation of its first line is kept.
fn broken(text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(text.chars().take_while(|c| *c == ' ').count());
    let options = textwrap::Options::new(width)
        .initial_indent(&indent)
        .subsequent_indent(&indent);
    textwrap::wrap(text.trim_start(), options)
        .into_iter()
        .map(std::borrow::Cow::into_owned)
        .collect()
}

/// The lines of a row, as many as in its highest cell.
fn row(cells: &[DrawnCell], right: &[bool], widths: &[usize]) -> String {
    let height = cells
        .iter()
        .map(|(lines, _)| lines.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for at in 0..height {
        let mut line = String::new();
        for (((lines, style), right), width) in cells.iter().zip(right).zip(widths) {
            let text = lines.get(at).map_or("", String::as_str);
            let blanks = " ".repeat(width.saturating_sub(display_width(text)));
            let text = if text.is_empty() {
                String::new()
            } else {
                styled(*style, text)
            };
            let gap = " ".repeat(if line.is_empty() { 1 } else { GAP });
            line += &if *right {
                format!("{gap}{blanks}{text}")
            } else {
                format!("{gap}{text}{blanks}")
            };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Truncates a text to a width.
fn cut(text: &str, width: usize, fit: ColumnFit) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let end = |room| {
        fitting(text.chars().rev(), room)
            .into_iter()
            .rev()
            .collect::<String>()
    };
    let begin = |room| fitting(text.chars(), room).into_iter().collect::<String>();
    match fit {
        ColumnFit::Figure | ColumnFit::Whole | ColumnFit::Wrapped | ColumnFit::Drawing => {
            text.to_owned()
        }
        ColumnFit::CutEnd => format!("{}…", begin(room)),
        ColumnFit::CutStart => format!("…{}", end(room)),
        ColumnFit::CutMiddle => {
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

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Limit of an axis beyond the values, as a multiple of the usual half interval: one very wide interval must
/// not flatten all others.
const BEYOND: f64 = 3.0;
/// Minimum length of an axis. Smaller differences are not visible.
const SHORTEST: f64 = 1e-3;

/// A value and its interval.
type PlottedValue = (f64, Option<(f64, f64)>);

/// The axis of all values and intervals, except for the ends of intervals that are far wider than most.
fn axis(points: &[PlottedValue]) -> Axis {
    let ends = || points.iter().filter_map(|(_, interval)| *interval);
    let halves = ends().map(|(low, high)| (high.ln() - low.ln()) / 2.0);
    // With two intervals the wider one counts, because it is not far wider than most.
    let reach = (BEYOND * stats::middle_by(halves, |half| *half).unwrap_or(0.0)).exp();
    let values = || points.iter().map(|(value, _)| *value);
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    let low = ends()
        .map(|(low, _)| low)
        .fold(least, f64::min)
        .max(least / reach);
    let high = ends()
        .map(|(_, high)| high)
        .fold(most, f64::max)
        .min(most * reach);
    Axis::between(low, high, SHORTEST)
}

/// The axis and unit of a column of intervals. `None` for other columns.
pub(crate) fn axis_of(table: &Table, at: usize) -> Option<(Axis, Unit)> {
    let of = |cells: &Vec<Cell>| match cells.get(at) {
        Some(Cell::Interval(of, interval)) => Some((*of, *interval)),
        _ => None,
    };
    let unit = table.cells().find_map(of)?.0.unit;
    let points: Vec<PlottedValue> = table
        .cells()
        .filter_map(of)
        .map(|(of, ends)| (of.value, ends))
        .collect();
    Some((axis(&points), unit))
}

/// The ends of an axis as text of this width. `None` if there is no room.
fn ends((axis, unit): (Axis, Unit), columns: usize) -> Option<String> {
    let (low, high) = axis.ends();
    let end = |value: f64| match unit {
        Unit::Ratio => interval(value, low, high).0,
        unit => Quantity { value, unit }.to_string(),
    };
    let (low, high) = (end(low), end(high));
    let between = columns
        .checked_sub(display_width(&low) + display_width(&high))
        .filter(|room| *room > 0)?;
    Some(format!("{low}{}{high}", " ".repeat(between)))
}

/// Draws an interval in a number of columns. Ratios have a mark at 1: `  ├──●───┤  ┊`.
fn bar(axis: Axis, (value, interval): PlottedValue, columns: usize, one: bool) -> String {
    let column = |value: f64| (axis.place(value) * (columns.max(1) - 1) as f64).round();
    let last = columns.saturating_sub(1) as f64;
    let mut drawn = vec![' '; columns];
    let mut put = |at: f64, mark: char| {
        if (0.0..=last).contains(&at) {
            drawn[at as usize] = mark;
        }
    };
    if one {
        put(column(1.0), '┊');
    }
    if let Some((low, high)) = interval {
        let (low, high) = (column(low), column(high));
        let (first, end) = (low.max(0.0), high.min(last));
        (first as usize..=end as usize).for_each(|at| put(at as f64, '─'));
        put(first, if low < 0.0 { '‹' } else { '├' });
        put(end, if high > last { '›' } else { '┤' });
    }
    put(column(value), '●');
    drawn.into_iter().collect::<String>().trim_end().to_owned()
}

/// Draws all values in at most `columns` columns, with a stroke before each of the `breaks` if all of them
/// fit. If there are more values than columns, a column is the mean of several values.
fn course(values: &[f64], breaks: &[usize], columns: usize) -> String {
    let axis = axis(
        &values
            .iter()
            .map(|value| (*value, None))
            .collect::<Vec<_>>(),
    );
    let step = |place: f64| STEPS[((place.clamp(0.0, 1.0) * 7.0).round()) as usize];
    if values.len() + breaks.len() <= columns {
        let one = |(index, value): (usize, &f64)| {
            let stroke = if breaks.contains(&index) { "│" } else { "" };
            format!("{stroke}{}", step(axis.place(*value)))
        };
        return values.iter().enumerate().map(one).collect();
    }
    let part = |column: usize| {
        let (from, to) = (
            column * values.len() / columns,
            (column + 1) * values.len() / columns,
        );
        let places = values[from..to.max(from + 1)]
            .iter()
            .map(|value| axis.place(*value));
        step(places.sum::<f64>() / (to - from).max(1) as f64)
    };
    (0..columns).map(part).collect()
}

#[cfg(test)]
mod tests {
    use model::document::Column;

    use super::*;

    #[test]
    fn no_text_of_a_record_steers_the_terminal() {
        let hostile = || "a\x1b[31m\nb".to_owned();
        let blocks = vec![
            DocumentPart::Heading(Tone::Plain, hostile()),
            DocumentPart::Paragraph(Tone::Plain, hostile()),
            DocumentPart::Lines(vec![NamedText {
                detail: hostile(),
                ..NamedText::new(hostile(), hostile())
            }]),
            DocumentPart::Steps(vec![hostile()]),
        ];
        let drawn = text(
            &Document {
                title: hostile(),
                headline: None,
                blocks,
            },
            80,
        );
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert_eq!(plain.matches("a\u{fffd}[31m b").count(), 7, "{plain}");
        assert!(!drawn.contains("\x1b[31m"), "{drawn:?}");
    }

    #[test]
    fn what_is_cut_keeps_both_ends_and_fits_whatever_the_characters() {
        let cut = |text, width| cut(text, width, ColumnFit::CutMiddle);
        assert_eq!(cut("short", 5), "short");
        assert_eq!(
            cut("a-very-long-experiment-20261121-145057", 24),
            "a-very-l…20261121-145057"
        );
        for text in [
            "配置配置配置配置配置-20261121-145057",
            "a-very-long-name-of-an-experiment",
        ] {
            for width in 0..20 {
                assert!(
                    display_width(&cut(text, width)) <= width.max(1),
                    "{width}: {}",
                    cut(text, width)
                );
            }
        }
    }

    #[test]
    fn a_narrow_table_spares_columns_and_then_cuts_names() {
        let columns = vec![
            Column::text("name", ColumnFit::CutEnd),
            Column::figure("much").spare(1),
            Column::figure("less").spare(2),
        ];
        let mut table = Table::new("", columns);
        table.push(vec![
            Cell::text("a name that is rather long"),
            Cell::text("1"),
            Cell::text("2"),
        ]);
        assert!(table_drawn(&table, 60).contains("less"));
        let narrow = table_drawn(&table, 22);
        assert!(!narrow.contains("less") && narrow.contains('…'), "{narrow}");
        assert!(
            narrow.lines().all(|line| display_width(line) <= 22),
            "{narrow}"
        );
    }

    #[test]
    fn an_interval_lies_where_its_figures_say() {
        let points = [(1.0, Some((0.5, 2.0))), (2.0, Some((1.0, 4.0)))];
        let axis = axis(&points);
        assert_eq!(bar(axis, points[0], 13, true), "├───●───┤");
        assert_eq!(bar(axis, points[1], 13, true), "    ├───●───┤");
        // ln 3 is at 10.3 of 12 columns, and the end is beyond the axis.
        assert_eq!(
            bar(axis, (3.5, Some((3.0, 99.0))), 13, true),
            "    ┊     ├●›"
        );
    }

    #[test]
    fn a_wild_interval_does_not_press_the_others_flat() {
        let mut points = vec![(1.0, Some((0.98, 1.02))); 9];
        points.push((1.01, Some((0.001, 900.0))));
        let (low, high) = axis(&points).ends();
        assert!(low > 0.9 && high < 1.1, "{low} {high}");
        assert!(bar(axis(&points), points[9], 20, false).starts_with('‹'));
    }

    #[test]
    fn values_in_a_line_fit_however_many_they_are() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(course(&values, &[50], 40).chars().count(), 40);
        assert_eq!(
            course(&values[..3], &[2], 40)
                .chars()
                .filter(|c| *c == '│')
                .count(),
            1
        );
        assert_eq!(course(&[1.0], &[], 40).chars().count(), 1);
    }
}
