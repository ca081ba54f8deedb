//! Tests of conclusions: faults planted in a sound record, and runs drawn from a seed.

mod across;
mod checks;
mod deployed;
mod gate;
mod generators;
mod given;
mod machine;
#[path = "../made/mod.rs"]
mod made;
mod series;
mod throughput;
mod tune;
mod witness;
