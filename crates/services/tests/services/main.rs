//! Services in real use: real processes, started through the public interface, some of them misbehaving.
//!
//! Each test has a [`stage::Stage`], which fails the test if anything that it started is alive at its end.

mod agents;
mod containers;
mod deaths;
mod launchers;
mod network;
mod prepare;
mod samples;
mod source;
mod stage;
mod starts;

/// A program that is a warden.
const WARDEN: &str = env!("CARGO_BIN_EXE_proofload-warden");
/// Programs that tests start.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
