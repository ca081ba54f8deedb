//! The colours of kinds and of differences, in one place for the page and the drawings.
//!
//! Chosen so that no two kinds look alike to people with protanopia, deuteranopia or tritanopia, and that a name can be read on
//! each; the tests hold them to that. It must not know what is drawn.

use explain::Kind;

/// Red, green and blue, 0 to 255 each.
pub(super) type Rgb = [u8; 3];

/// The colours of one scheme.
pub(super) struct Scheme {
    /// Of each kind, in the order of [`Kind::ALL`].
    pub kinds: [Rgb; 10],
    /// Of no difference, of less and of more.
    pub same: Rgb,
    pub less: Rgb,
    pub more: Rgb,
}

pub(super) const LIGHT: Scheme = Scheme {
    kinds: [
        rgb(0xf5a742),
        rgb(0x8ccbfa),
        rgb(0x2fae83),
        rgb(0xf5e56b),
        rgb(0xdd5f3b),
        rgb(0xd59bd8),
        rgb(0x6b80e6),
        rgb(0xcdeab0),
        rgb(0x7b828c),
        rgb(0xe6e8ee),
    ],
    same: rgb(0xecedf0),
    less: rgb(0x5aa0e6),
    more: rgb(0xf0832c),
};

pub(super) const DARK: Scheme = Scheme {
    kinds: [
        rgb(0xe0932f),
        rgb(0x6fb4e6),
        rgb(0x1f9d74),
        rgb(0xdccb50),
        rgb(0xd4583a),
        rgb(0xbf80c4),
        rgb(0x6277dc),
        rgb(0xb4d694),
        rgb(0x79808b),
        rgb(0x3d424b),
    ],
    same: rgb(0x3a3f48),
    less: rgb(0x2f6fc0),
    more: rgb(0xb4520f),
};

/// What is written on a light colour, and on a dark one.
pub(super) const INK: Rgb = rgb(0x101216);
pub(super) const CHALK: Rgb = rgb(0xf6f7f9);

/// Its place in [`Kind::ALL`].
pub(super) fn number(kind: Kind) -> usize {
    Kind::ALL.iter().position(|one| *one == kind).unwrap_or_default()
}

/// As CSS and SVG write it.
pub(super) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Colour of a change: `part` from −1, the largest decrease, to 1. Its root is taken, so that small ones can be seen at all.
pub(super) fn of_change(scheme: &Scheme, part: f64) -> Rgb {
    let end = if part < 0.0 { scheme.less } else { scheme.more };
    let share = part.abs().min(1.0).sqrt();
    let mixed = |index: usize| {
        let (from, to) = (f64::from(scheme.same[index]), f64::from(end[index]));
        (from + (to - from) * share).round() as u8
    };
    [mixed(0), mixed(1), mixed(2)]
}

/// What can be read on this colour.
pub(super) fn text_on(fill: Rgb) -> Rgb {
    if contrast(fill, INK) >= contrast(fill, CHALK) { INK } else { CHALK }
}

/// The custom properties that the page's style and script read.
pub(super) fn style() -> String {
    let (light, dark, ink, chalk) = (properties(&LIGHT), properties(&DARK), hex(INK), hex(CHALK));
    let fills = (0..Kind::ALL.len()).map(|kind| format!(".kind-{kind}{{--fill:var(--kind-{kind})}}\n"));
    format!(
        ":root{{--ink:{ink};--chalk:{chalk};{light}}}\n\
         @media (prefers-color-scheme: dark){{:root:not([data-print]){{{dark}}}}}\n{}",
        fills.collect::<String>()
    )
}

fn properties(scheme: &Scheme) -> String {
    let kinds =
        scheme.kinds.iter().enumerate().map(|(index, fill)| format!("--kind-{index}:{};", hex(*fill)));
    let ends = [("same", scheme.same), ("less", scheme.less), ("more", scheme.more)];
    kinds.chain(ends.map(|(name, fill)| format!("--{name}:{};", hex(fill)))).collect()
}

/// Contrast of two colours as WCAG 2 has it, from 1 to 21.
pub(super) fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: Rgb) -> f64 {
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Light of an sRGB channel, 0 to 1.
pub(super) fn linear(channel: u8) -> f64 {
    let channel = f64::from(channel) / 255.0;
    if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
}

const fn rgb(value: u32) -> Rgb {
    let [_, red, green, blue] = value.to_be_bytes();
    [red, green, blue]
}
