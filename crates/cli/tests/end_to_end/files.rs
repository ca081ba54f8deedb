//! Files and flags that are wrong: every problem at once, at its place, with exit code 2 and nothing started.

use std::fs;

use crate::place::{Place, proofload, stderr, stdout};

#[test]
fn all_problems_of_a_file_are_shown_at_their_places() {
    let place = Place::new();
    let path = place.path("wrong.toml");
    fs::write(&path, "name = \"x\"\n[services.api]\ncomand = [\"node\"]\n[load]\nconnections = \"many\"\n")
        .expect("a file");
    for verb in ["check", "run"] {
        let output = proofload().arg(verb).arg(&path).output().expect("proofload starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("wrong.toml:3:1") && said.contains("command"), "{said}");
        assert!(said.contains("wrong.toml:5:") && said.contains("integer"), "{said}");
        assert!(!said.contains('\x1b'), "no colours where there is no terminal: {said}");
    }
}

#[test]
fn a_plan_is_described_before_anything_starts() {
    let place = Place::new();
    let experiment = place.experiment("api.env.A = 1", "api.env.A = 2", "");
    let output = proofload().arg("check").arg(&experiment).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("2 variants"), "{}", stdout(&output));
    let json = proofload().arg("check").arg(&experiment).arg("--json").output().expect("proofload starts");
    let plan: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("it is JSON");
    assert_eq!(plan["variants"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_plan_in_words_tells_looks_copy_metrics_and_how_long_the_margin_takes() {
    for (looks, said) in
        [("planned", "looked at after 6"), ("always", "after each"), ("once", "looked at once")]
    {
        let place = Place::new();
        let more = format!("looks = \"{looks}\"\naa = true\nmetric = [\"throughput\", \"peak_memory\"]");
        let experiment = place.experiment("api.env.A = 1", "api.env.A = 2", &more);
        let mut check = proofload();
        let output = check.arg("check").arg(&experiment).current_dir(place.path("")).output();
        let output = output.expect("proofload starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains(said), "{looks}: {text}");
        assert_eq!(text.contains("decided earlier"), looks != "once", "{text}");
        assert!(text.contains("baseline against itself") && text.contains("peak memory"), "{text}");
        assert_eq!(text.matches("if ratios of blocks spread by").count(), 3, "{text}");
        assert!(text.contains("proofload calibrate"), "{text}");
    }
}

#[test]
fn what_is_no_record_is_said() {
    let place = Place::new();
    for path in [place.path("nowhere"), place.path("")] {
        let output = proofload().arg("report").arg(&path).output().expect("proofload starts");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("record"), "{}", stderr(&output));
    }
}

#[test]
fn a_record_is_never_written_over() {
    let place = Place::new();
    let experiment = place.experiment("api.env.A = 1", "api.env.A = 2", "");
    fs::create_dir(place.record()).expect("a folder");
    fs::write(place.record().join("precious"), "data").expect("a file");
    let output = place.run(&experiment);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("never written over"), "{}", stderr(&output));
}
