//! The statistics against other implementations, by simulation, and for any data at all.

mod anytime;
mod change;
mod degenerate;
mod effects;
mod interval_log;
mod looks;
mod power;
mod properties;
#[path = "../simulation/mod.rs"]
mod simulation;
mod vectors;
mod verdicts;
