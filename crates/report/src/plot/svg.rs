//! A drawing as SVG: areas and text, and nothing that runs, loads or links.

use super::drawing::{Drawing, Hold, Shape, Text};
use super::palette::Rgb;
use crate::html::markup;
use crate::names::line;

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
        Shape::Rectangle { x, y, width, height, fill } => format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            short(*x),
            short(*y),
            short(*width),
            short(*height),
            hex(*fill)
        ),
        Shape::Circle { x, y, radius, fill } => {
            format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" fill=\"{}\"/>",
                short(*x),
                short(*y),
                hex(*fill)
            )
        }
        Shape::Triangle { points, fill } => {
            let points = points.map(|(x, y)| format!("{},{}", short(x), short(y)));
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
