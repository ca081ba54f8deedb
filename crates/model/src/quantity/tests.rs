//! Tests of formatted quantities. Properties for any value: no false zero, no endless fraction, and the text
//! parses to the value.

use proptest::prelude::*;

use super::*;

#[test]
fn a_quantity_has_three_digits_and_the_unit_that_reads_best() {
    let cases = [
        (Quantity::count(134_054_u64), "134,054"),
        (Quantity::count(7_u64), "7"),
        (Quantity::per_s(1234.5), "1,230/s"),
        (Quantity::per_s(52_267.0), "52,300/s"),
        (Quantity::per_s(6.46), "6.46/s"),
        (Quantity::per_s(0.0), "0/s"),
        (Quantity::us(812.3), "812 µs"),
        (Quantity::us(999.6), "1.00 ms"),
        (Quantity::us(0.0), "0 µs"),
        (Quantity::ns(5_000_000), "5.00 ms"),
        (Quantity::us(81_230.0), "81.2 ms"),
        (Quantity::seconds(2.0), "2.00 s"),
        (Quantity::bytes(312.0), "312 B"),
        (Quantity::bytes(134_054.0), "134 kB"),
        (Quantity::bytes(9_996.0), "10.0 kB"),
        (Quantity::share(0.0), "0 %"),
        (Quantity::share(0.0031), "0.31 %"),
        (Quantity::share(0.03), "3 %"),
        (Quantity::share(0.123), "12 %"),
        (Quantity::share(0.99996), "> 99.99 %"),
        (Quantity::share(1.0), "100 %"),
        (Quantity::share(1.503), "150 %"),
        (Quantity::share(0.00001), "< 0.01 %"),
        (Quantity::ratio(0.5), "×0.50"),
        (Quantity::ratio(1.0002), "×1.0002"),
        (Quantity::ratio(1.0 - 1e-16), "×1.00"),
        (Quantity::number(1.417), "1.42"),
    ];
    for (quantity, text) in cases {
        assert_eq!(quantity.to_string(), text, "{quantity:?}");
    }
    assert_eq!([many(1, "run"), many(1234, "run")], ["1 run", "1,234 runs"]);
    assert_eq!(
        [span(0.25), span(60.0), span(125.2), span(3780.0)],
        ["250ms", "1m", "2m5s", "1h3m"]
    );
    let below = [
        share_below(0.005_552),
        share_below(0.1028),
        share_below(1e-7),
    ];
    assert_eq!(below, ["< 0.56 %", "< 10.3 %", "< 0.01 %"]);
}

#[test]
fn a_difference_has_one_unit_and_the_digits_of_its_width() {
    let us = |value, low, high| difference(Unit::Us, value, low, high);
    assert_eq!(
        us(23.06, 17.2, 29.1),
        ("+23.1 µs".into(), "+17.2 to +29.1 µs".into())
    );
    assert_eq!(
        us(-0.214, -0.9, 0.47),
        ("−0.21 µs".into(), "−0.90 to +0.47 µs".into())
    );
    assert_eq!(
        us(15_210.0, 14_900.0, 15_500.0),
        ("+15.21 ms".into(), "+14.90 to +15.50 ms".into())
    );
    let mb = difference(Unit::Bytes, 45e6, -1e3, 9e7);
    assert_eq!(mb, ("+45 MB".into(), "±0 to +90 MB".into()));
}

#[test]
fn a_change_has_a_sign_and_no_false_precision() {
    let cases = [
        ((1.012, 0.9, 1.12), ("+1 %", "−10 % to +12 %")),
        ((0.9996, 0.989, 1.011), ("±0.0 %", "−1.1 % to +1.1 %")),
        ((1.0042, 1.0021, 1.0063), ("+0.42 %", "+0.21 % to +0.63 %")),
        ((0.02134, 0.003, 9.0), ("×0.021", "×0.0030 to ×9.0")),
        (
            (1.149288, 1.149288, 1.149288),
            ("+14.9 %", "+14.9 % to +14.9 %"),
        ),
        (
            (10.585106, 10.585106, 10.585106),
            ("×10.59", "×10.59 to ×10.59"),
        ),
        ((4.123, 3.9, 4.5), ("×4.12", "×3.90 to ×4.50")),
        ((16.54, 15.2, 18.0), ("×16.5", "×15.2 to ×18.0")),
        ((0.0607, 0.0585, 0.0631), ("×0.0607", "×0.0585 to ×0.0631")),
    ];
    for ((ratio, low, high), (value, ends)) in cases {
        assert_eq!(
            interval(ratio, low, high),
            (value.to_owned(), ends.to_owned())
        );
    }
    assert_eq!(
        [
            change_alone(1.04, 0),
            change_alone(0.88, 1),
            change_alone(14.12, 0),
            change_alone(0.0312, 0)
        ],
        ["+4 %", "−12.0 %", "×14.1", "×0.031"]
    );
}

