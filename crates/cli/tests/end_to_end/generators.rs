//! `[generators]`: load from several processes, what the record says of each, and what becomes of a run that loses one.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, SERVICE, proofload, stderr, stdout};

/// One variant, and six short blocks of it.
fn experiment(place: &Place, more: &str) -> PathBuf {
    let text = format!(
        r#"name = "shared"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", HOST = "{{address}}" }}
[generators]
{more}
[load]
connections = 5
timeout = "1s"
[design]
drop_disturbed = false
budget = "60s"
warmup = "100ms"
slice = "300ms"
slices = 1
blocks = 6
"#
    );
    let path = place.path("experiment.toml");
    fs::write(&path, text).expect("the experiment is written");
    path
}

#[test]
fn two_generators_load_a_service_together_and_every_request_is_accounted_for() {
    let place = Place::new();
    let file = experiment(&place, "local = 2");
    let check = proofload().arg("check").arg(&file).output().expect("proofload starts");
    let said = stdout(&check);
    assert!(said.contains("load from 2 generators: 2 on this machine\n  5 connections: 3 + 2\n"), "{said}");
    let output = place.run(&file);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("2 generators are there: local 1, local 2"), "{}", stderr(&output));
    assert!(stdout(&output).contains("Load by generator"), "{}", stdout(&output));

    let record = record::open(&place.record()).expect("the record opens");
    assert_eq!(record.generators.len(), 2);
    let logs = place.logs();
    let mut trials = 0;
    for block in record.blocks.iter().filter(|block| block.seconds.is_some()) {
        for trial in &block.trials {
            let name = format!("block-{:02}-only-api.log", block.number);
            let log = &logs.iter().find(|(log, _)| *log == name).expect("its log").1;
            let counted = log.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            // Beside the load there are two looks at a response before it, or one that took long.
            let looks = counted.and_then(|counted| counted.checked_sub(sent));
            assert!(
                sent > 0 && looks.is_some_and(|looks| looks <= 2),
                "we sent {sent}, the service said: {log}"
            );
            trials += 1;
            for slice in &trial.slices {
                let [one, other] = &slice.generators[..] else { panic!("{:?}", slice.generators) };
                assert_eq!((one.name.as_str(), other.name.as_str()), ("local 1", "local 2"));
                assert_eq!(one.sent + other.sent, slice.counts.sent);
                assert!(one.sent > 0 && other.sent > 0, "{:?}", slice.generators);
                // By one clock, to what a ping over a pipe takes; and begun at the agreed instant, not before.
                assert!(one.clock_error_ns < 5_000_000 && one.late_ns < 1_000_000_000, "{one:?}");
                assert_eq!((slice.connections, slice.turns), (5, 1));
            }
        }
    }
    assert!(trials >= 6);
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn a_generator_that_is_killed_costs_its_block_and_is_named() {
    let place = Place::new();
    let file = experiment(&place, "local = 2");
    let mut command = place.command(&file);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts");
    let events = place.record().join("events.jsonl");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fs::read_to_string(&events).is_ok_and(|text| text.contains(r#""kind":"measured""#)) {
        assert!(Instant::now() < deadline && child.try_wait().expect("it is ours").is_none());
        thread::sleep(Duration::from_millis(5));
    }
    let generators: Vec<String> =
        place.left_running().into_iter().filter(|process| process.ends_with("remote-agent ")).collect();
    assert_eq!(generators.len(), 2, "{generators:?}");
    let pid = generators[1].split(':').next().expect("its number");
    assert!(Command::new("kill").args(["-KILL", pid]).status().expect("kill starts").success());
    let output = child.wait_with_output().expect("proofload ends");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));

    let record = record::open(&place.record()).expect("the record opens");
    let [lost] = &record.generators_lost[..] else { panic!("{:?}", record.generators_lost) };
    assert!(lost.generator.starts_with("local ") && lost.why.contains(&lost.generator), "{lost:?}");
    assert!(record.complete_blocks().count() >= 6);
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    let words = words.join(" ");
    assert!(words.contains("V48") && words.contains(&format!("generator {}", lost.generator)), "{words}");
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn generators_that_cannot_be_had_are_told_before_anything_starts() {
    let place = Place::new();
    // No machine of ours has this address: it is for documentation (RFC 5737).
    let file = experiment(&place, "local = 2\naddress = \"192.0.2.1\"");
    let output = place.run(&file);
    assert_eq!(output.status.code(), Some(6), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("nothing can listen on 192.0.2.1 here"), "{}", stderr(&output));
    assert!(!place.record().exists());
}
