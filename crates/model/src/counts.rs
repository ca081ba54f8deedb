//! Request counts of a load window. Threads, generators, merged windows and the record all use the same type.
//!
//! The engine fills [`Counts`] and the record stores it unchanged. Only [`Counts::merge`] in
//! `counts/merge.rs` combines two of them. This module does not derive rates and does not know which
//! experiment a window belongs to.

use std::collections::BTreeMap;
use std::iter::Sum;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use stats::Latencies;

use crate::{ContractFailure, ErrorCount, FAILED_SHARE_MAX, Silence, silence};

mod merge;

/// Length of one bucket of [`Counts::successful_per_100_ms`].
pub const BUCKET_NS: u64 = 100_000_000;

/// Outcomes of the requests of one load window, including its drain.
///
/// ```text
///   connect phase │◄────────── window ──────────►│◄── drain ──►│
///                 started        sending         stopped       nothing in flight
///
///   intended            sent              first byte      done
///      │◄─ queue, lag ──►│◄── first_byte ─────►│            │
///      │                 │◄──────────── latency ───────────►│   service time: time the service took
///      │◄──────────────────────── response ────────────────►│   response time: time a user waits ([`OpenLoop`])
/// ```
/// Invariants: `sent == responses + timed_out + broken + unfinished`. `latency` has exactly `sent` samples,
/// recorded and censored together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Start of the (first) window, in nanoseconds of `CLOCK_MONOTONIC`.
    pub started_ns: u64,
    /// Time in which requests could be sent, in nanoseconds, summed over all windows. The lead of a turn is
    /// excluded. If a request count ends the window, the window lasts until the last request ended.
    pub window_ns: u64,
    /// Load time outside the window, in nanoseconds, summed over all windows: the lead, and waiting for
    /// requests in flight.
    pub drain_ns: u64,
    /// Requests begun in the window or (open loop) in the drain. A request begins when it is given to an open
    /// connection or when a connection is begun for it.
    pub sent: u64,
    /// Complete responses with any status, including the drain.
    pub responses: u64,
    /// Complete responses within the window.
    pub responses_in_window: u64,
    /// Complete responses that met the expectation, including the drain.
    pub successful: u64,
    /// Successful responses within the window. Throughput is this count over `window_ns`.
    pub successful_in_window: u64,
    /// Sum of the times from sent to done over all requests, in nanoseconds, whatever their outcome,
    /// including the drain.
    pub in_flight_ns: u64,
    /// Successful responses to the first request of each connection in a window. In closed loop all
    /// connections begin a window at once, and a service that serves them one after another responds to these
    /// requests sooner than to later ones.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first_successful: u64,
    /// Sum of the times from sent to done over these first requests, in nanoseconds, whatever their outcome.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first_in_flight_ns: u64,
    /// Time for which the load generator was halted, in nanoseconds. Counts gaps of at least half a second
    /// between two iterations of its loop, caused by a stop (SIGSTOP, Ctrl-Z) or a suspended machine.
    #[serde(default, skip_serializing_if = "is_none")]
    pub halted_ns: u64,
    /// Stretches of the window and its drain in which no response arrived, in order. See
    /// [`Counts::silences`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Silence>,
    /// Requests abandoned after the timeout.
    pub timed_out: u64,
    /// Requests whose connection or stream failed before the response was complete, and requests that a
    /// server refused without processing them.
    pub broken: u64,
    /// Requests without a result when the drain ended.
    pub unfinished: u64,
    /// Complete responses by status code.
    #[serde(deserialize_with = "by_status")]
    pub status: BTreeMap<u16, u64>,
    /// All errors since the connect phase began, by phase and cause, sorted.
    pub errors: Vec<ErrorCount>,
    /// Reasons why complete responses did not meet the expectation. Each such response counts as one failure.
    pub contract_failures: Vec<ContractFailure>,
    /// Responses that were checked in full.
    #[serde(default, skip_serializing_if = "SampleCounts::is_none")]
    pub sampled: SampleCounts,
    /// An unsupported content coding. Content with this coding is taken as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_coding: Option<String>,
    /// Bytes received since the connect phase began: heads, framing and bodies, also of incomplete responses,
    /// and the overhead of TLS and HTTP/2.
    pub wire_bytes: u64,
    /// Content bytes of complete responses, before content decoding.
    pub body_bytes: u64,
    /// Times from sent to done (service time). A request without a complete response is censored at its age.
    /// If the design selects one endpoint, only requests of that endpoint are included.
    pub latency: Latencies,
    /// Times from sent to the first byte of the response (HTTP/2: to its head). Censored if no byte arrived.
    pub first_byte: Latencies,
    /// Successful responses in each 100 ms of the window. The last bucket may be shorter. Empty if there was
    /// more than one turn.
    pub successful_per_100_ms: Vec<u32>,
    /// Successful log-ins since the connect phase began. A log-in is a request that a user sends once, before
    /// all others. Of all other counts, only the byte counts include log-ins. A log-in that fails counts as a
    /// failed request.
    #[serde(default, skip_serializing_if = "is_none")]
    pub log_ins: u64,
    /// Connections open when the (first) window began.
    pub connections_alive_at_start: u32,
    /// Connections open at the end of the drain.
    pub connections_alive: u32,
    /// Connections opened, in the connect phase and later.
    pub connections_opened: u64,
    /// Opened connections that replaced an earlier connection.
    pub reconnects: u64,
    /// Times from starting to connect until connected, for each connection opened since the connect phase
    /// began.
    #[serde(
        default = "Latencies::none",
        skip_serializing_if = "Latencies::is_empty"
    )]
    pub connect: Latencies,
    /// Times from connected to the end of the TLS handshake.
    #[serde(
        default = "Latencies::none",
        skip_serializing_if = "Latencies::is_empty"
    )]
    pub handshake: Latencies,
    /// Handshakes that resumed an earlier session.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tls_resumed: u64,
    /// Message of the first TLS error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_error: Option<String>,
    /// CPU use of the load generator, or of all generators together.
    pub generator: GeneratorUse,
    /// Outcomes per request of the load, in plan order. The record contains them only if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointCounts>,
    /// Counts that exist only in open loop. `None` in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Box<OpenLoop>>,
}

