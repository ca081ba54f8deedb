//! Flame graphs as SVG: drawings without script, for pages and papers that stand still.
//!
//! The crate inferno draws such too; its licence, the CDDL, is not one that this project can be given away under. It must not
//! hold anything that runs, loads or links.

use explain::{Kind, Tree};

use super::colour::{INK, LIGHT, Rgb, Scheme, hex, number, of_change, text_on};
use super::drawing::{Span, spans};
use super::forest::{Forest, Name, Place};
use crate::html::markup;
use crate::names::shown;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
/// Above the graph, and below it.
const HEAD: f64 = 52.0;
const FOOT: f64 = 34.0;
/// Of the typeface with letters of one width.
const LETTER: f64 = 6.65;
const LETTERS_MIN: usize = 3;
/// Narrower spans have no frame: it would be all that is seen of them.
const OUTLINE_MIN: f64 = 6.0;
/// Narrower spans are not drawn: nobody can see them, and there is no zoom.
const PIXELS_MIN: f64 = 0.3;
/// Deeper calls are not drawn. V8 itself keeps no more than 255 callers.
const DEPTH_MAX: usize = 500;
const SCHEME: &Scheme = &LIGHT;
const PER_REQUEST: &str = "µs/request";

/// The flame graph of a tree of microseconds per request, callers above what they call.
pub fn svg(tree: &Tree, title: &str) -> String {
    svg_in(tree, PER_REQUEST, title)
}

/// The same with values in `unit`.
pub fn svg_in(tree: &Tree, unit: &str, title: &str) -> String {
    drawn(&busy(&[tree]), &[""], unit, title)
}

/// Two trees of microseconds per request, each with its name, over each other. Calls are orange where they take more time in the
/// second and blue where they take less; what is gone there is hatched, what is new has a dark frame.
pub fn svg_difference(one: (&str, &Tree), other: (&str, &Tree), title: &str) -> String {
    svg_difference_in(one, other, PER_REQUEST, title)
}

/// The same with values in `unit`.
pub fn svg_difference_in(one: (&str, &Tree), other: (&str, &Tree), unit: &str, title: &str) -> String {
    drawn(&busy(&[one.1, other.1]), &[one.0, other.0], unit, title)
}

/// The trees without the time in which nothing ran: as wide as that is, one would see little else.
fn busy<'a>(trees: &[&'a Tree]) -> Forest<'a> {
    let mut forest = Forest::of(trees);
    let waiting = forest.places.iter_mut().filter(|place| place.name.kind() == Kind::Waiting);
    waiting.for_each(|place| place.own.fill(0.0));
    forest
}

/// What all parts of a drawing share.
struct Sheet<'a> {
    forest: &'a Forest<'a>,
    totals: Vec<Vec<f64>>,
    sums: Vec<f64>,
    /// The largest difference of any call.
    change_max: f64,
    names: &'a [&'a str],
    unit: &'a str,
    pixels_per_unit: f64,
}

fn drawn(forest: &Forest<'_>, names: &[&str], unit: &str, title: &str) -> String {
    let (_, all) = spans(forest, f64::INFINITY, 0);
    let pixels_per_unit = if all > 0.0 { (WIDTH - 2.0 * MARGIN) / all } else { 0.0 };
    let (spans, _) = spans(forest, if all > 0.0 { PIXELS_MIN / pixels_per_unit } else { 0.0 }, DEPTH_MAX);
    let totals = forest.totals();
    let change_max = totals.iter().map(|total| change(total).abs()).fold(0.0, f64::max);
    let sheet = Sheet { forest, sums: forest.sums(), totals, change_max, names, unit, pixels_per_unit };
    let rows = spans.iter().map(|span| span.depth + 1).max().unwrap_or_default() as f64;
    let height = HEAD + rows * ROW + FOOT;
    let mut out = opening(height, title, &sheet);
    out.extend(spans.iter().map(|span| span_drawn(span, &sheet)));
    out += &legend(&sheet, height - FOOT / 2.0 + 4.0);
    out + "</svg>\n"
}

fn opening(height: f64, title: &str, sheet: &Sheet<'_>) -> String {
    let title = markup(&shown(title));
    let middle = WIDTH / 2.0;
    let ink = hex(INK);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{title}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\" fill=\"{ink}\">\n\
         <title>{title}</title>\n\
         <defs><pattern id=\"gone\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"{ink}\" stroke-opacity=\"0.35\" stroke-width=\"2\"/></pattern></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{title}</text>\n\
         <text x=\"{middle}\" y=\"40\" text-anchor=\"middle\">{}</text>\n",
        markup(&subtitle(sheet)),
    )
}

fn subtitle(sheet: &Sheet<'_>) -> String {
    match (sheet.names, sheet.sums.as_slice()) {
        ([one, other], [before, after]) => format!(
            "{}: {}, {}: {}, {} {}",
            shown(one),
            amount(*before),
            shown(other),
            amount(*after),
            signed(after - before),
            sheet.unit
        ),
        (_, sums) => format!("{} {}", amount(sums.iter().sum()), sheet.unit),
    }
}

