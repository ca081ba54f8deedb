//! Blocks of RFC 7541, appendix C, blocks coded by another implementation, and invalid blocks.

use proptest::prelude::*;

use super::*;

type Field<'a> = (&'a str, &'a str);

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Undecodable> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    decoder.decode(block)?;
    Ok(decoder
        .fields
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect())
}

#[track_caller]
fn assert_fields(decoder: &mut Decoder, hex: &str, expected: &[Field]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    assert_eq!(decoded(decoder, &bytes(hex)).unwrap(), expected);
}

/// Section C.6: Huffman codes and a table of 256 bytes, so that entries are evicted. Here the size is sent
/// first.
#[test]
fn responses_of_the_standard_are_read_as_it_says() {
    let mut decoder = Decoder::default();
    let (date, location) = ("Mon, 21 Oct 2013 20:13:21 GMT", "https://www.example.com");
    let first = "3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad17186\
                 3c78f0b97c8e9ae82ae43d3";
    let fields = |status, date| {
        [
            (":status", status),
            ("cache-control", "private"),
            ("date", date),
            ("location", location),
        ]
    };
    assert_fields(&mut decoder, first, &fields("302", date));
    assert_fields(&mut decoder, "4883640effc1c0bf", &fields("307", date));
    assert_eq!(decoder.table.bytes, 222);
    let third = "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335df\
                 dfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007";
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let mut expected = fields("200", "Mon, 21 Oct 2013 20:13:22 GMT").to_vec();
    expected.extend([("content-encoding", "gzip"), ("set-cookie", cookie)]);
    assert_fields(&mut decoder, third, &expected);
    assert_eq!(decoder.table.bytes, 215);
    // Repeated, with the same meaning although nothing is decoded.
    let known = "88bebfc0";
    assert!(decoder.decode(&bytes(known)).unwrap());
    let before: Vec<_> = decoder
        .fields
        .iter()
        .map(|(_, value)| value.to_vec())
        .collect();
    assert!(!decoder.decode(&bytes(known)).unwrap());
    assert!(
        decoder
            .fields
            .iter()
            .map(|(_, value)| value)
            .eq(before.iter().map(Vec::as_slice))
    );
}

/// The Python package `hpack` has coded all bytes in their order.
#[test]
fn every_byte_comes_out_of_its_code() {
    let coded = include_bytes!("../../../../tests/vectors/every-byte.huffman");
    let mut out = Vec::new();
    huffman::decode(coded, &mut out).unwrap();
    assert_eq!(out, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let cases = [
        ("80", "index 0"),
        ("be", "an index that nobody has inserted"),
        ("ff80808080", "a number without an end"),
        ("ffffffffff7f", "a number beyond all tables"),
        ("4003616263", "a name without its value"),
        ("000561", "a string that ends early"),
        ("823fe11f", "a table's size behind a field"),
        ("3fe220", "a larger table than was allowed"),
        ("00016183ffffff", "padding of a byte and more"),
        ("000161811e", "padding that is not ones"),
        ("00016184fffffffe", "the end inside of a string"),
    ];
    for (block, what) in cases {
        assert_eq!(
            decoded(&mut Decoder::default(), &bytes(block)),
            Err(Undecodable),
            "{what}"
        );
    }
}

/// A few bytes that expand to many: the stored data is limited, and the table stays in sync.
#[test]
fn a_bomb_is_too_large_and_no_more() {
    let mut decoder = Decoder::default();
    let value = [b'v'; 4000];
    let mut block = [&b"\x40\x01a\x7f\xa1\x1e"[..], &value].concat();
    block.extend([0xbe; 10_000]);
    decoder.decode(&block).unwrap();
    assert!(decoder.fields.too_large && decoder.fields.text.len() <= HEAD_LIMIT_BYTES);
    decoder.decode(&[0xbe]).unwrap();
    assert!(!decoder.fields.too_large);
    assert_eq!(decoder.fields.iter().next(), Some((&b"a"[..], &value[..])));
}

proptest! {
    /// The decoder reads what the encoder writes, whatever was sent before and however small the peer's table
    /// is. A block reported as unchanged is unchanged.
    #[test]
    fn requests_come_out_as_they_went_in(
        requests in prop::collection::vec((prop::collection::vec(("[a-c:]{1,3}", "[a-z ]{0,40}"), 1..12), any::<u16>()), 1..12)
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (fields, limit) in requests {
            if limit < 5000 {
                encoder.limit(limit.into());
            }
            for _ in 0..3 {
                let shown = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                let (block, is_same) = encoder.encode(shown.clone());
                let block = block.to_vec();
                prop_assert_eq!(decoded(&mut decoder, &block).unwrap(), fields.clone());
                if is_same {
                    prop_assert_eq!(encoder.encode(shown).0, &block);
                }
            }
        }
    }
}
