//! Thresholds of lost CPU time: CPU steal, other processes, and CPU quotas.
//!
//! Findings, dropped blocks, the live view and `doctor` all read this table, so a level means the same
//! everywhere. This module does not measure.

use crate::quantity::share;

/// Share of CPU steal below which a host is quiet.
pub const STEAL_SHARE_NOTED: f64 = 0.005;
/// Maximum share of CPU time taken by the host (CPU steal) that intervals do not show.
pub const STEAL_SHARE_MAX: f64 = 0.02;
/// Maximum CPU steal in a block that counts, as a share of the CPU time.
///
/// With turns of 20 ms moderate steal affects all variants alike, and a dropped block has to be measured
/// again. With 36 % of steal the ratios of two copies scattered by 8.4 %, with little steal by 2.4 to 4.6 %
/// (`docs/decisions/0010-turns.md`): such a block adds the noise of three to twelve others. A fifth is half
/// way between.
pub const GROSS_STEAL_SHARE: f64 = 0.2;

/// Share of the CPU time that other processes use on an idle system. Values counted in clock ticks are 1 or
/// 2 % too high for short slices.
pub const OTHERS_SHARE_NOTED: f64 = 0.02;
/// Maximum share of the available CPU time that other processes may use before intervals get wider.
pub const OTHERS_SHARE_MAX: f64 = 0.05;
/// Maximum share of the available CPU time that other processes may use in a block that counts. Not below the
/// limit for steal: steal is time that was wanted, while other processes may use time that would have been
/// idle.
pub const GROSS_OTHERS_SHARE: f64 = 0.2;

/// Maximum share of the measured time in which a quota may throttle services. A quota that is reached at all
/// is reached in every period of 100 ms, so a clean run has no throttling.
pub const THROTTLED_SHARE_MAX: f64 = 0.01;
/// Maximum time for which CPU quotas may throttle control groups in a block that counts, as a share of its
/// windows. The kernel sums over processors, so with two of them it is a tenth on each.
pub const GROSS_THROTTLED_SHARE: f64 = 0.2;

/// A cause of lost CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuLoss {
    /// The hypervisor gave processors to other guests.
    Steal,
    /// Other processes on the machine.
    Others,
    /// A quota throttled the run's control groups.
    Quota,
}

/// Effect of lost CPU time, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuLossLevel {
    /// As on a quiet machine.
    Quiet,
    /// More than on a quiet machine, without an effect on intervals.
    Noted,
    /// Intervals get wider.
    WidensIntervals,
    /// A block with this loss does not count.
    DropsBlock,
}

impl CpuLoss {
    /// The level of this share of the CPU time.
    pub fn level(self, share: f64) -> CpuLossLevel {
        let (noted, widens, drops) = match self {
            CpuLoss::Steal => (STEAL_SHARE_NOTED, STEAL_SHARE_MAX, GROSS_STEAL_SHARE),
            CpuLoss::Others => (OTHERS_SHARE_NOTED, OTHERS_SHARE_MAX, GROSS_OTHERS_SHARE),
            CpuLoss::Quota => (0.0, THROTTLED_SHARE_MAX, GROSS_THROTTLED_SHARE),
        };
        if share > drops {
            CpuLossLevel::DropsBlock
        } else if share > widens {
            CpuLossLevel::WidensIntervals
        } else if share > noted {
            CpuLossLevel::Noted
        } else {
            CpuLossLevel::Quiet
        }
    }

    /// The loss in words.
    pub fn words(self, of_time: f64) -> String {
        let of_time = share(of_time);
        match self {
            CpuLoss::Steal => format!("CPU steal was {of_time}"),
            CpuLoss::Others => format!("other processes used {of_time} of the CPU time"),
            CpuLoss::Quota => {
                format!("a quota of CPU time held the run back for {of_time} of the time")
            }
        }
    }
}

impl CpuLossLevel {
    /// The effect in words, after the amount. Empty if there is none.
    pub fn effect(self) -> &'static str {
        match self {
            CpuLossLevel::Quiet | CpuLossLevel::Noted => "",
            CpuLossLevel::WidensIntervals => "it widens intervals",
            CpuLossLevel::DropsBlock => "blocks with so much of it are dropped",
        }
    }
}
