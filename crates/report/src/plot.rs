//! The verdict plot: each comparison's interval against the margin on one axis, as a picture that stands still, for pasting.
//!
//! SVG and PNG are the same drawing. It says what the other forms say, in their words, and is the same for the same record on every
//! machine: letters come from a typeface that is part of the program. Of a void comparison it shows no number.

use analysis::Conclusion;
use record::Record;

use crate::sheet::Sheet;

mod axis;
mod drawing;
mod font;
mod layout;
mod palette;
mod png;
mod rows;
mod svg;

/// What the plot stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Paper, and most pages.
    Light,
    /// A dark page.
    Dark,
}

/// The plot as SVG, 700 wide, without script, link or image.
pub fn svg(record: &Record, conclusion: &Conclusion, ground: Ground) -> String {
    svg::written(&drawn(record, conclusion, ground))
}

/// The plot as PNG, twice as many pixels as the SVG is wide and high; `None` where memory does not suffice.
pub fn png(record: &Record, conclusion: &Conclusion, ground: Ground) -> Option<Vec<u8>> {
    png::painted(&drawn(record, conclusion, ground))
}

fn drawn(record: &Record, conclusion: &Conclusion, ground: Ground) -> drawing::Drawing {
    let sheet = Sheet::new(record, conclusion);
    let plot = layout::Plot {
        title: &sheet.title,
        metric: rows::common_metric(conclusion),
        rows: rows::rows(&sheet, conclusion),
        margin: record.header.plan.design.margin,
        foot: rows::foot(record, conclusion),
    };
    layout::laid_out(&plot, palette::of(ground))
}
