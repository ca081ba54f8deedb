//! The counts of one thread during a slice, in the form that is cheapest while requests are in flight.
//!
//! For usual results memory is allocated before the window opens. Recording a response touches only memory of
//! its own thread. A first error, or a first status other than 200, allocates. A latency is recorded once, by
//! endpoint and by the result of the request. Sums over endpoints are computed when the slice is over.

use model::{
    BUCKET_NS, Cause, Counts, EndpointCounts, EndpointOutcome, ErrorCount, Phase, RAMP_PARTS,
    RampPart, ramp_part,
};
use stats::{Latencies, Quantile};

use crate::arena::ArenaEndpoint;
use crate::check::{ChecksSeen, EndpointSeen};
use crate::in_flight::InFlight;
use crate::pacer::Pacer;
use crate::silence::SilenceWatch;

/// Maximum number of buckets allocated in advance: ten minutes.
const BUCKETS_PREALLOCATED: usize = 6000;

/// Status codes are three digits.
const STATUS_CODES: usize = 1000;

/// Maximum number of status codes per endpoint with their own latencies. Further ones share the latencies of
/// [`OTHERS`].
const STATUSES_MAX: usize = 16;
/// Stands for all further status codes.
const OTHERS: u16 = 0;
/// The status of most responses. Memory for it is allocated before the window.
const USUAL: u16 = 200;

/// Counts of one thread. Values recorded per response are stored here, and added to `counts` when the slice
/// is over.
#[derive(Debug)]
pub(crate) struct ThreadTally {
    pub(crate) counts: Counts,
    pub(crate) silence: SilenceWatch,
    status: Box<[u64]>,
    /// Cells by endpoint, each with the usual outcome first.
    endpoints: Vec<Vec<OutcomeCell>>,
    /// Number of buckets of the ramp. 0 without one.
    ramp_buckets: usize,
}

/// Requests of one endpoint with the same outcome.
#[derive(Debug, Default)]
struct OutcomeCell {
    /// Status of the response, if there was one.
    status: Option<u16>,
    ok: u64,
    ok_in_window: u64,
    bytes_body: u64,
    latency: Latencies,
    /// Response times in open loop.
    response: Option<Latencies>,
}

/// Means over all responses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means {
    pub(crate) latency_ns: u64,
    pub(crate) body_bytes: u64,
}

impl ThreadTally {
    pub(crate) fn new(endpoints: usize, open_loop: bool) -> ThreadTally {
        ThreadTally {
            counts: Counts {
                // Computed from the cells when the slice is over.
                latency: Latencies::none(),
                successful_per_100_ms: Vec::with_capacity(BUCKETS_PREALLOCATED),
                open: open_loop.then(Box::default),
                ..Counts::default()
            },
            silence: SilenceWatch::new(endpoints),
            status: vec![0; STATUS_CODES].into(),
            endpoints: (0..endpoints)
                .map(|_| vec![OutcomeCell::new(Some(USUAL), open_loop)])
                .collect(),
            ramp_buckets: 0,
        }
    }

    /// Creates the tally of a slice with these arrivals. `None` in closed loop.
    pub(crate) fn paced(endpoints: usize, pacer: Option<&Pacer>) -> ThreadTally {
        let mut tally = ThreadTally::new(endpoints, pacer.is_some());
        tally.ramp_buckets = pacer.and_then(Pacer::ramp_buckets).unwrap_or(0);
        if let Some(open) = &mut tally.counts.open {
            let parts = 0..tally.ramp_buckets.min(RAMP_PARTS);
            let part = |_| RampPart {
                successful: 0,
                response: Latencies::new(),
            };
            open.ramp_parts = parts.map(part).collect();
        }
        tally
    }

    /// The part of a ramp in which a request was due. `None` without a ramp.
    fn ramp_part(&mut self, intended_ns: u64) -> Option<&mut RampPart> {
        let parts = &mut self.counts.open.as_mut()?.ramp_parts;
        let bucket = intended_ns.saturating_sub(self.silence.started_ns) / BUCKET_NS;
        parts.get_mut(ramp_part(bucket as usize, self.ramp_buckets))
    }

