//! The time behind `--since`: so long ago, or a date.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::exit::Failed;

const UNITS: [(char, i64); 4] = [('w', 7 * 24 * 3600), ('d', 24 * 3600), ('h', 3600), ('m', 60)];

/// As records tell when they were made: RFC 3339 in UTC, so that texts compare as times do.
///
/// # Errors
/// If it is neither a length of time nor a date.
pub fn since(text: &str) -> Result<String, Failed> {
    at(text, Timestamp::now()).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).ok_or_else(|| {
        Failed::usage(format!("--since: `{text}` is neither a length of time nor a date"))
            .hint("such as 30d, 2w, 12h, 2026-11-01 or 2026-11-01T12:00:00Z; dates are UTC")
    })
}

fn at(text: &str, now: Timestamp) -> Option<Timestamp> {
    let length = UNITS.iter().find_map(|(unit, seconds)| {
        let count: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        i64::from(count).checked_mul(*seconds)
    });
    if let Some(seconds) = length {
        // So long ago that there was no calendar is since ever.
        return Some(now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::UNIX_EPOCH));
    }
    let date = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.parse::<Timestamp>().ok().or_else(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_dates_are_times_and_anything_else_is_told() {
        let now: Timestamp = "2026-11-22T01:00:00Z".parse().expect("a time");
        for (text, time) in [
            ("30d", "2026-10-23T01:00:00Z"),
            ("2w", "2026-11-08T01:00:00Z"),
            ("12h", "2026-11-21T13:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00Z"),
            ("4000000000d", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(at(text, now).map(|time| time.to_string()).as_deref(), Some(time), "{text}");
        }
        for text in ["", "d", "-3d", "yesterday", "3", "2026-13-01", "3y"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
