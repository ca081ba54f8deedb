//! What one thread counts during a slice, in the form that costs least while requests are under way.
//!
//! What usually happens finds its memory set aside before the window opens; recording a response touches only memory of its
//! own thread. A first error, or a first status that is not 200, allocates.

use model::{
    BUCKET_NS, Cause, ContentSeen, ContractFailure, Counts, EndpointCounts, EndpointOutcome, ErrorCount,
    Phase,
};
use stats::Latencies;

use crate::arena::Endpoint;
use crate::connection::{Loss, Response};

/// Buckets that are allocated in advance, at most: ten minutes.
const BUCKETS_PREALLOCATED: usize = 6000;

/// Status codes are three digits.
const STATUS_CODES: usize = 1000;

/// Counts of one thread. What is recorded for each response has a form of its own here, and goes to the others when the slice is over.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    status: Box<[u64]>,
    cells: Cells,
}

impl Tally {
    /// For so many endpoints.
    pub(crate) fn new(endpoints: usize, open_loop: bool) -> Tally {
        Tally {
            counts: Counts {
                // Made of the cells when the slice is over.
                latency: Latencies::none(),
                successful_per_100_ms: Vec::with_capacity(BUCKETS_PREALLOCATED),
                open: open_loop.then(Box::default),
                ..Counts::default()
            },
            status: vec![0; STATUS_CODES].into(),
            cells: Cells::new(endpoints, open_loop),
        }
    }

    /// Counts a complete response, `since_start_ns` into the window, or after it (`None`).
    pub(crate) fn response(&mut self, response: &Response, since_start_ns: Option<u64>) {
        let counts = &mut self.counts;
        counts.responses += 1;
        counts.successful += u64::from(response.ok);
        counts.body_bytes += response.body_bytes;
        counts.in_flight_ns += response.latency_ns;
        counts.first_byte.record(response.first_byte_ns);
        self.status[usize::from(response.status)] += 1;
        self.cells.response(response, since_start_ns.is_some());
        let Some(since_start_ns) = since_start_ns else { return };
        counts.responses_in_window += 1;
        if response.ok {
            counts.successful_in_window += 1;
            count_in(&mut counts.successful_per_100_ms, since_start_ns);
        }
    }

    /// Counts a request that is begun, in the window or after it.
    pub(crate) fn send(&mut self, in_window: bool) {
        self.counts.sent += 1;
        if let Some(open) = &mut self.counts.open {
            open.sent_in_window += u64::from(in_window);
        }
    }

    /// The counts of the slice, which is over: with each endpoint and what [`Check`](crate::check::Check) has seen of it.
    pub(crate) fn finish(
        self,
        endpoints: &[Endpoint],
        contract_failures: Vec<ContractFailure>,
        contents: Vec<Vec<ContentSeen>>,
    ) -> Counts {
        let mut counts = self.counts;
        let hit = self.status.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.status = hit.map(|(status, count)| (status as u16, *count)).collect();
        let (latency, response) = self.cells.totals();
        counts.latency = latency;
        let ended = counts.responses + counts.timed_out + counts.broken + counts.unfinished;
        debug_assert_eq!(counts.sent, ended, "every request sent has ended in one way");
        debug_assert_eq!(counts.sent, counts.latency.count(), "every request sent is a sample");
        if let Some(open) = &mut counts.open {
            open.intended = counts.sent + open.unsent;
            open.response = response;
            debug_assert_eq!(open.intended, open.response.count(), "every request due is a sample");
            debug_assert_eq!(open.intended, open.queued + open.schedule_lag.count());
        }
        counts.endpoints = self.cells.into_endpoints(endpoints, contents);
        counts.contract_failures = contract_failures;
        counts.errors.sort();
        counts
    }

