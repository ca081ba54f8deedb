//! Parses the rates that users request, and converts shares of capacity to rates. Pure.
//!
//! ```text
//! RATE  = LEVEL                    one slice at a rate
//!       | LEVEL..LEVEL             one slice in which it changes
//!       | LEVEL,LEVEL,...          one slice after the other
//! LEVEL = AMOUNT | NUMBER%         requests a second, or a share of capacity
//! AMOUNT = NUMBER | NUMBERk | NUMBERM
//! ```
//! This module does not measure. The caller provides the capacity.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{count, rate};
use crate::rate::{RATE_MAX_PER_S, Rate};

/// Hint with the accepted forms, for error messages.
const FORMS: &str = "expected 1000, a ramp 1000..5000, steps 500,1000,2000, or with shares of saturation 60%, 10%..150%, \
                     25%,50%,100%";
/// Maximum percentage. Far above it a service only fails, and the result is useless.
const PERCENT_MAX: f64 = 1000.0;

/// A requested rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateLevel {
    /// Requests per second.
    PerSecond(f64),
    /// Percentage of the capacity, which is measured first.
    Percent(f64),
}

/// The requested rate of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Constant rate.
    At(RateLevel),
    /// Ramp from the first rate at the start of the slice to the second at its end.
    Ramp(RateLevel, RateLevel),
}

/// The rates of all slices, at least one. A ramp is the only entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rates(Vec<Ask>);

impl RateLevel {
    /// Converts to requests per second.
    fn per_s(self, capacity_per_s: f64) -> f64 {
        match self {
            RateLevel::PerSecond(per_s) => per_s,
            RateLevel::Percent(percent) => percent / 100.0 * capacity_per_s,
        }
    }

    /// The requested share of capacity, 1 for all of it. `None` if a rate was requested.
    pub fn share(self) -> Option<f64> {
        match self {
            RateLevel::PerSecond(_) => None,
            RateLevel::Percent(percent) => Some(percent / 100.0),
        }
    }

    fn written(self) -> String {
        match self {
            RateLevel::PerSecond(per_s) => per_s.to_string(),
            RateLevel::Percent(percent) => format!("{percent}%"),
        }
    }

    fn number(self) -> f64 {
        let (RateLevel::PerSecond(number) | RateLevel::Percent(number)) = self;
        number
    }
}

impl Ask {
    /// Converts to a rate. `capacity_per_s` is ignored if no share of it was requested.
    pub fn rate(self, capacity_per_s: f64, over: Duration) -> Rate {
        match self {
            Ask::At(level) => Rate::Constant(level.per_s(capacity_per_s)),
            Ask::Ramp(from, to) => {
                let (from_per_s, to_per_s) = (from.per_s(capacity_per_s), to.per_s(capacity_per_s));
                Rate::Ramp {
                    from_per_s,
                    to_per_s,
                    over,
                }
            }
        }
    }

    /// The requested share of capacity. `None` if a rate or a ramp was requested.
    pub fn share(self) -> Option<f64> {
        match self {
            Ask::At(level) => level.share(),
            Ask::Ramp(..) => None,
        }
    }

    fn written(self) -> String {
        match self {
            Ask::At(level) => level.written(),
            Ask::Ramp(from, to) => format!("{}..{}", from.written(), to.written()),
        }
    }

    /// Whether the rate changes within the slice.
    fn is_ramp(self) -> bool {
        match self {
            Ask::At(_) => false,
            Ask::Ramp(..) => true,
        }
    }

    /// Whether the capacity must be known to compute the rate.
    pub fn needs_capacity(self) -> bool {
        match self {
            Ask::At(level) => level.share().is_some(),
            Ask::Ramp(from, to) => from.share().is_some() || to.share().is_some(),
        }
    }
}

impl Rates {
    /// The requested rates, one per slice, in order.
    pub fn asks(&self) -> &[Ask] {
        &self.0
    }

    /// Formats the rates so that they parse to the same value.
    pub fn written(&self) -> String {
        self.0
            .iter()
            .map(|ask| ask.written())
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Whether the rate changes within a slice. The length of the slice must then be known.
    pub fn is_ramp(&self) -> bool {
        self.0.iter().any(|ask| ask.is_ramp())
    }
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Rates, String> {
        if let Some((from, to)) = text.split_once("..") {
            if text.contains(',') {
                return Err(format!(
                    "a ramp stands alone and cannot be one of several steps; {FORMS}"
                ));
            }
            return ramp(level(from)?, level(to)?).map(|ask| Rates(vec![ask]));
        }
        let steps: Vec<&str> = text.split(',').collect();
        if steps.iter().skip(1).any(|step| is_group_of_thousands(step)) {
            return Err(
                "commas separate steps, not thousands: 1000, or 1000,2000 for two steps".into(),
            );
        }
        steps
            .into_iter()
            .map(step)
            .collect::<Result<_, _>>()
            .map(Rates)
    }
}

/// Whether a step is like `000`, which is never a rate.
fn is_group_of_thousands(text: &str) -> bool {
    text.len() == 3 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn step(text: &str) -> Result<Ask, String> {
    let level = level(text)?;
    if level.number() > 0.0 {
        Ok(Ask::At(level))
    } else {
        Err(format!("{text} is too little, above 0"))
    }
}

fn ramp(from: RateLevel, to: RateLevel) -> Result<Ask, String> {
    // Ends of different kinds with equal numbers are different rates, unless both are 0.
    if from == to || from.number() == 0.0 && to.number() == 0.0 {
        return Err(format!(
            "a ramp needs two ends that differ, not {from} and {to}"
        ));
    }
    Ok(Ask::Ramp(from, to))
}

/// Parses a rate or a count: `1500`, `1.5k`, `2M`.
pub fn amount(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text
            .strip_suffix('M')
            .map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    Some(number(digits)? * factor)
}

/// Parses a count: an [`amount`] without a fraction.
pub fn whole_amount(text: &str) -> Option<u64> {
    let amount = amount(text).filter(|amount| amount.fract() == 0.0 && *amount < 1e15);
    // Digits alone may be more than a float can hold.
    text.parse().ok().or_else(|| Some(amount? as u64))
}

fn number(digits: &str) -> Option<f64> {
    // Otherwise the third dot of `...` would be parsed as part of the second number.
    let number = digits.parse().ok();
    number.filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))
}

