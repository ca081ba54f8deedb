//! A document as one HTML page without a script, for whatever has no page of its own: its picture, where there is one, and its blocks.
//!
//! Texts are made harmless, and nothing is loaded. Must not: know what is said.

use explain::flame::source_of;
use model::document::{Answer, Block, Cell, Document, Fit, Line, Remark, Row, Table, Tone, Verdict};
use model::text::{line as one_line, markup};

use crate::axis::Axis;
use crate::plot::{Ground, Plot};
use crate::text::axis_of;

const STYLE: &str = include_str!("html/page.css");

/// The whole page.
pub fn html(document: &Document, plot: Option<&Plot>) -> String {
    let title = text(&document.title);
    let headline = document.headline.as_deref().map(|headline| paragraph("strong", headline));
    let picture = plot.map(|plot| format!("<figure>{}</figure>\n", plot.svg(Ground::Light)));
    let blocks: String = document.blocks.iter().map(block).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <main>\n<h1>{title}</h1>\n{}{}{blocks}</main>\n</html>\n",
        source_of(STYLE),
        headline.unwrap_or_default(),
        picture.unwrap_or_default(),
    )
}

fn text(text: &str) -> String {
    markup(&one_line(text))
}

fn paragraph(class: &str, words: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", text(words))
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

fn word(tone: Tone, words: &str) -> String {
    format!("<b class=\"{}\">{}</b>", class(tone), text(words))
}

fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
    let items: String = items.iter().map(|one| format!("<li>{}</li>\n", item(one))).collect();
    format!("<ul>\n{items}</ul>\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(_, words) => format!("<h2>{}</h2>\n", text(words)),
        Block::Paragraph(tone, words) => paragraph(class(*tone), words),
        Block::Answers(answers) | Block::Verdicts(answers) => list(answers, answer),
        Block::Table(table) => self::table(table),
        Block::Findings(all, command) => {
            let why = command.iter().map(|command| format!("<p>Why: <code>{}</code></p>\n", text(command)));
            list(all, finding) + &why.collect::<String>()
        }
        Block::Lines(lines) => list(lines, line),
        // Who reads a page need not have run it.
        Block::Steps(_) => String::new(),
        Block::Folded(summary, blocks) => {
            let inside: String = blocks.iter().map(self::block).collect();
            format!("<details><summary>{}</summary>\n{inside}</details>\n", text(summary))
        }
    }
}

fn answer(answer: &Answer) -> String {
    let verdict = |one: &Verdict| format!("{} {}", word(one.tone, &one.word), text(&one.detail));
    let verdicts: Vec<String> = answer.verdicts.iter().map(verdict).collect();
    let notes: String = answer.notes.iter().map(|note| paragraph("faint", note)).collect();
    format!("{}: {}{notes}", text(&answer.subject), verdicts.join("<br>"))
}

fn finding(remark: &Remark) -> String {
    let cases: String = remark.cases.iter().map(|case| paragraph("faint", case)).collect();
    let command = remark.command.iter().map(|command| format!(" <code>{}</code>", text(command)));
    let head = word(remark.grade.into(), &remark.head());
    format!(
        "{head} {}. {}{}{cases}",
        text(&remark.statement),
        text(&remark.remedy),
        command.collect::<String>()
    )
}

fn line(line: &Line) -> String {
    let detail = if line.detail.is_empty() { String::new() } else { paragraph("faint", &line.detail) };
    let command = line.command.iter().map(|command| format!(" <code>{}</code>", text(command)));
    format!("{} {}{}{detail}", word(line.tone, &line.name), text(&line.text), command.collect::<String>())
}

