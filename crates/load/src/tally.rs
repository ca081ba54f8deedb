//! What one thread counts during a slice, and how the threads' counts become one [`Slice`].
//!
//! What usually happens finds its memory set aside before the window opens; recording a response touches only memory of its
//! own thread. A first error, or a first status that is not 200, allocates.

mod cells;

use stats::Latencies;

use crate::connection::{Answer, Loss};
use crate::slice::{BUCKET_NS, Endpoint, Seen};
use crate::{Cause, ContractFailure, ErrorCount, Phase, Slice};
use cells::Cells;

/// Buckets that are allocated in advance, at most: ten minutes.
const BUCKETS_PREALLOCATED: usize = 6000;

/// Status codes are three digits.
const STATUS_CODES: usize = 1000;

/// Counts of one thread; the fields are those of [`Slice`].
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) sent_in_window: u64,
    pub(crate) unsent: u64,
    pub(crate) queued: u64,
    pub(crate) answered: u64,
    answered_in_window: u64,
    ok: u64,
    ok_in_window: u64,
    pub(crate) timed_out: u64,
    pub(crate) broken: u64,
    pub(crate) unfinished: u64,
    status: Box<[u64]>,
    cells: Cells,
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) bytes_wire: u64,
    bytes_body: u64,
    pub(crate) first_byte: Latencies,
    pub(crate) schedule_lag: Latencies,
    pub(crate) connect: Latencies,
    pub(crate) handshake: Latencies,
    pub(crate) resumed: u64,
    pub(crate) tls_error: Option<String>,
    buckets: Vec<u32>,
    pub(crate) opened: u64,
    pub(crate) reconnects: u64,
}

/// One thread's part of a slice.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) driver: &'static str,
    pub(crate) tally: Tally,
    pub(crate) contract_failures: Vec<ContractFailure>,
    /// By endpoint.
    pub(crate) contents: Vec<Vec<Seen>>,
    pub(crate) alive_start: u32,
    pub(crate) alive_end: u32,
    /// When this thread stopped sending, and when it had drained.
    pub(crate) stopped_ns: u64,
    pub(crate) finished_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) wall_ns: u64,
    pub(crate) run_delay_ns: Option<u64>,
}

impl Tally {
    /// For so many endpoints.
    pub(crate) fn new(endpoints: usize, open_loop: bool) -> Tally {
        Tally {
            sent: 0,
            sent_in_window: 0,
            unsent: 0,
            queued: 0,
            answered: 0,
            answered_in_window: 0,
            ok: 0,
            ok_in_window: 0,
            timed_out: 0,
            broken: 0,
            unfinished: 0,
            status: vec![0; STATUS_CODES].into(),
            cells: Cells::new(endpoints, open_loop),
            errors: Vec::new(),
            bytes_wire: 0,
            bytes_body: 0,
            first_byte: Latencies::new(),
            schedule_lag: Latencies::new(),
            connect: Latencies::new(),
            handshake: Latencies::new(),
            resumed: 0,
            tls_error: None,
            buckets: Vec::with_capacity(BUCKETS_PREALLOCATED),
            opened: 0,
            reconnects: 0,
        }
    }

    /// Counts a complete response, `since_start_ns` into the window, or after it (`None`).
    pub(crate) fn answer(&mut self, answer: &Answer, since_start_ns: Option<u64>) {
        self.answered += 1;
        self.ok += u64::from(answer.ok);
        self.bytes_body += answer.body_bytes;
        self.first_byte.record(answer.first_byte_ns);
        self.status[usize::from(answer.status)] += 1;
        self.cells.answer(answer, since_start_ns.is_some());
        let Some(since_start_ns) = since_start_ns else { return };
        self.answered_in_window += 1;
        if answer.ok {
            self.ok_in_window += 1;
            let bucket = (since_start_ns / BUCKET_NS) as usize;
            if bucket >= self.buckets.len() {
                self.buckets.resize(bucket + 1, 0);
            }
            self.buckets[bucket] += 1;
        }
    }

    /// For assertions: how many latencies of requests sent there are, and how many response times of those that were due.
    pub(crate) fn samples(&self) -> (u64, u64) {
        self.cells.samples()
    }

    /// Latencies of all requests sent, and response times of all that were due.
    pub(crate) fn totals(&self) -> (Latencies, Latencies) {
        self.cells.totals()
    }

    /// Counts a request that was lost to an error.
    pub(crate) fn loss(&mut self, loss: &Loss) {
        if loss.cause == Cause::Timeout {
            self.timed_out += 1;
        } else {
            self.broken += 1;
        }
        self.error(loss.phase, loss.cause);
        self.censor(loss);
    }

    /// Counts a request that was still waiting when the drain ended: no error, but not forgotten either.
    pub(crate) fn leave_unfinished(&mut self, loss: &Loss) {
        self.unfinished += 1;
        self.censor(loss);
    }

    /// Counts an error under its phase and cause.
    pub(crate) fn error(&mut self, phase: Phase, cause: Cause) {
        match self.errors.iter_mut().find(|known| (known.phase, known.cause) == (phase, cause)) {
            Some(known) => known.count += 1,
            None => self.errors.push(ErrorCount { phase, cause, count: 1 }),
        }
    }

