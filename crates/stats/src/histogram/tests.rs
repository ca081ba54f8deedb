//! Tests against invented certainty, lost samples, and records that decode differently.

use super::encoding::{from_text, to_text};
use super::*;
use base64::{Engine, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use std::io::{Read, Write};

fn latencies(exact: &[u64], censored: &[u64]) -> Latencies {
    let mut latencies = Latencies::new();
    exact.iter().for_each(|&ns| latencies.record(ns));
    censored.iter().for_each(|&ns| latencies.censor(ns));
    latencies
}

/// Encodes a plain V2 form as text. The first eight bytes are ignored by readers.
fn stored(plain: &[u8]) -> String {
    let mut encoder = flate2::write::ZlibEncoder::new(vec![0; 8], flate2::Compression::fast());
    encoder.write_all(plain).expect("a Vec");
    STANDARD.encode(encoder.finish().expect("a Vec"))
}

#[test]
fn requests_that_timed_out_bound_the_quantiles_they_reach() {
    let mut latencies = latencies(&[], &[2_000_000_000; 20]);
    (1..=980).for_each(|ms| latencies.record(ms * 1_000));
    assert_eq!((latencies.count(), latencies.censored()), (1_000, 20));
    let median = latencies.exact.full().lowest_equivalent(500_000);
    assert_eq!(latencies.quantile(0.5), Some(Quantile::Exact(median)));
    let late = latencies.quantile(0.99);
    assert!(
        matches!(late, Some(Quantile::AtLeast(1_998_000_000..=2_000_000_000))),
        "{late:?}"
    );
    assert!(!latencies.max().expect("samples").is_exact());
}

#[test]
fn only_timeouts_are_still_a_lower_bound_and_never_nothing() {
    let latencies = latencies(&[], &[1_500; 3]);
    for found in [
        latencies.quantile(0.5),
        latencies.mean(),
        latencies.quantile(0.0),
    ] {
        assert_eq!(found, Some(Quantile::AtLeast(1_500)));
    }
    assert_eq!(latencies.bounds(0.5), Some((1_500, None)));
    assert_eq!(
        (Latencies::new().quantile(0.5), Latencies::new().mean()),
        (None, None)
    );
}

#[test]
fn longer_than_the_range_is_at_least_the_range() {
    let latencies = latencies(&[HIGHEST_NS + 1, u64::MAX], &[u64::MAX]);
    assert_eq!((latencies.count(), latencies.censored()), (3, 3));
    const LEAST: u64 = HIGHEST_NS / 1_001 * 1_000 + 1;
    assert!(matches!(
        latencies.max(),
        Some(Quantile::AtLeast(LEAST..=HIGHEST_NS))
    ));
}

#[test]
fn a_quantile_is_shown_only_with_ten_samples_beyond_it() {
    let mut latencies = latencies(&[1; 999], &[]);
    assert!(latencies.resolves(0.9) && !latencies.resolves(0.99));
    latencies.censor(1);
    assert!(latencies.resolves(0.99) && !latencies.resolves(0.999));
}

#[test]
fn the_record_leaves_out_an_empty_half_and_reads_back() {
    for censored in [&[][..], &[HIGHEST_NS]] {
        let kept = latencies(&[0, 7, 123_456_789], censored);
        let text = serde_json::to_string(&kept).expect("strings");
        assert!(text.starts_with(r#"{"hdr":"HISTF"#), "{text}");
        assert_eq!(text.contains("censored"), !censored.is_empty(), "{text}");
        assert_eq!(
            serde_json::from_str::<Latencies>(&text).expect("just written"),
            kept
        );
    }
}

#[test]
fn damaged_and_foreign_histograms_are_errors() {
    let good = to_text(&latencies(&[1, 2, 3], &[]).exact.full());
    let mut foreign_text = Vec::new();
    let foreign = Histogram::<u32>::new_with_bounds(1, HIGHEST_NS, 2).expect("valid layout");
    V2DeflateSerializer::new()
        .serialize(&foreign, &mut foreign_text)
        .expect("a Vec");
    let foreign_text = STANDARD.encode(foreign_text);
    for (text, reason) in [
        ("?", "base64"),
        ("AAAA", "head"),
        (&good[..good.len() - 8], ""),
        (foreign_text.as_str(), "layout"),
    ] {
        let error = from_text(text).expect_err(text).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn no_damage_to_a_stored_histogram_panics_or_allocates_without_bound() {
    let bytes = STANDARD
        .decode(to_text(
            &latencies(&[5, 5_000, 5_000_000], &[]).exact.full(),
        ))
        .expect("own text");
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&bytes[8..])
        .read_to_end(&mut plain)
        .expect("own bytes");
    for place in 0..plain.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = plain.clone();
            damaged[place] = value;
            // The position determines whether the result is an error or another valid histogram. Either is
            // accepted.
            let _ = from_text(&stored(&damaged));
        }
    }
}

#[test]
fn packed_it_says_the_same_and_takes_samples_again() {
    let open = latencies(&[1, 5, 5, 3_000_123, 3_000_124, 9_000_000_000], &[2000]);
    let mut packed = open.clone();
    packed.pack();
    assert!(packed == open);
    assert_eq!(packed.encode(), open.encode());
    assert_eq!(
        (packed.count(), packed.censored(), packed.mean()),
        (7, 1, open.mean())
    );
    for q in [0.0, 0.2, 0.5, 0.9, 1.0] {
        assert_eq!(packed.bounds(q), open.bounds(q));
    }
    let (mut sum, mut expected) = (packed.clone(), open.clone());
    sum.merge(&packed);
    expected.merge(&open);
    sum.record(77);
    expected.record(77);
    assert!(sum == expected && sum != packed);
    let mut other = latencies(&[1, 5, 5, 3_000_123, 3_000_124], &[2000]);
    other.pack();
    assert!(other != packed);
}

#[test]
fn a_stored_histogram_with_what_ours_cannot_have_is_told_and_what_it_can_is_read() {
    let read = |numbers: &[i64]| {
        let mut plain = 0x1c84_9313_u32.to_be_bytes().to_vec();
        let mut rest = Vec::new();
        for number in numbers {
            super::packed::put(&mut rest, (number << 1 ^ number >> 63) as u64);
        }
        plain.extend((rest.len() as u32).to_be_bytes());
        plain.extend([0, 0, 0, 0, 0, 0, 0, SIGNIFICANT_DIGITS]);
        plain.extend(
            [
                LOWEST_NS.to_be_bytes(),
                HIGHEST_NS.to_be_bytes(),
                1f64.to_be_bytes(),
            ]
            .concat(),
        );
        plain.extend(rest);
        from_text(&stored(&plain))
    };
    let cells = |numbers: &[i64]| read(numbers).expect("honest").cells().collect::<Vec<_>>();
    assert!(cells(&[]).is_empty());
    assert_eq!(
        cells(&[7, 0, -3, 1, i64::from(u32::MAX)]),
        [(0, 7), (5, 1), (6, u64::from(u32::MAX))]
    );
    assert_eq!(cells(&[-33_791, 2]), [(33_791, 2)]);
    assert_eq!(
        cells(&[4, i64::MIN, 0]),
        [(0, 4)],
        "nothing behind the last cell is nothing"
    );
    let error = |numbers: &[i64]| read(numbers).expect_err("dishonest").to_string();
    assert!(
        error(&[-33_792, 2]).contains("more than 33792 cells"),
        "{}",
        error(&[-33_792, 2])
    );
    assert!(
        error(&[1 << 32]).contains("4294967296 samples in one cell"),
        "{}",
        error(&[1 << 32])
    );
}

#[test]
fn a_few_packed_ones_stay_packed_when_they_are_merged_and_are_what_open_ones_are() {
    let parts = [
        latencies(&[1, 9, 9], &[]),
        latencies(&[3, 9, 70_000], &[5]),
        latencies(&[], &[5, 6]),
    ];
    let (mut few, mut many) = (Latencies::none(), Latencies::new());
    for mut part in parts {
        many.merge(&part);
        part.pack();
        few.merge(&part);
    }
    assert!(matches!(
        (&few.exact, &few.censored),
        (HistogramLayout::Packed(_), HistogramLayout::Packed(_))
    ));
    assert!(few == many);
    assert_eq!(
        (few.count(), few.censored(), few.encode()),
        (9, 3, many.encode())
    );
}
