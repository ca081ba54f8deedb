//! Tests of the content reader with contents coded by other programs: tests/vectors/make_vectors.mjs made
//! them.

use super::*;

/// The page in each coding: file, Content-Encoding, and the number of valid truncation points.
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
const BOMBS: [(&str, &str); 4] = [
    ("bomb.gz", "gzip"),
    ("bomb.zlib", "deflate"),
    ("bomb.br", "br"),
    ("bomb.zst", "zstd"),
];
const BOMB_BYTES: u64 = 16 << 20;

fn vector(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The digest of a content according to Node's OpenSSL.
fn expected(name: &str) -> Digest {
    let sums = String::from_utf8(vector("SHA256SUMS")).unwrap();
    let line = sums
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(name))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn reader(coding: &str, limit_bytes: u64) -> ContentReader {
    ContentReader::with_limit(&[coding], limit_bytes)
}

fn read(coding: &str, bytes: &[u8]) -> Result<Content, Flaw> {
    read_pieces(reader(coding, CODED_LIMIT_BYTES), bytes, usize::MAX)
}

fn read_pieces(mut reader: ContentReader, bytes: &[u8], piece: usize) -> Result<Content, Flaw> {
    bytes.chunks(piece).for_each(|piece| reader.take(piece));
    reader.finish()
}

#[track_caller]
fn assert_corrupt(coding: &str, bytes: &[u8]) {
    let flaw = read(coding, bytes).unwrap_err();
    assert!(
        flaw.starts_with(&format!("the content is not valid {coding}: ")),
        "{flaw}"
    );
}

fn outermost(coding: &str) -> &'static str {
    read_list(&[coding]).unwrap().pop().unwrap().0
}

