//! One generator of a fleet: whether it is there, how far its clock is, and why it is lost.

use std::io;
use std::time::Duration;

use model::Counts;

use super::{ClockOffset, FleetError};
use crate::clock::monotonic_ns;
use crate::protocol::{Blame, Connection, Failed, Request, Response};

/// How long one may be silent while it is pinged every second. A network that is gone for 5 s may take TCP 2.4 s more, for it waits
/// twice as long after each attempt; and what carries the channel, which notices after 9 s, has better words for it.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(11);

#[derive(Debug)]
pub(crate) struct Member {
    pub connection: Connection,
    pub offset: ClockOffset,
    /// What its machine calls itself, and how many processors it has.
    pub host: String,
    pub processors: u32,
    /// When something last came from it, by our clock.
    pub last_ns: u64,
    /// Why it is gone, until the caller has taken it.
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
    pub fn new(connection: Connection) -> Member {
        let offset = ClockOffset { ns: 0, error_ns: 0 };
        let (host, last_ns) = (String::new(), monotonic_ns());
        Member { connection, offset, host, processors: 1, last_ns, lost: None, alive: true }
    }

    pub fn name(&self) -> String {
        self.connection.name.clone()
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

    pub fn send(&mut self, request: &Request) {
        if self.alive
            && let Err(error) = self.connection.send(request)
        {
            self.lose(self.broken(error));
        }
    }

    /// What came from it, if that is a response and not its end.
    pub fn take(&mut self, came: io::Result<Option<Response>>, waited: bool) -> Option<Response> {
        match came {
            Ok(Some(Response::Failed(Failed { message, blame, .. }))) => {
                let name = self.name();
                self.lose(FleetError::Refused { name, message, by_request: blame == Blame::Request });
                self.connection.end();
            }
            Ok(Some(Response::Ended) | None) => self.lose_gone(waited),
            Ok(Some(response)) => return Some(response),
            Err(error) => self.lose(self.broken(error)),
        }
        None
    }

    fn broken(&self, source: io::Error) -> FleetError {
        FleetError::Channel { name: self.name(), source }
    }

    pub fn lose(&mut self, error: FleetError) {
        // What comes of one that is lost already is the same loss again.
        if self.alive {
            self.alive = false;
            self.lost = Some(error);
        }
    }

    pub fn lose_gone(&mut self, waited: bool) {
        let when = if waited { "before it had responded" } else { "between two windows" };
        self.lose(FleetError::Gone { name: self.name(), when });
    }

    pub fn lose_if_late(&mut self, now_ns: u64, began_ns: u64, longest: Duration) {
        let quiet = Duration::from_nanos(now_ns.saturating_sub(self.last_ns));
        let waited = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        let (limit, when) = if quiet > SILENCE_MAX {
            (SILENCE_MAX, "while it was pinged every second")
        } else if waited > longest {
            (longest, "to a request")
        } else {
            return;
        };
        self.lose(FleetError::TimedOut { name: self.name(), seconds: limit.as_secs(), when });
    }

    pub fn end(&mut self) {
        self.connection.end();
        self.alive = false;
    }
}
