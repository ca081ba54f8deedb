//! A document as one HTML page without a script, for reports without their own page: the plot, if there is
//! one, and the blocks.
//!
//! Texts are escaped, and nothing is loaded. This module does not know the meaning of the contents.

use explain::flame::source_of;
use model::document::{
    Cell, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Remark, Table, TableRow,
    Tone, VerdictBlock,
};
use model::quantity::Unit;
use model::text::{code_spans, line as one_line, markup};

use crate::axis::Axis;
use crate::chart::chart_drawn;
use crate::plot::{Ground, Plot};
use crate::text::axis_of;

/// Width of a chart in characters.
const CHART_COLUMNS: usize = 90;
const STYLE: &str = include_str!("html/page.css");

/// The whole page.
pub fn html(document: &Document, plot: Option<&Plot>) -> String {
    let (title, source) = (text(&document.title), source_of(STYLE));
    let headline = document
        .headline
        .as_deref()
        .map(|headline| paragraph(Tone::Strong, headline));
    let picture = plot.map(|plot| format!("<figure>{}</figure>\n", plot.svg(Ground::Light)));
    let parts = headline
        .into_iter()
        .chain(picture)
        .chain(document.blocks.iter().map(block));
    let main: String = parts.collect();
    let class = if plot.is_some() {
        " class=\"plotted\""
    } else {
        ""
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{source}'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <main{class}>\n<h1>{title}</h1>\n{main}</main>\n</html>\n"
    )
}

pub(crate) fn text(text: &str) -> String {
    markup(&one_line(text))
}

/// A paragraph, whose tone is a class of the style sheet.
fn paragraph(tone: Tone, words: &str) -> String {
    format!("<p class=\"{}\">{}</p>\n", class(tone), prose(words))
}

/// Paragraphs in a faint tone.
fn faint<'a>(all: impl IntoIterator<Item = &'a String>) -> String {
    all.into_iter()
        .filter(|words| !words.is_empty())
        .map(|words| paragraph(Tone::Faint, words))
        .collect()
}

/// The name of a tone in the style sheet.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Same => "same",
        Tone::Doubtful => "doubtful",
        Tone::Notable => "notable",
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Faint => "faint",
    }
}

/// Prose, with elements for code.
fn prose(words: &str) -> String {
    let parts = code_spans(words).into_iter().enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => text(part),
        _ => format!("<code>{}</code>", text(part)),
    };
    parts.map(part).collect()
}

fn code(command: Option<&String>) -> String {
    command
        .map(|command| format!(" <code>{}</code>", text(command)))
        .unwrap_or_default()
}

fn word(tone: Tone, words: &str) -> String {
    format!("<b class=\"{}\">{}</b>", class(tone), text(words))
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    let items: String = items
        .iter()
        .map(|one| format!("<li>{}</li>\n", item(one)))
        .collect();
    format!("<ul>\n{items}</ul>\n")
}

fn block(block: &DocumentPart) -> String {
    match block {
        DocumentPart::Heading(_, words) => format!("<h2>{}</h2>\n", text(words)),
        DocumentPart::Paragraph(tone, words) => paragraph(*tone, words),
        DocumentPart::Answers(answers) | DocumentPart::Verdicts(answers) => list(answers, answer),
        DocumentPart::Table(table) => self::table(table),
        DocumentPart::Chart(chart) => {
            let (heading, drawn) = chart_drawn(chart, CHART_COLUMNS);
            format!(
                "<h2>{}</h2>\n<pre>{}</pre>\n",
                text(&heading),
                markup(&drawn)
            )
        }
        DocumentPart::Findings(all, command) => {
            let why = command
                .iter()
                .map(|command| format!("<p>Why:{}</p>\n", code(Some(command))));
            list(all, finding) + &why.collect::<String>()
        }
        DocumentPart::Lines(lines) => list(lines, line),
        // The reader of a page may not be the user who ran it.
        DocumentPart::Steps(_) => String::new(),
        DocumentPart::Folded(summary, blocks) => {
            let inside: String = blocks.iter().map(self::block).collect();
            format!(
                "<details><summary>{}</summary>\n{inside}</details>\n",
                text(summary)
            )
        }
    }
}

fn answer(answer: &QuestionAnswer) -> String {
    let verdict =
        |one: &VerdictBlock| format!("{} {}", word(one.tone, &one.word), prose(&one.detail));
    let verdicts: Vec<String> = answer.verdicts.iter().map(verdict).collect();
    format!(
        "{}: {}{}",
        text(&answer.subject),
        verdicts.join("<br>"),
        faint(&answer.notes)
    )
}

fn finding(remark: &Remark) -> String {
    let (statement, remedy) = (prose(&remark.statement), prose(&remark.remedy));
    let (head, command) = (
        word(remark.grade.into(), &remark.head()),
        code(remark.command.as_ref()),
    );
    format!(
        "{head} {statement}. {remedy}{command}{}",
        faint(&remark.cases)
    )
}

fn line(line: &NamedText) -> String {
    let (name, command) = (word(line.tone, &line.name), code(line.command.as_ref()));
    format!(
        "{name} {}{command}{}",
        prose(&line.text),
        faint([&line.detail])
    )
}

