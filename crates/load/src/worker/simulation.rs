//! The worker under a simulated driver and a server that misbehaves as its seed dictates. Every count of the
//! tally must match an independent ledger.
//!
//! ```text
//!   seed ──► setting ──► world: consecutive slices, as in an engine thread
//!                          │
//!                        driver ◄─ actions ─ worker          effects of events and final counts
//!                        │    │                            must be equal on both sides
//!              server ◄──┘    └───────────► ledger, book
//! ```
//! A failing seed prints its number. To run it alone:
//! `PROOFLOAD_SEED=17 cargo test -p proofload-load --lib whatever_the_server_does`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use driver::Driver;
use model::{Counts, Phase};
use rand::{Rng, RngExt};
use stats::Latencies;

use self::ledger::State;
use crate::arena::{RequestArena, RequestSampler};
use crate::pacer::{Pacer, SharedPace};
use crate::settings::WorkerSettings;
use crate::worker::{Action, Worker};
use crate::{ArrivalProcess, Contract, Protocol, Rate, RequestSpec, Until, Users};

mod book;
mod driver;
mod ledger;
mod server;

const SEEDS: u64 = 10_000;
/// For one in n seeds every latency is compared, for the others only their count, because tables take time.
const CLOSELY_EVERY: u64 = 32;
const SLICES: usize = 2;
const TIMEOUT_NS: u64 = 300_000_000;
const TICK_NS: u64 = 10_000_000;
/// Maximum delay before an event is noticed.
const LAG_MAX_NS: u64 = 15_000_000;
/// Freeing a block of this size once keeps glibc from returning tables to the kernel and allocating them
/// again, which would take as long as the rest (mallopt(3): the dynamic threshold of `M_MMAP_THRESHOLD`, and
/// twice that for trimming).
const BLOCK_BYTES: usize = 30 << 20;
const SEED_VARIABLE: &str = "PROOFLOAD_SEED";

/// Events of many slices with their counts.
pub(crate) type Sum = BTreeMap<String, u64>;

pub(crate) fn add(mut sum: Sum, more: Sum) -> Sum {
    more.into_iter()
        .for_each(|(what, count)| *sum.entry(what).or_default() += count);
    sum
}

/// These figures and the errors of a slice.
pub(crate) fn summed<const N: usize>(slice: &Counts, figures: [(&str, u64); N]) -> Sum {
    let errors = slice
        .errors
        .iter()
        .map(|error| (format!("{} {}", error.phase, error.cause), error.count));
    figures
        .map(|(what, count)| (what.to_owned(), count))
        .into_iter()
        .chain(errors)
        .collect()
}

/// Runs all seeds on all CPUs, or only the seed named in the environment, which returns None. A failure names
/// its seed.
pub(crate) fn run_seeds(
    test: &str,
    seeds: u64,
    run: impl Fn(u64) -> Sum + Sync + RefUnwindSafe,
) -> Option<Sum> {
    let run = |seed: u64| {
        catch_unwind(|| run(seed)).unwrap_or_else(|_| {
            panic!(
                "seed {seed} fails, as said above; alone: {SEED_VARIABLE}={seed} cargo test -p proofload-load --lib {test}"
            )
        })
    };
    if let Ok(seed) = std::env::var(SEED_VARIABLE) {
        run(seed
            .parse()
            .expect("PROOFLOAD_SEED is the number of a seed"));
        return None;
    }
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Some(std::thread::scope(|scope| {
        let some = |first: usize| {
            (first as u64..seeds)
                .step_by(threads)
                .map(run)
                .fold(Sum::default(), add)
        };
        let workers: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || some(first)))
            .collect();
        let sums = workers.into_iter().map(|worker| {
            worker
                .join()
                .unwrap_or_else(|failure| resume_unwind(failure))
        });
        sums.fold(Sum::default(), add)
    }))
}

