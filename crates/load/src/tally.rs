//! What one thread counts during a slice, and how the threads' counts become one [`Slice`].
//!
//! Everything is allocated before the window opens; recording a response touches only memory of its own thread.

use stats::Latencies;

use crate::connection::{Answer, Loss};
use crate::slice::BUCKET_NS;
use crate::slice::{Endpoint, Outcome, Seen};
use crate::{Cause, ContractFailure, ErrorCount, Phase, Slice};

/// Buckets that are allocated in advance, at most: ten minutes.
const BUCKETS_PREALLOCATED: usize = 6000;

/// Stands for requests that were due and of which none was chosen.
const NO_ENDPOINT: u16 = u16::MAX;

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
    cells: Vec<Cell>,
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

/// Requests of one endpoint that ended in one way. A latency is recorded here and nowhere else; the sums over cells are made when the slice is over.
#[derive(Debug)]
struct Cell {
    endpoint: u16,
    /// The response's, if there was one.
    status: Option<u16>,
    ok: u64,
    ok_in_window: u64,
    bytes_body: u64,
    response: Latencies,
    latency: Latencies,
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
    pub(crate) fn new() -> Tally {
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
            cells: Vec::new(),
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
        let in_window = since_start_ns.is_some();
        let cell = self.cell(answer.endpoint, Some(answer.status));
        cell.latency.record(answer.latency_ns);
        if let Some(response_ns) = answer.response_ns {
            cell.response.record(response_ns);
        }
        cell.ok += u64::from(answer.ok);
        cell.ok_in_window += u64::from(answer.ok && in_window);
        cell.bytes_body += answer.body_bytes;
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

    /// The cell of an endpoint and a status. The first of a kind allocates; there are few kinds.
    fn cell(&mut self, endpoint: u16, status: Option<u16>) -> &mut Cell {
        let known = self.cells.iter().position(|cell| (cell.endpoint, cell.status) == (endpoint, status));
        let index = known.unwrap_or_else(|| {
            self.cells.push(Cell::new(endpoint, status));
            self.cells.len() - 1
        });
        &mut self.cells[index]
    }

    /// For assertions: how many latencies of requests sent there are, and how many response times of those that were due.
    pub(crate) fn samples(&self) -> (u64, u64) {
        let count = |of: fn(&Cell) -> &Latencies| self.cells.iter().map(|cell| of(cell).count()).sum();
        (count(|cell| &cell.latency), count(|cell| &cell.response))
    }

    /// For tests: latencies of all requests sent, and response times of all that were due.
    #[cfg(test)]
    pub(crate) fn totals(&self) -> (Latencies, Latencies) {
        let (mut latency, mut response) = (Latencies::new(), Latencies::new());
        for cell in &self.cells {
            latency.merge(&cell.latency);
            response.merge(&cell.response);
        }
        (latency, response)
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
        self.cell(NO_ENDPOINT, None).response.censor(age_ns);
        match free {
            true => self.schedule_lag.censor(age_ns),
            false => self.queued += 1,
        }
    }

    fn censor(&mut self, loss: &Loss) {
        let cell = self.cell(loss.endpoint, None);
        cell.latency.censor(loss.age_ns);
        if let Some(age_ns) = loss.response_age_ns {
            cell.response.censor(age_ns);
        }
        match loss.first_byte_ns {
            Some(first_byte_ns) => self.first_byte.record(first_byte_ns),
            None => self.first_byte.censor(loss.age_ns),
        }
    }
}

impl Cell {
    fn new(endpoint: u16, status: Option<u16>) -> Cell {
        Cell {
            endpoint,
            status,
            ok: 0,
            ok_in_window: 0,
            bytes_body: 0,
            response: Latencies::new(),
            latency: Latencies::new(),
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
    slice.driver = match slice.driver {
        "" => part.driver,
        same if same == part.driver => same,
        _ => "mixed",
    };
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
    tally.cells.into_iter().for_each(|cell| add_cell(slice, cell));
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

fn add_cell(slice: &mut Slice, cell: Cell) {
    slice.latency.merge(&cell.latency);
    slice.response.merge(&cell.response);
    if let Some(status) = cell.status {
        *slice.status.entry(status).or_default() += cell.latency.count();
    }
    let Some(endpoint) = slice.endpoints.get_mut(usize::from(cell.endpoint)) else { return };
    endpoint.sent += cell.latency.count();
    endpoint.ok += cell.ok;
    endpoint.ok_in_window += cell.ok_in_window;
    endpoint.bytes_body += cell.bytes_body;
    match endpoint.outcomes.iter_mut().find(|outcome| outcome.status == cell.status) {
        Some(known) => {
            known.latency.merge(&cell.latency);
            known.response.merge(&cell.response);
        }
        None => endpoint.outcomes.push(Outcome {
            status: cell.status,
            response: cell.response,
            latency: cell.latency,
        }),
    }
    endpoint.outcomes.sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
}

fn add_buckets(sum: &mut Vec<u32>, more: &[u32]) {
    sum.resize(sum.len().max(more.len()), 0);
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

fn add_errors(sum: &mut Vec<ErrorCount>, more: &[ErrorCount]) {
    for error in more {
        match sum.iter_mut().find(|known| (known.phase, known.cause) == (error.phase, error.cause)) {
            Some(known) => known.count += error.count,
            None => sum.push(*error),
        }
    }
}

fn add_contents(sum: &mut Vec<Seen>, more: &[Seen]) {
    for content in more {
        match sum.iter_mut().find(|known| known.digest == content.digest) {
            Some(known) => known.add(content),
            None => sum.push(*content),
        }
    }
}

fn add_failures(sum: &mut Vec<ContractFailure>, more: Vec<ContractFailure>) {
    for failure in more {
        match sum.iter_mut().find(|known| known.kind == failure.kind) {
            Some(known) => known.count += failure.count,
            None => sum.push(failure),
        }
    }
}
