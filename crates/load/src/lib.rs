//! The load engine: sends HTTP requests over many connections, in closed loop or at a rate (open loop), and tells
//! truthfully what became of each of them.
//!
//! A [`Generator`] owns threads and connections and loads one window after another. Each window gives [`Counts`](model::Counts).
//! Three rules hold throughout: every request due is a sample, a censored one where no response came; every error is counted by phase and
//! cause; throughput is made of responses that met the [`Contract`].
//!
//! ```text
//!   Generator ── command / report ──► Thread ── turns ──► Driver (epoll or io_uring)
//!                                       │                   │ events and bytes
//!                                       └───── owns ──► Worker ◄─┘ actions
//!             Pacer ◄─ Schedule (when) ◄─────────────────┤
//!      RequestArena ◄─ RequestSampler (what) ◄───────────┤
//!                                                        └► Connection × n ─► Tls ─► Session (one of protocol/)
//!                                                              │
//!                                                              └► Recorder ─► Tally, Check (contract, contents)
//! ```
//! `Worker` and everything below it do no I/O and read no clock, so that a simulation can run them from a seed.
//! Beside the engine [`fetch`] looks at one response in full, before a load.
//!
//! This crate prints nothing, resolves no names, and must not retry a request silently.

#[cfg(not(target_os = "linux"))]
compile_error!("the load engine is built on epoll and io_uring and runs on Linux only");

mod arena;
mod check;
mod clock;
mod completion;
mod connection;
mod content;
mod driver;
mod error;
mod fetch;
mod generator;
mod pacer;
mod protocol;
mod reader;
mod readiness;
mod render;
mod silence;
mod spec;
mod tally;
mod thread;
mod trust;
mod user;
mod values;
mod worker;

pub use completion::grants as grants_completion;
pub use error::LoadError;
pub use fetch::{Fetched, fetch};
pub use generator::{Generator, Handle};
pub use model::{Contract, Digest, Process, Protocol, RATE_MAX_PER_S, Rate, ResponseField, Think, Until};
pub use spec::{
    Address, Arrivals, ClientCertificate, DriverChoice, First, Lanes, LoadSpec, Request, Tls, Trust, Users,
};
pub use values::{Values, ValuesError};

/// What the fuzz targets in `fuzz/` call. No part of the crate's interface: it is there for cargo-fuzz alone, because the
/// reader itself is nobody's business outside of this crate.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::protocol::http2::pieces::same_for_every_cut as same_for_every_cut_of_http2;
    pub use crate::reader::pieces::same_for_every_cut;
}
