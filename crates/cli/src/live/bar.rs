//! Small drawings in one line of text: an interval against the margin, and a run of figures. Pure.

use stats::Estimate;

/// Part of an interval's drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The axis, no difference and the margin on it.
    Axis,
    /// The interval.
    Interval,
    /// The estimate.
    Point,
}

/// What stands on an axis of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawn<'a> {
    /// Nothing yet.
    Nothing,
    /// A ratio alone.
    Ratio(f64),
    /// A ratio with its interval.
    Interval(&'a Estimate),
}

/// The axis of ratios around 1, `width` columns of it (an odd number has a middle): the margin on both sides, and what is drawn on
/// it. The axis is logarithmic, and reaches two, four, eight, … margins to either side: as far as it must, so that an interval that
/// tightens is seen to, until it lies within the margin.
pub fn axis(drawn: Drawn<'_>, margin: f64, width: usize) -> Vec<(char, Mark)> {
    let margin = margin.max(1e-4).ln_1p();
    let (low, point, high) = match drawn {
        Drawn::Nothing => (0.0, None, 0.0),
        Drawn::Ratio(ratio) => (ratio.ln(), Some(ratio.ln()), ratio.ln()),
        Drawn::Interval(estimate) => (estimate.low.ln(), Some(estimate.ratio.ln()), estimate.high.ln()),
    };
    let reach = low.abs().max(high.abs());
    let mut half = margin * 2.0;
    while half < reach && half < f64::MAX / 4.0 {
        half *= 2.0;
    }
    let at = |value: f64| {
        let share = ((value / half).clamp(-1.0, 1.0) + 1.0) / 2.0;
        (share * (width.saturating_sub(1)) as f64).round() as usize
    };
    let ticks = [at(-margin), at(margin)];
    let interval = matches!(drawn, Drawn::Interval(_));
    let cell = |place: usize| {
        let covered = interval && (at(low)..=at(high)).contains(&place);
        if point.map(at) == Some(place) {
            return ('●', Mark::Point);
        }
        match (place == at(0.0), ticks.contains(&place), covered) {
            (true, _, true) | (_, true, true) => ('┿', Mark::Interval),
            (_, _, true) => ('━', Mark::Interval),
            (true, _, _) => ('│', Mark::Axis),
            (_, true, _) => ('┊', Mark::Axis),
            _ => ('·', Mark::Axis),
        }
    };
    (0..width).map(cell).collect()
}

/// The last figures as small bars, the newest on the right. The lowest and highest shown are the ends of the scale, but never less
/// than a tenth apart: what is steady looks steady.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let known = || shown.iter().flatten().copied();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let middle = (least + most) / 2.0;
    let (bottom, top) = (least.min(middle * 0.95), most.max(middle * 1.05));
    let bar = |value: &Option<f64>| match value {
        Some(value) if top > bottom => {
            let place = (value - bottom) / (top - bottom) * (BARS.len() - 1) as f64;
            BARS[(place.round() as usize).min(BARS.len() - 1)]
        }
        Some(_) => BARS[0],
        None => ' ',
    };
    let bars: String = shown.iter().map(bar).collect();
    format!("{bars:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(low: f64, ratio: f64, high: f64) -> String {
        let estimate = Estimate { blocks: 6, ratio, low, high, sd_log: 0.1, critical_t: 3.0 };
        axis(Drawn::Interval(&estimate), 0.03, 25).iter().map(|(cell, _)| cell).collect()
    }

    #[test]
    fn an_interval_tightens_against_the_margin_and_the_axis_holds_it() {
        let empty: String = axis(Drawn::Nothing, 0.03, 25).iter().map(|(cell, _)| cell).collect();
        let ratio: String = axis(Drawn::Ratio(16.7), 0.03, 25).iter().map(|(cell, _)| cell).collect();
        insta::assert_snapshot!([
            empty,
            ratio,
            drawn(0.80, 1.05, 1.38),
            drawn(0.93, 1.03, 1.14),
            drawn(0.99, 1.01, 1.03),
            drawn(0.995, 1.0, 1.005),
            drawn(15.0, 16.7, 18.6),
            drawn(1e-300, 1.0, 1e300),
        ].join("\n"), @r"
        ······┊·····│·····┊······
        ············│········●···
        ······━━━━━┿┿●━━━━━━━····
        ········━━━┿┿━●━━━━━·····
        ······┊···━━┿━●━━━┿······
        ······┊····━●━····┊······
        ············│········●···
        ···━━━━━━━━━●━━━━━━━━━···
        ");
    }

    #[test]
    fn what_is_steady_looks_steady_and_the_newest_is_on_the_right() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(sparkline(&some(&[100.0, 101.0, 100.0]), 5), "  ▄▅▄");
        assert_eq!(sparkline(&some(&[1.0, 100.0, 50.0, 100.0]), 3), "█▁█");
        assert_eq!(sparkline(&[None, Some(0.0)], 2), " ▁");
        assert_eq!(sparkline(&[], 3), "   ");
    }
}
