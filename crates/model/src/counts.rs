//! What the load engine counted: one type for a thread, for a generator, for several together, and for the record.
//!
//! The engine fills it and the record keeps it as it is. [`Counts::merge`] in `counts/merge.rs` is the only place where two of them become one.
//! Must not: derive rates, or know which experiment a window belongs to.

use std::collections::BTreeMap;
use std::iter::Sum;

use serde::{Deserialize, Deserializer, Serialize};
use stats::Latencies;

use crate::{ContractFailure, ErrorCount, FAILED_SHARE_MAX, Silence, silence};

mod merge;

/// The length of one of [`Counts::successful_per_100_ms`].
pub const BUCKET_NS: u64 = 100_000_000;

/// What came of the requests of one window of load, with its drain.
///
/// ```text
///   connect phase │◄────────── window ──────────►│◄── drain ──►│
///                 started        sending         stopped       nothing in flight
///
///   intended            sent              first byte      done
///      │◄─ queue, lag ──►│◄── first_byte ─────►│            │
///      │                 │◄──────────── latency ───────────►│   service time: what the service took
///      │◄──────────────────────── response ────────────────►│   response time: what a user waits ([`OpenLoop`])
/// ```
/// Always: `sent == responses + timed_out + broken + unfinished`, and the samples of `latency` (recorded and censored) are as many as
/// `sent`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// When the (first) window began, nanoseconds of `CLOCK_MONOTONIC`.
    pub started_ns: u64,
    /// How long requests could be sent, in nanoseconds, without the lead of turns that have one; of all windows together. Where a number
    /// of requests ends the window: until the last one had ended.
    pub window_ns: u64,
    /// Time of load beside the window, in nanoseconds: waiting for what was in flight, and the lead; likewise.
    pub drain_ns: u64,
    /// Requests that were begun, in the window or (open loop) in the drain: given to an open connection, or with a connection begun
    /// for it.
    pub sent: u64,
    /// Complete responses, those of the drain included, whatever their status.
    #[serde(alias = "answered")]
    pub responses: u64,
    /// The same within the window; 0 also in records that do not say.
    #[serde(default)]
    pub responses_in_window: u64,
    /// Complete responses that met the expectation, those of the drain included.
    #[serde(alias = "ok")]
    pub successful: u64,
    /// The same within the window: throughput is this over `window_ns`.
    #[serde(alias = "ok_in_window")]
    pub successful_in_window: u64,
    /// From sent to done of all requests together, in nanoseconds, whatever became of them, with those of the drain; 0 also in records
    /// that do not say.
    #[serde(default)]
    pub in_flight_ns: u64,
    /// Successful responses to the first request of each connection in a window. In closed loop all connections begin a window at once,
    /// and a service that serves them one after another answers these sooner than those that follow.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first_successful: u64,
    /// From sent to done of these first requests together, in nanoseconds, whatever became of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first_in_flight_ns: u64,
    /// Time for which the load generator stood still, in nanoseconds: pieces of half a second and more in which it should have looked around
    /// and did not, because it was stopped (SIGSTOP, Ctrl-Z), or the machine was suspended.
    #[serde(default, skip_serializing_if = "is_none")]
    pub halted_ns: u64,
    /// Stretches of the window and its drain in which no response arrived, in order: see [`Counts::silences`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Silence>,
    /// Requests given up after the time-out.
    pub timed_out: u64,
    /// Requests whose connection, or stream, failed before the response was complete, and those that a server refused unseen.
    pub broken: u64,
    /// Requests without a result when the drain ended.
    pub unfinished: u64,
    /// Complete responses by status code.
    #[serde(deserialize_with = "by_status")]
    pub status: BTreeMap<u16, u64>,
    /// Every error since the connect phase began, by phase and cause, sorted.
    pub errors: Vec<ErrorCount>,
    /// In what complete responses did not meet the expectation; one failure is counted for each such response.
    pub contract_failures: Vec<ContractFailure>,
    /// Responses that were looked at in full; 0 also in records that do not say.
    #[serde(default, skip_serializing_if = "SampleCounts::is_none")]
    pub sampled: SampleCounts,
    /// A content coding that is not known here. Content with it is taken as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_coding: Option<String>,
    /// Bytes received since the connect phase began: heads, framing and bodies, also of responses that were never complete, and whatever
    /// TLS and HTTP/2 add.
    pub wire_bytes: u64,
    /// Bytes of content of complete responses, before any content decoding.
    pub body_bytes: u64,
    /// From sent to done (service time). A request without a complete response is censored at its age. Where the record's design chooses
    /// one endpoint it is that of its requests alone.
    pub latency: Latencies,
    /// From sent to the first byte of the response (HTTP/2: to its head); censored where none came.
    pub first_byte: Latencies,
    /// Successful responses in each 100 ms of the window, the last of which may be shorter; empty for more than one turn.
    #[serde(alias = "ok_per_100_ms")]
    pub successful_per_100_ms: Vec<u32>,
    /// Log-ins that succeeded since the connect phase began: requests that a user sends once, before all others. They are in no other
    /// count but that of bytes; one that fails is a request that failed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub log_ins: u64,
    /// Connections open when the (first) window began; 0 also in records that do not say.
    #[serde(default)]
    pub connections_alive_at_start: u32,
    /// Connections open when the drain had ended.
    pub connections_alive: u32,
    /// Connections opened, in the connect phase and later.
    pub connections_opened: u64,
    /// Those of them that took the place of an earlier one.
    #[serde(default)]
    pub reconnects: u64,
    /// From the beginning to connect to connected, for each connection that was opened since the connect phase began.
    #[serde(default = "Latencies::none", skip_serializing_if = "Latencies::is_empty")]
    pub connect: Latencies,
    /// From there to the end of the TLS handshake.
    #[serde(default = "Latencies::none", skip_serializing_if = "Latencies::is_empty")]
    pub handshake: Latencies,
    /// Handshakes that took up an earlier session.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tls_resumed: u64,
    /// What the first TLS error said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_error: Option<String>,
    /// What the load generator used; all generators together where there are several.
    pub generator: GeneratorUse,
    /// What came of each request of the load, in their order. The record has them only where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointCounts>,
    /// What open loop adds; `None` in closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Box<OpenLoop>>,
}

