//! The engine on real sockets and with both drivers, against test servers that count or misbehave, and
//! against nginx and nghttp2. Each fault is counted under its phase and cause, loses no sample, ends in
//! bounded time, and causes no storm of connection attempts. The load recovers when the cause is gone.
//!
//! Faults that a socket can cause are scripts of `server.rs`. Those that take a network are made in network
//! namespaces by `network.rs`. These tests do not depend on a fast machine and do not touch its network.

mod black_hole;
mod exhausted;
mod faults;
mod fetch;
mod network;
mod nghttpd;
mod nginx;
mod refused;
mod server;
mod slices;
mod worlds;

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use model::{Cause, Counts, OpenLoop, Phase};
use proofload_load::{Address, Arrivals, DriverChoice, Generator, LoadSpec, RequestSpec, Until};

/// A slice that exceeds its limits by this time has hung. Even a busy machine is not that slow.
const HUNG: Duration = Duration::from_secs(10);

/// A load whose limits no healthy server comes near.
fn spec(address: SocketAddr, connections: u32, driver: DriverChoice) -> LoadSpec {
    LoadSpec {
        connections,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        driver,
        ..LoadSpec::new(
            Address::Tcp(address),
            vec![RequestSpec::new("GET", "/", &address.to_string())],
        )
    }
}

/// The same load with a body, unless that is empty.
fn with_body(mut spec: LoadSpec, body: Vec<u8>) -> LoadSpec {
    if !body.is_empty() {
        spec.requests[0].method = "POST".into();
    }
    spec.requests[0].body = body;
    spec
}

/// Runs a test once for each driver, in parallel, each on its own thread. Its timeouts are short, so it may
/// fail on a machine that stalls, but not three times in a row.
fn for_both_drivers(test: impl Fn(DriverChoice) + Sync) {
    std::thread::scope(|scope| {
        let runs = [DriverChoice::Readiness, DriverChoice::Completion].map(|driver| {
            let test = &test;
            let attempt =
                move || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(driver)));
            (
                driver,
                scope.spawn(move || (0..3).any(|_| attempt().is_ok())),
            )
        });
        for (driver, run) in runs {
            assert!(
                run.join().is_ok_and(|passed| passed),
                "see above for what failed with {driver:?}"
            );
        }
    });
}

/// A generator whose slices are checked for the general invariants.
struct Load {
    generator: Generator,
    connections: u64,
    open_loop: bool,
    limit: Duration,
    /// Duration of the last slice, including its connect phase and drain.
    took: Duration,
}

impl Load {
    fn start(spec: LoadSpec) -> Load {
        Load {
            connections: spec.connections.into(),
            open_loop: spec.arrivals != Arrivals::Closed,
            limit: spec.connect_timeout + spec.timeout + HUNG,
            took: Duration::ZERO,
            generator: Generator::start(spec).unwrap(),
        }
    }

    /// Runs a slice. A hung one is interrupted and fails the test.
    fn run(&mut self, until: Until) -> Counts {
        let window = match until {
            Until::Elapsed(window) => window,
            Until::Requests(_) => Duration::ZERO,
        };
        let (interrupt, limit, begun) =
            (self.generator.handle(), self.limit + window, Instant::now());
        let (over, wait) = channel::<()>();
        let watch = std::thread::spawn(move || {
            let hung = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            hung.then(|| interrupt.stop()).is_some()
        });
        let slice = self.generator.run(until);
        drop(over);
        self.took = begun.elapsed();
        assert!(
            !watch.join().unwrap(),
            "not over after {limit:?}: {slice:?}"
        );
        self.check(&slice);
        slice
    }

    /// Runs a slice of `requests` requests and asserts that all are good and no errors occur.
    #[track_caller]
    fn well(&mut self, requests: u64) -> Counts {
        let slice = self.run(Until::Requests(requests));
        assert_eq!(
            (slice.due(), slice.successful, errors(&slice)),
            (requests, requests, vec![])
        );
        slice
    }

    /// Asserts that every due request is a sample and every sent one has exactly one result.
    fn check(&self, slice: &Counts) {
        assert_eq!(
            slice.sent,
            slice.responses + slice.timed_out + slice.broken + slice.unfinished
        );
        assert_eq!(slice.latency.count(), slice.sent);
        assert_eq!(slice.latency.censored(), slice.sent - slice.responses);
        assert_eq!(slice.first_byte.count(), slice.sent);
        let in_window = slice
            .successful_per_100_ms
            .iter()
            .map(|&ok| u64::from(ok))
            .sum::<u64>();
        assert_eq!(in_window, slice.successful_in_window);
        let lost = |timed_out| {
            let lossy = |phase| matches!(phase, Phase::Send | Phase::Head | Phase::Body);
            let losses = slice.errors.iter().filter(|error| lossy(error.phase));
            let losses = losses.filter(|error| (error.cause == Cause::Timeout) == timed_out);
            losses.map(|error| error.count).sum::<u64>()
        };
        assert_eq!(
            (slice.timed_out, slice.broken),
            (lost(true), lost(false)),
            "{:?}",
            slice.errors
        );
        assert_eq!(slice.open.is_some(), self.open_loop);
        if self.open_loop {
            let open = open_loop(slice);
            assert_eq!(open.intended, slice.sent + open.unsent);
            assert_eq!(open.response.count(), open.intended);
            assert_eq!(open.response.censored(), open.intended - slice.responses);
            assert_eq!(open.schedule_lag.count() + open.queued, open.intended);
        }
    }

    /// Asserts that the last slice, whose connections got no response, did not connect more often than the
    /// backoff allows.
    fn assert_backed_off(&self, slice: &Counts) {
        let failed = slice
            .errors
            .iter()
            .filter(|error| error.phase == Phase::Connect);
        let attempts = slice.connections_opened + failed.map(|error| error.count).sum::<u64>();
        let most = self.connections * attempts_max(self.took);
        assert!(
            attempts <= most,
            "{attempts} attempts in {:?}, at most {most}: {slice:?}",
            self.took
        );
    }
}

/// Maximum number of times one connection may be opened in this time without success: at once, at once again
/// after a loss, then 10 ms after that, 20, 40 and so on up to a second.
fn attempts_max(time: Duration) -> u64 {
    let waits =
        (0..).map(|nth| Duration::from_millis(10 << nth.min(7)).min(Duration::from_secs(1)));
    let mut at = Duration::ZERO;
    let within = waits.take_while(|wait| {
        at += *wait;
        at <= time
    });
    2 + within.count() as u64
}

fn open_loop(slice: &Counts) -> &OpenLoop {
    slice.open.as_deref().expect("it was at a rate")
}

fn errors(slice: &Counts) -> Vec<(Phase, Cause, u64)> {
    slice
        .errors
        .iter()
        .map(|error| (error.phase, error.cause, error.count))
        .collect()
}

/// Number of errors, all of which must be of this kind.
#[track_caller]
fn only(slice: &Counts, phase: Phase, cause: Cause) -> u64 {
    match errors(slice)[..] {
        [(seen_phase, seen_cause, count)] if (seen_phase, seen_cause) == (phase, cause) => count,
        ref others => panic!("not only {phase} {cause}: {others:?}"),
    }
}

/// Number of errors, all of which must be of these kinds.
#[track_caller]
fn within(slice: &Counts, kinds: &[(Phase, Cause)]) -> u64 {
    let strange = errors(slice)
        .into_iter()
        .find(|&(phase, cause, _)| !kinds.contains(&(phase, cause)));
    assert_eq!(strange, None, "of {:?}", errors(slice));
    slice.errors.iter().map(|error| error.count).sum()
}
