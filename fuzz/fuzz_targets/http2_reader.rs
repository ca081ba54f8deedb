//! Any bytes, cut in any way, from a peer of HTTP/2: `crates/load/src/protocol/http2/tests/pieces.rs` says what must hold.
//!
//! An input is `C (LL HH)* BYTES`: C modulo 8 places to cut at, two bytes each, the lower one first; the rest is what the peer says
//! behind its settings.

#![no_main]

use libfuzzer_sys::fuzz_target;
use load::fuzzing::same_for_every_cut_of_http2;

fuzz_target!(|input: &[u8]| {
    let [count, rest @ ..] = input else { return };
    let Some((places, bytes)) = rest.split_at_checked(usize::from(count % 8) * 2) else {
        return;
    };
    let cuts: Vec<_> = places
        .chunks_exact(2)
        .map(|place| usize::from(u16::from_le_bytes([place[0], place[1]])))
        .collect();
    same_for_every_cut_of_http2(bytes, &cuts);
});
