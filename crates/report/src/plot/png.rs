//! A drawing as PNG.

use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Transform};
use ttf_parser::OutlineBuilder;

use super::drawing::{Drawing, Hold, Shape, Text};
use super::font::Font;
use super::palette::Rgb;

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
            Shape::Rectangle { x, y, width, height, fill } => (rectangle(*x, *y, *width, *height), *fill),
            Shape::Circle { x, y, radius, fill } => {
                (PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32), *fill)
            }
            Shape::Triangle { points, fill } => (triangle(points), *fill),
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

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Option<Path> {
    Some(PathBuilder::from_rect(Rect::from_xywh(x as f32, y as f32, width as f32, height as f32)?))
}

fn triangle([one, two, three]: &[(f64, f64); 3]) -> Option<Path> {
    let mut path = PathBuilder::new();
    path.move_to(one.0 as f32, one.1 as f32);
    path.line_to(two.0 as f32, two.1 as f32);
    path.line_to(three.0 as f32, three.1 as f32);
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
