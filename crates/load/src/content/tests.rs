//! Tests of the content reader against contents coded by other programs: tests/vectors/make_vectors.mjs made them.

use super::*;

/// The page by each coding: file, Content-Encoding, and at how many places before its end the data may end too.
const PAGES: [(&str, &str, usize); 11] = [
    ("page.gz", "gzip", 0),
    ("page.named.gz", "x-gzip", 0),
    ("page.fields.gz", "gzip", 0),
    ("page.members.gz", "gzip", 1),
    ("page.zlib", "deflate", 0),
    ("page.deflate", "deflate", 0),
    ("page.br", "br", 0),
    ("page.zst", "zstd", 0),
    ("page.unchecked.zst", "zstd", 0),
    ("page.frames.zst", "zstd", 3),
    ("page.br.gz", "br, gzip", 0),
];
const LONGS: [(&str, &str); 3] = [("long.gz", "gzip"), ("long.br", "br"), ("long.zst", "zstd")];
const BOMBS: [(&str, &str); 4] =
    [("bomb.gz", "gzip"), ("bomb.zlib", "deflate"), ("bomb.br", "br"), ("bomb.zst", "zstd")];
const BOMB_BYTES: u64 = 16 << 20;

fn vector(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The digest that Node's OpenSSL has for a content.
fn expected(name: &str) -> Digest {
    let sums = String::from_utf8(vector("SHA256SUMS")).unwrap();
    let line = sums.lines().find(|line| line.split_whitespace().nth(1) == Some(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn read(coding: &str, bytes: &[u8]) -> Result<Content, ContentFlaw> {
    read_pieces(coding, &[bytes])
}

fn read_pieces(coding: &str, pieces: &[&[u8]]) -> Result<Content, ContentFlaw> {
    let mut reader = ContentReader::new(&[coding.as_bytes()]);
    pieces.iter().for_each(|piece| reader.take(piece));
    reader.finish()
}

#[test]
fn what_others_coded_has_the_digest_that_others_computed() {
    let page_bytes = vector("page.txt").len() as u64;
    for (name, coding, _) in PAGES.into_iter().chain([("page.txt", "", 0), ("window-8m.zst", "zstd", 0)]) {
        let bytes = vector(name);
        let content = read(coding, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(content.digest, expected("page.txt"), "{name}");
        assert_eq!(
            (content.encoded_bytes, content.decoded_bytes),
            (bytes.len() as u64, page_bytes),
            "{name}"
        );
    }
}

#[test]
fn windows_slide_over_long_contents() {
    let page = vector("page.txt");
    let long: Vec<u8> = (0..400).flat_map(|turn| [format!("{turn}\n").as_bytes(), &page].concat()).collect();
    assert_eq!(Digest::of(&long), expected("long"));
    for (name, coding) in LONGS {
        let bytes = vector(name);
        let in_one = read(coding, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((in_one.digest, in_one.decoded_bytes), (expected("long"), long.len() as u64), "{name}");
        let by_byte: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read_pieces(coding, &by_byte), Ok(in_one), "{name}");
    }
}

#[test]
fn content_cut_short_is_never_taken_for_whole() {
    for (name, coding, inner_ends) in PAGES {
        let bytes = vector(name);
        let outermost = read_list(&[coding.as_bytes()]).unwrap().pop().unwrap();
        let cuts = (1..bytes.len()).map(|end| read(coding, &bytes[..end]));
        let (whole, cut): (Vec<_>, Vec<_>) = cuts.partition(Result::is_ok);
        assert_eq!(whole.len(), inner_ends, "{name}");
        let truncated = Err(ContentFlaw::Truncated { coding: outermost });
        assert!(cut.iter().all(|result| *result == truncated), "{name}: {cut:?}");
    }
    // The outer coding is whole and the inner is not.
    let page = vector("page.br");
    let outer = gzip(&page[..page.len() - 1]);
    assert_eq!(read("br, gzip", &outer), Err(ContentFlaw::Truncated { coding: Coding::Brotli }));
}

/// Damage must not panic, and where there is a checksum it must not give another digest either. (Bits of a header that
/// say nothing of the content may change nothing.) The last four bytes are length or checksum: there it must show.
#[test]
fn a_flipped_bit_never_passes_a_checksum() {
    let page = expected("page.txt");
    for (name, coding, _) in PAGES {
        let checked = !["page.deflate", "page.br", "page.unchecked.zst"].contains(&name);
        let mut bytes = vector(name);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = read(coding, &bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let in_trailer = bit / 8 + 4 >= bytes.len();
            let passes = read.is_ok_and(|content| in_trailer || content.digest != page);
            assert!(!(checked && passes), "{name}: bit {bit}");
        }
    }
}

/// What the zstd decoder leaves to its caller.
#[test]
fn a_zstd_frame_must_keep_to_its_header() {
    let whole = vector("page.unchecked.zst");
    for (place, bit) in [(4, 1 << 3), (5, 1)] {
        let mut bytes = whole.clone();
        bytes[place] ^= bit;
        let result = read("zstd", &bytes);
        assert!(matches!(result, Err(ContentFlaw::Corrupt { .. })), "{result:?}");
    }
}

#[test]
fn what_follows_the_end_is_a_flaw() {
    for (name, coding, _) in PAGES {
        let outermost = read_list(&[coding.as_bytes()]).unwrap().pop().unwrap();
        for garbage in [b"\0".as_slice(), b"<!-- served in 3 ms -->", b"\x1e\x8b\x08\x28\xb4\x2f\xfd"] {
            let result = read(coding, &[&vector(name), garbage].concat());
            assert_eq!(result, Err(ContentFlaw::TrailingGarbage { coding: outermost }), "{name}");
        }
    }
}

#[test]
fn content_that_is_not_coded_as_named_is_corrupt() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        // The proxy that decodes and leaves the header as it was.
        let result = read(coding, &vector("page.txt"));
        assert!(matches!(result, Err(ContentFlaw::Corrupt { .. })), "{coding}: {result:?}");
    }
    for coding in ["gzip", "zstd"] {
        let result = read(coding, b"ok");
        assert!(matches!(result, Err(ContentFlaw::Corrupt { .. })), "{coding}: {result:?}");
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    for (name, coding) in BOMBS {
        let bytes = vector(name);
        let read = |limit_bytes| {
            let mut reader = ContentReader::with_limit(&[coding.as_bytes()], limit_bytes);
            reader.take(&bytes);
            reader.finish()
        };
        let stopped = read(1 << 20);
        assert!(matches!(stopped, Err(ContentFlaw::TooLarge { limit_bytes: 0x10_0000, .. })), "{stopped:?}");
        assert_eq!(read(BOMB_BYTES).unwrap().decoded_bytes, BOMB_BYTES, "{name}");
        assert!(read(BOMB_BYTES - 1).is_err(), "{name}");
    }
}

#[test]
fn coded_content_beyond_the_limit_is_not_kept_and_plain_content_has_none() {
    let bytes = vector("page.gz");
    let read = |coding: &str| {
        let mut reader = ContentReader::with_limit(&[coding.as_bytes()], bytes.len() as u64 - 1);
        bytes.chunks(100).for_each(|piece| reader.take(piece));
        assert!(reader.coded.len() < bytes.len());
        reader.finish()
    };
    assert!(matches!(read("gzip"), Err(ContentFlaw::TooLarge { coding: Coding::Gzip, .. })));
    assert_eq!(read("").unwrap().digest, Digest::of(&bytes));
}

#[test]
fn a_bomb_that_gives_nothing_in_the_end_stops_too() {
    // A skippable zstd frame of 4 MiB: the outer coding makes bytes that the inner one passes over.
    let mut frame = vec![0x50, 0x2a, 0x4d, 0x18, 0, 0, 0x40, 0];
    frame.resize(8 + (4 << 20), 0);
    let mut reader = ContentReader::with_limit(&[b"zstd", b"gzip"], 1 << 20);
    reader.take(&gzip(&frame));
    assert_eq!(reader.finish(), Err(ContentFlaw::TooLarge { coding: Coding::Gzip, limit_bytes: 1 << 20 }));
    assert_eq!(read("zstd, gzip", &gzip(&frame)).unwrap().digest, Digest::of(b""));
}

#[test]
fn windows_and_dictionaries_that_http_does_not_allow_are_refused() {
    let large = ContentFlaw::WindowTooLarge { window_bytes: 16 << 20, limit_bytes: WINDOW_LIMIT_BYTES };
    assert_eq!(read("zstd", &vector("window-16m.zst")), Err(large));
    for (name, coding) in [("large-window.br", "br"), ("dictionary.zst", "zstd")] {
        let result = read(coding, &vector(name));
        assert!(matches!(result, Err(ContentFlaw::Corrupt { .. })), "{name}: {result:?}");
    }
}

#[test]
fn nothing_coded_and_nothing_at_all_are_both_empty() {
    let nothing = Content { digest: Digest::of(b""), encoded_bytes: 0, decoded_bytes: 0 };
    for coding in ["", "gzip", "deflate", "br", "zstd", "br, gzip"] {
        assert_eq!(read(coding, b""), Ok(nothing.clone()), "{coding}");
    }
    let files = [("gz", "gzip"), ("zlib", "deflate"), ("deflate", "deflate"), ("br", "br"), ("zst", "zstd")];
    for (suffix, coding) in files {
        let content = read(coding, &vector(&format!("empty.{suffix}")));
        assert_eq!(content.unwrap().digest, nothing.digest, "{suffix}");
    }
}

#[test]
fn the_list_of_codings_is_read_as_rfc_9110_writes_it() {
    use Coding::{Brotli, Deflate, Gzip, Zstd};
    let of = |values: &[&str]| read_list(&values.iter().map(|value| value.as_bytes()).collect::<Vec<_>>());
    assert_eq!(of(&[]), Ok(vec![]));
    assert_eq!(of(&["", " , "]), Ok(vec![]));
    assert_eq!(of(&["identity"]), Ok(vec![]));
    assert_eq!(of(&["GZip"]), Ok(vec![Gzip]));
    assert_eq!(of(&["br,\tX-GZIP", "deflate , identity", ",zstd"]), Ok(vec![Brotli, Gzip, Deflate, Zstd]));
    assert_eq!(of(&["gzip, compress"]), Err(ContentFlaw::UnknownCoding("compress".into())));
    assert_eq!(of(&["gzip;q=1"]), Err(ContentFlaw::UnknownCoding("gzip;q=1".into())));
    assert_eq!(of(&[&"x".repeat(9999)]), Err(ContentFlaw::UnknownCoding("x".repeat(40))));
    assert_eq!(of(&["gzip, gzip, gzip", "br, br"]), Err(ContentFlaw::TooManyCodings { count: 5, limit: 4 }));
    assert_eq!(read("sdch", b"x"), Err(ContentFlaw::UnknownCoding("sdch".into())));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