/// What a window in open loop gave beside what every window gives.
///
/// Every request due is either in the window's `sent` or in `unsent`. The samples of `response` are as many as `intended`, and so are
/// those of `schedule_lag` and `queued` together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests that were asked for per second, by all generators; the mean over the window where the rate changes.
    pub rate_per_s: f64,
    /// Requests that were due in the window.
    pub intended: u64,
    /// How many of them were due in each 100 ms of the window; empty in records that do not say, and where windows were put together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub due_per_100_ms: Vec<u32>,
    /// Requests that were sent in the window: over its length it is the rate achieved.
    pub sent_in_window: u64,
    /// Requests that were due and had found no connection when the drain ended.
    pub unsent: u64,
    /// Requests that found no connection free when they were due, because all were busy or not open.
    pub queued: u64,
    /// From due to done; what got no complete response, or was never sent, is censored at its age. Of one endpoint where the design
    /// chooses one.
    pub response: Latencies,
    /// From due to sent where a connection was free: how late the load generator itself was.
    ///
    /// A connection is free from the time at which the engine saw its last response: an engine without a core sees all responses late
    /// and takes its connections for busy meanwhile, which `run_delay_ns` of [`GeneratorUse`] shows.
    pub schedule_lag: Latencies,
}

/// What came of one of the requests of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointCounts {
    /// Its name, unlike every other's.
    pub name: String,
    /// Requests that were begun.
    pub sent: u64,
    /// Complete responses that met the expectation, those of the drain included.
    #[serde(alias = "ok")]
    pub successful: u64,
    /// The same within the window; 0 also in records that do not say.
    #[serde(default)]
    pub successful_in_window: u64,
    /// Bytes of content of complete responses, before any content decoding; 0 also in records that do not say.
    #[serde(default)]
    pub body_bytes: u64,
    /// Responses that were looked at in full; 0 also in records that do not say.
    #[serde(default, skip_serializing_if = "SampleCounts::is_none")]
    pub sampled: SampleCounts,
    /// By how requests ended: status codes in order, then those without a complete response. Not in the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<EndpointOutcome>,
    /// The contents of sampled responses that were good, of each thread the first 16 different ones. Not in the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<ContentSeen>,
}

