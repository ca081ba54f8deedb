//! Access to the stored sound record and its parts, and to the findings of a record.

use std::collections::BTreeMap;
use std::time::Duration;

use plan::{Ready, Service, ServiceCommand, ServiceSource};
use proofload_analysis::{Check, Finding, Grade, Outcome, conclude};
use record::{OpenLoop, Record, Slice, Trial};
use stats::Latencies;

pub use crate::made::{slices as slices_of, sound, trials as trials_of};

pub fn trials(record: &mut Record) -> impl Iterator<Item = &mut Trial> {
    record.blocks.iter_mut().flat_map(|block| &mut block.trials)
}

pub fn slices(record: &mut Record) -> impl Iterator<Item = &mut Slice> {
    trials(record).flat_map(|trial| &mut trial.slices)
}

pub fn each(record: &mut Record, variant: usize, change: impl FnMut(&mut Slice)) {
    slices_of(record, variant).for_each(change);
}

pub fn all(record: &mut Record, change: impl FnMut(&mut Slice)) {
    slices(record).for_each(change);
}

/// Puts the load generator at its limit.
pub fn saturate(slice: &mut Slice) {
    slice.counts.generator.cpu_ns = slice.counts.generator.wall_ns.clone();
}

/// The checks that report findings in a record, with their grades.
pub fn found(record: &Record) -> Vec<(&'static str, Grade)> {
    conclude(record)
        .findings
        .iter()
        .map(|finding| (finding.check.name(), finding.grade))
        .collect()
}

/// The findings of a record: check, grade and evidence.
pub fn said(record: &Record) -> Vec<(&'static str, Grade, String)> {
    let findings = conclude(record).findings.into_iter();
    findings
        .map(|finding| {
            (
                finding.check.name(),
                finding.grade,
                finding.evidence.to_string(),
            )
        })
        .collect()
}

pub fn evidence(record: &Record) -> String {
    conclude(record)
        .findings
        .first()
        .expect("a finding")
        .evidence
        .to_string()
}

/// Plants a fault in a record.
pub type Plant = fn(&mut Record);

/// Asserts that each planted fault is found and nothing else, and that invalid comparisons have no number.
/// Returns the findings.
pub fn each_is_found<const N: usize>(
    made: fn() -> Record,
    faults: [(&str, Grade, Plant); N],
) -> [Finding<Check>; N] {
    faults.map(|(check, grade, plant)| {
        let mut record = made();
        plant(&mut record);
        assert_eq!(found(&record), [(check, grade)], "{check}");
        let mut conclusion = conclude(&record);
        let (void, comparison) = (grade == Grade::Invalid, &conclusion.comparisons[0]);
        assert_eq!(comparison.outcome == Outcome::Invalid, void, "{check}");
        let nothing = (
            comparison.estimate.is_none(),
            comparison.exploratory.is_empty(),
        );
        assert_eq!(nothing, (void, void), "{check}");
        conclusion.findings.remove(0)
    })
}

/// Creates an open loop with this number of requests per slice, these response times, and a client delay of
/// 20 µs.
pub fn open_loop(rate_per_s: f64, requests: u64, response: Latencies) -> Box<OpenLoop> {
    let mut schedule_lag = Latencies::new();
    (0..requests).for_each(|_| schedule_lag.record(20_000));
    let (intended, sent_in_window) = (requests, requests);
    Box::new(OpenLoop {
        rate_per_s,
        intended,
        sent_in_window,
        response,
        schedule_lag,
        ..OpenLoop::default()
    })
}

pub fn service(name: &str, command: &[&str], env: &[(&str, &str)]) -> Service {
    Service {
        name: name.into(),
        source: ServiceSource::Command(ServiceCommand {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            directory: "/srv".into(),
            env: map(env),
            ..ServiceCommand::default()
        }),
        ready: Ready::Tcp,
        ready_timeout: Duration::from_secs(30),
        needs: vec![],
    }
}

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
