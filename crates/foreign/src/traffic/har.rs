//! HAR 1.2: requests of a browser, as saved by its developer tools, Playwright and proxies
//! (<http://www.softwareishard.com/blog/har-12-spec/>).
//!
//! One JSON document that includes the bodies of all responses. Bodies are not stored, and each entry has
//! four short fields.

use std::io::{self, BufRead, Read};

use serde::Deserialize;

use super::{LoggedRequest, TrafficEntry, instant, is_method, parts};

/// Larger files are rejected. No browser writes them.
const BYTES_MAX: u64 = 4 << 30;

#[derive(Deserialize)]
struct HarDocument {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<Recorded>,
}

#[derive(Deserialize)]
struct Recorded {
    #[serde(rename = "startedDateTime")]
    started: Option<String>,
    request: HarRequest,
    response: Option<HarResponse>,
}

#[derive(Deserialize)]
struct HarRequest {
    method: String,
    url: String,
}

#[derive(Deserialize)]
struct HarResponse {
    status: i32,
}

pub(super) fn read(
    source: &mut dyn BufRead,
    tell: &mut dyn FnMut(TrafficEntry<'_>),
) -> io::Result<()> {
    let document: HarDocument = serde_json::from_reader(source.take(BYTES_MAX))?;
    for (number, recorded) in (1..).zip(document.log.entries) {
        let Recorded {
            started,
            request: HarRequest { method, url },
            response,
        } = recorded;
        let asked = parts(&url)
            .filter(|_| is_method(&method))
            .map(|(origin, target)| LoggedRequest {
                method,
                target: if target.starts_with('/') {
                    target.to_owned()
                } else {
                    format!("/{target}")
                },
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