/// Additional counts of an open-loop window.
///
/// Every due request is either in the window's `sent` or in `unsent`. `response` has exactly `intended`
/// samples, and so have `schedule_lag` and `queued` together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoop {
    /// Requested rate of all generators together, per second. The mean over the window if the rate changes.
    pub rate_per_s: f64,
    /// Requests due in the window.
    pub intended: u64,
    /// Requests due in each 100 ms of the window. Empty if windows were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub due_per_100_ms: Vec<u32>,
    /// Requests sent in the window. Divided by the window's length, this is the achieved rate.
    pub sent_in_window: u64,
    /// Due requests that had found no connection by the end of the drain.
    pub unsent: u64,
    /// Requests that found no free connection when due, because all connections were busy or not open.
    pub queued: u64,
    /// Times from due to done. A request without a complete response, or never sent, is censored at its age.
    /// If the design selects one endpoint, only requests of that endpoint are included.
    pub response: Latencies,
    /// Times from due to sent for requests that found a free connection. This is the delay of the load
    /// generator itself.
    ///
    /// A connection is free from the time at which the engine saw its last response. An engine without a core
    /// sees all responses late and takes its connections for busy meanwhile. `run_delay_ns` of
    /// [`GeneratorUse`] shows that.
    pub schedule_lag: Latencies,
    /// Each part of a ramp. Empty for constant rates and if windows were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ramp_parts: Vec<RampPart>,
}

/// Maximum number of parts of a ramp with counts of their own.
pub const RAMP_PARTS: usize = 10;

/// Requests that were due in one part of a ramp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RampPart {
    /// Complete responses that met the expectation, including the drain.
    pub successful: u64,
    /// Times from due to done. Censored without a complete response.
    pub response: Latencies,
}

