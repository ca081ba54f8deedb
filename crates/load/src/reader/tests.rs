//! The reader against tables of responses, every way of cutting them, and garbage.

use proptest::prelude::*;

use super::*;

/// What a reader made of some bytes, fed in pieces.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Pending { status: u16, body_bytes: u64 },
    Done { status: u16, body_bytes: u64, reusable: bool, extra: u64 },
    Flawed(Flaw),
}
use Outcome::{Done, Flawed, Pending};

/// Feeds `bytes` cut at `cuts`; what is skippable is skipped rather than shown where `skip` says so.
fn outcome(bytes: &[u8], cuts: &[usize], skip: bool) -> Outcome {
    let mut reader = ResponseReader::new(false);
    let mut looks = 0;
    let mut extra = None;
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([bytes.len()]).collect();
    ends.sort_unstable();
    let mut from = 0;
    for end in ends {
        while from < end {
            let skippable = if skip { reader.skippable().min((end - from) as u64) } else { 0 };
            let progress = if skippable > 0 {
                from += skippable as usize;
                Ok(reader.skip(skippable))
            } else {
                let piece = &bytes[from..end];
                from = end;
                reader.read(piece, &mut |_: &Head<'_>| looks += 1)
            };
            match progress {
                Ok(Progress::More) => {}
                // What follows is surplus, whether it came with the last piece or after it.
                Ok(Progress::Done { extra: surplus }) => {
                    extra = Some(surplus + (bytes.len() - from) as u64);
                    from = bytes.len();
                }
                Err(flaw) => return Flawed(flaw),
            }
        }
    }
    assert_eq!(looks, u32::from(reader.in_body()), "the final head is shown once");
    let (status, body_bytes) = (reader.status(), reader.body_bytes());
    match extra {
        Some(extra) => Done { status, body_bytes, reusable: reader.reusable(), extra },
        None => Pending { status, body_bytes },
    }
}

fn whole(text: &str) -> Outcome {
    outcome(text.as_bytes(), &[], false)
}

fn done(status: u16, body_bytes: u64) -> Outcome {
    Done { status, body_bytes, reusable: true, extra: 0 }
}

fn last(status: u16, body_bytes: u64) -> Outcome {
    Done { status, body_bytes, reusable: false, extra: 0 }
}

const MALFORMED: Outcome = Flawed(Flaw::Malformed);

/// Responses, and what RFC 9112 makes of them.
fn table() -> Vec<(&'static str, Outcome)> {
    vec![
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", done(200, 5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", done(200, 0)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Pending { status: 200, body_bytes: 4 }),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world",
            Done { status: 200, body_bytes: 5, reusable: true, extra: 7 },
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\ncontent-length: 5\r\n\r\nhello", done(200, 5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", MALFORMED),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", MALFORMED),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\nhello", MALFORMED),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", done(200, 5)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n00A;x=\"y\";z\r\n0123456789\r\n1 \r\n!\r\n000\r\nT: x\r\nU: y\r\n\r\n",
            done(200, 11),
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", done(200, 0)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", MALFORMED),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
            Pending { status: 200, body_bytes: 5 },
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
            last(200, 0),
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            done(204, 0),
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", MALFORMED),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", done(304, 0)),
        ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", last(200, 0)),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", last(200, 0)),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", done(200, 2)),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", Pending { status: 200, body_bytes: 13 }),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", Pending { status: 200, body_bytes: 1 }),
        ("HTTP/1.1 099 Low\r\n\r\n", MALFORMED),
        ("HTTP/2 200\r\n\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", MALFORMED),
        ("SSH-2.0-OpenSSH_9.2\r\n", MALFORMED),
        ("HTTP/1.1 200 OK\r\nContent-Le", Pending { status: 0, body_bytes: 0 }),
    ]
}

#[test]
fn responses_are_framed_as_the_rfc_says() {
    for (text, expected) in table() {
        assert_eq!(whole(text), expected, "{text:?}");
    }
}