/// Asserts that each of these causes occurs more than `least` times in its phase. Otherwise the simulation
/// would prove little.
pub(crate) fn assert_all_happen(sum: &Sum, least: u64, rows: &[(&str, &[&str])]) {
    for (phase, causes) in rows {
        for cause in *causes {
            let count = sum
                .get(&format!("{phase} {cause}"))
                .copied()
                .unwrap_or_default();
            assert!(count > least, "{phase} {cause}: {count} times: {sum:?}");
        }
    }
}

/// Runs the slices of a seed.
fn run(seed: u64) -> Sum {
    let mut driver = Driver::new(seed);
    let slices = (0..SLICES).map(|_| {
        let slice = slice(&mut driver, seed.is_multiple_of(CLOSELY_EVERY));
        let open = slice.open.clone().unwrap_or_default();
        let after_window = if slice.open.is_some() {
            slice.sent - open.sent_in_window
        } else {
            0
        };
        let figures = [
            ("completed", slice.responses),
            ("bad", slice.responses - slice.successful),
            ("corrupt", driver.ledger.book.corrupt),
            ("unfinished", slice.unfinished),
            ("unsent", open.unsent),
            ("queued", open.queued),
            ("with a lag", open.schedule_lag.count()),
            ("sent after the window", after_window),
        ];
        summed(&slice, figures)
    });
    slices.fold(Sum::default(), add)
}

#[test]
fn every_request_ends_once_whatever_the_server_does() {
    let Some(sum) = run_seeds("whatever_the_server_does", SEEDS, run) else {
        return;
    };
    assert!(sum["completed"] > 100_000, "{sum:?}");
    let figures = [
        "bad",
        "corrupt",
        "unfinished",
        "unsent",
        "queued",
        "with a lag",
        "sent after the window",
    ];
    figures
        .iter()
        .for_each(|figure| assert!(sum[*figure] > 1000, "{figure}: {sum:?}"));
    const WITHIN: [&str; 6] = [
        "abandoned",
        "closed-early",
        "reset",
        "timeout",
        "malformed",
        "too-large",
    ];
    let happens: [(&str, &[&str]); 5] = [
        (
            "connect",
            &[
                "refused",
                "reset",
                "timeout",
                "unreachable",
                "address-exhausted",
            ],
        ),
        ("send", &WITHIN),
        ("head", &WITHIN),
        // Only the oldest request is in its body, and a timeout ends the connection for the others, so these
        // are not abandoned.
        ("body", &WITHIN[1..]),
        ("idle", &["closed", "reset", "malformed"]),
    ];
    assert_all_happen(&sum, 50, &happens);
}

// A server that stalls for two seconds on a virtual clock. The engine's counts are compared with those that
// follow from the timetable. A tool that forgets requests it could not send would report a hundredth of the
// stall.

const S: u64 = 1_000_000_000;
const RATE_PER_S: u64 = 1000;
const WINDOW_NS: u64 = 8 * S;
const STALL_FROM_NS: u64 = 3 * S;
const STALL_UNTIL_NS: u64 = 5 * S;
const SERVICE_NS: u64 = 2_000_000;
const STARTED_NS: u64 = 77;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Settings shared by the simulations: these requests with their contracts, over kept-alive connections.
pub(crate) fn settings(requests: &[RequestSpec], protocol: Protocol) -> WorkerSettings {
    WorkerSettings {
        arena: Arc::new(RequestArena::render(requests, &Users::default()).unwrap()),
        protocol,
        tls: None,
        fresh: false,
        can_skip: true,
        timeout_ns: TIMEOUT_NS,
        connect_timeout_ns: 200_000_000,
        opening_gap_ns: 0,
        contracts: requests
            .iter()
            .map(|request| request.contract.clone().unwrap_or_default())
            .collect(),
        sample_every: 1,
        users: None,
    }
}

/// Completion time of a request sent at `sent_ns`, both from the start of the window. The server does no work
/// during the stall.
fn done_ns(sent_ns: u64) -> u64 {
    let done_ns = sent_ns + SERVICE_NS;
    match () {
        () if done_ns <= STALL_FROM_NS || sent_ns >= STALL_UNTIL_NS => done_ns,
        () if sent_ns < STALL_FROM_NS => done_ns + (STALL_UNTIL_NS - STALL_FROM_NS),
        () => STALL_UNTIL_NS + SERVICE_NS,
    }
}

