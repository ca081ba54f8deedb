//! What was seen of a machine.

use std::time::Duration;

use remote::HostError;
use remote::generators::ClockOffset;
use remote::ssh::{Facts, Fault, Login, Removed, State};

/// A machine that was asked for.
#[derive(Debug)]
pub struct Seen {
    /// As it was asked for.
    pub destination: String,
    /// What is there.
    pub there: Result<There, HostError>,
}

/// What is on a machine.
#[derive(Debug)]
pub struct There {
    /// What its shell says.
    pub facts: Facts,
    /// Round trip of a line.
    pub round_trip: Option<Duration>,
    /// Its clock against ours; `None` where the program is not.
    pub clock: Option<ClockOffset>,
    /// Whether the program was copied just now.
    pub copied: bool,
    /// What was taken away, where that was asked for.
    pub removed: Option<Removed>,
}

impl There {
    pub fn of(facts: Facts) -> There {
        There { facts, round_trip: None, clock: None, copied: false, removed: None }
    }

    /// Compares its clock with ours, if the program is there.
    ///
    /// # Errors
    /// If it does not run.
    pub fn with_clock(self, login: Login) -> Result<There, HostError> {
        if self.facts.state != State::There {
            return Ok(self);
        }
        let channel = login.start(&[crate::REMOTE_AGENT])?;
        let host = channel.name.clone();
        let clock = remote::generators::compare_clocks(channel).map_err(|error| {
            let fault = Fault::Ended { at: "while clocks were compared", words: error.to_string() };
            HostError::Ssh { host, fault: Box::new(fault) }
        })?;
        Ok(There { clock: Some(clock), ..self })
    }
}
