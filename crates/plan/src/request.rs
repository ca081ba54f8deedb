//! The load on the entry and the requirements for its responses: what the engine can send and compare.
//!
//! It checks text, and whether named files exist. It opens no socket and resolves no host name.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ::model::header;
use ::model::quantity::many;
use indexmap::IndexMap;

use crate::file::{self, FormatVersion, OneOrMany, RequestTarget};
use crate::model::{Contract, Load, Network, Protocol, Request, Service, Tls};
use crate::placeholder::placeholders;
use crate::problem::TextSpan;
use crate::shown::{clipped, shown_key};
use crate::site::Site;
use crate::text_form::{Period, is_field_name};
use crate::tree::TomlNode;
use crate::url::UrlPlace;
use crate::{log_in, secret, service};

const TIMEOUT: (Period, Period) = (Period::milliseconds(10), Period::seconds(600));
/// Concurrent requests on an HTTP/2 connection. Browsers have about this many, and servers permit 100 and
/// more.
pub const STREAMS: u32 = 10;
/// A report has a line for each request, and each thread of the generator has histograms.
const REQUESTS_MAX: usize = 32;
/// Maximum length of a request's name.
pub const NAME_CHARS_MAX: usize = 40;
const LIST: [&str; 2] = ["load", "requests"];

/// The engine frames requests and manages connections itself. These fields would contradict it.
const ENGINE_HEADERS: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

pub(crate) fn load(site: &mut Site<'_>, load: &file::LoadTable, entry: Option<&Service>) -> Load {
    let file::LoadTable {
        settings,
        rate,
        timeout,
        network: link,
        requests: list,
        // Handled by the functions below with these names. `protocol` handles streams and pipeline.
        single: _,
        protocol: _,
        streams: _,
        pipeline: _,
        tls: _,
    } = load;
    let timeout = site.within(&["load", "timeout"], *timeout, TIMEOUT);
    let connections = settings.connections;
    if let Some(threads) = settings.threads.filter(|threads| *threads > connections) {
        let connections = many(connections.into(), "connection");
        let message =
            format!("`load.threads` is {threads}, more than the {connections} they share");
        site.at(
            &["load", "threads"],
            message,
            "expected at most one for each connection",
        );
    }
    judge_sources(site, &settings.sources, entry);
    let mut settings = settings.clone();
    let (requests, think) = match site.source.requests {
        Some(typed) => {
            settings.cookies = typed.cookies;
            (typed.requests.clone(), typed.think)
        }
        None if list.is_empty() => (vec![single(site, load, entry)], None),
        None => (several(site, load, entry), None),
    };
    let resolved = Load {
        requests,
        settings,
        connections_typed: site.tree.entry(&["load", "connections"]).is_some(),
        rate_per_s: *rate,
        timeout,
        protocol: protocol(site, load),
        tls: tls(site, load, entry),
        network: network(site, *link),
        think,
    };
    log_in::judge(site, &LIST, &resolved);
    if !resolved.settings.keep_alive && resolved.has_users() {
        let message =
            "a user who logs in or has cookies is a connection, and `load.keep_alive` ends each";
        site.at_key(&["load", "keep_alive"], message, "expected true");
    }
    resolved
}

/// The request of a load with a single one.
fn single(site: &mut Site<'_>, load: &file::LoadTable, entry: Option<&Service>) -> Request {
    let node = site
        .tree
        .entry(&["load"])
        .map_or(site.tree, |entry| &entry.node);
    let is_written = node.entry(&["path"]).is_some();
    let mut request = asked(site, (node, "load.headers"), &load.single);
    if let Some(url) = entry.and_then(Service::url) {
        request.path = if is_written {
            url.below(&request.path)
        } else {
            url.path.clone()
        };
    }
    if is_written {
        report_query(site, entry, "load.path");
    }
    request
}

fn several(site: &mut Site<'_>, load: &file::LoadTable, entry: Option<&Service>) -> Vec<Request> {
    // Keys of a single request mean nothing for several.
    for key in ["method", "path", "body", "body_file"] {
        if site.tree.entry(&["load", key]).is_some() {
            let message =
                format!("`load.{key}` is of one request, and `load.requests` has several");
            site.at_key(&["load", key], message, "one too many").hint(
                "give each of `requests` its own and leave this out; where only some levels have `requests`, let the others \
                 set it",
            );
        }
    }
    report_query(site, entry, "load.requests");
    if load.requests.len() > REQUESTS_MAX {
        let message = format!(
            "`load.requests` has {} requests, at most {REQUESTS_MAX}",
            load.requests.len()
        );
        site.at(&LIST, message, "too many");
    }
    let mut resolved: Vec<Request> = Vec::new();
    for (index, written) in load.requests.iter().enumerate() {
        let node = site.tree.item(&LIST, index).unwrap_or(site.tree);
        let request = one(site, (node, "load.requests"), written, (load, entry));
        judge_name(site, index, &request.name, &resolved);
        resolved.push(request);
    }
    resolved
}