/// Requests of one endpoint that ended in one way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointOutcome {
    /// The response's status; `None` where there was no complete one: then all samples are censored. 0 for all further ones where an
    /// endpoint showed more than 16 different ones.
    pub status: Option<u16>,
    /// From due to done. Empty in closed loop.
    pub response: Latencies,
    /// From sent to done.
    pub latency: Latencies,
}

/// Responses whose content was looked at, which is done of a few: sampled responses stand for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleCounts {
    /// Responses that were as expected but for their content, and whose content was judged.
    pub judged: u64,
    /// Those of them whose content was not as expected, or could not be decoded.
    pub failed: u64,
}

/// A content that was seen in the sampled responses of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentSeen {
    /// SHA-256 of the decoded content, in hexadecimal digits.
    pub sha256: String,
    /// In how many of the sampled responses.
    pub count: u64,
    /// Bytes of all of them as they were sent, without framing.
    pub encoded_bytes: u64,
    /// Bytes of all of them when their content coding is undone.
    pub decoded_bytes: u64,
}

/// CPU of the generator's threads over window and drain, one entry a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// What moved its bytes: `readiness` (epoll), `completion` (io_uring), or `mixed` where the kernel refused the latter to some
    /// threads; empty in records that do not say.
    #[serde(default)]
    pub driver: String,
    /// CPU time of each thread in nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// Time each thread was runnable and had to wait for a core, in nanoseconds; empty where the kernel does not say.
    pub run_delay_ns: Vec<u64>,
    /// Wall time of each thread in nanoseconds.
    pub wall_ns: Vec<u64>,
}

/// How a window lies to the one that its counts are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// The same window, by another thread or another generator. The sum is as of one that did both: buckets add up, the window is the
    /// longer of the two and its begin the earlier. How far they began apart is for the caller to judge.
    Parallel,
    /// The next turn of the same threads. Times add up; what belongs to one window alone (buckets) is given up.
    Sequential,
}

impl Counts {
    /// Takes responses that were not looked at in full for failures in the share of those that were: a content that every response breaks is
    /// else a handful of failures among all requests. For counts that nothing is merged to any more.
    pub fn presume_failures(&mut self) {
        if self.sampled.failed == 0 {
            return;
        }
        let before = self.successful;
        let failed = if self.endpoints.iter().all(|endpoint| endpoint.sampled.is_none()) {
            self.sampled.presumed_failed(before)
        } else {
            self.endpoints.iter_mut().map(EndpointCounts::presume_failures).sum()
        };
        self.successful -= failed.min(before);
        let left = |count: u64| part(count, self.successful, before);
        self.successful_in_window = left(self.successful_in_window);
        self.first_successful = left(self.first_successful);
        let (mut sum, mut kept) = (0, 0);
        for bucket in &mut self.successful_per_100_ms {
            sum += u64::from(*bucket);
            // As many in each as leave the sum right.
            *bucket = (left(sum) - kept) as u32;
            kept += u64::from(*bucket);
        }
    }

    /// Silences: stretches of at least [`SILENCE_MIN_NS`](crate::SILENCE_MIN_NS) in which requests waited and no response arrived.
    pub fn silences(&self) -> Vec<Silence> {
        silence::settled(&self.silent)
    }

    /// Keeps only [`Counts::silences`], for counts to which no thread or generator is merged any more.
    pub fn settle_silences(&mut self) {
        self.silent = self.silences();
    }

    /// Takes the begin of a window out of what its throughput is counted in, to whole tenths of a second: at most so many that one is
    /// left. Its requests stay in every other count, and its time goes to that of the drain, in which load runs beside the window too.
    pub fn skip_lead(&mut self, lead_ns: u64) {
        let most = self.successful_per_100_ms.len().saturating_sub(1);
        let buckets = usize::try_from(lead_ns.div_ceil(BUCKET_NS)).unwrap_or(usize::MAX).min(most);
        let skipped: u64 = self.successful_per_100_ms.drain(..buckets).map(u64::from).sum();
        let skipped_ns = buckets as u64 * BUCKET_NS;
        self.successful_in_window = self.successful_in_window.saturating_sub(skipped);
        self.window_ns = self.window_ns.saturating_sub(skipped_ns);
        self.drain_ns += skipped_ns;
    }

