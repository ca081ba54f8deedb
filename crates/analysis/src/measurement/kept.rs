//! Whether a rate was kept: by a whole slice, and along a ramp, which shows the rate at which a service falls
//! behind. Pure.
//!
//! A *stretch* of a window kept the rate if at least 99 % as many successes arrived in it as requests were
//! due. Due requests are counted one service time earlier, because responses arrive that much later. A
//! stretch may also lack a number that is explained by chance: the requests in flight at its end, or, for
//! random arrivals whose due times were not counted, three standard deviations of their number.
//!
//! This module only compares successes with due requests. Checks determine the cause.

use model::{ArrivalProcess, BUCKET_NS, OpenLoop, RAMP_PARTS, RampPart, Rate};
use stats::{Latencies, Quantile};

use crate::checks::v12_rate_not_kept::SENT_SHARE_MIN;
use crate::checks::v13_client_late::{LAG_MAX_NS, LAG_SHARE_MAX};
use crate::only_if;
use crate::usage::{GENERATOR_SHARE_MAX, QUEUED_SHARE_MAX};
use crate::window::MeasuredWindow;

/// Minimum number of stretches that can show a bend.
const STRETCHES_MIN: usize = 3;
/// Minimum share of the due requests that must succeed.
const SUCCESS_SHARE_MIN: f64 = 0.99;
/// Number of standard deviations explained by chance: exceeded one time in 700.
const CHANCE: f64 = 3.0;
/// Ratio above which a rate is clearly higher.
const MORE: f64 = 1.05;
/// Quantile for the service time between request and response. It is low, so that a backlog within the
/// service is not subtracted.
const SERVICE_TIME_Q: f64 = 0.1;

/// Result of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateKept {
    /// Successes kept up with due requests.
    Up,
    /// A backlog grew.
    Behind,
    /// Responses arrived, but more than 1 % were failed or incomplete.
    Failing,
    /// The client was the bottleneck, so it is unknown whether the service would have kept up.
    ClientLate,
    /// No request succeeded.
    NoSuccess,
    /// No request was due.
    NothingDue,
}

impl RateKept {
    /// Description of the result.
    pub fn words(self) -> &'static str {
        self.told().0
    }

    /// Name in machine-readable output.
    pub fn name(self) -> &'static str {
        self.told().1
    }

    fn told(self) -> (&'static str, &'static str) {
        match self {
            RateKept::Up => ("kept up", "kept_up"),
            RateKept::Behind => ("fell behind", "fell_behind"),
            RateKept::Failing => ("errors", "not_good"),
            RateKept::ClientLate => ("client late", "client_late"),
            RateKept::NoSuccess => ("no success", "no_answer"),
            RateKept::NothingDue => ("nothing was due", "nothing_due"),
        }
    }
}

/// A part of a window, in whole buckets of the slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowPart {
    /// Start, in seconds of the window.
    pub from_s: f64,
    /// End, in seconds of the window.
    pub to_s: f64,
    /// Requests due in it.
    pub due: f64,
    /// Successes in it.
    pub ok: u64,
    /// Whether successes kept up with due requests.
    pub kept: bool,
}

impl WindowPart {
    /// Requests due per second.
    pub fn due_per_s(&self) -> f64 {
        self.due / (self.to_s - self.from_s)
    }

    /// Successes per second.
    pub fn ok_per_s(&self) -> f64 {
        self.ok as f64 / (self.to_s - self.from_s)
    }

    /// Whether the successes clearly exceed this rate.
    fn exceeds(&self, per_s: f64) -> bool {
        let expected = per_s * (self.to_s - self.from_s);
        self.ok as f64 > MORE * expected + CHANCE * expected.sqrt()
    }
}

/// Result of a ramp, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bend {
    /// The service kept up to about this rate and fell behind in at least two stretches above it.
    At(f64),
    /// The service fell behind above this rate, but only in the last stretch, which may be a brief
    /// disturbance.
    Perhaps(f64),
    /// The service kept up to this rate, the highest of the ramp.
    NotUpTo(f64),
    /// The service fell behind from this rate on, the lowest of the ramp.
    AtLowest(f64),
    /// The service fell behind above `kept`, but at another time reached `gave`, which is far higher. The
    /// rate was not the cause.
    Uneven {
        /// The rate up to which the service kept up.
        kept: f64,
        /// The throughput at another time.
        gave: f64,
    },
}

