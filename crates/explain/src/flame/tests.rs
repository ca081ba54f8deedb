//! Colours are distinguishable, and text on them is readable.

use super::{Rgb, of_change};
use crate::tree::KINDS;

const INK: Rgb = [0x10, 0x12, 0x16];

#[test]
fn a_name_can_be_read_on_every_colour() {
    assert!(
        KINDS
            .iter()
            .enumerate()
            .all(|(place, row)| row.kind as usize == place),
        "each has its own row"
    );
    let changes = (-24..=24).map(|part| of_change(f64::from(part) / 24.0));
    for fill in KINDS.iter().map(|row| row.fill).chain(changes) {
        assert!(
            contrast(fill, INK) >= 4.5,
            "{:.2} on {fill:02x?}",
            contrast(fill, INK)
        );
    }
}

/// Contrast of two colours by WCAG 2, from 1 to 21.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: Rgb) -> f64 {
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Linear light of an sRGB channel, 0 to 1.
fn linear(channel: u8) -> f64 {
    let channel = f64::from(channel) / 255.0;
    if channel <= 0.04045 {
        channel / 12.92
    } else {
        ((channel + 0.055) / 1.055).powf(2.4)
    }
}

/// Simulation of colour blindness from linear light: Machado, Oliveira and Fernandes (2009), severity 1.
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    (
        "normal",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "protanopia",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// Lightness and hues in OKLab (Ottosson, 2020), in which a distance of 0.02 is just visible.
fn seen(colour: Rgb, sight: &[[f64; 3]; 3]) -> [f64; 3] {
    let times =
        |matrix: &[[f64; 3]; 3], [x, y, z]: [f64; 3]| matrix.map(|[a, b, c]| a * x + b * y + c * z);
    let light = times(sight, colour.map(linear)).map(|part| part.clamp(0.0, 1.0));
    let cones = times(
        &[
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ],
        light,
    );
    times(
        &[
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ],
        cones.map(f64::cbrt),
    )
}

#[test]
fn no_two_kinds_look_alike_to_anybody() {
    for (sight, matrix) in SIGHTS {
        let colours = KINDS.each_ref().map(|row| seen(row.fill, &matrix));
        for (index, one) in colours.iter().enumerate() {
            for (before, other) in colours[..index].iter().enumerate() {
                let parts = one
                    .iter()
                    .zip(other)
                    .map(|(one, other)| (one - other).powi(2));
                let distance = parts.sum::<f64>().sqrt();
                let names = [KINDS[before].name, KINDS[index].name];
                assert!(
                    distance > 0.035,
                    "{names:?} are {distance:.3} apart with {sight}"
                );
            }
        }
    }
}
