//! Conclusion on a variant's capacity from its measured steps: the highest rate up to which the limits held
//! at every measured rate. Pure.
//!
//! A rate at or above one at which a limit broke is never stated.

use stats::Interval;

/// Share of its capacity below which a queue is so far from its limits that chance does not break them.
pub(super) const FAR_BELOW: f64 = 0.7;

/// All windows at about the same rate, judged together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateStep {
    /// Requests due per second.
    pub per_s: f64,
    /// Whether all limits held. `None` with too few requests.
    pub held: Option<bool>,
    /// Whether the load generator or its connections were the limit at this rate.
    pub is_limited: bool,
}

/// The crossing from the windows near it: the rate at which the first limit is reached, with its interval
/// over processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crossing {
    pub per_s: f64,
    pub interval: Interval,
}

/// Conclusion from the steps of one variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Holding {
    /// The limits held at every measured rate up to the lower end of the interval.
    Holds(Crossing),
    /// There is no interval. The highest measured rate that held below the lowest that broke, and the lowest
    /// that broke.
    Between([Option<f64>; 2]),
    /// A limit broke at a rate far below those at which it held.
    Erratic {
        broken: RateStep,
        held_per_s: Option<f64>,
        crossing_per_s: f64,
    },
}

/// Draws the conclusion. If a limit broke below the lower end of the interval, that end is lowered to the
/// highest rate that held below the break.
pub(super) fn judge(steps: &[RateStep], crossing: Option<Crossing>) -> Holding {
    let broke = steps.iter().filter(|step| step.held == Some(false));
    let broken = broke
        .min_by(|one, other| one.per_s.total_cmp(&other.per_s))
        .copied();
    let is_below = |per_s: f64| broken.is_none_or(|broken| per_s < broken.per_s);
    let kept = steps
        .iter()
        .filter(|step| step.held == Some(true))
        .map(|step| step.per_s);
    let held = kept.filter(|per_s| is_below(*per_s)).reduce(f64::max);
    let Some(crossing) = crossing else {
        return Holding::Between([held, broken.map(|step| step.per_s)]);
    };
    let erratic = broken.filter(|broken| broken.per_s < FAR_BELOW * crossing.per_s);
    if let Some(broken) = erratic {
        return Holding::Erratic {
            broken,
            held_per_s: held,
            crossing_per_s: crossing.per_s,
        };
    }
    // Without a step that held, no rate was shown to hold.
    let Some(held) = held else {
        return Holding::Between([None, broken.map(|step| step.per_s)]);
    };
    // Between a rate that held and one that broke, the windows determine the crossing. Above all measured
    // rates nothing is known.
    let is_between = is_below(crossing.interval.low) && broken.is_some();
    let low = if is_between {
        crossing.interval.low
    } else {
        crossing.interval.low.min(held)
    };
    Holding::Holds(Crossing {
        interval: Interval {
            low,
            ..crossing.interval
        },
        ..crossing
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step(per_s: f64, held: bool) -> RateStep {
        RateStep {
            per_s,
            held: Some(held),
            is_limited: false,
        }
    }

    fn crossing(low: f64, per_s: f64, high: f64) -> Option<Crossing> {
        Some(Crossing {
            per_s,
            interval: Interval { low, high },
        })
    }

    fn low(of: &Holding) -> Option<f64> {
        if let Holding::Holds(crossing) = of {
            Some(crossing.interval.low)
        } else {
            None
        }
    }

    #[test]
    fn holds_the_lower_end_between_held_and_broken() {
        let steps = [step(450.0, true), step(770.0, true), step(920.0, false)];
        assert_eq!(
            low(&judge(&steps, crossing(870.0, 908.0, 945.0))),
            Some(870.0)
        );
    }

    #[test]
    fn a_step_that_broke_near_the_crossing_lowers_the_number() {
        let steps = [
            step(450.0, true),
            step(770.0, true),
            step(830.0, false),
            step(910.0, true),
        ];
        assert_eq!(
            low(&judge(&steps, crossing(870.0, 908.0, 945.0))),
            Some(770.0)
        );
    }

    #[test]
    fn a_step_that_broke_far_below_is_inconclusive() {
        let steps = [step(230.0, true), step(450.0, false), step(910.0, true)];
        let erratic = Holding::Erratic {
            broken: step(450.0, false),
            held_per_s: Some(230.0),
            crossing_per_s: 908.0,
        };
        assert_eq!(judge(&steps, crossing(870.0, 908.0, 945.0)), erratic);
    }

    #[test]
    fn nothing_above_the_highest_measured_rate_holds() {
        let steps = [step(300.0, true), step(600.0, true)];
        assert_eq!(
            low(&judge(&steps, crossing(800.0, 810.0, 820.0))),
            Some(600.0)
        );
        assert_eq!(judge(&steps, None), Holding::Between([Some(600.0), None]));
    }

    #[test]
    fn without_a_step_that_held_nothing_holds() {
        let steps = [step(905.0, false)];
        assert_eq!(
            judge(&steps, crossing(870.0, 908.0, 945.0)),
            Holding::Between([None, Some(905.0)])
        );
        assert_eq!(
            judge(&[], crossing(870.0, 908.0, 945.0)),
            Holding::Between([None, None])
        );
    }

    fn steps() -> impl Strategy<Value = Vec<RateStep>> {
        let step = (
            1.0..2000.0f64,
            prop::option::of(any::<bool>()),
            any::<bool>(),
        );
        let step = step.prop_map(|(per_s, held, is_limited)| RateStep {
            per_s,
            held,
            is_limited,
        });
        prop::collection::vec(step, 0..12)
    }

    proptest! {
        /// For any measurements, the number is below every rate that broke, and within the measured rates.
        #[test]
        fn no_number_stands_above_a_broken_rate(
            steps in steps(),
            place in prop::option::of((1.0..2000.0f64, 0.0..0.5f64, 0.0..0.5f64)),
        ) {
            let crossing = place.map(|(per_s, below, above)| Crossing {
                per_s,
                interval: Interval { low: per_s * (1.0 - below), high: per_s * (1.0 + above) },
            });
            let broken = |step: &&RateStep| step.held == Some(false);
            let highest = steps.iter().filter(|step| step.held.is_some()).map(|step| step.per_s).fold(0.0, f64::max);
            match judge(&steps, crossing) {
                Holding::Holds(Crossing { interval, per_s }) => {
                    prop_assert!(steps.iter().filter(broken).all(|step| interval.low < step.per_s));
                    prop_assert!(interval.low <= highest && interval.low <= per_s && per_s <= interval.high);
                    prop_assert!(steps.iter().any(|step| step.held == Some(true) && !broken(&step)));
                }
                Holding::Between([held, broken_per_s]) => {
                    let all = || steps.iter().filter(broken);
                    prop_assert!(held.is_none_or(|held| all().all(|step| held < step.per_s)));
                    prop_assert_eq!(broken_per_s, all().map(|step| step.per_s).reduce(f64::min));
                }
                Holding::Erratic { broken, held_per_s, crossing_per_s } => {
                    prop_assert_eq!(broken.held, Some(false));
                    prop_assert!(broken.per_s < crossing_per_s);
                    prop_assert!(held_per_s.is_none_or(|held| held < broken.per_s));
                }
            }
        }
    }
}
