//! `proofload profile` on files: complete and invalid profiles. Only `node` is started, once.

use std::fs::{self, File};
use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Place, Run, Said};

/// A profile of V8: work for a number of milliseconds in a function with a hostile name, and the same idle
/// time.
fn cpuprofile(name: &str, samples: usize) -> Value {
    let frame = |name: &str, url: &str, line: i64| {
        let script = if url.is_empty() { "0" } else { "1" };
        json!({ "functionName": name, "scriptId": script, "url": url, "lineNumber": line, "columnNumber": 0 })
    };
    let order = [vec![2; samples], vec![3; samples]].concat();
    json!({
        "nodes": [
            { "id": 1, "callFrame": frame("(root)", "", -1), "hitCount": 0, "children": [2, 3] },
            { "id": 2, "callFrame": frame(name, "file:///srv/app/server.js", 41), "hitCount": samples, "children": [] },
            { "id": 3, "callFrame": frame("(idle)", "", -1), "hitCount": samples, "children": [] },
        ],
        "startTime": 1_000_000, "endTime": 1_000_000 + 2 * samples * 1000,
        "samples": order,
        "timeDeltas": vec![1000; 2 * samples],
    })
}

fn profile(place: &Place, arguments: &[&str]) -> Said {
    place.said(&[&["profile"], arguments].concat())
}

#[test]
fn a_profile_of_anybodys_is_printed_and_two_are_set_against_each_other() {
    let place = Place::new();
    place.write("a.cpuprofile", cpuprofile("handle", 200).to_string());
    place.write(
        "b.cpuprofile",
        cpuprofile("<img src=x onerror=alert(1)>", 500).to_string(),
    );
    profile(&place, &["a.cpuprofile"])
        .ends(0)
        .prints(&["handle", "server.js:42", "200 ms"]);
    let folded = profile(&place, &["a.cpuprofile", "--format", "folded"]);
    assert!(
        folded
            .out
            .lines()
            .any(|line| line.contains("handle") && line.ends_with('0')),
        "{folded}"
    );

    let diff = profile(
        &place,
        &[
            "diff",
            "a.cpuprofile",
            "b.cpuprofile",
            "--html",
            "diff.html",
        ],
    );
    diff.ends(0)
        .prints(&["b.cpuprofile vs a.cpuprofile\n", "+300 ms of CPU time"])
        .tells(&["--requests"]);
    let page = place.read("diff.html");
    assert!(
        page.contains("onerror") && !page.contains("<img src=x"),
        "a name is text in the page"
    );
    // Per request the second did more work in less time.
    profile(
        &place,
        &[
            "diff",
            "a.cpuprofile",
            "b.cpuprofile",
            "--requests",
            "100",
            "1000",
        ],
    )
    .prints(&["−"]);
}

#[test]
fn refuses_to_compare_javascript_with_compiled_code() {
    let place = Place::new();
    place.write("js.cpuprofile", cpuprofile("handle", 200).to_string());
    let native = json!({
        "version": 1, "pid": 10, "start_ns": 0, "end_ns": 9, "period_ns": 1000, "lost": 0,
        "frames": [{ "name": "main", "module": "node" }],
        "stacks": [{ "thread": 10, "thread_name": "node", "frames": [0], "samples": 200 }],
    });
    place.write("threads.native.json", native.to_string());
    for [a, b] in [
        ["js.cpuprofile", "threads.native.json"],
        ["threads.native.json", "js.cpuprofile"],
    ] {
        let said = profile(&place, &["diff", a, b]);
        let told = [
            "threads.native.json has compiled code",
            "js.cpuprofile JavaScript",
            "compare two of one kind",
        ];
        assert_eq!(said.ends(2).tells(&told).out, "", "{a} {b}");
    }
    profile(
        &place,
        &["diff", "threads.native.json", "threads.native.json"],
    )
    .ends(0);
}

#[test]
fn what_is_no_profile_is_said_with_what_would_be_one() {
    let place = Place::new();
    let whole = cpuprofile("handle", 300).to_string();
    place.write("cut.cpuprofile", &whole[..whole.len() / 2]);
    place.write("empty.cpuprofile", "");
    place.write("picture.cpuprofile", [0x89, b'P', b'N', b'G', 0, 1, 2, 255]);
    place.write("other.cpuprofile", "{\"hello\": [1, 2, 3]}");
    // A sparse file takes no space on the disk.
    let large = File::create(place.path("large.cpuprofile")).expect("a file");
    large.set_len(600 << 20).expect("a file may have a hole");
    for (name, what) in [
        ("cut.cpuprofile", "cut"),
        ("empty.cpuprofile", "is empty"),
        ("picture.cpuprofile", "picture.cpuprofile: "),
        ("other.cpuprofile", "other.cpuprofile: "),
        ("large.cpuprofile", "629 MB, at most 537 MB"),
        ("missing.cpuprofile", "No such file"),
    ] {
        for arguments in [&[name][..], &["diff", name, name]] {
            let said = profile(&place, arguments);
            assert_eq!(said.ends(2).tells(&[name, what, "hint"]).out, "", "{name}");
        }
    }
    for arguments in [&[][..], &["."], &["latest"]] {
        profile(&place, arguments).ends(2);
    }
    place.two("api.env.A = 1", "api.env.A = 2", "");
    for (flags, what) in [
        (&["--variant", "candidat"][..], "did you mean `candidate`?"),
        (&["--service", "db"], "no profile of `db`"),
        (&["--again"], "it is for records"),
        (&["--heap"], "text has memory beside CPU time"),
    ] {
        profile(&place, &[&["experiment.toml"], flags].concat())
            .ends(2)
            .tells(&[what]);
    }
    assert!(!place.path("records").exists(), "nothing was started");
}

