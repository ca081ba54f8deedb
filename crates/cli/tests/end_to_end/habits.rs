//! `proofload load --as`: command lines of wrk and ab as they are, against a service that writes down what it is asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::place::{proofload, stderr, stdout};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers every request, and keeps their heads. Its threads end with the test's process.
struct Service {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Service {
    fn start() -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || answer(connection, &kept));
            }
        });
        Service { address, heads }
    }

    fn url(&self) -> String {
        format!("http://{}/a", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no thread of the service panics").clone()
    }
}

fn answer(mut connection: TcpStream, heads: &Mutex<Vec<String>>) {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while let Ok(length @ 1..) = connection.read(&mut buffer) {
        text += &String::from_utf8_lossy(&buffer[..length]);
        while let Some((head, rest)) = text.split_once("\r\n\r\n") {
            heads.lock().expect("no thread of the service panics").push(head.to_owned());
            text = rest.to_owned();
            if connection.write_all(ANSWER).is_err() {
                return;
            }
        }
    }
}

/// Runs the command line that was told, as a shell would.
fn typed_again(output: &Output) -> Output {
    let said = stderr(output);
    let command =
        said.lines().next().and_then(|line| line.strip_prefix("proofload ")).expect("a command line is told");
    let command = format!("{} {command}", env!("CARGO_BIN_EXE_proofload"));
    Command::new("sh").arg("-c").arg(command).output().expect("a shell starts")
}

#[test]
fn a_command_line_of_wrk_is_run_and_flags_of_ours_stay_in_force() {
    let service = Service::start();
    let theirs = ["-t1", "-c4", "-d1s", "--latency", "-H", "A: it's b"];
    let mut command = proofload();
    command
        .args(["load", "--as", "wrk", "--json", "--driver", "readiness", "--"])
        .args(theirs)
        .arg(service.url());
    let output = command.output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let json: Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    let figures =
        ["connections", "threads", "asked_s", "timeout_s", "driver"].map(|name| json[name].to_string());
    assert_eq!(figures, ["4", "1", "1.0", "2.0", "\"readiness\""]);
    let differences = json["differences"].as_array().expect("differences are an array");
    assert!(
        differences.iter().any(|text| text.as_str().is_some_and(|text| text.contains("wrk"))),
        "{differences:?}"
    );
    let heads = service.heads();
    assert!(
        heads.iter().all(|head| head.starts_with("GET /a HTTP/1.1") && head.contains("\r\nA: it's b")),
        "{}",
        heads[0]
    );
    let sent = json["requests"]["sent"].as_u64();
    assert_eq!(sent, Some(heads.len() as u64));

    let again = typed_again(&output);
    let again: Value = serde_json::from_str(&stdout(&again)).expect("it is JSON");
    assert_eq!(again["connections"], 4);
    assert_eq!(again["differences"], Value::Array(vec![]), "without --as there is nothing to differ from");
}

#[test]
fn a_command_line_of_ab_is_run() {
    let service = Service::start();
    let theirs = ["-k", "-n", "300", "-c", "4", "-A", "u:p", "-C", "a=1"];
    let mut command = proofload();
    command.args(["load", "--as", "ab", "--"]).args(theirs).arg(service.url());
    let output = command.output().expect("proofload starts");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    for expected in [
        "300 sent, 300 answered, 300 good",
        "\n  p95 ",
        "4 connections, 1 thread",
        "\n- Requests are HTTP/1.1.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let heads = service.heads();
    assert_eq!(heads.len(), 300);
    for expected in ["\r\nAuthorization: Basic dTpw", "\r\nCookie: a=1", "\r\nAccept: */*"] {
        assert!(heads.iter().all(|head| head.contains(expected)), "{}", heads[0]);
    }

    assert_eq!(typed_again(&output).status.code(), Some(0));
    assert_eq!(service.heads().len(), 600, "the command line told asks the same");
}

#[test]
fn a_flag_of_ours_wins_over_what_their_command_line_means() {
    let service = Service::start();
    let mut command = proofload();
    command
        .args(["load", "--as", "wrk", "-n", "20", "-c", "3", "--", "-t1", "-c8", "-d1m"])
        .arg(service.url());
    let output = command.output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("\n3 connections, 1 thread, 20 requests"), "{}", stdout(&output));
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_sent() {
    let service = Service::start();
    for (before, theirs, said) in [
        (&["--as", "wrk", "--"][..], "-s x.lua", "Lua scripts cannot be run"),
        (&["--as", "ab", "--"], "-X proxy:80", "proxy"),
        (&["--as", "wrk", "--"], "-c9999999999", "--connections"),
        (&["--as", "wrk"], "-c2", "after --"),
        (&["--"], "-c2", "--as"),
    ] {
        let output = proofload().arg("load").args(before).args(theirs.split(' ')).arg(service.url()).output();
        let output = output.expect("proofload starts");
        assert_eq!(output.status.code(), Some(2), "{theirs}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{theirs}: {}", stderr(&output));
    }
    assert_eq!(service.heads(), Vec::<String>::new());
}
