//! Results of a plan that compares nothing: each slice on its own, whether its rate was kept, and its
//! findings.
//!
//! The checks of experiments are applied to each slice as a separate record. Conclusions about
//! comparisons do not apply to a single figure, so some grades differ: see `regraded`. Pure.

use model::quantity::counted;
use model::{
    Cause, Check, Evidence, Finding, Grade, Phase, Quantity, SliceRequest, Until, evidence,
};
use plan::{Load, Metric, Variant};
use record::{Block, EndReason, Record, Slice, SliceKind, Trial};

use crate::checks;
use crate::failure::FailureClass;
use crate::metric::BlockFigures;

mod kept;
#[cfg(test)]
mod tests;

pub use kept::{Bend, RateKept, WindowPart};

/// Maximum share of the time a generator thread may wait for a core. Above it, client and server probably
/// share one.
const RUN_DELAY_SHARE_MAX: f64 = 0.05;
/// Minimum window length. A service has barely begun to warm up in a shorter window.
const WINDOW_MIN_NS: u64 = 1_000_000_000;
/// Minimum window length for any rate.
const RATE_WINDOW_MIN_NS: u64 = 100_000_000;
/// Maximum ratio of a slice's throughput to the measured capacity. Above it, that capacity is doubtful.
const CAPACITY_EXCEEDED: f64 = 1.05;
/// Maximum number of distinct contents that each thread of the engine records.
const CONTENTS_MAX: usize = 16;

/// A measurement of one variant.
#[derive(Debug)]
pub struct Measurement<'a> {
    /// The closed-loop slice that rates as shares refer to.
    pub capacity: Option<MeasuredWindow<'a>>,
    /// The slices that were started, in order.
    pub windows: Vec<MeasuredWindow<'a>>,
    /// Number of planned slices.
    pub planned: usize,
    /// Whether the user interrupted the measurement.
    pub interrupted: bool,
    /// Findings that belong to no single slice.
    pub findings: Vec<Finding>,
}

/// A slice and its findings.
#[derive(Debug)]
pub struct MeasuredWindow<'a> {
    /// The slice with its counts.
    pub slice: &'a Slice,
    /// The requested load.
    pub asked: SliceRequest,
    /// Name of the slice: the requested rate, or `saturation`. If there is only one slice, the request.
    pub name: String,
    /// Maximum concurrent requests per connection.
    pub lanes: u32,
    /// Whether the user interrupted the slice.
    pub interrupted: bool,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
    /// The variant under load.
    variant: Option<&'a Variant>,
    /// Whether the load goes to a URL, which may be on this machine.
    runs_already: bool,
}

/// Content of sampled responses, over all endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledContent {
    /// Number of responses whose content was decoded.
    pub count: u64,
    /// Bytes as sent, without framing.
    pub encoded_bytes: u64,
    /// Bytes of the decoded content.
    pub decoded_bytes: u64,
    /// Number of distinct contents.
    pub different: usize,
}

/// Returns the measurement of a record whose plan requests one.
pub fn measurement(record: &Record) -> Option<Measurement<'_>> {
    let measure = record.header.plan.measure.as_ref()?;
    let trial = record.blocks.last().and_then(|block| block.trials.last());
    let slices = || trial.into_iter().flat_map(|trial| &trial.slices);
    let of = |kind| slices().filter(move |slice| slice.kind == kind);
    let interrupted = record.end() == Some(&EndReason::Interrupted);
    let window = |slice| trial.map(|trial| MeasuredWindow::of(record, trial, slice, interrupted));
    let capacity = of(SliceKind::Capacity).next().and_then(window);
    let windows: Vec<MeasuredWindow<'_>> = of(SliceKind::Measured).filter_map(window).collect();
    let mut findings: Vec<Finding> = capacity_exceeded(capacity.as_ref(), &windows)
        .into_iter()
        .collect();
    if windows.is_empty() && capacity.is_none() {
        findings.extend(
            checks::all(record, &[])
                .into_iter()
                .filter(|of| of.grade == Grade::Invalid),
        );
    }
    Some(Measurement {
        capacity,
        windows,
        planned: measure.slices(),
        interrupted,
        findings,
    })
}