/// The part of a ramp to which a bucket belongs, if `planned` buckets have [`RAMP_PARTS`] parts or one each. The
/// inverse of part `n` beginning at bucket `n * planned / parts`.
pub fn ramp_part(bucket: usize, planned: usize) -> usize {
    let parts = planned.min(RAMP_PARTS);
    let part = ((bucket + 1) * parts).saturating_sub(1) / planned.max(1);
    part.min(parts.saturating_sub(1))
}

/// Maximum number of distinct contents per request that each thread of the load generator records.
pub const CONTENTS_MAX: usize = 16;

/// Outcomes of one request of the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointCounts {
    /// Unique name of the request.
    pub name: String,
    /// Requests begun.
    pub sent: u64,
    /// Complete responses that met the expectation, including the drain.
    pub successful: u64,
    /// Successful responses within the window.
    pub successful_in_window: u64,
    /// Content bytes of complete responses, before content decoding.
    pub body_bytes: u64,
    /// Responses that were checked in full.
    #[serde(default, skip_serializing_if = "SampleCounts::is_none")]
    pub sampled: SampleCounts,
    /// Requests by outcome: status codes in order, then requests without a complete response. Not in the
    /// record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<EndpointOutcome>,
    /// Contents of good sampled responses, at most the first 16 distinct ones per thread. Not in the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<ContentSeen>,
}

/// Requests of one endpoint with the same outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointOutcome {
    /// Status of the response. `None` if no complete response arrived, in which case all samples are
    /// censored. An endpoint has at most 16 distinct statuses, and 0 stands for all further ones.
    pub status: Option<u16>,
    /// Times from due to done. Empty in closed loop.
    pub response: Latencies,
    /// Times from sent to done.
    pub latency: Latencies,
}

/// Responses whose content was checked. Only a sample is checked and stands for all responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampleCounts {
    /// Responses that were as expected apart from their content, and whose content was checked.
    pub judged: u64,
    /// Checked responses whose content was not as expected or could not be decoded.
    pub failed: u64,
}

/// A distinct content found in the sampled responses of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContentSeen {
    /// SHA-256 of the decoded content, in hexadecimal digits.
    pub sha256: String,
    /// Number of sampled responses with this content.
    pub count: u64,
    /// Total bytes of these responses as sent, without framing.
    pub encoded_bytes: u64,
    /// Total bytes of these responses after content decoding.
    pub decoded_bytes: u64,
}

/// CPU use of the generator's threads over window and drain, with one entry per thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorUse {
    /// I/O driver: `readiness` (epoll), `completion` (io_uring), or `mixed` if the kernel refused io_uring to
    /// some threads.
    pub driver: String,
    /// CPU time of each thread, in nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// Time each thread was runnable and waited for a core, in nanoseconds. Empty if the kernel does not
    /// report it.
    pub run_delay_ns: Vec<u64>,
    /// Wall time of each thread, in nanoseconds.
    pub wall_ns: Vec<u64>,
}

/// Whether two windows ran in parallel or in sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// The same window, measured by another thread or generator. Buckets are summed, the window is the longer
    /// of the two, and its start is the earlier. The caller must check how far apart the windows began.
    Parallel,
    /// The next turn of the same threads. Times are summed. Values that belong to one window alone (buckets)
    /// are dropped.
    Sequential,
}

impl Counts {
    /// Extrapolates failures: counts unchecked responses as failed in the same proportion as checked ones.
    /// Otherwise content that is wrong in every response would count as a handful of failures among all
    /// requests. Call this only after the last merge.
    pub fn presume_failures(&mut self) {
        if self.sampled.failed == 0 {
            return;
        }
        let before = self.successful;
        let failed = if self
            .endpoints
            .iter()
            .all(|endpoint| endpoint.sampled.is_none())
        {
            self.sampled.presumed_failed(before)
        } else {
            self.endpoints
                .iter_mut()
                .map(EndpointCounts::presume_failures)
                .sum()
        };
        self.successful -= failed.min(before);
        let left = |count: u64| part(count, self.successful, before);
        self.successful_in_window = left(self.successful_in_window);
        self.first_successful = left(self.first_successful);
        let (mut sum, mut kept) = (0, 0);
        for bucket in &mut self.successful_per_100_ms {
            sum += u64::from(*bucket);
            // Rounds each bucket so that the running sum stays correct.
            *bucket = (left(sum) - kept) as u32;
            kept += u64::from(*bucket);
        }
        for part in self.open.iter_mut().flat_map(|open| &mut open.ramp_parts) {
            part.successful = left(part.successful);
        }
    }