fn table(table: &Table) -> String {
    let aligned = |at: usize| match table.columns[at].fit {
        ColumnFit::Figure => " class=\"figure\"",
        ColumnFit::Drawing => " class=\"drawing\"",
        ColumnFit::Whole
        | ColumnFit::Wrapped
        | ColumnFit::CutEnd
        | ColumnFit::CutStart
        | ColumnFit::CutMiddle => "",
    };
    let columns = || 0..table.columns.len();
    let heading = |at: usize| format!("<th{}>{}", aligned(at), text(&table.columns[at].heading));
    let axes: Vec<_> = columns().map(|at| axis_of(table, at)).collect();
    let mut texts = table.texts().into_iter();
    let rows = table.rows.iter().map(|row| match row {
        TableRow::Note(tone, note) => {
            let (class, span) = (class(*tone), table.columns.len());
            format!(
                "<tr><td class=\"{class}\" colspan=\"{span}\">{}\n",
                text(note)
            )
        }
        TableRow::Cells(cells) => {
            let texts = texts.next().unwrap_or_default();
            let cell = |at| {
                format!(
                    "<td{}>{}",
                    aligned(at),
                    cell(&cells[at], &texts[at], axes[at])
                )
            };
            format!("<tr>{}\n", (0..cells.len()).map(cell).collect::<String>())
        }
    });
    let (headings, rows): (String, String) = (columns().map(heading).collect(), rows.collect());
    let above = if table.heading.is_empty() {
        String::new()
    } else {
        format!("<h2>{}</h2>\n", text(&table.heading))
    };
    format!("{above}<div class=\"wide\"><table>\n<tr>{headings}\n{rows}</table></div>\n")
}

fn cell(cell: &Cell, told: &str, axis: Option<(Axis, Unit)>) -> String {
    match cell {
        Cell::Word(tone, _) => word(*tone, told),
        Cell::Interval(of, ends) => {
            axis.map_or_else(String::new, |axis| interval(axis, of.value, *ends))
        }
        Cell::Course(values, _) => course(values),
        Cell::Missing | Cell::Text(_) | Cell::Figure(_) | Cell::AtLeast(_) => text(told),
    }
}

/// Inside of 200 by 16.
fn drawing(inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 200 16\" width=\"200\" height=\"16\" aria-hidden=\"true\">{inside}</svg>"
    )
}

/// A value with its interval. Ratios have a line at 1.
fn interval((axis, unit): (Axis, Unit), value: f64, ends: Option<(f64, f64)>) -> String {
    let x = |of: f64| 4.0 + 192.0 * axis.place(of).clamp(0.0, 1.0);
    let mut inside = String::new();
    if unit == Unit::Ratio && axis.holds(1.0) {
        inside += &format!("<path class=\"one\" d=\"M{:.1} 0V16\"/>", x(1.0));
    }
    if let Some((low, high)) = ends {
        inside += &format!("<path d=\"M{:.1} 8H{:.1}\"/>", x(low), x(high));
    }
    drawing(&format!(
        "{inside}<circle cx=\"{:.1}\" cy=\"8\" r=\"4\"/>",
        x(value)
    ))
}

fn course(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let step = 192.0 / values.len().saturating_sub(1).max(1) as f64;
    let point = |(at, value): (usize, &f64)| {
        let height = if most > least {
            (value - least) / (most - least)
        } else {
            0.5
        };
        format!("{:.1},{:.1}", 4.0 + step * at as f64, 14.0 - 12.0 * height)
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    drawing(&format!("<polyline points=\"{}\"/>", points.join(" ")))
}

#[cfg(test)]
mod tests {
    use model::document::Column;
    use model::quantity::Quantity;

    use super::*;

    #[test]
    fn what_people_named_becomes_no_markup_and_each_interval_lies_on_its_columns_axis() {
        let mut table = Table::new(
            "<i>",
            [
                Column::text("a&b", ColumnFit::Whole),
                Column::text("", ColumnFit::Drawing),
            ],
        );
        table.columns.push(Column::text("", ColumnFit::Drawing));
        for (value, ends) in [(0.5, (0.4, 0.6)), (2.0, (1.5, 2.5))] {
            let interval = |of| Cell::Interval(of, Some(ends));
            let drawn = vec![
                interval(Quantity::ratio(value)),
                interval(Quantity::us(value)),
            ];
            table.push([vec![Cell::text("\"<script>")], drawn].concat());
        }
        table
            .rows
            .push(TableRow::Note(Tone::Faint, "why".to_owned()));
        let lines = vec![NamedText {
            command: Some("a < b".to_owned()),
            ..NamedText::new("x", "y")
        }];
        let page = html(
            &Document::new(
                "A <b>?",
                [DocumentPart::Table(table), DocumentPart::Lines(lines)],
            ),
            None,
        );
        let title = "<h1>A &lt;b&gt;?</h1>";
        let cells = [
            "<h2>&lt;i&gt;</h2>",
            "<td>&quot;&lt;script&gt;",
            "colspan=\"3\">why",
        ];
        for there in [title, "<code>a &lt; b</code>"].into_iter().chain(cells) {
            assert!(page.contains(there), "{there} in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
        let circles = page.split("<circle cx=\"").skip(1).step_by(2);
        let middles: Vec<f64> = circles
            .filter_map(|rest| rest.split_once('"')?.0.parse().ok())
            .collect();
        assert!(
            middles.len() == 2 && middles[0] < 100.0 && middles[1] > 100.0,
            "{middles:?}"
        );
        assert_eq!(page.matches("class=\"one\"").count(), 2);
    }
}
