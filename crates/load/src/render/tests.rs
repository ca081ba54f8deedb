//! Rendered requests compared with expected bytes, and with the result of an HTTP parser.

use proptest::prelude::*;

use super::*;

fn request(method: &str, headers: &[(&str, &str)], body: &str) -> RequestSpec {
    RequestSpec {
        method: method.into(),
        path: "/a?b=c".into(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        body: body.into(),
        host: "127.0.0.1:80".into(),
        ..RequestSpec::default()
    }
}

fn text(request: &RequestSpec) -> String {
    String::from_utf8(bytes(request).unwrap()).unwrap()
}

fn refused(request: &RequestSpec) -> String {
    rows(request).unwrap_err().to_string()
}

/// The requests of all rows.
fn rows(request: &RequestSpec) -> Result<Vec<Vec<u8>>, LoadError> {
    let mut renderer = Renderer::new(request, &[], false)?;
    let row = |row| {
        let mut bytes = Vec::new();
        renderer.push(row, &mut bytes).map(|_| bytes)
    };
    (0..Renderer::new(request, &[], false)?.variants())
        .map(row)
        .collect()
}

#[test]
fn adds_what_is_missing_and_nothing_else() {
    let agent = format!("User-Agent: {USER_AGENT}\r\n");
    assert_eq!(
        text(&request("GET", &[], "")),
        format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{agent}\r\n")
    );
    assert_eq!(
        text(&request(
            "POST",
            &[("host", "x"), ("user-agent", "y")],
            "hello"
        )),
        "POST /a?b=c HTTP/1.1\r\nContent-Length: 5\r\nhost: x\r\nuser-agent: y\r\n\r\nhello"
    );
    assert!(text(&request("PUT", &[], "")).contains("Content-Length: 0\r\n"));
    let chunked = request("POST", &[("Transfer-Encoding", "chunked")], "0\r\n\r\n");
    assert!(!text(&chunked).contains("Content-Length"));
}

#[test]
fn without_values_braces_are_sent_as_they_are() {
    let braces = request(
        "POST",
        &[("host", "{x}"), ("user-agent", "}}")],
        "{{\"a\":{b}",
    );
    let expected = "POST /{{id} HTTP/1.1\r\nContent-Length: 9\r\nhost: {x}\r\nuser-agent: }}\r\n\r\n{{\"a\":{b}";
    assert_eq!(
        text(&RequestSpec {
            path: "/{{id}".into(),
            ..braces
        }),
        expected
    );
}

#[test]
fn refuses_what_would_arrive_as_something_else() {
    for (request, expected) in [
        (
            request("GET", &[("X", "a\r\nEvil: b")], ""),
            "load.headers: X: its value contains a control character",
        ),
        (
            request("GET", &[("X Y", "a")], ""),
            r#"load.headers: "X Y" is no header name"#,
        ),
        (
            request("G ET", &[], ""),
            r#"load.method: "G ET" is no HTTP method"#,
        ),
        (
            request("POST", &[("content-length", "4")], "hello"),
            "load.headers: content-length: 4 does not agree with the body of 5 bytes",
        ),
        (
            RequestSpec {
                path: "/a b".into(),
                ..request("GET", &[], "")
            },
            r#"load.path: "/a b" contains ' ', which must be %-escaped"#,
        ),
        (
            RequestSpec {
                path: "a".into(),
                ..request("GET", &[], "")
            },
            r#"load.path: "a" does not begin with /"#,
        ),
    ] {
        assert_eq!(refused(&request), expected);
    }
}

/// A request that uses all of `csv` at once.
fn filled(csv: &str) -> RequestSpec {
    RequestSpec {
        path: "/{{{a}}}/{b}?q={b}".into(),
        values: Some(Values::csv(csv.as_bytes()).unwrap()),
        ..request(
            "POST",
            &[("host", "h"), ("user-agent", "{a}{{"), ("X-B", "{b}")],
            "{a}={b}}}",
        )
    }
}

#[test]
fn each_row_makes_a_request_with_its_values_in_the_form_of_their_place() {
    let plain = filled("a,b\n1,x\na b/ü,é&\n");
    let expected = [
        "POST /{1}/x?q=x HTTP/1.1\r\nContent-Length: 4\r\nhost: h\r\nuser-agent: 1{\r\nX-B: x\r\n\r\n1=x}",
        "POST /{a%20b%2F%C3%BC}/%C3%A9%26?q=%C3%A9%26 HTTP/1.1\r\nContent-Length: 11\r\nhost: h\r\n\
         user-agent: a b/ü{\r\nX-B: é&\r\n\r\na b/ü=é&}",
    ];
    let rows: Vec<String> = rows(&plain)
        .unwrap()
        .into_iter()
        .map(|row| String::from_utf8(row).unwrap())
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn only_a_json_body_is_escaped_as_json() {
    for (content_type, expected) in [
        ("application/json", r#"{"a":"say \"hi\""}"#),
        (
            "Application/Problem+JSON; charset=utf-8",
            r#"{"a":"say \"hi\""}"#,
        ),
        ("application/x-ndjson", r#"{"a":"say \"hi\""}"#),
        ("text/plain; about=json", r#"{"a":"say "hi""}"#),
        ("application/bson", r#"{"a":"say "hi""}"#),
    ] {
        let values = Some(Values::jsonl(br#"{"a": "say \"hi\""}"#).unwrap());
        let json = request(
            "POST",
            &[("content-type", content_type)],
            r#"{{"a":"{a}"}}"#,
        );
        let bytes = rows(&RequestSpec { values, ..json }).unwrap().remove(0);
        assert!(
            String::from_utf8(bytes)
                .unwrap()
                .ends_with(&format!("\r\n\r\n{expected}")),
            "{content_type}"
        );
    }
}

#[test]
fn a_length_cannot_be_given_for_a_body_that_users_fill() {
    let given = request("POST", &[("Content-Length", "2")], "{token}ab");
    let refusal = Renderer::new(&given, &["token".to_owned()], false)
        .unwrap_err()
        .to_string();
    assert!(
        refusal.starts_with("load.headers: Content-Length is not known"),
        "{refusal}"
    );
}

#[test]
fn a_request_that_uses_no_value_is_one_and_doubled_braces_still_become_one() {
    let unused = request("POST", &[], "{{a}}");
    let rows = rows(&RequestSpec {
        values: Some(Values::csv(b"a\n1\n2").unwrap()),
        ..unused
    })
    .unwrap();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].ends_with(b"Content-Length: 3\r\n\r\n{a}"));
}

#[test]
fn what_values_cannot_make_a_request_of_is_refused_with_its_place() {
    let csv = "a,b\n1,2\n\"x\r\nEvil: y\",3\n";
    let with = |path: &str, header: (&str, &str)| {
        let headers = vec![(header.0.to_owned(), header.1.to_owned())];
        refused(&RequestSpec {
            path: path.into(),
            headers,
            ..filled(csv)
        })
    };
    for (refused, expected) in [
        (
            refused(&filled(csv)),
            r"load.headers: user-agent: `x\r\nEvil: y` contains a control character (values, line 3, column `a`)",
        ),
        (
            with("/", ("Content-Length", "4")),
            "load.headers: Content-Length: 4 does not agree with the body of 13 bytes (values, line 3)",
        ),
        (
            with("/", ("Transfer-Encoding", "chunked")),
            "load.headers: Transfer-Encoding frames a body as it is written, not as values fill it; leave it out",
        ),
        (
            with("/", ("Content-Type", "{a}")),
            "load.headers: Content-Type: \"{a}\" decides how values are written into the body and has one itself; \
             make a request of each type",
        ),
        (
            with("{a}", ("X", "y")),
            r#"load.path: "{a}" does not begin with /"#,
        ),
        (
            with("*{a}", ("X", "y")),
            r#"load.path: "*{a}" does not begin with /"#,
        ),
        (
            with("/{a} ", ("X", "y")),
            r#"load.path: "/{a} " contains ' ', which must be %-escaped"#,
        ),
        (
            with("/", ("X", "}")),
            "load.headers: X: the } at byte 0 closes nothing; a plain one is written }}",
        ),
    ] {
        assert_eq!(refused, expected);
    }
}

/// The inverse of percent-encoding.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// The request as parsed: the path, the headers' values, the body.
fn parsed(bytes: &[u8]) -> (String, Vec<(String, String)>, Vec<u8>) {
    let mut headers = [httparse::EMPTY_HEADER; 8];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes).unwrap() else {
        panic!("no end of the head")
    };
    let text = |header: &httparse::Header<'_>| {
        (
            header.name.to_owned(),
            String::from_utf8(header.value.to_vec()).unwrap(),
        )
    };
    let headers = request.headers.iter().map(text).collect();
    (
        request.path.unwrap().to_owned(),
        headers,
        bytes[head..].to_vec(),
    )
}

proptest! {
    #[test]
    fn whatever_the_values_are_they_arrive_in_their_places(
        path: String, query: String, header: String, body: String, json: bool,
    ) {
        let row = serde_json::json!({ "path": path, "query": query, "header": header, "body": body });
        let request = RequestSpec {
            method: "POST".into(),
            path: "/p/{path}/end?q={query}&r={{1}}".into(),
            headers: vec![
                ("Content-Type".into(), if json { "application/json" } else { "text/plain" }.into()),
                ("X-Value".into(), "<{header}>".into()),
            ],
            body: br#"{{"body": "{body}", "number": 1}}"#.to_vec(),
            values: Some(Values::jsonl(row.to_string().as_bytes()).unwrap()),
            ..RequestSpec::default()
        };
        let rendered = rows(&request);
        if header.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
            prop_assert!(rendered.unwrap_err().to_string().contains("control character"));
            return Ok(());
        }
        let (arrived, headers, content) = parsed(&rendered.unwrap()[0]);
        let rest = arrived.strip_prefix("/p/").unwrap();
        let (segment, rest) = rest.split_once("/end?q=").unwrap();
        prop_assert_eq!(decoded(segment), path);
        prop_assert_eq!(decoded(rest.strip_suffix("&r={1}").unwrap()), query);
        let sent = |name: &str| headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        prop_assert_eq!(headers.len(), 5);
        prop_assert_eq!(sent("X-Value"), Some(format!("<{header}>")));
        prop_assert_eq!(sent("Content-Length"), Some(content.len().to_string()));
        if json {
            let expected = serde_json::json!({ "body": body, "number": 1 });
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&content).unwrap(), expected);
        } else {
            prop_assert_eq!(content, format!(r#"{{"body": "{body}", "number": 1}}"#).into_bytes());
        }
    }
}
