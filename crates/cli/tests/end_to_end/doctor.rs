//! `proofload doctor` on any machine that runs the tests.

use crate::place::Place;

#[test]
fn this_machine_is_told_in_text_and_in_json() {
    let place = Place::new();
    let said = place.said(&["doctor"]);
    // Nothing was measured here, and there is no terminal for colours.
    said.ends(0).prints(&[
        "This machine can show",
        "estimated from two seconds of its counters",
        "proofload doctor -v",
        "proofload doctor calibrate",
    ]);
    assert!(!said.out.contains('\x1b'), "{said}");
    assert!(!said.out.contains("kernel: Linux"), "{said}");
    place
        .said(&["doctor", "-v"])
        .ends(0)
        .prints(&["processors: ", "kernel: Linux"]);
    let value = place.said(&["doctor", "--json"]).ends(0).json();
    assert_eq!(value["format"], 1);
    assert_eq!(value["sensitivity"]["source"], "counters");
    let hazards = value["hazards"].as_array().expect("a list");
    let graded = |hazard: &serde_json::Value| {
        matches!(hazard["grade"].as_str(), Some("warning" | "note" | "fine"))
            && hazard["evidence"]
                .as_str()
                .is_some_and(|evidence| !evidence.is_empty())
            && (hazard["grade"] == "fine") == (hazard["remedy"] == "")
    };
    assert!(
        hazards.len() > 15 && hazards.iter().all(graded),
        "{hazards:#?}"
    );
    for name in [
        "processors",
        "others",
        "steal",
        "kernel",
        "memory",
        "open_files",
    ] {
        assert!(
            hazards.iter().any(|hazard| hazard["check"] == name),
            "{name}: {hazards:#?}"
        );
    }
    assert!(
        value["facts"]["watched"]["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds >= 1.5),
        "{value:#}"
    );
    assert!(
        value["facts"]["asked"]["io_uring"]["granted"].is_boolean(),
        "{value:#}"
    );
}
