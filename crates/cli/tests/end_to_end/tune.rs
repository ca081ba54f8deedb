//! `proofload tune` on a real service: settings that are tried, rejected input, and the advice for knobs with
//! a known effect.

use crate::place::{Draft, Place};

fn service(place: &Place) {
    place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", HOST = \"{address}\", SPIN_MS = \"3\" }",
        ..Draft::default()
    });
}

#[test]
fn what_would_be_tried_is_listed_and_nothing_is_started() {
    let place = Place::new();
    service(&place);
    let metrics = "[design]\nmetric = [\"throughput\", \"peak_memory\"]\n";
    place.write(
        "experiment.toml",
        place.read("experiment.toml").replace("[design]\n", metrics),
    );
    let said = place.said(&["tune", "experiment.toml", "--list", "--try", "POOL=4|8"]);
    said.ends(0)
        .tells(&["judges by one metric, the first: throughput"])
        .prints(&[
            "NODE_ENV=production",
            "tries POOL=4, POOL=8",
            "not tried: heap size: only if asked for",
        ]);
    assert!(!place.path("records").exists(), "{said}");
}

#[test]
fn a_file_says_what_is_tried_and_flags_add_to_it() {
    let place = Place::new();
    place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", HOST = \"{address}\" }\n\n[tune]\nonly = [\"none\"]\ntry = [\"POOL=4|8\"]\nkeep = [\"capacity > -5%\"]",
        ..Draft::default()
    });
    place
        .said(&["tune", "experiment.toml", "--list"])
        .ends(2)
        .tells(&["there is no such figure here"]);
    let text = place
        .read("experiment.toml")
        .replace("capacity > -5%", "p99 < +5%");
    place.write("experiment.toml", &text);
    let said = place.said(&["tune", "experiment.toml", "--list", "--try", "SIZE=1"]);
    said.ends(0)
        .prints(&["tries POOL=4, POOL=8", "tries SIZE=1"]);
    place.write("experiment.toml", text.replace("only =", "just ="));
    place
        .said(&["tune", "experiment.toml", "--list"])
        .ends(2)
        .tells(&["just"]);
}

#[test]
fn what_cannot_be_tuned_or_tried_is_told_before_anything_starts() {
    let place = Place::new();
    place.two("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 2", "");
    for (words, told) in [
        (&["experiment.toml"][..], "it compares variants itself"),
        (
            &["experiment.toml", "--body", "a"],
            "--body: experiment.toml is an experiment file",
        ),
        (&["http://127.0.0.1:1/"], "runs already"),
        (&["node x.js", "--try=--fast"], "there is no `=` in it"),
        (
            &["node x.js", "--only", "proceses"],
            "the catalogue has no `proceses`",
        ),
        (&["node x.js", "--keep", "p99 < 50ms"], "is an amount"),
        (
            &["node x.js", "--keep", "capacity > -5%"],
            "there is no such figure here",
        ),
        (
            &["node x.js", "--try", "A=1", "--try", "A=2"],
            "`A=1` sets it too",
        ),
        (&["node x.js", "--try", "A=1|1"], "a value is there twice"),
        (&["node x.js", "--try", "A=1|{x}"], "--try 'A=1|{x}'"),
        (
            &["node x.js", "--try", "flag: -w 1", "--try", "flag: -w 2"],
            "`-w 1` has -w too",
        ),
        (&["node x.js", "--only", "none"], "there is nothing to try"),
        (
            &["node x.js", "--write", "experiment.toml"],
            "it is there already",
        ),
        (
            &["node x.js", "--write", "none/tuned.toml"],
            "none: there is no such folder",
        ),
        (
            &["node x.js", "--out", "."],
            "is not empty, and a record is never written over",
        ),
        (&["node x.js", "--metric", "p99"], "in closed loop"),
        (&["typo.toml"], "cannot read typo.toml: No such file"),
    ] {
        let said = place.said(&[&["tune"], words].concat());
        said.ends(2).tells(&[told]);
    }
}

#[test]
fn a_budget_that_holds_no_screening_names_one_that_does() {
    let place = Place::new();
    service(&place);
    let words = [
        "tune",
        "experiment.toml",
        "--only",
        "none",
        "--try",
        "A=1",
        "--try",
        "B=1",
        "--budget",
        "20s",
    ];
    let said = place.said(&words);
    said.ends(2).tells(&["the budget is too small", "--budget"]);
    place.is_quiet();
}

#[test]
fn a_tuning_opens_like_a_record() {
    let place = Place::new();
    let folder = "records/tune-shop-20261129-200000";
    let advice = serde_json::json!({
        "format": 1, "service": "node server.js", "experiment_name": "shop", "created": "2026-11-29T20:00:00Z",
        "command": "proofload tune 'node server.js'", "latency": null, "metric": "throughput", "per_core": false,
        "margin": 0.03, "settings": [], "findable": 0.05, "ended": null, "seconds": 300.0, "folder": folder,
        "experiment": null, "notes": [], "lost": null, "proposals": [],
        "confirmed": {
            "effect": null, "memory": null, "latency": null, "predicted": null, "holds": false, "limits": [],
            "invalid": "its confirmation is invalid: see its report",
        },
    });
    place.write(&format!("{folder}/advice.json"), advice.to_string());
    let file = format!("{folder}/advice.json");
    for named in ["latest", "shop", "tune-shop", folder, file.as_str()] {
        let said = place.said(&["report", named]);
        said.ends(4)
            .prints(&["INVALID", "What makes node server.js faster?"]);
    }
    place
        .said(&["history"])
        .ends(0)
        .prints(&["1 tuning", "tune-shop-20261129-200000", "invalid"]);
    place
        .said(&["history", "show", "shop"])
        .ends(0)
        .prints(&["INVALID"]);
    // Commands that need a record do not take a tuning for one.
    place.said(&["gate", "latest"]).ends(2);
    place.write(
        &file,
        advice.to_string().replace("\"format\":1", "\"format\":2"),
    );
    place
        .said(&["report", folder])
        .ends(2)
        .tells(&["another format"]);
}

#[test]
#[ignore = "slow: make check-slow"]
fn what_helps_is_set_what_breaks_is_told_and_the_rest_is_left_alone() {
    let place = Place::new();
    service(&place);
    let words = [
        "tune",
        "experiment.toml",
        "--only",
        "none",
        "--try",
        "SPIN_MS=1",
        "--try",
        "NOTHING=1",
    ];
    let more = [
        "--try",
        "MODE=500",
        "--budget",
        "3m",
        "--seed",
        "1",
        "--format",
        "json",
        "--write",
        "tuned.toml",
    ];
    let said = place.said(&[&words[..], &more].concat());
    let json = said.ends(0).json();
    place.is_quiet();
    let worth = |name: &str| {
        let all = json["settings"].as_array().expect("settings");
        all.iter()
            .find(|tried| tried["name"] == name)
            .expect("it was tried")["verdict"]
            .clone()
    };
    assert_eq!(worth("SPIN_MS=1"), "set", "{json:#}");
    assert_eq!(worth("MODE=500"), "failed", "{json:#}");
    assert_ne!(worth("NOTHING=1"), "set", "{json:#}");
    let low = json["confirmed"]["effect"]["low"]
        .as_f64()
        .expect("an interval");
    assert!(
        low > 1.3,
        "three times the work is more than that: {json:#}"
    );
    // The generated file compares both again.
    place
        .said(&["run", "--dry-run", "tuned.toml"])
        .ends(0)
        .prints(&["SPIN_MS=1"]);
}
