//! What open loop adds to a run: the rate that was asked for and came about, and whether the client or its connections
//! stood in the way. Pure.

use analysis::checks::{LAG_MAX_NS, LAG_SHARE_MAX, QUEUED_SHARE_MAX, SENT_SHARE_MIN};
use load::{Arrivals, Process, Rate};
use model::OpenLoop;
use report::{rate, share};
use stats::Latencies;

use super::outcome::Outcome;
use super::text::duration;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub rate: Rate,
    pub process: Process,
    pub seed: u64,
}

impl Asked {
    /// The name of the process, as the flag has it.
    pub fn process(&self) -> &'static str {
        match self.process {
            Process::Constant => "constant",
            Process::Poisson => "poisson",
        }
    }
}

impl Outcome {
    /// What was asked for in open loop; `None` in closed loop.
    pub fn asked(&self) -> Option<Asked> {
        match self.arrivals {
            Arrivals::Closed => None,
            Arrivals::Open { rate, process, seed } => Some(Asked { rate, process, seed }),
        }
    }

    /// Requests sent per second of the window.
    pub fn sent_per_s(&self) -> Option<f64> {
        self.per_second(self.slice.open.as_ref()?.sent_in_window as f64)
    }

    /// Of the requests due, those sent in the window.
    pub fn sent_share(&self) -> Option<f64> {
        self.of_intended(|open| open.sent_in_window)
    }

    /// Of the requests due, those that found no connection free.
    pub fn queued_share(&self) -> Option<f64> {
        self.of_intended(|open| open.queued)
    }

    fn of_intended(&self, part: impl Fn(&OpenLoop) -> u64) -> Option<f64> {
        let open = self.slice.open.as_ref()?;
        (open.intended > 0).then(|| part(open) as f64 / open.intended as f64)
    }

    /// The client itself was late: it had a connection free and did not send.
    pub(super) fn client_late(&self) -> Option<String> {
        let open = self.slice.open.as_ref()?;
        let lag_ns = p99_ns(&open.schedule_lag).unwrap_or(0);
        let response_ns = p99_ns(&open.response)?;
        let late = lag_ns > LAG_MAX_NS && lag_ns as f64 > LAG_SHARE_MAX * response_ns as f64;
        if late {
            return Some(format!(
                "The client was the bottleneck: though a connection was free, it sent up to {} late (p99), which is part \
                 of the response time. Give it a core of its own, or more --threads.",
                duration(lag_ns)
            ));
        }
        let behind = self.sent_share()? < SENT_SHARE_MIN && self.queued_share()? <= QUEUED_SHARE_MAX;
        behind.then(|| {
            format!(
                "The client was the bottleneck: it sent {} of what was due in the window, though connections were free. \
                 Give it a core of its own, or more --threads.",
                share(self.sent_share().unwrap_or(0.0))
            )
        })
    }

    /// Requests had to wait for a connection.
    pub(super) fn connections_busy(&self) -> Option<String> {
        self.asked()?;
        let queued = self.queued_share().filter(|&queued| queued > QUEUED_SHARE_MAX)?;
        let rates = self.sent_per_s().zip(self.per_second(self.slice.due() as f64));
        let behind = self.sent_share().filter(|&sent| sent < SENT_SHARE_MIN).and(rates);
        let behind = behind.map(|(sent, due)| format!(" {} were due, {} were sent.", rate(due), rate(sent)));
        Some(format!(
            "All connections were busy for {} of arrivals, which waited, and the response time contains the wait: more \
             connections (-c), or the service is overloaded.{}",
            share(queued),
            behind.unwrap_or_default()
        ))
    }
}

/// Of whatever samples there are.
pub(super) fn p99_ns(latencies: &Latencies) -> Option<u64> {
    latencies.quantile(0.99).map(stats::Quantile::ns)
}