    /// Returns the stretches of at least [`SILENCE_MIN_NS`](crate::SILENCE_MIN_NS) in which requests waited
    /// and no response arrived.
    pub fn silences(&self) -> Vec<Silence> {
        silence::settled(&self.silent)
    }

    /// Reduces the recorded stretches to [`Counts::silences`]. Call this only after the last merge.
    pub fn settle_silences(&mut self) {
        self.silent = self.silences();
    }

    /// Excludes the start of a window from its throughput, rounded up to whole tenths of a second. At least
    /// one tenth remains. Its requests stay in every other count. Its time is added to the drain time, which
    /// also counts load outside the window.
    pub fn skip_lead(&mut self, lead_ns: u64) {
        let most = self.successful_per_100_ms.len().saturating_sub(1);
        let buckets = usize::try_from(lead_ns.div_ceil(BUCKET_NS))
            .unwrap_or(usize::MAX)
            .min(most);
        let skipped: u64 = self
            .successful_per_100_ms
            .drain(..buckets)
            .map(u64::from)
            .sum();
        let skipped_ns = buckets as u64 * BUCKET_NS;
        self.successful_in_window = self.successful_in_window.saturating_sub(skipped);
        self.window_ns = self.window_ns.saturating_sub(skipped_ns);
        self.drain_ns = self.drain_ns.saturating_add(skipped_ns);
    }

    /// Packs the histograms of counts that are only read or sent from now on.
    pub fn pack(&mut self) {
        self.times().into_iter().for_each(Latencies::pack);
        if let Some(open) = &mut self.open {
            open.response.pack();
            open.schedule_lag.pack();
            let parts = open.ramp_parts.iter_mut();
            parts.for_each(|part| part.response.pack());
        }
        for outcome in self
            .endpoints
            .iter_mut()
            .flat_map(|endpoint| &mut endpoint.outcomes)
        {
            outcome.latency.pack();
            outcome.response.pack();
        }
    }

    /// Duration of the load in nanoseconds: the window with its drain.
    pub fn wall_ns(&self) -> u64 {
        self.window_ns + self.drain_ns
    }

    /// Number of requests to be sent: those due in open loop, those sent in closed loop.
    pub fn due(&self) -> u64 {
        self.open.as_ref().map_or(self.sent, |open| open.intended)
    }

    /// Requests that did not end in an expected response, including requests that were due but never sent.
    /// This is the only definition of a failed request.
    pub fn failed(&self) -> u64 {
        self.due().saturating_sub(self.successful)
    }

    /// Complete responses that were not as expected.
    pub fn unexpected(&self) -> u64 {
        self.responses.saturating_sub(self.successful)
    }

    /// Requests that have failed so far, for use during the window. Unlike [`failed`](Self::failed), this
    /// excludes requests in flight or still to be sent.
    pub fn failed_so_far(&self) -> u64 {
        self.unexpected() + self.timed_out + self.broken
    }

    /// Returns the number of due and failed requests.
    pub fn outcome(&self) -> RequestOutcome {
        RequestOutcome {
            due: self.due(),
            failed: self.failed(),
        }
    }
}

/// Number of due requests and how many of them failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Requests due in open loop, sent in closed loop. See [`Counts::due`].
    pub due: u64,
    /// Requests that did not end in an expected response. See [`Counts::failed`].
    pub failed: u64,
}

impl RequestOutcome {
    /// Share of failed requests, 0 to 1. `None` without requests.
    pub fn failed_share(self) -> Option<f64> {
        (self.due > 0).then(|| self.failed as f64 / self.due as f64)
    }

    /// Whether too many requests failed for the measurement to be valid.
    pub fn is_void(self) -> bool {
        self.failed_share()
            .is_some_and(|share| share > FAILED_SHARE_MAX)
    }
}

