//! Invalid files and flags: every problem at once, at its place, with exit code 2 and nothing started.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use crate::load::Service;
use crate::place::{Place, Run, service};

#[test]
fn all_problems_of_a_file_are_shown_at_their_places() {
    let place = Place::new();
    let text =
        "name = \"x\"\n[services.api]\ncomand = [\"node\"]\n[load]\nconnections = \"many\"\n";
    place.write("wrong.toml", text);
    for words in [
        &["run", "wrong.toml", "--dry-run"][..],
        &["run", "wrong.toml"],
    ] {
        let said = place.said(words);
        said.ends(2)
            .tells(&["wrong.toml:3:1", "command", "wrong.toml:5:", "integer"]);
        assert!(
            !said.err.contains('\x1b'),
            "no colours where there is no terminal: {said}"
        );
    }
}

#[test]
fn the_plan_in_words_tells_looks_copy_metrics_and_how_long_the_margin_takes() {
    for (looks, part) in [
        ("each_block", "from the 4th on"),
        ("once", "looked at once"),
    ] {
        let place = Place::new();
        let more =
            format!("looks = \"{looks}\"\naa = true\nmetric = [\"throughput\", \"peak_memory\"]");
        place.two("api.env.A = 1", "api.env.A = 2", &more);
        let said = place.said(&["run", "--dry-run", "experiment.toml"]);
        said.ends(0).prints(&[
            part,
            "3 variants",
            "baseline vs itself",
            "peak memory",
            "proofload doctor calibrate",
        ]);
        assert_eq!(
            said.out.contains("decided earlier"),
            looks != "once",
            "{said}"
        );
        assert_eq!(
            said.out
                .matches(", if the spread between blocks is")
                .count(),
            3,
            "{said}"
        );
        let plan = place
            .said(&["run", "--dry-run", "experiment.toml", "--format", "json"])
            .json();
        assert_eq!(
            plan["variants"].as_array().map(Vec::len),
            Some(3),
            "with the copy"
        );
    }
    let place = Place::new();
    place.two(
        "api.env.A = 1",
        "api.env.A = 2",
        "metric = \"p50\"\nrate = \"1000..5000\"",
    );
    let said = place.said(&["run", "--dry-run", "experiment.toml"]);
    said.ends(0)
        .prints(&["open loop: 1,000/s to 5,000/s over each slice with Poisson arrivals"]);
}

#[test]
fn a_record_of_a_load_that_could_not_be_sent_ends_report_as_it_ended_load() {
    let place = Place::new();
    let (_service, address) = service(&[]);
    place.write("ids.csv", "id\n");
    let url = format!("http://{address}/{{id}}");
    let load = place.said(&["load", &url, "--values", "ids.csv", "--out", "kept"]);
    load.ends(2).tells(&["no row below the columns' names"]);
    place.said(&["report", "kept"]).ends(2);
}

#[test]
fn what_is_no_record_is_said_and_a_record_is_never_written_over() {
    let place = Place::new();
    for path in ["nowhere", "."] {
        place.said(&["report", path]).ends(2).tells(&["record"]);
    }
    let experiment = place.two("api.env.A = 1", "api.env.A = 2", "");
    fs::create_dir(place.record()).expect("a folder");
    place.write("record/precious", "data");
    place
        .run(&experiment)
        .ends(2)
        .tells(&["never written over"]);
}

#[test]
fn a_header_that_cannot_be_written_is_told_and_leaves_no_half_of_a_record() {
    let place = Place::new();
    let experiment = place.two("api.env.A = 1", "api.env.A = 2", "");
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "ulimit -f 2; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_proofload"),
        "run",
    ]);
    limited.arg(experiment).arg("--out").arg(place.record());
    limited
        .said()
        .ends(6)
        .tells(&["File too large", "ulimit -f"]);
    let left: Vec<_> = fs::read_dir(place.record()).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn arguments_that_are_not_utf_8_work_as_files_and_are_refused_as_texts() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"\xff");
    let service = Service::start("ok");
    service
        .load(&["--requests", "1", "--out"])
        .arg(place.path("").join(name))
        .said()
        .ends(0);
    assert!(place.path("").join(name).join("record.json").is_file());
    place
        .proofload(&["compare", "true"])
        .arg(name)
        .said()
        .ends(2)
        .tells(&["invalid UTF-8"]);
    // Services get the path of their folder in JSON.
    let experiment = place.two("api.env.A = 1", "api.env.A = 2", "");
    let run = place
        .proofload(&["run"])
        .arg(experiment)
        .arg("--out")
        .arg(place.path("").join(name).join("r"))
        .said();
    run.ends(2).tells(&["not UTF-8"]);
}
