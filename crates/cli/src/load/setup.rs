//! How the service was reached, spoken to and checked, where that is not the usual; and what a reader must know of it. Pure.

use std::net::IpAddr;

use load::{Address, LoadSpec, Protocol, Request, Tls, Trust};
use model::{Cause, Phase};
use report::count;

use super::outcome::Outcome;

/// What of a spec the result has to tell.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The file with several requests.
    pub mix: Option<String>,
    /// How many there are.
    pub requests: usize,
    /// For each whether all of its requests are the same.
    pub fixed: Vec<bool>,
    pub protocol: Protocol,
    pub keep_alive: bool,
    pub tls: Option<Tls>,
    pub sources: Vec<IpAddr>,
    pub seed: u64,
    pub sample_every: u64,
    /// Whether the content of answers is compared with what is expected.
    pub compares_content: bool,
}

impl Setup {
    pub fn of(spec: &LoadSpec, mix: Option<String>) -> Setup {
        let contract = |request: &Request| request.contract.as_ref().unwrap_or(&spec.contract).content;
        Setup {
            mix,
            requests: spec.requests.len(),
            fixed: spec.requests.iter().map(|request| request.values.is_none()).collect(),
            protocol: spec.protocol,
            keep_alive: spec.keep_alive,
            tls: spec.tls.clone(),
            sources: spec.sources.clone(),
            seed: spec.seed,
            sample_every: spec.sample_every,
            compares_content: spec.requests.iter().any(|request| contract(request).is_some()),
        }
    }

    /// Requests under way on a connection, at most.
    pub fn lanes(&self) -> u32 {
        match self.protocol {
            Protocol::Http1 { pipeline: lanes } | Protocol::Http2 { streams: lanes } => lanes,
        }
    }

    pub fn speaks_http2(&self) -> bool {
        matches!(self.protocol, Protocol::Http2 { .. })
    }

    fn trusts_anyone(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.trust == Trust::Anything)
    }
}

impl Outcome {
    /// What is not as usual, in words; empty where everything is.
    pub fn unusual(&self) -> String {
        let setup = &self.setup;
        let protocol = match setup.protocol {
            Protocol::Http1 { pipeline: 1 } => None,
            Protocol::Http1 { pipeline } => {
                Some(format!("pipelining, up to {pipeline} requests a connection"))
            }
            Protocol::Http2 { streams: 1 } => Some("HTTP/2, 1 stream a connection".into()),
            Protocol::Http2 { streams } => Some(format!("HTTP/2, up to {streams} streams a connection")),
        };
        let sources = match setup.sources.as_slice() {
            [] => None,
            [only] => Some(format!("from {only}")),
            several => Some(format!("from {} addresses", several.len())),
        };
        let parts = [
            protocol,
            (!setup.keep_alive).then(|| "a connection for each request".into()),
            setup.trusts_anyone().then(|| "certificates not checked".into()),
            matches!(self.address, Address::Unix(_)).then(|| format!("over {}", self.address)),
            sources,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    pub(super) fn identity_unknown(&self) -> Option<String> {
        (self.setup.trusts_anyone() && self.slice.responses > 0).then(|| {
            "Certificates were not checked: who answered is not known. The handshakes cost what they would otherwise."
                .into()
        })
    }

    /// Some connections failed because of the server's certificate.
    pub(super) fn identity_refused(&self) -> Option<String> {
        let errors = self.slice.errors.iter();
        let refused = errors.filter(|e| e.phase == Phase::Tls && e.cause == Cause::Certificate);
        (refused.map(|e| e.count).sum::<u64>() > 0).then(|| {
            "The server's certificate was refused. --cacert FILE trusts the authority that signed it, --sni NAME expects \
             it to be for another name, --insecure takes any."
                .into()
        })
    }

    pub(super) fn pipelined(&self) -> Option<String> {
        let Protocol::Http1 { pipeline: 2.. } = self.setup.protocol else { return None };
        Some(
            "Pipelining: no browser does it, and the latency of a request contains waiting for the answers to those sent \
             before it on its connection."
                .into(),
        )
    }

    pub(super) fn connecting_included(&self) -> Option<String> {
        let handshake = if self.setup.tls.is_some() { " and the TLS handshake" } else { "" };
        (!self.setup.keep_alive).then(|| {
            format!("Each request opened a connection of its own: latency includes connecting{handshake}.")
        })
    }

    /// Not every answer's content was compared with what is expected.
    pub(super) fn content_unchecked(&self) -> Option<String> {
        let (compared, answered) = (self.sampled().count, self.slice.responses);
        (self.setup.compares_content && compared < answered).then(|| {
            format!(
                "The content of {} of {} answers was compared with what is expected: --sample 1 compares all.",
                count(compared),
                count(answered)
            )
        })
    }
}
