//! The shapes and texts of a plot, in units of which 700 are its width, and the SVG made of them.
//!
//! The SVG has nothing that runs, loads or links. The reader's machine has the typeface: places are computed for DejaVu Sans.

use model::text::{line, lines, markup};

use super::Ground;

/// A colour on a light ground and on a dark one, as `0xRRGGBB`.
pub(super) type Colour = [u32; 2];

/// A picture.
#[derive(Debug)]
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    pub ground: Colour,
    /// What it is, and what it shows in words, for who cannot see it.
    pub title: String,
    pub description: String,
    /// In the order in which they cover each other.
    pub shapes: Vec<Shape>,
}

/// One thing to draw; y grows downwards.
#[derive(Debug)]
pub(super) enum Shape {
    Circle((f64, f64), f64, Colour),
    Polygon(Vec<(f64, f64)>, Colour),
    Text(Text),
}

/// A line of text.
#[derive(Debug)]
pub(super) struct Text {
    /// Of its begin, middle or end, as `hold` says, on the line that letters stand on.
    pub at: (f64, f64),
    pub size: f64,
    pub hold: Hold,
    pub fill: Colour,
    pub text: String,
}

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Begin,
    Middle,
    End,
}

/// Widths of the letters from the blank to the tilde in DejaVu Sans, in 1/2048 of the size (its table `hmtx`).
const ADVANCES: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, //
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, //
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, //
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, //
    1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, //
    1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];
/// Unit of the table.
const UNITS: f64 = 2048.0;
/// Width of all other letters, in sizes: that of the widest scripts.
const OTHERS: f64 = 1.0;

/// Width of a text in DejaVu Sans; too wide rather than too narrow for letters beyond ASCII.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// From the begin of a letter to that of the next, in sizes.
fn advance(letter: char) -> f64 {
    let index = u32::from(letter).checked_sub(u32::from(' ')).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| ADVANCES.get(index)).map_or(OTHERS, |advance| f64::from(*advance) / UNITS)
}

/// As much of a text as has room, with a mark where something is missing.
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
    text.chars().take_while(fits).collect::<String>().trim_end().to_owned() + "…"
}

/// A text in at most so many lines, broken between words; what does not fit the last one is cut off.
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
    lines.into_iter().map(|line| cut(&line, size, room)).collect()
}

/// The typeface that places are computed for, and others of the same width or narrower.
const FONTS: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Helvetica Neue, Arial, sans-serif";

pub(super) fn svg(drawing: &Drawing, ground: Ground) -> String {
    let Drawing { width, height, .. } = drawing;
    let (title, description) = (markup(&line(&drawing.title)), markup(&lines(&drawing.description)));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"{FONTS}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(drawing.ground, ground)
    );
    out.extend(drawing.shapes.iter().map(|shape| element(shape, ground) + "\n"));
    out + "</svg>\n"
}

fn element(shape: &Shape, ground: Ground) -> String {
    match shape {
        Shape::Circle((x, y), radius, fill) => {
            let (x, y, fill) = (short(*x), short(*y), hex(*fill, ground));
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"/>")
        }
        Shape::Polygon(points, fill) => {
            let points: Vec<_> = points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
            format!("<polygon points=\"{}\" fill=\"{}\"/>", points.join(" "), hex(*fill, ground))
        }
        Shape::Text(Text { at, size, hold, fill, text }) => {
            let hold = match hold {
                Hold::Begin => "",
                Hold::Middle => " text-anchor=\"middle\"",
                Hold::End => " text-anchor=\"end\"",
            };
            let (x, y, fill, text) = (short(at.0), short(at.1), hex(*fill, ground), markup(text));
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{hold} fill=\"{fill}\" xml:space=\"preserve\">{text}</text>"
            )
        }
    }
}

/// Two decimals are more than anybody sees, and the same on every machine.
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
