//! Generators on other machines: their loads, their clocks, and the merged slice.
//!
//! This module does not start processes, print, or judge measurements.

mod fleet;

pub use fleet::{Fleet, FleetError, FleetWindow};
use load::{LoadError, LoadSpec, Until};
use machine::CpuTicks;

use crate::control::Control;
use crate::protocol::{GeneratorRequest, GeneratorResponse};
use crate::{Blame, Error};

// The generator of an agent. It runs one load after another, window by window.

/// The load generator on an agent's machine.
pub(crate) struct GeneratorAgent {
    control: Control,
    generator: Option<load::Generator>,
    /// Number and end of the window that `run` may start.
    prepared: Option<(u64, Until)>,
}

impl GeneratorAgent {
    pub fn new(control: Control) -> GeneratorAgent {
        GeneratorAgent {
            control,
            generator: None,
            prepared: None,
        }
    }

    pub fn carry_out(&mut self, request: GeneratorRequest) -> Result<GeneratorResponse, Error> {
        let refused = |message: String| Err(Error::new(message).by(Blame::Request));
        match (request, self.prepared.take(), &mut self.generator) {
            (GeneratorRequest::Begin { spec }, ..) => self.begin(*spec),
            (GeneratorRequest::Prepare { number, until }, _, Some(generator)) => {
                generator.prepare(until);
                self.prepared = Some((number, until));
                Ok(GeneratorResponse::Prepared { number })
            }
            (GeneratorRequest::Prepare { .. }, _, None) => {
                refused("no load yet: send {\"generator\":{\"begin\":{\"spec\":{…}}}} first".into())
            }
            (
                GeneratorRequest::Run {
                    number,
                    start_at_ns,
                },
                Some((prepared, until)),
                Some(generator),
            ) if prepared == number => Ok(window(generator, number, until, start_at_ns)),
            (GeneratorRequest::Run { number, .. }, ..) => {
                refused(format!("window {number} was not prepared"))
            }
            (GeneratorRequest::Rest, ..) => {
                self.generator = None;
                Ok(GeneratorResponse::Resting)
            }
        }
    }

    fn begin(&mut self, spec: LoadSpec) -> Result<GeneratorResponse, Error> {
        // Closes connections of the old load before the new one opens any.
        self.generator = None;
        let generator = load::Generator::start(spec).map_err(|error| {
            let blame = match error {
                LoadError::Spec { .. } => Blame::Request,
                _ => Blame::Machine,
            };
            Error::new(error.to_string()).by(blame)
        })?;
        if !self.control.watch(generator.handle()) {
            return Err(Error::new("the agent is ending").by(Blame::Cancelled));
        }
        self.generator = Some(generator);
        Ok(GeneratorResponse::Begun)
    }
}

fn window(
    generator: &mut load::Generator,
    number: u64,
    until: Until,
    start_at_ns: u64,
) -> GeneratorResponse {
    let before = CpuTicks::read();
    let mut counts = generator.load(until, start_at_ns);
    let passed = before
        .zip(CpuTicks::read())
        .map(|(before, after)| after.since(before));
    let steal_share = passed
        .filter(|passed| passed.total() > 0)
        .map(CpuTicks::steal_share);
    counts.pack();
    let late_ns = if start_at_ns == 0 {
        0
    } else {
        counts.started_ns.saturating_sub(start_at_ns)
    };
    GeneratorResponse::Slice {
        number,
        late_ns,
        steal_share,
        counts: Box::new(counts),
    }
}

// Offset of a generator's clock from ours, measured with pings over its channel.
//
// ```text
// ours    ── sent ───────────────── received ──►       offset = theirs − (sent + received) / 2
//               ╲                 ╱                    error: at most (received − sent) / 2, however long each
// theirs  ────── clock_ns ────────────────────►        direction took
// ```
// The ping with the shortest round trip is used, because it has the smallest error (Cristian, Probabilistic
// clock synchronization, Distributed Computing 3, 1989). The clock filter of NTP does the same (RFC 5905,
// section 10).

/// How far the clock of a generator is ahead of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Their time minus ours, in nanoseconds. May have any size, because each clock starts with its machine.
    pub ns: i128,
    /// Maximum error in either direction, in nanoseconds.
    pub error_ns: u64,
}

impl ClockOffset {
    /// Offset from one ping: when it was sent and when its response arrived, by our clock, and when it was
    /// answered, by theirs.
    fn of(sent_ns: u64, clock_ns: u64, received_ns: u64) -> ClockOffset {
        let middle = (i128::from(sent_ns) + i128::from(received_ns)) / 2;
        let error_ns = received_ns.saturating_sub(sent_ns).div_ceil(2);
        ClockOffset {
            ns: i128::from(clock_ns) - middle,
            error_ns,
        }
    }

    /// Converts our time to theirs. 0 for times before their clock started.
    pub fn theirs(self, ours_ns: u64) -> u64 {
        clamped(i128::from(ours_ns) + self.ns)
    }

    /// Converts their time to ours.
    pub fn ours(self, theirs_ns: u64) -> u64 {
        clamped(i128::from(theirs_ns) - self.ns)
    }
}

fn clamped(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error_however_unequal_the_ways_are(
            offset in -1_000_000_000_000_000i64..1_000_000_000_000_000,
            ways in proptest::collection::vec((0u64..500_000_000, 0u64..500_000_000), 1..20),
        ) {
            let ours = 10_000_000_000_000_000u64;
            let theirs = |ns: u64| (ns as i64 + offset) as u64;
            let of = |(there, back): &(u64, u64)| {
                ClockOffset::of(ours, theirs(ours + there), ours + there + back)
            };
            let found = ways.iter().map(of).min_by_key(|offset| offset.error_ns).unwrap();
            prop_assert!((found.ns - i128::from(offset)).unsigned_abs() <= u128::from(found.error_ns) + 1);
            let shortest = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(found.error_ns, shortest.div_ceil(2));
            prop_assert_eq!(found.ours(found.theirs(ours)), ours);
        }
    }

    #[test]
    fn a_time_before_their_clock_began_is_its_begin() {
        let offset = ClockOffset {
            ns: -1_000,
            error_ns: 0,
        };
        assert_eq!((offset.theirs(400), offset.theirs(1_400)), (0, 400));
    }
}
