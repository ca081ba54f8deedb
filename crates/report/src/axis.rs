//! The axis of ratios and of figures over time: logarithmic, so that twice as fast and half as fast are
//! equally far from no difference.
//!
//! Plots, text and trends share it.

use model::quantity::{decimal, signed};

/// Up to this ratio of its ends an axis is labelled in per cent, beyond it in factors.
const PERCENT_MAX: f64 = 3.0;
/// Desired number of marks.
const MARKS_MAX: f64 = 7.0;

/// Maps values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// Natural logarithms of its ends.
    low: f64,
    high: f64,
}

/// A mark of the axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub ratio: f64,
    pub label: String,
}

/// Maximum power of ten of a number.
const POWER_MAX: f64 = 308.0;

impl Axis {
    /// Creates an axis between two values above 0. It is at least `shortest` long, as a difference of
    /// logarithms.
    pub fn between(low: f64, high: f64, shortest: f64) -> Axis {
        let (low, high) = (low.ln(), high.ln());
        let short = ((shortest - (high - low)) / 2.0).max(0.0);
        Axis {
            low: low - short,
            high: high + short,
        }
    }

    /// Adds an empty share of its length at each end.
    pub fn with_room(self, share: f64) -> Axis {
        let room = (self.high - self.low) * share;
        Axis {
            low: self.low - room,
            high: self.high + room,
        }
    }

    /// The values at its ends.
    pub fn ends(self) -> (f64, f64) {
        (self.low.exp(), self.high.exp())
    }

    /// Position of a value: from 0 to 1, or beyond.
    pub fn place(self, value: f64) -> f64 {
        (value.ln() - self.low) / (self.high - self.low)
    }

    /// Whether a value is on the axis.
    pub fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value.ln())
    }

    /// The marks of an axis of ratios, in ascending order. 1 is among them if it is on the axis.
    pub fn marks(self) -> Vec<Mark> {
        if self.high - self.low < PERCENT_MAX.ln() {
            self.percents()
        } else {
            self.factors()
        }
    }

    fn percents(self) -> Vec<Mark> {
        let (low, high) = (self.low.exp() - 1.0, self.high.exp() - 1.0);
        let step = round_step(((high - low) / MARKS_MAX).max(1e-5));
        let decimals = (-(step * 100.0).log10().floor()).clamp(0.0, 3.0) as usize;
        let places = (low / step).ceil() as i32..=(high / step).floor() as i32;
        let mark = |place: i32| {
            let change = f64::from(place) * step;
            let label = if place == 0 {
                "0".to_owned()
            } else {
                signed(change * 100.0, decimals)
            };
            Mark {
                ratio: 1.0 + change,
                label,
            }
        };
        places.map(mark).collect()
    }

    fn factors(self) -> Vec<Mark> {
        self.round()
            .into_iter()
            .map(|ratio| Mark {
                ratio,
                label: format!("×{}", decimal(ratio, 0)),
            })
            .collect()
    }

    /// Round numbers on the axis, in ascending order: 1, 10, 100, …, with 2 and 5 in between if these are
    /// few.
    pub fn round(self) -> Vec<f64> {
        // The ends of a damaged record may be infinite.
        let power = |end: f64| (end / 10_f64.ln()).clamp(-POWER_MAX, POWER_MAX);
        let powers = power(self.low).floor() as i32..=power(self.high).ceil() as i32;
        let decades = (self.high - self.low) / 10_f64.ln();
        let digits: &[f64] = if decades <= 2.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        // Every power of ten, or every second one, and so on. 1 is always included.
        let every = (decades / MARKS_MAX).ceil().max(1.0) as i32;
        let numbers = powers
            .filter(|power| power % every == 0)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        numbers.filter(|number| self.holds(*number)).collect()
    }
}

/// The first of 1, 2, 5, 10, … that is not less than this.
pub fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        Axis::between(low, high, 0.0)
            .marks()
            .into_iter()
            .map(|mark| mark.label)
            .collect()
    }

    #[test]
    fn an_infinite_axis_has_few_marks() {
        let axis = Axis {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        assert!(axis.round().len() <= 1);
    }

    #[test]
    fn marks_are_round_and_have_no_difference_among_them() {
        assert_eq!(
            labels(0.96, 1.53),
            ["0", "+10 %", "+20 %", "+30 %", "+40 %", "+50 %"]
        );
        assert_eq!(
            labels(0.9955, 1.0045),
            ["−0.4 %", "−0.2 %", "0", "+0.2 %", "+0.4 %"]
        );
        assert_eq!(
            labels(0.19, 21.0),
            ["×0.2", "×0.5", "×1", "×2", "×5", "×10", "×20"]
        );
    }

    #[test]
    fn without_any_width_there_is_still_an_axis() {
        let axis = Axis::between(1.0, 1.0, 0.01);
        assert!((axis.place(1.0) - 0.5).abs() < 1e-9);
        assert!(axis.marks().iter().any(|mark| mark.label == "0"));
    }
}
