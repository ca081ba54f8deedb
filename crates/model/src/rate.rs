//! The request rate of an open loop, the number of requests due by a given time, and the distribution of
//! arrivals.
//!
//! ```text
//! rate                                   count due by t:   Λ(t) = ∫ rate
//!   to ┤           ╭──────────
//!      │        ╱                        constant:  Λ(t) = r·t
//!      │     ╱                           ramp:      Λ(t) = r₀·t + (r₁ − r₀)·t² / 2D    until D
//! from ┤  ╱                                         Λ(D) + r₁·(t − D)                  from then on
//!      └──┴────────┴──────────► t
//!         0        D = over
//! ```
//! The engine implements the inverse, which gives the time of the next request. This module does not use
//! threads or clocks, and does not open, resolve or measure anything.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum rate. Above it arrivals are less than 100 ns apart, which no client can sustain.
pub const RATE_MAX_PER_S: f64 = 1e7;

/// Requests due per second over a slice, over all threads. The time starts at 0 in each slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// Constant rate, above 0 and at most [`RATE_MAX_PER_S`].
    Constant(f64),
    /// Rate that changes linearly from the start of the window, and stays at `to_per_s` after `over`.
    ///
    /// A ramp to 0 ends: after `over` · `from_per_s` / 2 requests no more are due. A slice with a larger
    /// request count ([`Until::Requests`]) would never end.
    Ramp {
        /// The rate at the start, from 0 to [`RATE_MAX_PER_S`].
        from_per_s: f64,
        /// The rate from `over` on, with the same limits. Not 0 if `from_per_s` is 0.
        to_per_s: f64,
        /// Duration of the change. Not 0.
        over: Duration,
    },
}

impl Rate {
    /// Returns the rate if it is constant.
    pub fn constant_per_s(&self) -> Option<f64> {
        match *self {
            Rate::Constant(per_s) => Some(per_s),
            Rate::Ramp { .. } => None,
        }
    }

    /// Returns the first rate, the last rate, and the duration of the change. `None` for a constant rate.
    pub fn ramp(&self) -> Option<(f64, f64, Duration)> {
        match *self {
            Rate::Constant(_) => None,
            Rate::Ramp {
                from_per_s,
                to_per_s,
                over,
            } => Some((from_per_s, to_per_s, over)),
        }
    }

    /// Returns the rate `elapsed_s` seconds after the start of the window.
    pub fn at(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp {
                from_per_s,
                to_per_s,
                over,
            } => {
                let part = (elapsed_s / over.as_secs_f64()).min(1.0);
                from_per_s + (to_per_s - from_per_s) * part
            }
        }
    }

    /// Number of requests due in the first `elapsed_s` seconds of the window: the integral of the rate. Exact
    /// within one for constant arrivals, the mean for Poisson arrivals.
    pub fn due_by(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s * elapsed_s,
            Rate::Ramp {
                from_per_s, over, ..
            } => {
                let ramp_s = elapsed_s.min(over.as_secs_f64());
                // A trapezoid, followed by a rectangle.
                let on_ramp = (from_per_s + self.at(ramp_s)) / 2.0 * ramp_s;
                on_ramp + (elapsed_s - ramp_s) * self.at(elapsed_s)
            }
        }
    }

    /// Mean rate over the first `elapsed_s` seconds of the window.
    pub fn mean(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp { from_per_s, .. } if elapsed_s <= 0.0 => from_per_s,
            Rate::Ramp { .. } => self.due_by(elapsed_s) / elapsed_s,
        }
    }

    /// Describes an invalid rate. `None` if the rate is valid.
    pub fn problem(&self) -> Option<String> {
        let limit = RATE_MAX_PER_S;
        match *self {
            Rate::Constant(per_s) => (!(per_s > 0.0 && per_s <= limit))
                .then(|| format!("{per_s} requests a second, above 0 and at most {limit}")),
            Rate::Ramp {
                from_per_s,
                to_per_s,
                over,
            } => {
                let ends = [from_per_s, to_per_s];
                match ends.iter().find(|end| !(0.0..=limit).contains(*end)) {
                    Some(end) => Some(format!(
                        "a ramp with {end} requests a second, from 0 to {limit}"
                    )),
                    None if ends == [0.0, 0.0] => {
                        Some("a ramp from 0 to 0 requests a second, one of them above 0".into())
                    }
                    None => over
                        .is_zero()
                        .then(|| "a ramp over no time, above 0 s".into()),
                }
            }
        }
    }
}

/// Distribution of open-loop arrivals in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// Evenly spaced: one every 1 / rate, the first at the start of the window. If the rate changes, arrival
    /// k comes when the expected count reaches k.
    Constant,
    /// Random and independent, as from many users: gaps are exponential with mean 1 / rate. If the rate
    /// changes, an inhomogeneous Poisson process.
    #[default]
    Poisson,
}

impl ArrivalProcess {
    /// The words of reports.
    pub fn words(self) -> &'static str {
        match self {
            ArrivalProcess::Constant => "evenly spaced arrivals",
            ArrivalProcess::Poisson => "Poisson arrivals",
        }
    }

    /// The name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            ArrivalProcess::Constant => "constant",
            ArrivalProcess::Poisson => "poisson",
        }
    }
}
