//! Strings with a specific format: durations, percentages, rates, paths, names, amounts, addresses.
//!
//! Each type parses itself and describes errors for readers. It does not check limits that depend on the key,
//! or whether a file or an address exists.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ::model::{Digest, Rates, ResponseField, Think};
use serde::{Serialize, Serializer};

/// A string type that has a name in the schema and is validated by it.
pub(crate) trait TextForm: Sized {
    const FORM: TextRendering;

    /// Parses the text. The error follows key and value: "is not a duration".
    fn read(text: &str) -> Result<Self, String>;
}

/// Description of a form for the check of a file.
pub(crate) struct TextRendering {
    /// Name of its definition in the schema.
    pub name: &'static str,
    /// Description for messages: "a duration such as \"10s\"".
    pub wanted: &'static str,
    pub hint: &'static str,
    pub check: fn(&str) -> Result<(), String>,
}

/// Parses the value of a flag. The error contains the reason and the expected form.
pub(crate) fn told<T: TextForm>(text: &str) -> Result<T, String> {
    T::read(text).map_err(|reason| format!("{reason}: {}", T::FORM.hint))
}

/// Connects a form to serde and to the schema. The pattern is for editors, while the parsing function
/// decides. With a value in brackets it defines the type, too.
macro_rules! text_form {
    (
        #[doc = $description:literal]
        $(#[$attribute:meta])*
        $type:ident($value:ty) = $name:literal, $pattern:literal, $wanted:literal, $hint:literal, $read:expr
    ) => {
        #[doc = $description]
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        #[serde(try_from = "std::borrow::Cow<'_, str>")]
        $(#[$attribute])*
        pub(crate) struct $type(pub $value);
        $crate::text_form::text_form!(
            $type = $name, $pattern, $description, $wanted, $hint, |text: &str| $read(text).map($type)
        );
    };
    (
        $type:ident = $name:literal, $pattern:literal, $description:expr, $wanted:literal, $hint:literal, $read:expr
    ) => {
        impl $crate::text_form::TextForm for $type {
            const FORM: $crate::text_form::TextRendering = $crate::text_form::TextRendering {
                name: $name,
                wanted: $wanted,
                hint: $hint,
                check: |text| <Self as $crate::text_form::TextForm>::read(text).map(drop),
            };

            fn read(text: &str) -> Result<Self, String> {
                $read(text)
            }
        }

        impl TryFrom<std::borrow::Cow<'_, str>> for $type {
            type Error = String;
            fn try_from(text: std::borrow::Cow<'_, str>) -> Result<Self, String> {
                <Self as $crate::text_form::TextForm>::read(&text)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let description = $description.trim();
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": description })
            }
        }
    };
}

pub(crate) use text_form;

text_form! {
    /// A duration: whole numbers with their units, the longest first, such as 250ms, 10s, 2m or 1h30m.
    #[derive(Copy, PartialOrd)]
    Period(Duration) = "Duration",
    "^([0-9]+|(?=.)([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$",
    "a duration such as \"10s\"",
    "whole numbers with their units, the longest first, or seconds alone: \"250ms\", \"10s\", \"1m30s\", \"10\"",
    |text| period(text).ok_or_else(|| "is not a duration".to_owned())
}

/// Units from the longest to the shortest, which is the required order, with their milliseconds.
const UNITS_OF_TIME: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

fn period(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let mut rest = text;
    let mut units = UNITS_OF_TIME.iter();
    let mut total_ms = 0u64;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic());
        let end = letters.map_or(rest.len(), |length| digits + length);
        let unit = units.find(|(name, _)| *name == &rest[digits..end])?;
        let number: u64 = rest[..digits].parse().ok()?;
        total_ms = total_ms.checked_add(number.checked_mul(unit.1)?)?;
        rest = &rest[end..];
    }
    Some(Duration::from_millis(total_ms))
}

impl Period {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn milliseconds(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }

