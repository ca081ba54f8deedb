//! What a plot is made of, before it is SVG or pixels: areas and lines of text, in units of which 700 are its width.

use super::palette::Rgb;

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
    /// An arrow's head.
    Triangle {
        points: [(f64, f64); 3],
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
