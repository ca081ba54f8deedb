//! `proofload env` on the machine that runs the tests, whatever that is.

use crate::place::{Place, proofload, stderr, stdout};

#[test]
fn this_machine_is_told_in_text_and_in_json() {
    let place = Place::new();
    let folder = place.path("");
    let output = proofload().arg("env").current_dir(&folder).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("This machine") && text.contains("processors  "), "{text}");
    assert!(text.contains("proofload calibrate"), "nothing was measured here: {text}");
    assert!(!text.contains('\x1b'), "no colours where no terminal is: {text:?}");

    let output = proofload().args(["env", "--json"]).current_dir(&folder).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    assert_eq!(value["env_version"], 1);
    let hazards = value["hazards"].as_array().expect("a list");
    let graded = |hazard: &serde_json::Value| {
        matches!(hazard["grade"].as_str(), Some("bad" | "know" | "fine"))
            && hazard["evidence"].as_str().is_some_and(|evidence| !evidence.is_empty())
            && (hazard["grade"] == "fine") == (hazard["remedy"] == "")
    };
    assert!(hazards.len() > 15 && hazards.iter().all(graded), "{hazards:#?}");
    assert!(value["facts"]["watched"]["seconds"].as_f64().is_some_and(|seconds| seconds >= 1.5), "{value:#}");
    assert!(value["facts"]["asked"]["io_uring"]["granted"].is_boolean(), "{value:#}");
}
