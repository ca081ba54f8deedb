//! `proofload load` over all supported transports, against a real nginx whose access log has the reference
//! count: TLS, HTTP/2, a unix socket, one connection per request, and several requests from a file. Latencies
//! are not checked, because they depend on a busy machine.

// The engine's own tests use the rest of it.
#[allow(dead_code)]
#[path = "../../../load/tests/nginx/server.rs"]
pub mod server;

use std::path::Path;

use serde_json::Value;

use crate::place::{Place, Run, Said, proofload};
use server::{LONG_BODY_BYTES, NAME, Nginx};

fn load(url: &str, flags: &[&str]) -> Said {
    proofload()
        .args(["load", url, "-v", "-c", "4"])
        .args(flags)
        .said()
}

fn json(url: &str, flags: &[&str]) -> Value {
    load(url, &[flags, &["--json"]].concat()).ends(0).json()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn https_needs_a_certificate_that_is_trusted_or_says_that_none_was() {
    let (nginx, place) = (Nginx::start(), Place::new());
    let authority = place.write("authority.pem", &nginx.authority);
    let authority = text(&authority);
    let url = format!("https://{}/short", nginx.tls);

    let checked = json(&url, &["-n", "200", "--cacert", authority, "--sni", NAME]);
    assert_eq!(
        (&checked["tls"]["checked"], &checked["tls"]["server_name"]),
        (&true.into(), &NAME.into())
    );
    assert_eq!(
        (&checked["successful"], &checked["handshake"]["count"]),
        (&200.into(), &4.into())
    );
    assert!(
        !checked["caveats"].to_string().contains("not checked"),
        "{}",
        checked["caveats"]
    );

    // For another name, and by an authority that this system does not trust.
    for flags in [
        &["-n", "9", "--cacert", authority][..],
        &["-n", "9", "--sni", NAME],
    ] {
        load(&url, flags).ends(4).prints(&[
            "TLS failed: ",
            "certificate",
            "tls certificate ×",
            "--cacert FILE trusts",
        ]);
    }
    load(&url, &["-n", "200", "--insecure"]).ends(0).prints(&[
        "certificates not checked",
        "certificates were not checked: who responded",
        "TLS 4 handshakes",
        " handshake ",
    ]);
    let sent = nginx.log();
    assert_eq!(sent.len(), 400, "what was refused has sent nothing");
    assert_eq!(
        sent.iter()
            .filter(|line| line.contains(&format!("sni={NAME} ")))
            .count(),
        200
    );
}

#[test]
fn http2_is_spoken_with_and_without_tls() {
    let nginx = Nginx::start();
    let plain = json(
        &format!("http://{}/short", nginx.http2),
        &["-n", "90", "--http2"],
    );
    assert_eq!(
        (&plain["protocol"], &plain["requests_per_connection"]),
        (&"HTTP/2".into(), &10.into())
    );
    let url = format!("https://{}/short", nginx.http2_tls);
    let secure = load(
        &url,
        &["-n", "90", "--http2", "--streams", "3", "--insecure"],
    );
    secure.prints(&["\nHTTP/2, up to 3 streams a connection, certificates"]);
    let sent = nginx.log();
    assert_eq!(
        sent.iter()
            .filter(|line| line.starts_with("GET /short HTTP/2.0 200 "))
            .count(),
        180
    );
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
        text(&socket),
    ];
    let long = place.write("long", "x".repeat(LONG_BODY_BYTES as usize));
    let other = place.write("other", "x");
    let expecting = |content: &Path| {
        let expected = [
            "--expect-body",
            text(content),
            "--expect-header",
            "content-encoding: gzip",
        ];
        load("http://h/long", &[&flags[..], &expected].concat())
    };
    expecting(&long).ends(0).prints(&[
        "50 sent, 50 successful",
        "content 50 of 50 sampled: all the same, 134 kB on average, sent as ",
    ]);
    expecting(&other)
        .ends(4)
        .prints(&["50 of 50 responses sampled", "unexpected content"]);
}

