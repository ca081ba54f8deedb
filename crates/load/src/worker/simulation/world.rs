//! One slice after the other as an engine thread walks through them, on the simulated driver; and what must hold of each.

use rand::RngExt;

use super::driver::Driver;
use super::ledger::State;
use super::{LAG_MAX_NS, TICK_NS, TIMEOUT_NS};
use crate::Until;
use crate::worker::{Action, Worker};
use model::{Counts, EndpointCounts, Phase};

/// How long an interrupted slice waits for what is in flight.
const INTERRUPTED_DRAIN_NS: u64 = 10_000_000;

/// When a slice is interrupted, if it is: so long after its start.
type Interrupt = Option<u64>;

/// How many connections are open, on which both must agree.
fn alive(driver: &Driver) -> u32 {
    let open = driver.ledger.lines.iter().filter(|line| line.state == State::Open).count();
    assert_eq!(driver.worker.alive() as usize, open);
    open as u32
}

/// Runs a slice and holds it against the ledger; its latencies one by one if `closely`.
pub(super) fn slice(driver: &mut Driver, closely: bool) -> Counts {
    let until = driver.setting.until(&mut driver.rng);
    let interrupt = driver.rng.random_bool(0.2).then(|| driver.rng.random_range(0..300_000_000));
    // Whatever comes meanwhile waits for the connect phase.
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
    let counts = driver.worker.finish(finished_ns, |index| closed.push(index));
    assert_eq!(closed, left, "what is under way at the end is closed, and nothing else");
    closed.into_iter().for_each(|index| driver.close(index));
    assert_eq!(driver.worker.in_flight(), 0);
    assert_eq!(counts.connections_alive, alive(driver));
    let (window_ns, drain_ns) = (stopped_ns - started_ns, finished_ns - stopped_ns);
    let slice = Counts { started_ns, window_ns, drain_ns, ..counts };
    driver.ledger.book.compare(&slice, closely);
    let interrupted = interrupt.is_some_and(|after_ns| slice.window_ns + slice.drain_ns >= after_ns);
    check(driver, &slice, until, interrupted);
    slice
}

/// The window and the drain. Returns when the window was over.
fn send(driver: &mut Driver, until: Until, interrupt: Interrupt) -> u64 {
    let started_ns = driver.now_ns;
    driver.worker.open_window(started_ns, until);
    driver.ledger.open_window(started_ns, until);
    for index in 0..driver.ledger.lines.len() {
        driver.perform(index, Action::Free);
    }
    let interrupted = |now_ns| interrupt.is_some_and(|after_ns| now_ns >= started_ns + after_ns);
    driver.pump(|worker, now_ns| interrupted(now_ns) || worker.is_window_over(now_ns));
    let early = interrupted(driver.now_ns);
    let limit_ns = if early { INTERRUPTED_DRAIN_NS } else { TIMEOUT_NS };
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

/// What holds of every slice whatever has happened.
fn check(driver: &Driver, slice: &Counts, until: Until, interrupted: bool) {
    let (book, open_loop) = (&driver.ledger.book, driver.worker.is_open_loop());
    assert_eq!(slice.sent, slice.responses + slice.timed_out + slice.broken + slice.unfinished);
    assert_eq!(slice.open.is_some(), open_loop);
    if let Some(open) = &slice.open {
        assert_eq!(open.intended, slice.sent + open.unsent);
        assert_eq!(open.due_per_100_ms.iter().map(|&due| u64::from(due)).sum::<u64>(), open.intended);
        assert_eq!(open.response.count(), open.intended);
        assert_eq!(open.schedule_lag.count() + open.queued, open.intended);
    }
    let endpoints = |figure: fn(&EndpointCounts) -> u64| slice.endpoints.iter().map(figure).sum::<u64>();
    assert_eq!(endpoints(|endpoint| endpoint.sent), slice.sent);
    let samples = endpoints(|endpoint| endpoint.outcomes.iter().map(|outcome| outcome.latency.count()).sum());
    assert_eq!(samples, slice.sent, "latencies by endpoint and status");
    assert_eq!(
        slice.successful_per_100_ms.iter().map(|&ok| u64::from(ok)).sum::<u64>(),
        slice.successful_in_window
    );
    let not_ok: u64 = slice.contract_failures.iter().map(|failure| failure.count).sum();
    assert_eq!(not_ok, slice.responses - slice.successful);
    assert!(book.served <= slice.sent, "the server got more than was sent");
    // In open loop a request may be sent when the drain is nearly over.
    let may_be_left = interrupted || open_loop && slice.drain_ns >= TIMEOUT_NS;
    assert!(may_be_left || slice.unfinished == 0, "{} were left", slice.unfinished);
    assert!(slice.drain_ns <= TIMEOUT_NS + TICK_NS + 2 * LAG_MAX_NS, "drained for {} ns", slice.drain_ns);
    if driver.setting.nature.dead {
        assert!(slice.connections_opened == 0 && slice.responses == 0);
        assert!(driver.ledger.fresh || slice.sent == 0 && slice.errors[0].count > 0);
    }
    match until {
        _ if interrupted => {}
        Until::Elapsed(window) => assert_eq!(slice.window_ns, window.as_nanos() as u64),
        Until::Requests(total) => {
            // Where each request opens a connection, none is open at the end, and what counts is that none could be opened.
            let barren = || slice.errors.iter().any(|error| error.phase == Phase::Connect);
            let hopeless = slice.connections_alive == 0 && (!driver.ledger.fresh || barren());
            assert!(slice.sent == total || hopeless && slice.sent < total, "{} of {total}", slice.sent);
            if slice.sent == total && !(driver.ledger.fresh && barren()) {
                assert_eq!(slice.responses_in_window, slice.responses);
                assert!(slice.open.as_ref().is_none_or(|open| open.sent_in_window == slice.sent));
            }
        }
    }
}
