//! How many requests are due per second in open loop, and how many in all by some time: the law behind arrivals. Pure.
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
//! Its inverse, which says when the next request is due, is the pacer's. It must not know threads, seeds or clocks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Beyond it arrivals are not even 100 ns apart, and no client keeps up.
pub const RATE_MAX_PER_S: f64 = 1e7;

/// Requests due per second over a slice, over all threads. It begins anew with each slice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// The same all the time; above 0 and at most [`RATE_MAX_PER_S`].
    Constant(f64),
    /// Changes linearly from the start of the window, and stays at `to_per_s` once `over` has passed.
    ///
    /// A ramp to 0 has an end: `over` · `from_per_s` / 2 requests are due and then none, so that a slice of more
    /// requests ([`Until::Requests`](crate::Until::Requests)) would wait for an interrupt.
    Ramp {
        /// The rate at the start; from 0 to [`RATE_MAX_PER_S`].
        from_per_s: f64,
        /// The rate from `over` on; the same limits, and not 0 if `from_per_s` is.
        to_per_s: f64,
        /// How long the change takes; not 0.
        over: Duration,
    },
}

impl Rate {
    /// The rate at `elapsed_s` seconds from the start of the window.
    pub fn at(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let part = (elapsed_s / over.as_secs_f64()).min(1.0);
                from_per_s + (to_per_s - from_per_s) * part
            }
        }
    }

    /// How many requests are due in the first `elapsed_s` seconds of the window: the integral of the rate. Constant
    /// arrivals are so many within one; of Poisson arrivals it is the mean.
    pub fn due_by(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s * elapsed_s,
            Rate::Ramp { from_per_s, over, .. } => {
                let ramp_s = elapsed_s.min(over.as_secs_f64());
                // A trapezium, and a rectangle after it.
                let on_ramp = (from_per_s + self.at(ramp_s)) / 2.0 * ramp_s;
                on_ramp + (elapsed_s - ramp_s) * self.at(elapsed_s)
            }
        }
    }

    /// The mean over the first `elapsed_s` seconds of the window.
    pub(crate) fn mean(&self, elapsed_s: f64) -> f64 {
        match *self {
            Rate::Constant(per_s) => per_s,
            Rate::Ramp { from_per_s, .. } if elapsed_s <= 0.0 => from_per_s,
            Rate::Ramp { .. } => self.due_by(elapsed_s) / elapsed_s,
        }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        let limit = RATE_MAX_PER_S;
        match *self {
            Rate::Constant(per_s) => (!(per_s > 0.0 && per_s <= limit))
                .then(|| format!("{per_s} requests a second, above 0 and at most {limit}")),
            Rate::Ramp { from_per_s, to_per_s, over } => {
                let ends = [from_per_s, to_per_s];
                if let Some(end) = ends.iter().find(|end| !(**end >= 0.0 && **end <= limit)) {
                    return Some(format!("a ramp with {end} requests a second, from 0 to {limit}"));
                }
                if ends == [0.0, 0.0] {
                    return Some("a ramp from 0 to 0 requests a second, one of them above 0".into());
                }
                over.is_zero().then(|| "a ramp over no time, above 0 s".into())
            }
        }
    }
}
