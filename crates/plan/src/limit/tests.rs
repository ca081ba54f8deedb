//! Which limits are valid, what they mean, and the messages for others.

use proptest::prelude::*;

use super::*;

#[test]
fn a_limit_is_read_with_its_figure_side_and_unit() {
    for (text, value, is_change) in [
        ("p99 < 50ms", 50_000.0, false),
        ("p99.9<1.5s", 1_500_000.0, false),
        ("p50 < 900us", 900.0, false),
        ("throughput > -3%", 0.97, true),
        ("throughput > +10%", 1.1, true),
        ("throughput > 1000/s", 1000.0, false),
        ("cpu_per_request < +5%", 1.05, true),
        ("cpu_per_request < -10%", 0.9, true),
        ("cpu_per_request < +0%", 1.0, true),
        ("peak_memory <   200MB", 200e6, false),
        ("failed < 0.1%", 0.001, false),
    ] {
        let limit = limit(text).unwrap();
        assert!(
            (limit.bound.value() - value).abs() < 1e-9 * value,
            "{text}: {limit:?}"
        );
        assert_eq!(limit.bound.is_change(), is_change, "{text}");
    }
}

/// In addition to `tests/bad/gate*.toml`.
#[test]
fn what_is_no_limit_says_why_and_what_would_be_one() {
    for (text, said) in [
        ("p99", "has no bound"),
        ("p99 < ms", "has no number that can be read"),
        ("p99 < 1e3ms", "has a unit that is not known"),
        ("p99 < .5ms", "has no number that can be read"),
        (
            "p99 < 99999999999999999999ms",
            "has no number that can be read",
        ),
        ("p99 < +50ms", "is an amount with a sign"),
        ("p99 < --5%", "has more than one sign"),
        ("p99 < −5%", "has no number that can be read"),
        ("p99 < 0ms", "is nothing, it must be above 0"),
        ("throughput > 3%", "has a sign: \"> -3%\""),
        ("throughput > -100%", "leaves nothing over"),
        ("cpu_per_request < +10001%", "at most +10000%"),
        ("failed < 100%", "below 100%"),
        ("failed < 5ms", "is in ms"),
        (
            "p98 < 50ms",
            "the quantiles are p50, p75, p90, p95, p99, p99.5, p99.9",
        ),
        ("peak_rss < 50MB", "there is no figure `peak_rss`"),
        ("", "there is no figure ``"),
        ("< 50ms", "there is no figure ``"),
    ] {
        let error = limit(text).unwrap_err();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

fn any_limit() -> impl Strategy<Value = Limit> {
    let figure = proptest::sample::select(LimitFigure::all().collect::<Vec<_>>());
    (
        figure,
        any::<bool>(),
        1u32..999_999,
        0u32..4,
        any::<proptest::sample::Index>(),
    )
        .prop_map(|(figure, change, digits, decimals, unit)| {
            let number = f64::from(digits) / 10_f64.powi(decimals as i32);
            let thousandths = f64::from(digits % 99_998 + 1) / 1e3;
            let units: Vec<&AmountUnit> = UNITS
                .iter()
                .filter(|unit| unit.counts == figure.unit())
                .collect();
            let bound = match figure {
                LimitFigure::Failed => Bound::Amount(thousandths, &UNITS[7]),
                _ if change => Bound::Change((f64::from(digits) - 98_999.0) / 1e3),
                _ => Bound::Amount(number, units[unit.index(units.len())]),
            };
            Limit { figure, bound }
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(limit in any_limit()) {
        let written = limit.to_string();
        prop_assert_eq!(super::limit(&written), Ok(limit), "{}", written);
    }

    #[test]
    fn no_text_is_a_crash(text in "(p99|throughput|failed|) ?[<>=]{0,2} ?[+−-]{0,2}[0-9.]{0,20}.{0,4}") {
        if let Ok(limit) = super::limit(&text) {
            prop_assert!(limit.bound.value() > 0.0 && limit.bound.value().is_finite());
        }
    }
}

#[test]
fn quantiles_of_other_tools_get_a_hint() {
    for (text, hint) in [
        ("p(95)<200", "write \"p95 < 200ms\""),
        ("p(99.9) < 1s", "write \"p99.9 < 1s\""),
        (
            "p97 < 20ms",
            "the quantiles are p50, p75, p90, p95, p99, p99.5, p99.9",
        ),
    ] {
        let problem = limit(text).expect_err("it is refused");
        assert!(problem.contains(hint), "{problem}");
    }
    for name in ["p75", "p95", "p99.5"] {
        assert!(limit(&format!("{name} < 20ms")).is_ok(), "{name}");
    }
}
