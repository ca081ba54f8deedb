//! The load engine: sends HTTP requests over many connections, in closed loop or at a rate (open loop), and
//! reports the result of each.
//!
//! A [`Generator`] owns threads and connections and loads one window after another. Each window yields
//! [`Counts`](model::Counts). Three rules hold throughout. Every due request is a sample, censored if there
//! was no response. Every error is counted by phase and cause. Throughput counts only responses that met the
//! [`Contract`].
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
//! `Worker` and everything below it do no I/O and read no clock, so that a simulation can run them from a
//! seed. In addition, [`fetch`] fetches one response in full before a load.
//!
//! This crate prints nothing, resolves no names, and never retries a request silently.

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
mod in_flight;
mod pacer;
mod protocol;
mod reader;
mod readiness;
mod recorder;
mod render;
mod settings;
mod silence;
mod spec;
mod tally;
mod thread;
mod tls;
mod trust;
mod user;
mod values;
mod worker;

pub use completion::grants as grants_completion;
pub use error::LoadError;
pub use fetch::{Fetched, fetch};
pub use generator::{Generator, Handle};
pub use model::{
    ArrivalProcess, Contract, Digest, Protocol, RATE_MAX_PER_S, Rate, ResponseField, Think, Until,
};
pub use spec::{
    Address, Arrivals, ClientCertificate, DriverChoice, FirstRequest, Lanes, LoadSpec, RequestSpec,
    TlsSpec, Trust, Users,
};
pub use values::{Values, ValuesError};

/// Entry points for the fuzz targets in `fuzz/`. Not part of the crate's interface: it exists only for
/// cargo-fuzz, because the reader itself is private to this crate.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::protocol::http2::pieces::same_for_every_cut as same_for_every_cut_of_http2;
    pub use crate::reader::pieces::same_for_every_cut;
}
