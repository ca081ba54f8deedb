//! Strings for amounts with units of their own: space on a disk, the rate of a link, the delay on it.
//!
//! Each knows its limits, for they are the same wherever it stands.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{FormError, TextForm, text_form};

/// An amount of data on a disk, written `2200MB` or `2GB`; kept in bytes. Units are decimal, as disks are sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Space(pub u64);

const SPACE_UNITS: [(&str, u64); 2] = [("GB", 1_000_000_000), ("MB", 1_000_000)];

impl TextForm for Space {
    const NAME: &'static str = "Space";
    const WANTED: &'static str = "an amount of data such as \"500MB\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected an amount of data such as \"500MB\"",
            hint: "a whole number above 0 with MB or GB, a million or a thousand million bytes: \"500MB\", \"2GB\"",
        };
        let bytes = SPACE_UNITS.iter().find_map(|(name, unit)| {
            let number = text.strip_suffix(name).filter(|number| is_whole(number))?;
            number.parse::<u64>().ok()?.checked_mul(*unit)
        });
        match bytes {
            None => Err(error("is not an amount of data")),
            Some(0) => Err(error("is nothing")),
            Some(bytes) => Ok(Self(bytes)),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_largest_unit(formatter, self.0, &SPACE_UNITS)
    }
}

/// What a link carries, written `20mbit` or `1.5mbit`; kept in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Bandwidth(pub u64);

const BANDWIDTH_UNITS: [(&str, u64); 3] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000)];
/// Less would take seconds for a packet; more no kernel shapes by timers.
const BANDWIDTH_MIN: u64 = 8_000;
const BANDWIDTH_MAX: u64 = 10_000_000_000;

impl TextForm for Bandwidth {
    const NAME: &'static str = "Bandwidth";
    const WANTED: &'static str = "the rate of a link such as \"20mbit\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected the rate of a link such as \"20mbit\"",
            hint: "a number with kbit, mbit or gbit, from 8kbit to 10gbit: \"20mbit\", \"1.5mbit\"",
        };
        let bits = BANDWIDTH_UNITS.iter().find_map(|(name, unit)| {
            let number = text.strip_suffix(name).filter(|number| is_decimal(number))?;
            number.parse::<f64>().ok().map(|number| (number * *unit as f64).round() as u64)
        });
        match bits {
            None => Err(error("is not the rate of a link")),
            Some(bits) if bits < BANDWIDTH_MIN => Err(error("is too little, it must be at least 8kbit")),
            Some(bits) if bits > BANDWIDTH_MAX => Err(error("is too much, it must be at most 10gbit")),
            Some(bits) => Ok(Self(bits)),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) =
            BANDWIDTH_UNITS.into_iter().find(|(_, unit)| self.0 >= *unit).unwrap_or(("kbit", 1_000));
        write!(formatter, "{}{name}", self.0 as f64 / unit as f64)
    }
}

/// How long a packet is under way on a link, written `500us`, `5ms` or `1s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Delay(pub Duration);

const DELAY_UNITS: [(&str, u64); 3] = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
/// Half a round trip to a satellite and back is a quarter of this.
const DELAY_US_MAX: u64 = 1_000_000;

impl TextForm for Delay {
    const NAME: &'static str = "Delay";
    const WANTED: &'static str = "a delay such as \"5ms\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected a delay such as \"5ms\"",
            hint: "a whole number with us, ms or s, at most 1s: \"500us\", \"5ms\"",
        };
        let us = DELAY_UNITS.iter().find_map(|(name, unit)| {
            let number = text.strip_suffix(name).filter(|number| is_whole(number))?;
            number.parse::<u64>().ok()?.checked_mul(*unit)
        });
        match us {
            None => Err(error("is not a delay")),
            Some(us) if us > DELAY_US_MAX => Err(error("is too long, it must be at most 1s")),
            Some(us) => Ok(Self(Duration::from_micros(us))),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("s", 1_000_000), ("ms", 1_000), ("us", 1)];
        in_largest_unit(formatter, u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX), &units)
    }
}

/// In the largest of the units, the largest first, that leaves no rest.
fn in_largest_unit(formatter: &mut fmt::Formatter<'_>, amount: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (name, unit) =
        units.iter().find(|(_, unit)| amount.is_multiple_of(*unit)).or(units.last()).unwrap_or(&("", 1));
    write!(formatter, "{}{name}", amount / unit)
}

fn is_whole(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_decimal(number: &str) -> bool {
    number.split_once('.').map_or(is_whole(number), |(whole, part)| is_whole(whole) && is_whole(part))
}

text_form!(Space, "^[0-9]+(MB|GB)$", "An amount of data on a disk in MB or GB, such as 500MB or 2GB.");
text_form!(
    Bandwidth,
    "^[0-9]+([.][0-9]+)?(kbit|mbit|gbit)$",
    "What a link carries in a second, 8kbit to 10gbit, such as 20mbit."
);
text_form!(Delay, "^[0-9]+(us|ms|s)$", "How long a packet is under way, at most 1s, such as 500us or 5ms.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_their_units() {
        assert_eq!(Space::read("2200MB").unwrap().0, 2_200_000_000);
        assert_eq!(Space::read("2GB").unwrap().to_string(), "2GB");
        assert_eq!(Bandwidth::read("1.5mbit").unwrap().0, 1_500_000);
        assert_eq!(Bandwidth::read("8kbit").unwrap().to_string(), "8kbit");
        assert_eq!(Delay::read("500us").unwrap().0, Duration::from_micros(500));
        assert_eq!(Delay::read("1s").unwrap().to_string(), "1s");
        assert_eq!(Delay::read("0ms").unwrap().0, Duration::ZERO);
    }

    #[test]
    fn what_is_no_amount_or_beyond_the_limits_is_refused() {
        for text in ["", "MB", "0MB", "2", "2.5GB", "-1GB", "2TB", "99999999999999999999GB", "2 GB", "é"] {
            assert!(Space::read(text).is_err(), "{text:?}");
        }
        for text in ["20", "mbit", "7kbit", "10.1gbit", "20Mbit", ".5mbit", "1e3mbit", "inf gbit", "-1mbit"] {
            assert!(Bandwidth::read(text).is_err(), "{text:?}");
        }
        for text in ["5", "ms", "1001ms", "2s", "1.5ms", "-1ms", "5µs", "1s5ms", "99999999999999999999us"] {
            assert!(Delay::read(text).is_err(), "{text:?}");
        }
    }
}
