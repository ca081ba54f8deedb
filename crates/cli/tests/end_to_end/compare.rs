//! `proofload compare`: commands without a file. Detected ports, messages for failed services, and the
//! equivalent file.

use crate::place::{Place, Run, SERVICE, Said};

fn compare(place: &Place, words: &[&str]) -> Said {
    place.said(&[&["compare", "--out", "record"], words].concat())
}

#[test]
fn a_command_that_exits_at_once_is_told_by_its_last_words_alone_and_the_saved_file_is_the_same_plan()
 {
    let place = Place::new();
    let (good, bad) = (
        format!("good=node {SERVICE}"),
        format!("bad=MODE=exit node {SERVICE}"),
    );
    let flags = [
        "-c",
        "4",
        "-H",
        "accept: text/plain",
        "--path",
        "/a",
        "--limit",
        "throughput > -5%",
    ];
    let words = [&["--name", &good, "--name", &bad], &flags[..]].concat();
    let said = compare(
        &place,
        &[&words[..], &["--save", "saved.toml", "--seed", "7"]].concat(),
    );
    assert_eq!(
        said.ends(3)
            .tells(&["ended with status 7", "giving up"])
            .out,
        ""
    );
    assert!(!said.err.contains("blocks"), "{said}");
    place.is_quiet();

    let header: serde_json::Value =
        serde_json::from_str(&place.read("record/record.json")).expect("JSON");
    let saved = place
        .said(&["run", "--dry-run", "saved.toml", "--format", "json"])
        .json();
    assert_eq!(header["plan"], saved);
    assert_eq!(saved["variants"][1]["services"][0]["env"]["MODE"], "exit");
    assert_eq!(saved["gate"][0]["limit"], "throughput > -5%");
    assert_eq!(saved["design"]["seed"], 7);

    let again = compare(&place, &[&words[..], &["--save", "saved.toml"]].concat());
    again.ends(2).tells(&["it is there already"]);
}

/// A port that is free like the next one, below the kernel's ranges for unspecified ports and outgoing
/// connections of concurrent tests.
fn free_pair() -> u16 {
    let is_free = |port: u16| std::net::TcpListener::bind(("::", port)).is_ok();
    let first = 10_000 + u16::try_from(std::process::id() % 10_000).expect("below ten thousand");
    (first..)
        .step_by(2)
        .find(|port| is_free(*port) && is_free(port + 1))
        .expect("two free ports")
}

#[test]
fn services_that_ignore_their_port_are_found_and_two_with_one_port_take_turns_by_the_block() {
    let place = Place::new();
    let port = free_pair();
    let text = format!(
        "const http = require('node:http');\n\
         http.createServer((_, response) => response.end('hello')).listen({port});\n\
         if (process.env.ADMIN) require('node:net').createServer((socket) => socket.end('x\\n')).listen({});\n",
        port + 1
    );
    place.write("fixed.js", text);
    let said = compare(
        &place,
        &[
            "ADMIN=1 node fixed.js",
            "node fixed.js",
            "-c",
            "2",
            "--budget",
            "20s",
        ],
    );
    said.tells(&[
        "note: the budget of 20s may be too small: a verdict takes 4 blocks",
        &format!("app listens on port {port}, not on the PORT"),
        &format!(
            ", and on {}, where nothing responds to the request",
            port + 1
        ),
        &format!("need port {port}, so they run one after the other"),
    ]);
    let record = place.opened();
    for variant in &record.header.plan.variants {
        assert_eq!(
            variant.services[0]
                .command()
                .and_then(|started| started.listens_on),
            Some(port)
        );
    }
    let successful = |trial: &record::Trial| {
        trial
            .slices
            .iter()
            .map(|slice| slice.counts.successful)
            .sum::<u64>()
    };
    let measured: Vec<u64> = record
        .trials()
        .filter(|trial| trial.started.block > 0)
        .take(2)
        .map(successful)
        .collect();
    // The search for ports takes so much of the budget that the run may end before the second one.
    assert!(
        measured.first().is_some_and(|successful| *successful > 0),
        "{measured:?}: {said}"
    );
    place.is_quiet();
}

