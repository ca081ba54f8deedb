//! Proofload and other machines: hosts that the tests make themselves, each with a network, processes, a clock and a disk of its own,
//! that crash, are cut off and run full; and a real Kubernetes. They take root and some minutes, so that only `make test-cluster` runs them.

mod generators;
mod hosts;
mod kube;
mod server;
mod services;
mod ssh;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use load::LoadSpec;
use record::Record;
use remote::Channel;
use remote::generators::Fleet;

/// The service of the end-to-end tests, which says at its end how often it was asked.
const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/service.js");
const NEVER: &dyn Fn() -> bool = &|| false;

/// Everything that a program said.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// That it ended so, and said all of these.
fn ended(output: &Output, code: i32, parts: &[&str]) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
}

/// Whether something comes true in time.
fn within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Slices of a run that were measured by now.
fn measured(record: &Path) -> usize {
    let events = fs::read_to_string(record.join("events.jsonl")).unwrap_or_default();
    events.matches("\"measured\"").count()
}

/// Holds our count of requests against that of the service `api`, trial by trial; how many trials there are.
fn accounted_for(record: &Record) -> usize {
    let mut trials = 0;
    for block in record.complete_blocks() {
        for trial in &block.trials {
            let variant = &record.header.plan.variants[trial.variant()].name;
            let log = format!("logs/block-{:02}-{variant}-api.log", block.number);
            let log = fs::read_to_string(record.directory.join(log)).expect("its log");
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            let counted = log.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            // Beside the load there are two looks at a response before it.
            assert!(counted.is_some_and(|counted| (sent..=sent + 2).contains(&counted)), "{sent}: {log}");
            trials += 1;
        }
    }
    trials
}

/// These as one fleet, which knows their clocks and has this to do.
fn begun(channels: Vec<Channel>, specs: Vec<LoadSpec>) -> Fleet {
    let mut fleet = Fleet::connect(channels).expect("all are there");
    fleet.compare_clocks().expect("all answer");
    fleet.give(specs).expect("all begin");
    fleet
}
