//! `[generators]`: load from several processes, each generator in the record, and a run that loses one.

use std::path::PathBuf;

use crate::place::{Draft, Place, Run, accounted_for, ended, signal, wait_until};

/// One variant, and six short blocks of it.
fn experiment(place: &Place, generators: &str) -> PathBuf {
    place.experiment(&Draft {
        more: &format!("[generators]\n{generators}"),
        load: "connections = 5",
        design: "warmup = \"100ms\"\nslice = \"300ms\"",
        ..Draft::default()
    })
}

#[test]
fn two_generators_load_a_service_together_and_every_request_is_accounted_for() {
    let place = Place::new();
    let file = experiment(&place, "local = 2");
    place
        .said(&["run", "--dry-run", "experiment.toml"])
        .prints(&["load from 2 generators: 2 on this machine\n  5 connections: 3 + 2\n"]);
    let said = place.run(&file);
    said.ends(0)
        .tells(&["2 generators ready: local 1, local 2"])
        .prints(&["Load by generator"]);
    let record = place.opened();
    assert_eq!(record.generators.len(), 2);
    assert!(accounted_for(&record) >= 6);
    for slice in record.complete_trials().flat_map(|trial| &trial.slices) {
        let [one, other] = &slice.generators[..] else {
            panic!("{:?}", slice.generators)
        };
        assert_eq!(
            (one.name.as_str(), other.name.as_str()),
            ("local 1", "local 2")
        );
        assert_eq!(one.sent + other.sent, slice.counts.sent);
        assert!(one.sent > 0 && other.sent > 0, "{:?}", slice.generators);
        // By one clock, to the precision of a ping over a pipe. Started at the agreed instant, not before.
        assert!(
            one.clock_error_ns < 5_000_000 && one.late_ns < 1_000_000_000,
            "{one:?}"
        );
        assert_eq!((slice.connections, slice.turns), (5, 1));
    }
    place.is_quiet();
}

#[test]
fn a_generator_that_is_killed_costs_its_block_and_is_named() {
    let place = Place::new();
    let file = experiment(&place, "local = 2");
    let child = place.command(&file).begun();
    wait_until("it is measured", || place.has_event(r#""kind":"measured""#));
    let mut generators = place.left_running();
    generators.retain(|process| process.ends_with("remote-agent "));
    assert_eq!(generators.len(), 2, "{generators:?}");
    let pid = generators[1]
        .split(':')
        .next()
        .and_then(|pid| pid.parse().ok())
        .expect("its number");
    signal(pid, "-KILL");
    let said = ended(child);
    said.ends(0);

    let record = place.opened();
    let [lost] = &record.generators_lost[..] else {
        panic!("{:?}", record.generators_lost)
    };
    assert!(
        lost.generator.starts_with("local ") && lost.why.contains(&lost.generator),
        "{lost:?}"
    );
    assert!(record.complete_blocks().count() >= 6);
    said.prints(&["V48", &format!("generator {}", lost.generator)]);
    place.is_quiet();
}

#[test]
fn generators_that_cannot_be_had_are_told_before_anything_starts() {
    let place = Place::new();
    // No machine of ours has this address: it is reserved for documentation (RFC 5737).
    let file = experiment(&place, "local = 2\naddress = \"192.0.2.1\"");
    place
        .run(&file)
        .ends(6)
        .tells(&["nothing can listen on 192.0.2.1 here"]);
    assert!(!place.record().exists());
}