#[test]
fn every_cut_gives_the_same() {
    for (text, expected) in table() {
        for skip in [false, true] {
            for cut in 0..=text.len() {
                assert_eq!(
                    outcome(text.as_bytes(), &[cut], skip),
                    expected,
                    "{text:?} at {cut}, skip {skip}"
                );
            }
            let every_byte: Vec<_> = (0..text.len()).collect();
            assert_eq!(outcome(text.as_bytes(), &every_byte, skip), expected, "{text:?} byte by byte");
        }
    }
}

#[test]
fn a_body_until_close_ends_with_the_connection_and_no_other_does() {
    for (text, proper) in [
        ("HTTP/1.1 200 OK\r\n\r\nsome", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsome", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nsome", false),
        ("HTTP/1.1 200 O", false),
        ("", false),
    ] {
        let mut reader = ResponseReader::new(false);
        assert_eq!(reader.read(text.as_bytes(), &mut |_: &Head<'_>| {}), Ok(Progress::More));
        assert_eq!(reader.end(), proper, "{text:?}");
    }
}

#[test]
fn a_head_request_has_no_body_and_a_restarted_reader_no_memory() {
    let mut reader = ResponseReader::new(true);
    for _ in 0..2 {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(reader.read(&head[..20], &mut |_: &Head<'_>| {}), Ok(Progress::More));
        assert_eq!(reader.read(&head[20..], &mut |_: &Head<'_>| {}), Ok(Progress::Done { extra: 0 }));
        assert_eq!((reader.status(), reader.body_bytes()), (200, 0));
        reader.restart(true);
    }
    assert_eq!(reader.read(b"HTTP/1.1 20", &mut |_: &Head<'_>| {}), Ok(Progress::More));
    reader.restart(false);
    assert_eq!(
        reader.read(b"HTTP/1.1 204 x\r\n\r\n", &mut |_: &Head<'_>| {}),
        Ok(Progress::Done { extra: 0 })
    );
}

#[test]
fn limits_hold_however_the_head_is_cut() {
    let long = |bytes: usize| {
        let fixed = "HTTP/1.1 204 No Content\r\nX: \r\n\r\n".len();
        format!("HTTP/1.1 204 No Content\r\nX: {}\r\n\r\n", "x".repeat(bytes - fixed))
    };
    let many = |lines: usize| format!("HTTP/1.1 204 No Content\r\n{}\r\n", "X: y\r\n".repeat(lines));
    for (text, expected) in [
        (long(HEAD_LIMIT_BYTES), done(204, 0)),
        (long(HEAD_LIMIT_BYTES + 1), Flawed(Flaw::TooLarge)),
        (long(3 * HEAD_LIMIT_BYTES), Flawed(Flaw::TooLarge)),
        (many(HEADERS_LIMIT), done(204, 0)),
        (many(HEADERS_LIMIT + 1), Flawed(Flaw::TooLarge)),
    ] {
        for cuts in [&[][..], &[1], &[1000, 2000, 60_000], &[HEAD_LIMIT_BYTES], &[HEAD_LIMIT_BYTES - 1]] {
            assert_eq!(outcome(text.as_bytes(), cuts, false), expected, "{} bytes at {cuts:?}", text.len());
        }
    }
    let endless =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}", "x".repeat(HEAD_LIMIT_BYTES));
    assert_eq!(whole(&endless), Flawed(Flaw::TooLarge));
}

/// Pieces from which both proper responses and near misses are made.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 14] = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 404 \r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "Content-Length: 7\r\n",
        "Content-Length: 70000\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "\r\n",
        "\n",
        "5\r\nhello\r\n",
        "0\r\n",
        "ffffffffffffffff\r\n",
        "7;a=b\r\n",
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
        skip in any::<bool>(),
    ) {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        bytes.extend(fragments.concat());
        prop_assert_eq!(outcome(&bytes, &cuts, skip), outcome(&bytes, &[], false));
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), cuts in proptest::collection::vec(any::<usize>(), 0..4)) {
        prop_assert_eq!(outcome(&bytes, &cuts, false), outcome(&bytes, &[], false));
    }
}