    /// Counts a complete response, `since_start_ns` into the window, or after it (`None`).
    pub(crate) fn response(
        &mut self,
        request: &InFlight,
        (status, body_bytes, ok): (u16, u64, bool),
        now_ns: u64,
        since_start_ns: Option<u64>,
    ) {
        let latency_ns = now_ns - request.sent_ns;
        let counts = &mut self.counts;
        counts.responses += 1;
        counts.successful += u64::from(ok);
        counts.body_bytes += body_bytes;
        counts.in_flight_ns += latency_ns;
        if request.is_first {
            counts.first_successful += u64::from(ok);
            counts.first_in_flight_ns += latency_ns;
        }
        counts
            .first_byte
            .record(request.first_byte_ns.unwrap_or(latency_ns));
        if let Some(since_start_ns) = since_start_ns {
            counts.responses_in_window += 1;
            if ok {
                counts.successful_in_window += 1;
                count_in(&mut counts.successful_per_100_ms, since_start_ns);
            }
        }
        self.status[usize::from(status)] += 1;
        let cell = self.cell(request.choice.endpoint, Some(status));
        cell.latency.record(latency_ns);
        if let Some((response, intended_ns)) = cell.response.as_mut().zip(request.intended_ns) {
            response.record(now_ns - intended_ns);
        }
        cell.ok += u64::from(ok);
        cell.ok_in_window += u64::from(ok && since_start_ns.is_some());
        cell.bytes_body += body_bytes;
        let intended_ns = request.intended_ns.filter(|_| self.ramp_buckets > 0);
        if let Some((due_ns, part)) = intended_ns.and_then(|ns| Some((ns, self.ramp_part(ns)?))) {
            part.successful += u64::from(ok);
            part.response.record(now_ns - due_ns);
        }
    }

    /// Means of the responses so far. `None` before the first.
    pub(crate) fn means(&self) -> Option<Means> {
        let Counts {
            responses,
            in_flight_ns,
            body_bytes,
            ..
        } = self.counts;
        Some(Means {
            latency_ns: in_flight_ns.checked_div(responses)?,
            body_bytes: body_bytes.checked_div(responses)?,
        })
    }

    /// The latency of the slowest request, or its lower bound. 0 before the first has ended.
    pub(crate) fn slowest_ns(&self) -> u64 {
        let cells = self.endpoints.iter().flatten();
        cells
            .filter_map(|cell| cell.latency.max())
            .map(Quantile::ns)
            .max()
            .unwrap_or(0)
    }

    /// Counts a request that begins, in the window or after it.
    pub(crate) fn send(&mut self, in_window: bool) {
        self.counts.sent += 1;
        if let Some(open) = &mut self.counts.open {
            open.sent_in_window += u64::from(in_window);
        }
    }

    /// Counts a log-in as a failed request that was due when it was sent. Its outcome is counted separately.
    pub(crate) fn log_in_failed(&mut self) {
        self.send(false);
        self.depart(Some(0));
    }

