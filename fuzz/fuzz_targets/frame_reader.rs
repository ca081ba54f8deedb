//! Any bytes as what an agent on another machine says, and as what is said to one: a message that is the same when it is sent again, or an error.
//! An input is the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| remote::fuzzing::same_when_sent_again(input));
