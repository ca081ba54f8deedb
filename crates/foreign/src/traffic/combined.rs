//! Access logs in the default formats of Apache and nginx: common, combined, and formats with additional
//! fields.
//!
//! ```text
//! 127.0.0.1 - - [25/Nov/2026:13:27:25 +0000] "GET /item/7?page=2 HTTP/1.1" 200 512 "-" "curl/8.5"
//! ```

use super::{LoggedRequest, request_line};

pub(super) fn asked(line: &str) -> Option<LoggedRequest> {
    let mut rest = line;
    // Additional quoted fields may precede the request.
    loop {
        let (_, after) = rest.split_once('"')?;
        let end = closing_quote(after)?;
        rest = &after[end + 1..];
        if let Some((method, target)) = request_line(&after[..end]) {
            let time = line
                .split_once('[')
                .and_then(|(_, after)| after.split_once(']'));
            return Some(LoggedRequest {
                method: method.to_owned(),
                // nginx and Apache write bytes outside plain text as \xNN, nginx also a quote and a
                // backslash.
                target: target.replace("\\x", "%"),
                status: rest
                    .split_whitespace()
                    .next()
                    .and_then(|status| status.parse().ok()),
                at_s: time.and_then(|(time, _)| at_s(time)),
                origin: None,
            });
        }
    }
}

/// The end of a text in quotes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })
}

/// `25/Nov/2026:13:27:25 +0000`, as seconds since 1970.
fn at_s(text: &str) -> Option<f64> {
    let read = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text);
    read.and_then(|time| time.to_timestamp())
        .ok()
        .map(|at| at.as_second() as f64)
}
