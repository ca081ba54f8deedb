//! A finding: the result of one validity check, with its evidence in numbers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::check::named;

/// How grave a finding is, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No conclusion may be drawn.
    Void,
    /// The conclusion stands, with this in mind.
    Warning,
    /// Good to know.
    Note,
}

/// The result of one check that found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the check, for example `errors`; one of the [catalogue].
    pub check: &'static str,
    /// How grave it is.
    pub grade: Grade,
    /// What was found, in one sentence, with its figures.
    pub evidence: String,
    /// What it means and what to do.
    pub remedy: String,
    /// The variants it is about; empty means all.
    pub variants: Vec<usize>,
}

impl Finding {
    /// Whether this finding forbids a comparison of these two variants.
    pub fn voids(&self, baseline: usize, candidate: usize) -> bool {
        let concerns = |variant| self.variants.is_empty() || self.variants.contains(&variant);
        // Of two that do different work either may be compared with others.
        let of_a_pair = self.check == "different_work";
        let hit = if of_a_pair {
            concerns(baseline) && concerns(candidate)
        } else {
            concerns(baseline) || concerns(candidate)
        };
        self.grade == Grade::Void && hit
    }

    /// The number under which docs/validity.md explains it, for example `V8`.
    pub fn number(&self) -> Option<&'static str> {
        named(self.check).map(|entry| entry.number)
    }
}

/// A finding as other programs get it: the number is the catalogue's, and no field.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct Told<'a> {
    /// Under which docs/validity.md explains it, such as `V8`.
    number: Option<&'static str>,
    /// Stable name of the check, such as `errors`.
    check: &'static str,
    /// How grave it is.
    grade: Grade,
    /// What was found, in one sentence, with its figures.
    evidence: &'a str,
    /// What it means and what to do.
    remedy: &'a str,
    /// Places of the variants it is about among `variants`; empty means all.
    variants: &'a [usize],
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding { check, grade, evidence, remedy, variants } = self;
        Told { number: self.number(), check, grade: *grade, evidence, remedy, variants }.serialize(serializer)
    }
}

impl JsonSchema for Finding {
    fn schema_name() -> Cow<'static, str> {
        Told::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Told::json_schema(generator)
    }
}
