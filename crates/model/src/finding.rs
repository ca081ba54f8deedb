//! A finding: what a check saw, with its figures as values, and what to do about it.
//!
//! One type for all that Proofload has to say of a measurement or of what it depends on: checks of records, hazards of machines, other
//! tools' output, caveats of a slice, doubts about an explanation. They differ in the [`Code`] by which they are known.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::check::Check;
use crate::quantity::Quantity;

/// How grave a finding is, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No conclusion may be drawn from the figures that it is about.
    #[serde(rename = "void")]
    Invalid,
    /// They stand, with this in mind.
    Warning,
    /// Good to know.
    Note,
    /// As it should be. Told only where everything is told that was looked at.
    Fine,
}

impl Grade {
    /// Whether the finding makes a result doubtful, or forbids it.
    pub fn is_grave(self) -> bool {
        match self {
            Grade::Invalid | Grade::Warning => true,
            Grade::Note | Grade::Fine => false,
        }
    }
}

/// By what findings of one kind are known.
pub trait Code {
    /// Whether its findings are about variants of a plan.
    const OF_VARIANTS: bool = false;

    /// Its stable name, for example `errors`.
    fn code(&self) -> &str;

    /// The number under which docs/validity.md explains it, where it has one: `V8`.
    fn section(&self) -> Option<&'static str> {
        None
    }

    /// What people read of it beside the grade: `V8`, or the name of what is looked at; `None` where neither helps.
    fn mark(&self) -> Option<&str> {
        self.section()
    }
}

impl Code for &'static str {
    fn code(&self) -> &str {
        self
    }

    fn mark(&self) -> Option<&str> {
        Some(self)
    }
}

/// What was seen: a sentence, and its figures as values. See [`evidence!`](crate::evidence).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    sentence: String,
    figures: BTreeMap<Cow<'static, str>, Quantity>,
}

impl Evidence {
    /// A sentence, and those of its figures that programs may want, by name.
    pub fn new(
        sentence: impl Into<String>,
        figures: impl IntoIterator<Item = (&'static str, Quantity)>,
    ) -> Evidence {
        Evidence { sentence: sentence.into(), figures: BTreeMap::new() }.with(figures)
    }

    /// The sentence.
    pub fn as_str(&self) -> &str {
        &self.sentence
    }

    /// Its figures by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.figures.iter().map(|(name, quantity)| (name.as_ref(), *quantity))
    }

    /// The same with more figures.
    #[must_use]
    pub fn with(mut self, figures: impl IntoIterator<Item = (&'static str, Quantity)>) -> Evidence {
        self.figures.extend(figures.into_iter().map(|(name, quantity)| (Cow::Borrowed(name), quantity)));
        self
    }

    /// The same with other words around it: `proxied: 12 of 300 requests failed`.
    #[must_use]
    pub fn reworded(self, words: impl FnOnce(&str) -> String) -> Evidence {
        Evidence { sentence: words(&self.sentence), ..self }
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

/// Composes evidence: the words as for `format!`, then behind a semicolon the figures in them by name, each a
/// [`Quantity`](crate::Quantity), or one with its noun ([`counted`](crate::quantity::counted)).
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

/// What a finding means and what to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remedy {
    /// In words; empty where there is nothing to do.
    pub text: Cow<'static, str>,
    /// The command that does it, where there is one.
    pub command: Option<Cow<'static, str>>,
}

impl Remedy {
    /// The same with the command that does it.
    #[must_use]
    pub fn by(self, command: impl Into<Cow<'static, str>>) -> Remedy {
        Remedy { command: Some(command.into()), ..self }
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
        Remedy { text: text.into(), command: None }
    }
}

/// What one check saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding<C = Check> {
    /// Which check.
    pub check: C,
    /// How grave it is.
    pub grade: Grade,
    /// What was found.
    pub evidence: Evidence,
    /// What it means and what to do.
    pub remedy: Remedy,
    /// The variants it is about, by place in the plan; empty means all.
    pub variants: Vec<usize>,
}

impl<C> Finding<C> {
    /// A finding about everything.
    pub fn new(
        check: C,
        grade: Grade,
        evidence: impl Into<Evidence>,
        remedy: impl Into<Remedy>,
    ) -> Finding<C> {
        Finding { check, grade, evidence: evidence.into(), remedy: remedy.into(), variants: Vec::new() }
    }

    /// One that forbids conclusions.
    pub fn void(check: C, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> Finding<C> {
        Finding::new(check, Grade::Invalid, evidence, remedy)
    }

    /// One to have in mind.
    pub fn warning(check: C, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> Finding<C> {
        Finding::new(check, Grade::Warning, evidence, remedy)
    }

    /// One that is good to know.
    pub fn note(check: C, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> Finding<C> {
        Finding::new(check, Grade::Note, evidence, remedy)
    }

    /// That something is as it should be.
    pub fn fine(check: C, evidence: impl Into<Evidence>) -> Finding<C> {
        Finding::new(check, Grade::Fine, evidence, "")
    }

    /// The same about these variants alone.
    #[must_use]
    pub fn about(self, variants: impl Into<Vec<usize>>) -> Finding<C> {
        Finding { variants: variants.into(), ..self }
    }
}

impl Finding {
    /// Numbers of the findings that forbid conclusions about this variant, with spaces between them.
    pub fn voiding(all: &[Finding], variant: usize) -> String {
        let concerns = |one: &&Finding| one.variants.is_empty() || one.variants.contains(&variant);
        let voiding = all.iter().filter(|one| one.grade == Grade::Invalid).filter(concerns);
        crate::distinct(voiding.map(|one| one.check.number())).join(" ")
    }

    /// Whether this finding forbids a comparison of these two variants.
    pub fn voids(&self, baseline: usize, candidate: usize) -> bool {
        let concerns = |variant| self.variants.is_empty() || self.variants.contains(&variant);
        let hit = match self.check.row().of_pairs {
            true => concerns(baseline) && concerns(candidate),
            false => concerns(baseline) || concerns(candidate),
        };
        self.grade == Grade::Invalid && hit
    }
}

/// A finding as other programs get it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct Form {
    /// Under which docs/validity.md explains it, such as `V8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<Cow<'static, str>>,
    /// Stable name of the check, such as `errors`.
    check: String,
    /// How grave it is.
    #[serde(default = "warning")]
    grade: Grade,
    /// What was found, in one sentence, with its figures.
    evidence: String,
    /// Those figures by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    figures: BTreeMap<Cow<'static, str>, Quantity>,
    /// What it means and what to do.
    remedy: Cow<'static, str>,
    /// The command that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Cow<'static, str>>,
    /// Places of the variants it is about among `variants`; empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<usize>>,
}

/// The grade of what was told before there were grades.
fn warning() -> Grade {
    Grade::Warning
}

impl<C: Code> Serialize for Finding<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding { check, grade, evidence, remedy, variants } = self;
        let form = Form {
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
        let Form { check, grade, evidence: sentence, figures, remedy: text, command, variants, .. } =
            Form::deserialize(deserializer)?;
        let code: StringDeserializer<D::Error> = check.into_deserializer();
        let (check, variants) = (C::deserialize(code)?, variants.unwrap_or_default());
        let (evidence, remedy) = (Evidence { sentence, figures }, Remedy { text, command });
        Ok(Finding { check, grade, evidence, remedy, variants })
    }
}

impl<C> JsonSchema for Finding<C> {
    fn schema_name() -> Cow<'static, str> {
        Form::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Form::json_schema(generator)
    }
}
