//! The binary `proofload`.
fn main() {}
