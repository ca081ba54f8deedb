//! Users who log in to a real Express service before they load it: with a token, a session cookie and think
//! times.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::place::{Place, Running, files, get, node};

const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/log_in.js");
const CONNECTIONS: u64 = 4;
/// Prefixes of the values that the service gives to users, which must not appear anywhere.
const GIVEN: [&str; 4] = ["form-", "csrf-", "session-", "token-"];
const MIX: &str = r#"
cookies = true
[[request]]
path = "/form"
once = true
capture = { csrf = "header:x-csrf" }
[[request]]
name = "log in"
path = "/login"
once = true
headers = { Content-Type = "application/json", X-Csrf = "{csrf}" }
body = '{{"user": "{name}", "password": "secret"}}'
values = "users.csv"
capture = { token = "json:/user/token" }
[[request]]
name = "cart"
path = "/cart"
headers = { Authorization = "Bearer {token}" }
"#;

fn place() -> Place {
    let express = Path::new(SERVICE).with_file_name("../../../../targets/auth/node_modules");
    assert!(
        express.exists(),
        "targets/auth is not installed: run scripts/setup"
    );
    let place = Place::new();
    place.write("mix.toml", MIX);
    place.write("users.csv", "name\nann\nben\ncid\ndan\n");
    place
}

fn service(mode: &str) -> (Running, SocketAddr, String) {
    let (running, address) = node(SERVICE, &[("MODE", mode)]);
    (running, address, format!("http://{address}"))
}

#[test]
fn each_connection_logs_in_once_and_sends_what_it_was_given() {
    let place = place();
    for (driver, mode) in [("completion", ""), ("readiness", ""), ("auto", "h2")] {
        let (_service, address, url) = service(mode);
        let mut words = vec![
            "load", &url, "--mix", "mix.toml", "-n", "200", "-c", "4", "--json", "--driver", driver,
        ];
        words.extend((mode == "h2").then_some("--http2"));
        let requests = place.said(&words).ends(0).json();
        assert_eq!(
            [&requests["sent"], &requests["successful"]],
            [200, 200],
            "{mode} {driver}: {requests:#}"
        );
        assert_eq!(requests["log_ins"], 2 * CONNECTIONS);
        if mode.is_empty() {
            let mut seen: Value = serde_json::from_str(&get(address, "/seen")).expect("it is JSON");
            assert_eq!((&seen["carts"], &seen["refused"]), (&200.into(), &0.into()));
            seen["users"]
                .as_array_mut()
                .expect("a list")
                .sort_by_key(Value::to_string);
            let all = serde_json::json!(["ann", "ben", "cid", "dan"]);
            assert_eq!(seen["users"], all, "each is somebody else");
        }
    }
}

#[test]
fn a_log_in_that_fails_is_a_failure_by_its_name_and_nothing_that_was_given_is_kept() {
    let place = place();
    let (_service, _, url) = service("");
    let wrongs = [
        ("\"secret\"", "\"wrong\"", "status 403"),
        ("/user/token", "/token", "token: the body has no /token"),
    ];
    for (right, wrong, why) in wrongs {
        place.write("wrong.toml", MIX.replace(right, wrong));
        let words = [
            "load",
            &url,
            "--mix",
            "wrong.toml",
            "-n",
            "20",
            "-c",
            "4",
            "-v",
            "--timeout",
            "1s",
        ];
        place.said(&words).ends(4).prints(&[
            "failed, counted as failed requests",
            &format!("log-in log in, for example {why}"),
            " 0 successful",
        ]);
    }
    let words = [
        "load", &url, "--mix", "mix.toml", "-n", "50", "-c", "4", "--sample", "1", "-v", "--out",
        "record",
    ];
    let said = place.said(&words);
    said.ends(0).prints(&[
        "cookies of each connection",
        "logging in  8 requests succeeded, in no other figure",
    ]);
    let kept: Vec<u8> = files(&place.path("record"))
        .into_iter()
        .flat_map(|(_, bytes)| bytes)
        .collect();
    let all = format!("{said}{}", String::from_utf8_lossy(&kept));
    let is_there = |given: &&str| all.contains(&format!("{given}0."));
    assert!(
        !GIVEN.iter().any(is_there) && !all.contains("token-\""),
        "{all}"
    );
}

#[test]
fn users_think_in_closed_loop_only() {
    let place = place();
    let (_service, _, url) = service("");
    place.write("think.toml", format!("think = \"100ms\"\n{MIX}"));
    let words = [
        "load",
        &url,
        "--mix",
        "think.toml",
        "-c",
        "4",
        "-d",
        "1s",
        "--json",
    ];
    let requests = place.said(&words).ends(0).json();
    let (sent, ok) = (
        requests["sent"].as_u64().expect("a count"),
        &requests["successful"],
    );
    // The first comes after at most 100 ms.
    assert!((4..=40).contains(&sent) && *ok == sent, "{requests:#}");
    place
        .said(&[&words[..], &["--rate", "50"]].concat())
        .ends(2)
        .tells(&["their think times are in it already"]);
    place
        .said(&[&words[..], &["--no-keepalive"]].concat())
        .ends(2)
        .tells(&["is to be kept"]);
    place
        .said(&[&words[..], &["--http2"]].concat())
        .ends(2)
        .tells(&["--streams 1"]);
    let rate = [
        "load", &url, "--mix", "mix.toml", "-c", "4", "-d", "500ms", "--rate", "100", "--json",
    ];
    let open = place.said(&rate).ends(0).json();
    assert_eq!(open["successful"], open["requests"]);
    assert_eq!(open["log_ins"], 8);
}

#[test]
fn an_experiment_logs_in_too() {
    let place = place();
    let requests = MIX
        .replace("[[request]]", "[[load.requests]]")
        .replace("cookies = true", "");
    let text = format!(
        "name = \"shop\"\n[services.shop]\ncommand = [\"node\", {SERVICE:?}]\nready = \"/seen\"\n[load]\nconnections = 4\n\
         cookies = true\n{requests}[measure]\nduration = \"300ms\"\n[expect]\nstatus = [200, 201]\n"
    );
    let file = place.write("shop.toml", text);
    let plan = place.said(&["run", "--dry-run", &file.display().to_string()]);
    let told = [
        "once GET /form, once log in, 100 % cart",
        "nothing is compared: closed loop, for ",
    ];
    plan.ends(0).prints(&told);
    assert!(!plan.out.contains("margin"), "{plan}");
    // For any verdict: a queue that a concurrent test fills makes it invalid (V28), because the kernel counts
    // all of them together.
    place
        .run(&file)
        .prints(&["logging in  8 requests succeeded"]);
}
