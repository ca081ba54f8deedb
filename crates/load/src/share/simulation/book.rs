//! The ledger's counts of a slice, by endpoint and by how requests ended, and the comparison with the share's.

use std::collections::BTreeMap;

use stats::Latencies;

use super::line::Flight;
use super::script::Plan;
use model::{Cause, ContentSeen, Counts, EndpointCounts, EndpointOutcome, Phase};

/// Different contents of an endpoint that are kept.
const CONTENTS_MAX: usize = 16;

/// Times in nanoseconds, and lower bounds of some.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) exact: Vec<u64>,
    pub(super) censored: Vec<u64>,
}

/// What must come of a slice; the fields are those of [`Counts`].
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) sent: u64,
    pub(super) sent_in_window: u64,
    /// Requests that the server got in full.
    pub(super) served: u64,
    responses: u64,
    responses_in_window: u64,
    pub(super) timed_out: u64,
    pub(super) broken: u64,
    pub(super) unfinished: u64,
    pub(super) connections_opened: u64,
    pub(super) reconnects: u64,
    pub(super) wire_bytes: u64,
    pub(super) first_byte: Samples,
    /// Ages of arrivals that were never sent.
    pub(super) unsent: Vec<u64>,
    pub(super) errors: BTreeMap<(Phase, Cause), u64>,
    /// By endpoint.
    pub(super) pages: Vec<Page>,
    pub(super) corrupt: u64,
}

#[derive(Debug, Default)]
pub(super) struct Page {
    sent: u64,
    successful: u64,
    successful_in_window: u64,
    body_bytes: u64,
    contents: Vec<ContentSeen>,
    /// By status; without one those that got no response.
    cells: BTreeMap<Option<u16>, Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    latency: Samples,
    response: Samples,
}

impl Samples {
    fn latencies<'a>(all: impl Iterator<Item = &'a Samples>) -> Latencies {
        let mut latencies = Latencies::new();
        for samples in all {
            samples.exact.iter().for_each(|ns| latencies.record(*ns));
            samples.censored.iter().for_each(|ns| latencies.censor(*ns));
        }
        latencies
    }

    fn counts(&self) -> (u64, u64) {
        ((self.exact.len() + self.censored.len()) as u64, self.censored.len() as u64)
    }
}

impl Book {
    pub(super) fn new(endpoints: usize) -> Book {
        Book { pages: (0..endpoints).map(|_| Page::default()).collect(), ..Book::default() }
    }

    pub(super) fn begin(&mut self, endpoint: u16, in_window: bool) {
        self.sent += 1;
        self.sent_in_window += u64::from(in_window);
        self.pages[usize::from(endpoint)].sent += 1;
    }

    pub(super) fn error(&mut self, phase: Phase, cause: Cause) {
        *self.errors.entry((phase, cause)).or_default() += 1;
    }

    /// A request has its response, whole at `now_ns`.
    pub(super) fn answered(&mut self, flight: &Flight, plan: &Plan, sampled: bool, at: (u64, bool)) {
        let (now_ns, in_window) = at;
        let endpoint = flight.choice.endpoint;
        let page = &mut self.pages[usize::from(endpoint)];
        let encoded_bytes = if flight.choice.bodiless { 0 } else { plan.content.encoded().len() as u64 };
        let mut ok = (200..300).contains(&plan.status) && plan.served == Some(endpoint);
        if sampled {
            let decoded = plan.content.decoded();
            self.corrupt += u64::from(decoded.is_none());
            ok &= decoded.is_some();
            if let Some((digest, decoded_bytes)) = decoded {
                page.see(ContentSeen { sha256: digest.to_string(), count: 1, encoded_bytes, decoded_bytes });
            }
        }
        self.responses += 1;
        self.responses_in_window += u64::from(in_window);
        page.successful += u64::from(ok);
        page.successful_in_window += u64::from(ok && in_window);
        page.body_bytes += encoded_bytes;
        let cell = page.cells.entry(Some(plan.status)).or_default();
        cell.latency.exact.push(now_ns - flight.sent_ns);
        cell.response.exact.extend(flight.due_ns.map(|due_ns| now_ns - due_ns));
    }

    /// A request has got no response until now.
    pub(super) fn censor(&mut self, flight: &Flight, now_ns: u64, first_byte_ns: Option<u64>) {
        let cell = self.pages[usize::from(flight.choice.endpoint)].cells.entry(None).or_default();
        cell.latency.censored.push(now_ns - flight.sent_ns);
        cell.response.censored.extend(flight.due_ns.map(|due_ns| now_ns - due_ns));
        match first_byte_ns {
            Some(first_byte_ns) => self.first_byte.exact.push(first_byte_ns - flight.sent_ns),
            None => self.first_byte.censored.push(now_ns - flight.sent_ns),
        }
    }

