//! Any bytes, cut in any way, against the response reader: `crates/load/src/reader/tests/pieces.rs` says what must hold. It
//! must not know what a response is.
//!
//! An input is `M C (LL HH)* BYTES`: the method is HEAD where M is odd; C modulo 8 places to cut at follow, two bytes
//! each, the lower one first; the rest is the response. `cargo xtask seeds` writes inputs of this form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use load::fuzzing::same_for_every_cut;

/// An input no longer than this is also read byte by byte, which costs its length squared.
const EVERY_BYTE_MAX: usize = 300;

fuzz_target!(|input: &[u8]| {
    let [method, count, rest @ ..] = input else {
        return;
    };
    let Some((places, bytes)) = rest.split_at_checked(usize::from(count % 8) * 2) else {
        return;
    };
    let cuts: Vec<_> = places
        .chunks_exact(2)
        .map(|place| usize::from(u16::from_le_bytes([place[0], place[1]])))
        .collect();
    let head = method % 2 == 1;
    same_for_every_cut(bytes, head, &cuts);
    if bytes.len() <= EVERY_BYTE_MAX {
        same_for_every_cut(bytes, head, &Vec::from_iter(0..bytes.len()));
    }
});
