//! `proofload run --explain` and `proofload profile` on real services with a known cause, and on invalid
//! input.
//!
//! The tests check names and orders of magnitude. Figures are only checked if the host did not take much CPU
//! time. Otherwise this is reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use explain::{CodeKind, CostComparison, DoubtKind, ExplainedService, Explanation, Frame};
use machine::CpuTicks;
use record::{Capture, CaptureKind};

use crate::place::{Draft, Place, Run, skip};

mod input;
mod reference;

const WORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/work.js");

/// Iterations of planted(), some 500 µs on today's processors and most of a request. The service reports the
/// actual time.
const TURNS: u32 = 300_000;
/// Maximum steal for a figure to be checked.
const STEAL_MAX: f64 = 0.1;

fn target(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../targets")
        .join(name);
    let target = target
        .canonicalize()
        .expect("the service under test is there");
    assert!(
        target.join("node_modules").exists(),
        "{name} is not installed: run scripts/setup"
    );
    target
}

/// The keys of a service that is one of the targets.
fn of_target(name: &str) -> String {
    format!(
        "command = [\"node\", \"server.js\"]\ndirectory = \"{}\"",
        target(name).display()
    )
}

/// An experiment on one service with these levels, or without any.
fn experiment(place: &Place, service: &str, levels: &str, load: &str, design: &str) -> PathBuf {
    let levels = if levels.is_empty() {
        String::new()
    } else {
        format!("[factors.setting]\n{levels}")
    };
    place.experiment(&Draft {
        service: &format!("{service}\nready_timeout = \"30s\"\nenv = {{ PORT = \"{{port}}\" }}"),
        more: &levels,
        load: &format!("connections = 8\ntimeout = \"20s\"\n{load}"),
        design: &format!("budget = \"10s\"\nslice = \"100ms\"\n{design}"),
    })
}

/// `proofload profile` of an experiment or a command, with the record of this place. One round, because the
/// effects are large.
fn profile(place: &Place, words: &[&str]) -> Command {
    let flags = [
        "profile", "--seed", "1", "--rounds", "1", "--record", "record",
    ];
    place.proofload(&[&flags[..], words].concat())
}

fn explanation(place: &Place) -> Explanation {
    let text =
        fs::read(place.record().join("explanation.json")).expect("the record has an explanation");
    serde_json::from_slice(&text).expect("it is one")
}

fn subject<'a>(explanation: &'a Explanation, variant: &str) -> &'a ExplainedService {
    let found = explanation
        .subjects
        .iter()
        .find(|subject| subject.variant == variant);
    found.unwrap_or_else(|| panic!("{variant} has no profile: {:?}", explanation.doubts))
}

fn comparison<'a>(explanation: &'a Explanation, variant: &str) -> &'a CostComparison {
    let found = explanation
        .comparisons
        .iter()
        .find(|comparison| comparison.variant == variant);
    found.unwrap_or_else(|| panic!("{variant} is compared with nothing"))
}

fn cost(subject: &ExplainedService, kind: CodeKind) -> f64 {
    subject
        .kinds
        .iter()
        .filter(|cost| cost.what == kind)
        .map(|cost| cost.us.value)
        .sum()
}

/// The whole text about a comparison, in lower case.
fn said(comparison: &CostComparison) -> String {
    let names = comparison
        .functions
        .iter()
        .take(8)
        .map(|change| format!("{:?}", change.what));
    let words = [&comparison.story, &comparison.waiting]
        .into_iter()
        .flatten()
        .cloned();
    names
        .chain(words)
        .collect::<Vec<String>>()
        .join("\n")
        .to_lowercase()
}

fn captures(place: &Place, kind: CaptureKind) -> Vec<Capture> {
    let record = record::open(&place.record()).expect("the record opens");
    record
        .captures
        .into_iter()
        .filter(|capture| capture.kind == kind)
        .collect()
}