/// One of several requests, at `node`. `shown` is the name of their list.
pub(crate) fn one(
    site: &mut Site<'_>,
    (node, shown): (&TomlNode, &str),
    written: &file::RequestTable,
    (load, entry): (&file::LoadTable, Option<&Service>),
) -> Request {
    let file::RequestTable {
        name,
        weight,
        asked: own,
        expect,
        once,
        capture,
    } = written;
    let mut request = asked(site, (node, shown), own);
    if own.method.is_none() && (!request.body.is_empty() || own.body_file.is_some()) {
        "POST".clone_into(&mut request.method);
    }
    // Names are stored in records, and requests are found by name.
    let made = || format!("{} {}", request.method, secret::masked(None, &request.path));
    request.name = name.clone().unwrap_or_else(made);
    request.weight = *weight;
    request.once = *once;
    request.capture = capture
        .iter()
        .map(|(name, field)| (name.clone(), field.0.clone()))
        .collect();
    if let Some(url) = entry.and_then(Service::url) {
        request.path = url.below(&request.path);
    }
    let own_headers = std::mem::take(&mut request.headers);
    let (shared_headers, shared_values) = shared(&load.single);
    let inherited = fields(shared_headers).filter(|(name, _)| !header::has(&own_headers, name));
    request.headers = inherited.collect();
    request.headers.extend(own_headers);
    if own.values.is_none() {
        request.values = rows(site, site.tree.place(&["load", "values"]), shared_values);
    }
    request.expect = expect
        .as_ref()
        .map(|expect| contract(site, node, expect, load.settings.sample_every));
    request
}

/// Keys in `load` itself that apply to all of several requests.
fn shared(single: &RequestTarget) -> (&IndexMap<String, OneOrMany<String>>, Option<&str>) {
    let RequestTarget {
        headers,
        values,
        // Rejected beside `load.requests`.
        method: _,
        path: _,
        body: _,
        body_file: _,
    } = single;
    (headers, values.as_deref())
}

/// A request at `node`. `shown` is the source of its headers.
fn asked(
    site: &mut Site<'_>,
    (node, shown): (&TomlNode, &str),
    written: &RequestTarget,
) -> Request {
    let RequestTarget {
        method,
        path,
        headers,
        body,
        body_file,
        values: rows_of,
    } = written;
    for (index, (name, values)) in headers.iter().enumerate() {
        let values = values.as_slice();
        let is_repeated = headers
            .keys()
            .take(index)
            .any(|other| header::is_same(other, name));
        judge_header(
            site,
            Some(shown),
            node,
            &["headers"],
            name,
            values,
            is_repeated,
        );
        values
            .iter()
            .for_each(|value| judge_secrets(site, value, node.place(&["headers", name])));
    }
    if body_file.is_some() && !body.is_empty() {
        let message = "there are a `body` and a `body_file`";
        site.report(node.key_place(&["body_file"]), message, "leave one out");
    }
    for (key, text) in [("path", &path.0), ("body", body)] {
        judge_secrets(site, text, node.place(&[key]));
    }
    let file = body_file.as_deref();
    Request {
        method: method.clone().unwrap_or_else(|| Request::default().method),
        path: path.0.clone(),
        headers: fields(headers).collect(),
        body: body.clone(),
        body_file: file
            .and_then(|file| site.file_of("body_file", node.place(&["body_file"]), file)),
        values: rows(site, node.place(&["values"]), rows_of.as_deref()),
        ..Request::default()
    }
}

/// Checks secrets in a text that is sent. Other names in braces are checked with the rows of values.
fn judge_secrets(site: &mut Site<'_>, text: &str, span: TextSpan) {
    for placeholder in placeholders(text) {
        site.is_secret(placeholder.name, span.clone());
    }
}

/// Each field once for each of its values.
fn fields(headers: &IndexMap<String, OneOrMany<String>>) -> impl Iterator<Item = (String, String)> {
    headers.iter().flat_map(|(name, values)| {
        values
            .as_slice()
            .iter()
            .map(|value| (name.clone(), value.clone()))
    })
}

