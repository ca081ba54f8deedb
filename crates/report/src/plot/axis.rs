//! The axis of ratios: logarithmic, so that twice as fast and half as fast lie equally far from no difference.

use crate::figure::signed;

/// Narrowest axis, as a logarithm: where neither margin nor interval has any width.
const NARROWEST: f64 = 0.01;
/// An interval that reaches further than so many times what else is shown is cut off: its end is an arrow.
const REACH: f64 = 4.0;
/// Share of the axis that stays empty at either end.
const EMPTY: f64 = 0.04;
/// Up to this ratio of its ends an axis is told in per cent, and then in factors.
const PERCENT_MAX: f64 = 3.0;
/// Marks that are aimed at.
const MARKS_MAX: f64 = 7.0;

/// An estimate with its interval, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// From ratios to places.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Natural logarithms of its ends.
    low: f64,
    high: f64,
    /// Where it is drawn.
    left: f64,
    right: f64,
}

/// A mark of the axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub ratio: f64,
    pub label: String,
}

impl Axis {
    /// One that shows the margin and all intervals, drawn from `left` to `right`.
    pub fn over(spans: &[Span], margin: f64, (left, right): (f64, f64)) -> Axis {
        let band = (1.0 + margin.max(0.0)).ln();
        let furthest =
            spans.iter().map(|span| span.ratio.ln().abs()).fold(band, f64::max).max(NARROWEST / 2.0);
        let limit = furthest * REACH;
        let low = spans.iter().map(|span| span.low.ln()).fold(-band, f64::min).max(-limit);
        let high = spans.iter().map(|span| span.high.ln()).fold(band, f64::max).min(limit);
        let lacks = (NARROWEST - (high - low)).max(0.0) / 2.0;
        let empty = (high - low + 2.0 * lacks) * EMPTY;
        Axis { low: low - lacks - empty, high: high + lacks + empty, left, right }
    }

    /// Where a ratio lies; beyond the ends at the end.
    pub fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.ln() - self.low) / (self.high - self.low);
        self.left + share.clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// Whether a ratio lies on it.
    pub fn holds(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio.ln())
    }

    /// The marks, in rising order; 1 is among them.
    pub fn marks(&self) -> Vec<Mark> {
        if self.high - self.low < PERCENT_MAX.ln() { self.percents() } else { self.factors() }
    }

    fn percents(&self) -> Vec<Mark> {
        let (low, high) = (self.low.exp() - 1.0, self.high.exp() - 1.0);
        let steps = (-5..2).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        let step = steps.into_iter().find(|step| (high - low) / step <= MARKS_MAX).unwrap_or(1.0);
        let decimals = (-(step * 100.0).log10().floor()).clamp(0.0, 3.0) as usize;
        let places = (low / step).ceil() as i32..=(high / step).floor() as i32;
        let mark = |place: i32| {
            let change = f64::from(place) * step;
            let label = if place == 0 { "0".to_owned() } else { signed(change * 100.0, decimals) };
            Mark { ratio: 1.0 + change, label }
        };
        places.map(mark).collect()
    }

    fn factors(&self) -> Vec<Mark> {
        let powers = (self.low / 10_f64.ln()).floor() as i32..=(self.high / 10_f64.ln()).ceil() as i32;
        let decades = (self.high - self.low) / 10_f64.ln();
        let digits: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        // Every power of ten, or every second, and so on; 1 stays.
        let every = (decades / MARKS_MAX).ceil().max(1.0) as i32;
        let ratios = powers
            .filter(|power| power % every == 0)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        ratios
            .filter(|ratio| self.holds(*ratio))
            .map(|ratio| Mark { ratio, label: format!("×{ratio}") })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spans: &[(f64, f64, f64)], margin: f64) -> Vec<String> {
        let spans: Vec<Span> =
            spans.iter().map(|(ratio, low, high)| Span { ratio: *ratio, low: *low, high: *high }).collect();
        Axis::over(&spans, margin, (0.0, 400.0)).marks().into_iter().map(|mark| mark.label).collect()
    }

    #[test]
    fn marks_are_round_and_have_no_difference_among_them() {
        assert_eq!(labels(&[(1.29, 1.10, 1.52)], 0.03), ["0", "+10 %", "+20 %", "+30 %", "+40 %", "+50 %"]);
        assert_eq!(labels(&[(1.001, 0.999, 1.003)], 0.003), ["−0.4 %", "−0.2 %", "0", "+0.2 %", "+0.4 %"]);
        assert_eq!(
            labels(&[(16.0, 15.0, 17.0), (0.3, 0.2, 0.4)], 0.03),
            ["×0.2", "×0.5", "×1", "×2", "×5", "×10", "×20"]
        );
    }

    #[test]
    fn an_interval_without_end_does_not_squeeze_the_others() {
        let wide = Span { ratio: 1.02, low: 1e-9, high: 1e9 };
        let axis = Axis::over(&[wide, Span { ratio: 1.1, low: 1.05, high: 1.15 }], 0.03, (0.0, 400.0));
        assert!(!axis.holds(wide.low) && !axis.holds(wide.high));
        assert_eq!((axis.x(wide.low), axis.x(wide.high)), (0.0, 400.0));
        assert!((axis.x(1.15) - axis.x(1.05)) > 40.0);
    }

    #[test]
    fn without_any_width_there_is_still_an_axis() {
        let axis = Axis::over(&[Span { ratio: 1.0, low: 1.0, high: 1.0 }], 0.0, (0.0, 400.0));
        assert!((axis.x(1.0) - 200.0).abs() < 1e-9);
        assert!(axis.marks().iter().any(|mark| mark.label == "0"));
    }
}
