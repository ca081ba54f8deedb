//! Findings: the observation of a check, its figures as values, and a remedy.
//!
//! All statements about a measurement or its conditions use this one type: checks of records, hazards of
//! machines, output of other tools, caveats of a slice, doubts about an explanation. They differ in the type
//! of their [`Code`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::grade::Grade;
use crate::quantity::Quantity;

/// Identifies findings of one kind.
pub trait FindingCode {
    /// Whether the findings are about variants of a plan.
    const OF_VARIANTS: bool = false;

    /// Stable name, for example `errors`.
    fn code(&self) -> &str;

    /// Section number in docs/validity.md, if any: `V8`.
    fn section(&self) -> Option<&'static str> {
        None
    }

    /// Label shown next to the grade: `V8`, or the name of the checked item. `None` if no label helps.
    fn mark(&self) -> Option<&str> {
        self.section()
    }

    /// Whether the findings are about variants relative to each other. Each of two named variants may still
    /// be compared with a third.
    fn is_of_pairs(&self) -> bool {
        false
    }
}

impl FindingCode for &'static str {
    fn code(&self) -> &str {
        self
    }

    fn mark(&self) -> Option<&str> {
        Some(self)
    }
}

/// An observation: a sentence and its figures as values. See [`evidence!`](crate::evidence).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    sentence: String,
    figures: BTreeMap<Cow<'static, str>, Quantity>,
}

impl Evidence {
    /// Creates evidence from a sentence and its figures by name.
    pub fn new(
        sentence: impl Into<String>,
        figures: impl IntoIterator<Item = (&'static str, Quantity)>,
    ) -> Evidence {
        Evidence {
            sentence: sentence.into(),
            figures: BTreeMap::new(),
        }
        .with(figures)
    }

    /// The sentence.
    pub fn as_str(&self) -> &str {
        &self.sentence
    }

    /// The figures by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.figures
            .iter()
            .map(|(name, quantity)| (name.as_ref(), *quantity))
    }

    /// Adds figures.
    #[must_use]
    pub fn with(mut self, figures: impl IntoIterator<Item = (&'static str, Quantity)>) -> Evidence {
        self.figures.extend(
            figures
                .into_iter()
                .map(|(name, quantity)| (Cow::Borrowed(name), quantity)),
        );
        self
    }

    /// Rewords the sentence: `proxied: 12 of 300 requests failed`.
    #[must_use]
    pub fn reworded(self, words: impl FnOnce(&str) -> String) -> Evidence {
        Evidence {
            sentence: words(&self.sentence),
            ..self
        }
    }
}

impl std::ops::Deref for Evidence {
    type Target = str;

    fn deref(&self) -> &str {
        &self.sentence
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.sentence)
    }
}

impl<T: Into<String>> From<T> for Evidence {
    fn from(sentence: T) -> Evidence {
        Evidence::new(sentence, [])
    }
}

/// Creates evidence. The arguments are a format string as for `format!`, then after a semicolon the figures
/// by name. Each figure is a [`Quantity`](crate::Quantity) or a number with a noun
/// ([`counted`](crate::quantity::counted)).
///
/// ```
/// use proofload_model::quantity::counted;
/// use proofload_model::{Quantity, evidence};
/// let variant = "proxied";
/// let seen = evidence!("{variant}: {failed} of {requests} failed";
///     failed = Quantity::count(12_u64), requests = counted(3000_u64, "request"));
/// assert_eq!(seen.as_str(), "proxied: 12 of 3,000 requests failed");
/// assert_eq!(seen.figures().next(), Some(("failed", Quantity::count(12_u64))));
/// ```
#[macro_export]
macro_rules! evidence {
    ($words:literal $(, $argument:expr)* $(,)? $(; $($name:ident = $quantity:expr),+ $(,)?)?) => {{
        $($(let $name = $quantity;)+)?
        $crate::Evidence::new(
            format!($words $(, $argument)*),
            [$($((stringify!($name), $crate::Quantity::from($name))),+)?],
        )
    }};
}

/// Meaning of a finding and the recommended action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remedy {
    /// Text of the remedy. Empty if no action is needed.
    pub text: Cow<'static, str>,
    /// Command that performs the action, if any.
    pub command: Option<Cow<'static, str>>,
}

impl Remedy {
    /// Adds the command that performs the action.
    #[must_use]
    pub fn by(self, command: impl Into<Cow<'static, str>>) -> Remedy {
        Remedy {
            command: Some(command.into()),
            ..self
        }
    }
}

