//! `proofload load` over everything that it speaks, against a real nginx whose access log is the count to agree with: TLS, HTTP/2,
//! a unix socket, connections for one request; several requests from a file; and the log of latencies. Nothing is asserted of
//! latencies, which a busy machine decides.

// The engine's own tests use the rest of it.
#[allow(dead_code)]
#[path = "../../../load/tests/nginx/server.rs"]
mod server;

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::place::{Place, proofload, stderr, stdout};
use server::{LONG_BODY_BYTES, NAME, Nginx};

fn load(url: &str, flags: &[&str]) -> Output {
    proofload().args(["load", url, "-c", "4"]).args(flags).output().expect("proofload starts")
}

fn json(url: &str, flags: &[&str]) -> Value {
    let output = load(url, &[flags, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

/// On one line, however it was wrapped.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn https_needs_a_certificate_that_is_trusted_or_says_that_none_was() {
    let (nginx, place) = (Nginx::start(), Place::new());
    let authority = place.path("authority.pem");
    fs::write(&authority, &nginx.authority).expect("the authority is written");
    let authority = authority.to_str().expect("a path in UTF-8");
    let url = format!("https://{}/short", nginx.tls);

    let checked = json(&url, &["-n", "200", "--cacert", authority, "--sni", NAME]);
    assert_eq!((&checked["tls"]["checked"], &checked["tls"]["server_name"]), (&true.into(), &NAME.into()));
    assert_eq!((&checked["requests"]["ok"], &checked["handshake"]["count"]), (&200.into(), &4.into()));
    assert!(!checked["caveats"].to_string().contains("not checked"), "{}", checked["caveats"]);

    // For another name, and by nobody this system knows.
    for flags in [&["-n", "9", "--cacert", authority][..], &["-n", "9", "--sni", NAME]] {
        let refused = load(&url, flags);
        let said = words(&stdout(&refused));
        assert_eq!(refused.status.code(), Some(4), "{said}{}", stderr(&refused));
        for part in [
            &format!("TLS with {} failed: ", nginx.tls),
            "certificate",
            "tls certificate ×",
            "--cacert FILE trusts",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    let insecure = load(&url, &["-n", "200", "--insecure"]);
    let said = words(&stdout(&insecure));
    assert_eq!(insecure.status.code(), Some(0), "{said}{}", stderr(&insecure));
    for part in [
        "certificates not checked",
        "Certificates were not checked: who answered",
        "TLS 4 handshakes",
        " handshake ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let sent = nginx.log();
    assert_eq!(sent.len(), 400, "what was refused has sent nothing");
    assert_eq!(sent.iter().filter(|line| line.contains(&format!("sni={NAME} "))).count(), 200);
}

#[test]
fn http2_is_spoken_with_and_without_tls() {
    let nginx = Nginx::start();
    let plain = json(&format!("http://{}/short", nginx.http2), &["-n", "90", "--http2"]);
    assert_eq!((&plain["protocol"], &plain["requests_per_connection"]), (&"HTTP/2".into(), &10.into()));
    let url = format!("https://{}/short", nginx.http2_tls);
    let secure = load(&url, &["-n", "90", "--http2", "--streams", "3", "--insecure"]);
    assert!(
        stdout(&secure).contains("\nHTTP/2, up to 3 streams a connection, certificates"),
        "{}",
        stdout(&secure)
    );
    let sent = nginx.log();
    assert_eq!(sent.iter().filter(|line| line.starts_with("GET /short HTTP/2.0 200 ")).count(), 180);
}

#[test]
fn a_unix_socket_and_contents_are_reached_and_compared() {
    let (nginx, place) = (Nginx::start(), Place::new());
    let socket = nginx.socket();
    let flags = [
        "-n",
        "50",
        "--sample",
        "1",
        "-H",
        "Accept-Encoding: gzip",
        "--unix",
        socket.to_str().expect("UTF-8"),
    ];
    let (long, other) = (place.path("long"), place.path("other"));
    fs::write(&long, "x".repeat(LONG_BODY_BYTES as usize)).expect("it is written");
    fs::write(&other, "x").expect("it is written");
    let expecting = |content: &std::path::Path| {
        let content = content.to_str().expect("UTF-8");
        load(
            "http://h/long",
            &[&flags[..], &["--expect-body", content, "--expect-header", "content-encoding: gzip"]].concat(),
        )
    };
    let good = expecting(&long);
    let said = words(&stdout(&good));
    assert_eq!(good.status.code(), Some(0), "{said}{}", stderr(&good));
    for part in [
        "50 sent, 50 answered, 50 good",
        "Content 50 sampled: all the same, 134 kB each, sent as ",
        "134 kB when decoded",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let bad = expecting(&other);
    assert_eq!(bad.status.code(), Some(4));
    assert!(words(&stdout(&bad)).contains("Not good content × 50"), "{}", stdout(&bad));
}

#[test]
fn a_mix_is_the_same_for_the_same_seed() {
    let place = Place::new();
    fs::write(place.path("ids.csv"), "id\n1\n2\n3\n4\n").expect("it is written");
    let mix = "[[request]]\nname = \"item\"\nweight = 3\npath = \"/item/{id}\"\nvalues = \"ids.csv\"\nexpect.status = 404\n\
               [[request]]\npath = \"/short\"\n";
    fs::write(place.path("mix.toml"), mix).expect("it is written");
    let mix = place.path("mix.toml");
    let run = |seed: &str| {
        let nginx = Nginx::start();
        let url = format!("http://{}", nginx.plain);
        let mix = mix.to_str().expect("UTF-8");
        let document = json(&url, &["--mix", mix, "-n", "100", "--seed", seed]);
        let lines = nginx.log();
        let mut sent: Vec<String> =
            lines.iter().map(|line| line.split(" conn=").next().unwrap_or("").to_owned()).collect();
        // Four connections finish in any order.
        sent.sort_unstable();
        (document, sent)
    };
    let ((document, sent), (_, again), (_, other)) = (run("7"), run("7"), run("8"));
    assert_eq!(sent.len(), 100);
    assert_eq!(sent, again);
    assert_ne!(sent, other);
    let endpoints = document["endpoints"].as_array().expect("endpoints");
    let items = sent.iter().filter(|line| line.starts_with("GET /item/")).count();
    assert_eq!(
        (&endpoints[0]["name"], &endpoints[0]["ok"]),
        (&"item".into(), &items.into()),
        "404 is what it expects"
    );
    assert_eq!(endpoints[1]["outcomes"][0]["latency"]["count"], 100 - items);
    assert!((60..90).contains(&items), "{items} of 100 at three in four");

    let wrong = "[[request]]\npath = \"/\"\nwieght = 2\n";
    fs::write(place.path("wrong.toml"), wrong).expect("it is written");
    let refused = load("http://127.0.0.1:1", &["--mix", place.path("wrong.toml").to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(2));
    for part in ["wrong.toml:3:1", "unknown field `wieght`", "did you mean `weight`?"] {
        assert!(stderr(&refused).contains(part), "{part}: {}", stderr(&refused));
    }
}

#[test]
fn the_interval_log_has_a_line_for_each_step_status_and_time() {
    let (nginx, place) = (Nginx::start(), Place::new());
    let file = place.path("latencies.hlog");
    let url = format!("http://{}/short", nginx.plain);
    let file_name = file.to_str().expect("UTF-8");
    json(&url, &["--rate", "50,100", "-d", "500ms", "--hdr", file_name]);
    let text = fs::read_to_string(&file).expect("the log is there");
    assert!(text.contains("#[Histogram log format version 1.3]\n#[StartTime: "), "{text}");
    let lines: Vec<Vec<&str>> =
        text.lines().filter(|line| line.starts_with("Tag=")).map(|line| line.split(',').collect()).collect();
    let tags: Vec<&str> = lines.iter().map(|line| line[0]).collect();
    let tag = |time| format!("Tag=endpoint=GET%20/short;status=200;time={time}");
    assert_eq!(tags, [tag("service"), tag("response")].iter().cycle().take(4).collect::<Vec<_>>());
    let start = |line: &[&str]| line[1].parse::<f64>().expect("seconds");
    assert!(start(&lines[0]) == 0.0 && start(&lines[2]) >= 0.5, "{lines:?}");
    assert!(lines.iter().all(|line| line[2] == "0.500" && line[4].starts_with("HISTFAAA")), "{lines:?}");

    let unwritable = load(&url, &["-n", "1", "--hdr", "/nowhere/at/all"]);
    assert_eq!((unwritable.status.code(), nginx.log().len()), (Some(2), 75), "nothing was sent");
}

#[test]
fn ab_without_k_opens_a_connection_for_each_request() {
    let nginx = Nginx::start();
    let mut command = proofload();
    command.args(["load", "--as", "ab", "--", "-n", "60", "-c", "3", "-B", "127.0.0.9"]);
    let output = command.arg(format!("http://{}/short", nginx.plain)).output().expect("proofload starts");
    let said = words(&stdout(&output));
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    for part in [
        "60 sent, 60 answered, 60 good",
        "a connection for each request, from 127.0.0.9",
        "latency includes connecting",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("reopened") && !said.contains("were open when"), "{said}");
    let sent = nginx.log();
    let own =
        sent.iter().filter(|line| line.contains(" conn=1 ") && line.ends_with("from=127.0.0.9 close=close"));
    assert_eq!((sent.len(), own.count()), (60, 60));
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    for (url, flags, problem) in [
        ("http://127.0.0.1:1", "--insecure", "--insecure is about TLS"),
        ("http://127.0.0.1:1", "--no-resume", "--no-resume is about TLS"),
        ("https://127.0.0.1:1", "--insecure --cacert f", "cannot be used with"),
        ("https://127.0.0.1:1", "--cacert /nowhere/at/all", "cannot read /nowhere/at/all"),
        ("http://127.0.0.1:1", "--http2 --pipeline 4", "cannot be used with"),
        ("http://127.0.0.1:1", "--streams 4", "--http2"),
        ("http://127.0.0.1:1", "--http2 --no-keepalive", "cannot be used with"),
        ("http://127.0.0.1:1", "--pipeline 1", "2..=1000"),
        ("http://127.0.0.1:1", "--unix s --source 127.0.0.1", "cannot be used with"),
        ("http://127.0.0.1:1", "--source 192.0.2.1", "192.0.2.1"),
        ("http://127.0.0.1:1/path", "--mix m.toml", "has a path"),
        ("http://127.0.0.1:1", "--mix m.toml --body x", "cannot be used with"),
        ("http://127.0.0.1:1", "--expect-body sha256:ab", "64 hexadecimal digits"),
        ("http://127.0.0.1:1", "--expect-body f --sample 0", "--sample 0 takes none"),
        ("http://127.0.0.1:1/{id}", "--values ids.txt", ".csv or .jsonl"),
    ] {
        let output = load(url, &flags.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", stderr(&output));
        assert!(stderr(&output).contains(problem), "{flags}: {}", stderr(&output));
    }
}
