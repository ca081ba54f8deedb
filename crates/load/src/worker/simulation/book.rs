//! The ledger's counts of a slice, computed from all requests and their results, and compared with the
//! worker's.

use std::collections::{BTreeMap, BTreeSet};

use model::{CONTENTS_MAX, Cause, ContentSeen, Counts, EndpointCounts, Phase};
use stats::Latencies;

use super::ledger::InFlight;
use super::server::Plan;

/// The expected result of a slice.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) sent: u64,
    pub(super) sent_in_window: u64,
    /// Requests that the server received in full.
    pub(super) served: u64,
    ended: Vec<Ended>,
    pub(super) connections_opened: u64,
    pub(super) reconnects: u64,
    pub(super) wire_bytes: u64,
    /// Arrivals that were never sent: endpoint and age.
    pub(super) unsent: Vec<(u16, u64)>,
    pub(super) errors: BTreeMap<(Phase, Cause), u64>,
    /// Contents by endpoint.
    pub(super) contents: Vec<Vec<ContentSeen>>,
    pub(super) corrupt: u64,
}

/// A finished request. Times are from when it was sent, and when it was due.
#[derive(Debug)]
struct Ended {
    endpoint: u16,
    outcome: Outcome,
    latency_ns: u64,
    response_ns: Option<u64>,
    first_byte_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Response {
        status: u16,
        ok: bool,
        body_bytes: u64,
        in_window: bool,
    },
    Lost(Cause),
    Left,
}

/// A time, and whether it is exact. Otherwise it is a lower bound.
type Sample = (u64, bool);

impl Ended {
    fn status(&self) -> Option<u16> {
        if let Outcome::Response { status, .. } = self.outcome {
            Some(status)
        } else {
            None
        }
    }

    fn latency(&self) -> Sample {
        (self.latency_ns, self.status().is_some())
    }

    fn response(&self) -> Option<Sample> {
        self.response_ns.map(|ns| (ns, self.status().is_some()))
    }

    fn first_byte(&self) -> Sample {
        self.first_byte_ns
            .map_or((self.latency_ns, false), |ns| (ns, true))
    }
}

impl Book {
    pub(super) fn new(endpoints: usize) -> Book {
        Book {
            contents: vec![Vec::new(); endpoints],
            ..Book::default()
        }
    }

    pub(super) fn error(&mut self, phase: Phase, cause: Cause) {
        *self.errors.entry((phase, cause)).or_default() += 1;
    }

    /// Records the response to a request, complete at `now_ns`.
    pub(super) fn completed(
        &mut self,
        request: &InFlight,
        plan: &Plan,
        sampled: bool,
        at: (u64, bool),
    ) {
        let (now_ns, in_window) = at;
        let endpoint = request.choice.endpoint;
        let body_bytes = if request.choice.bodiless {
            0
        } else {
            plan.content.encoded().len() as u64
        };
        let mut ok = plan.is_good(endpoint);
        if sampled {
            let decoded = plan.content.decoded();
            self.corrupt += u64::from(decoded.is_none());
            ok &= decoded.is_some();
            if let Some((digest, decoded_bytes)) = decoded {
                let (sha256, encoded_bytes) = (digest.to_string(), body_bytes);
                self.see(
                    endpoint,
                    ContentSeen {
                        sha256,
                        count: 1,
                        encoded_bytes,
                        decoded_bytes,
                    },
                );
            }
        }
        self.end(
            request,
            now_ns,
            Outcome::Response {
                status: plan.status,
                ok,
                body_bytes,
                in_window,
            },
        );
    }

    fn see(&mut self, endpoint: u16, seen: ContentSeen) {
        let contents = &mut self.contents[usize::from(endpoint)];
        match contents
            .iter()
            .position(|known| known.sha256 == seen.sha256)
        {
            Some(index) => contents[index].merge(&seen),
            None if contents.len() < CONTENTS_MAX => contents.push(seen),
            None => {}
        }
    }

    pub(super) fn end(&mut self, request: &InFlight, now_ns: u64, outcome: Outcome) {
        let is_whole = matches!(outcome, Outcome::Response { .. });
        let first_byte_ns = request.first_byte_ns.or(is_whole.then_some(now_ns));
        self.ended.push(Ended {
            endpoint: request.choice.endpoint,
            outcome,
            latency_ns: now_ns - request.sent_ns,
            response_ns: request.due_ns.map(|due_ns| now_ns - due_ns),
            first_byte_ns: first_byte_ns.map(|at_ns| at_ns - request.sent_ns),
        });
    }