#[test]
fn small_figures_keep_their_digits() {
    let cases = [
        (factor(0.0042), "×0.00420"),
        (factor(0.0), "×0"),
        (factor(3e-7), "< ×0.00001"),
        (three_digits(0.0123), "0.0123"),
        (three_digits(-1234.0), "−1,230"),
        (decimal(0.004, 2), "0.004"),
        (decimal(-0.31, 2), "−0.31"),
        (rate(0.0004), "0.00040/s"),
        (small_share(0.000_000_123), "0.00001 %"),
        (change_exact(1.0002), "+0.02 %"),
        (change_exact(1.0), "±0.0 %"),
        (span(0.0001), "<1ms"),
        (Quantity::us(f64::NAN).to_string(), NONE),
        (factor(f64::INFINITY), NONE),
    ];
    for (text, expected) in cases {
        assert_eq!(text, expected);
    }
}

#[test]
fn an_interval_without_zero_shows_none() {
    let ends = |low, high| interval(1.012, low, high).1;
    assert_eq!(ends(1.0002, 1.024), "+0.02 % to +2.4 %");
    assert_eq!(ends(1.0 + 1e-12, 1.024), "> 0 % to +2.4 %");
    // This interval includes no change.
    assert_eq!(ends(0.9998, 1.024), "±0.0 % to +2.4 %");
    assert_eq!(interval(0.99, 0.97, 0.9996).1, "−3.0 % to −0.04 %");
    assert_eq!(interval(0.3, 0.002, 40.0).1, "×0.0020 to ×40");
    assert_eq!(interval(2.9, 1.004, 8.0).1, "×1.004 to ×8.0");
    assert_eq!(difference(Unit::Us, 15.0, 0.01, 30.0).1, "+0.01 to +30 µs");
}

#[test]
fn nouns_go_with_their_numbers() {
    let nouns = ["run", "process", "entry", "day", "match"];
    assert_eq!(
        nouns.map(|noun| many(1, noun)),
        ["1 run", "1 process", "1 entry", "1 day", "1 match"]
    );
    assert_eq!(
        nouns.map(|noun| many(2, noun)),
        ["2 runs", "2 processes", "2 entries", "2 days", "2 matches"]
    );
    assert_eq!(counted(1200_u32, "request").to_string(), "1,200 requests");
}

const UNITS: [Unit; 7] = [
    Unit::PerS,
    Unit::Us,
    Unit::Bytes,
    Unit::Share,
    Unit::Ratio,
    Unit::Count,
    Unit::Number,
];

/// Returns the numbers in a text, without signs.
fn numbers(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    parts
        .filter(|part| part.contains(|c: char| c.is_ascii_digit()))
        .collect()
}

fn parsed(number: &str) -> f64 {
    number.replace(',', "").parse().unwrap()
}

/// Half a unit in the last place. Whole numbers above a thousand are rounded to three digits.
fn rounding(number: &str) -> f64 {
    let decimals = number
        .split_once('.')
        .map(|(_, decimals)| decimals.len() as i32);
    let whole = number.replace(',', "").len() as i32;
    let place = decimals.map_or(10_f64.powi((whole - 3).max(0)), |decimals| {
        10_f64.powi(-decimals)
    });
    place * 0.500_001
}

/// Asserts that a text has no endless fraction, no signed zero, and only finite numbers.
#[track_caller]
fn assert_readable(text: &str) {
    for number in numbers(text) {
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        assert!(decimals < 6, "{text}");
    }
    for (at, sign) in text.match_indices(['−', '+', '×']) {
        let rest = &text[at + sign.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))
            .unwrap_or(rest.len());
        assert!(end == 0 || parsed(&rest[..end]) > 0.0, "{text}");
    }
    assert!(
        !["NaN", "inf", "-"].iter().any(|bad| text.contains(bad)),
        "{text}"
    );
}

/// Asserts that a text, or the bound it gives, equals this value up to rounding. `scale` converts the number
/// in the text to the value's unit.
#[track_caller]
fn assert_says(text: &str, scale: f64, value: f64) {
    let number = numbers(text)[0];
    let sign = if text.contains('−') { -1.0 } else { 1.0 };
    let (seen, within) = (sign * parsed(number) * scale, rounding(number) * scale);
    match text.trim().chars().next() {
        Some('<') => assert!(value <= seen + 1e-12, "{text}: {value}"),
        Some('>') => assert!(value >= seen - 1e-12, "{text}: {value}"),
        _ => assert!(
            (value - seen).abs() <= within + 1e-9 * value.abs(),
            "{text}: {value}"
        ),
    }
}

