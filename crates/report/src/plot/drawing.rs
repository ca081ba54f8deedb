//! What a plot is made of, areas and lines of text in units of which 700 are its width, and the same as SVG and as PNG.
//!
//! SVG has nothing that runs, loads or links. The typeface is DejaVu Sans, which has Latin, Greek, Cyrillic, arrows and signs of mathematics;
//! what it lacks (Chinese, Japanese, Korean, emoji) is an empty box in PNG, and in SVG whatever the reader's machine has. Letters stand one
//! after the other: none is joined or turned around.

use model::text::{line, markup};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Red, green and blue, 0 to 255 each.
pub(super) type Rgb = [u8; 3];

/// A picture.
#[derive(Debug)]
pub(super) struct Drawing {
    pub width: f64,
    pub height: f64,
    pub ground: Rgb,
    /// What it is, and what it shows in words, for who cannot see it.
    pub title: String,
    pub description: String,
    /// In the order in which they cover each other.
    pub shapes: Vec<Shape>,
}

/// One thing to draw; y grows downwards.
#[derive(Debug)]
pub(super) enum Shape {
    Rectangle {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        fill: Rgb,
    },
    Circle {
        x: f64,
        y: f64,
        radius: f64,
        fill: Rgb,
    },
    /// An arrow's head, or a line from one point to another, which is an area too.
    Polygon {
        points: Vec<(f64, f64)>,
        fill: Rgb,
    },
    Text(Text),
}

/// A line of text.
#[derive(Debug)]
pub(super) struct Text {
    /// Of its begin, middle or end, as `hold` says.
    pub x: f64,
    /// Of the line that letters stand on.
    pub y: f64,
    pub size: f64,
    pub hold: Hold,
    pub fill: Rgb,
    pub text: String,
}

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Begin,
    Middle,
    End,
}

/// A letter that is not in the typeface is as wide as it is high: so are those of most scripts that it lacks.
const MISSING: f64 = 1.0;

/// The typeface.
#[derive(Debug)]
pub(super) struct Font {
    /// `None` never happens: the file is part of the program.
    face: Option<Face<'static>>,
}

impl Font {
    pub fn new() -> Font {
        Font { face: Face::parse(dejavu::sans::regular(), 0).ok() }
    }

    /// Width of a text.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>() * size
    }

    /// From the begin of a letter to that of the next, in sizes.
    pub fn advance(&self, letter: char) -> f64 {
        let advance = |(face, glyph): (&Face<'static>, GlyphId)| {
            Some(f64::from(face.glyph_hor_advance(glyph)?) / f64::from(face.units_per_em()))
        };
        self.glyph(letter).and_then(advance).unwrap_or(MISSING)
    }

    /// Tells the outline of a letter to a builder, in sizes times `units` upwards from the line; gives what units a size has, or
    /// `None` for a letter that is not there.
    pub fn outline(&self, letter: char, builder: &mut dyn OutlineBuilder) -> Option<f64> {
        let (face, glyph) = self.glyph(letter)?;
        // A blank has no outline and is no missing letter.
        let _ = face.outline_glyph(glyph, builder);
        Some(f64::from(face.units_per_em()))
    }

    /// As much of a text as has room, with a mark where something is missing.
    pub fn cut(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let room = room - self.width("…", size);
        let mut used = 0.0;
        let fits = |letter: &char| {
            used += self.advance(*letter) * size;
            used <= room
        };
        text.chars().take_while(fits).collect::<String>().trim_end().to_owned() + "…"
    }

    /// A text in at most so many lines, broken between words; what does not fit the last one is cut off.
    pub fn lines(&self, text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.len() - 1;
            let longer =
                if lines[last].is_empty() { word.to_owned() } else { format!("{} {word}", lines[last]) };
            if self.width(&longer, size) <= room || lines[last].is_empty() || lines.len() == most {
                lines[last] = longer;
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.into_iter().map(|line| self.cut(&line, size, room)).collect()
    }

    fn glyph(&self, letter: char) -> Option<(&Face<'static>, GlyphId)> {
        let face = self.face.as_ref()?;
        Some((face, face.glyph_index(letter)?))
    }
}

/// The typeface that places are computed for, and others of the same width or narrower.
const FONTS: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Helvetica Neue, Arial, sans-serif";

pub(super) fn written(drawing: &Drawing) -> String {
    let Drawing { width, height, .. } = drawing;
    let (title, description) = (markup(&line(&drawing.title)), markup(&drawing.description));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"{FONTS}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(drawing.ground)
    );
    out.extend(drawing.shapes.iter().map(|shape| shape_written(shape) + "\n"));
    out + "</svg>\n"
}