    /// Counts an arrival that is being sent `late_ns` after its intended time, although a connection was free, or for
    /// which none was (`None`).
    pub(crate) fn depart(&mut self, late_ns: Option<u64>) {
        match late_ns {
            Some(late_ns) => self.schedule_lag.record(late_ns),
            None => self.queued += 1,
        }
    }

    /// Counts an arrival that was due and never sent, at its age; `free` where a connection was.
    pub(crate) fn leave_unsent(&mut self, age_ns: u64, free: bool) {
        self.unsent += 1;
        self.cells.leave_unsent(age_ns);
        match free {
            true => self.schedule_lag.censor(age_ns),
            false => self.queued += 1,
        }
    }

    fn censor(&mut self, loss: &Loss) {
        self.cells.censor(loss);
        match loss.first_byte_ns {
            Some(first_byte_ns) => self.first_byte.record(first_byte_ns),
            None => self.first_byte.censor(loss.age_ns),
        }
    }
}

/// Puts the threads' parts together; `names` are those of the endpoints.
pub(crate) fn slice(started_ns: u64, parts: Vec<Part>, names: &[String]) -> Slice {
    let stopped_ns = parts.iter().map(|part| part.stopped_ns).max().unwrap_or(started_ns);
    let finished_ns = parts.iter().map(|part| part.finished_ns).max().unwrap_or(stopped_ns);
    let mut slice = Slice {
        started_ns,
        window_ns: stopped_ns.saturating_sub(started_ns),
        drain_ns: finished_ns.saturating_sub(stopped_ns),
        endpoints: names.iter().map(|name| Endpoint::new(name)).collect(),
        ..Slice::default()
    };
    for part in parts {
        add(&mut slice, part);
    }
    slice.errors.sort();
    let buckets = slice.window_ns.div_ceil(BUCKET_NS) as usize;
    slice.buckets.resize(buckets.max(slice.buckets.len()), 0);
    slice
}

fn add(slice: &mut Slice, part: Part) {
    let tally = part.tally;
    slice.intended += tally.sent + tally.unsent;
    add_driver(&mut slice.driver, part.driver);
    slice.sent += tally.sent;
    slice.sent_in_window += tally.sent_in_window;
    slice.unsent += tally.unsent;
    slice.queued += tally.queued;
    slice.answered += tally.answered;
    slice.answered_in_window += tally.answered_in_window;
    slice.ok += tally.ok;
    slice.ok_in_window += tally.ok_in_window;
    slice.timed_out += tally.timed_out;
    slice.broken += tally.broken;
    slice.unfinished += tally.unfinished;
    slice.bytes_wire += tally.bytes_wire;
    slice.bytes_body += tally.bytes_body;
    let (latency, response) = tally.totals();
    slice.latency.merge(&latency);
    slice.response.merge(&response);
    tally.cells.add_to(&mut slice.endpoints);
    for (code, &count) in tally.status.iter().enumerate().filter(|(_, count)| **count > 0) {
        *slice.status.entry(code as u16).or_default() += count;
    }
    slice.connect.merge(&tally.connect);
    slice.handshake.merge(&tally.handshake);
    slice.resumed += tally.resumed;
    slice.tls_error = slice.tls_error.take().or(tally.tls_error);
    slice.first_byte.merge(&tally.first_byte);
    slice.schedule_lag.merge(&tally.schedule_lag);
    slice.opened += tally.opened;
    slice.reconnects += tally.reconnects;
    add_buckets(&mut slice.buckets, &tally.buckets);
    add_errors(&mut slice.errors, &tally.errors);
    add_failures(&mut slice.contract_failures, part.contract_failures);
    for (endpoint, contents) in slice.endpoints.iter_mut().zip(&part.contents) {
        add_contents(&mut endpoint.contents, contents);
    }
    slice.connections_alive_start += part.alive_start;
    slice.connections_alive_end += part.alive_end;
    slice.thread_cpu_ns.push(part.cpu_ns);
    slice.thread_wall_ns.push(part.wall_ns);
    slice.thread_run_delay_ns.push(part.run_delay_ns);
}

pub(crate) fn add_driver(sum: &mut String, more: &str) {
    if sum != more {
        *sum = if sum.is_empty() { more } else { "mixed" }.to_owned();
    }
}

pub(crate) fn add_buckets(sum: &mut Vec<u32>, more: &[u32]) {
    sum.resize(sum.len().max(more.len()), 0);
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

pub(crate) fn add_errors(sum: &mut Vec<ErrorCount>, more: &[ErrorCount]) {
    for error in more {
        match sum.iter_mut().find(|known| (known.phase, known.cause) == (error.phase, error.cause)) {
            Some(known) => known.count += error.count,
            None => sum.push(*error),
        }
    }
}

pub(crate) fn add_contents(sum: &mut Vec<Seen>, more: &[Seen]) {
    for content in more {
        match sum.iter_mut().find(|known| known.digest == content.digest) {
            Some(known) => known.add(content),
            None => sum.push(*content),
        }
    }
}

pub(crate) fn add_failures(sum: &mut Vec<ContractFailure>, more: Vec<ContractFailure>) {
    for failure in more {
        match sum.iter_mut().find(|known| known.kind == failure.kind) {
            Some(known) => known.count += failure.count,
            None => sum.push(failure),
        }
    }
}