impl std::ops::Deref for Remedy {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Remedy {
    fn from(text: T) -> Remedy {
        Remedy {
            text: text.into(),
            command: None,
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding<C> {
    /// The check that reported it.
    pub check: C,
    /// Severity.
    pub grade: Grade,
    /// The observation.
    pub evidence: Evidence,
    /// Meaning and recommended action.
    pub remedy: Remedy,
    /// Indices in the plan of the affected variants. Empty means all.
    pub variants: Vec<usize>,
}

impl<C> Finding<C> {
    /// Creates a finding about all variants.
    pub fn new(
        check: C,
        grade: Grade,
        evidence: impl Into<Evidence>,
        remedy: impl Into<Remedy>,
    ) -> Finding<C> {
        Finding {
            check,
            grade,
            evidence: evidence.into(),
            remedy: remedy.into(),
            variants: Vec::new(),
        }
    }

    /// Creates a finding that makes the affected figures invalid.
    pub fn void(check: C, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> Finding<C> {
        Finding::new(check, Grade::Invalid, evidence, remedy)
    }

    /// Creates a warning.
    pub fn warning(
        check: C,
        evidence: impl Into<Evidence>,
        remedy: impl Into<Remedy>,
    ) -> Finding<C> {
        Finding::new(check, Grade::Warning, evidence, remedy)
    }

    /// Creates a note.
    pub fn note(check: C, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> Finding<C> {
        Finding::new(check, Grade::Note, evidence, remedy)
    }

    /// Creates a finding that reports no problem.
    pub fn fine(check: C, evidence: impl Into<Evidence>) -> Finding<C> {
        Finding::new(check, Grade::Fine, evidence, "")
    }

    /// Restricts the finding to these variants.
    #[must_use]
    pub fn about(self, variants: impl Into<Vec<usize>>) -> Finding<C> {
        Finding {
            variants: variants.into(),
            ..self
        }
    }
}

impl<C: FindingCode> Finding<C> {
    /// Numbers of the findings that forbid conclusions about this variant, with spaces between them.
    pub fn voiding(all: &[Finding<C>], variant: usize) -> String {
        let concerns =
            |one: &&Finding<C>| one.variants.is_empty() || one.variants.contains(&variant);
        let voiding = all
            .iter()
            .filter(|one| one.grade == Grade::Invalid)
            .filter(concerns);
        crate::distinct(voiding.filter_map(|one| one.check.section())).join(" ")
    }

    /// Whether this finding forbids a comparison of these two variants.
    pub fn voids(&self, baseline: usize, candidate: usize) -> bool {
        let concerns = |variant| self.variants.is_empty() || self.variants.contains(&variant);
        let hit = match self.check.is_of_pairs() {
            true => concerns(baseline) && concerns(candidate),
            false => concerns(baseline) || concerns(candidate),
        };
        self.grade == Grade::Invalid && hit
    }
}

/// A finding in its serialized form.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingForm {
    /// Section number in docs/validity.md, such as `V8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<Cow<'static, str>>,
    /// Stable name of the check, such as `errors`.
    check: String,
    /// Severity.
    grade: Grade,
    /// The observation in one sentence, with its figures.
    evidence: String,
    /// The figures of the sentence by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    figures: BTreeMap<Cow<'static, str>, Quantity>,
    /// Meaning and recommended action.
    remedy: Cow<'static, str>,
    /// Command that performs the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Cow<'static, str>>,
    /// Indices in `variants` of the affected variants. Empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<usize>>,
}

impl<C: FindingCode> Serialize for Finding<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding {
            check,
            grade,
            evidence,
            remedy,
            variants,
        } = self;
        let form = FindingForm {
            number: check.section().map(Cow::Borrowed),
            check: check.code().to_owned(),
            grade: *grade,
            evidence: evidence.sentence.clone(),
            figures: evidence.figures.clone(),
            remedy: remedy.text.clone(),
            command: remedy.command.clone(),
            variants: C::OF_VARIANTS.then(|| variants.clone()),
        };
        form.serialize(serializer)
    }
}

impl<'de, C: Deserialize<'de>> Deserialize<'de> for Finding<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{IntoDeserializer, value::StringDeserializer};
        let FindingForm {
            check,
            grade,
            evidence: sentence,
            figures,
            remedy: text,
            command,
            variants,
            ..
        } = FindingForm::deserialize(deserializer)?;
        let code: StringDeserializer<D::Error> = check.into_deserializer();
        let (check, variants) = (C::deserialize(code)?, variants.unwrap_or_default());
        let (evidence, remedy) = (Evidence { sentence, figures }, Remedy { text, command });
        Ok(Finding {
            check,
            grade,
            evidence,
            remedy,
            variants,
        })
    }
}

impl<C> JsonSchema for Finding<C> {
    fn schema_name() -> Cow<'static, str> {
        FindingForm::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        FindingForm::json_schema(generator)
    }
}
