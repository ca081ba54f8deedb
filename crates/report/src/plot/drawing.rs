//! The shapes and texts of a plot, in units of 1/700 of its width, and their SVG.
//!
//! The SVG contains nothing that runs, loads or links. The typeface is the reader's: positions are computed
//! for DejaVu Sans.

use model::text::{line, lines, markup};

use super::Ground;

/// A colour on a light background and on a dark one, as `0xRRGGBB`.
pub(super) type Colour = [u32; 2];

/// A picture.
#[derive(Debug)]
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    pub ground: Colour,
    /// Title and description, for readers who cannot see it.
    pub title: String,
    pub description: String,
    /// In drawing order.
    pub shapes: Vec<PlotShape>,
}

/// A shape. y grows downwards.
#[derive(Debug)]
pub(super) enum PlotShape {
    Circle((f64, f64), f64, Colour),
    Polygon(Vec<(f64, f64)>, Colour),
    Text(PlotText),
}

/// A line of text.
#[derive(Debug)]
pub(super) struct PlotText {
    /// Position of its start, middle or end, as `hold` determines, on the baseline.
    pub at: (f64, f64),
    pub size: f64,
    pub hold: TextAnchor,
    pub fill: Colour,
    pub text: String,
}

/// Anchor of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAnchor {
    Begin,
    Middle,
    End,
}

/// Widths of the characters from space to tilde in DejaVu Sans, in 1/2048 of the size (its table `hmtx`).
const ADVANCES: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, //
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716,
    1087, //
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532,
    1612, //
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716,
    1024, //
    1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298,
    1253, //
    1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];
/// Unit of the table.
const UNITS: f64 = 2048.0;
/// Width of all other characters, as a multiple of the size: that of the widest scripts.
const OTHERS: f64 = 1.0;

/// Width of a text in DejaVu Sans. Characters beyond ASCII are rather too wide than too narrow.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Advance width of a character, as a multiple of the size.
fn advance(letter: char) -> f64 {
    let index = u32::from(letter)
        .checked_sub(u32::from(' '))
        .and_then(|index| usize::try_from(index).ok());
    index
        .and_then(|index| ADVANCES.get(index))
        .map_or(OTHERS, |advance| f64::from(*advance) / UNITS)
}

/// Truncates a text to the available width, with a mark at the end.
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let room = room - text_width("…", size);
    let mut used = 0.0;
    let fits = |letter: &char| {
        used += advance(*letter) * size;
        used <= room
    };
    text.chars()
        .take_while(fits)
        .collect::<String>()
        .trim_end()
        .to_owned()
        + "…"
}

/// Wraps a text between words into at most `most` lines. The last line is truncated.
pub(super) fn wrapped(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = lines.len() == most;
        match lines.last_mut() {
            Some(last) if is_last || text_width(&format!("{last} {word}"), size) <= room => {
                *last += &format!(" {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
        .into_iter()
        .map(|line| cut(&line, size, room))
        .collect()
}

/// The typeface that positions are computed for, and others of the same width or narrower.
const FONTS: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Helvetica Neue, Arial, sans-serif";

pub(super) fn svg(drawing: &Drawing, ground: Ground) -> String {
    let Drawing { width, height, .. } = drawing;
    let (title, description) = (
        markup(&line(&drawing.title)),
        markup(&lines(&drawing.description)),
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"{FONTS}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(drawing.ground, ground)
    );
    out.extend(
        drawing
            .shapes
            .iter()
            .map(|shape| element(shape, ground) + "\n"),
    );
    out + "</svg>\n"
}

fn element(shape: &PlotShape, ground: Ground) -> String {
    match shape {
        PlotShape::Circle((x, y), radius, fill) => {
            let (x, y, fill) = (short(*x), short(*y), hex(*fill, ground));
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"/>")
        }
        PlotShape::Polygon(points, fill) => {
            let points: Vec<_> = points
                .iter()
                .map(|(x, y)| format!("{},{}", short(*x), short(*y)))
                .collect();
            format!(
                "<polygon points=\"{}\" fill=\"{}\"/>",
                points.join(" "),
                hex(*fill, ground)
            )
        }
        PlotShape::Text(PlotText {
            at,
            size,
            hold,
            fill,
            text,
        }) => {
            let hold = match hold {
                TextAnchor::Begin => "",
                TextAnchor::Middle => " text-anchor=\"middle\"",
                TextAnchor::End => " text-anchor=\"end\"",
            };
            let (x, y, fill, text) = (short(at.0), short(at.1), hex(*fill, ground), markup(text));
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{hold} fill=\"{fill}\" xml:space=\"preserve\">{text}</text>"
            )
        }
    }
}

/// Two decimals are enough for display, and identical on every machine.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn hex([light, dark]: Colour, ground: Ground) -> String {
    let colour = match ground {
        Ground::Light => light,
        Ground::Dark => dark,
    };
    format!("#{colour:06x}")
}