/// Returns the scale of the unit in the text.
fn scale_of(unit: Unit, text: &str) -> f64 {
    unit.steps()
        .iter()
        .find(|(_, name)| text.ends_with(name))
        .unwrap()
        .0
}

/// Like [`assert_says`], for a ratio.
#[track_caller]
fn assert_says_ratio(text: &str, ratio: f64) {
    assert_readable(text);
    if text.contains('×') {
        assert_says(text, 1.0, ratio)
    } else {
        assert_says(text, 0.01, ratio - 1.0)
    }
}

fn sizes() -> impl Strategy<Value = f64> {
    (-9.0..9.0_f64).prop_map(|power| 10_f64.powf(power))
}

proptest! {
    #[test]
    fn a_quantity_reads_as_its_value(size in sizes()) {
        for unit in UNITS {
            let value = if unit == Unit::Count { size.ceil() } else { size };
            let text = Quantity { value, unit }.to_string();
            assert_readable(&text);
            assert!(parsed(numbers(&text)[0]) > 0.0, "{text}");
            assert_says(&text, scale_of(unit, &text), value);
        }
        let shares = [small_share(size), share_below(size)];
        shares.iter().for_each(|text| assert_readable(text));
        assert_says(&shares[0], 0.01, size);
        assert!(parsed(numbers(&shares[1])[0]) / 100.0 >= size * 0.999_999_99 - 1e-9, "{}", shares[1]);
        assert_readable(&span(size));
    }

    #[test]
    fn a_change_reads_as_its_ratio(power in -7.0..7.0_f64, low in -9.0..1.0_f64, high in -9.0..1.0_f64) {
        let ratio = 10_f64.powf(power);
        for ratio in [ratio, 1.0 + ratio * 1e-7] {
            let (low, high) = (ratio * (-10_f64.powf(low)).exp(), ratio * 10_f64.powf(high).exp());
            let (value, ends) = interval(ratio, low, high);
            let (lower, upper) = ends.split_once(" to ").unwrap();
            assert_says_ratio(&value, ratio);
            assert_says_ratio(lower, low);
            assert_says_ratio(upper, high);
            let excludes_none = low > 1.0 || high < 1.0;
            assert!(!excludes_none || !format!("{value} {ends}").contains('±'), "{value} {ends}");
            assert_says_ratio(&change_exact(ratio), ratio);
            assert_says_ratio(&change_alone(ratio, 1), ratio);
        }
    }

    #[test]
    fn a_difference_reads_as_its_value(size in sizes(), low in 0.0..3.0_f64, high in 0.0..3.0_f64, sign: bool) {
        let value = if sign { size } else { -size };
        let (low, high) = (value - size * low, value + size * high);
        for unit in [Unit::Us, Unit::Bytes, Unit::Number, Unit::Share] {
            let (text, ends) = difference(unit, value, low, high);
            let scale = scale_of(unit, &text);
            let (lower, upper) = ends.split_once(" to ").unwrap();
            for (text, value) in [(text.as_str(), value), (lower, low), (upper, high)] {
                assert_readable(text);
                assert_says(text, scale, value);
            }
            let excludes_none = low > 0.0 || high < 0.0;
            assert!(!excludes_none || !format!("{text} {ends}").contains('±'), "{text} {ends}");
        }
    }

    #[test]
    fn a_column_reads_as_its_values(sizes in prop::collection::vec(sizes(), 1..6)) {
        for unit in [Unit::PerS, Unit::Us, Unit::Bytes, Unit::Number] {
            let texts = column(unit, &sizes.iter().copied().map(Some).collect::<Vec<_>>());
            for (text, value) in texts.iter().zip(&sizes) {
                assert_readable(text);
                assert!(parsed(numbers(text)[0]) > 0.0, "{text}: {value}");
                assert_says(text, scale_of(unit, text), *value);
            }
        }
    }
}

#[test]
fn a_column_of_ratios_has_one_notation() {
    let column = |all: &[(f64, f64, f64)]| {
        let texts = intervals(all).into_iter();
        texts
            .map(|(value, ends)| format!("{value} ({ends})"))
            .collect::<Vec<_>>()
    };
    let small = (1.034, 1.021, 1.047);
    assert_eq!(column(&[small]), ["+3.4 % (+2.1 % to +4.7 %)"]);
    assert_eq!(
        column(&[small, (14.1, 12.3, 16.3)]),
        ["×1.034 (×1.021 to ×1.047)", "×14.1 (×12.3 to ×16.3)"]
    );
}