#[test]
#[ignore = "slow: make check-slow"]
fn hashing_in_the_handler_is_named_with_its_line_and_told_from_hashing_in_the_pool() {
    let place = Place::new();
    let levels = "pool = { load.path = \"/auth2?username=ada&password=lovelace\" }\n\
                  handler = { load.path = \"/auth?username=ada&password=lovelace\" }";
    let file = experiment(
        &place,
        &of_target("auth"),
        levels,
        "",
        "cpus = \"shared\"\nexplain = true",
    );
    // A response takes a twentieth of a second, and a slice should have several.
    let text = place
        .read("experiment.toml")
        .replace("\"100ms\"", "\"600ms\"");
    place.write("experiment.toml", text.replace("\"10s\"", "\"90s\""));
    // Whether the two differ in throughput depends on the machine, and is not checked here.
    let Some(_) = place.run_well(&file, "\nWhere the time goes\n") else {
        return;
    };
    let explanation = explanation(&place);

    let handler = subject(&explanation, "handler");
    let hashing = |frame: &Frame| frame.function.contains("pbkdf2");
    let row = handler
        .functions
        .iter()
        .find(|row| hashing(&row.frame))
        .expect("pbkdf2 is among the functions");
    assert!(
        row.self_us.value > 0.5 * handler.cpu_us.value,
        "{row:?} of {:?}",
        handler.cpu_us
    );
    let pool = subject(&explanation, "pool");
    assert!(
        cost(pool, CodeKind::ThreadPool) > 0.5 * pool.cpu_us.value,
        "{:?} of {:?}",
        pool.kinds,
        pool.cpu_us
    );
    assert!(
        cost(handler, CodeKind::ThreadPool) < 0.1 * handler.cpu_us.value,
        "{:?}",
        handler.kinds
    );

    // The section of the report has function, file and line of the call of the hash function.
    let report = place.said(&["report", "record"]);
    let line = format!(
        "users.js:{}",
        line_of(&target("auth").join("users.js"), "function checkSync")
    );
    report.prints(&[
        "\nWhere the time goes\n",
        "pbkdf2",
        "checkSync",
        &line,
        "thread pool",
        "flame.html",
    ]);
    assert!(
        place.read("record/flame.html").contains("checkSync"),
        "the page knows the functions"
    );

    // Other formats, from the record alone, and the recomputed explanation.
    let folded = place.said(&[
        "profile",
        "record",
        "--variant",
        "handler",
        "--format",
        "folded",
    ]);
    folded.ends(0);
    let hashed = folded
        .out
        .lines()
        .filter(|line| line.contains("checkSync") && line.contains("pbkdf2"));
    let counts = hashed.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    let most = counts.fold(0.0, f64::max);
    assert!(most > 1e6, "{most} ns a request");
    let again = place.said(&["profile", "record", "--again"]);
    again.prints(&["pbkdf2", "bottom up, ", "top down"]);
}

fn line_of(file: &Path, what: &str) -> usize {
    let text = fs::read_to_string(file).expect("the service is there");
    1 + text
        .lines()
        .position(|line| line.contains(what))
        .expect("it has the function")
}

#[test]
#[ignore = "slow: make check-slow"]
fn templates_compiled_for_each_request_and_compression_are_named() {
    let place = Place::new();
    let levels = "plain = { api.env.NODE_ENV = \"production\" }\n\
                  development = { api.env.NODE_ENV = \"development\" }\n\
                  compressed = { api.env.NODE_ENV = \"production\", api.env.COMPRESSION = \"best\", \
                  load.headers.accept-encoding = \"gzip\" }";
    experiment(
        &place,
        &of_target("express-tuning"),
        levels,
        "path = \"/page\"",
        "",
    );
    profile(&place, &["experiment.toml"]).said().ends(0);
    let explanation = explanation(&place);
    let development = comparison(&explanation, "development");
    let pug = development
        .functions
        .iter()
        .filter(|change| is_pug(&change.what));
    let pug: f64 = pug.map(|change| change.difference.value).sum();
    assert!(
        pug > 0.5 * development.profiled_us.value,
        "{pug} of {:?}",
        development.profiled_us
    );
    // On a machine that is busy with other tests too little is explained for a conclusion, and then there
    // must be none.
    let explained = development
        .explained_share
        .is_some_and(|share| (0.8..=1.25).contains(&share));
    assert_eq!(
        development.story.is_some(),
        explained,
        "{}",
        development.reconciliation
    );
    assert!(
        !explained || said(development).contains("template"),
        "{}",
        said(development)
    );
    let compressed = said(comparison(&explanation, "compressed"));
    assert!(
        compressed.contains("zlib") || compressed.contains("gzip"),
        "{compressed}"
    );
    place.is_quiet();
}

fn is_pug(frame: &Frame) -> bool {
    let pug = |name: &str| {
        name.starts_with("pug")
            || matches!(
                name,
                "acorn" | "babylon" | "@babel/parser" | "constantinople" | "with"
            )
    };
    frame
        .package
        .as_ref()
        .is_some_and(|package| pug(&package.name) || package.name == "is-expression")
}

#[test]
fn each_of_four_workers_under_pm2_has_a_profile_and_its_share_of_the_requests() {
    let place = Place::new();
    let service = format!(
        "{}\nlauncher = \"pm2-cluster\"\nworkers = 4",
        of_target("express-json")
    );
    experiment(&place, &service, "", "", "cpus = \"shared\"");
    let said = profile(&place, &["experiment.toml"]).said();
    said.ends(0).prints(&["share of CPU"]);
    let explanation = explanation(&place);
    let subject = explanation.subjects.first().expect("it has a profile");
    for round in 1..=explanation.rounds {
        let profiled: Vec<_> = subject
            .workers
            .iter()
            .filter(|of| of.round == round && of.profiled)
            .collect();
        assert_eq!(profiled.len(), 4, "round {round}: {:?}", subject.workers);
        let counted: u64 = profiled.iter().filter_map(|worker| worker.requests).sum();
        let captured = captures(&place, CaptureKind::Cpu)
            .into_iter()
            .find(|of| of.round == round);
        let sent = captured.expect("the round was captured").requests as f64;
        // The services' own counts compared with the requests sent. Requests at the edges of the window may
        // be counted once more or less.
        assert!(
            (counted as f64 - sent).abs() < 0.05 * sent + 50.0,
            "round {round}: {counted} of {sent}"
        );
    }
    place.is_quiet();
}

