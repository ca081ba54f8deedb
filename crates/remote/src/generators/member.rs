//! One generator of a fleet as its lines show it: whether it is there, how far its clock is, and why it is lost. Pure but for the lines
//! that it is told.

use std::io;
use std::time::Duration;

use model::Counts;

use crate::generators::clock::monotonic_ns;
use crate::generators::{Answer, ClockOffset, FleetError, Order, Remote};

/// How long one may be silent while it is pinged every second. A network that is gone for 5 s may take TCP 2.4 s more, for it waits
/// twice as long after each attempt; and what carries the channel, which notices after 9 s, has better words for it.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(11);

#[derive(Debug)]
pub(crate) struct Member {
    pub remote: Remote,
    pub offset: ClockOffset,
    /// What its machine calls itself, and how many processors it has.
    pub host: String,
    pub processors: u32,
    /// When something last came from it, by our clock.
    pub heard_ns: u64,
    /// Why it is gone, until it is told.
    pub lost: Option<FleetError>,
    pub alive: bool,
}

/// One generator's part in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The generator.
    pub name: String,
    /// What its machine calls itself.
    pub host: String,
    /// How much later than agreed it began, in nanoseconds, by its own clock.
    pub late_ns: u64,
    /// How wrong its begin may be besides, in nanoseconds, because clocks cannot be compared better.
    pub clock_error_ns: u64,
    /// CPU share of its busiest thread, 0 to 1; `None` where nothing was measured.
    pub busiest_share: Option<f64>,
    /// CPU time of its load threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Share of its machine's CPU time that went to others.
    pub steal_share: Option<f64>,
    /// Requests that it sent.
    pub sent: u64,
    /// Connections that it opened.
    pub opened: u64,
    /// How late it sent requests for which a connection was free, at p99, in nanoseconds; `None` in closed loop.
    pub lag_p99_ns: Option<u64>,
}

impl Member {
    pub fn new(remote: Remote) -> Member {
        let offset = ClockOffset { ns: 0, error_ns: 0 };
        let (host, heard_ns) = (String::new(), monotonic_ns());
        Member { remote, offset, host, processors: 1, heard_ns, lost: None, alive: true }
    }

    pub fn name(&self) -> String {
        self.remote.name.clone()
    }

    pub fn part(&self, late_ns: u64, steal_share: Option<f64>, counts: &Counts) -> Part {
        Part {
            name: self.name(),
            host: self.host.clone(),
            late_ns,
            clock_error_ns: self.offset.error_ns,
            busiest_share: counts.generator.busiest_share(),
            cpu_ns: counts.generator.cpu_ns.iter().sum(),
            steal_share,
            sent: counts.sent,
            opened: counts.connections_opened,
            lag_p99_ns: counts
                .open
                .as_ref()
                .and_then(|open| open.schedule_lag.quantile(0.99))
                .map(|quantile| quantile.ns()),
        }
    }

    pub fn tell(&mut self, order: &Order) {
        if self.alive
            && let Err(error) = self.remote.tell(order)
        {
            self.lose(error);
        }
    }

    /// What came from it, if that is an answer and not its end.
    pub fn heard(&mut self, answer: io::Result<Option<Answer>>, waited: bool) -> Option<Answer> {
        match answer {
            Ok(Some(Answer::Failed { message, by_specification })) => {
                let name = self.name();
                self.lose(FleetError::Refused { name, message, by_specification });
            }
            Ok(Some(Answer::Ended) | None) => self.lose_quietly(waited),
            Ok(Some(answer)) => return Some(answer),
            Err(error) => self.lose(self.remote.broken(error)),
        }
        None
    }

    pub fn lose(&mut self, error: FleetError) {
        // What is told of one that is lost already is the same loss again.
        if self.alive {
            self.alive = false;
            self.lost = Some(error);
        }
    }

    /// One that ends while nothing is asked of it is missed when something is.
    pub fn lose_quietly(&mut self, waited: bool) {
        let when = if waited { "before it had answered" } else { "between two windows" };
        self.lose(FleetError::Gone { name: self.name(), when });
    }

    pub fn lose_if_silent(&mut self, now_ns: u64, began_ns: u64, longest: Duration) {
        let silent = Duration::from_nanos(now_ns.saturating_sub(self.heard_ns));
        let waited = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        let (limit, when) = if silent > SILENCE_MAX {
            (SILENCE_MAX, "while it was pinged every second")
        } else if waited > longest {
            (longest, "with what was asked of it")
        } else {
            return;
        };
        self.lose(FleetError::Silent { name: self.name(), seconds: limit.as_secs(), when });
    }

    /// It may be gone already, and then there is nobody to tell.
    pub fn end(&mut self) {
        let _ = self.remote.tell(&Order::End);
        self.alive = false;
    }
}