/// A worker with open connections at the start of its window.
fn opened(settings: WorkerSettings, connections: u32) -> Worker {
    let pace = SharedPace {
        rate: Rate::Constant(RATE_PER_S as f64),
        process: ArrivalProcess::Constant,
        seed: 3,
    };
    let sampler = RequestSampler::new(settings.arena.clone(), 1, 0);
    let mut worker = Worker::new(settings, sampler, Some(Pacer::new(pace, 0, 1)), connections);
    worker.prepare(0, None);
    for index in 0..connections as usize {
        worker.connecting(index, 0);
        assert_eq!(worker.opened(index, 0), Action::Free);
    }
    worker.open_window(STARTED_NS, Until::Elapsed(Duration::from_nanos(WINDOW_NS)));
    worker
}

/// Runs the worker with an engine that is never late.
fn measured(connections: u32) -> Counts {
    let settings = settings(
        &[RequestSpec::new("GET", "/", "a")],
        Protocol::Http1 { pipeline: 1 },
    );
    let settings = WorkerSettings {
        timeout_ns: 5 * S,
        connect_timeout_ns: S,
        sample_every: 3,
        ..settings
    };
    let mut worker = opened(settings, connections);
    let (mut responses, mut now_ns) = (BinaryHeap::new(), STARTED_NS);
    while now_ns < STARTED_NS + WINDOW_NS {
        now_ns = turn(&mut worker, &mut responses, now_ns);
    }
    worker.stop_sending(now_ns, 5 * S);
    while !worker.is_drained(now_ns) {
        now_ns = turn(&mut worker, &mut responses, now_ns);
    }
    worker.finish(now_ns, |index| panic!("connection {index} is closed"))
}

/// Advances time to the next response, or to the next arrival for which a connection is free.
fn turn(
    worker: &mut Worker,
    responses: &mut BinaryHeap<Reverse<(u64, usize)>>,
    now_ns: u64,
) -> u64 {
    let mut sent = Vec::new();
    let answer_ns = responses
        .peek()
        .map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
    let now_ns = answer_ns.min(worker.wake_ns()).max(now_ns);
    if now_ns == answer_ns {
        let Some(Reverse((_, index))) = responses.pop() else {
            unreachable!()
        };
        assert_eq!(
            worker.received(index, now_ns, &mut RESPONSE.to_vec()),
            Action::Free
        );
        sent.extend((worker.start(index, now_ns) == Action::Send).then_some(index));
    }
    sent.extend(std::iter::from_fn(|| worker.start_next(now_ns)).map(|(index, _)| index));
    for index in sent {
        worker.wrote(index, worker.output(index).unwrap().len());
        responses.push(Reverse((STARTED_NS + done_ns(now_ns - STARTED_NS), index)));
    }
    now_ns
}

#[test]
fn a_stall_is_reported_as_long_as_it_was_for_those_who_came() {
    // Number of requests that find no connection free, if each takes the first free one.
    for (connections, queued) in [(16, 2269), (2500, 0)] {
        let counts = measured(connections);
        let open = counts.open.as_deref().unwrap();
        assert_eq!(
            (counts.sent, open.queued, open.unsent),
            (8000, queued, 0),
            "{connections} connections"
        );
        assert!(
            open.schedule_lag.max().unwrap().ns() <= 1,
            "the engine was never late"
        );
        // A tool that measures from the time of sending would not notice the stall.
        let p99 = |latencies: &Latencies| latencies.quantile(0.99).unwrap().ns();
        assert!(p99(&open.response) > 19 * S / 10, "{:?}", open.response);
        assert!(
            connections > 16 || p99(&counts.latency) < 3_000_000,
            "{:?}",
            counts.latency
        );
    }
}

