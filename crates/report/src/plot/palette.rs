//! The colours of the plot. Verdicts are told apart by people with any kind of colour-blindness: better is blue and worse orange, and
//! their words stand beside them.

use analysis::Outcome;

use super::Ground;

/// Red, green and blue, 0 to 255 each.
pub(super) type Rgb = [u8; 3];

/// The colours on one ground.
#[derive(Debug)]
pub(super) struct Palette {
    pub ground: Rgb,
    pub ink: Rgb,
    pub faint: Rgb,
    /// Lines of the axis, the one of no difference, and what lies within the margin.
    pub grid: Rgb,
    pub one: Rgb,
    pub band: Rgb,
    better: Rgb,
    worse: Rgb,
    equivalent: Rgb,
    inconclusive: Rgb,
    void: Rgb,
}

impl Palette {
    /// The colour of a verdict.
    pub fn of(&self, outcome: Outcome) -> Rgb {
        match outcome {
            Outcome::Better => self.better,
            Outcome::Worse => self.worse,
            Outcome::Equivalent => self.equivalent,
            Outcome::Inconclusive => self.inconclusive,
            Outcome::Void | Outcome::NoSuccess => self.void,
        }
    }
}

const LIGHT: Palette = Palette {
    ground: rgb(0xffffff),
    ink: rgb(0x16191d),
    faint: rgb(0x59616b),
    grid: rgb(0xe2e5e9),
    one: rgb(0x868e98),
    band: rgb(0xe6ecf6),
    better: rgb(0x0b63b5),
    worse: rgb(0xb3420a),
    equivalent: rgb(0x1a6b59),
    inconclusive: rgb(0x626873),
    void: rgb(0xa3123f),
};

const DARK: Palette = Palette {
    ground: rgb(0x14171b),
    ink: rgb(0xeef0f3),
    faint: rgb(0xa4acb6),
    grid: rgb(0x2c3138),
    one: rgb(0x7d8590),
    band: rgb(0x232d3d),
    better: rgb(0x6fb1f5),
    worse: rgb(0xf5914e),
    equivalent: rgb(0x5cc9ad),
    inconclusive: rgb(0xb1b7c0),
    void: rgb(0xff86a5),
};

pub(super) const fn of(ground: Ground) -> &'static Palette {
    match ground {
        Ground::Light => &LIGHT,
        Ground::Dark => &DARK,
    }
}

const fn rgb(code: u32) -> Rgb {
    let [_, red, green, blue] = code.to_be_bytes();
    [red, green, blue]
}