    /// Panics if the slice differs from the expected result. Compares every latency if `closely`.
    pub(super) fn compare(&self, slice: &Counts, closely: bool) {
        let all = || self.ended.iter();
        let (responses, in_window, body_bytes) = figures(all());
        let ok =
            || all().filter(|ended| matches!(ended.outcome, Outcome::Response { ok: true, .. }));
        let (successful, successful_in_window, _) = figures(ok());
        let timed_out = all()
            .filter(|ended| ended.outcome == Outcome::Lost(Cause::Timeout))
            .count() as u64;
        let unfinished = all().filter(|ended| ended.outcome == Outcome::Left).count() as u64;
        let open = slice.open.as_deref();
        for (figure, theirs, ours) in [
            ("sent", slice.sent, self.sent),
            ("ended", self.ended.len() as u64, self.sent),
            (
                "in window",
                open.map_or(slice.sent, |open| open.sent_in_window),
                self.sent_in_window,
            ),
            (
                "unsent",
                open.map_or(0, |open| open.unsent),
                self.unsent.len() as u64,
            ),
            ("responses", slice.responses, responses),
            ("responses in window", slice.responses_in_window, in_window),
            ("successful", slice.successful, successful),
            (
                "successful in window",
                slice.successful_in_window,
                successful_in_window,
            ),
            ("timed out", slice.timed_out, timed_out),
            (
                "broken",
                slice.broken,
                self.sent - responses - timed_out - unfinished,
            ),
            ("unfinished", slice.unfinished, unfinished),
            ("opened", slice.connections_opened, self.connections_opened),
            ("reconnects", slice.reconnects, self.reconnects),
            ("wire bytes", slice.wire_bytes, self.wire_bytes),
            ("body bytes", slice.body_bytes, body_bytes),
        ] {
            assert_eq!(theirs, ours, "{figure}");
        }
        let errors: BTreeMap<_, _> = slice
            .errors
            .iter()
            .map(|error| ((error.phase, error.cause), error.count))
            .collect();
        assert_eq!(errors, self.errors);
        let mut statuses = BTreeMap::<u16, u64>::new();
        all()
            .filter_map(Ended::status)
            .for_each(|status| *statuses.entry(status).or_default() += 1);
        assert_eq!(slice.status, statuses);
        let unsent = self.unsent.iter().map(|(_, age_ns)| (*age_ns, false));
        agree(&slice.latency, all().map(Ended::latency), closely);
        agree(&slice.first_byte, all().map(Ended::first_byte), closely);
        let none = Latencies::none();
        let response = open.map_or(&none, |open| &open.response);
        agree(
            response,
            all().filter_map(Ended::response).chain(unsent),
            closely,
        );
        assert_eq!(slice.endpoints.len(), self.contents.len());
        for (endpoint, number) in slice.endpoints.iter().zip(0..) {
            self.compare_endpoint(endpoint, number, closely);
        }
    }

    fn compare_endpoint(&self, endpoint: &EndpointCounts, number: u16, closely: bool) {
        let name = &endpoint.name;
        let all = || {
            self.ended
                .iter()
                .filter(move |ended| ended.endpoint == number)
        };
        let ok = all().filter(|ended| matches!(ended.outcome, Outcome::Response { ok: true, .. }));
        let (successful, successful_in_window, _) = figures(ok);
        let theirs = (
            endpoint.sent,
            endpoint.successful,
            endpoint.successful_in_window,
            endpoint.body_bytes,
        );
        let ours = (
            all().count() as u64,
            successful,
            successful_in_window,
            figures(all()).2,
        );
        assert_eq!(theirs, ours, "{name}");
        assert_eq!(
            endpoint.contents,
            self.contents[usize::from(number)],
            "{name}: what was sampled"
        );
        let unsent = || {
            self.unsent
                .iter()
                .filter(move |(of, _)| *of == number)
                .map(|(_, age)| (*age, false))
        };
        let statuses: BTreeSet<_> = all()
            .map(Ended::status)
            .chain(unsent().map(|_| None))
            .collect();
        let theirs: BTreeSet<_> = endpoint
            .outcomes
            .iter()
            .map(|outcome| outcome.status)
            .collect();
        assert_eq!(
            (theirs, endpoint.outcomes.len()),
            (statuses.clone(), statuses.len()),
            "{name}"
        );
        for outcome in &endpoint.outcomes {
            let these = all().filter(|ended| ended.status() == outcome.status);
            agree(&outcome.latency, these.clone().map(Ended::latency), closely);
            let unsent = unsent().filter(|_| outcome.status.is_none());
            agree(
                &outcome.response,
                these.filter_map(Ended::response).chain(unsent),
                closely,
            );
        }
    }
}

/// Number of responses, number of those in the window, and bytes of their bodies.
fn figures<'a>(ended: impl Iterator<Item = &'a Ended>) -> (u64, u64, u64) {
    ended.fold((0, 0, 0), |(responses, within, bytes), ended| {
        match ended.outcome {
            Outcome::Response {
                body_bytes,
                in_window,
                ..
            } => (
                responses + 1,
                within + u64::from(in_window),
                bytes + body_bytes,
            ),
            Outcome::Lost(_) | Outcome::Left => (responses, within, bytes),
        }
    })
}

fn agree(theirs: &Latencies, ours: impl Iterator<Item = Sample> + Clone, closely: bool) {
    let censored = ours.clone().filter(|(_, is_exact)| !is_exact).count() as u64;
    assert_eq!(
        (theirs.count(), theirs.censored()),
        (ours.clone().count() as u64, censored)
    );
    if closely {
        let mut latencies = Latencies::new();
        ours.for_each(|(ns, is_exact)| {
            if is_exact {
                latencies.record(ns)
            } else {
                latencies.censor(ns)
            }
        });
        assert_eq!(*theirs, latencies);
    }
}
