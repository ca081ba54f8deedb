//! HAR 1.2: requests of a browser, as saved by its developer tools, Playwright and proxies
//! (<http://www.softwareishard.com/blog/har-12-spec/>).
//!
//! One JSON document that includes the bodies of all responses. Bodies are not stored, and each entry has
//! four short fields.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::{Asked, Entry, instant, is_method, parts};

/// Larger files are rejected. No browser writes them.
const BYTES_MAX: u64 = 4 << 30;

#[derive(Deserialize)]
struct Document {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    #[serde(rename = "startedDateTime")]
    started: Option<String>,
    request: Request,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    url: String,
}

#[derive(Deserialize)]
struct Response {
    status: i32,
}

pub(super) fn read(source: &mut dyn BufRead, tell: &mut dyn FnMut(Entry<'_>)) -> io::Result<()> {
    let document: Document = serde_json::from_reader(source.take(BYTES_MAX))?;
    for (number, recorded) in (1..).zip(document.log.entries) {
        let Recorded { started, request: Request { method, url }, response } = recorded;
        let asked = parts(&url).filter(|_| is_method(&method)).map(|(origin, target)| Asked {
            method,
            target: if target.starts_with('/') { target.to_owned() } else { format!("/{target}") },
            // 0 if there was none.
            status: response
                .and_then(|response| u16::try_from(response.status).ok())
                .filter(|status| *status > 0),
            at_s: started.as_deref().and_then(instant),
            origin: Some(origin.to_owned()),
        });
        tell((number, asked.ok_or(&url)));
    }
    Ok(())
}
