//! Any bytes as a record's header and events, and all that is made of a record: conclusions, a gate, every form of their reports. Who has
//! lost anything passes no gate. An input is `F HEADER 0 EVENTS`: pages are drawn if F is 0, and events get
//! numbers and checksums if F is below 2.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use analysis::{Ruling, conclude, gated};
use libfuzzer_sys::fuzz_target;
use proofload_fuzz::{draw, parts};
use report::{Gated, Measured};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir_in("/dev/shm").expect("memory"));

fuzz_target!(|input: &[u8]| {
    let Some((form, bytes)) = input.split_first() else {
        return;
    };
    let [header, events] = parts(bytes);
    let sealed = if *form < 2 {
        record::fuzzing::sealed(header, events)
    } else {
        events.to_vec()
    };
    for (name, bytes) in [("record.json", header), ("events.jsonl", &sealed)] {
        fs::write(FOLDER.path().join(name), bytes).expect("memory");
    }
    let Ok(record) = record::open(FOLDER.path()) else {
        return;
    };
    let conclusion = conclude(&record);
    draw(&Measured::new(&record, &conclusion, None), *form == 0);

    let mut limits = record.header.plan.gate.clone();
    limits.extend(plan::max_regression(&record.header.plan.design, 0.03));
    let gate = gated(&record, &conclusion, &limits);
    draw(
        &Gated {
            record: &record,
            gate: &gate,
            allow_open: false,
        },
        false,
    );
    assert!(
        gate.ruling() != Some(Ruling::Pass) || record.damage.is_empty(),
        "{:?}",
        record.damage
    );
});