impl Sum for RequestOutcome {
    fn sum<I: Iterator<Item = RequestOutcome>>(all: I) -> RequestOutcome {
        all.fold(
            RequestOutcome::default(),
            |sum, RequestOutcome { due, failed }| RequestOutcome {
                due: sum.due + due,
                failed: sum.failed + failed,
            },
        )
    }
}

/// Scales a count by `of / whole`.
fn part(count: u64, of: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(of))
        .checked_div(u128::from(whole))
        .unwrap_or(0) as u64
}

/// Adds the buckets of parallel windows.
fn add(sums: &mut Vec<u32>, more: &[u32]) {
    sums.resize(sums.len().max(more.len()), 0);
    sums.iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

fn merge_parts(sums: &mut Vec<RampPart>, more: Vec<RampPart>) {
    for (
        sum,
        RampPart {
            successful,
            response,
        },
    ) in sums.iter_mut().zip(&more)
    {
        sum.successful = sum.successful.saturating_add(*successful);
        sum.response.merge(response);
    }
    let known = sums.len();
    sums.extend(more.into_iter().skip(known));
}

impl OpenLoop {
    /// Share of the due requests that were sent in the window. `None` if none was due.
    pub fn sent_share(&self) -> Option<f64> {
        self.share(self.sent_in_window)
    }

    /// Share of the due requests that found no free connection.
    pub fn queued_share(&self) -> Option<f64> {
        self.share(self.queued)
    }

    fn share(&self, part: u64) -> Option<f64> {
        (self.intended > 0).then(|| part as f64 / self.intended as f64)
    }

    /// Merges the counts of another thread or generator that sent part of the same rate.
    fn merge(&mut self, other: OpenLoop, windows: Windows) {
        let OpenLoop {
            // Each part records the total rate.
            rate_per_s: _,
            intended,
            due_per_100_ms,
            sent_in_window,
            unsent,
            queued,
            response,
            schedule_lag,
            ramp_parts,
        } = other;
        self.intended = self.intended.saturating_add(intended);
        if windows == Windows::Parallel {
            add(&mut self.due_per_100_ms, &due_per_100_ms);
            merge_parts(&mut self.ramp_parts, ramp_parts);
        }
        self.sent_in_window = self.sent_in_window.saturating_add(sent_in_window);
        self.unsent = self.unsent.saturating_add(unsent);
        self.queued = self.queued.saturating_add(queued);
        self.response.merge(&response);
        self.schedule_lag.merge(&schedule_lag);
    }
}

impl EndpointCounts {
    /// Creates empty counts.
    pub fn new(name: &str) -> EndpointCounts {
        EndpointCounts {
            name: name.to_owned(),
            ..EndpointCounts::default()
        }
    }

    /// Requests sent that did not end in an expected response.
    pub fn failed(&self) -> u64 {
        self.sent.saturating_sub(self.successful)
    }

    /// Extrapolates failures to unchecked responses like [`Counts::presume_failures`]. Returns the number of
    /// presumed failures.
    fn presume_failures(&mut self) -> u64 {
        let before = self.successful;
        let failed = self.sampled.presumed_failed(before).min(before);
        self.successful -= failed;
        self.successful_in_window = part(self.successful_in_window, self.successful, before);
        failed
    }

    fn merge(&mut self, other: EndpointCounts) {
        let EndpointCounts {
            name: _,
            sent,
            successful,
            successful_in_window,
            body_bytes,
            sampled,
            outcomes,
            contents,
        } = other;
        self.sent = self.sent.saturating_add(sent);
        self.successful = self.successful.saturating_add(successful);
        self.successful_in_window = self
            .successful_in_window
            .saturating_add(successful_in_window);
        self.body_bytes = self.body_bytes.saturating_add(body_bytes);
        self.sampled.merge(sampled);
        let same_status =
            |known: &EndpointOutcome, more: &EndpointOutcome| known.status == more.status;
        merge_each(&mut self.outcomes, outcomes, same_status, |known, more| {
            let EndpointOutcome {
                status: _,
                response,
                latency,
            } = more;
            known.response.merge(&response);
            known.latency.merge(&latency);
        });
        self.outcomes
            .sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
        let same_content = |known: &ContentSeen, more: &ContentSeen| known.sha256 == more.sha256;
        merge_each(&mut self.contents, contents, same_content, |known, more| {
            known.merge(&more)
        });
    }
}

impl SampleCounts {
    /// Counts one response whose content was checked.
    pub fn add(&mut self, is_good: bool) {
        self.judged += 1;
        self.failed += u64::from(!is_good);
    }

    /// Adds the counts of another window.
    pub fn merge(&mut self, other: SampleCounts) {
        let SampleCounts { judged, failed } = other;
        self.judged = self.judged.saturating_add(judged);
        self.failed = self.failed.saturating_add(failed);
    }

    fn is_none(&self) -> bool {
        *self == SampleCounts::default()
    }

    /// Number of the `successful` responses that would have failed if all had been checked.
    fn presumed_failed(self, successful: u64) -> u64 {
        let others = successful.saturating_sub(self.judged.saturating_sub(self.failed));
        (others as f64 * self.failed as f64 / self.judged.max(1) as f64).round() as u64
    }
}

impl ContentSeen {
    /// Adds further responses with the same content.
    pub fn merge(&mut self, other: &ContentSeen) {
        let ContentSeen {
            sha256: _,
            count,
            encoded_bytes,
            decoded_bytes,
        } = other;
        self.count = self.count.saturating_add(*count);
        self.encoded_bytes = self.encoded_bytes.saturating_add(*encoded_bytes);
        self.decoded_bytes = self.decoded_bytes.saturating_add(*decoded_bytes);
    }
}

impl GeneratorUse {
    fn merge(&mut self, other: GeneratorUse, windows: Windows) {
        let GeneratorUse {
            driver,
            cpu_ns,
            run_delay_ns,
            wall_ns,
        } = other;
        if self.driver != driver {
            self.driver = "mixed".to_owned();
        }
        let threads = [
            (&mut self.cpu_ns, cpu_ns),
            (&mut self.run_delay_ns, run_delay_ns),
            (&mut self.wall_ns, wall_ns),
        ];
        for (sum, more) in threads {
            match windows {
                Windows::Parallel => sum.extend(more),
                Windows::Sequential => sum
                    .iter_mut()
                    .zip(more)
                    .for_each(|(sum, more)| *sum = sum.saturating_add(more)),
            }
        }
    }

    /// CPU share of the busiest thread, 0 to 1. `None` if nothing was measured.
    pub fn busiest_share(&self) -> Option<f64> {
        greatest_share(&self.cpu_ns, &self.wall_ns)
    }

    /// Largest share of its time that any thread waited for a core, 0 to 1. `None` if the kernel does not
    /// report it.
    pub fn waiting_share(&self) -> Option<f64> {
        greatest_share(&self.run_delay_ns, &self.wall_ns)
    }
}

fn greatest_share(parts: &[u64], wholes: &[u64]) -> Option<f64> {
    let shares = parts.iter().zip(wholes).filter(|(_, whole)| **whole > 0);
    shares
        .map(|(part, whole)| *part as f64 / *whole as f64)
        .reduce(f64::max)
}

/// Merges each item of `more` into the matching item of `sum`, or appends it.
fn merge_each<T>(
    sum: &mut Vec<T>,
    more: Vec<T>,
    same: impl Fn(&T, &T) -> bool,
    merge: impl Fn(&mut T, T),
) {
    for one in more {
        match sum.iter_mut().find(|known| same(known, &one)) {
            Some(known) => merge(known, one),
            None => sum.push(one),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Parses status codes from strings, because serde passes the keys of a flattened struct as JSON strings.
fn by_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let texts: BTreeMap<String, u64> = BTreeMap::deserialize(deserializer)?;
    let status =
        |(text, count): (String, u64)| Ok((text.parse().map_err(serde::de::Error::custom)?, count));
    texts.into_iter().map(status).collect()
}
