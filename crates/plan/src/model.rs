//! The checked plan that the lab runs, with every default filled in.
//!
//! It is only created by [`crate::parse`]. The record contains it as JSON, so every type here is also a
//! format.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::Secrets;

mod against;
mod design;
mod gate;
mod generators;
mod load;
mod measure;
mod service;

pub use against::*;
pub use design::*;
pub use gate::*;
pub use generators::*;
pub use load::*;
pub use measure::*;
pub use service::*;

pub use crate::rate::PlannedRate;
pub use ::model::{
    ArrivalProcess, Contract, Digest, Metric, Pacing, Protocol, RATE_MAX_PER_S, ResponseField,
    Think,
};

/// A checked experiment: every variant is resolved to plain values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name of the experiment, also the beginning of its records' names.
    pub name: String,
    /// The question the experiment answers, in the author's words.
    pub question: Option<String>,
    /// The factors in the order of the file, each with its levels in the order of the file.
    pub factors: Vec<Factor>,
    /// Every combination of levels, the last factor changing fastest.
    pub variants: Vec<Variant>,
    /// Which variant is compared with which.
    pub comparisons: Vec<Comparison>,
    /// The check of the machine: a baseline variant against a copy of itself, which is the last variant. It
    /// is not in [`Plan::comparisons`], because there is known to be no difference.
    pub aa: Option<Comparison>,
    /// Data that must be made or found before anything starts: the data that services of these variants use,
    /// by name.
    pub prepare: Vec<Preparation>,
    /// How services are built at another commit, if they are compared with one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub building: Building,
    /// The commit with which each variant is compared. `None` if variants are compared with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Where the load comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub generators: Generators,
    /// How the experiment is run and judged.
    pub design: Design,
    /// A measurement instead of comparisons: one variant, and the keys of `design` about blocks have no
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The limits of its gate, in the order of the file, followed by those from flags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateEntry>,
    /// Settings of `tune`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tune: Tune,
    /// Values that must not be stored, and the values of placeholders for secrets. In memory only.
    #[serde(skip)]
    pub secrets: Secrets,
}

/// Settings that `proofload tune` tries, in the notation of the flags with these names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tune {
    /// Settings to try in addition to the catalogue's: NAME=value, NAME=a|b|c, `flag: WORDS`, `before:
    /// WORDS`.
    #[serde(rename = "try")]
    pub tries: Vec<String>,
    /// Names of the catalogue's settings to try. Default: all.
    pub only: Vec<String>,
    /// Names of the catalogue's settings not to try.
    pub without: Vec<String>,
    /// Limits that the advice must keep, such as `memory < +20%`.
    pub keep: Vec<String>,
}

/// A factor, and its levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name of the factor, for example `node_env`.
    pub name: String,
    /// Names of its levels, for example `development` and `production`.
    pub levels: Vec<String>,
}

/// One combination of levels: one configuration of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The names of its levels joined by ` · `, for example `json · production`. `only` without factors.
    pub name: String,
    /// Maps factor names to level names.
    pub levels: BTreeMap<String, String>,
    /// The services that this variant starts, in the order of their dependencies, the entry last.
    pub services: Vec<Service>,
    /// Name of the service that gets the load.
    pub entry: String,
    /// The load on the entry.
    pub load: Load,
    /// Requirements for a response to count as a success.
    pub expect: Contract,
}

impl Plan {
    /// All names that tables and messages show.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        let factors = self.factors.iter().map(|factor| &factor.name).chain(levels);
        let comparisons = self
            .comparisons
            .iter()
            .chain(&self.aa)
            .map(|comparison| &comparison.label);
        let data = self.prepare.iter().map(|step| &step.name);
        let shared = [&self.name]
            .into_iter()
            .chain(factors)
            .chain(comparisons)
            .chain(data);
        shared
            .map(String::as_str)
            .chain(self.variants.iter().flat_map(Variant::names))
    }
}

impl Variant {
    fn names(&self) -> Vec<&str> {
        let services = self.services.iter().map(|service| service.name.as_str());
        let requests = self
            .load
            .requests
            .iter()
            .map(|request| request.name.as_str());
        services
            .chain(requests)
            .chain([self.name.as_str(), &self.entry])
            .collect()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Data that services need, made once by a command and cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Its name in the file. Services use it as `{prepare.NAME}`.
    pub name: String,
    /// Program and arguments, with the placeholders `{output}` and `{directory}` not yet replaced.
    pub command: Vec<String>,
    /// Absolute path of the working directory.
    pub directory: PathBuf,
    /// Variables added to Proofload's own environment, placeholders not yet replaced.
    pub env: BTreeMap<String, String>,
    /// Files and folders whose content counts, as the file names them: relative to `directory`.
    pub inputs: Vec<String>,
    /// Required free disk space. `None` is not checked.
    pub space_bytes: Option<u64>,
    /// Time limit.
    pub timeout: Duration,
    /// The file that marks the step as done, created when the command has succeeded. `None` if the command
    /// fills the folder `{output}`. Otherwise it changes its directory, as a build does, and fills no folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<PathBuf>,
}

/// One candidate vs its baseline, as indices into [`Plan::variants`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant compared with.
    pub baseline: usize,
    /// The variant in question.
    pub candidate: usize,
    /// Reads as "candidate vs baseline", for example `production vs development (json)`.
    pub label: String,
}
