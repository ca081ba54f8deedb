//! Strings with a form of their own: durations, percentages, shares of a capacity, request paths, names.
//!
//! Each type reads itself and says what is wrong in a reader's words; ranges that depend on the key are not its business.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod host;
mod limit;
mod quantity;

pub(crate) use host::{Address, Host};
pub(crate) use limit::{LimitText, Relation};
pub(crate) use quantity::{Bandwidth, Delay, Space};

/// Why a string does not have the form that its key asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct FormError {
    /// Follows the key and the value: "is not a duration".
    pub reason: String,
    /// Names the form: "expected a duration such as `10s`".
    pub label: &'static str,
    pub hint: &'static str,
}

/// A string type that can be named in the schema and checked from there.
pub(crate) trait TextForm: Sized {
    /// The name of its definition in the schema.
    const NAME: &'static str;
    /// For people: "a duration such as \"10s\"".
    const WANTED: &'static str;

    fn read(text: &str) -> Result<Self, FormError>;
}

/// What the check of a file needs to know of a form.
pub(crate) struct Form {
    pub name: &'static str,
    pub wanted: &'static str,
    pub check: fn(&str) -> Result<(), FormError>,
}

/// Every form, by the name that the schema refers to it with.
pub(crate) const FORMS: [Form; 11] = [
    form::<Period>(),
    form::<Percent>(),
    form::<CapacityShare>(),
    form::<RequestPath>(),
    form::<Name>(),
    form::<Space>(),
    form::<Bandwidth>(),
    form::<Delay>(),
    form::<LimitText>(),
    form::<Host>(),
    form::<Address>(),
];

const fn form<T: TextForm>() -> Form {
    Form { name: T::NAME, wanted: T::WANTED, check: |text| T::read(text).map(drop) }
}

/// A length of time, written `250ms`, `10s`, `2m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Period(pub Duration);

/// Units from the longest to the shortest, in which order they must be written, with their milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl TextForm for Period {
    const NAME: &'static str = "Duration";
    const WANTED: &'static str = "a duration such as \"10s\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let no_duration = || FormError {
            reason: "is not a duration".to_owned(),
            label: "expected a duration such as \"10s\"",
            hint: "whole numbers with their units, the longest first: \"250ms\", \"10s\", \"2m\", \"1h30m\"",
        };
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total_ms = 0u64;
        while !rest.is_empty() || text.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(no_duration)?;
            let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic());
            let end = letters.map_or(rest.len(), |length| digits + length);
            let unit = units.find(|(name, _)| *name == &rest[digits..end]).ok_or_else(no_duration)?;
            let number: u64 = rest[..digits].parse().map_err(|_| no_duration())?;
            let sum = number.checked_mul(unit.1).and_then(|ms| total_ms.checked_add(ms));
            total_ms = sum.ok_or_else(no_duration)?;
            rest = &rest[end..];
        }
        Ok(Self(Duration::from_millis(total_ms)))
    }
}

impl Period {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn milliseconds(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest_ms = self.0.as_millis();
        if rest_ms == 0 {
            return formatter.write_str("0s");
        }
        for (unit, unit_ms) in UNITS {
            let number = rest_ms / u128::from(unit_ms);
            rest_ms %= u128::from(unit_ms);
            if number > 0 {
                write!(formatter, "{number}{unit}")?;
            }
        }
        Ok(())
    }
}

/// A part of a hundred, written `3%`; kept as a fraction above 0 and below 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Percent(pub f64);

impl TextForm for Percent {
    const NAME: &'static str = "Percent";
    const WANTED: &'static str = "a percentage such as \"3%\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected a percentage such as \"3%\"",
            hint: "a number above 0 and below 100 with its sign: \"3%\" or \"0.5%\"",
        };
        let hundredths = hundredths(text).ok_or_else(|| error("is not a percentage"))?;
        if hundredths <= 0.0 {
            Err(error("is too small, it must be more than 0%"))
        } else if hundredths >= 100.0 {
            Err(error("is too large, it must be less than 100%"))
        } else {
            Ok(Self(hundredths / 100.0))
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounding undoes what the division by 100 did to the last digits.
        write!(formatter, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

/// The number before the sign of a percentage: plain digits, with a fraction or without.
fn hundredths(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?;
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = number.split_once('.').map_or(plain(number), |(whole, part)| plain(whole) && plain(part));
    number.parse().ok().filter(|_| is_number)
}

/// A share of what a service can do, written `60%`; kept as a fraction above 0 and at most 0.95.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct CapacityShare(pub f64);

/// Nearer to capacity the queue never settles, and a few per cent of error in the capacity are an overload.
const CAPACITY_PERCENT_MAX: f64 = 95.0;

impl TextForm for CapacityShare {
    const NAME: &'static str = "CapacityShare";
    const WANTED: &'static str = "a share of capacity such as \"60%\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: String| FormError {
            reason,
            label: "expected a rate such as 1000, or a share of capacity such as \"60%\"",
            hint: "requests per second are a number without quotes: 1000; a share of what the slowest variant can do is \
                   above 0 and at most 95, with its sign: \"60%\"",
        };
        match hundredths(text) {
            None => Err(error("is not a share of capacity".to_owned())),
            Some(percent) if percent <= 0.0 => Err(error("is too small, it must be more than 0%".to_owned())),
            Some(percent) if percent > CAPACITY_PERCENT_MAX => {
                Err(error(format!("is too large, it must be at most {CAPACITY_PERCENT_MAX}%")))
            }
            Some(percent) => Ok(Self(percent / 100.0)),
        }
    }
}