#[test]
fn two_ports_that_respond_end_the_run() {
    let place = Place::new();
    let text = "const s = () => require('node:http').createServer((_, response) => response.end('x')).listen(0);\ns(); s();\n";
    place.write("two.js", text);
    let said = compare(
        &place,
        &["node two.js", "A=1 node two.js", "--budget", "10s"],
    );
    said.ends(3)
        .tells(&["all of which respond, and not on the PORT", "--port "]);
    place.is_quiet();
}

#[test]
fn what_cannot_be_compared_is_told_before_anything_starts() {
    let place = Place::new();
    for (words, said) in [
        (&[][..], "nothing to compare is named"),
        (&["node a.js"], "--against REF"),
        (&["node a.js", "node 'b.js"], "a quote is not closed"),
        (
            &["node a.js", "typo.toml"],
            "cannot read typo.toml: No such file",
        ),
        (&["node a.js", "npm run build && node b.js"], "sh -c"),
        (
            &[
                "node a.js",
                "node b.js",
                "--margin",
                "30",
                "--save",
                "new.toml",
            ],
            "--> the command line",
        ),
        (
            &["node a.js", "node b.js", "--seed", "9007199254740992"],
            "9007199254740991",
        ),
        (&["--name", "a", "node b.js"], "NAME=COMMAND"),
        (&["--container", "shop:1", "A=1"], "there is no image in it"),
        (&["--container", "shop:1", "--against", "HEAD"], "--against"),
    ] {
        compare(&place, words).ends(2).tells(&[said]);
    }
    assert!(
        !place.path("new.toml").exists(),
        "a file with problems is not saved"
    );
    compare(&place, &["node nowhere.js", "no-such-program"])
        .ends(3)
        .tells(&[
            "nowhere.js: there is no such file",
            "command not found: no-such-program",
        ]);
    let limits = ["p99 < 50ms", "p50 < 9ms", "p99 < +5%"]
        .map(|limit| ["--limit", limit])
        .concat();
    let words = [
        "node nowhere.js",
        "no-such-program",
        "-H",
        "A: 1",
        "-H",
        "a: 2",
        "--dry-run",
        "--json",
    ];
    let dry = compare(&place, &[&words[..], &limits[..]].concat())
        .ends(3)
        .json();
    assert_eq!(dry["variants"].as_array().map(Vec::len), Some(2));
    let sent = &dry["variants"][0]["load"]["requests"][0]["headers"];
    assert_eq!(
        *sent,
        serde_json::json!([["A", "1"], ["A", "2"]]),
        "a field with several values"
    );
    let judged = [&dry["design"]["metric"], &dry["design"]["co_primary"]];
    assert_eq!(
        judged,
        [&serde_json::json!("p99"), &serde_json::json!(["p50"])],
        "each limit's figure once"
    );
    assert!(!place.record().exists(), "nothing was begun");
    let engine = place.engine("version) echo 28;; image) echo \"No such image: $5\" >&2; exit 1;;");
    for (folder, wanted) in [
        ("/nowhere", "command not found: docker"),
        (engine.as_str(), "no image shop:1.5 here"),
    ] {
        let mut command = place.proofload(&["compare", "--container", "shop:1.4", "shop:1.5"]);
        command.env("PATH", folder).said().ends(3).tells(&[wanted]);
        assert!(!place.path("records").exists(), "nothing was begun");
    }
}

#[test]
fn a_flag_shares_processors_with_the_load_generator() {
    let place = Place::new();
    let service = format!("node {SERVICE}");
    for command in [
        &["compare", &service][..],
        &["capacity", "--slo", "p99 < 50ms"],
    ] {
        let words = [
            command,
            &[&service, "--cpus", "shared", "--dry-run", "--json"],
        ]
        .concat();
        assert_eq!(
            place.said(&words).ends(0).json()["design"]["cpus"],
            "shared",
            "{words:?}"
        );
    }
    for command in ["compare", "capacity", "tune"] {
        place
            .said(&[command, &service, "--cpus", "some"])
            .ends(2)
            .tells(&["possible values: ", "shared"]);
    }
}