    pub(super) fn ok(&self) -> u64 {
        self.pages.iter().map(|page| page.successful).sum()
    }

    /// Panics where the slice is not what it must be. Every latency is looked at if `closely`.
    pub(super) fn compare(&self, slice: &Counts, closely: bool) {
        let theirs = [
            slice.sent,
            slice.open.as_ref().map_or(slice.sent, |open| open.sent_in_window),
            slice.open.as_ref().map_or(0, |open| open.unsent),
            slice.responses,
            slice.responses_in_window,
            slice.successful,
            slice.successful_in_window,
            slice.timed_out,
            slice.broken,
            slice.unfinished,
            slice.connections_opened,
            slice.reconnects,
            slice.wire_bytes,
            slice.body_bytes,
        ];
        let ok_in_window = self.pages.iter().map(|page| page.successful_in_window).sum();
        let bytes_body = self.pages.iter().map(|page| page.body_bytes).sum();
        let ours = [
            self.sent,
            self.sent_in_window,
            self.unsent.len() as u64,
            self.responses,
            self.responses_in_window,
            self.ok(),
            ok_in_window,
            self.timed_out,
            self.broken,
            self.unfinished,
            self.connections_opened,
            self.reconnects,
            self.wire_bytes,
            bytes_body,
        ];
        assert_eq!(
            theirs, ours,
            "sent (all, in the window), unsent, answered (2), ok (2), timed out and so on"
        );
        let errors: BTreeMap<_, _> =
            slice.errors.iter().map(|error| ((error.phase, error.cause), error.count)).collect();
        assert_eq!(errors, self.errors);
        assert_eq!(slice.endpoints.len(), self.pages.len());
        slice.endpoints.iter().zip(&self.pages).for_each(|(endpoint, page)| page.compare(endpoint, closely));
        self.compare_totals(slice, closely);
    }

    fn compare_totals(&self, slice: &Counts, closely: bool) {
        let cells = || self.pages.iter().flat_map(|page| page.cells.iter());
        for (status, count) in &slice.status {
            let cells = cells().filter(|(of, _)| **of == Some(*status));
            assert_eq!(
                *count,
                cells.map(|(_, cell)| cell.latency.counts().0).sum::<u64>(),
                "status {status}"
            );
        }
        assert_eq!(slice.status.values().sum::<u64>(), self.responses);
        assert_eq!(
            (slice.latency.count(), slice.latency.censored()),
            (self.sent, self.sent - self.responses)
        );
        assert_eq!((slice.first_byte.count(), slice.first_byte.censored()), self.first_byte.counts());
        if closely {
            let mut response = Samples::latencies(cells().map(|(_, cell)| &cell.response));
            self.unsent.iter().for_each(|ns| response.censor(*ns));
            assert_eq!(slice.latency, Samples::latencies(cells().map(|(_, cell)| &cell.latency)));
            assert_eq!(slice.open.as_ref().map_or(&Latencies::none(), |open| &open.response), &response);
            assert_eq!(slice.first_byte, Samples::latencies([&self.first_byte].into_iter()));
        }
    }
}

impl Page {
    fn see(&mut self, seen: ContentSeen) {
        match self.contents.iter().position(|known| known.sha256 == seen.sha256) {
            Some(index) => self.contents[index].merge(&seen),
            None if self.contents.len() < CONTENTS_MAX => self.contents.push(seen),
            None => {}
        }
    }

    fn compare(&self, endpoint: &EndpointCounts, closely: bool) {
        let theirs = (endpoint.sent, endpoint.successful, endpoint.successful_in_window, endpoint.body_bytes);
        assert_eq!(
            theirs,
            (self.sent, self.successful, self.successful_in_window, self.body_bytes),
            "{}",
            endpoint.name
        );
        assert_eq!(endpoint.contents, self.contents, "{}: what was sampled", endpoint.name);
        let theirs: BTreeMap<_, _> =
            endpoint.outcomes.iter().map(|outcome| (outcome.status, outcome)).collect();
        assert!(theirs.keys().eq(self.cells.keys()), "{}: {:?}", endpoint.name, self.cells.keys());
        theirs.values().zip(self.cells.values()).for_each(|(outcome, cell)| cell.compare(outcome, closely));
    }
}

impl Cell {
    fn compare(&self, outcome: &EndpointOutcome, closely: bool) {
        let counts = |latencies: &Latencies| (latencies.count(), latencies.censored());
        assert_eq!(counts(&outcome.latency), self.latency.counts(), "{:?}", outcome.status);
        assert_eq!(counts(&outcome.response), self.response.counts(), "{:?}", outcome.status);
        if closely {
            assert_eq!(outcome.latency, Samples::latencies([&self.latency].into_iter()));
            assert_eq!(outcome.response, Samples::latencies([&self.response].into_iter()));
        }
    }
}
