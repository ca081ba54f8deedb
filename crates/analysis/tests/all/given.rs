//! The kept sound record and its parts, and what is found in a record.

use std::collections::BTreeMap;
use std::time::Duration;

use plan::{Launcher, Ready, Service};
use proofload_analysis::{Grade, conclude};
use record::{Record, Slice, Trial};

pub use crate::made::sound;

/// All trials.
pub fn trials(record: &mut Record) -> impl Iterator<Item = &mut Trial> {
    record.blocks.iter_mut().flat_map(|block| &mut block.trials)
}

/// Those of a variant.
pub fn trials_of(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Trial> {
    trials(record).filter(move |trial| trial.variant() == variant)
}

/// All slices.
pub fn slices(record: &mut Record) -> impl Iterator<Item = &mut Slice> {
    trials(record).flat_map(|trial| &mut trial.slices)
}

/// Those of a variant.
pub fn slices_of(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut Slice> {
    trials_of(record, variant).flat_map(|trial| &mut trial.slices)
}

/// The checks that speak of a record, with their grades.
pub fn found(record: &Record) -> Vec<(&'static str, Grade)> {
    conclude(record).findings.iter().map(|finding| (finding.check.name(), finding.grade)).collect()
}

/// The same with what they say.
pub fn said(record: &Record) -> Vec<(&'static str, Grade, String)> {
    let findings = conclude(record).findings.into_iter();
    findings.map(|finding| (finding.check.name(), finding.grade, finding.evidence.to_string())).collect()
}

/// What the first finding says.
pub fn evidence(record: &Record) -> String {
    conclude(record).findings.first().expect("a finding").evidence.to_string()
}

/// A service of a plan.
pub fn service(name: &str, command: &[&str], env: &[(&str, &str)]) -> Service {
    Service {
        name: name.into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        directory: "/srv".into(),
        env: map(env),
        port: None,
        ready: Ready::Tcp,
        ready_timeout: Duration::from_secs(30),
        stop_timeout: Duration::from_secs(5),
        needs: vec![],
        launcher: Launcher::Exec,
        workers: None,
        pmx: true,
        kubernetes: None,
        templates: BTreeMap::new(),
        host: None,
        address: None,
    }
}

/// Variables by name.
pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
