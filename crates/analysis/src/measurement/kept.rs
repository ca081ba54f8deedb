//! Whether a rate was kept: of a whole slice, and along a ramp, where it shows what the service bends at. Pure.
//!
//! A *stretch* of a window was kept if successes came in it as requests were due, 99 % of them at least. Due are the
//! requests of a service time earlier, for a response is no sooner there; and a stretch may lack what is chance: the
//! requests that happen to be under way at its end; where nobody has counted when requests were due, and they came at random, three standard
//! deviations of their number.
//!
//! It judges successes against requests due and nothing else; whose fault it was is said by checks.

use model::{BUCKET_NS, OpenLoop, Process, Rate};
use stats::{Latencies, Quantile};

use super::Window;
use crate::checks::{GENERATOR_SHARE_MAX, LAG_MAX_NS, LAG_SHARE_MAX, QUEUED_SHARE_MAX, SENT_SHARE_MIN};
use crate::only_if;

/// Into so many stretches a ramp is divided.
pub const STRETCHES: usize = 10;
/// Fewer of them show no bend.
const STRETCHES_MIN: usize = 3;
/// Of the requests due, this share has to succeed.
const SUCCESS_SHARE_MIN: f64 = 0.99;
/// So many standard deviations are still chance: one time in 700.
const CHANCE: f64 = 3.0;
/// More than this times a rate is clearly more.
const MORE: f64 = 1.05;
/// The service time by which responses follow requests: a low quantile, so that a backlog within the service does not
/// excuse itself.
const SERVICE_TIME_Q: f64 = 0.1;

/// What became of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Successes came as requests were due.
    Up,
    /// They did not: a backlog grew.
    Behind,
    /// Responses came, but more than 1 % of them failed, or were not whole.
    Failing,
    /// The client was the bottleneck, so that it is not known whether the service would have kept up.
    ClientLate,
    /// Nothing succeeded at all.
    NoSuccess,
    /// No request was due.
    NothingDue,
}

impl Kept {
    /// In words.
    pub fn words(self) -> &'static str {
        self.told().0
    }

    /// As programs know it.
    pub fn name(self) -> &'static str {
        self.told().1
    }

    fn told(self) -> (&'static str, &'static str) {
        match self {
            Kept::Up => ("kept up", "kept_up"),
            Kept::Behind => ("fell behind", "fell_behind"),
            Kept::Failing => ("errors", "not_good"),
            Kept::ClientLate => ("client late", "client_late"),
            Kept::NoSuccess => ("no success", "no_answer"),
            Kept::NothingDue => ("nothing was due", "nothing_due"),
        }
    }
}

/// A part of a window, in whole buckets of the slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Its begin, in seconds of the window.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Requests due in it.
    pub due: f64,
    /// Successes that came in it.
    pub ok: u64,
    /// Whether they came as requests were due.
    pub kept: bool,
}

impl Stretch {
    /// Requests due per second in it.
    pub fn due_per_s(&self) -> f64 {
        self.due / (self.to_s - self.from_s)
    }

    /// Successes per second in it.
    pub fn ok_per_s(&self) -> f64 {
        self.ok as f64 / (self.to_s - self.from_s)
    }

    /// Whether it had clearly more successes than this rate makes.
    fn exceeds(&self, per_s: f64) -> bool {
        let expected = per_s * (self.to_s - self.from_s);
        self.ok as f64 > MORE * expected + CHANCE * expected.sqrt()
    }
}

/// What a ramp says about the service, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bend {
    /// It kept up to about this rate and fell behind in at least two stretches beyond.
    At(f64),
    /// It fell behind beyond this rate, in the last stretch only: that may be a hiccup.
    Perhaps(f64),
    /// It kept up to this rate, the highest there was.
    NotUpTo(f64),
    /// It fell behind from this rate on, the lowest there was.
    AtLowest(f64),
    /// It fell behind beyond `kept`, but at another time gave `gave`, which is far more: the rate was not what held it
    /// back.
    Uneven {
        /// The rate up to which it kept up.
        kept: f64,
        /// What it gave at another time.
        gave: f64,
    },
}

