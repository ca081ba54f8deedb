//! `proofload load --as`: unchanged command lines of wrk and ab, against a service that logs its requests.

// Other tests of fleets use the rest of it.
#[allow(dead_code)]
#[path = "../../../remote/tests/server/mod.rs"]
mod server;

use std::process::Command;

use serde_json::Value;

use crate::place::{Run, Said, proofload};
use server::Server;

const LOOPBACK: &str = "127.0.0.1";

fn url(service: &Server) -> String {
    format!("http://{}/a", service.address)
}

/// `proofload load` with these words and the service's URL.
fn load(service: &Server, words: &[&str]) -> Said {
    proofload()
        .args(["load", "-v"])
        .args(words)
        .arg(url(service))
        .said()
}

/// Runs the printed command line, as a shell would.
fn typed_again(said: &Said) -> Said {
    let command = said
        .err
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("proofload "));
    let command = format!(
        "{} {}",
        env!("CARGO_BIN_EXE_proofload"),
        command.expect("a command line is told")
    );
    Command::new("sh").arg("-c").arg(command).said()
}

#[test]
fn a_command_line_of_wrk_is_run_and_flags_of_ours_stay_in_force() {
    let service = Server::start(LOOPBACK);
    let ours = ["--as", "wrk", "--json", "--driver", "readiness", "--"];
    let theirs = ["-t1", "-c4", "-d1s", "--latency", "-H", "A: it's b"];
    let said = load(&service, &[&ours[..], &theirs].concat());
    let json = said.ends(0).json();
    let figures = ["connections", "threads", "asked_s", "timeout_s", "driver"]
        .map(|name| json[name].to_string());
    assert_eq!(figures, ["4", "1", "1.0", "2.0", "\"readiness\""]);
    let differences = json["differences"]
        .as_array()
        .expect("differences are an array");
    assert!(
        differences
            .iter()
            .any(|text| text.as_str().is_some_and(|text| text.contains("wrk"))),
        "{differences:?}"
    );
    let heads = service.heads().clone();
    assert!(
        heads
            .iter()
            .all(|head| head.starts_with("GET /a HTTP/1.1") && head.contains("\r\nA: it's b")),
        "{}",
        heads[0]
    );
    let sent = json["sent"].as_u64();
    assert_eq!(sent, Some(heads.len() as u64));

    let again = typed_again(&said).json();
    assert_eq!(again["connections"], 4);
    assert_eq!(
        again["differences"],
        Value::Array(vec![]),
        "without --as there is nothing to differ from"
    );
}

#[test]
fn a_command_line_of_ab_is_run() {
    let service = Server::start(LOOPBACK);
    let theirs = ["-k", "-n", "300", "-c", "4", "-A", "u:p", "-C", "a=1"];
    let said = load(&service, &[&["--as", "ab", "--"], &theirs[..]].concat());
    said.ends(0).prints(&[
        "300 sent, 300 successful",
        "\n p95 ",
        "4 connections, 1 thread",
        "\nRequests are HTTP/1.1.",
    ]);
    let heads = service.heads().clone();
    assert_eq!(heads.len(), 300);
    for expected in [
        "\r\nAuthorization: Basic dTpw",
        "\r\nCookie: a=1",
        "\r\nAccept: */*",
    ] {
        assert!(
            heads.iter().all(|head| head.contains(expected)),
            "{}",
            heads[0]
        );
    }

    typed_again(&said).ends(0);
    assert_eq!(
        service.requests(),
        600,
        "the command line told asks the same"
    );
}

#[test]
fn a_flag_of_ours_wins_and_what_cannot_be_done_is_said_before_anything_is_sent() {
    let service = Server::start(LOOPBACK);
    for (words, part) in [
        (
            &["--as", "wrk", "--", "-s", "x.lua"][..],
            "Lua scripts cannot be run",
        ),
        (&["--as", "ab", "--", "-X", "proxy:80"], "proxy"),
        (&["--as", "wrk", "--", "-c9999999999"], "--connections"),
        (&["--as", "wrk", "-c2"], "after --"),
        (
            &["-t", "9", "-c", "4"],
            "`load.threads` is 9, more than the 4 connections they share",
        ),
        (&["--timeout", "0s"], "`load.timeout` is 0s, at least 10ms"),
        (&["-c", "100001"], "at most 100000"),
        (&["-X", "G T"], "is no HTTP method"),
        (&["--", "-c2"], "--as"),
    ] {
        load(&service, words).ends(2).tells(&[part]);
    }
    assert_eq!(*service.heads(), Vec::<String>::new());
    load(
        &service,
        &[
            "--as=wrk", "-n", "20", "-c", "3", "--", "-t1", "-c8", "-d1m",
        ],
    )
    .ends(0)
    .prints(&["\n3 connections, 1 thread, 20 requests"]);
    for words in [
        &["--records", "d", "load", "--as", "wrk"][..],
        &["load", "--records=d", "--as=wrk"],
    ] {
        proofload()
            .args(words)
            .args(["-n", "20", "--", "-t1", "-c8"])
            .arg(url(&service))
            .said()
            .ends(0);
    }
}