    /// Returns the counts of the finished slice, with each endpoint and its [check results](Seen). `usual_ns`
    /// contains the usual latencies of each endpoint, as far as known from this slice and earlier ones.
    pub(crate) fn finish(
        self,
        endpoints: &[ArenaEndpoint],
        seen: ChecksSeen,
        (now_ns, usual_ns): (u64, &mut [Option<u64>]),
    ) -> Counts {
        let mut counts = with_totals(self.counts, &self.endpoints);
        let known: Vec<Option<&Latencies>> = self
            .endpoints
            .iter()
            .map(|cells| most_frequent(cells))
            .collect();
        counts.silent = self.silence.finish(now_ns, &known, usual_ns);
        let hit = self
            .status
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        counts.status = hit.map(|(status, count)| (status as u16, *count)).collect();
        let ended = counts.responses + counts.timed_out + counts.broken + counts.unfinished;
        debug_assert_eq!(
            counts.sent, ended,
            "every request sent has ended in one way"
        );
        debug_assert_eq!(
            counts.sent,
            counts.latency.count(),
            "every request sent is a sample"
        );
        if let Some(open) = &mut counts.open {
            open.intended = counts.sent + open.unsent;
            debug_assert_eq!(
                open.intended,
                open.response.count(),
                "every request due is a sample"
            );
            debug_assert_eq!(open.intended, open.queued + open.schedule_lag.count());
        }
        let ChecksSeen {
            failures,
            endpoints: seen,
            unknown_coding,
        } = seen;
        let each = self.endpoints.into_iter().zip(endpoints).zip(seen);
        let each = each.filter_map(|((cells, ArenaEndpoint { name, is_drawn, .. }), seen)| {
            let EndpointSeen { contents, sampled } = seen;
            counts.sampled.merge(sampled);
            let mut counts = EndpointCounts {
                contents,
                sampled,
                ..EndpointCounts::new(name)
            };
            let seen = cells.into_iter().filter(OutcomeCell::is_seen);
            seen.for_each(|cell| cell.add_to(&mut counts));
            counts
                .outcomes
                .sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
            (*is_drawn || counts.sent > 0).then_some(counts)
        });
        let each: Vec<EndpointCounts> = each.collect();
        counts.endpoints = each;
        (counts.contract_failures, counts.unknown_coding) = (failures, unknown_coding);
        counts.errors.sort();
        counts
    }

    /// The counts so far. Copies histograms, so call it only occasionally.
    pub(crate) fn so_far(&self) -> Counts {
        with_totals(self.counts.clone(), &self.endpoints)
    }

    /// Counts a request that failed with an error.
    pub(crate) fn loss(&mut self, request: &InFlight, phase: Phase, cause: Cause, now_ns: u64) {
        if cause == Cause::Timeout {
            self.counts.timed_out += 1;
        } else {
            self.counts.broken += 1;
        }
        self.error(phase, cause);
        self.censor(request, now_ns);
    }

    /// Counts a request without a response at the end of the drain. It is not an error, but it is not dropped
    /// either.
    pub(crate) fn leave_unfinished(&mut self, request: &InFlight, now_ns: u64) {
        self.counts.unfinished += 1;
        self.censor(request, now_ns);
    }

    pub(crate) fn error(&mut self, phase: Phase, cause: Cause) {
        let errors = &mut self.counts.errors;
        match errors
            .iter_mut()
            .find(|known| (known.phase, known.cause) == (phase, cause))
        {
            Some(known) => known.count += 1,
            None => errors.push(ErrorCount {
                phase,
                cause,
                count: 1,
            }),
        }
    }

    /// Counts an arrival by its due time after the start of the window.
    pub(crate) fn due(&mut self, since_start_ns: u64) {
        let Some(open) = &mut self.counts.open else {
            return;
        };
        count_in(&mut open.due_per_100_ms, since_start_ns);
    }

    /// Counts an arrival sent `late_ns` after its intended time although a connection was free. `None` means
    /// that no connection was free.
    pub(crate) fn depart(&mut self, late_ns: Option<u64>) {
        let Some(open) = &mut self.counts.open else {
            return;
        };
        match late_ns {
            Some(late_ns) => open.schedule_lag.record(late_ns),
            None => open.queued += 1,
        }
    }

    /// Counts an arrival of this endpoint that was due and never sent, with its age. `free` means a
    /// connection was free.
    pub(crate) fn leave_unsent(&mut self, endpoint: u16, (due_ns, now_ns): (u64, u64), free: bool) {
        let age_ns = now_ns - due_ns;
        if let Some(part) = self.ramp_part(due_ns) {
            part.response.censor(age_ns);
        }
        self.cell(endpoint, None)
            .response
            .iter_mut()
            .for_each(|response| response.censor(age_ns));
        let Some(open) = &mut self.counts.open else {
            return;
        };
        open.unsent += 1;
        match free {
            true => open.schedule_lag.censor(age_ns),
            false => open.queued += 1,
        }
    }