    /// Packs its histograms, for counts that are only read or sent from now on.
    pub fn pack(&mut self) {
        self.times().into_iter().for_each(Latencies::pack);
        if let Some(open) = &mut self.open {
            open.response.pack();
            open.schedule_lag.pack();
        }
        for outcome in self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.outcomes) {
            outcome.latency.pack();
            outcome.response.pack();
        }
    }

    /// The window with its drain: for so long there was load.
    pub fn wall_ns(&self) -> u64 {
        self.window_ns + self.drain_ns
    }

    /// Requests that there were to send: those due in open loop, those sent in closed loop.
    pub fn due(&self) -> u64 {
        self.open.as_ref().map_or(self.sent, |open| open.intended)
    }

    /// Requests that did not end in an expected response, those that were due and never sent included: the one definition of a failed
    /// request.
    pub fn failed(&self) -> u64 {
        self.due().saturating_sub(self.successful)
    }

    /// Complete responses that were not as expected.
    pub fn unexpected(&self) -> u64 {
        self.responses.saturating_sub(self.successful)
    }

    /// Requests that have failed while the window lasts: [`failed`](Self::failed) without those that are under way or still to be sent.
    pub fn failed_so_far(&self) -> u64 {
        self.unexpected() + self.timed_out + self.broken
    }

    /// What became of the requests.
    pub fn outcome(&self) -> RequestOutcome {
        RequestOutcome { due: self.due(), failed: self.failed() }
    }
}

/// Requests that there were to send, and those of them that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Requests due in open loop, sent in closed loop: [`Counts::due`].
    pub due: u64,
    /// Those of them that did not end in an expected response: [`Counts::failed`].
    pub failed: u64,
}

impl RequestOutcome {
    /// The share that failed, 0 to 1; `None` without requests.
    pub fn failed_share(self) -> Option<f64> {
        (self.due > 0).then(|| self.failed as f64 / self.due as f64)
    }

    /// Whether so many failed that figures mean nothing.
    pub fn is_void(self) -> bool {
        self.failed_share().is_some_and(|share| share > FAILED_SHARE_MAX)
    }
}

impl Sum for RequestOutcome {
    fn sum<I: Iterator<Item = RequestOutcome>>(all: I) -> RequestOutcome {
        all.fold(RequestOutcome::default(), |sum, RequestOutcome { due, failed }| RequestOutcome {
            due: sum.due + due,
            failed: sum.failed + failed,
        })
    }
}

/// The part `of` / `whole` of a count.
fn part(count: u64, of: u64, whole: u64) -> u64 {
    (u128::from(count) * u128::from(of)).checked_div(u128::from(whole)).unwrap_or(0) as u64
}

