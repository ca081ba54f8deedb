//! Writes the records of `corpus/`: each feature alone, and each kind of weather for each kind of run.

use std::env;
use std::path::{Path, PathBuf};

use plan::Plan;
use record::{Header, Repeat, Writer};

use crate::choices::{CHOICES, Choice};
use crate::world::{Weather, World};
use crate::{environment, folder, planned};

/// Kinds of runs for which every weather is tried, in addition to a comparison of throughput.
const RUNS: [&str; 4] = ["p99", "objective", "steps", "requests"];

#[test]
#[ignore = "writes: CORPUS=FOLDER cargo test --test combinations corpus -- --ignored"]
fn writes_the_records_of_the_corpus() {
    let into =
        PathBuf::from(env::var_os("CORPUS").expect("CORPUS names a folder that is not there yet"));
    let files = folder();
    for (index, choice) in CHOICES.iter().enumerate() {
        write(
            &into,
            &[*choice],
            Weather::Faster,
            index as u64,
            files.path(),
        );
    }
    let runs = CHOICES
        .iter()
        .filter(|choice| RUNS.contains(&choice.name))
        .map(|choice| vec![*choice]);
    for choices in [Vec::new()].into_iter().chain(runs) {
        for (index, weather) in Weather::ALL.into_iter().enumerate() {
            // Each single choice already exists.
            if weather == Weather::Faster && !choices.is_empty() {
                continue;
            }
            write(&into, &choices, weather, index as u64, files.path());
        }
    }
}

/// Runs these choices, if they are a valid experiment, and stores the record.
fn write(into: &Path, choices: &[Choice], weather: Weather, seed: u64, files: &Path) {
    let Ok(plan) = planned(choices, files) else {
        return;
    };
    let name = choices
        .iter()
        .map(|choice| format!("{}-{}", choice.axis, choice.name))
        .chain([format!("{weather:?}")]);
    let name: String = name
        .collect::<Vec<_>>()
        .join("-")
        .to_lowercase()
        .replace([' ', '.', '_'], "-");
    let (repeat, command) = repeat(&plan);
    let header = Header {
        repeat,
        ..environment::header(plan.clone(), seed, command)
    };
    let writer = Writer::create(&into.join(name), header, &crate::experiment(choices))
        .expect("the record is made");
    let _ = proofload_lab::run(writer, &mut World::new(&plan, seed, weather), &mut |_| {});
}

/// How to repeat such a run, and the command that makes its record.
fn repeat(plan: &Plan) -> (Repeat, &'static [&'static str]) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let file = "simulated.toml";
    if plan.measure.is_some() {
        let command = &["proofload", "load", "http://127.0.0.1:3000"];
        (Repeat::AsTyped, command)
    } else if !plan.design.slo.is_empty() {
        let mut again: Vec<String> = words(&["capacity", file]);
        let slo = plan.design.slo.iter();
        again.extend(slo.flat_map(|limit| ["--slo".to_owned(), limit.to_string()]));
        let command = &["proofload", "capacity", "experiment.toml"];
        (Repeat::Command(again), command)
    } else if plan.aa.is_some() {
        let variant = plan.variants[0].name.as_str();
        let again = words(&["doctor", "calibrate", file, "--variant", variant]);
        let command = &["proofload", "doctor", "calibrate", "experiment.toml"];
        (Repeat::Command(again), command)
    } else if plan.tune != plan::Tune::default() {
        (Repeat::SavedFile, &["proofload", "tune", "experiment.toml"])
    } else {
        let command = &["proofload", "run", "experiment.toml"];
        (Repeat::Command(words(&["run", file])), command)
    }
}
