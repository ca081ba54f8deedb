//! Periods in which no response arrives at one thread, detected without a timer: each response ends one.
//!
//! A response costs one comparison here. Whether a period is long for the requests that waited is decided
//! when the slice is over. This module reads no clock.

use model::{SILENCE_MIN_NS, Silence};
use stats::{Latencies, Quantile};

/// A silence is longer than this multiple of the p99 of an endpoint's other requests.
const USUAL_FACTOR: u64 = 3;
const USUAL_Q: f64 = 0.99;
/// Maximum number of periods stored per slice: the longest.
const STRETCHES_MAX: usize = 1024;

/// Watches one thread's responses.
#[derive(Debug)]
pub(crate) struct SilenceWatch {
    /// Start of the window.
    pub(crate) started_ns: u64,
    /// Time of the last response, or start of the window.
    last_ns: u64,
    /// Time since which a request has waited after that. `u64::MAX` if none waits.
    waiting_ns: u64,
    /// Requests in flight, by endpoint.
    in_flight: Box<[u32]>,
    /// Requests that ended without a response since the last response, by endpoint. All 0 unless `has_lost`.
    lost: Box<[u32]>,
    has_lost: bool,
    stretches: Vec<SilentSpan>,
}

/// A period without a response. Times are absolute.
#[derive(Debug)]
struct SilentSpan {
    from_ns: u64,
    waiting_ns: u64,
    to_ns: u64,
    /// Requests that waited in it, by endpoint.
    waiting: Box<[u32]>,
}

impl SilenceWatch {
    pub(crate) fn new(endpoints: usize) -> SilenceWatch {
        SilenceWatch {
            started_ns: 0,
            last_ns: u64::MAX,
            waiting_ns: u64::MAX,
            in_flight: vec![0; endpoints].into(),
            lost: vec![0; endpoints].into(),
            has_lost: false,
            stretches: Vec::new(),
        }
    }

    /// Begins the window.
    pub(crate) fn open_window(&mut self, started_ns: u64) {
        (self.started_ns, self.last_ns) = (started_ns, started_ns);
        let busy = self.in_flight.iter().any(|count| *count > 0);
        self.waiting_ns = if busy { started_ns } else { u64::MAX };
    }

    /// Records the start of a request.
    pub(crate) fn begin(&mut self, endpoint: u16, now_ns: u64) {
        self.in_flight[usize::from(endpoint)] += 1;
        if self.waiting_ns == u64::MAX {
            self.waiting_ns = now_ns;
        }
    }

    /// Records a request that ended without a response.
    pub(crate) fn lose(&mut self, endpoint: u16) {
        self.in_flight[usize::from(endpoint)] -= 1;
        self.lost[usize::from(endpoint)] += 1;
        self.has_lost = true;
    }

    /// Records a response. `others` is the number of requests still in flight.
    #[inline]
    pub(crate) fn response(&mut self, endpoint: u16, now_ns: u64, others: u32) {
        if now_ns.saturating_sub(self.last_ns) >= SILENCE_MIN_NS {
            self.end_stretch(now_ns);
        }
        if std::mem::take(&mut self.has_lost) {
            self.lost.fill(0);
        }
        self.in_flight[usize::from(endpoint)] -= 1;
        self.last_ns = now_ns;
        self.waiting_ns = if others > 0 { now_ns } else { u64::MAX };
    }