#[test]
fn what_others_coded_has_the_digest_that_others_computed() {
    let page_bytes = vector("page.txt").len() as u64;
    for (name, coding, _) in PAGES
        .into_iter()
        .chain([("page.txt", "", 0), ("window-8m.zst", "zstd", 0)])
    {
        let bytes = vector(name);
        let content = read(coding, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(content.digest, expected("page.txt"), "{name}");
        let lengths = (content.encoded_bytes, content.decoded_bytes);
        assert_eq!(lengths, (bytes.len() as u64, page_bytes), "{name}");
    }
}

#[test]
fn windows_slide_over_long_contents() {
    let page = vector("page.txt");
    let long: Vec<u8> = (0..400)
        .flat_map(|turn| [format!("{turn}\n").as_bytes(), &page].concat())
        .collect();
    assert_eq!(Digest::of(&long), expected("long"));
    for (name, coding) in LONGS {
        let bytes = vector(name);
        let in_one = read(coding, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (in_one.digest, in_one.decoded_bytes),
            (expected("long"), long.len() as u64),
            "{name}"
        );
        assert_eq!(
            read_pieces(reader(coding, CODED_LIMIT_BYTES), &bytes, 1),
            Ok(in_one),
            "{name}"
        );
    }
}

#[test]
fn content_cut_short_is_never_taken_for_whole() {
    for (name, coding, inner_ends) in PAGES {
        let bytes = vector(name);
        let cuts = (1..bytes.len()).map(|end| read(coding, &bytes[..end]));
        let (whole, cut): (Vec<_>, Vec<_>) = cuts.partition(Result::is_ok);
        assert_eq!(whole.len(), inner_ends, "{name}");
        let truncated = Err(truncated(outermost(coding)));
        assert!(
            cut.iter().all(|result| *result == truncated),
            "{name}: {cut:?}"
        );
    }
    // The outer coding is complete and the inner one is not.
    let page = vector("page.br");
    let outer = gzip(&page[..page.len() - 1]);
    assert_eq!(read("br, gzip", &outer), Err(truncated(BROTLI)));
}

/// Damage must not panic, and must not change the digest if there is a checksum. Some bits of a header do not
/// affect the content. The last four bytes are length or checksum, where damage must be detected.
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

/// Checks that the zstd decoder leaves to its caller.
#[test]
fn a_zstd_frame_must_keep_to_its_header() {
    let whole = vector("page.unchecked.zst");
    for (place, bit) in [(4, 1 << 3), (5, 1)] {
        let mut bytes = whole.clone();
        bytes[place] ^= bit;
        assert_corrupt("zstd", &bytes);
    }
}

#[test]
fn what_follows_the_end_is_a_flaw() {
    for (name, coding, _) in PAGES {
        for garbage in [
            b"\0".as_slice(),
            b"<!-- served in 3 ms -->",
            b"\x1e\x8b\x08\x28\xb4\x2f\xfd",
        ] {
            let result = read(coding, &[&vector(name), garbage].concat());
            assert_eq!(result, Err(trailing(outermost(coding))), "{name}");
        }
    }
}

#[test]
fn content_that_is_not_coded_as_named_is_corrupt() {
    for coding in ["gzip", "deflate", "br", "zstd"] {
        // A proxy that decodes and leaves the header unchanged.
        assert_corrupt(coding, &vector("page.txt"));
    }
    for (bytes, coding) in [
        (b"ok".to_vec(), "gzip"),
        (b"ok".to_vec(), "zstd"),
        // Windows and dictionaries that HTTP does not allow.
        (vector("large-window.br"), "br"),
        (vector("dictionary.zst"), "zstd"),
    ] {
        assert_corrupt(coding, &bytes);
    }
    assert_eq!(
        read("zstd", &vector("window-16m.zst")).unwrap_err(),
        "the zstd data needs a window of 16777216 bytes: HTTP allows 8388608 (RFC 9659), use a lower level or set the \
         encoder's window log to 23"
    );
}

#[test]
fn a_bomb_stops_at_the_limit() {
    for (name, coding) in BOMBS {
        let bytes = vector(name);
        let read = |limit_bytes| read_pieces(reader(coding, limit_bytes), &bytes, usize::MAX);
        let stopped = read(1 << 20).unwrap_err();
        assert!(
            stopped.ends_with("more than 1048576 bytes, the most that is taken"),
            "{stopped}"
        );
        assert_eq!(
            read(BOMB_BYTES).unwrap().decoded_bytes,
            BOMB_BYTES,
            "{name}"
        );
        assert!(read(BOMB_BYTES - 1).is_err(), "{name}");
    }
}

#[test]
fn coded_content_beyond_the_limit_is_not_kept_and_plain_content_has_none() {
    let bytes = vector("page.gz");
    let limit_bytes = bytes.len() as u64 - 1;
    let mut kept = reader("gzip", limit_bytes);
    bytes.chunks(100).for_each(|piece| kept.take(piece));
    assert!(kept.coded.len() < bytes.len());
    assert!(
        kept.finish()
            .unwrap_err()
            .starts_with("the gzip data is, or decodes to, more than")
    );
    assert_eq!(
        read_pieces(reader("", limit_bytes), &bytes, 100)
            .unwrap()
            .digest,
        Digest::of(&bytes)
    );
}

#[test]
fn a_bomb_that_gives_nothing_in_the_end_stops_too() {
    // A skippable zstd frame of 4 MiB: the outer coding decodes to bytes that the inner one skips.
    let mut frame = vec![0x50, 0x2a, 0x4d, 0x18, 0, 0, 0x40, 0];
    frame.resize(8 + (4 << 20), 0);
    let stopped =
        read_pieces(reader("zstd, gzip", 1 << 20), &gzip(&frame), usize::MAX).unwrap_err();
    assert!(
        stopped.starts_with("the gzip data is, or decodes to, more than"),
        "{stopped}"
    );
    assert_eq!(
        read("zstd, gzip", &gzip(&frame)).unwrap().digest,
        Digest::of(b"")
    );
}

#[test]
fn nothing_coded_and_nothing_at_all_are_both_empty() {
    let nothing = Content {
        digest: Digest::of(b""),
        encoded_bytes: 0,
        decoded_bytes: 0,
        kept: Vec::new(),
        unknown_coding: None,
    };
    for coding in ["", "gzip", "deflate", "br", "zstd", "br, gzip"] {
        assert_eq!(read(coding, b""), Ok(nothing.clone()), "{coding}");
    }
    let files = [
        ("gz", "gzip"),
        ("zlib", "deflate"),
        ("deflate", "deflate"),
        ("br", "br"),
        ("zst", "zstd"),
    ];
    for (suffix, coding) in files {
        let content = read(coding, &vector(&format!("empty.{suffix}")));
        assert_eq!(content.unwrap().digest, nothing.digest, "{suffix}");
    }
}

#[test]
fn the_list_of_codings_is_read_as_rfc_9110_writes_it() {
    let rows: [(&[&str], String); 6] = [
        (&[], "".into()),
        (&["", " , "], "".into()),
        (&["identity"], "".into()),
        (&["GZip"], "gzip".into()),
        (
            &["br,\tX-GZIP", "deflate , identity", ",zstd"],
            "br gzip deflate zstd".into(),
        ),
        (
            &["gzip, gzip, gzip", "br, br"],
            "Content-Encoding names 5 codings: at most 4 are undone".into(),
        ),
    ];
    for (values, expected) in rows {
        let names = |codings: Vec<ContentCoding>| {
            codings
                .iter()
                .map(|coding| coding.0)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(read_list(values).map_or_else(|flaw| flaw, names), expected);
    }
}

#[test]
fn content_with_an_unknown_coding_is_taken_as_it_came() {
    let long = "x".repeat(9999);
    let cut = format!("{}…", &long[..40]);
    let rows = [
        ("UTF-8", "UTF-8"),
        ("gzip, compress", "compress"),
        ("gzip;q=1", "gzip;q=1"),
        (&long, &cut),
    ];
    for (coding, unknown) in rows {
        let content = read(coding, b"x").unwrap();
        assert_eq!(
            (content.digest, content.unknown_coding.as_deref()),
            (Digest::of(b"x"), Some(unknown))
        );
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
