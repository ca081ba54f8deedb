//! What profiles claim, held against what was measured without them.
//!
//! **Method.** The difference of CPU time per request was measured by the kernel's accounting in trials without a profiler; profiles
//! have one of their own. Profiled ÷ measured is the explained share. Where the measured interval contains zero there is nothing to
//! explain. Below 80 % or above 125 % (its inverse) the reconciliation says so and no cause is told: what is missing may be what
//! differs. What the profiler cost is mentioned where it added more than 10 % to the CPU time of either variant.

use crate::figure::{percent, signed_amount, with_interval};
use crate::{Interval, Tax};

/// Explained share below which no cause is told.
pub const EXPLAINED_MIN: f64 = 0.8;
/// Explained share above which no cause is told: the inverse.
pub const EXPLAINED_MAX: f64 = 1.25;
/// Tax, as a part added to the CPU time, from which on the reconciliation mentions it.
pub const TAX_TOLD: f64 = 0.10;
/// Tax from which on it is a doubt.
pub const TAX_DOUBTED: f64 = 0.30;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reconciled {
    /// Profiled ÷ measured, where there is a difference.
    pub share: Option<f64>,
    /// In one line.
    pub line: String,
    /// Whether a cause may be told.
    pub sound: bool,
}

/// Holds a profiled difference against a measured one; `None` where nothing was measured.
pub(crate) fn reconcile(measured: Option<&Interval>, profiled: &Interval, taxes: &[Tax]) -> Reconciled {
    let mut found = held(measured, profiled.value);
    let most = taxes.iter().map(|tax| tax.cpu_ratio.value - 1.0).fold(0.0, f64::max);
    if most > TAX_TOLD {
        found.line.push_str(&format!("; the profiler added up to {} to the CPU time", percent(most)));
    }
    found
}

fn held(measured: Option<&Interval>, profiled: f64) -> Reconciled {
    let unsound = |share: Option<f64>, line: String| Reconciled { share, line, sound: false };
    let Some(measured) = measured.filter(|measured| measured.is_finite()) else {
        let line = "CPU time was not measured without a profiler, so that nothing tells how much the profiles explain";
        return unsound(None, line.into());
    };
    if !measured.excludes_zero() {
        let line = format!("no difference in CPU time per request to explain ({})", with_interval(measured));
        return unsound(None, line);
    }
    let difference = format!("{}/request", signed_amount(measured.value));
    let share = profiled / measured.value;
    match share {
        share if !share.is_finite() => unsound(None, format!("profiles cannot be held against {difference}")),
        share if share < 0.0 => unsound(
            Some(share),
            format!("profiles do not explain {difference}: they see {}", signed_amount(profiled)),
        ),
        share if share < EXPLAINED_MIN => unsound(
            Some(share),
            format!("profiles explain only {} of {difference}: too little to tell a cause", percent(share)),
        ),
        share if share > EXPLAINED_MAX => unsound(
            Some(share),
            format!(
                "profiles explain {} of {difference}: more than there is, so no cause is told",
                percent(share)
            ),
        ),
        share => Reconciled {
            share: Some(share),
            line: format!("profiles explain {} of {difference}", percent(share)),
            sound: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tax(ratio: f64) -> Tax {
        Tax { cpu_ratio: Interval::exactly(ratio), throughput_ratio: Interval::exactly(1.0 / ratio) }
    }

    fn held_against(profiled: f64, low: f64, high: f64) -> Reconciled {
        let measured = Interval { value: (low + high) / 2.0, low, high };
        reconcile(Some(&measured), &Interval::exactly(profiled), &[tax(1.04), tax(1.05)])
    }

    #[test]
    fn a_share_within_the_limits_is_told_as_it_is() {
        let found = held_against(76.44, 80.0, 88.0);
        assert_eq!(found.line, "profiles explain 91 % of +84 µs/request");
        assert!(found.sound);
        assert_eq!(held_against(-76.44, -88.0, -80.0).line, "profiles explain 91 % of −84 µs/request");
    }

    #[test]
    fn the_limits_themselves_are_sound_and_what_is_beyond_is_not() {
        for (profiled, sound) in [(80.0, true), (79.9, false), (125.0, true), (125.1, false), (-1.0, false)] {
            let found = held_against(profiled, 90.0, 110.0);
            assert_eq!(found.sound, sound, "{found:?}");
            assert_eq!(found.share, Some(profiled / 100.0));
        }
        assert!(held_against(79.9, 90.0, 110.0).line.contains("only 79.9 %"));
        assert!(
            held_against(-40.0, 90.0, 110.0).line.contains("do not explain +100 µs/request: they see −40 µs")
        );
    }

    #[test]
    fn what_may_be_zero_needs_no_explanation() {
        let found = held_against(50.0, -5.0, 11.0);
        assert_eq!(found.line, "no difference in CPU time per request to explain (+3 µs, −5 to +11)");
        assert_eq!((found.share, found.sound), (None, false));
        assert_eq!(held_against(50.0, 0.0, 11.0).share, None);
    }

    #[test]
    fn a_profiler_that_costs_is_mentioned_and_nonsense_survived() {
        let measured = Interval { value: 10.0, low: 9.0, high: 11.0 };
        let line = reconcile(Some(&measured), &Interval::exactly(10.0), &[tax(1.02), tax(1.14)]).line;
        assert_eq!(
            line,
            "profiles explain 100 % of +10 µs/request; the profiler added up to 14 % to the CPU time"
        );
        let nonsense = Interval { value: f64::NAN, low: 1.0, high: f64::INFINITY };
        assert!(!reconcile(Some(&nonsense), &Interval::exactly(1.0), &[]).sound);
        assert!(!reconcile(Some(&measured), &Interval::exactly(f64::NAN), &[]).sound);
        assert!(!reconcile(None, &Interval::exactly(1.0), &[]).sound);
    }
}
