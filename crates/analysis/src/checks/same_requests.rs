//! Whether two variants send the same requests, expect the same responses, and act as the same user.

use std::path::PathBuf;

use model::header;
use plan::{Contract, Load, LoadSettings, Request, comparable_contract};

// The patterns below name every field, so that a new one is not forgotten.

/// Whether two variants send the same request under a name, apart from accepted codings. At two commits the
/// same file is in different folders.
pub(super) fn is_same_request(one: &Request, other: &Request, across_commits: bool) -> bool {
    // The weight does not affect responses. Contracts are compared separately, and captured values with the
    // user.
    let Request {
        name: _,
        weight: _,
        method,
        path,
        headers,
        body,
        body_file,
        values,
        expect: _,
        once: _,
        capture: _,
    } = one;
    let sent = |headers: &[(String, String)]| -> Vec<(String, String)> {
        let chosen = headers
            .iter()
            .filter(|(name, _)| !header::is_same(name, "accept-encoding"));
        chosen
            .map(|(name, value)| (header::key(name), value.clone()))
            .collect()
    };
    let is_same_file = |one: &Option<PathBuf>, other: &Option<PathBuf>| match (one, other) {
        (Some(one), Some(other)) if across_commits => one.file_name() == other.file_name(),
        _ => one == other,
    };
    (method, path, body) == (&other.method, &other.path, &other.body)
        && sent(headers) == sent(&other.headers)
        && is_same_file(body_file, &other.body_file)
        && is_same_file(values, &other.values)
}

/// Whether two contracts are equal, apart from codings, which are undone.
pub(super) fn is_same_contract(one: &Contract, other: &Contract) -> bool {
    let without_codings = |of: &Contract| {
        let mut contract = comparable_contract(of);
        contract
            .headers
            .retain(|name, _| !["content-encoding", "vary"].contains(&name.as_str()));
        contract
    };
    without_codings(one) == without_codings(other)
}

/// Whether connections have the same state: the log-ins, the captured values, and cookies.
pub(super) fn is_same_user(one: &Load, other: &Load, across_commits: bool) -> bool {
    let Load {
        requests,
        settings:
            LoadSettings {
                cookies,
                connections: _,
                threads: _,
                keep_alive: _,
                sources: _,
                sample_every: _,
            },
        // How, how often and over which path requests are sent is not state that responses could show.
        connections_typed: _,
        rate_per_s: _,
        timeout: _,
        protocol: _,
        tls: _,
        network: _,
        think: _,
    } = one;
    let log_in = |requests: &'_ [Request]| -> Vec<Request> {
        requests
            .iter()
            .filter(|request| request.once)
            .cloned()
            .collect()
    };
    let (first, others) = (log_in(requests), log_in(&other.requests));
    let is_same = |(one, other): (&Request, &Request)| {
        is_same_request(one, other, across_commits) && one.capture == other.capture
    };
    *cookies == other.settings.cookies
        && first.len() == others.len()
        && first.iter().zip(&others).all(is_same)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(value: &Value) -> Request {
        serde_json::from_value(value.clone()).expect("a request")
    }

    /// A request without empty fields.
    fn full() -> Value {
        json!({
            "name": "log in", "weight": 2, "method": "POST", "path": "/in", "headers": [["X-User", "1"], ["Accept-Encoding", "br"]],
            "body": "a", "body_file": "/f/body", "values": "/f/rows.csv", "once": true, "capture": [["token", {"json": "/t"}]],
            "expect": {"status": [200], "headers": {}, "body_bytes": null},
        })
    }

    #[test]
    fn each_change_of_a_request_is_noticed() {
        let is_same = |other: &Value| is_same_request(&request(&full()), &request(other), false);
        let mut unnoticed: Vec<String> = full()
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        // Ensures that a new field is included.
        let written = serde_json::to_value(request(&full())).expect("JSON");
        assert_eq!(
            written.as_object().expect("an object").len(),
            unnoticed.len()
        );
        unnoticed.retain(|name| {
            let mut other = full();
            other[name] = match &other[name] {
                Value::String(text) => format!("{text}x").into(),
                Value::Number(_) => 7.into(),
                Value::Bool(truth) => (!truth).into(),
                Value::Object(_) => Value::Null,
                _ => json!([]),
            };
            is_same(&other)
        });
        unnoticed.sort();
        assert_eq!(unnoticed, ["capture", "expect", "name", "once", "weight"]);
        let spelled = |from: &str, to: &str| {
            serde_json::from_str(&full().to_string().replace(from, to)).expect("JSON")
        };
        assert!(is_same(&spelled("X-User", "x-user")) && is_same(&spelled("\"br\"", "\"gzip\"")));
        assert!(!is_same(&spelled("\"1\"", "\"2\"")));
    }

    #[test]
    fn who_logs_in_otherwise_is_another_user() {
        let load = |body: &str| {
            let mut first = full();
            first["body"] = body.into();
            Load {
                requests: vec![request(&first), Request::default()],
                ..Load::default()
            }
        };
        assert!(is_same_user(&load("a"), &load("a"), false));
        assert!(!is_same_user(&load("a"), &load("b"), false));
        assert!(!is_same_user(&load("a"), &Load::default(), false));
    }
}