/// If a URL's path is prepended to others, it must not have a query.
fn report_query(site: &mut Site<'_>, entry: Option<&Service>, key: &str) {
    let Some((entry, url)) = entry.and_then(|entry| Some((entry, entry.url()?))) else {
        return;
    };
    if url.path.contains('?') {
        let message = format!(
            "`services.{}.url` has a query, and `{key}` says what is requested",
            entry.name
        );
        site.at(
            &["services", &entry.name, "url"],
            message,
            "expected no query",
        )
        .hint(format!(
            "the path of the URL comes before `{key}`: write the query there"
        ));
    }
}

fn judge_name(site: &mut Site<'_>, index: usize, name: &str, before: &[Request]) {
    let span = site
        .tree
        .item(&LIST, index)
        .unwrap_or(site.tree)
        .place(&["name"]);
    let (shown, length) = (clipped(name), name.chars().count());
    if name.trim() != name || name.is_empty() || name.contains(char::is_control) {
        let message = format!("`load.requests`: `{shown}` is not a name for a request");
        site.report(
            span,
            message,
            "expected a word or two, no blanks at the ends",
        );
    } else if before.iter().any(|other| other.name == name) {
        let message = format!("`load.requests` has two requests called `{shown}`");
        site.report(span, message, "called so before")
            .hint("give each a `name` of its own; without one it is its method and path");
    } else if length > NAME_CHARS_MAX {
        let message = format!(
            "`load.requests`: the name `{shown}` has {length} characters, at most {NAME_CHARS_MAX}"
        );
        site.report(span, message, "too long")
            .hint("give it a short `name`");
    }
}

/// A file of values, whose extension determines the format.
fn rows(site: &mut Site<'_>, span: TextSpan, written: Option<&str>) -> Option<PathBuf> {
    let written = written?;
    let found = site.file_of("values", span.clone(), written)?;
    let end = found
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    if !["csv", "jsonl", "ndjson"].contains(&end) {
        let message = format!(
            "`values`: the name of `{}` does not say what is in it",
            clipped(written)
        );
        site.report(span, message, "expected a name that ends in .csv or .jsonl")
            .hint("CSV with the columns' names in its first line, or an object in each line");
    }
    Some(found)
}

/// The protocol. Reports keys of the other protocol.
fn protocol(site: &mut Site<'_>, load: &file::LoadTable) -> Protocol {
    let is_http2 = load.protocol == FormatVersion::Http2;
    let several = is_http2 || load.pipeline.is_some_and(|n| n > 1);
    let keys = [
        (
            !load.settings.keep_alive && several,
            "keep_alive",
            "cannot be false where a connection has several requests under way",
        ),
        (
            !is_http2 && load.streams.is_some(),
            "streams",
            "is for HTTP/2, and `load.protocol` is \"http/1.1\"",
        ),
        (
            is_http2 && load.pipeline.is_some(),
            "pipeline",
            "is for HTTP/1.1, and `load.protocol` is \"h2\"",
        ),
    ];
    for (is_idle, key, why) in keys {
        if is_idle {
            site.at_key(
                &["load", key],
                format!("`load.{key}` {why}"),
                "without effect",
            );
        }
    }
    match load.protocol {
        FormatVersion::Http1 => Protocol::Http1 {
            pipeline: load.pipeline.unwrap_or(1),
        },
        FormatVersion::Http2 => Protocol::Http2 {
            streams: load.streams.unwrap_or(STREAMS),
        },
    }
}

/// TLS with the expected name of the certificate, for an https URL or a started service that is configured
/// for TLS.
fn tls(site: &mut Site<'_>, load: &file::LoadTable, entry: Option<&Service>) -> Option<Tls> {
    let url = entry.and_then(Service::url);
    if let (Some(url), Some(_)) = (url.filter(|url| !url.secure), &load.tls) {
        let message = format!("`load.tls` is about TLS, and {url} has none");
        site.at_key(&["load", "tls"], message, "without effect")
            .hint("a URL with TLS begins with https://");
    }
    let written = load
        .tls
        .clone()
        .or_else(|| url.filter(|url| url.secure).map(|_| Tls::default()))?;
    let Tls {
        ca,
        server_name,
        insecure,
        cert,
        key,
        resumption,
    } = written;
    let at = |key| ["load", "tls", key];
    if insecure && ca.is_some() {
        let message = "`load.tls` trusts anyone, and some authorities too";
        site.at(&at("insecure"), message, "leave `insecure` or `ca` out");
    }
    if key.is_some() && cert.is_none() {
        let message =
            "`load.tls.key` is the key of a client certificate, and there is no `load.tls.cert`";
        site.at_key(&at("key"), message, "without effect");
    }
    let mut file = |key, written: Option<PathBuf>| site.file(&at(key), &written?.to_string_lossy());
    let (ca, cert, key) = (file("ca", ca), file("cert", cert), file("key", key));
    let host = url.map_or("localhost", |url| url.host());
    let server_name = Some(server_name.unwrap_or_else(|| host.to_owned()));
    Some(Tls {
        ca,
        server_name,
        insecure,
        cert,
        key,
        resumption,
    })
}