impl MeasuredWindow<'_> {
    /// Result of a constant rate. `None` for other loads.
    pub fn kept(&self) -> Option<RateKept> {
        let (rate, counts) = (self.asked.open?.rate, &self.slice.counts);
        rate.constant_per_s()?;
        let late = self.is_client_late();
        let bad = counts.unexpected() + counts.broken;
        let buckets = counts.successful_per_100_ms.len();
        let open = counts.open.as_ref();
        let behind = open
            .and_then(|open| open.sent_share())
            .is_some_and(|sent| sent < SENT_SHARE_MIN)
            || self
                .stretch(rate, buckets / 2..buckets)
                .is_some_and(|half| !half.kept);
        Some(match () {
            () if counts.due() == 0 => RateKept::NothingDue,
            () if counts.successful == 0 => RateKept::NoSuccess,
            () if bad as f64 > (1.0 - SUCCESS_SHARE_MIN) * counts.due() as f64 => RateKept::Failing,
            () if late || behind && self.is_client_busy() => RateKept::ClientLate,
            () if behind => RateKept::Behind,
            () => RateKept::Up,
        })
    }

    /// Whether the client was late: it had a free connection and did not send.
    fn is_client_late(&self) -> bool {
        let p99_ns = |latencies: &Latencies| {
            latencies
                .quantile(0.99)
                .filter(|_| latencies.resolves(0.99))
                .map(Quantile::ns)
        };
        let late = |open: &OpenLoop| {
            let p99s = p99_ns(&open.schedule_lag).zip(p99_ns(&open.response));
            let slow = p99s.is_some_and(|(lag_ns, response_ns)| {
                lag_ns > LAG_MAX_NS && lag_ns as f64 > LAG_SHARE_MAX * response_ns as f64
            });
            Some(
                slow || open.sent_share()? < SENT_SHARE_MIN
                    && open.queued_share()? <= QUEUED_SHARE_MAX,
            )
        };
        self.slice
            .counts
            .open
            .as_deref()
            .and_then(late)
            .unwrap_or(false)
    }

    fn is_client_busy(&self) -> bool {
        self.slice
            .counts
            .generator
            .busiest_share()
            .is_some_and(|share| share > GENERATOR_SHARE_MAX)
    }

    /// The stretches of a ramp (tenths of it), as far as it got. Empty for other loads.
    pub fn stretches(&self) -> Vec<WindowPart> {
        let ramp = self
            .asked
            .open
            .and_then(|open| Some((open.rate, open.rate.ramp()?)));
        let Some((rate, (.., over))) = ramp else {
            return Vec::new();
        };
        let planned = (over.as_nanos() / u128::from(BUCKET_NS)) as usize;
        let rows = planned.min(RAMP_PARTS);
        let edge =
            |row: usize| (row * planned / rows).min(self.slice.counts.successful_per_100_ms.len());
        (0..rows)
            .filter_map(|row| self.stretch(rate, edge(row)..edge(row + 1)))
            .collect()
    }

    /// The requests due in each of the [stretches](Self::stretches). Empty for other loads.
    pub fn ramp_parts(&self) -> &[RampPart] {
        let open = self.slice.counts.open.as_deref();
        open.map_or(&[], |open| &open.ramp_parts)
    }

    /// Result of a ramp. `None` for other loads, if the ramp was too short, or if the client caused the bend.
    pub fn bend(&self) -> Option<Bend> {
        let clean =
            !self.is_client_late() && !self.is_client_busy() && self.slice.counts.successful > 0;
        bend(self.asked.open.filter(|_| clean)?.rate, &self.stretches())
    }

    /// `None` if the range is empty.
    fn stretch(&self, rate: Rate, buckets: std::ops::Range<usize>) -> Option<WindowPart> {
        let counts = &self.slice.counts;
        let at_s = |bucket: usize| (bucket as u64 * BUCKET_NS).min(counts.window_ns) as f64 / 1e9;
        let (from_s, to_s) = (at_s(buckets.start), at_s(buckets.end));
        only_if(to_s > from_s)?;
        let ok = counts.successful_per_100_ms[buckets]
            .iter()
            .map(|&ok| u64::from(ok))
            .sum();
        let due = |earlier_s: f64| {
            self.due_by(rate, (to_s - earlier_s).max(0.0))
                - self.due_by(rate, (from_s - earlier_s).max(0.0))
        };
        let answerable = due(self.service_time_s());
        let least = SUCCESS_SHARE_MIN * answerable - self.chance(answerable);
        Some(WindowPart {
            from_s,
            to_s,
            due: due(0.0),
            ok,
            kept: ok as f64 >= least,
        })
    }

    /// Requests due in the first seconds of the window: from the counts, interpolated within a bucket. In merged
    /// windows, from the rate.
    fn due_by(&self, rate: Rate, seconds: f64) -> f64 {
        let Some(counted) = self.due_counted() else {
            return rate.due_by(seconds);
        };
        let buckets = seconds * 1e9 / BUCKET_NS as f64;
        let whole = counted
            .iter()
            .take(buckets as usize)
            .map(|count| f64::from(*count))
            .sum::<f64>();
        whole
            + buckets.fract()
                * counted
                    .get(buckets as usize)
                    .map_or(0.0, |count| f64::from(*count))
    }

    /// Requests due in each bucket. `None` if windows were merged.
    fn due_counted(&self) -> Option<&[u32]> {
        let counted = self.slice.counts.open.as_ref()?.due_per_100_ms.as_slice();
        (!counted.is_empty()).then_some(counted)
    }

    /// Number of responses that a stretch may lack by chance.
    fn chance(&self, due: f64) -> f64 {
        let spread = CHANCE * due.sqrt();
        let at_random = match self.asked.open.map(|open| open.process) {
            Some(ArrivalProcess::Poisson) => true,
            Some(ArrivalProcess::Constant) | None => false,
        };
        if at_random && self.due_counted().is_none() {
            return spread;
        }
        // With known due times only requests in flight can be missing, and their number is limited.
        spread.min(f64::from(self.slice.connections) * f64::from(self.lanes))
    }

    fn service_time_s(&self) -> f64 {
        let quantile = self.slice.counts.latency.quantile(SERVICE_TIME_Q);
        // If this quantile has no response, no delay is assumed.
        quantile
            .filter(|quantile| quantile.is_exact())
            .map_or(0.0, |quantile| quantile.ns() as f64 / 1e9)
    }
}

