//! When a count of requests is reached: the inverse of [`Rate::due_by`]. Pure; it must not know threads or randomness.

use crate::Rate;

const NS_PER_S: f64 = 1e9;

/// A rate, prepared for being asked when.
#[derive(Debug, Clone, Copy)]
pub(super) enum Profile {
    Constant { per_s: f64 },
    Ramp(Ramp),
}

/// The rate goes from `from_per_s` to `to_per_s` in `over_s`, in which `total` requests are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ramp {
    from_per_s: f64,
    to_per_s: f64,
    over_s: f64,
    total: f64,
}

impl Profile {
    pub(super) fn new(rate: Rate) -> Profile {
        match rate {
            Rate::Constant(per_s) => Profile::Constant { per_s },
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let over_s = over.as_secs_f64();
                Profile::Ramp(Ramp { from_per_s, to_per_s, over_s, total: rate.due_by(over_s) })
            }
        }
    }

    /// The time at which `count` requests were due, nanoseconds from the start of the window; infinite if so many never
    /// are.
    pub(super) fn time_ns(&self, count: f64) -> f64 {
        match self {
            // The product is exact up to 9 million arrivals, and rounded once beyond: spacing never drifts.
            Profile::Constant { per_s } => count * NS_PER_S / per_s,
            Profile::Ramp(ramp) => ramp.time_s(count) * NS_PER_S,
        }
    }
}

impl Ramp {
    fn time_s(&self, count: f64) -> f64 {
        let Ramp { from_per_s, to_per_s, over_s, total } = *self;
        let per_s2 = (to_per_s - from_per_s) / over_s;
        match count {
            _ if count > total => over_s + (count - total) / to_per_s,
            _ if per_s2 >= 0.0 => climb_s(from_per_s, per_s2, count),
            // A fall is a climb seen from its end. Forwards the root would be of a difference, which at a rate of
            // nearly 0 has few digits left.
            _ => over_s - climb_s(to_per_s, -per_s2, total - count),
        }
    }
}

/// The time in which a rate that begins at `from_per_s` and grows by `per_s2` each second makes `count` requests.
///
/// The root of r·t + a·t²/2 = n, in the form whose denominator is a sum: (√(r² + 2an) − r) / a has no digits left where
/// a is nearly 0, and no value where it is.
fn climb_s(from_per_s: f64, per_s2: f64, count: f64) -> f64 {
    if count <= 0.0 {
        return 0.0;
    }
    2.0 * count / (from_per_s + (from_per_s * from_per_s + 2.0 * per_s2 * count).sqrt())
}
