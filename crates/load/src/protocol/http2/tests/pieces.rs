//! Invariants of a connection for any bytes from the peer, split in any way, checked by a test and the fuzz
//! target.
//!
//! For any split, the same requests end in the same way and the same output is sent. Every request ends once.
//! The stored data is limited.

use std::sync::Arc;

use model::Counts;

use super::frame::{PAYLOAD_MAX, SETTINGS, push};
use super::hpack::TABLE_BYTES;
use super::{BLOCK_MAX, Http2};
use crate::arena::{RequestArena, RequestSampler};
use crate::check::ContractCheck;
use crate::in_flight::InFlight;
use crate::protocol::ConnectionEffect;
use crate::protocol::Session;
use crate::recorder::Recorder;
use crate::settings::WorkerSettings;
use crate::tally::ThreadTally;
use crate::{Contract, Protocol, RequestSpec};

/// Requests in flight when the bytes arrive. The second and later ones have bodies.
const REQUESTS: u32 = 3;

/// Panics if the bytes, split at `cuts` (each modulo the length), give a different outcome than in one piece.
pub fn same_for_every_cut(bytes: &[u8], cuts: &[usize]) {
    let (books, said) = outcome(bytes, &[]);
    let (cut_books, cut_said) = outcome(bytes, cuts);
    let shown = bytes.escape_ascii();
    assert_eq!(cut_books, books, "{shown} cut at {cuts:?}");
    assert_eq!(cut_said, said, "{shown} cut at {cuts:?}");
}

/// The tally and the output if requests are in flight, these bytes arrive, and the connection ends.
fn outcome(bytes: &[u8], cuts: &[usize]) -> (String, Vec<u8>) {
    let request = RequestSpec {
        body: vec![b'x'; 70_000],
        ..RequestSpec::new("POST", "/", "proofload.test")
    };
    let arena = Arc::new(
        RequestArena::render(&[request], &crate::Users::default()).expect("it can be sent"),
    );
    let settings = WorkerSettings {
        arena: arena.clone(),
        protocol: Protocol::Http2 { streams: REQUESTS },
        tls: None,
        fresh: false,
        can_skip: false,
        timeout_ns: 0,
        connect_timeout_ns: 0,
        opening_gap_ns: 0,
        contracts: vec![Contract::default()],
        sample_every: 1,
        users: None,
    };
    let (mut check, mut tally) = (
        ContractCheck::new(settings.contracts.clone(), 1),
        ThreadTally::new(1, false),
    );
    let mut in_flight = 0;
    let mut http2 = Http2::new(REQUESTS as usize, false);
    let mut said = Vec::new();
    let mut greeting = Vec::new();
    push(&mut greeting, SETTINGS, 0, 0, &[]);
    let mut ends: Vec<_> = cuts
        .iter()
        .map(|cut| cut % (bytes.len() + 1))
        .chain([bytes.len()])
        .collect();
    ends.sort_unstable();
    let mut from = 0;
    let pieces = ends
        .iter()
        .map(|&end| &bytes[std::mem::replace(&mut from, end)..end]);
    let recorder = &mut Recorder {
        now_ns: 2,
        since_start_ns: Some(1),
        settings: &settings,
        check: &mut check,
        tally: &mut tally,
        in_flight: &mut in_flight,
        user: None,
        has_response: false,
    };
    let mut is_over = false;
    for (number, piece) in std::iter::once(&greeting[..]).chain(pieces).enumerate() {
        if number == 1 {
            let mut sampler = RequestSampler::new(arena.clone(), 0, 0);
            for _ in 0..REQUESTS {
                let choice = sampler.draw();
                recorder.tally.silence.begin(choice.endpoint, 1);
                http2.begin(InFlight::new(choice, 1, None), &arena);
                *recorder.in_flight += 1;
                recorder.tally.send(true);
            }
        }
        is_over = http2.received(piece, recorder) == ConnectionEffect::Lost;
        if is_over {
            break;
        }
        drink(&mut http2, &arena, &mut said);
        bounded(&http2);
    }
    recorder.now_ns = 3;
    if !is_over {
        let _ = http2.ended(false, recorder);
    }
    assert_eq!((in_flight, http2.in_flight()), (0, 0), "every request ends");
    let counts = tally.finish(&arena.endpoints, check.take(), (3, &mut []));
    let Counts {
        sent,
        responses,
        timed_out,
        broken,
        unfinished,
        ..
    } = counts;
    assert_eq!(
        sent,
        responses + timed_out + broken + unfinished,
        "and but once"
    );
    // If the connection was lost, the amount of output before that depends on the cuts.
    said.truncate(if is_over { 0 } else { said.len() });
    (
        format!(
            "{:?} {:?} {} {:?}",
            counts.status, counts.errors, counts.body_bytes, counts.endpoints
        ),
        said,
    )
}

/// The peer reads all output.
fn drink(http2: &mut Http2, arena: &RequestArena, said: &mut Vec<u8>) {
    while let Some(count) = http2.output(arena).map(|bytes| {
        said.extend_from_slice(bytes);
        bytes.len()
    }) {
        http2.wrote(count, arena);
    }
}

fn bounded(http2: &Http2) {
    let block = http2
        .reading
        .open_block
        .as_ref()
        .map_or(0, |(_, block)| block.len());
    assert!(http2.reading.held.len() <= PAYLOAD_MAX && block <= BLOCK_MAX);
    assert!(http2.decoder.table.bytes <= TABLE_BYTES);
}
