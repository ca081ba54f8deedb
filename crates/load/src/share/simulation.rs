//! The share under a simulated driver and a server that misbehaves from a seed: every count of the tally must agree with
//! a ledger that is kept apart from it.
//!
//! ```text
//!   seed ──► setting ──► world: a slice after the other, as an engine thread walks through them
//!                          │
//!                        driver ◄── acts ── share          what each event amounts to, and all counts in the end,
//!                        │    │                            must be the same on both sides
//!              server ◄──┘    └───────────► ledger, book
//! ```
//! A seed that fails names itself; `PROOFLOAD_SEED=17 cargo test -p proofload-load --lib whatever_the_server_does` runs it
//! alone.

mod book;
mod driver;
mod ledger;
mod line;
mod script;
mod server;
mod setting;
mod stall;
mod timetable;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use driver::Driver;
use model::{Cause, Phase};

const SEEDS: u64 = 10_000;
/// Of one seed in so many every latency is compared, of the others how many there are: tables take time.
const CLOSELY_EVERY: u64 = 32;
const SLICES: usize = 2;
const TIMEOUT_NS: u64 = 300_000_000;
const TICK_NS: u64 = 10_000_000;
/// How late an event may be seen.
const LAG_MAX_NS: u64 = 15_000_000;
/// Freed once, a block of this size keeps glibc from giving tables back to the kernel and asking for them again, which
/// would take as long as the rest (mallopt(3): the dynamic threshold of `M_MMAP_THRESHOLD`, and twice that for trimming).
const BLOCK_BYTES: usize = 30 << 20;
const SEED_VARIABLE: &str = "PROOFLOAD_SEED";

/// What has happened in many slices.
#[derive(Debug, Default)]
struct Sum {
    sent: u64,
    answered: u64,
    not_ok: u64,
    corrupt: u64,
    unfinished: u64,
    unsent: u64,
    queued: u64,
    lag: u64,
    after_window: u64,
    errors: BTreeMap<(Phase, Cause), u64>,
}

impl Sum {
    fn add(mut self, more: Sum) -> Sum {
        self.sent += more.sent;
        self.answered += more.answered;
        self.not_ok += more.not_ok;
        self.corrupt += more.corrupt;
        self.unfinished += more.unfinished;
        self.unsent += more.unsent;
        self.queued += more.queued;
        self.lag += more.lag;
        self.after_window += more.after_window;
        more.errors.into_iter().for_each(|(kind, count)| *self.errors.entry(kind).or_default() += count);
        self
    }
}

/// Runs the slices of a seed.
fn run(seed: u64) -> Sum {
    let mut driver = Driver::new(seed);
    (0..SLICES).fold(Sum::default(), |sum, _| {
        let slice = world::slice(&mut driver, seed.is_multiple_of(CLOSELY_EVERY));
        let open = slice.open.clone().unwrap_or_default();
        sum.add(Sum {
            sent: slice.sent,
            answered: slice.responses,
            not_ok: slice.responses - slice.successful,
            corrupt: driver.ledger.book.corrupt,
            unfinished: slice.unfinished,
            unsent: open.unsent,
            queued: open.queued,
            lag: open.schedule_lag.count(),
            after_window: slice.sent - slice.open.as_ref().map_or(slice.sent, |open| open.sent_in_window),
            errors: std::mem::take(&mut driver.ledger.book.errors),
        })
    })
}

/// Runs seeds; a failure tells which one it was.
fn run_all(seeds: impl Iterator<Item = u64>) -> Sum {
    seeds.fold(Sum::default(), |sum, seed| {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)));
        let Ok(more) = outcome else {
            panic!(
                "seed {seed} fails, as said above; alone: {SEED_VARIABLE}={seed} cargo test -p proofload-load --lib \
                 whatever_the_server_does"
            )
        };
        sum.add(more)
    })
}

/// Runs all seeds on all CPUs.
fn run_on_threads() -> Sum {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || run_all((first as u64..SEEDS).step_by(threads))))
            .collect();
        let sums = shares.into_iter().map(|share| match share.join() {
            Ok(sum) => sum,
            Err(failure) => std::panic::resume_unwind(failure),
        });
        sums.fold(Sum::default(), Sum::add)
    })
}

#[test]
fn every_request_ends_once_whatever_the_server_does() {
    if let Ok(seed) = std::env::var(SEED_VARIABLE) {
        let seed = seed.parse().expect("PROOFLOAD_SEED is the number of a seed");
        run_all(std::iter::once(seed));
        return;
    }
    let sum = run_on_threads();
    // The fiction is worth something only if everything happens in it.
    let counts = [
        sum.answered,
        sum.not_ok,
        sum.corrupt,
        sum.unfinished,
        sum.unsent,
        sum.queued,
        sum.lag,
        sum.after_window,
    ];
    assert!(sum.answered > 100_000 && counts.iter().all(|count| *count > 1000), "{sum:?}");
    let (connect, send, head, body, idle) =
        (Phase::Connect, Phase::Send, Phase::Head, Phase::Body, Phase::Idle);
    let happens: [(Phase, &[Cause]); 5] = [
        (
            connect,
            &[Cause::Refused, Cause::Reset, Cause::Timeout, Cause::Unreachable, Cause::AddressExhausted],
        ),
        (send, &WITHIN_REQUEST),
        (head, &WITHIN_REQUEST),
        // Only the oldest request is in its body, and a time limit takes the connection from the others.
        (body, &WITHIN_REQUEST[1..]),
        (idle, &[Cause::Closed, Cause::Reset, Cause::Malformed]),
    ];
    let happens = happens.iter().flat_map(|(phase, causes)| causes.iter().map(|cause| (*phase, *cause)));
    for kind in happens {
        let count = sum.errors.get(&kind).copied().unwrap_or_default();
        assert!(count > 50, "{} {}: {count} times: {sum:?}", kind.0, kind.1);
    }
}

/// What may become of a request that has left.
const WITHIN_REQUEST: [Cause; 6] =
    [Cause::Abandoned, Cause::ClosedEarly, Cause::Reset, Cause::Timeout, Cause::Malformed, Cause::TooLarge];