fn judge_sources(site: &mut Site<'_>, sources: &[IpAddr], entry: Option<&Service>) {
    let socket = entry
        .and_then(Service::url)
        .is_some_and(|url| matches!(url.place, UrlPlace::Unix(_)));
    let problem = if sources
        .iter()
        .any(|source| source.is_ipv4() != sources[0].is_ipv4())
    {
        "`load.sources`: IPv4 and IPv6 addresses cannot connect to the same address"
    } else if socket && !sources.is_empty() {
        "`load.sources` are addresses, and a unix socket is connected to from none"
    } else {
        return;
    };
    site.at(&["load", "sources"], problem, "cannot be");
}

/// A contract at `node`, under its key `expect`.
pub(crate) fn contract(
    site: &mut Site<'_>,
    node: &TomlNode,
    expect: &file::ExpectTable,
    sample_every: u64,
) -> Contract {
    let file::ExpectTable {
        status,
        headers: written,
        body_bytes,
        content,
    } = expect;
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, values) in written {
        let values = values.as_slice();
        let is_repeated = headers.insert(header::key(name), values.to_vec()).is_some();
        judge_header(
            site,
            None,
            node,
            &["expect", "headers"],
            name,
            values,
            is_repeated,
        );
        let key = format!("expect.headers.{}", shown_key(name));
        let place = node.place(&["expect", "headers", name]);
        values
            .iter()
            .for_each(|value| service::judge_plain(site, &key, value, place.clone()));
    }
    if content.is_some() && sample_every == 0 {
        let message = "`expect.content` is compared in responses that are read in full, and `load.sample_every` is 0";
        site.report(
            node.key_place(&["expect", "content"]),
            message,
            "never looked at",
        )
        .hint("sample_every = 1 compares all of them, without it one in 10000");
    }
    Contract {
        status: status.as_slice().to_vec(),
        headers,
        body_bytes: *body_bytes,
        content: content.map(|content| content.0),
    }
}

/// A field name is a token (RFC 9110, 5.6.2). A value has no control characters except tab (5.5). `table` is
/// the field's table in `node`, and `sent` the source of a field that is sent.
fn judge_header(
    site: &mut Site<'_>,
    sent: Option<&str>,
    node: &TomlNode,
    table: &[&str],
    name: &str,
    values: &[String],
    is_repeated: bool,
) {
    let at = [table, &[name]].concat();
    let key_span = node.key_place(&at);
    if !is_field_name(name) {
        let message = format!("{} is not a name for a header field", shown_key(name));
        site.report(
            key_span.clone(),
            message,
            "expected letters, digits and hyphens",
        );
    } else if let Some(shown) =
        sent.filter(|_| ENGINE_HEADERS.iter().any(|own| header::is_same(own, name)))
    {
        let message = format!("`{shown}` cannot set `{name}`: the load engine does that itself");
        site.report(key_span.clone(), message, "leave it out");
    }
    let shown = clipped(name);
    let control = |c: char| c.is_control() && c != '\t';
    for value in values.iter().filter(|value| value.contains(control)) {
        let message =
            format!("header `{shown}` contains a line break or another control character");
        let hint = format!(
            "its value reads `{}`",
            clipped(&secret::masked(Some(name), value))
        );
        site.report(node.place(&at), message, "expected one line")
            .hint(hint);
    }
    if is_repeated {
        let message = format!("header `{shown}` is there twice: capitals make no difference");
        site.report(key_span, message, "there before");
    }
}

fn network(site: &mut Site<'_>, written: Option<file::NetworkTable>) -> Option<Network> {
    let file::NetworkTable { rate, delay } = written?;
    if rate.is_none() && delay.is_none() && site.source.complete {
        let message = "`load.network` has neither `rate` nor `delay`";
        site.at(
            &["load", "network"],
            message,
            "expected at least one of them",
        )
        .hint("for example network = { rate = \"20mbit\", delay = \"5ms\" }");
    }
    Some(Network {
        rate_bit_per_s: rate.map(|rate| rate.0),
        delay: delay.map(|delay| delay.0),
    })
}
