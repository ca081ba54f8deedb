//! The parts of a [`Body`](super::form::Body) about single requests, and about how connections were made. Names are an
//! interface: they are added to, never changed.

use load::{Protocol, Trust};
use model::EndpointCounts;
use serde::Serialize;

use super::form::Times;
use super::times;
use crate::load::outcome::Outcome;

/// How the service was reached and spoken to.
#[derive(Debug, Serialize)]
pub(super) struct Setup<'a> {
    /// The file with several requests; null without one.
    mix: Option<&'a str>,
    /// `HTTP/1.1` or `HTTP/2`.
    protocol: &'static str,
    /// Requests under way on a connection, at most: pipelined, or streams.
    requests_per_connection: u32,
    /// False: each request opened a connection.
    keep_alive: bool,
    /// Null without TLS.
    tls: Option<Security<'a>>,
    /// Local addresses; empty where the kernel chose.
    sources: Vec<String>,
    /// Decides which of several requests is sent when.
    request_seed: u64,
    /// One answer in so many was read in full and decoded; 0: none.
    sample_every: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Security<'a> {
    server_name: &'a str,
    /// False: any certificate was taken.
    checked: bool,
    /// Whether sessions could be taken up again.
    resumption: bool,
    /// What the first TLS error said.
    error: Option<&'a str>,
}

/// One of the requests.
#[derive(Debug, Serialize)]
pub(super) struct OfEndpoint<'a> {
    name: &'a str,
    sent: u64,
    ok: u64,
    ok_in_window: u64,
    /// `ok_in_window` over the window.
    throughput_per_s: Option<f64>,
    bytes_body: u64,
    outcomes: Vec<Ended<'a>>,
    contents: Vec<Content>,
}

/// Requests that ended in one way.
#[derive(Debug, Serialize)]
struct Ended<'a> {
    /// Null where there was no complete answer: all samples are censored.
    status: Option<u16>,
    /// Null in closed loop.
    response: Option<Times<'a>>,
    latency: Times<'a>,
}

/// One content of sampled answers.
#[derive(Debug, Serialize)]
struct Content {
    /// Of the decoded content.
    sha256: String,
    count: u64,
    /// Of all of them, as they were sent.
    encoded_bytes: u64,
    /// Of all of them.
    decoded_bytes: u64,
}

pub(super) fn setup(outcome: &Outcome) -> Setup<'_> {
    let setup = &outcome.setup;
    Setup {
        mix: setup.mix.as_deref(),
        protocol: match setup.protocol {
            Protocol::Http1 { .. } => "HTTP/1.1",
            Protocol::Http2 { .. } => "HTTP/2",
        },
        requests_per_connection: setup.lanes(),
        keep_alive: setup.keep_alive,
        tls: setup.tls.as_ref().map(|tls| Security {
            server_name: &tls.server_name,
            checked: tls.trust != Trust::Anything,
            resumption: tls.resumption,
            error: outcome.slice.tls_error.as_deref(),
        }),
        sources: setup.sources.iter().map(ToString::to_string).collect(),
        request_seed: setup.seed,
        sample_every: setup.sample_every,
    }
}

pub(super) fn endpoints(outcome: &Outcome) -> Vec<OfEndpoint<'_>> {
    outcome.slice.endpoints.iter().map(|endpoint| of(outcome, endpoint)).collect()
}

fn of<'a>(outcome: &'a Outcome, endpoint: &'a EndpointCounts) -> OfEndpoint<'a> {
    let ended = |ended: &'a model::EndpointOutcome| Ended {
        status: ended.status,
        response: outcome.asked().map(|_| times(&ended.response)),
        latency: times(&ended.latency),
    };
    let content = |seen: &model::ContentSeen| Content {
        sha256: seen.sha256.clone(),
        count: seen.count,
        encoded_bytes: seen.encoded_bytes,
        decoded_bytes: seen.decoded_bytes,
    };
    OfEndpoint {
        name: &endpoint.name,
        sent: endpoint.sent,
        ok: endpoint.successful,
        ok_in_window: endpoint.successful_in_window,
        throughput_per_s: outcome.per_second(endpoint.successful_in_window as f64),
        bytes_body: endpoint.body_bytes,
        outcomes: endpoint.outcomes.iter().map(ended).collect(),
        contents: endpoint.contents.iter().map(content).collect(),
    }
}