#[test]
fn a_mix_is_the_same_for_the_same_seed() {
    let place = Place::new();
    place.write("ids.csv", "id\n1\n2\n3\n4\n");
    let mix = "[[request]]\nname = \"item\"\nweight = 3\npath = \"/item/{id}\"\nvalues = \"ids.csv\"\nexpect.status = 404\n\
               [[request]]\npath = \"/short\"\n";
    let mix = place.write("mix.toml", mix);
    let run = |seed: &str| {
        let nginx = Nginx::start();
        let url = format!("http://{}", nginx.plain);
        let document = json(&url, &["--mix", text(&mix), "-n", "100", "--seed", seed]);
        let lines = nginx.log();
        let mut sent: Vec<String> = lines
            .iter()
            .map(|line| line.split(" conn=").next().unwrap_or("").to_owned())
            .collect();
        // Four connections finish in any order.
        sent.sort_unstable();
        (document, sent)
    };
    let ((document, sent), (_, again), (_, other)) = (run("7"), run("7"), run("8"));
    assert_eq!(sent.len(), 100);
    assert_eq!(sent, again);
    assert_ne!(sent, other);
    let endpoints = document["endpoints"].as_array().expect("endpoints");
    let items = sent
        .iter()
        .filter(|line| line.starts_with("GET /item/"))
        .count();
    assert_eq!(endpoints[0]["name"], "item");
    assert_eq!(endpoints[0]["successful"], items, "404 is what it expects");
    assert_eq!(
        endpoints[1]["outcomes"][0]["service_time"]["count"],
        100 - items
    );
    assert!((60..90).contains(&items), "{items} of 100 at three in four");

    let wrong = "[[request]]\npath = \"/\"\nwieght = 2\n";
    let wrong = place.write("wrong.toml", wrong);
    let refused = load("http://127.0.0.1:1", &["--mix", text(&wrong)]);
    refused.ends(2).tells(&[
        "wrong.toml:3:1",
        "unknown key `wieght`",
        "did you mean `weight`?",
    ]);
}

#[test]
fn ab_without_k_opens_a_connection_for_each_request() {
    let nginx = Nginx::start();
    let mut command = proofload();
    command.args([
        "load",
        "--as",
        "ab",
        "--",
        "-n",
        "60",
        "-c",
        "3",
        "-B",
        "127.0.0.9",
    ]);
    let said = command.arg(format!("http://{}/short", nginx.plain)).said();
    said.ends(0).prints(&[
        "60 sent, 60 successful",
        "a connection for each request, from 127.0.0.9",
        "latency includes connecting",
    ]);
    assert!(
        !said.out.contains("reopened") && !said.out.contains("were open when"),
        "{said}"
    );
    let sent = nginx.log();
    let own = sent
        .iter()
        .filter(|line| line.contains(" conn=1 ") && line.ends_with("from=127.0.0.9 close=close"));
    assert_eq!((sent.len(), own.count()), (60, 60));
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    for (url, flags, problem) in [
        (
            "http://127.0.0.1:1",
            "--insecure",
            "--insecure is about TLS",
        ),
        (
            "http://127.0.0.1:1",
            "--no-resume",
            "--no-resume is about TLS",
        ),
        (
            "https://127.0.0.1:1",
            "--insecure --cacert f",
            "cannot be used with",
        ),
        (
            "https://127.0.0.1:1",
            "--cacert /nowhere/at/all",
            "cannot read /nowhere/at/all",
        ),
        (
            "http://127.0.0.1:1",
            "--http2 --pipeline 4",
            "cannot be used with",
        ),
        ("http://127.0.0.1:1", "--streams 4", "--http2"),
        (
            "http://127.0.0.1:1",
            "--http2 --no-keepalive",
            "cannot be used with",
        ),
        ("http://127.0.0.1:1", "--pipeline 1", "2..=1000"),
        (
            "http://127.0.0.1:1",
            "--unix s --source 127.0.0.1",
            "cannot be used with",
        ),
        ("http://127.0.0.1:1", "--source 192.0.2.1", "192.0.2.1"),
        ("http://127.0.0.1:1/path", "--mix m.toml", "has a path"),
        (
            "http://127.0.0.1:1",
            "--mix m.toml --body x",
            "cannot be used with",
        ),
        (
            "http://127.0.0.1:1",
            "--expect-body sha256:ab",
            "64 hexadecimal digits",
        ),
        (
            "http://127.0.0.1:1",
            "--expect-body /nowhere/at/all",
            "cannot read /nowhere/at/all",
        ),
        (
            "http://127.0.0.1:1",
            "--expect-body f --sample 0",
            "--sample 0 takes none",
        ),
        (
            "http://127.0.0.1:1/{id}",
            "--values ids.txt",
            ".csv or .jsonl",
        ),
    ] {
        load(url, &flags.split(' ').collect::<Vec<_>>())
            .ends(2)
            .tells(&[problem]);
    }
}
