//! What a reader of an interval log would be hurt by: lines that end early, times that do not add up, lost samples.
//! Whether other programs read the same figures is `tests/interval_log.rs`.

use super::*;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

const STARTED: Duration = Duration::from_millis(1_795_237_229_250);

fn begin(comments: &[&str]) -> IntervalLog<Vec<u8>> {
    IntervalLog::begin(Vec::new(), STARTED, comments).expect("a Vec")
}

fn text(log: IntervalLog<Vec<u8>>) -> String {
    String::from_utf8(log.finish().expect("a Vec")).expect("ASCII")
}

/// The lines of intervals, each without its histogram.
fn intervals(log: IntervalLog<Vec<u8>>) -> Vec<String> {
    let text = text(log);
    let lines = text.lines().filter(|line| !line.starts_with(['#', '"']));
    lines.map(|line| line.rsplit_once(',').expect("fields").0.to_owned()).collect()
}

#[test]
fn the_head_is_that_of_the_format_whatever_a_comment_says() {
    let text = text(begin(&["Proofload, “keep-alive”\n0.000,1.000,0.000,x", "[BaseTime: 7 (seconds)]"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# Proofload, %E2%80%9Ckeep-alive%E2%80%9D%0A0.000,1.000,0.000,x");
    assert!(lines[3].contains("censored") && lines[3].contains("at least"), "{}", lines[3]);
    assert_eq!(
        lines[5..],
        [
            "#[Histogram log format version 1.3]",
            "#[StartTime: 1795237229.250 (seconds since epoch)]",
            "#[BaseTime: 1795237229.250 (seconds since epoch)]",
            r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#,
        ]
    );
    let entries: Vec<_> =
        IntervalLogIterator::new(text.as_bytes()).map(|entry| entry.expect("valid")).collect();
    assert_eq!(entries, [LogEntry::StartTime(STARTED), LogEntry::BaseTime(STARTED)]);
}

#[test]
fn no_name_ends_its_field_or_reads_like_another() {
    let tag = Tag::new().with("endpoint", "/a b,c;d=e%\r\n\u{85}é").with("time", "service");
    assert_eq!(tag.to_string(), "endpoint=/a%20b%2Cc%3Bd%3De%25%0D%0A%C2%85%C3%A9;time=service");
    assert_ne!(Tag::new().with("a", "1;b=2"), Tag::new().with("a", "1").with("b", "2"));
    assert_ne!(Tag::new().with("a", "1;censored"), Tag::new().with("a", "1").censored());
}

#[test]
fn censored_samples_stand_apart_and_an_interval_without_answers_is_still_there() {
    let mut log = begin(&[]);
    let tag = Tag::new().with("time", "response");
    let mut latencies = Latencies::new();
    let second = Duration::from_secs(1);
    log.interval(&tag, Duration::ZERO, second, &latencies).expect("a Vec");
    latencies.censor(2_000_000);
    log.interval(&tag, second, second, &latencies).expect("a Vec");
    latencies.record(1_000);
    // Beyond the range there is only "at least one hour", which is no measured value.
    latencies.record(u64::MAX);
    log.interval(&Tag::new(), second, second, &latencies).expect("a Vec");
    assert_eq!(
        intervals(log),
        [
            "Tag=time=response,0.000,1.000,0.000",
            "Tag=time=response,1.000,1.000,0.000",
            // 2,000,000 ns lies in the cell that ends at 2,000,895 ns.
            "Tag=time=response;censored,1.000,1.000,2.001",
            "1.000,1.000,0.001",
            "Tag=censored,1.000,1.000,3601330.078",
        ]
    );
}

#[test]
fn intervals_that_touch_still_do_after_months_and_in_fractions_of_a_millisecond() {
    let mut log = begin(&[]);
    let length = Duration::from_micros(1_000_400);
    let months = Duration::from_nanos(20_000_000 * 1_000_000_000 + 400_000);
    for start in [months, months + length, months + 2 * length] {
        log.interval(&Tag::new(), start, length, &Latencies::new()).expect("a Vec");
    }
    log.interval(&Tag::new(), Duration::MAX, length, &Latencies::new()).expect("a Vec");
    assert_eq!(
        intervals(log),
        [
            "20000000.000,1.001,0.000",
            "20000001.001,1.000,0.000",
            "20000002.001,1.001,0.000",
            "18446744073709551616.000,0.000,0.000",
        ]
    );
}

#[test]
fn an_interval_that_readers_would_miss_is_refused() {
    let mut log = begin(&[]);
    let tag = Tag::new().with("time", "service");
    let latencies = Latencies::new();
    log.interval(&tag, Duration::from_secs(5), Duration::ZERO, &latencies).expect("a Vec");
    let error =
        log.interval(&tag, Duration::from_secs(3), Duration::ZERO, &latencies).expect_err("5 s, then 3 s");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("time=service") && error.to_string().contains("5s"), "{error}");
    log.interval(&tag, Duration::from_secs(5), Duration::ZERO, &latencies)
        .expect("same start, as for another tag");
}
