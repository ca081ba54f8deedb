//! Response times over the rate as a picture: the rate along a line, times on a logarithmic one, the limits that users bear, and the capacity
//! with its interval.
//!
//! ```text
//!   ms ┤            ╭─ p99      ─ ─ limit
//!      │ ──────────╯  ▒│▒       ▒ capacity, 95 %
//!      └──────────────────────  requests/s
//! ```

use analysis::{Capacity, RatePoint};
use model::quantity::Quantity;
use plan::Figure;
use stats::Interval;

use super::{Hold, MARGIN, Measured, RIGHT, SMALL_SIZE, Shape, Sheet};
use crate::experiment::capacity::told;
use crate::plot::drawing::Rgb;

const HEIGHT: f64 = 220.0;
/// Room for the names of times.
const LEFT: f64 = MARGIN + 58.0;
/// How far the axis goes beyond the highest rate, and beyond the longest limit.
const ROOM: f64 = 1.05;
const ABOVE_LIMIT: f64 = 6.0;

/// The curve of one variant.
#[derive(Debug)]
pub(super) struct Curve {
    told: String,
    limits_us: Vec<f64>,
    of: Capacity,
}

/// Those of all variants; none where capacity was not measured.
pub(super) fn all(of: &Measured<'_>) -> Vec<Curve> {
    let slo = &of.record.header.plan.design.slo;
    let times = slo.iter().filter(|limit| limit.figure != Figure::Failed).map(|limit| limit.bound.value());
    let limits_us: Vec<f64> = times.collect();
    let curve = |capacity: &Capacity| Curve {
        told: told(of.record, capacity),
        limits_us: limits_us.clone(),
        of: capacity.clone(),
    };
    of.conclusion.capacities.iter().map(curve).collect()
}

impl Curve {
    /// What it shows, in words.
    pub(super) fn told(&self) -> String {
        self.told.clone()
    }

    /// The shortest and the longest time that there is room for.
    fn times_us(&self) -> Option<(f64, f64)> {
        let medians = self.of.curve.iter().filter_map(|point| point.p50_us);
        let low = medians.reduce(f64::min)?.min(self.limits_us.iter().copied().fold(f64::INFINITY, f64::min));
        let p99 = self.of.curve.iter().filter_map(|point| point.p99_us).fold(0.0, f64::max);
        let limit = self.limits_us.iter().copied().fold(low, f64::max);
        Some((low * 0.7, p99.clamp(limit * 1.5, limit * ABOVE_LIMIT)))
    }
}

impl Sheet {
    pub(super) fn curve(&mut self, curve: &Curve) {
        self.y += 12.0;
        self.small(&curve.told);
        let Capacity { curve: points, per_s, interval, .. } = &curve.of;
        let highest = interval.map(|interval| interval.high);
        let rates = points.iter().map(|point| point.per_s);
        let most = rates.chain(*per_s).chain(highest).fold(0.0, f64::max) * ROOM;
        let Some((low, high)) = curve.times_us().filter(|_| most > 0.0) else { return };
        let (top, bottom) = (self.y + 14.0, self.y + 14.0 + HEIGHT);
        let palette = self.palette;
        let x = |per_s: f64| LEFT + (per_s / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let y = |us: f64| bottom - ((us.clamp(low, high) / low).ln() / (high / low).ln()) * HEIGHT;
        if let Some(Interval { low, high }) = *interval {
            self.area((x(low), top), ((x(high) - x(low)).max(1.0), HEIGHT), palette.band);
        }
        for us in decades(low, high) {
            self.area((LEFT, y(us)), (RIGHT - LEFT, 1.0), palette.grid);
            self.held(
                (LEFT - 6.0, y(us) + 4.0),
                SMALL_SIZE,
                (palette.faint, Hold::End),
                &Quantity::us(us).to_string(),
            );
        }
        let step = round_step(most / 5.0);
        for number in 0..=(most / step) as u32 {
            let per_s = step * f64::from(number);
            let label = Quantity::per_s(per_s).to_string();
            self.held((x(per_s), bottom + 16.0), SMALL_SIZE, (palette.faint, Hold::Middle), &label);
        }
        for us in &curve.limits_us {
            self.area((LEFT, y(*us) - 1.0), (RIGHT - LEFT, 2.0), palette.worse);
        }
        if let Some(per_s) = *per_s {
            self.area((x(per_s) - 1.0, top), (2.0, HEIGHT), palette.one);
        }
        type Time = fn(&RatePoint) -> Option<f64>;
        let lines: [(&str, Time, Rgb); 3] = [
            ("p50", |point| point.p50_us, palette.equivalent),
            ("p90", |point| point.p90_us, palette.inconclusive),
            ("p99", |point| point.p99_us, palette.better),
        ];
        for (name, time, fill) in lines {
            let points = points.iter().filter_map(|point| Some((x(point.per_s), y(time(point)?))));
            let points: Vec<(f64, f64)> = points.collect();
            self.line(&points, fill);
            if let Some((x, y)) = points.first() {
                self.held((x + 8.0, y - 6.0), SMALL_SIZE, (fill, Hold::Begin), name);
            }
        }
        self.y = bottom + 24.0;
        self.small("response time over requests per second; horizontal line: the SLO; vertical line and band: the capacity with its 95 % interval");
    }

    /// A line through these points, each of which is marked.
    fn line(&mut self, points: &[(f64, f64)], fill: Rgb) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let length = (x2 - x1).hypot(y2 - y1).max(f64::MIN_POSITIVE);
            let (dx, dy) = ((y2 - y1) / length, (x1 - x2) / length);
            let points = vec![(x1 + dx, y1 + dy), (x2 + dx, y2 + dy), (x2 - dx, y2 - dy), (x1 - dx, y1 - dy)];
            self.shapes.push(Shape::Polygon { points, fill });
        }
        for (x, y) in points {
            self.shapes.push(Shape::Circle { x: *x, y: *y, radius: 3.0, fill });
        }
    }
}

/// The next of 1, 2, 5, 10, … from this number on.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// Round times between these: 1, 10, 100 …, and 2 and 5 of them where that is few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high / low > 300.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(|us| (low..=high).contains(us)).collect()
}