#[test]
fn minified_code_has_the_names_of_its_source_where_the_map_is_and_is_told_where_it_is_not() {
    let place = Place::new();
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/end_to_end/explain/minified"
    );
    for name in ["bundle.js", "bundle.js.map"] {
        fs::copy(format!("{folder}/{name}"), place.path(name)).expect("a file");
    }
    let mut node = Command::new("node");
    node.args(["--cpu-prof", "--cpu-prof-name=a.cpuprofile", "bundle.js"])
        .current_dir(place.path(""));
    assert!(node.status().expect("node starts").success());
    let map: Value = serde_json::from_str(&place.read("bundle.js.map")).expect("a map");
    let source = map["sourcesContent"][0]
        .as_str()
        .expect("what it was made from");
    let line = 1 + source
        .lines()
        .position(|line| line.contains("function hashPassword"))
        .expect("is there");
    let written = format!("source.js:{line}");

    // The row of the most expensive function, and the header.
    let read = || {
        let said = profile(&place, &["a.cpuprofile"]);
        let table = said
            .ends(0)
            .out
            .split_once("by function")
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        (
            table.lines().nth(3).unwrap_or_default().to_owned(),
            said.err,
        )
    };
    let (row, said) = read();
    assert!(
        row.contains("hashPassword") && row.contains(&written),
        "{row}"
    );
    assert!(!said.contains("minified"), "{said}");

    fs::remove_file(place.path("bundle.js.map")).expect("it was there");
    let (row, said) = read();
    assert!(
        row.contains("bundle.js:") && !row.contains("hashPassword"),
        "{row}"
    );
    assert!(
        said.contains("minified") && said.contains("source map"),
        "{said}"
    );
}

#[test]
fn a_log_of_v8_is_read_by_the_node_that_is_there_and_its_want_is_told() {
    let place = Place::new();
    let script = "const end = Date.now() + 400; function busy() { let n = 0; for (let i = 0; i < 1e5; i++) n ^= i * 7; return n }\n\
                  while (Date.now() < end) busy();";
    place.write("busy.js", script);
    let mut node = Command::new("node");
    node.args([
        "--prof",
        "--no-logfile-per-isolate",
        "--logfile=isolate-v8.log",
        "busy.js",
    ]);
    node.current_dir(place.path(""));
    assert!(node.status().expect("node starts").success());
    profile(&place, &["isolate-v8.log"])
        .ends(0)
        .prints(&["busy"]);
    let mut without = place.proofload(&["profile", "isolate-v8.log"]);
    without
        .env("PATH", "/nowhere")
        .said()
        .ends(6)
        .tells(&["takes `node`", "hint"]);
}

/// Node starts `nm` for each library that a log names, and `nm` loads a plugin that its arguments name.
#[test]
fn a_log_of_v8_starts_no_program() {
    let place = Place::new();
    place.write(
        "busy.js",
        "const end = Date.now() + 200; while (Date.now() < end) {}",
    );
    let mut node = Command::new("node");
    node.args([
        "--prof",
        "--no-logfile-per-isolate",
        "--logfile=plain.log",
        "busy.js",
    ]);
    assert!(
        node.current_dir(place.path(""))
            .status()
            .expect("node starts")
            .success()
    );
    let log = std::fs::read_to_string(place.path("plain.log")).expect("a log");
    let (first, rest) = log.split_once('\n').expect("lines");
    place.write(
        "log",
        format!("{first}\nshared-library,--plugin=./x.so,0x500000,0x600000,0\n{rest}"),
    );
    let nm = place.write(
        "programs/nm",
        format!("#!/bin/sh\ntouch '{}'\n", place.path("started").display()),
    );
    std::fs::set_permissions(nm, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a program");
    let path = format!(
        "{}:{}",
        place.path("programs").display(),
        std::env::var("PATH").expect("a path")
    );
    place
        .proofload(&["profile", "log"])
        .env("PATH", path)
        .said()
        .ends(0);
    assert!(!place.path("started").exists());
}
