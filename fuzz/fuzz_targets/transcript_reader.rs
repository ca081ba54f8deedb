//! Any bytes, fed in pieces of any length, against the transcript reader and all that follows from what it reads: the same for
//! every length, every figure a number, every audit drawn. It must not know what any tool prints.
//!
//! An input is `L BYTES`: the bytes are fed in pieces of L + 1. `cargo xtask seeds` writes inputs of this form.

#![no_main]

use foreign::{Audit, Reader, compare};
use libfuzzer_sys::fuzz_target;
use proofload_fuzz::draw;
use report::Audited;

/// Labels of which each is set against the first.
const LABELS_MAX: usize = 4;

fuzz_target!(|input: &[u8]| {
    let [length, bytes @ ..] = input else { return };
    let whole = read([bytes].into_iter());
    let pieces = read(bytes.chunks(usize::from(*length) + 1));
    assert_eq!(
        pieces,
        whole,
        "fed in pieces of {}",
        usize::from(*length) + 1
    );

    for finding in &whole.findings {
        for (_, figure) in finding
            .cases
            .iter()
            .flat_map(|case| case.evidence.figures())
        {
            assert!(figure.value.is_finite(), "{finding:?}");
        }
    }
    for run in &whole.runs {
        assert!(run.lines.first <= run.lines.last, "{run:?}");
    }
    for candidate in 0..whole.groups.len().clamp(1, LABELS_MAX) {
        draw(
            &Audited {
                audit: &whole,
                comparison: compare(&whole, 0, candidate),
            },
            false,
        );
    }
});

fn read<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Audit {
    let mut reader = Reader::new("input");
    pieces.for_each(|piece| reader.feed(piece));
    Audit::of(vec![reader.finish()])
}