impl Window<'_> {
    /// What became of a constant rate; `None` for another load.
    pub fn kept(&self) -> Option<Kept> {
        let (rate, counts) = (self.asked.open?.rate, &self.slice.counts);
        rate.constant_per_s()?;
        let late = self.is_client_late();
        let bad = counts.unexpected() + counts.broken;
        let buckets = counts.successful_per_100_ms.len();
        let open = counts.open.as_ref();
        let behind = open.and_then(|open| open.sent_share()).is_some_and(|sent| sent < SENT_SHARE_MIN)
            || self.stretch(rate, buckets / 2..buckets).is_some_and(|half| !half.kept);
        Some(match () {
            () if counts.due() == 0 => Kept::NothingDue,
            () if counts.successful == 0 => Kept::NoSuccess,
            () if bad as f64 > (1.0 - SUCCESS_SHARE_MIN) * counts.due() as f64 => Kept::Failing,
            () if late || behind && self.is_client_busy() => Kept::ClientLate,
            () if behind => Kept::Behind,
            () => Kept::Up,
        })
    }

    /// The client itself was late: it had a connection free and did not send.
    fn is_client_late(&self) -> bool {
        let p99_ns = |latencies: &Latencies| {
            latencies.quantile(0.99).filter(|_| latencies.resolves(0.99)).map(Quantile::ns)
        };
        let late = |open: &OpenLoop| {
            let p99s = p99_ns(&open.schedule_lag).zip(p99_ns(&open.response));
            let slow = p99s.is_some_and(|(lag_ns, response_ns)| {
                lag_ns > LAG_MAX_NS && lag_ns as f64 > LAG_SHARE_MAX * response_ns as f64
            });
            Some(slow || open.sent_share()? < SENT_SHARE_MIN && open.queued_share()? <= QUEUED_SHARE_MAX)
        };
        self.slice.counts.open.as_deref().and_then(late).unwrap_or(false)
    }

    fn is_client_busy(&self) -> bool {
        self.slice.counts.generator.busiest_share().is_some_and(|share| share > GENERATOR_SHARE_MAX)
    }

    /// The stretches of a ramp, tenths of it, as far as it came; none of another load.
    pub fn stretches(&self) -> Vec<Stretch> {
        let ramp = self.asked.open.and_then(|open| Some((open.rate, open.rate.ramp()?)));
        let Some((rate, (.., over))) = ramp else { return Vec::new() };
        let planned = (over.as_nanos() / u128::from(BUCKET_NS)) as usize;
        let rows = planned.min(STRETCHES);
        let edge = |row: usize| (row * planned / rows).min(self.slice.counts.successful_per_100_ms.len());
        (0..rows).filter_map(|row| self.stretch(rate, edge(row)..edge(row + 1))).collect()
    }

    /// What a ramp says about the service; `None` where it says nothing: another load, one that was too short, or one
    /// whose bend is the client's.
    pub fn bend(&self) -> Option<Bend> {
        let clean = !self.is_client_late() && !self.is_client_busy() && self.slice.counts.successful > 0;
        bend(self.asked.open.filter(|_| clean)?.rate, &self.stretches())
    }

    /// `None` if there is nothing of it.
    fn stretch(&self, rate: Rate, buckets: std::ops::Range<usize>) -> Option<Stretch> {
        let counts = &self.slice.counts;
        let at_s = |bucket: usize| (bucket as u64 * BUCKET_NS).min(counts.window_ns) as f64 / 1e9;
        let (from_s, to_s) = (at_s(buckets.start), at_s(buckets.end));
        only_if(to_s > from_s)?;
        let ok = counts.successful_per_100_ms[buckets].iter().map(|&ok| u64::from(ok)).sum();
        let due = |earlier_s: f64| {
            self.due_by(rate, (to_s - earlier_s).max(0.0)) - self.due_by(rate, (from_s - earlier_s).max(0.0))
        };
        let answerable = due(self.service_time_s());
        let least = SUCCESS_SHARE_MIN * answerable - self.chance(answerable);
        Some(Stretch { from_s, to_s, due: due(0.0), ok, kept: ok as f64 >= least })
    }

    /// Requests that were due in the first so many seconds of the window: counted, and evenly within a bucket; by the rate in records that
    /// do not count them.
    fn due_by(&self, rate: Rate, seconds: f64) -> f64 {
        let Some(counted) = self.due_counted() else { return rate.due_by(seconds) };
        let buckets = seconds * 1e9 / BUCKET_NS as f64;
        let whole = counted.iter().take(buckets as usize).map(|count| f64::from(*count)).sum::<f64>();
        whole + buckets.fract() * counted.get(buckets as usize).map_or(0.0, |count| f64::from(*count))
    }

    /// How many requests were due in each bucket; `None` in records that do not say.
    fn due_counted(&self) -> Option<&[u32]> {
        let counted = self.slice.counts.open.as_ref()?.due_per_100_ms.as_slice();
        (!counted.is_empty()).then_some(counted)
    }

    /// How many responses a stretch may lack by chance.
    fn chance(&self, due: f64) -> f64 {
        let spread = CHANCE * due.sqrt();
        let at_random = match self.asked.open.map(|open| open.process) {
            Some(Process::Poisson) => true,
            Some(Process::Constant) | None => false,
        };
        if at_random && self.due_counted().is_none() {
            return spread;
        }
        // When requests were due is known: only those under way can be missing, and only so many can be under way.
        spread.min(f64::from(self.slice.connections) * f64::from(self.lanes))
    }

    fn service_time_s(&self) -> f64 {
        let quantile = self.slice.counts.latency.quantile(SERVICE_TIME_Q);
        // Where so many had no response nothing is excused.
        quantile.filter(|quantile| quantile.is_exact()).map_or(0.0, |quantile| quantile.ns() as f64 / 1e9)
    }
}