    /// Excludes a period that ended now in which the thread itself was not running and saw no arrivals.
    pub(crate) fn was_away(&mut self, away_ns: u64) {
        self.last_ns = self.last_ns.saturating_add(away_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(away_ns);
    }

    #[cold]
    fn end_stretch(&mut self, to_ns: u64) {
        let (from_ns, waiting_ns) = (self.last_ns, self.waiting_ns);
        let waiting = self
            .in_flight
            .iter()
            .zip(&self.lost)
            .map(|(under_way, lost)| under_way + lost)
            .collect();
        self.stretches.push(SilentSpan {
            from_ns,
            waiting_ns,
            to_ns,
            waiting,
        });
        if self.stretches.len() > STRETCHES_MAX {
            let lengths = self.stretches.iter().map(SilentSpan::waited_ns).enumerate();
            let shortest = lengths
                .min_by_key(|(_, waited_ns)| *waited_ns)
                .map_or(0, |(place, _)| place);
            self.stretches.remove(shortest);
        }
    }

    /// Ends the slice and returns its silences in order. `known` has the latencies of each endpoint.
    /// `usual_ns` has usual latencies from earlier slices, used if this slice has none.
    pub(crate) fn finish(
        mut self,
        now_ns: u64,
        known: &[Option<&Latencies>],
        usual_ns: &mut [Option<u64>],
    ) -> Vec<Silence> {
        let mut last_ns = self.last_ns;
        if now_ns.saturating_sub(last_ns) >= SILENCE_MIN_NS {
            self.end_stretch(now_ns);
            last_ns = now_ns;
        }
        let since_start = |ns: u64| {
            if ns == u64::MAX {
                ns
            } else {
                ns.saturating_sub(self.started_ns)
            }
        };
        let stretch = |stretch: &SilentSpan| {
            let waiting_ns = if stretch.is_unusual(known, usual_ns) {
                stretch.waiting_ns
            } else {
                u64::MAX
            };
            let [from_ns, waiting_ns, to_ns] =
                [stretch.from_ns, waiting_ns, stretch.to_ns].map(since_start);
            Silence {
                from_ns,
                waiting_ns,
                to_ns,
            }
        };
        let mut silent: Vec<Silence> = self.stretches.iter().map(stretch).collect();
        // After its end a thread does not keep others from being silent.
        silent.push(Silence {
            from_ns: since_start(last_ns),
            waiting_ns: u64::MAX,
            to_ns: u64::MAX,
        });
        if self.stretches.is_empty() {
            self.note_usual(now_ns, known, usual_ns);
        }
        silent
    }

    /// Stores the usual latencies for later slices. For many short windows the first is enough, because this
    /// takes time.
    fn note_usual(&self, now_ns: u64, known: &[Option<&Latencies>], usual_ns: &mut [Option<u64>]) {
        let is_long = now_ns.saturating_sub(self.started_ns) >= SILENCE_MIN_NS;
        for (usual_ns, latencies) in usual_ns.iter_mut().zip(known) {
            if is_long || usual_ns.is_none() {
                let quantile = latencies.and_then(|latencies| latencies.quantile(USUAL_Q));
                *usual_ns = quantile.map(Quantile::ns).or(*usual_ns);
            }
        }
    }
}

impl SilentSpan {
    fn waited_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.waiting_ns)
    }

    /// Whether requests of any endpoint waited for much longer than others of it. Never true for an endpoint
    /// that is always slow, or whose other latencies are unknown.
    fn is_unusual(&self, known: &[Option<&Latencies>], usual_ns: &[Option<u64>]) -> bool {
        let waiting = self
            .waiting
            .iter()
            .zip(known)
            .zip(usual_ns)
            .filter(|((waiting, _), _)| **waiting > 0);
        let mut usual = waiting.filter_map(|((waiting, known), earlier_ns)| {
            let of_others = known.and_then(|known| usual_of_others(known, u64::from(*waiting)));
            of_others.or(*earlier_ns)
        });
        usual.any(|usual_ns| self.waited_ns() > usual_ns.saturating_mul(USUAL_FACTOR))
    }
}

/// The p99 of all but the slowest `waiting` requests. `None` if there are no others.
fn usual_of_others(latencies: &Latencies, waiting: u64) -> Option<u64> {
    let count = latencies.count();
    let others = count.checked_sub(waiting).filter(|others| *others > 0)?;
    Some(
        latencies
            .quantile(USUAL_Q * others as f64 / count as f64)?
            .ns(),
    )
}

#[cfg(test)]
mod tests;