impl Measurement<'_> {
    /// All findings, most severe first, without repetitions.
    pub fn all_findings(&self) -> Vec<Finding> {
        let of_windows = self
            .capacity
            .iter()
            .chain(&self.windows)
            .flat_map(|window| &window.findings);
        // Findings about the run occur in each of its slices.
        let mut all = model::distinct(self.findings.iter().chain(of_windows).cloned());
        // If other slices have results, a slice without success is only a warning.
        if self.windows.iter().any(MeasuredWindow::has_success) {
            let soft = |finding: &mut Finding| finding.grade = finding.grade.max(Grade::Warning);
            all.iter_mut()
                .filter(|finding| finding.check == Check::NoSuccess)
                .for_each(soft);
        }
        all.sort_by_key(|finding| (finding.grade, finding.check));
        all
    }

    /// The finding that makes all of the measurement invalid: one about the whole run, or one in every slice.
    pub fn void(&self) -> Option<&Finding> {
        let of_run = self.findings.iter().find(|of| of.grade == Grade::Invalid);
        if of_run.is_some() {
            return of_run;
        }
        let shown = if self.windows.is_empty() {
            self.capacity.as_slice()
        } else {
            &self.windows
        };
        let voids: Option<Vec<&Finding>> = shown.iter().map(MeasuredWindow::void).collect();
        voids?.first().copied()
    }

    /// The only slice. `None` if several were planned, or none was started.
    pub fn only(&self) -> Option<&MeasuredWindow<'_>> {
        self.windows.first().filter(|_| self.planned == 1)
    }
}

impl<'a> MeasuredWindow<'a> {
    /// Creates a window without running any checks.
    pub fn alone(slice: &'a Slice) -> MeasuredWindow<'a> {
        let asked = slice.asked.unwrap_or(SliceRequest {
            until: Until::Requests(slice.counts.sent),
            open: None,
        });
        MeasuredWindow {
            slice,
            asked,
            name: String::new(),
            lanes: 1,
            interrupted: false,
            findings: Vec::new(),
            variant: None,
            runs_already: false,
        }
    }

    fn of(
        record: &'a Record,
        trial: &Trial,
        slice: &'a Slice,
        interrupted: bool,
    ) -> MeasuredWindow<'a> {
        let mut window = MeasuredWindow::alone(slice);
        let plan = &record.header.plan;
        let several = plan
            .measure
            .as_ref()
            .is_some_and(|measure| measure.slices() > 1);
        window.variant = plan.variants.first();
        window.name = match (window.asked.open, slice.kind) {
            (_, SliceKind::Capacity) => "saturation".to_owned(),
            (Some(open), _) if several => open.ask.to_string(),
            _ => window.load().map(Load::title).unwrap_or_default(),
        };
        window.lanes = window.load().map_or(1, |load| load.protocol.lanes());
        let short = match window.asked.until {
            Until::Elapsed(length) => u128::from(slice.counts.window_ns) < length.as_nanos(),
            Until::Requests(total) => slice.counts.due() < total,
        };
        window.interrupted = interrupted && short;
        window.runs_already = window
            .variant
            .and_then(|variant| variant.entry_service()?.url())
            .is_some();
        let record = window.record(record, trial);
        let found = checks::all(&record, &BlockFigures::all(&record)).into_iter();
        let found = found
            .filter_map(|finding| window.regraded(finding))
            .chain(window.own());
        window.findings = found.collect();
        window
            .findings
            .sort_by_key(|finding| (finding.grade, finding.check));
        window
    }

    /// Returns the slice as the only slice of a record.
    fn record(&self, record: &Record, trial: &Trial) -> Record {
        let Record {
            directory,
            header,
            generators,
            generators_lost,
            ended,
            damage,
            // Replaced by the slice.
            blocks: _,
            // Settings for comparisons and data that no finding of a slice uses.
            rate: _,
            connections: _,
            warm_up: _,
            cores: _,
            allocation: _,
            blocks_planned: _,
            experiment_text: _,
            prepared: _,
            captures: _,
        } = record;
        let mut alone = Record::new(directory.clone(), header.clone());
        let plan = &mut alone.header.plan;
        plan.design.rate = self
            .slice
            .counts
            .open
            .as_ref()
            .map(|open| plan::PlannedRate::PerSecond(open.rate_per_s));
        plan.design.metric = if plan.design.rate.is_some() {
            Metric::P99
        } else {
            Metric::Throughput
        };
        plan.variants.truncate(1);
        plan.variants
            .iter_mut()
            .for_each(|variant| variant.name.clone_from(&self.name));
        alone.generators.clone_from(generators);
        alone.generators_lost.clone_from(generators_lost);
        alone.damage.clone_from(damage);
        alone.ended.clone_from(ended);
        let slice = Slice {
            kind: SliceKind::Measured,
            ..self.slice.clone()
        };
        let trial = Trial {
            started: trial.started.clone(),
            slices: vec![slice],
            ended: trial.ended.clone(),
        };
        let seconds = Some(self.slice.counts.window_ns as f64 / 1e9);
        let block = Block {
            number: 1,
            order: vec![0],
            trials: vec![trial],
            seconds,
            ..Block::default()
        };
        alone.blocks.push(block);
        alone
    }

