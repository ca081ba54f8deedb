//! The reader against the cases of `tests/responses/cases.txt`, other parsers, its limits, and random bytes,
//! each in one piece and split in every way.

#[path = "../../tests/responses/cases.rs"]
mod cases;
mod others;

use proptest::prelude::*;

use super::pieces::{Feed, outcome, same_for_every_cut};
use super::*;
use cases::Case;

/// Longer cases are not split everywhere, because the head would be parsed once per byte.
const CUT_EVERYWHERE_BYTES: usize = 4096;

fn all_cases() -> Vec<Case> {
    cases::parse(cases::TEXT).unwrap()
}

fn bodiless(case: &Case) -> bool {
    case.method == "HEAD"
}

/// The outcome of a case in one piece, in the notation of the file.
fn said_of(case: &Case) -> String {
    let feed = Feed {
        bytes: &case.bytes,
        bodiless: bodiless(case),
        cuts: &[],
        skip: false,
    };
    outcome(feed).0
}

#[test]
fn responses_are_what_the_cases_say() {
    let wrong: Vec<_> = all_cases()
        .iter()
        .map(|case| (case, said_of(case)))
        .filter(|(case, said)| *said != case.reader)
        .map(|(case, said)| {
            format!(
                "cases.txt:{}: {}: {said}, not {}",
                case.line, case.name, case.reader
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_cut_gives_the_same() {
    for case in all_cases() {
        let length = case.bytes.len();
        let step = length.div_ceil(CUT_EVERYWHERE_BYTES).max(1);
        let ends = [
            0,
            1,
            HEAD_LIMIT_BYTES - 1,
            HEAD_LIMIT_BYTES,
            HEAD_LIMIT_BYTES + 1,
            length,
        ];
        let cuts = (0..length)
            .step_by(step * step)
            .chain(ends.into_iter().filter(|end| *end <= length));
        for cut in cuts {
            same_for_every_cut(&case.bytes, bodiless(&case), &[cut]);
        }
        // Long cases in pieces of a size that eventually falls on every byte of a line.
        let pieces: Vec<_> = (0..length)
            .step_by(if step == 1 { 1 } else { 61 })
            .collect();
        same_for_every_cut(&case.bytes, bodiless(&case), &pieces);
    }
}

#[test]
fn a_head_request_has_no_body_and_a_restarted_reader_no_memory() {
    let mut reader = ResponseReader::new(true);
    for _ in 0..2 {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(
            reader.read(&head[..20], &mut |_: &ResponseHead<'_>| {}),
            Ok(ReadProgress::More)
        );
        assert_eq!(
            reader.read(&head[20..], &mut |_: &ResponseHead<'_>| {}),
            Ok(ReadProgress::Done { extra: 0 })
        );
        assert_eq!((reader.status, reader.body_bytes), (200, 0));
        reader.restart(true);
    }
    assert_eq!(
        reader.read(b"HTTP/1.1 20", &mut |_: &ResponseHead<'_>| {}),
        Ok(ReadProgress::More)
    );
    reader.restart(false);
    assert_eq!(
        reader.read(b"HTTP/1.1 204 x\r\n\r\n", &mut |_: &ResponseHead<'_>| {}),
        Ok(ReadProgress::Done { extra: 0 })
    );
    for (interim, reusable) in [("Connection: close\r\n", false), ("", true)] {
        reader.restart(false);
        let text = format!("HTTP/1.1 103 x\r\n{interim}\r\nHTTP/1.1 204 x\r\n\r\n");
        assert_eq!(
            reader.read(text.as_bytes(), &mut |_: &ResponseHead<'_>| {}),
            Ok(ReadProgress::Done { extra: 0 })
        );
        assert_eq!(reader.reusable, reusable, "{text:?}");
    }
}

/// Fragments of both valid responses and near misses.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 20] = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 404 \r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "Content-Length: 7\r\n",
        "Content-Length: 70000\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Connection: close\r\n",
        "X: folded\r\n too\r\n",
        "\r\n",
        "\n",
        "\r",
        "5\r\nhello\r\n",
        "0\r\n",
        "0\r\nX: y\r\n z\r\n\r\n",
        "ffffffffffffffff\r\n",
        "7;a=b\r\n",
        "7 ",
        ": ",
        "abcdefg",
    ];
    prop_oneof![
        6 => proptest::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_bytes_in_any_pieces_give_one_result(
        fragments in proptest::collection::vec(fragment(), 0..12),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        (bodiless, is_garbage) in any::<(bool, bool)>(),
    ) {
        let start = if is_garbage { "" } else { "HTTP/1.1 200 OK\r\n" };
        same_for_every_cut(&[start.as_bytes().to_vec(), fragments.concat()].concat(), bodiless, &cuts);
    }
}
