//! Any bytes as what the agent in a Node.js process says: little is kept of it, whatever it is.
//! An input is the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| services::fuzzing::hears_anything(input));