    /// The problem and the limit, if it is not within `least..=most`.
    pub fn beyond(self, (least, most): (Self, Self)) -> Option<(&'static str, String)> {
        if self < least {
            Some(("too short", format!("at least {least}")))
        } else if self > most {
            Some(("too long", format!("at most {most}")))
        } else {
            None
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest_ms = self.0.as_millis();
        if rest_ms == 0 {
            return formatter.write_str("0s");
        }
        UNITS_OF_TIME.iter().try_for_each(|(unit, ms)| {
            let number = rest_ms / u128::from(*ms);
            rest_ms %= u128::from(*ms);
            if number > 0 {
                write!(formatter, "{number}{unit}")
            } else {
                Ok(())
            }
        })
    }
}

/// Defaults appear in the schema in the file's notation.
impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

text_form! {
    /// A percentage above 0% and below 100%, such as 3% or 0.5%.
    #[derive(Copy)]
    Percent(f64) = "Percent",
    "^[0-9]+([.][0-9]+)?%$",
    "a percentage such as \"3%\"",
    "a number above 0 and below 100 with its sign: \"3%\" or \"0.5%\"",
    |text: &str| match text.strip_suffix('%').and_then(decimal) {
        None => Err("is not a percentage".to_owned()),
        Some(hundredths) if hundredths <= 0.0 => Err("is too small, it must be more than 0%".to_owned()),
        Some(hundredths) if hundredths >= 100.0 => Err("is too large, it must be less than 100%".to_owned()),
        Some(hundredths) => Ok(hundredths / 100.0),
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Rounding undoes the error of the division by 100.
        serializer.collect_str(&format_args!("{}%", (self.0 * 1e8).round() / 1e6))
    }
}

/// A number of plain digits, with or without a fraction.
pub(crate) fn decimal(number: &str) -> Option<f64> {
    let is_number = number
        .split_once('.')
        .map_or(is_whole(number), |(whole, part)| {
            is_whole(whole) && is_whole(part)
        });
    number.parse().ok().filter(|_| is_number)
}

fn is_whole(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

text_form! {
    /// Requests per second: 1000, a ramp 1000..5000, steps 500,1000,2000, or shares of saturation, which is
    /// measured first: 60%, 10%..150%.
    RatesText(Rates) = "Rates",
    "^[0-9. %,kM]+$",
    "rates such as \"1000\", \"500,1000\", \"100..5000\" or \"60%\"",
    "\"1000\", a ramp \"1000..5000\", steps \"500,1000,2000\", or shares of saturation: \"60%\", \"10%..150%\"",
    |text: &str| text.parse().map_err(|reason| format!("is no rate: {reason}"))
}

text_form! {
    /// Where in a response a value is: json: and a JSON pointer (RFC 6901) into its body, or header: and a name, such as json:/token.
    FieldText(ResponseField) = "ResponseField",
    "^(json:(/.*)?|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
    "a part of the response such as \"json:/token\"",
    "\"json:/user/token\" is a value of a body of JSON, by a JSON pointer; \"header:x-csrf\" is a header",
    |text: &str| match text.split_once(':') {
        Some(("json", pointer)) if pointer.is_empty() || pointer.starts_with('/') => {
            Ok(ResponseField::Json(pointer.to_owned()))
        }
        Some(("json", _)) => Err("is no JSON pointer: it does not begin with `/`".to_owned()),
        Some(("header", name)) if is_field_name(name) => Ok(ResponseField::Header(name.to_owned())),
        Some(("header", _)) => Err("has no name for a header".to_owned()),
        _ => Err("is no part of a response".to_owned()),
    }
}

text_form! {
    /// Pause of each connection between a response and its next request: constant, such as 500ms, or random
    /// with this mean, such as exponential 500ms.
    #[derive(Copy)]
    ThinkText(Think) = "Think",
    "^(exponential )?[0-9]+[0-9hms]*$",
    "a think time such as \"exponential 500ms\"",
    "\"500ms\" is always as long, \"exponential 500ms\" so long on average; at most an hour",
    |text: &str| {
        let random = text.strip_prefix("exponential ");
        match period(random.unwrap_or(text)) {
            None => Err("is not a think time".to_owned()),
            Some(Duration::ZERO) => Err("is no time".to_owned()),
            Some(time) if time > THINK_MAX => Err("is too long".to_owned()),
            Some(mean) if random.is_some() => Ok(Think::Exponential(mean)),
            Some(time) => Ok(Think::Constant(time)),
        }
    }
}

/// Connections are not kept open for longer.
const THINK_MAX: Duration = Duration::from_secs(3600);

/// A token (RFC 9110, 5.6.2).
pub(crate) fn is_field_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

text_form! {
    /// SHA-256 of a content: 64 hexadecimal digits, with sha256: before them or without.
    #[derive(Copy)]
    ContentDigest(Digest) = "ContentDigest",
    "^(sha256:)?[0-9A-Fa-f]{64}$",
    "a digest such as \"sha256:ba78…\"",
    "`sha256sum FILE` prints it, of the content without compression",
    |text: &str| {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        digits.parse().map_err(|why| format!("is no digest: {why}"))
    }
}

text_form! {
    /// A request path as it is sent, with its query, such as /items?page=2.
    #[derive(Serialize)]
    RequestPath(String) = "RequestPath",
    "^/[!-\"$-~]*$",
    "a path such as \"/healthz\"",
    "path and query alone, for host and port are those of the service; they are sent as they stand: percent-encode other characters, a space as %20",
    |text: &str| match text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        _ if !text.starts_with('/') => Err("does not begin with `/`".to_owned()),
        Some(c) => Err(format!("contains {c:?}")),
        None => Ok(text.to_owned()),
    }
}

text_form! {
    /// 1 to 64 lowercase letters, digits and hyphens.
    #[derive(Default)]
    Name(String) = "Name",
    "^[a-z0-9-]{1,64}$",
    "a name such as \"node-env\"",
    "1 to 64 characters: small letters, digits and `-`; records are named after it",
    |text: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=64).contains(&text.len()) && text.bytes().all(plain);
        is_name.then(|| text.to_owned()).ok_or("is not a name for an experiment".to_owned())
    }
}

