//! The worker under a simulated driver and a server that misbehaves from a seed: every count of the tally must agree with
//! a ledger that is kept apart from it.
//!
//! ```text
//!   seed ──► setting ──► world: a slice after the other, as an engine thread walks through them
//!                          │
//!                        driver ◄─ actions ─ worker          what each event amounts to, and all counts in the end,
//!                        │    │                            must be the same on both sides
//!              server ◄──┘    └───────────► ledger, book
//! ```
//! A seed that fails names itself; `PROOFLOAD_SEED=17 cargo test -p proofload-load --lib whatever_the_server_does` runs it
//! alone.

mod driver;
mod ledger;
mod server;
mod setting;
mod stall;
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

/// What has happened in many slices, and how often.
type Sum = BTreeMap<String, u64>;

fn add(mut sum: Sum, more: impl IntoIterator<Item = (String, u64)>) -> Sum {
    more.into_iter().for_each(|(what, count)| *sum.entry(what).or_default() += count);
    sum
}

fn error(phase: Phase, cause: Cause) -> String {
    format!("{phase} {cause}")
}

/// Runs the slices of a seed.
fn run(seed: u64) -> Sum {
    let mut driver = Driver::new(seed);
    (0..SLICES).fold(Sum::default(), |sum, _| {
        let slice = world::slice(&mut driver, seed.is_multiple_of(CLOSELY_EVERY));
        let open = slice.open.clone().unwrap_or_default();
        let after_window = if slice.open.is_some() { slice.sent - open.sent_in_window } else { 0 };
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
        let errors = std::mem::take(&mut driver.ledger.book.errors);
        let sum = add(sum, figures.map(|(what, count)| (what.to_owned(), count)));
        add(sum, errors.into_iter().map(|((phase, cause), count)| (error(phase, cause), count)))
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
        add(sum, more)
    })
}

/// Runs all seeds on all CPUs.
fn run_on_threads() -> Sum {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || run_all((first as u64..SEEDS).step_by(threads))))
            .collect();
        let sums = workers.into_iter().map(|worker| match worker.join() {
            Ok(sum) => sum,
            Err(failure) => std::panic::resume_unwind(failure),
        });
        sums.fold(Sum::default(), add)
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
    assert!(sum["completed"] > 100_000, "{sum:?}");
    for figure in ["bad", "corrupt", "unfinished", "unsent", "queued", "with a lag", "sent after the window"]
    {
        assert!(sum[figure] > 1000, "{figure}: {sum:?}");
    }
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
    for (phase, cause) in happens {
        let count = sum.get(&error(phase, cause)).copied().unwrap_or_default();
        assert!(count > 50, "{phase} {cause}: {count} times: {sum:?}");
    }
}

/// What may become of a request that has left.
const WITHIN_REQUEST: [Cause; 6] =
    [Cause::Abandoned, Cause::ClosedEarly, Cause::Reset, Cause::Timeout, Cause::Malformed, Cause::TooLarge];