    /// Adapts a finding to a measurement without comparisons. `None` if it does not apply.
    fn regraded(&self, finding: Finding) -> Option<Finding> {
        // Behind a URL there are no known pods, and its processes cannot be distinguished from others.
        if self.runs_already && matches!(finding.check, Check::PodsChanged | Check::OtherProcesses)
        {
            return None;
        }
        let queued = self
            .slice
            .counts
            .open
            .as_ref()
            .and_then(|open| open.queued_share());
        let is_overloaded = queued.is_some_and(|queued| queued > checks::QUEUED_SHARE_MAX);
        let (grade, remedy) = match finding.check {
            // These are about compared trials, or about facts that a user who gives a URL knows.
            Check::ValueMissing | Check::QuantileUnresolved | Check::AlreadyRunning => return None,
            Check::NoSuccess => (
                Grade::Invalid,
                "there is nothing to measure; see what it says, the time-out, and what counts as a success",
            ),
            Check::Errors => {
                let remedy = self.errors_remedy().into();
                return Some(Finding {
                    grade: Grade::Warning,
                    remedy,
                    ..finding
                });
            }
            Check::GeneratorSaturated => (
                Grade::Warning,
                "the client was at its limit, and the service may do more than this: more threads, or another machine",
            ),
            Check::RateNotKept if is_overloaded => (
                Grade::Warning,
                "requests waited for a connection, which the response time contains: more connections, or the service is overloaded",
            ),
            Check::RateNotKept | Check::ClientLate => (
                Grade::Warning,
                "the client's own lateness is part of the response times: give it a core of its own, or more threads",
            ),
            Check::Steal
            | Check::OtherProcesses
            | Check::SpinVaries
            | Check::Paging
            | Check::DiskReads => (
                finding.grade,
                "it is part of these figures, and a quieter machine would show others",
            ),
            Check::CertificatesUnchecked => (
                finding.grade,
                "the handshakes cost what they would otherwise; --cacert FILE trusts an authority of your own",
            ),
            _ => return Some(finding),
        };
        let finding = Finding {
            grade,
            remedy: remedy.into(),
            ..finding
        };
        Some(if finding.check == Check::NoSuccess {
            self.refused(finding)
        } else {
            finding
        })
    }

    /// Effect of failed requests on the figures, and the advice.
    fn errors_remedy(&self) -> String {
        let class = self
            .variant
            .and_then(|variant| FailureClass::dominant(&[self.slice], variant));
        let shown = if class.is_some_and(FailureClass::has_response) {
            "throughput leaves them out, and the latencies contain them, however soon they came"
        } else {
            "throughput leaves them out, and in the latencies they are at least as long as they were waited for"
        };
        class.map_or_else(
            || shown.to_owned(),
            |class| format!("{shown}; {}", class.advice()),
        )
    }