text_form! {
    /// An amount of data on a disk in MB or GB, such as 500MB or 2GB.
    #[derive(Copy)]
    Space(u64) = "Space",
    "^[0-9]+(MB|GB)$",
    "an amount of data such as \"500MB\"",
    "a whole number above 0 with MB or GB, a million or a thousand million bytes: \"500MB\", \"2GB\"",
    |text| match whole(text, &[("GB", 1_000_000_000), ("MB", 1_000_000)]) {
        None => Err("is not an amount of data".to_owned()),
        Some(0) => Err("is nothing".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

/// A whole number with one of these units, in the smallest of them.
fn whole(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    units.iter().find_map(|(name, unit)| {
        let number = text.strip_suffix(name).filter(|number| is_whole(number))?;
        number.parse::<u64>().ok()?.checked_mul(*unit)
    })
}

text_form! {
    /// Data rate of a link, 8kbit to 10gbit, such as 20mbit.
    #[derive(Copy)]
    Bandwidth(u64) = "Bandwidth",
    "^[0-9]+([.][0-9]+)?(kbit|mbit|gbit)$",
    "the rate of a link such as \"20mbit\"",
    "a number with kbit, mbit or gbit, from 8kbit to 10gbit: \"20mbit\", \"1.5mbit\"",
    bandwidth
}

/// In bits per second. With a lower rate a packet would take seconds. Kernels do not shape higher rates by
/// timers.
fn bandwidth(text: &str) -> Result<u64, String> {
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)];
    let bits = units.iter().find_map(|(name, unit)| {
        let number = text.strip_suffix(name).and_then(decimal)?;
        Some((number * unit).round() as u64)
    });
    match bits {
        None => Err("is not the rate of a link".to_owned()),
        Some(..8_000) => Err("is too little, it must be at least 8kbit".to_owned()),
        Some(10_000_000_001..) => Err("is too much, it must be at most 10gbit".to_owned()),
        Some(bits) => Ok(bits),
    }
}

text_form! {
    /// Delay of a packet, at most 1s, such as 500us or 5ms.
    #[derive(Copy)]
    Delay(Duration) = "Delay",
    "^[0-9]+(us|ms|s)$",
    "a delay such as \"5ms\"",
    "a whole number with us, ms or s, at most 1s: \"500us\", \"5ms\"",
    |text| match whole(text, &[("us", 1), ("ms", 1_000), ("s", 1_000_000)]) {
        None => Err("is not a delay".to_owned()),
        // A quarter of this is half a round trip over a satellite.
        Some(1_000_001..) => Err("is too long, it must be at most 1s".to_owned()),
        Some(us) => Ok(Duration::from_micros(us)),
    }
}

text_form! {
    /// An IP address, of version 4 or 6.
    #[derive(Copy)]
    Address(IpAddr) = "Address",
    "^[0-9A-Fa-f:.]+$",
    "an IP address such as \"10.0.0.7\"",
    "one address of the machine, at which others can connect to it; no name, no port; `ip -brief address` lists them",
    |text: &str| match text.parse::<IpAddr>() {
        Err(_) => Err("is not an IP address".to_owned()),
        Ok(address) if address.is_unspecified() || address.is_multicast() => {
            Err("is no address that anybody can connect to".to_owned())
        }
        Ok(address) => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// None of these `|`-separated texts has the form.
    fn refused<T: TextForm + fmt::Debug>(texts: &str) {
        for text in texts.split('|') {
            assert!(T::read(text).is_err(), "{text:?}: {:?}", T::read(text));
        }
    }

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, ms) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("0s", 0),
        ] {
            let period = Period::read(text).unwrap();
            assert_eq!(
                (period.0.as_millis(), period.to_string().as_str()),
                (ms, text)
            );
        }
        for (text, written) in [("90s", "1m30s"), ("2", "2s"), ("0", "0s")] {
            assert_eq!(Period::read(text).unwrap().to_string(), written);
        }
        refused::<Period>("|s|10 s|1.5s|-1s|10parsecs|30m1h|1s1s|1é|99999999999999999h");
    }

    #[test]
    fn amounts_are_read_in_their_units_and_within_their_limits() {
        assert_eq!(Percent::read("3%").unwrap().0, 0.03);
        refused::<Percent>("0%|100%|3|%|-3%|3 %|inf%|1e1%|.5%|3%%");
        assert_eq!(Space::read("2200MB").unwrap().0, 2_200_000_000);
        refused::<Space>("|MB|0MB|2|2.5GB|-1GB|2TB|9999999999999999999GB|2 GB|é");
        assert_eq!(Bandwidth::read("1.5mbit").unwrap().0, 1_500_000);
        refused::<Bandwidth>("20|mbit|7kbit|10.1gbit|20Mbit|.5mbit|1e3mbit|-1mbit");
        for (text, us) in [("500us", 500), ("1s", 1_000_000), ("0ms", 0)] {
            assert_eq!(Delay::read(text).unwrap().0, Duration::from_micros(us));
        }
        refused::<Delay>("5|ms|1001ms|2s|1.5ms|-1ms|5µs|1s5ms|99999999999999999999us");
    }

    #[test]
    fn addresses_are_what_others_can_connect_to() {
        assert_eq!(Address::read("fd00::7").unwrap().0.to_string(), "fd00::7");
        refused::<Address>("|host|10.0.0.7:80|0.0.0.0|::|224.0.0.1|[::1]|10.0.0.256");
    }
}
