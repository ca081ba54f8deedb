//! Running services by URL: two Node.js services with the resource use of their processes, one nginx over TLS
//! with HTTP/2 and over a unix socket, and URLs that cannot be loaded. The tests use their own services on
//! loopback. Nothing else gets a request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::thread;

use crate::place::{Draft, Place, Run, Running, Said, free, node};
use crate::reach::server::{NAME, Nginx};

/// A service started by the test, which adds up `work` numbers for each response, and its URL.
fn adding(place: &Place, work: u32) -> (Running, String) {
    let text = "const [port, work] = [process.env.PORT, process.env.WORK].map(Number);\n\
                require('node:http').createServer((_, response) => {\n\
                let sum = 0; for (let i = 0; i < work; i += 1) sum = (sum * 31 + i) | 0;\n\
                response.end(sum === 0.5 ? 'never' : 'hello');\n\
                }).listen(port, '127.0.0.1');\n";
    let (running, address) = node(place.write("work.js", text), &[("WORK", &work.to_string())]);
    (running, format!("http://{address}"))
}

/// A server whose responses all have this head. It ends with the test's process.
fn answering(head: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked);
            let _ = write!(
                stream,
                "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
    });
    address
}

fn compare(place: &Place, words: &[&str]) -> Said {
    place
        .proofload(&[&["compare", "-v", "--out", "record"], words].concat())
        .stdin(Stdio::null())
        .said()
}

#[test]
fn two_services_that_run_already_are_told_apart_with_what_their_processes_used() {
    let place = Place::new();
    let ((quick, quick_url), (slow, slow_url)) = (adding(&place, 100), adding(&place, 400_000));
    let metrics = [
        "--metric",
        "cpu_per_request",
        "-c",
        "4",
        "--budget",
        "45s",
        "--seed",
        "1",
    ];
    let said = compare(
        &place,
        &[&[quick_url.as_str(), &slow_url], &metrics[..]].concat(),
    );
    said.ends(0)
        .prints(&["MORE EXPENSIVE", "which ran already"]);
    let record = place.opened();
    for trial in record.trials() {
        let node = [&quick, &slow][trial.variant()];
        let [seen] = trial.started.services.as_slice() else {
            panic!("{:?}", trial.started)
        };
        assert_eq!(seen.pid, node.child.id());
        assert!(
            trial
                .ended
                .as_ref()
                .is_none_or(|ended| ended.peak_rss_bytes > 10_000_000),
            "{trial:?}"
        );
        for slice in &trial.slices {
            assert!(slice.services_cpu_ns() > 0, "{slice:?}");
        }
    }

    // A single process behind two names has the sum of their use.
    let place = Place::new();
    let other = format!("{quick_url}/other");
    let refused = compare(
        &place,
        &[&[quick_url.as_str(), &other], &metrics[..]].concat(),
    );
    refused.ends(2).tells(&["cpu_per_request", "too"]);
    assert!(!place.record().exists());
}

/// An experiment on a URL against itself with another number of connections, to test the transport.
fn way(place: &Place, url: &str, load: &str) -> Said {
    place.run(&place.experiment(&Draft {
        service: &format!("url = \"{url}\""),
        more: "[factors.connections]\ntwo = { load.connections = 2 }\nfour = { load.connections = 4 }",
        load: &format!("path = \"/short\"\ntimeout = \"5s\"\n{load}"),
        design: "budget = \"20s\"",
    }))
}

/// Asserts that a run has enough slices, and that all of them had successful responses.
fn succeeded(place: &Place, said: &Said) {
    assert!(place.record().exists(), "{said}");
    let record = place.opened();
    let slices: Vec<_> = record.trials().flat_map(|trial| &trial.slices).collect();
    assert!(
        slices.len() > 11 && slices.iter().all(|slice| slice.counts.successful > 0),
        "{said}"
    );
}

#[test]
fn an_experiment_goes_over_tls_with_http2_and_over_a_unix_socket() {
    let (nginx, place) = (Nginx::start(), Place::new());
    let authority = place
        .write("authority.pem", &nginx.authority)
        .display()
        .to_string();
    let tls = format!(
        "tls = {{ ca = \"{authority}\", server_name = \"{NAME}\" }}\nprotocol = \"h2\"\nstreams = 3"
    );
    succeeded(
        &place,
        &way(&place, &format!("https://{}", nginx.http2_tls), &tls),
    );

    let place = Place::new();
    succeeded(
        &place,
        &way(
            &place,
            &format!("http://unix:{}", nginx.socket().display()),
            "",
        ),
    );

    // Signed by an authority that this system does not trust: reported at once, and nothing is measured.
    let place = Place::new();
    way(&place, &format!("https://{}", nginx.tls), "")
        .ends(3)
        .tells(&["certificate was refused", "--cacert"]);
    let sent = nginx.log();
    assert!(
        sent.iter()
            .any(|line| line.starts_with("GET /short HTTP/2.0 200 ") && line.contains(NAME))
    );
    assert!(
        sent.iter().any(|line| line.starts_with("GET /short HTTP/1.1 200 ") && line.contains("from=unix:"))
    );
}

#[test]
fn a_url_that_responds_with_500_and_more_is_not_ready() {
    let place = Place::new();
    let url = format!("http://{}", answering("503 Service Unavailable"));
    place
        .run(&place.experiment(&Draft {
            service: &format!("url = \"{url}\"\nready_timeout = \"1s\""),
            more: "[factors.connections]\ntwo = { load.connections = 2 }\nfour = { load.connections = 4 }",
            ..Draft::default()
        }))
        .ends(3)
        .tells(&["not ready after 1s: GET / at", "got status 503", "`expect.status`"]);
}

#[test]
fn what_cannot_be_loaded_is_told_with_what_to_do() {
    let nobody = free();
    let moved = answering("302 Found\r\nLocation: https://shop.example/login");
    let locked = answering("401 Unauthorized\r\nWWW-Authenticate: Bearer");
    for (address, parts) in [
        (nobody, ["no request was sent", "is the service running"]),
        (
            moved,
            [
                "status 302, Location: https://shop.example/login",
                "use the URL that it redirects to",
            ],
        ),
        (
            locked,
            ["status 401, WWW-Authenticate: Bearer", "Authorization"],
        ),
    ] {
        let place = Place::new();
        let url = format!("http://{address}");
        let said = compare(&place, &[&url, &format!("{url}/other")]);
        assert_eq!(said.ends(3).tells(&parts).out, "");
    }
}
