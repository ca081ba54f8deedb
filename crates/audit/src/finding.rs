//! A finding: the result of one validity check, with its evidence in numbers.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::catalogue;

/// How grave a finding is, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
        catalogue::named(self.check).map(|entry| entry.number)
    }
}

/// By hand, because the number is the catalogue's and no field.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding { check, grade, evidence, remedy, variants } = self;
        let mut out = serializer.serialize_struct("Finding", 6)?;
        out.serialize_field("number", &self.number())?;
        out.serialize_field("check", check)?;
        out.serialize_field("grade", grade)?;
        out.serialize_field("evidence", evidence)?;
        out.serialize_field("remedy", remedy)?;
        out.serialize_field("variants", variants)?;
        out.end()
    }
}
