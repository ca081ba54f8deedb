//! Any bytes as a program, as the kernel's table, as a map of code made at run time, and as a symbol: names of bounded length, or none.
//! An input is the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| explain::perf::names_anything(input));