/// See [`Bend`]. A stretch that fell behind before one that kept up at a higher rate was a hiccup, and no bend.
fn bend(rate: Rate, stretches: &[Stretch]) -> Option<Bend> {
    let (from_per_s, to_per_s, _) = rate.ramp()?;
    only_if(stretches.len() >= STRETCHES_MIN)?;
    let mut rising: Vec<&Stretch> = stretches.iter().collect();
    if to_per_s < from_per_s {
        rising.reverse();
    }
    let highest = |stretch: &Stretch| rate.at(stretch.from_s).max(rate.at(stretch.to_s));
    let behind = rising.iter().rev().take_while(|stretch| !stretch.kept).count();
    let (below, beyond) = rising.split_at(rising.len() - behind);
    let kept = below.last().map_or(from_per_s.min(to_per_s), |stretch| highest(stretch));
    // The limit may lie within the last stretch that was kept, by what chance allows: never claim more than was given.
    let most = stretches.iter().map(Stretch::ok_per_s).fold(0.0, f64::max);
    // A service at its limit gives what the limit is, which the first stretch beyond has passed.
    let gave = beyond.iter().filter(|stretch| stretch.exceeds(highest(beyond[0])));
    let gave = gave.map(|stretch| stretch.ok_per_s()).reduce(f64::max);
    Some(match (below.len(), behind, gave) {
        (_, 0, _) => Bend::NotUpTo(kept),
        (_, _, Some(gave)) => Bend::Uneven { kept, gave },
        (0, _, None) => Bend::AtLowest(kept),
        (_, 1, None) => Bend::Perhaps(kept.min(most)),
        (_, _, None) => Bend::At(kept.min(most)),
    })
}