    /// What has been counted so far. Copies histograms: for whoever looks now and then.
    pub(crate) fn so_far(&self) -> Counts {
        let (latency, response) = self.cells.totals();
        let mut counts = Counts { latency, ..self.counts.clone() };
        counts.open.iter_mut().for_each(|open| open.response = response.clone());
        counts
    }

    /// Counts a request that was lost to an error.
    pub(crate) fn loss(&mut self, loss: &Loss) {
        if loss.cause == Cause::Timeout {
            self.counts.timed_out += 1;
        } else {
            self.counts.broken += 1;
        }
        self.error(loss.phase, loss.cause);
        self.censor(loss);
    }

    /// Counts a request that was still waiting when the drain ended: no error, but not forgotten either.
    pub(crate) fn leave_unfinished(&mut self, loss: &Loss) {
        self.counts.unfinished += 1;
        self.censor(loss);
    }

    /// Counts an error under its phase and cause.
    pub(crate) fn error(&mut self, phase: Phase, cause: Cause) {
        let errors = &mut self.counts.errors;
        match errors.iter_mut().find(|known| (known.phase, known.cause) == (phase, cause)) {
            Some(known) => known.count += 1,
            None => errors.push(ErrorCount { phase, cause, count: 1 }),
        }
    }

    /// Counts an arrival that was due so long after the window's begin.
    pub(crate) fn due(&mut self, since_start_ns: u64) {
        let Some(open) = &mut self.counts.open else { return };
        count_in(&mut open.due_per_100_ms, since_start_ns);
    }

    /// Counts an arrival that is being sent `late_ns` after its intended time, although a connection was free, or for
    /// which none was (`None`).
    pub(crate) fn depart(&mut self, late_ns: Option<u64>) {
        let Some(open) = &mut self.counts.open else { return };
        match late_ns {
            Some(late_ns) => open.schedule_lag.record(late_ns),
            None => open.queued += 1,
        }
    }

    /// Counts an arrival that was due and never sent, at its age; `free` where a connection was.
    pub(crate) fn leave_unsent(&mut self, age_ns: u64, free: bool) {
        self.cells.leave_unsent(age_ns);
        let Some(open) = &mut self.counts.open else { return };
        open.unsent += 1;
        match free {
            true => open.schedule_lag.censor(age_ns),
            false => open.queued += 1,
        }
    }

    fn censor(&mut self, loss: &Loss) {
        self.counts.in_flight_ns += loss.age_ns;
        self.cells.censor(loss);
        match loss.first_byte_ns {
            Some(first_byte_ns) => self.counts.first_byte.record(first_byte_ns),
            None => self.counts.first_byte.censor(loss.age_ns),
        }
    }
}

/// Counts one more in the bucket of this time.
fn count_in(buckets: &mut Vec<u32>, since_start_ns: u64) {
    let bucket = (since_start_ns / BUCKET_NS) as usize;
    if bucket >= buckets.len() {
        buckets.resize(bucket + 1, 0);
    }
    buckets[bucket] += 1;
}

// Latencies of one thread by endpoint and by how requests ended. A latency is recorded here and nowhere else; sums over
// endpoints are made when the slice is over.

/// Different status codes of an endpoint with latencies of their own; further ones share those of [`OTHERS`].
const STATUSES_MAX: usize = 16;
/// Stands for all further status codes.
const OTHERS: u16 = 0;
/// What most requests end with: memory for it is set aside before the window.
const USUAL: u16 = 200;

/// See the module's text.
#[derive(Debug)]
struct Cells {
    /// By endpoint; in each the usual outcome first.
    endpoints: Vec<Vec<Cell>>,
    open_loop: bool,
    /// Response times of requests that were due and of which none was chosen, let alone sent.
    adrift: Option<Latencies>,
}

/// Requests of one endpoint that ended in one way.
#[derive(Debug)]
struct Cell {
    /// The response's, if there was one.
    status: Option<u16>,
    ok: u64,
    ok_in_window: u64,
    bytes_body: u64,
    latency: Latencies,
    /// In open loop.
    response: Option<Latencies>,
}