impl fmt::Display for CapacityShare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Percent(self.0).fmt(formatter)
    }
}

/// A request target in origin form, as it is sent: `/path?query`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct RequestPath(pub String);

impl TextForm for RequestPath {
    const NAME: &'static str = "RequestPath";
    const WANTED: &'static str = "a path such as \"/healthz\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: String, hint: &'static str| FormError {
            reason,
            label: "expected a path such as \"/healthz\"",
            hint,
        };
        if !text.starts_with('/') {
            let hint = "only the path: host and port are those of the service";
            return Err(error("does not begin with `/`".to_owned(), hint));
        }
        match text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            Some(c) => {
                let hint = "it is sent as it stands: percent-encode such characters, a space as %20";
                Err(error(format!("contains {c:?}"), hint))
            }
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for RequestPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The name of an experiment; also the beginning of file names, hence so plain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Name(pub String);

const NAME_LENGTH_MAX: usize = 64;

impl TextForm for Name {
    const NAME: &'static str = "Name";
    const WANTED: &'static str = "a name such as \"node-env\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > NAME_LENGTH_MAX || !text.bytes().all(plain) {
            return Err(FormError {
                reason: "is not a name for an experiment".to_owned(),
                label: "expected a name such as \"node-env\"",
                hint: "1 to 64 characters: small letters, digits and `-`; records are named after it",
            });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Ties a form to serde and to the schema; `$pattern` is for editors, [`TextForm::read`] is what counts.
macro_rules! text_form {
    ($type:ty, $pattern:literal, $description:literal) => {
        impl TryFrom<Cow<'_, str>> for $type {
            type Error = FormError;
            fn try_from(text: Cow<'_, str>) -> Result<Self, FormError> {
                Self::read(&text)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Self::NAME.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $description })
            }
        }
    };
}

use text_form;

text_form!(
    Period,
    "^(?=.)([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    "A length of time: whole numbers with their units, the longest first, such as 250ms, 10s, 2m or 1h30m."
);
text_form!(Percent, "^[0-9]+([.][0-9]+)?%$", "A percentage above 0% and below 100%, such as 3% or 0.5%.");
text_form!(
    CapacityShare,
    "^[0-9]+([.][0-9]+)?%$",
    "A share of what the slowest variant can do in closed loop, above 0% and at most 95%, such as 60%."
);
text_form!(
    RequestPath,
    "^/[!-\"$-~]*$",
    "A request path as it is sent, with its query, such as /items?page=2."
);
text_form!(Name, "^[a-z0-9-]{1,64}$", "1 to 64 small letters, digits and hyphens.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, ms) in [("250ms", 250), ("10s", 10_000), ("2m", 120_000), ("1h30m", 5_400_000), ("0s", 0)]
        {
            let period = Period::read(text).unwrap();
            assert_eq!(period.0.as_millis(), ms, "{text}");
            assert_eq!(period.to_string(), text);
        }
        assert_eq!(Period::read("90s").unwrap().to_string(), "1m30s");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let nonsense =
            ["", "10", "s", "10 s", "1.5s", "-1s", "10parsecs", "30m1h", "1s1s", "99999999999999999h", "1é"];
        for text in nonsense {
            assert!(Period::read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn percentages_are_fractions_strictly_between_nothing_and_all() {
        assert_eq!(Percent::read("3%").unwrap().0, 0.03);
        assert_eq!(Percent::read("0.5%").unwrap().to_string(), "0.5%");
        for text in ["0%", "100%", "3", "%", "-3%", "3 %", "inf%", "1e1%", ".5%", "3%%"] {
            assert!(Percent::read(text).is_err(), "{text:?}");
        }
    }
}