fn level(text: &str) -> Result<RateLevel, String> {
    let text = text.trim();
    let (number, percent) = match text.strip_suffix('%') {
        Some(digits) => (number(digits.trim_end()), true),
        None => (amount(text), false),
    };
    match (number, percent) {
        (None, _) if text.is_empty() => Err(format!("a number is missing; {FORMS}")),
        (None, _) => Err(format!("{text:?} is no rate; {FORMS}")),
        (Some(number), true) if number > PERCENT_MAX => Err(format!(
            "{text} of saturation is too much, at most {PERCENT_MAX}%"
        )),
        (Some(number), true) => Ok(RateLevel::Percent(number)),
        (Some(number), false) if number > RATE_MAX_PER_S => Err(format!(
            "{text} requests a second are too many, at most {}",
            count(RATE_MAX_PER_S as u64)
        )),
        (Some(number), false) => Ok(RateLevel::PerSecond(number)),
    }
}

impl fmt::Display for RateLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // A requested rate is exact, so all digits are shown.
            RateLevel::PerSecond(per_s) if per_s.fract() == 0.0 => {
                write!(f, "{}/s", count(per_s as u64))
            }
            RateLevel::PerSecond(per_s) => f.write_str(&rate(per_s)),
            RateLevel::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ask::At(level) => level.fmt(f),
            Ask::Ramp(from, to) => write!(f, "{from} to {to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_as_it_is_meant() {
        let at = |numbers: &[f64]| {
            numbers
                .iter()
                .map(|&n| Ask::At(RateLevel::PerSecond(n)))
                .collect::<Vec<_>>()
        };
        let of = |percents: &[f64]| {
            percents
                .iter()
                .map(|&p| Ask::At(RateLevel::Percent(p)))
                .collect::<Vec<_>>()
        };
        let per_s = RateLevel::PerSecond;
        for (text, asks) in [
            ("1000", at(&[1000.0])),
            ("0.5", at(&[0.5])),
            ("1e3", at(&[1000.0])),
            ("1.5k,2M", at(&[1500.0, 2e6])),
            ("500,1000, 2000", at(&[500.0, 1000.0, 2000.0])),
            ("60%", of(&[60.0])),
            ("25%,50%,1000%", of(&[25.0, 50.0, 1000.0])),
            ("500,50%", [at(&[500.0]), of(&[50.0])].concat()),
            ("1000..5000", vec![Ask::Ramp(per_s(1000.0), per_s(5000.0))]),
            ("5000..0", vec![Ask::Ramp(per_s(5000.0), per_s(0.0))]),
            (
                "10%..150%",
                vec![Ask::Ramp(
                    RateLevel::Percent(10.0),
                    RateLevel::Percent(150.0),
                )],
            ),
        ] {
            let rates = Rates(asks);
            assert_eq!(text.parse().as_ref(), Ok(&rates), "{text}");
            assert_eq!(rates.written().parse().as_ref(), Ok(&rates), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_what_would_be() {
        for (text, problem) in [
            ("", "missing; expected 1000, a ramp"),
            ("1000..", "missing"),
            ("500,,1000", "missing"),
            ("fast", "\"fast\" is no rate; expected 1000"),
            ("1000/s", "is no rate"),
            ("k", "is no rate"),
            ("1kk", "is no rate"),
            ("1k%", "is no rate"),
            ("inf", "is no rate"),
            ("NaN%", "is no rate"),
            ("1000...5000", "\".5000\" is no rate"),
            ("1..2..3", "is no rate"),
            ("1,000", "not thousands"),
            ("1..2,3", "stands alone"),
            ("0", "above 0"),
            ("100,0%", "above 0"),
            ("0..0%", "differ"),
            ("500..500", "differ, not 500/s and 500/s"),
            ("20000000", "at most 10,000,000"),
            ("1001%", "at most 1000%"),
        ] {
            let refused = text.parse::<Rates>().unwrap_err();
            assert!(refused.contains(problem), "{text}: {refused}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        for (text, count) in [
            ("64", Some(64)),
            ("1.5k", Some(1500)),
            ("1.5", None),
            ("-1", None),
        ] {
            assert_eq!(whole_amount(text), count, "{text}");
        }
        assert_eq!(whole_amount("18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn a_share_is_of_the_capacity_and_a_rate_is_not() {
        let over = Duration::from_secs(10);
        let (half, hundred) = (RateLevel::Percent(50.0), RateLevel::PerSecond(100.0));
        assert_eq!(Ask::At(half).rate(3000.0, over), Rate::Constant(1500.0));
        assert_eq!(Ask::At(hundred).rate(3000.0, over), Rate::Constant(100.0));
        let ramp = Ask::Ramp(hundred, half);
        assert_eq!(
            ramp.rate(3000.0, over),
            Rate::Ramp {
                from_per_s: 100.0,
                to_per_s: 1500.0,
                over
            }
        );
        assert!(ramp.needs_capacity() && !Ask::At(hundred).needs_capacity());
    }
}