impl Cells {
    fn new(endpoints: usize, open_loop: bool) -> Cells {
        let usual = || vec![Cell::new(Some(USUAL), open_loop)];
        Cells { endpoints: (0..endpoints).map(|_| usual()).collect(), open_loop, adrift: None }
    }

    fn response(&mut self, response: &Response, in_window: bool) {
        let cell = self.cell(response.endpoint, Some(response.status));
        cell.latency.record(response.latency_ns);
        if let Some((response, ns)) = cell.response.as_mut().zip(response.response_ns) {
            response.record(ns);
        }
        cell.ok += u64::from(response.ok);
        cell.ok_in_window += u64::from(response.ok && in_window);
        cell.bytes_body += response.body_bytes;
    }

    fn censor(&mut self, loss: &Loss) {
        let cell = self.cell(loss.endpoint, None);
        cell.latency.censor(loss.age_ns);
        if let Some((response, ns)) = cell.response.as_mut().zip(loss.response_age_ns) {
            response.censor(ns);
        }
    }

    /// A request that was due and never sent.
    fn leave_unsent(&mut self, age_ns: u64) {
        self.adrift.get_or_insert_default().censor(age_ns);
    }

    /// The cell of an endpoint and an outcome. The first of a kind allocates; there are few kinds.
    fn cell(&mut self, endpoint: u16, status: Option<u16>) -> &mut Cell {
        let cells = &mut self.endpoints[usize::from(endpoint)];
        let known = |status| move |cell: &Cell| cell.status == status;
        let mut index = cells.iter().position(known(status));
        let mut status = status;
        if index.is_none() && status.is_some() && cells.len() >= STATUSES_MAX {
            status = Some(OTHERS);
            index = cells.iter().position(known(status));
        }
        let index = index.unwrap_or_else(|| {
            cells.push(Cell::new(status, self.open_loop));
            cells.len() - 1
        });
        &mut cells[index]
    }

    /// Latencies of all requests sent, and response times of all that were due.
    fn totals(&self) -> (Latencies, Latencies) {
        let (mut latency, mut response) = (Latencies::new(), Latencies::new());
        for cell in self.endpoints.iter().flatten() {
            latency.merge(&cell.latency);
            cell.response.iter().for_each(|more| response.merge(more));
        }
        self.adrift.iter().for_each(|more| response.merge(more));
        (latency, response)
    }

    /// What came of each endpoint, with the contents that were seen of it.
    fn into_endpoints(self, endpoints: &[Endpoint], contents: Vec<Vec<ContentSeen>>) -> Vec<EndpointCounts> {
        let each = self.endpoints.into_iter().zip(endpoints).zip(contents);
        let counts = |((cells, endpoint), contents): ((Vec<Cell>, &Endpoint), _)| {
            let mut counts = EndpointCounts { contents, ..EndpointCounts::new(&endpoint.name) };
            cells
                .into_iter()
                .filter(|cell| !cell.latency.is_empty())
                .for_each(|cell| cell.add_to(&mut counts));
            counts.outcomes.sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
            counts
        };
        each.map(counts).collect()
    }
}

impl Cell {
    fn new(status: Option<u16>, open_loop: bool) -> Cell {
        Cell {
            status,
            ok: 0,
            ok_in_window: 0,
            bytes_body: 0,
            latency: Latencies::new(),
            response: open_loop.then(Latencies::new),
        }
    }

    fn add_to(self, endpoint: &mut EndpointCounts) {
        endpoint.sent += self.latency.count();
        endpoint.successful += self.ok;
        endpoint.successful_in_window += self.ok_in_window;
        endpoint.body_bytes += self.bytes_body;
        let response = self.response.unwrap_or_else(Latencies::none);
        endpoint.outcomes.push(EndpointOutcome { status: self.status, response, latency: self.latency });
    }
}