#[test]
fn drain_is_short_if_rate_cannot_be_kept() {
    // One connection sends one request per millisecond, while two are due.
    let counts = measured(1);
    let open = counts.open.as_deref().unwrap();
    assert!(open.unsent > 1000, "{} unsent", open.unsent);
    assert_eq!(open.intended, counts.sent + open.unsent);
    let in_window = open.sent_in_window;
    assert!(
        counts.sent <= in_window + 1,
        "{} sent, {in_window} in the window",
        counts.sent
    );
}

#[test]
fn requests_that_are_due_take_connections_in_turn() {
    let settings = settings(
        &[RequestSpec::new("GET", "/", "a")],
        Protocol::Http1 { pipeline: 2 },
    );
    let mut worker = opened(settings, 2);
    let begun = |worker: &mut Worker, turn: u64| {
        worker
            .start_next(STARTED_NS + turn * S / RATE_PER_S)
            .map(|(index, _)| index)
    };
    assert_eq!(
        [0, 1].map(|turn| begun(&mut worker, turn)),
        [Some(0), Some(1)]
    );
    // One connection is lost and reopened before anything else is due.
    let now_ns = STARTED_NS + S / RATE_PER_S + 1;
    assert_eq!(worker.ended(1, now_ns), Action::Reopen);
    worker.connecting(1, now_ns);
    assert_eq!(worker.opened(1, now_ns), Action::Free);
    assert_eq!(worker.start(1, now_ns), Action::Wait);
    assert_eq!(
        [2, 3, 4, 5].map(|turn| begun(&mut worker, turn)),
        [Some(1), Some(0), Some(1), None]
    );
}

// Slices in the order of an engine thread, on the simulated driver, and the invariants of each slice.

/// Drain limit of an interrupted slice.
const INTERRUPTED_DRAIN_NS: u64 = 10_000_000;

/// Number of open connections, after asserting that worker and ledger agree.
fn alive(driver: &Driver) -> u32 {
    let open = driver
        .ledger
        .lines
        .iter()
        .filter(|line| line.state == State::Open)
        .count();
    assert_eq!(driver.worker.alive as usize, open);
    open as u32
}

/// Runs a slice and compares it with the ledger. Compares each latency if `closely`.
fn slice(driver: &mut Driver, closely: bool) -> Counts {
    let until = driver.setting.until(&mut driver.rng);
    let interrupt = driver
        .rng
        .random_bool(0.2)
        .then(|| driver.rng.random_range(0..300_000_000));
    // Events that arrive now wait for the connect phase.
    driver.now_ns += driver.rng.random_range(0..20_000_000);
    let allowance = match until {
        Until::Elapsed(_) => None,
        Until::Requests(total) => Some(total),
    };
    driver.worker.prepare(driver.now_ns, allowance);
    driver.ledger.prepare();
    driver.pump(|worker, now_ns| worker.is_prepared(now_ns));
    let started_ns = driver.now_ns;
    let stopped_ns = send(driver, until, interrupt);
    let finished_ns = driver.now_ns;

    let left = driver.ledger.finish(finished_ns);
    let mut closed = Vec::new();
    let counts = driver
        .worker
        .finish(finished_ns, |index| closed.push(index));
    assert_eq!(
        closed, left,
        "what is under way at the end is closed, and nothing else"
    );
    closed.into_iter().for_each(|index| driver.close(index));
    assert_eq!(driver.worker.in_flight, 0);
    assert_eq!(counts.connections_alive, alive(driver));
    let (window_ns, drain_ns) = (stopped_ns - started_ns, finished_ns - stopped_ns);
    let slice = Counts {
        started_ns,
        window_ns,
        drain_ns,
        ..counts
    };
    driver.ledger.book.compare(&slice, closely);
    let interrupted =
        interrupt.is_some_and(|after_ns| slice.window_ns + slice.drain_ns >= after_ns);
    check(driver, &slice, until, interrupted);
    slice
}

