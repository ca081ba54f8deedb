//! The load on the entry and what its responses must be: what the engine can send, and what it can compare.
//!
//! Judges text only; no socket is opened and no name is looked up.

use std::collections::BTreeMap;

use crate::check::{clipped, shown_key};
use crate::file;
use crate::model::{Expect, Load};
use crate::network;
use crate::problem::{Problem, Span};
use crate::site::Site;
use crate::text_form::Period;

mod mix;

const TIMEOUT_MIN: Period = Period::milliseconds(10);
const TIMEOUT_MAX: Period = Period::seconds(600);

/// The engine frames requests and keeps connections itself: these fields would contradict it.
const ENGINE_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

/// The load of a variant.
pub(crate) fn load(site: &mut Site<'_>, load: &file::Load) -> Load {
    let timeout = site.within(&["load", "timeout"], load.timeout, TIMEOUT_MIN, TIMEOUT_MAX);
    for (index, (name, value)) in load.headers.0.iter().enumerate() {
        let places = places(site, ["load", "headers", name]);
        judge_header(site, "load.headers", name, places.clone(), [value]);
        judge_repeated(site, name, places.0, load.headers.0[..index].iter().map(|(name, _)| name));
    }
    if let Some(threads) = load.threads.filter(|threads| *threads > load.connections) {
        let connections = load.connections;
        let message =
            format!("`load.threads` is {threads}, more than the {connections} connections they share");
        let span = site.tree.place(&["load", "threads"]);
        site.report(Problem::new(span, message, "expected at most one for each connection"));
    }
    Load {
        method: load.method.as_str().to_owned(),
        path: load.path.0.clone(),
        headers: load.headers.0.clone(),
        body: load.body.clone(),
        requests: mix::requests(site, load),
        connections: load.connections,
        threads: load.threads,
        timeout,
        network: network::network(site, load.network),
    }
}

/// What the responses of a variant must be.
pub(crate) fn expect(site: &mut Site<'_>, expect: &file::Expect) -> Expect {
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, values) in &expect.headers {
        let values = values.as_slice();
        let places = places(site, ["expect", "headers", name]);
        judge_header(site, "expect.headers", name, places.clone(), values);
        if headers.insert(name.to_ascii_lowercase(), values.to_vec()).is_some() {
            report_repeated(site, name, places.0);
        }
        if values.is_empty() && site.source.complete {
            let message = format!("`expect.headers.{}` allows no value", shown_key(name));
            let span = site.tree.place(&["expect", "headers", name]);
            site.report(Problem::new(span, message, "expected at least one value"));
        }
    }
    Expect { status: expect.status.as_slice().to_vec(), headers, body_bytes: expect.body_bytes }
}

/// Where the key and the value of a header field stand.
fn places(site: &Site<'_>, path: [&str; 3]) -> (Span, Span) {
    (site.tree.key_place(&path), site.tree.place(&path))
}

/// A field name is a token (RFC 9110, 5.6.2); a value has no control characters but the tab (5.5). `table` is the one that the
/// field stands in, or is one like.
fn judge_header<'v>(
    site: &mut Site<'_>,
    table: &str,
    name: &str,
    (key_span, span): (Span, Span),
    values: impl IntoIterator<Item = &'v String>,
) {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        let message = format!("{} is not a name for a header field", shown_key(name));
        let label = "expected letters, digits and hyphens";
        site.report(Problem::new(key_span, message, label));
    } else if table.starts_with("load.") && ENGINE_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        let message = format!("`{table}` cannot set `{name}`: the load engine does that itself");
        site.report(Problem::new(key_span, message, "leave it out"));
    }
    let control = |c: char| c.is_control() && c != '\t';
    for value in values.into_iter().filter(|value| value.contains(control)) {
        let message =
            format!("header `{}` contains a line break or another control character", clipped(name));
        let problem = Problem::new(span.clone(), message, "expected one line");
        site.report(problem.hint(format!("its value reads `{}`", clipped(value))));
    }
}

fn judge_repeated<'n>(
    site: &mut Site<'_>,
    name: &str,
    key_span: Span,
    mut before: impl Iterator<Item = &'n String>,
) {
    if before.any(|other| other.eq_ignore_ascii_case(name)) {
        report_repeated(site, name, key_span);
    }
}

fn report_repeated(site: &mut Site<'_>, name: &str, key_span: Span) {
    let message = format!("header `{}` is there twice: capitals make no difference", clipped(name));
    site.report(Problem::new(key_span, message, "there before"));
}
