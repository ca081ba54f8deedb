//! A bound as it stands in `[gate]`: a relation, and an amount with its unit or a change with its sign.
//!
//! Whether a figure can have such a bound is judged where the figure is known.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{FormError, TextForm, text_form};
use crate::gate::{Bound, Unit};

/// On which side of its bound a figure has to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Above,
    Below,
}

/// A bound with its relation, written `< 50ms` or `> -3%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct LimitText {
    pub relation: Relation,
    pub bound: Bound,
}

/// No figure has more digits than these; keeps a slip from becoming infinite.
const NUMBER_LENGTH_MAX: usize = 15;

impl TextForm for LimitText {
    const NAME: &'static str = "Limit";
    const WANTED: &'static str = "a limit such as \"< 50ms\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: String| FormError {
            reason,
            label: "expected a limit such as \"< 50ms\" or \"> -3%\"",
            hint: "`<` or `>`, and an amount with its unit (/s, us, ms, s, kB, MB, GB, % of requests) or a change in per cent with \
                   its sign: \"< 50ms\", \"< +5%\", \"> -3%\"",
        };
        let (relation, rest) = match text.split_at_checked(1) {
            Some(("<", rest)) => (Relation::Below, rest),
            Some((">", rest)) => (Relation::Above, rest),
            _ => return Err(error("does not begin with `<` or `>`".to_owned())),
        };
        if rest.starts_with('=') {
            return Err(error("has a relation other than `<` or `>`".to_owned()));
        }
        let rest = rest.trim_start_matches(' ');
        let unsigned = rest.trim_start_matches(['+', '-']);
        let sign = &rest[..rest.len() - unsigned.len()];
        let (number, unit) =
            split(unsigned).ok_or_else(|| error("has no number that can be read".to_owned()))?;
        let bound = match (sign, unit) {
            (_, "") => return Err(error("has no unit".to_owned())),
            // Without the zero there would be a −0, which is written unlike it.
            ("-", "%") => Bound::Change(0.0 - number),
            ("+", "%") => Bound::Change(number),
            ("", unit) => match Unit::ALL.into_iter().find(|known| known.name() == unit) {
                Some(unit) => Bound::Amount(number, unit),
                None => return Err(error("has a unit that is not known".to_owned())),
            },
            ("+" | "-", _) => return Err(error("is an amount with a sign".to_owned())),
            _ => return Err(error("has more than one sign".to_owned())),
        };
        Ok(Self { relation, bound })
    }
}

/// The number that a text begins with, and the rest; `None` where it begins with none.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = number.split_once('.').map_or(plain(number), |(whole, part)| plain(whole) && plain(part));
    let number = number.parse().ok().filter(|_| is_number && number.len() <= NUMBER_LENGTH_MAX)?;
    Some((number, unit))
}

impl fmt::Display for LimitText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = match self.relation {
            Relation::Above => '>',
            Relation::Below => '<',
        };
        write!(formatter, "{relation} {}", self.bound)
    }
}

text_form!(
    LimitText,
    "^[<>] *([0-9]+([.][0-9]+)?(/s|us|ms|s|kB|MB|GB|%)|[+-][0-9]+([.][0-9]+)?%)$",
    "A limit: < or >, and an amount with its unit, such as < 50ms, or a change in per cent with its sign, such as > -3%."
);