    /// Records a request without a complete response as a censored sample.
    fn censor(&mut self, request: &InFlight, now_ns: u64) {
        let age_ns = now_ns - request.sent_ns;
        self.counts.in_flight_ns += age_ns;
        if request.is_first {
            self.counts.first_in_flight_ns += age_ns;
        }
        match request.first_byte_ns {
            Some(first_byte_ns) => self.counts.first_byte.record(first_byte_ns),
            None => self.counts.first_byte.censor(age_ns),
        }
        let cell = self.cell(request.choice.endpoint, None);
        cell.latency.censor(age_ns);
        if let Some((response, intended_ns)) = cell.response.as_mut().zip(request.intended_ns) {
            response.censor(now_ns - intended_ns);
        }
        if let Some(due_ns) = request.intended_ns
            && let Some(part) = self.ramp_part(due_ns)
        {
            part.response.censor(now_ns - due_ns);
        }
    }

    /// Returns the cell of an endpoint and an outcome. The first of a kind allocates, but there are few
    /// kinds.
    fn cell(&mut self, endpoint: u16, mut status: Option<u16>) -> &mut OutcomeCell {
        let cells = &mut self.endpoints[usize::from(endpoint)];
        let known = |status| move |cell: &OutcomeCell| cell.status == status;
        let mut index = cells.iter().position(known(status));
        if index.is_none() && status.is_some() && cells.len() >= STATUSES_MAX {
            status = Some(OTHERS);
            index = cells.iter().position(known(status));
        }
        let index = index.unwrap_or_else(|| {
            cells.push(OutcomeCell::new(status, self.counts.open.is_some()));
            cells.len() - 1
        });
        &mut cells[index]
    }
}

/// Adds latencies of all requests sent, and response times of all that were due.
fn with_totals(counts: Counts, endpoints: &[Vec<OutcomeCell>]) -> Counts {
    let (mut latency, mut response) = (Latencies::new(), Latencies::new());
    for cell in endpoints.iter().flatten() {
        latency.merge(&cell.latency);
        cell.response.iter().for_each(|more| response.merge(more));
    }
    let mut counts = Counts { latency, ..counts };
    if let Some(open) = &mut counts.open {
        open.response = response;
    }
    counts
}

/// The latencies of the most frequent outcome of an endpoint. `None` if there are none.
fn most_frequent(cells: &[OutcomeCell]) -> Option<&Latencies> {
    let latencies = cells
        .iter()
        .map(|cell| &cell.latency)
        .filter(|latencies| !latencies.is_empty());
    latencies.max_by_key(|latencies| latencies.count())
}

fn count_in(buckets: &mut Vec<u32>, since_start_ns: u64) {
    let bucket = (since_start_ns / BUCKET_NS) as usize;
    if bucket >= buckets.len() {
        buckets.resize(bucket + 1, 0);
    }
    buckets[bucket] += 1;
}

impl OutcomeCell {
    fn new(status: Option<u16>, open_loop: bool) -> OutcomeCell {
        OutcomeCell {
            status,
            response: open_loop.then(Latencies::new),
            ..OutcomeCell::default()
        }
    }

    /// Whether there were any such requests, sent or due.
    fn is_seen(&self) -> bool {
        [Some(&self.latency), self.response.as_ref()]
            .into_iter()
            .flatten()
            .any(|of| !of.is_empty())
    }

    fn add_to(self, endpoint: &mut EndpointCounts) {
        endpoint.sent += self.latency.count();
        endpoint.successful += self.ok;
        endpoint.successful_in_window += self.ok_in_window;
        endpoint.body_bytes += self.bytes_body;
        let response = self.response.unwrap_or_else(Latencies::none);
        endpoint.outcomes.push(EndpointOutcome {
            status: self.status,
            response,
            latency: self.latency,
        });
    }
}
