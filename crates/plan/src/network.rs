//! The link between client and entry: what it is in the plan, how it is told, and when it is none.
//!
//! Judges and words only; nothing here makes one.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file;
use crate::problem::Problem;
use crate::site::Site;

/// A link between client and entry, the same in both directions. At least one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// What it carries each way, in bits per second, all connections together; `None` is what the machine can do.
    pub rate_bit_per_s: Option<u64>,
    /// How long a packet is under way each way; `None` is next to nothing.
    pub delay: Option<Duration>,
}

impl fmt::Display for Network {
    /// `20 Mbit/s, 5 ms each way`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate_bit_per_s.map(rate_text);
        let parts: Vec<String> = rate.into_iter().chain(self.delay.map(delay_text)).collect();
        write!(formatter, "{} each way", parts.join(", "))
    }
}

fn rate_text(bit_per_s: u64) -> String {
    match bit_per_s as f64 {
        bits if bits >= 1e9 => format!("{} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{} Mbit/s", bits / 1e6),
        bits => format!("{} kbit/s", bits / 1e3),
    }
}

fn delay_text(delay: Duration) -> String {
    if delay >= Duration::from_millis(1) || delay.is_zero() {
        format!("{} ms", delay.as_secs_f64() * 1e3)
    } else {
        format!("{} µs", delay.as_micros())
    }
}

/// The link of a variant's load.
pub(crate) fn network(site: &mut Site<'_>, written: Option<file::Network>) -> Option<Network> {
    let file::Network { rate, delay } = written?;
    if rate.is_none() && delay.is_none() && site.source.complete {
        let message = "`load.network` has neither `rate` nor `delay`";
        let problem =
            Problem::new(site.tree.place(&["load", "network"]), message, "expected at least one of them");
        site.report(problem.hint("for example network = { rate = \"20mbit\", delay = \"5ms\" }"));
    }
    Some(Network { rate_bit_per_s: rate.map(|rate| rate.0), delay: delay.map(|delay| delay.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_reads_well() {
        let text = |bits: Option<u64>, us: Option<u64>| {
            Network { rate_bit_per_s: bits, delay: us.map(Duration::from_micros) }.to_string()
        };
        assert_eq!(text(Some(20_000_000), Some(5_000)), "20 Mbit/s, 5 ms each way");
        assert_eq!(text(Some(1_500_000), None), "1.5 Mbit/s each way");
        assert_eq!(text(None, Some(250)), "250 µs each way");
        assert_eq!(text(Some(8_000), Some(0)), "8 kbit/s, 0 ms each way");
    }
}