/// Adds what came in each part of windows that lie side by side.
fn add(sums: &mut Vec<u32>, more: &[u32]) {
    sums.resize(sums.len().max(more.len()), 0);
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl OpenLoop {
    /// Of the requests due, those sent in the window; `None` where none was due.
    pub fn sent_share(&self) -> Option<f64> {
        self.share(self.sent_in_window)
    }

    /// Of the requests due, those that found no connection free.
    pub fn queued_share(&self) -> Option<f64> {
        self.share(self.queued)
    }

    fn share(&self, part: u64) -> Option<f64> {
        (self.intended > 0).then(|| part as f64 / self.intended as f64)
    }

    /// The same rate, of which another thread or generator had its share.
    fn merge(&mut self, other: OpenLoop, windows: Windows) {
        let OpenLoop {
            // Each says the rate of all.
            rate_per_s: _,
            intended,
            due_per_100_ms,
            sent_in_window,
            unsent,
            queued,
            response,
            schedule_lag,
        } = other;
        self.intended += intended;
        if windows == Windows::Parallel {
            add(&mut self.due_per_100_ms, &due_per_100_ms);
        }
        self.sent_in_window += sent_in_window;
        self.unsent += unsent;
        self.queued += queued;
        self.response.merge(&response);
        self.schedule_lag.merge(&schedule_lag);
    }
}

impl EndpointCounts {
    /// One of which nothing has been counted yet.
    pub fn new(name: &str) -> EndpointCounts {
        EndpointCounts { name: name.to_owned(), ..EndpointCounts::default() }
    }

    /// Requests sent that did not end in an expected response.
    pub fn failed(&self) -> u64 {
        self.sent.saturating_sub(self.successful)
    }

    /// Takes responses that were not looked at for failures, as [`Counts::presume_failures`] does, and returns how many.
    fn presume_failures(&mut self) -> u64 {
        let before = self.successful;
        let failed = self.sampled.presumed_failed(before);
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
        self.sent += sent;
        self.successful += successful;
        self.successful_in_window += successful_in_window;
        self.body_bytes += body_bytes;
        self.sampled.merge(sampled);
        let same_status = |known: &EndpointOutcome, more: &EndpointOutcome| known.status == more.status;
        merge_each(&mut self.outcomes, outcomes, same_status, |known, more| {
            let EndpointOutcome { status: _, response, latency } = more;
            known.response.merge(&response);
            known.latency.merge(&latency);
        });
        self.outcomes.sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
        let same_content = |known: &ContentSeen, more: &ContentSeen| known.sha256 == more.sha256;
        merge_each(&mut self.contents, contents, same_content, |known, more| known.merge(&more));
    }
}

impl SampleCounts {
    /// Counts a response whose content was judged.
    pub fn add(&mut self, is_good: bool) {
        self.judged += 1;
        self.failed += u64::from(!is_good);
    }

    /// Adds the responses of another window.
    pub fn merge(&mut self, other: SampleCounts) {
        let SampleCounts { judged, failed } = other;
        self.judged += judged;
        self.failed += failed;
    }

    fn is_none(&self) -> bool {
        *self == SampleCounts::default()
    }

    /// How many of `successful` responses would have failed if all had been looked at.
    fn presumed_failed(self, successful: u64) -> u64 {
        let others = successful.saturating_sub(self.judged - self.failed);
        (others as f64 * self.failed as f64 / self.judged.max(1) as f64).round() as u64
    }
}

impl ContentSeen {
    /// Takes in more responses of the same content.
    pub fn merge(&mut self, other: &ContentSeen) {
        let ContentSeen { sha256: _, count, encoded_bytes, decoded_bytes } = other;
        self.count += count;
        self.encoded_bytes += encoded_bytes;
        self.decoded_bytes += decoded_bytes;
    }
}

impl GeneratorUse {
    fn merge(&mut self, other: GeneratorUse, windows: Windows) {
        let GeneratorUse { driver, cpu_ns, run_delay_ns, wall_ns } = other;
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
                Windows::Sequential => sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more),
            }
        }
    }

    /// CPU share of the busiest thread, 0 to 1; `None` where nothing was measured.
    pub fn busiest_share(&self) -> Option<f64> {
        greatest_share(&self.cpu_ns, &self.wall_ns)
    }

    /// The greatest share of its time that a thread waited for a core, 0 to 1; `None` where the kernel does not say.
    pub fn waiting_share(&self) -> Option<f64> {
        greatest_share(&self.run_delay_ns, &self.wall_ns)
    }
}

fn greatest_share(parts: &[u64], wholes: &[u64]) -> Option<f64> {
    let shares = parts.iter().zip(wholes).filter(|(_, whole)| **whole > 0);
    shares.map(|(part, whole)| *part as f64 / *whole as f64).reduce(f64::max)
}

/// Takes each of `more` into the one that is the same, or behind the last.
fn merge_each<T>(sum: &mut Vec<T>, more: Vec<T>, same: impl Fn(&T, &T) -> bool, merge: impl Fn(&mut T, T)) {
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

/// Within a flattened struct serde reads keys as the texts that they are in JSON.
fn by_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let texts: BTreeMap<String, u64> = BTreeMap::deserialize(deserializer)?;
    let status = |(text, count): (String, u64)| Ok((text.parse().map_err(serde::de::Error::custom)?, count));
    texts.into_iter().map(status).collect()
}