/// Finds the [`Bend`]. A stretch that fell behind below a stretch that kept up was a brief disturbance, not a
/// bend.
fn bend(rate: Rate, stretches: &[WindowPart]) -> Option<Bend> {
    let (from_per_s, to_per_s, _) = rate.ramp()?;
    only_if(stretches.len() >= STRETCHES_MIN)?;
    let mut rising: Vec<&WindowPart> = stretches.iter().collect();
    if to_per_s < from_per_s {
        rising.reverse();
    }
    let highest = |stretch: &WindowPart| rate.at(stretch.from_s).max(rate.at(stretch.to_s));
    let behind = rising
        .iter()
        .rev()
        .take_while(|stretch| !stretch.kept)
        .count();
    let (below, beyond) = rising.split_at(rising.len() - behind);
    let kept = below
        .last()
        .map_or(from_per_s.min(to_per_s), |stretch| highest(stretch));
    // Within chance, the limit may lie inside the last stretch that kept up, so the result is at most the
    // best throughput.
    let most = stretches
        .iter()
        .map(WindowPart::ok_per_s)
        .fold(0.0, f64::max);
    // A service at its limit delivers that limit, which is below the rates of the first stretch beyond.
    let gave = beyond
        .iter()
        .filter(|stretch| stretch.exceeds(highest(beyond[0])));
    let gave = gave.map(|stretch| stretch.ok_per_s()).reduce(f64::max);
    Some(match (below.len(), behind, gave) {
        (_, 0, _) => Bend::NotUpTo(kept),
        (_, _, Some(gave)) => Bend::Uneven { kept, gave },
        (0, _, None) => Bend::AtLowest(kept),
        (_, 1, None) => Bend::Perhaps(kept.min(most)),
        (_, _, None) => Bend::At(kept.min(most)),
    })
}