fn table(table: &Table) -> String {
    let aligned = |fit: Fit| if fit == Fit::Figure { " class=\"figure\"" } else { "" };
    let headings =
        table.columns.iter().map(|column| format!("<th{}>{}", aligned(column.fit), text(&column.heading)));
    let axes: Vec<Option<Axis>> =
        (0..table.columns.len()).map(|at| axis_of(table, at).map(|(axis, _)| axis)).collect();
    let mut texts = table.texts().into_iter();
    let rows = table.rows.iter().map(|row| match row {
        Row::Note(tone, note) => {
            format!("<tr><td class=\"{}\" colspan=\"{}\">{}\n", class(*tone), table.columns.len(), text(note))
        }
        Row::Cells(cells) => {
            let texts = texts.next().unwrap_or_default();
            let cell = |at: usize| {
                format!(
                    "<td{}>{}",
                    aligned(table.columns[at].fit),
                    self::cell(&cells[at], &texts[at], axes[at])
                )
            };
            format!("<tr>{}\n", (0..cells.len()).map(cell).collect::<String>())
        }
    });
    let heading =
        if table.heading.is_empty() { String::new() } else { format!("<h2>{}</h2>\n", text(&table.heading)) };
    format!(
        "{heading}<div class=\"wide\"><table>\n<tr>{}\n{}</table></div>\n",
        headings.collect::<String>(),
        rows.collect::<String>()
    )
}

fn cell(cell: &Cell, told: &str, axis: Option<Axis>) -> String {
    match cell {
        Cell::Word(tone, _) => word(*tone, told),
        Cell::Interval(of, ends) => axis.map_or_else(String::new, |axis| interval(axis, of.value, *ends)),
        Cell::Course(values, _) => course(values),
        Cell::Missing | Cell::Text(_) | Cell::Figure(_) | Cell::AtLeast(_) => text(told),
    }
}

/// Inside of 200 by 16.
fn drawing(inside: &str) -> String {
    format!("<svg viewBox=\"0 0 200 16\" width=\"200\" height=\"16\" aria-hidden=\"true\">{inside}</svg>")
}

/// A value with its interval, and a line at 1.
fn interval(axis: Axis, value: f64, ends: Option<(f64, f64)>) -> String {
    let x = |of: f64| 4.0 + 192.0 * axis.place(of).clamp(0.0, 1.0);
    let mut inside = String::new();
    if axis.holds(1.0) {
        inside += &format!("<path class=\"one\" d=\"M{:.1} 0V16\"/>", x(1.0));
    }
    if let Some((low, high)) = ends {
        inside += &format!("<path d=\"M{:.1} 8H{:.1}\"/>", x(low), x(high));
    }
    drawing(&format!("{inside}<circle cx=\"{:.1}\" cy=\"8\" r=\"4\"/>", x(value)))
}

fn course(values: &[f64]) -> String {
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), of| (least.min(*of), most.max(*of)));
    let step = 192.0 / values.len().saturating_sub(1).max(1) as f64;
    let point = |(at, value): (usize, &f64)| {
        let height = if most > least { (value - least) / (most - least) } else { 0.5 };
        format!("{:.1},{:.1} ", 4.0 + step * at as f64, 14.0 - 12.0 * height)
    };
    drawing(&format!(
        "<polyline points=\"{}\"/>",
        values.iter().enumerate().map(point).collect::<String>().trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use model::document::Column;
    use model::quantity::Quantity;

    use super::*;

    #[test]
    fn what_people_named_becomes_no_markup_and_each_interval_lies_on_its_columns_axis() {
        let mut table = Table::new("<i>", [Column::text("a&b", Fit::Whole), Column::text("", Fit::Drawing)]);
        for (ratio, ends) in [(0.5, (0.4, 0.6)), (2.0, (1.5, 2.5))] {
            table.push(vec![Cell::text("\"<script>"), Cell::Interval(Quantity::ratio(ratio), Some(ends))]);
        }
        table.rows.push(Row::Note(Tone::Faint, "why".to_owned()));
        let lines = vec![Line { command: Some("a < b".to_owned()), ..Line::new("x", "y") }];
        let page = html(&Document::new("A <b>?", [Block::Table(table), Block::Lines(lines)]), None);
        for there in [
            "<h1>A &lt;b&gt;?</h1>",
            "<h2>&lt;i&gt;</h2>",
            "<td>&quot;&lt;script&gt;",
            "<code>a &lt; b</code>",
            "colspan=\"2\">why",
        ] {
            assert!(page.contains(there), "{there} in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
        let middles: Vec<f64> = page
            .split("<circle cx=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"')?.0.parse().ok())
            .collect();
        assert!(middles.len() == 2 && middles[0] < 100.0 && middles[1] > 100.0, "{middles:?}");
        assert_eq!(page.matches("class=\"one\"").count(), 2);
    }
}
