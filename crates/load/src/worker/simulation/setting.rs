//! What a seed is about: the load, the rules that the engine is given, and how bad server and network are.

use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, RngExt};

use super::TIMEOUT_NS;
use crate::arena::{RequestArena, RequestSampler};
use crate::pacer::{Pace, Pacer};
use crate::worker::Settings;
use crate::{Contract, Process, Protocol, Rate, Request, Until};

#[derive(Debug)]
pub(super) struct Setting {
    pub(super) settings: Settings,
    pub(super) sampler: RequestSampler,
    /// Open loop.
    pub(super) pacer: Option<Pacer>,
    /// There are only so many arrivals, ever: a slice that counts requests would have no end.
    pub(super) is_limited: bool,
    pub(super) connections: u32,
    pub(super) nature: Nature,
}

/// What server and network are like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nature {
    /// Nobody listens.
    pub(super) dead: bool,
    /// How likely it is that a request ends badly.
    pub(super) trouble: f64,
    /// How likely it is that a write is not taken in full.
    pub(super) full: f64,
    /// Responses arrive byte by byte.
    pub(super) bytewise: bool,
    /// A response may be there before its request is.
    pub(super) hasty: bool,
}

impl Setting {
    pub(super) fn draw(rng: &mut impl Rng) -> Setting {
        let fresh = rng.random_bool(0.25);
        let pipeline = if fresh || rng.random_bool(0.4) { 1 } else { rng.random_range(2..=8) };
        let requests: Vec<_> = (0..rng.random_range(1..=3)).map(|number| request(rng, number)).collect();
        let contract = |number: usize| {
            let headers = [("Served".into(), vec![number.to_string()])].into();
            Contract { headers, ..Contract::default() }
        };
        let arena = Arc::new(RequestArena::render(&requests).unwrap());
        let settings = Settings {
            arena: arena.clone(),
            protocol: Protocol::Http1 { pipeline },
            tls: None,
            fresh,
            can_skip: rng.random_bool(0.5),
            timeout_ns: TIMEOUT_NS,
            connect_timeout_ns: if rng.random_bool(0.5) { 200_000_000 } else { 700_000_000 },
            contracts: (0..requests.len()).map(contract).collect(),
            sample_every: [0, 1, 3][rng.random_range(0..3)],
        };
        let rate = rng.random_bool(0.5).then(|| rate(rng));
        let process = if rng.random_bool(0.5) { Process::Constant } else { Process::Poisson };
        Setting {
            sampler: RequestSampler::new(arena, rng.random(), 0),
            pacer: rate.map(|rate| Pacer::new(Pace { rate, process, seed: rng.random() }, 0, 1)),
            is_limited: matches!(rate, Some(Rate::Ramp { to_per_s: 0.0, .. })),
            connections: rng.random_range(1..=8),
            nature: Nature::draw(rng),
            settings,
        }
    }

    /// How long a slice lasts: so that some dozens of requests are in it, as a rule.
    pub(super) fn until(&self, rng: &mut impl Rng) -> Until {
        if !self.is_limited && rng.random_bool(0.5) {
            return Until::Requests(rng.random_range(1..60));
        }
        let lanes = self.connections * self.settings.protocol.lanes();
        let window_ms = if self.pacer.is_some() { 400 } else { 1 + 400.min(3000 / lanes) };
        Until::Elapsed(Duration::from_millis(rng.random_range(0..window_ms).into()))
    }
}

impl Nature {
    fn draw(rng: &mut impl Rng) -> Nature {
        Nature {
            dead: rng.random_bool(0.01),
            trouble: [0.01, 0.05, 0.2, 0.6][rng.random_range(0..4)],
            full: if rng.random_bool(0.8) { 0.02 } else { 0.8 },
            bytewise: rng.random_bool(0.04),
            hasty: rng.random_bool(0.3),
        }
    }
}

/// Endpoint `number` of a load.
fn request(rng: &mut impl Rng, number: usize) -> Request {
    let method = ["GET", "GET", "HEAD", "POST"][rng.random_range(0..4)];
    let path = format!("/{number}/{}", "x".repeat(rng.random_range(0..40)));
    let body = if method == "POST" { vec![b'y'; rng.random_range(0..400)] } else { Vec::new() };
    let headers = vec![("User-Agent".into(), "b".into())];
    Request { weight: rng.random_range(1..4), headers, body, ..Request::new(method, &path, "a") }
}

/// From now and then to far more than the connections can take.
fn rate(rng: &mut impl Rng) -> Rate {
    let mut per_s = || 10f64.powf(rng.random_range(1.0..3.2));
    let (from_per_s, to_per_s) = (per_s(), per_s());
    let over = Duration::from_millis(rng.random_range(1..600));
    match rng.random_range(0..5) {
        0..3 => Rate::Constant(to_per_s),
        3 => Rate::Ramp { from_per_s, to_per_s, over },
        _ if rng.random_bool(0.5) => Rate::Ramp { from_per_s: 0.0, to_per_s, over },
        _ => Rate::Ramp { from_per_s, to_per_s: 0.0, over },
    }
}