    fn load(&self) -> Option<&'a Load> {
        Some(&self.variant?.load)
    }

    /// Adds details from the engine about why no request succeeded.
    fn refused(&self, mut finding: Finding) -> Finding {
        let counts = &self.slice.counts;
        if let Some(error) = &counts.tls_error {
            finding.evidence = finding
                .evidence
                .reworded(|text| format!("{text}; TLS failed: {error}"));
        }
        if counts
            .errors
            .iter()
            .any(|of| (of.phase, of.cause) == (Phase::Tls, Cause::Certificate))
        {
            finding.remedy = "the server's certificate was refused: --cacert FILE trusts the authority that signed it, --sni NAME expects it \
                              to be for another name, --insecure takes any"
                .into();
        }
        finding
    }

    /// Whether any request succeeded.
    pub fn has_success(&self) -> bool {
        self.slice.counts.successful > 0
    }

    /// The most severe finding that makes the slice invalid, if any.
    pub fn void(&self) -> Option<&Finding> {
        self.findings.iter().find(|of| of.grade == Grade::Invalid)
    }

    /// Converts an amount to a rate per second of the window. `None` if the window is too short.
    pub fn per_s(&self, amount: u64) -> Option<f64> {
        let window_ns = self.slice.counts.window_ns;
        (!self.is_too_short()).then(|| amount as f64 * 1e9 / window_ns as f64)
    }

    /// Successes per second of the window. `None` if [`Window::without_rate`] has a reason.
    pub fn throughput_per_s(&self) -> Option<f64> {
        self.per_s(self.slice.counts.successful_in_window)
            .filter(|_| !self.is_shorter_than_a_response())
    }

    /// Why the window has no throughput.
    pub fn without_rate(&self) -> Option<String> {
        let window = Quantity::ns(self.slice.counts.window_ns);
        match () {
            () if self.is_too_short() => {
                Some(format!("the window of {window} is too short for a rate"))
            }
            () if self.is_shorter_than_a_response() => {
                Some(format!("no response came within the window of {window}"))
            }
            () => None,
        }
    }

    fn is_too_short(&self) -> bool {
        self.slice.counts.window_ns < RATE_WINDOW_MIN_NS
    }

    fn is_shorter_than_a_response(&self) -> bool {
        self.slice.counts.successful_in_window == 0 && self.has_success()
    }

    /// Bytes received per response, including the head.
    pub fn bytes_per_response(&self) -> Option<f64> {
        let counts = &self.slice.counts;
        (counts.responses > 0).then(|| counts.wire_bytes as f64 / counts.responses as f64)
    }

    /// Bytes per second: the rate of responses times the bytes per response, so that the drain does not
    /// count.
    pub fn transfer_per_s(&self) -> Option<f64> {
        Some(self.bytes_per_response()? * self.per_s(self.slice.counts.responses_in_window)?)
    }

    /// Summarizes the content of sampled responses.
    pub fn sampled(&self) -> SampledContent {
        let mut all = SampledContent::default();
        for seen in self
            .slice
            .counts
            .endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.contents)
        {
            all.count += seen.count;
            all.encoded_bytes += seen.encoded_bytes;
            all.decoded_bytes += seen.decoded_bytes;
            all.different += 1;
        }
        all
    }

    /// Findings that only single slices have, each reported under the most similar check.
    fn own(&self) -> impl Iterator<Item = Finding> + use<> {
        let all = [
            self.stood_still(),
            self.waiting(),
            self.short(),
            self.late(),
            self.nothing_due(),
            self.ended_early(),
            self.connections_missing(),
            self.contents_differ(),
        ];
        all.into_iter().flatten()
    }

    fn warning(&self, check: Check, evidence: Evidence, remedy: &'static str) -> Finding {
        Finding::warning(
            check,
            evidence.reworded(|text| format!("{}: {text}", self.name)),
            remedy,
        )
        .about([0])
    }

    /// In an experiment such a block is dropped.
    fn stood_still(&self) -> Option<Finding> {
        let halted_ns = Some(self.slice.counts.halted_ns).filter(|ns| *ns > 0)?;
        let seen = evidence!("the load stood still for {time}"; time = Quantity::ns(halted_ns));
        let remedy = "it was stopped (Ctrl-Z, SIGSTOP), or the machine suspended, while the window went on: measure again";
        Some(Finding {
            grade: Grade::Invalid,
            ..self.warning(Check::BlocksDropped, seen, remedy)
        })
    }

    fn waiting(&self) -> Option<Finding> {
        let share = self.slice.counts.generator.waiting_share();
        let share = Quantity::share(share.filter(|share| *share > RUN_DELAY_SHARE_MAX)?.min(1.0));
        let seen = evidence!("the client waited for a core for {share} of the time"; share = share);
        let remedy =
            "something else ran on it, perhaps the service, and latencies contain the wait";
        Some(self.warning(Check::CoresShared, seen, remedy))
    }

    fn short(&self) -> Option<Finding> {
        let short = self.slice.counts.window_ns < WINDOW_MIN_NS && self.has_success();
        let seen = evidence!("the window was {window}"; window = Quantity::ns(self.slice.counts.window_ns));
        let remedy = match (self.is_too_short(), self.asked.until) {
            (true, Until::Elapsed(_)) => "too short for any rate: load for longer (--duration 10s)",
            (true, Until::Requests(_)) => "too short for any rate: send more requests (--requests)",
            (false, Until::Elapsed(_) | Until::Requests(_)) => {
                "a first impression only: a service has hardly begun to warm up"
            }
        };
        (short && !self.interrupted).then(|| self.warning(Check::NeverSteady, seen, remedy))
    }

    /// Late responses are valid, but there is no rate of responses within the window.
    fn late(&self) -> Option<Finding> {
        let counts = &self.slice.counts;
        let is_late =
            self.is_shorter_than_a_response() && !self.is_too_short() && !self.interrupted;
        let took = counts.latency.quantile(0.5).filter(|_| is_late)?;
        let seen = evidence!("no response came within the window of {window}; half of them took {took} or more";
            window = Quantity::ns(counts.window_ns), took = Quantity::ns(took.ns()));
        let remedy = match self.asked.until {
            Until::Elapsed(_) => {
                "there is no throughput of it: load for several times as long as a response takes (--duration)"
            }
            Until::Requests(_) => {
                "there is no throughput of it: send several times as many requests as there are connections (--requests)"
            }
        };
        Some(self.warning(Check::ValueMissing, seen, remedy))
    }

    /// At a low rate no request may be due in a short window.
    fn nothing_due(&self) -> Option<Finding> {
        let is_none =
            self.slice.counts.due() == 0 && self.asked.open.is_some() && !self.interrupted;
        let seen = evidence!("no request was due in the window of {window}";
            window = Quantity::ns(self.slice.counts.window_ns));
        let remedy = "there is nothing to measure: load for longer (--duration), or at a higher rate (--rate)";
        let finding = || Finding {
            grade: Grade::Invalid,
            ..self.warning(Check::NoSuccess, seen, remedy)
        };
        is_none.then(finding)
    }

    /// The generator stops if no connection accepts requests.
    fn ended_early(&self) -> Option<Finding> {
        let total = self.asked.until.requests()?;
        let due = Some(self.slice.counts.due()).filter(|due| *due < total && !self.interrupted)?;
        let seen = evidence!("{due} of {total} were sent, and then no connection took one";
            due = Quantity::count(due), total = counted(total, "request"));
        let remedy = "the service ended or refuses connections, which no figure and no limit shows: see its log";
        Some(Finding {
            grade: Grade::Invalid,
            ..self.warning(Check::Errors, seen, remedy)
        })
    }

    fn connections_missing(&self) -> Option<Finding> {
        let (alive, asked) = (
            self.slice.counts.connections_alive_at_start,
            self.slice.connections,
        );
        let kept = self.load().is_none_or(|load| load.keep_alive);
        let missing = alive < asked && kept && self.has_success();
        let seen = evidence!("{open} of {asked} were open when the window began";
            open = Quantity::count(alive), asked = counted(asked, "connection"));
        missing.then(|| {
            self.warning(
                Check::ConnectionChurn,
                seen,
                "the others joined when they could",
            )
        })
    }

    /// Equal requests with different responses.
    fn contents_differ(&self) -> Option<Finding> {
        // Responses to users depend on their earlier requests, and requests with values from rows differ.
        if self.load().is_some_and(Load::has_users) {
            return None;
        }
        let request = |at: usize| self.load().and_then(|load| load.requests.get(at));
        let varies = |at: usize| request(at).is_some_and(|request| request.values.is_some());
        let endpoints = self.slice.counts.endpoints.iter().enumerate();
        let differ = endpoints.filter(|(at, endpoint)| endpoint.contents.len() > 1 && !varies(*at));
        let told = differ.map(|(_, endpoint)| {
            let contents = endpoint.contents.len();
            let least = if contents >= CONTENTS_MAX {
                "at least "
            } else {
                ""
            };
            let sampled: u64 = endpoint.contents.iter().map(|seen| seen.count).sum();
            format!(
                "{} has {least}{contents} in {sampled} sampled",
                endpoint.name
            )
        });
        let named = checks::few(told, checks::NAMED_MAX, ", ");
        let seen = format!("the same request has responses of different content: {named}");
        let remedy = "that may be as it should";
        (!named.is_empty()).then(|| self.warning(Check::DifferentBodies, seen.into(), remedy))
    }
}

/// The service had a higher throughput at a rate than in closed loop.
fn capacity_exceeded(
    capacity: Option<&MeasuredWindow<'_>>,
    windows: &[MeasuredWindow<'_>],
) -> Option<Finding> {
    let capacity_per_s = capacity?.throughput_per_s().filter(|per_s| *per_s > 0.0)?;
    let best = windows
        .iter()
        .filter_map(MeasuredWindow::throughput_per_s)
        .reduce(f64::max)?;
    let seen = evidence!("at a rate the service gave {best}, more than the {capacity} of closed loop";
        best = Quantity::per_s(best), capacity = Quantity::per_s(capacity_per_s));
    let remedy = "its saturation was underestimated: it was not warm then, or needs more connections to be busy";
    let exceeded = best > CAPACITY_EXCEEDED * capacity_per_s;
    exceeded.then(|| Finding::warning(Check::Drift, seen, remedy).about([0]))
}
