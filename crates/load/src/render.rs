//! The bytes of a request, made once before the load starts.
//!
//! It refuses what could not be sent as it is meant: line breaks in a header, a length that is not the body's.

use crate::{LoadError, Request};

const USER_AGENT: &str = concat!("proofload/", env!("CARGO_PKG_VERSION"));

/// Renders the request, or says what is wrong with it.
pub(crate) fn bytes(request: &Request) -> Result<Vec<u8>, LoadError> {
    check(request)?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    if !has(request, "host") {
        push(&mut head, "Host", &request.host);
    }
    if !has(request, "user-agent") {
        push(&mut head, "User-Agent", USER_AGENT);
    }
    if wants_length(request) {
        push(&mut head, "Content-Length", &request.body.len().to_string());
    }
    for (name, value) in &request.headers {
        push(&mut head, name, value);
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&request.body);
    Ok(bytes)
}

fn push(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(": ");
    head.push_str(value);
    head.push_str("\r\n");
}

fn has(request: &Request, name: &str) -> bool {
    request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
}

/// RFC 9110, section 8.6: a length of zero is said where the method could have had a body.
fn wants_length(request: &Request) -> bool {
    let may_have_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    (may_have_body || !request.body.is_empty())
        && !has(request, "content-length")
        && !has(request, "transfer-encoding")
}

fn check(request: &Request) -> Result<(), LoadError> {
    let refuse = |field, problem| Err(LoadError::Spec { field, problem });
    if request.method.is_empty() || !request.method.bytes().all(is_token) {
        return refuse("load.method", format!("{:?} is no HTTP method", request.method));
    }
    if request.method == "CONNECT" {
        return refuse("load.method", "CONNECT opens a tunnel, which cannot be loaded".into());
    }
    if !request.path.starts_with('/') && request.path != "*" {
        return refuse("load.path", format!("{:?} does not begin with /", request.path));
    }
    if let Some(byte) = request.path.bytes().find(|byte| !byte.is_ascii_graphic()) {
        let shown = byte.escape_ascii();
        return refuse(
            "load.path",
            format!("{:?} contains '{shown}', which must be %-escaped", request.path),
        );
    }
    if !request.host.bytes().all(is_value) {
        return refuse("load.host", format!("{:?} contains a control character", request.host));
    }
    for (name, value) in &request.headers {
        check_header(request, name, value)?;
    }
    Ok(())
}

fn check_header(request: &Request, name: &str, value: &str) -> Result<(), LoadError> {
    let refuse = |problem| Err(LoadError::Spec { field: "load.headers", problem });
    if name.is_empty() || !name.bytes().all(is_token) {
        return refuse(format!("{name:?} is no header name"));
    }
    if !value.bytes().all(is_value) {
        return refuse(format!("{name}: {value:?} contains a control character"));
    }
    let length = request.body.len();
    if name.eq_ignore_ascii_case("content-length") && value.trim() != length.to_string() {
        return refuse(format!("{name}: {value} does not agree with the body of {length} bytes"));
    }
    Ok(())
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            name: "test".into(),
            method: method.into(),
            path: "/a?b=c".into(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            body: body.into(),
            host: "127.0.0.1:80".into(),
        }
    }

    fn text(request: &Request) -> String {
        String::from_utf8(bytes(request).unwrap()).unwrap()
    }

    #[test]
    fn adds_what_is_missing_and_nothing_else() {
        let agent = format!("User-Agent: {USER_AGENT}\r\n");
        assert_eq!(
            text(&request("GET", &[], "")),
            format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{agent}\r\n")
        );
        assert_eq!(
            text(&request("POST", &[("host", "x"), ("user-agent", "y")], "hello")),
            "POST /a?b=c HTTP/1.1\r\nContent-Length: 5\r\nhost: x\r\nuser-agent: y\r\n\r\nhello"
        );
        assert!(text(&request("PUT", &[], "")).contains("Content-Length: 0\r\n"));
        let chunked = request("POST", &[("Transfer-Encoding", "chunked")], "0\r\n\r\n");
        assert!(!text(&chunked).contains("Content-Length"));
    }

    #[test]
    fn refuses_what_would_arrive_as_something_else() {
        let refused = |request: Request| bytes(&request).unwrap_err().to_string();
        assert!(refused(request("GET", &[("X", "a\r\nEvil: b")], "")).contains("control character"));
        assert!(refused(request("GET", &[("X Y", "a")], "")).contains("no header name"));
        assert!(refused(request("G ET", &[], "")).contains("no HTTP method"));
        assert!(refused(request("POST", &[("content-length", "4")], "hello")).contains("5 bytes"));
        let spaced = Request { path: "/a b".into(), ..request("GET", &[], "") };
        assert!(refused(spaced).contains("%-escaped"));
    }
}
