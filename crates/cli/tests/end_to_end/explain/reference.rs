//! A profile that `node --cpu-prof` took of the same processes at the same time, parsed independently. Our
//! own profile must agree with it.
//!
//! It uses nothing of the parser under test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use explain::ExplainedService;
use record::Capture;
use serde_json::Value;

/// Number of functions that are compared.
const FUNCTIONS: usize = 10;
/// Permitted difference, beyond the difference between two samplings of the same process.
const TOLERANCE: f64 = 0.1;

/// A function: its name and the line at which it begins, from 1.
type Key = (String, u64);

/// Compares a subject's functions with the reference: the share of each of the most expensive ones.
pub fn agrees(profiles: &Path, captures: &[Capture], variant: usize, subject: &ExplainedService) {
    let windows: Vec<(u64, u64)> = captures
        .iter()
        .filter(|of| of.variant == variant)
        .map(|of| (of.start_ns, of.end_ns))
        .collect();
    assert!(!windows.is_empty(), "there were captures");
    let mut samples: BTreeMap<Key, f64> = BTreeMap::new();
    for file in fs::read_dir(profiles)
        .expect("node wrote profiles")
        .flatten()
    {
        let text = fs::read(file.path()).expect("it is readable");
        let profile: Value = serde_json::from_slice(&text).expect("node writes whole profiles");
        count(&profile, &windows, &mut samples);
    }
    let mut reference: Vec<(Key, f64)> = samples.into_iter().collect();
    reference.sort_by(|one, other| other.1.total_cmp(&one.1));
    reference.truncate(FUNCTIONS);
    assert!(reference.len() >= 5, "few functions: {reference:?}");
    let of_ours = |key: &Key| {
        let is_it = |row: &&explain::FunctionCost| {
            row.frame.function == key.0 && u64::from(row.frame.line) == key.1
        };
        subject
            .functions
            .iter()
            .filter(is_it)
            .map(|row| row.self_us.value)
            .sum::<f64>()
    };
    let ours: Vec<f64> = reference.iter().map(|(key, _)| of_ours(key)).collect();
    let (all_ours, all_theirs) = (
        ours.iter().sum::<f64>(),
        reference.iter().map(|(_, n)| n).sum::<f64>(),
    );
    for ((key, theirs), ours) in reference.iter().zip(&ours) {
        let (share, expected) = (ours / all_ours, theirs / all_theirs);
        // Both are counts of samples: n scatters by √n, and the difference of two by √2 of that.
        let chance = 3.0 * (2.0 / theirs).sqrt();
        let apart = (share / expected - 1.0).abs();
        assert!(
            apart < TOLERANCE + chance,
            "{key:?}: {share:.4} and by node --cpu-prof {expected:.4}, of {theirs} samples"
        );
    }
}

/// Samples of JavaScript functions within the windows. A profile's times are microseconds of CLOCK_MONOTONIC.
fn count(profile: &Value, windows: &[(u64, u64)], samples: &mut BTreeMap<Key, f64>) {
    let list = |name: &str| profile[name].as_array().cloned().unwrap_or_default();
    let mut frames: BTreeMap<u64, Key> = BTreeMap::new();
    for node in list("nodes") {
        let frame = &node["callFrame"];
        // Frames without a URL are V8's own or compiled code, and named differently by each tool.
        if frame["url"].as_str().is_some_and(|url| !url.is_empty()) {
            let name = frame["functionName"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let line = frame["lineNumber"].as_i64().unwrap_or(-1) + 1;
            if !name.is_empty() && line > 0 {
                frames.insert(
                    node["id"].as_u64().unwrap_or(0),
                    (name, line.unsigned_abs()),
                );
            }
        }
    }
    let mut at_us = profile["startTime"].as_f64().unwrap_or(0.0);
    for (node, delta) in list("samples").iter().zip(list("timeDeltas")) {
        at_us += delta.as_f64().unwrap_or(0.0);
        let at_ns = at_us * 1e3;
        let within = windows
            .iter()
            .any(|(start, end)| (*start as f64..*end as f64).contains(&at_ns));
        if let Some(key) = frames.get(&node.as_u64().unwrap_or(0)).filter(|_| within) {
            *samples.entry(key.clone()).or_default() += 1.0;
        }
    }
}