/// Runs the window and the drain, with an optional interrupt at a time after the start. Returns the end of
/// the window.
fn send(driver: &mut Driver, until: Until, interrupt: Option<u64>) -> u64 {
    let started_ns = driver.now_ns;
    driver.worker.open_window(started_ns, until);
    driver.ledger.open_window(started_ns, until);
    for index in 0..driver.ledger.lines.len() {
        driver.perform(index, Action::Free);
    }
    let interrupted = |now_ns| interrupt.is_some_and(|after_ns| now_ns >= started_ns + after_ns);
    driver.pump(|worker, now_ns| interrupted(now_ns) || worker.is_window_over(now_ns));
    let early = interrupted(driver.now_ns);
    let limit_ns = if early {
        INTERRUPTED_DRAIN_NS
    } else {
        TIMEOUT_NS
    };
    let stopped_ns = driver.worker.stop_sending(driver.now_ns, limit_ns);
    driver.ledger.close_window(stopped_ns);
    driver.pump(|worker: &mut Worker, now_ns| {
        if !early && interrupted(now_ns) {
            worker.hurry(now_ns, INTERRUPTED_DRAIN_NS);
        }
        worker.is_drained(now_ns)
    });
    driver.sweep();
    stopped_ns
}

/// Asserts the invariants of every slice.
fn check(driver: &Driver, slice: &Counts, until: Until, interrupted: bool) {
    let (book, open_loop) = (&driver.ledger.book, driver.worker.is_open_loop());
    let sum = |buckets: &[u32]| buckets.iter().map(|&count| u64::from(count)).sum::<u64>();
    assert_eq!(slice.open.is_some(), open_loop);
    assert!(
        slice
            .open
            .as_ref()
            .is_none_or(|open| sum(&open.due_per_100_ms) == open.intended)
    );
    assert_eq!(
        sum(&slice.successful_per_100_ms),
        slice.successful_in_window
    );
    let not_ok: u64 = slice
        .contract_failures
        .iter()
        .map(|failure| failure.count)
        .sum();
    assert_eq!(not_ok, slice.responses - slice.successful);
    assert!(
        book.served <= slice.sent,
        "the server got more than was sent"
    );
    // In open loop a request may be sent near the end of the drain.
    let may_be_left = interrupted || open_loop && slice.drain_ns >= TIMEOUT_NS;
    assert!(
        may_be_left || slice.unfinished == 0,
        "{} were left",
        slice.unfinished
    );
    assert!(
        slice.drain_ns <= TIMEOUT_NS + TICK_NS + 2 * LAG_MAX_NS,
        "drained for {} ns",
        slice.drain_ns
    );
    if driver.setting.nature.dead {
        assert!(slice.connections_opened == 0 && slice.responses == 0);
        assert!(driver.ledger.settings.fresh || slice.sent == 0 && slice.errors[0].count > 0);
    }
    match until {
        _ if interrupted => {}
        Until::Elapsed(window) => assert_eq!(slice.window_ns, window.as_nanos() as u64),
        Until::Requests(total) => {
            // If each request opens a connection, none is open at the end. The criterion is then that none
            // could be opened.
            let barren = || {
                slice
                    .errors
                    .iter()
                    .any(|error| error.phase == Phase::Connect)
            };
            let hopeless =
                slice.connections_alive == 0 && (!driver.ledger.settings.fresh || barren());
            assert!(
                slice.sent == total || hopeless && slice.sent < total,
                "{} of {total}",
                slice.sent
            );
            if slice.sent == total && !(driver.ledger.settings.fresh && barren()) {
                assert_eq!(slice.responses_in_window, slice.responses);
                assert!(
                    slice
                        .open
                        .as_ref()
                        .is_none_or(|open| open.sent_in_window == slice.sent)
                );
            }
        }
    }
}

// The setting drawn from a seed: the load, the rules for the engine, and the faults of server and network.

struct Setting {
    settings: WorkerSettings,
    sampler: RequestSampler,
    /// Present in open loop.
    pacer: Option<Pacer>,
    /// The number of arrivals is limited, so a slice that counts requests would never end.
    is_limited: bool,
    connections: u32,
    nature: Nature,
}