#[test]
#[ignore = "slow: make check-slow"]
fn planted_work_and_a_planted_leak_are_found_with_their_size_and_another_profiler_sees_the_same() {
    let place = Place::new();
    let profiles = place.path("cpu-prof");
    let service = format!(
        "command = [\"node\", \"--cpu-prof\", \"--cpu-prof-dir={}\", \"{WORK}\"]",
        profiles.display()
    );
    let levels =
        format!("plain = {{}}\nplanted = {{ api.env.TURNS = {TURNS}, api.env.KEEP = 200 }}");
    experiment(&place, &service, &levels, "", "");
    let ticks = || CpuTicks::read().expect("/proc is there");
    let before = ticks();
    profile(&place, &["experiment.toml"]).said().ends(0);
    let steal = ticks().since(before).steal_share();
    let explanation = explanation(&place);
    let comparison = comparison(&explanation, "planted");

    let change = comparison
        .functions
        .iter()
        .find(|change| change.what.function == "planted")
        .expect("it is named");
    assert_eq!(
        change.what.line as usize,
        line_of(Path::new(WORK), "function planted")
    );
    assert_eq!(change.what.kind, CodeKind::Application, "{change:?}");
    assert!(
        change.baseline < 0.02 * change.variant,
        "without turns it does nothing: {change:?}"
    );
    let leak = comparison
        .heap
        .first()
        .unwrap_or_else(|| panic!("no memory was sampled: {:?}", explanation.doubts));
    assert_eq!(leak.what.function, "keepForever", "{:?}", comparison.heap);
    // Two hundred small numbers in an array take 4 or 8 bytes each.
    assert!((700.0..4000.0).contains(&leak.difference.value), "{leak:?}");
    if steal > STEAL_MAX {
        skip(&format!(
            "no figure was judged, for the host took {:.0} % of the CPU time",
            steal * 100.0
        ));
        return;
    }
    let clocked = clocked_us(&place).expect("the service says what it spent");
    let found = change.difference.value;
    assert!(
        (found / clocked - 1.0).abs() < 0.1,
        "{found} µs a request, the service clocked {clocked}"
    );
    reference::agrees(
        &profiles,
        &captures(&place, CaptureKind::Cpu),
        1,
        subject(&explanation, "planted"),
    );
}

/// Duration of a call of planted() by the service's own clock, in the profiled windows: beside other programs
/// a processor's speed varies.
fn clocked_us(place: &Place) -> Option<f64> {
    let captures = captures(place, CaptureKind::Cpu);
    let profiled = |from: f64, to: f64| {
        captures
            .iter()
            .any(|window| window.start_ns as f64 <= from && to <= window.end_ns as f64)
    };
    let (mut calls, mut spent) = (0.0, 0.0);
    for (_, log) in place.logs() {
        for line in log.lines().filter_map(|line| line.strip_prefix("planted ")) {
            let numbers: Vec<f64> = line
                .split(' ')
                .filter_map(|number| number.parse().ok())
                .collect();
            let &[from, to, count, us] = numbers.as_slice() else {
                continue;
            };
            if profiled(from, to) {
                calls += count;
                spent += count * us;
            }
        }
    }
    (calls > 0.0).then(|| spent / calls)
}

#[test]
fn a_service_that_hides_from_the_agent_is_told_so_and_has_its_threads_all_the_same() {
    let place = Place::new();
    let words = [
        "--ready",
        "/healthz",
        "--connections",
        "4",
        "--",
        "node",
        WORK,
    ];
    let said = profile(&place, &words).env("CHILD", "bare").said();
    // With native profiles there is one nevertheless.
    assert!(matches!(said.code, Some(0 | 4)), "{said}");
    let explanation = explanation(&place);
    let missed = explanation
        .doubts
        .iter()
        .find(|doubt| doubt.check == DoubtKind::AgentMissing);
    let missed = missed.unwrap_or_else(|| panic!("the agent is missing: {:?}", explanation.doubts));
    said.prints(&[&missed
        .evidence
        .split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")]);
    let served = captures(&place, CaptureKind::Plain);
    let busiest = served
        .iter()
        .flat_map(|of| &of.services)
        .flat_map(|of| &of.processes)
        .flat_map(|of| &of.threads);
    assert!(
        busiest
            .map(|thread| thread.cpu_ns)
            .max()
            .is_some_and(|ns| ns > 0),
        "threads are counted"
    );
    place.is_quiet();
}
