//! The share under a simulated driver and a server that misbehaves from a seed: every count of the tally must agree with
//! a ledger that is kept apart from it.

mod peer;
mod stall;
mod timetable;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use stats::Latencies;

use super::Terms;
use crate::corpus::{Corpus, Deck};
use crate::{Cause, Contract, Phase, Protocol, Request, Slice, Until, render};
use peer::TIMEOUT_NS;
use world::{LAG_MAX_NS, TICK_NS, World};

const SEEDS: u64 = 2000;

/// A GET of exactly so many bytes, over connections that are kept.
fn terms(request_bytes: usize) -> (Terms, Deck) {
    let headers = vec![("Host".into(), "a".into()), ("User-Agent".into(), "b".into())];
    let request = |path: String| Request { headers: headers.clone(), ..Request::new("GET", &path, "a") };
    let shortest = render::bytes(&request("/".into())).unwrap().len();
    let path = "/".to_string() + &"x".repeat(request_bytes - shortest);
    let corpus = Arc::new(Corpus::render(&[request(path)]).unwrap());
    let terms = Terms {
        corpus: corpus.clone(),
        protocol: Protocol::Http1 { pipeline: 1 },
        tls: None,
        fresh: false,
        can_skip: true,
        timeout_ns: TIMEOUT_NS,
        connect_timeout_ns: 200_000_000,
        contracts: vec![Contract::default()],
        sample_every: 3,
    };
    (terms, Deck::new(corpus, 1, 0))
}

/// What must come of a slice.
#[derive(Debug, Default, PartialEq)]
struct Ledger {
    sent: u64,
    unsent: u64,
    answered: u64,
    ok: u64,
    ok_in_window: u64,
    timed_out: u64,
    broken: u64,
    opened: u64,
    wire_bytes: u64,
    /// From sent, and from due.
    latency: Latencies,
    response: Latencies,
    errors: BTreeMap<(Phase, Cause), u64>,
}

/// The ledger's view of a slice.
fn ledger(slice: &Slice) -> Ledger {
    Ledger {
        sent: slice.sent,
        unsent: slice.unsent,
        answered: slice.answered,
        ok: slice.ok,
        ok_in_window: slice.ok_in_window,
        timed_out: slice.timed_out,
        broken: slice.broken,
        opened: slice.opened,
        wire_bytes: slice.bytes_wire,
        latency: slice.latency.clone(),
        response: slice.response.clone(),
        errors: slice.errors.iter().map(|error| ((error.phase, error.cause), error.count)).collect(),
    }
}

fn check(world: &World, slice: &Slice, until: Until, interrupted: bool) {
    assert_eq!(ledger(slice), world.ledger);
    assert_eq!(slice.sent, slice.answered + slice.timed_out + slice.broken + slice.unfinished);
    assert_eq!((slice.latency.count(), slice.latency.censored()), (slice.sent, slice.sent - slice.answered));
    assert_eq!(slice.first_byte.count(), slice.sent);
    assert_eq!(slice.intended, slice.sent + slice.unsent);
    assert!(slice.sent_in_window <= slice.sent);
    let (responses, departures) = match world.is_open_loop() {
        true => (slice.intended, slice.intended),
        false => (0, 0),
    };
    assert_eq!(slice.response.count(), responses);
    assert_eq!(slice.schedule_lag.count() + slice.queued, departures);
    assert_eq!(slice.status.values().sum::<u64>(), slice.answered);
    assert_eq!(slice.buckets.iter().map(|&ok| u64::from(ok)).sum::<u64>(), slice.ok_in_window);
    let not_ok: u64 = slice.contract_failures.iter().map(|failure| failure.count).sum();
    assert_eq!(not_ok, slice.answered - slice.ok);
    assert!(slice.ok_in_window <= slice.ok.min(slice.answered_in_window) && world.served <= slice.sent);
    // In open loop a request may be sent when the drain is nearly over.
    let may_be_left = interrupted || world.is_open_loop() && slice.drain_ns >= TIMEOUT_NS;
    assert!(may_be_left || slice.unfinished == 0, "{} were left", slice.unfinished);
    assert!(slice.drain_ns <= TIMEOUT_NS + TICK_NS + 2 * LAG_MAX_NS);
    match until {
        Until::Elapsed(window) if !interrupted => assert_eq!(slice.window_ns, window.as_nanos() as u64),
        Until::Requests(total) if !interrupted => {
            let hopeless = slice.connections_alive_end == 0;
            assert!(slice.sent == total || hopeless && slice.sent < total, "{} of {total}", slice.sent);
            assert_eq!(slice.answered_in_window, slice.answered);
            assert_eq!(slice.sent_in_window, slice.sent);
        }
        _ => {}
    }
    assert!(!world.dead || slice.sent == 0 && slice.errors[0].count > 0);
}

#[test]
fn every_request_ends_once_whatever_the_server_does() {
    let mut sum = Ledger::default();
    let (mut queued, mut after_window, mut lag) = (0, 0, Latencies::new());
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..2 {
            let until = match world.rng.random_bool(0.5) {
                true => Until::Elapsed(Duration::from_millis(world.rng.random_range(0..600))),
                false => Until::Requests(world.rng.random_range(1..60)),
            };
            let interrupt_ns = world.rng.random_bool(0.2).then(|| world.rng.random_range(0..300_000_000));
            world.ledger = Ledger::default();
            world.served = 0;
            let slice = world.slice(until, interrupt_ns);
            let interrupted = interrupt_ns.is_some_and(|after_ns| slice.window_ns >= after_ns);
            check(&world, &slice, until, interrupted);
            for (kind, count) in world.ledger.errors {
                *sum.errors.entry(kind).or_default() += count;
            }
            sum.answered += world.ledger.answered;
            sum.unsent += world.ledger.unsent;
            queued += slice.queued;
            after_window += slice.sent - slice.sent_in_window;
            lag.merge(&slice.schedule_lag);
        }
    }
    // The fiction is worth something only if everything happens in it.
    assert!(sum.answered > 10_000, "{sum:?}");
    let open_loop = [queued, lag.count(), lag.censored(), sum.unsent, after_window];
    assert!(
        open_loop[0].min(open_loop[1]) > 10_000 && open_loop[3].min(open_loop[4]) > 1000,
        "{open_loop:?}"
    );
    for (phase, cause) in [
        (Phase::Connect, Cause::Refused),
        (Phase::Connect, Cause::Timeout),
        (Phase::Send, Cause::Reset),
        (Phase::Send, Cause::ClosedEarly),
        (Phase::Head, Cause::ClosedEarly),
        (Phase::Head, Cause::Reset),
        (Phase::Head, Cause::Malformed),
        (Phase::Head, Cause::Timeout),
        (Phase::Body, Cause::ClosedEarly),
        (Phase::Body, Cause::Reset),
        (Phase::Body, Cause::Malformed),
        (Phase::Body, Cause::Timeout),
        (Phase::Idle, Cause::Closed),
        (Phase::Idle, Cause::Malformed),
    ] {
        assert!(sum.errors.get(&(phase, cause)).is_some_and(|&count| count > 20), "{phase} {cause}: {sum:?}");
    }
}