/// Behaviour of server and network.
#[derive(Debug, Clone, Copy)]
struct Nature {
    /// No process listens.
    dead: bool,
    /// Probability that a request ends badly.
    trouble: f64,
    /// Probability that a write is taken only in part.
    full: f64,
    /// Responses arrive byte by byte.
    bytewise: bool,
    /// A response may arrive before its request was sent.
    hasty: bool,
}

impl Setting {
    fn draw(rng: &mut impl Rng) -> Setting {
        let fresh = rng.random_bool(0.25);
        let pipeline = if fresh || rng.random_bool(0.4) {
            1
        } else {
            rng.random_range(2..=8)
        };
        let requests: Vec<_> = (0..rng.random_range(1..=3))
            .map(|number| request(rng, number))
            .collect();
        let settings = WorkerSettings {
            fresh,
            can_skip: rng.random_bool(0.5),
            connect_timeout_ns: if rng.random_bool(0.5) {
                200_000_000
            } else {
                700_000_000
            },
            opening_gap_ns: [0, 30_000_000][rng.random_range(0..2)],
            sample_every: [0, 1, 3][rng.random_range(0..3)],
            ..settings(&requests, Protocol::Http1 { pipeline })
        };
        let rate = rng.random_bool(0.5).then(|| rate(rng));
        let process = if rng.random_bool(0.5) {
            ArrivalProcess::Constant
        } else {
            ArrivalProcess::Poisson
        };
        Setting {
            sampler: RequestSampler::new(settings.arena.clone(), rng.random(), 0),
            pacer: rate.map(|rate| {
                Pacer::new(
                    SharedPace {
                        rate,
                        process,
                        seed: rng.random(),
                    },
                    0,
                    1,
                )
            }),
            is_limited: matches!(rate, Some(Rate::Ramp { to_per_s: 0.0, .. })),
            connections: rng.random_range(1..=8),
            nature: Nature::draw(rng),
            settings,
        }
    }

    /// Length of a slice, chosen so that it usually contains some dozens of requests.
    fn until(&self, rng: &mut impl Rng) -> Until {
        if !self.is_limited && rng.random_bool(0.5) {
            return Until::Requests(rng.random_range(1..60));
        }
        let lanes = self.connections * self.settings.protocol.lanes();
        let window_ms = if self.pacer.is_some() {
            400
        } else {
            1 + 400.min(3000 / lanes)
        };
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
fn request(rng: &mut impl Rng, number: usize) -> RequestSpec {
    let method = ["GET", "GET", "HEAD", "POST"][rng.random_range(0..4)];
    let path = format!("/{number}/{}", "x".repeat(rng.random_range(0..40)));
    let body = if method == "POST" {
        vec![b'y'; rng.random_range(0..400)]
    } else {
        Vec::new()
    };
    let headers = vec![("User-Agent".into(), "b".into())];
    let served = [("Served".into(), vec![number.to_string()])].into();
    let contract = Some(Contract {
        headers: served,
        ..Contract::default()
    });
    RequestSpec {
        weight: rng.random_range(1..4),
        headers,
        body,
        contract,
        ..RequestSpec::new(method, &path, "a")
    }
}

/// From a rare arrival to far more than the connections can take.
fn rate(rng: &mut impl Rng) -> Rate {
    let mut per_s = || 10f64.powf(rng.random_range(1.0..3.2));
    let (from_per_s, to_per_s) = (per_s(), per_s());
    let over = Duration::from_millis(rng.random_range(1..600));
    match rng.random_range(0..5) {
        0..3 => Rate::Constant(to_per_s),
        3 => Rate::Ramp {
            from_per_s,
            to_per_s,
            over,
        },
        _ if rng.random_bool(0.5) => Rate::Ramp {
            from_per_s: 0.0,
            to_per_s,
            over,
        },
        _ => Rate::Ramp {
            from_per_s,
            to_per_s: 0.0,
            over,
        },
    }
}