fn shape_written(shape: &Shape) -> String {
    match shape {
        Shape::Rectangle { x, y, width, height, fill } => {
            let [x, y, width, height] = [*x, *y, *width, *height].map(short);
            format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
                hex(*fill)
            )
        }
        Shape::Circle { x, y, radius, fill } => {
            let [x, y] = [*x, *y].map(short);
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{}\"/>", hex(*fill))
        }
        Shape::Polygon { points, fill } => {
            let points: Vec<String> =
                points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
            format!("<polygon points=\"{}\" fill=\"{}\"/>", points.join(" "), hex(*fill))
        }
        Shape::Text(Text { x, y, size, hold, fill, text }) => {
            let hold = match hold {
                Hold::Begin => "",
                Hold::Middle => " text-anchor=\"middle\"",
                Hold::End => " text-anchor=\"end\"",
            };
            let (x, y, fill, text) = (short(*x), short(*y), hex(*fill), markup(text));
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

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Pixels for each unit: pages show it 700 wide, and screens of today have two pixels for each.
const SCALE: f32 = 2.0;

pub(super) fn painted(drawing: &Drawing) -> Option<Vec<u8>> {
    let pixels = |length: f64| (length * f64::from(SCALE)).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(drawing.width), pixels(drawing.height))?;
    let [red, green, blue] = drawing.ground;
    pixmap.fill(Color::from_rgba8(red, green, blue, 255));
    let font = Font::new();
    for shape in &drawing.shapes {
        let (path, fill) = match shape {
            Shape::Rectangle { x, y, width, height, fill } => {
                let [x, y, width, height] = [*x, *y, *width, *height].map(|length| length as f32);
                (Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect), *fill)
            }
            Shape::Circle { x, y, radius, fill } => {
                (PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32), *fill)
            }
            Shape::Polygon { points, fill } => (polygon(points), *fill),
            Shape::Text(text) => (letters(&font, text), text.fill),
        };
        // A text of blanks has no path, and an area without height none either.
        if let Some(path) = path {
            fill_path(&mut pixmap, &path, fill);
        }
    }
    pixmap.encode_png().ok()
}

fn fill_path(pixmap: &mut Pixmap, path: &Path, [red, green, blue]: Rgb) {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint.anti_alias = true;
    pixmap.fill_path(path, &paint, FillRule::Winding, Transform::from_scale(SCALE, SCALE), None);
}

fn polygon(points: &[(f64, f64)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, others) = points.split_first()?;
    path.move_to(first.0 as f32, first.1 as f32);
    others.iter().for_each(|(x, y)| path.line_to(*x as f32, *y as f32));
    path.close();
    path.finish()
}

/// The outlines of a line of text, one letter after the other.
fn letters(font: &Font, text: &Text) -> Option<Path> {
    let width = font.width(&text.text, text.size);
    let mut x = match text.hold {
        Hold::Begin => text.x,
        Hold::Middle => text.x - width / 2.0,
        Hold::End => text.x - width,
    };
    let mut all = PathBuilder::new();
    for letter in text.text.chars() {
        let mut outline = Outline { path: PathBuilder::new() };
        let advance = font.advance(letter) * text.size;
        match font.outline(letter, &mut outline) {
            Some(units) => {
                let scale = (text.size / units) as f32;
                let place = Transform::from_row(scale, 0.0, 0.0, -scale, x as f32, text.y as f32);
                if let Some(path) = outline.path.finish().and_then(|path| path.transform(place)) {
                    all.push_path(&path);
                }
            }
            None => missing(&mut all, (x, text.y), text.size),
        }
        x += advance;
    }
    all.finish()
}

/// A box where a letter is that the typeface does not have.
fn missing(path: &mut PathBuilder, (x, y): (f64, f64), size: f64) {
    let (left, top, side) = (x + size * 0.1, y - size * 0.75, size * 0.8);
    let line = 1.0;
    // Inner edge the other way round, so that it is left out.
    let corners = |inset: f64, turned: bool| {
        let (low, high) = (inset, side - inset);
        let mut corners = [(low, low), (high, low), (high, high), (low, high)];
        if turned {
            corners.reverse();
        }
        corners.map(|(dx, dy)| ((left + dx) as f32, (top + dy) as f32))
    };
    for [first, rest @ ..] in [corners(0.0, false), corners(line, true)] {
        path.move_to(first.0, first.1);
        rest.iter().for_each(|(x, y)| path.line_to(*x, *y));
        path.close();
    }
}

/// From the typeface's way to tell an outline to that of the pixels.
struct Outline {
    path: PathBuilder,
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
