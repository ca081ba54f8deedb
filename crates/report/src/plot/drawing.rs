//! What a plot is made of, areas and lines of text in units of which 700 are its width, and the same as SVG and as PNG.
//!
//! SVG has nothing that runs, loads or links. The typeface is DejaVu Sans, which has Latin, Greek, Cyrillic, arrows and signs of mathematics;
//! what it lacks (Chinese, Japanese, Korean, emoji) is an empty box in PNG, and in SVG whatever the reader's machine has. Letters stand one
//! after the other: none is joined or turned around.

use model::text::{line, lines, markup};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Transform};
use ttf_parser::{Face, OutlineBuilder};

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

/// A letter that is not in the typeface is as wide as it is high: so are those of most scripts that it lacks.
const MISSING: f64 = 1.0;

/// The typeface.
#[derive(Debug)]
pub(super) struct Font(Face<'static>);

impl Font {
    pub fn new() -> Font {
        Font(Face::parse(dejavu::sans::regular(), 0).expect("the file is part of the program"))
    }

    /// Width of a text.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>() * size
    }

    /// From the begin of a letter to that of the next, in sizes.
    fn advance(&self, letter: char) -> f64 {
        let advance = self.0.glyph_index(letter).and_then(|glyph| self.0.glyph_hor_advance(glyph));
        advance.map_or(MISSING, |advance| f64::from(advance) / self.units())
    }

    fn units(&self) -> f64 {
        f64::from(self.0.units_per_em())
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
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let is_last = lines.len() == most;
            match lines.last_mut() {
                Some(last) if is_last || self.width(&format!("{last} {word}"), size) <= room => {
                    *last += &format!(" {word}");
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.into_iter().map(|line| self.cut(&line, size, room)).collect()
    }

    /// The outlines of a line of text, one letter after the other. What the typeface lacks is its box.
    fn outline(&self, text: &Text) -> Option<Path> {
        let width = self.width(&text.text, text.size);
        let mut x = match text.hold {
            Hold::Begin => text.at.0,
            Hold::Middle => text.at.0 - width / 2.0,
            Hold::End => text.at.0 - width,
        };
        let scale = (text.size / self.units()) as f32;
        let mut all = PathBuilder::new();
        for letter in text.text.chars() {
            let mut outline = Outline(PathBuilder::new());
            // A blank has no outline.
            let _ = self.0.outline_glyph(self.0.glyph_index(letter).unwrap_or_default(), &mut outline);
            let place = Transform::from_row(scale, 0.0, 0.0, -scale, x as f32, text.at.1 as f32);
            if let Some(path) = outline.0.finish().and_then(|path| path.transform(place)) {
                all.push_path(&path);
            }
            x += self.advance(letter) * text.size;
        }
        all.finish()
    }
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

fn on(ground: Ground, [light, dark]: Colour) -> u32 {
    match ground {
        Ground::Light => light,
        Ground::Dark => dark,
    }
}

fn hex(colour: Colour, ground: Ground) -> String {
    format!("#{:06x}", on(ground, colour))
}

/// Pixels for each unit: pages show it 700 wide, and screens of today have two pixels for each.
const SCALE: f32 = 2.0;

pub(super) fn png(drawing: &Drawing, ground: Ground) -> Option<Vec<u8>> {
    let pixels = |length: f64| (length * f64::from(SCALE)).ceil() as u32;
    let colour = |of: Colour| {
        let [_, red, green, blue] = on(ground, of).to_be_bytes();
        Color::from_rgba8(red, green, blue, 255)
    };
    let mut pixmap = Pixmap::new(pixels(drawing.width), pixels(drawing.height))?;
    pixmap.fill(colour(drawing.ground));
    let font = Font::new();
    for shape in &drawing.shapes {
        let (path, fill) = match shape {
            Shape::Circle((x, y), radius, fill) => {
                (PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32), *fill)
            }
            Shape::Polygon(points, fill) => (polygon(points), *fill),
            Shape::Text(text) => (font.outline(text), text.fill),
        };
        // A text of blanks has no path, and an area without height none either.
        let Some(path) = path else { continue };
        let mut paint = Paint::default();
        paint.set_color(colour(fill));
        pixmap.fill_path(&path, &paint, FillRule::Winding, Transform::from_scale(SCALE, SCALE), None);
    }
    pixmap.encode_png().ok()
}

fn polygon(points: &[(f64, f64)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, others) = points.split_first()?;
    path.move_to(first.0 as f32, first.1 as f32);
    others.iter().for_each(|(x, y)| path.line_to(*x as f32, *y as f32));
    path.close();
    path.finish()
}

/// From the typeface's way to tell an outline to that of the pixels.
struct Outline(PathBuilder);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}
