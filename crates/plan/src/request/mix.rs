//! Several requests of one load: each with a name of its own, header fields that hold, and nothing beside them that would be
//! sent by one request alone.
//!
//! Judges text only, like the module above it.

use super::{judge_header, judge_repeated};
use crate::check::clipped;
use crate::file;
use crate::model::Request;
use crate::problem::{Problem, Span};
use crate::site::Site;

/// A report has a line for each of them, and each thread of the generator histograms.
const REQUESTS_MAX: usize = 32;
const NAME_CHARS_MAX: usize = 40;
const LIST: [&str; 2] = ["load", "requests"];

/// The requests of a load that sends several; none where it sends the one of `load.path`.
pub(super) fn requests(site: &mut Site<'_>, load: &file::Load) -> Vec<Request> {
    if load.requests.is_empty() {
        return Vec::new();
    }
    report_single(site);
    if load.requests.len() > REQUESTS_MAX {
        let message = format!("`load.requests` has {} requests, at most {REQUESTS_MAX}", load.requests.len());
        site.report(Problem::new(site.tree.place(&LIST), message, "too many"));
    }
    let mut resolved: Vec<Request> = Vec::new();
    for (index, written) in load.requests.iter().enumerate() {
        judge_headers(site, index, written);
        let request = one(load, written);
        judge_name(site, index, &request.name, &resolved);
        resolved.push(request);
    }
    resolved
}

fn one(load: &file::Load, written: &file::Request) -> Request {
    let by_itself = if written.body.is_empty() { file::Method::Get } else { file::Method::Post };
    let method = written.method.unwrap_or(by_itself).as_str();
    let own = &written.headers.0;
    let replaced = |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let common = load.headers.0.iter().filter(|(name, _)| !replaced(name));
    Request {
        name: written.name.clone().unwrap_or_else(|| format!("{method} {}", written.path.0)),
        weight: written.weight,
        method: method.to_owned(),
        path: written.path.0.clone(),
        headers: common.chain(own).cloned().collect(),
        body: written.body.clone(),
    }
}

/// What says how one request is made says nothing about several.
fn report_single(site: &mut Site<'_>) {
    for key in ["method", "path", "body"] {
        if site.tree.entry(&["load", key]).is_some() {
            let message = format!("`load.{key}` is of one request, and `load.requests` has several");
            let problem = Problem::new(site.tree.key_place(&["load", key]), message, "one too many");
            site.report(problem.hint(
                "give each of `requests` its own and leave this out; where only some levels have `requests`, let the others \
                 set it",
            ));
        }
    }
}

fn judge_name(site: &mut Site<'_>, index: usize, name: &str, before: &[Request]) {
    let span = place(site, index, "name");
    if name.trim() != name || name.is_empty() || name.contains(char::is_control) {
        let message = format!("`load.requests`: `{}` is not a name for a request", clipped(name));
        site.report(Problem::new(span, message, "expected a word or two, no blanks at the ends"));
    } else if before.iter().any(|other| other.name == name) {
        let message = format!("`load.requests` has two requests called `{}`", clipped(name));
        let problem = Problem::new(span, message, "called so before");
        site.report(problem.hint("give each a `name` of its own; without one it is its method and path"));
    } else if name.chars().count() > NAME_CHARS_MAX {
        let message = format!(
            "`load.requests`: the name `{}` has {} characters, at most {NAME_CHARS_MAX}",
            clipped(name),
            name.chars().count()
        );
        site.report(Problem::new(span, message, "too long").hint("give it a short `name`"));
    }
}

fn judge_headers(site: &mut Site<'_>, index: usize, written: &file::Request) {
    let headers = &written.headers.0;
    for (number, (name, value)) in headers.iter().enumerate() {
        let Some(item) = site.tree.item(&LIST, index) else { continue };
        let places = (item.key_place(&["headers", name]), item.place(&["headers", name]));
        judge_header(site, "load.requests", name, places.clone(), [value]);
        judge_repeated(site, name, places.0, headers[..number].iter().map(|(name, _)| name));
    }
}

/// Where a key of a request stands; the whole request, where it has no such key.
fn place(site: &Site<'_>, index: usize, key: &str) -> Span {
    let own = site.tree.item(&LIST, index).and_then(|item| item.entry(&[key]));
    own.map_or_else(|| site.tree.item_place(&LIST, index), |entry| entry.node.span.clone())
}