fn span_drawn(span: &Span, sheet: &Sheet<'_>) -> String {
    let place = &sheet.forest.places[span.place];
    let total = &sheet.totals[span.place];
    let fill = match total.as_slice() {
        [_, _] if sheet.change_max > 0.0 => of_change(SCHEME, change(total) / sheet.change_max),
        [_, _] => SCHEME.same,
        _ => SCHEME.kinds[number(place.name.kind())],
    };
    let (x, y) = (MARGIN + span.left * sheet.pixels_per_unit, HEAD + span.depth as f64 * ROW);
    let width = span.width * sheet.pixels_per_unit;
    // A gap between neighbours, as far as there is room for one.
    let (width, height) = (if width > 2.0 { width - 0.5 } else { width }, ROW - 1.0);
    let area = format!("x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\"");
    let (mark, over) = match total.as_slice() {
        [_, after] if *after <= 0.0 => ("− ", format!("<rect {area} fill=\"url(#gone)\"/>")),
        [before, _] if *before <= 0.0 && width < OUTLINE_MIN => ("+ ", String::new()),
        [before, _] if *before <= 0.0 => {
            ("+ ", format!("<rect {area} fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\"/>", hex(INK)))
        }
        _ => ("", String::new()),
    };
    let label = label(&format!("{mark}{}", function(place.name)), width);
    let text = label.map_or(String::new(), |label| {
        let ink = hex(text_on(fill));
        format!("<text x=\"{:.2}\" y=\"{:.1}\" fill=\"{ink}\">{}</text>", x + 3.0, y + 12.0, markup(&label))
    });
    let hint = markup(&hint(place.name, &place.own, total, sheet));
    let fill = hex(fill);
    format!("<g><title>{hint}</title><rect {area} rx=\"1.5\" fill=\"{fill}\"/>{over}{text}</g>\n")
}

fn change(total: &[f64]) -> f64 {
    if let [before, after] = total { after - before } else { 0.0 }
}

fn function(name: Name<'_>) -> String {
    match name {
        Name::Function(frame) => shown(&frame.function),
        Name::Smaller(_) => "(smaller)".into(),
    }
}

/// As much of a name as has room, or none.
fn label(name: &str, width: f64) -> Option<String> {
    let room = ((width - 5.0) / LETTER).max(0.0) as usize;
    if name.chars().count() <= room {
        return Some(name.to_owned());
    }
    let cut = name.chars().take(room.saturating_sub(1)).collect::<String>() + "…";
    (room >= LETTERS_MIN).then_some(cut)
}

/// What a pointer that rests on a span is told.
fn hint(name: Name<'_>, own: &[f64], total: &[f64], sheet: &Sheet<'_>) -> String {
    let mut out = format!("{} ({})", function(name), name.kind().name());
    if let Name::Function(frame) = name {
        let package = frame.package.as_ref();
        let version = package.and_then(|package| package.version.as_ref());
        out += &package.map(|package| format!("\n{}", shown(&package.name))).unwrap_or_default();
        out += &version.map(|version| format!("@{}", shown(version))).unwrap_or_default();
        if !frame.file.is_empty() {
            out += &format!("\n{}:{}", shown(&frame.file), frame.line);
        }
    }
    for (index, (own, total)) in own.iter().zip(total).enumerate() {
        let of = sheet.names.get(index).map(|name| shown(name)).filter(|name| !name.is_empty());
        let of = of.map(|name| format!("{name}: ")).unwrap_or_default();
        let share = if sheet.sums[index] > 0.0 { total / sheet.sums[index] * 100.0 } else { 0.0 };
        out += &format!("\n{of}{} {} ({share:.1} %), itself {}", amount(*total), sheet.unit, amount(*own));
    }
    if let [_, _] = total {
        out += &format!("\ndifference: {} {}", signed(change(total)), sheet.unit);
    }
    out
}

fn legend(sheet: &Sheet<'_>, y: f64) -> String {
    let kinds: Vec<(Rgb, &str)> = match sheet.names {
        [_, _] => vec![(SCHEME.less, "less"), (SCHEME.same, "no change"), (SCHEME.more, "more")],
        _ => {
            let is_of = |place: &Place<'_>, kind: Kind| place.name.kind() == kind && place.own[0] > 0.0;
            let is_there = |kind: &Kind| sheet.forest.places.iter().any(|place| is_of(place, *kind));
            let kinds = Kind::ALL.into_iter().filter(is_there);
            kinds.map(|kind| (SCHEME.kinds[number(kind)], kind.name())).collect()
        }
    };
    let mut out = String::new();
    let mut x = MARGIN;
    for (fill, name) in kinds {
        let (fill, text) = (hex(fill), x + 16.0);
        out +=
            &format!("<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" fill=\"{fill}\"/>", y - 10.0);
        out += &format!("<text x=\"{text:.1}\" y=\"{y:.1}\">{name}</text>\n");
        x = text + (name.chars().count() as f64 + 2.5) * LETTER;
    }
    if let [_, other] = sheet.names {
        let text = format!("− and hatched: gone in {0}   + and framed: new in {0}", shown(other));
        out += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", markup(&text));
    }
    out
}

/// A figure with the digits that it deserves.
fn amount(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The same of a difference.
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", amount(value.abs()))
}
