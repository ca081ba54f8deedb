//! Output as people paste it: the labels, the figures and the findings of each kind.

use model::FindingCode;
use proofload_foreign::{Audit, pick};

use crate::{audit, written};

/// A pasted text and its right reading.
struct Reading {
    file: &'static str,
    labels: &'static [&'static str],
    /// Requests, failures without lengths, and the mean in microseconds, of the first run.
    first: (Option<u64>, u64, Option<f64>),
    /// Parts of findings, each `GRADE CHECK: EVIDENCE`.
    tells: &'static [&'static str],
    /// Parts that no finding may have.
    never: &'static [&'static str],
}

/// All findings as lines.
fn told(audit: &Audit) -> String {
    let mut lines = Vec::new();
    for found in &audit.findings {
        for case in &found.cases {
            lines.push(format!(
                "{} {}: {} [{}; {}]",
                format!("{:?}", found.grade).to_lowercase(),
                found.check.code(),
                case.evidence,
                case.label,
                found.remedy
            ));
        }
    }
    lines.join("\n")
}

fn read(file: &str) -> Audit {
    audit(file, &std::fs::read(written("pasted").join(file)).unwrap())
}

#[rustfmt::skip]
const READINGS: [Reading; 30] = [
    Reading { file: "repeats-zh.md", labels: &["wrk"], first: (Some(600_005), 0, Some(5100.0)), tells: &[], never: &["one_run"] },
    Reading { file: "settings.txt", labels: &["100 connections · replicas=1", "100 connections · replicas=3"],
        first: (Some(600_000), 0, Some(5100.0)), tells: &[], never: &["unlike_repeats"] },
    Reading { file: "commands-in-prose.md", labels: &["Two servers · localhost:81/index.html", "Two servers · localhost/index.html"],
        first: (Some(10_000), 0, Some(1200.0)), tells: &["other_content: 455 B a response and 844 B"], never: &["closed_loop"] },
    Reading { file: "html.md", labels: &["Server one", "Server two"], first: (Some(1000), 500, Some(2_892_956.0)),
        tells: &["invalid errors_in_throughput: 500 of 1,000"], never: &["<br"] },
    Reading { file: "prompts.md", labels: &["linux or bsd · root@linuxbox", "linux or bsd · root@bsdbox"], first: (Some(600_000), 0, Some(5100.0)),
        tells: &[], never: &["unlike_repeats"] },
    Reading { file: "short-heading.txt", labels: &["one", "two"], first: (Some(600_000), 0, Some(5100.0)), tells: &[], never: &[] },
    Reading { file: "numbers-of-requests.txt", labels: &["h2load · 4,000 requests", "h2load · 40,000 requests"], first: (Some(4000), 0, None),
        tells: &[], never: &[] },
    Reading { file: "error-set.txt", labels: &["vegeta"], first: (Some(270_000), 2700, Some(7150.0)),
        tells: &["errors_in_throughput: 2,700 of 270,000 responses (1 %)"], never: &["one_run", "contradiction"] },
    Reading { file: "vegeta-timeouts.txt", labels: &["vegeta"], first: (Some(250), 149, Some(17_881_000.0)),
        tells: &["invalid timeouts: 149 of 250 requests (60 %)", "at_limit: p50, p90, p95, p99, max"], never: &["connections_failed", "37 %"] },
    Reading { file: "nothing-answered.txt", labels: &["autocannon"], first: (Some(166_000), 166_000, None),
        tells: &["invalid connections_failed: 166,000 other: not one of 166,000 requests was answered"],
        never: &["latency_never_measured", "fewer connections"] },
    Reading { file: "sent-not-answered.txt", labels: &["autocannon"], first: (Some(566_000), 0, Some(13_797_320.0)),
        tells: &["invalid contradiction: 566,000 sent"], never: &[] },
    Reading { file: "quoted-bold.md", labels: &["wrk"], first: (Some(188_400), 377_739, Some(82_890.0)),
        tells: &["90,038 read, 287,067 write", "timeouts: 634"], never: &["not_understood"] },
    Reading { file: "remarks.txt", labels: &["wrk"], first: (Some(80_441), 21_267, Some(86_060.0)),
        tells: &["19,451 of 80,441 responses (24 %)", "timeouts: 8 of"], never: &["19,451 of 19,451"] },
    Reading { file: "ab-remarks.txt", labels: &["ab"], first: (Some(10_000), 0, Some(2_213_000.0)), tells: &["idle_connections"], never: &["closed_loop"] },
    Reading { file: "ab-total.txt", labels: &["ab"], first: (Some(10_000), 0, Some(2_213_000.0)), tells: &["idle_connections"], never: &["closed_loop"] },
    Reading { file: "minutes.txt", labels: &["wrk"], first: (Some(1_800_000), 0, Some(9000.0)), tells: &[], never: &["2m", "120 s"] },
    Reading { file: "wrk2-timeouts.txt", labels: &["wrk2"], first: (Some(34_841), 1490, Some(24_130_000.0)),
        tells: &["warning timeouts: 1,490 times a connection was found waiting", "checks every 2 s", "calibration", "fell_behind"],
        never: &["of 34,841 requests", "leaves it out of every latency", "closed_loop"] },
    Reading { file: "rate-kept.txt", labels: &["hey"], first: (Some(100), 0, Some(273_600.0)), tells: &[], never: &["fell_behind"] },
    Reading { file: "other-section.md", labels: &["What a report looks like"], first: (Some(100), 0, Some(150_000.0)), tells: &[],
        never: &["fell_behind", "not sent"] },
    Reading { file: "prefix-colon.txt", labels: &["wrk"], first: (Some(600_000), 0, Some(5000.0)), tells: &[], never: &[] },
    Reading { file: "prefix-container.txt", labels: &["wrk"], first: (Some(600_000), 0, Some(5000.0)), tells: &[], never: &[] },
    Reading { file: "ab-list.md", labels: &["ab"], first: (Some(76), 0, Some(1_356_986.0)), tells: &[], never: &["closed_loop"] },
    Reading { file: "autocannon-tables.md", labels: &["autocannon"], first: (Some(154_000), 0, Some(2560.0)), tells: &[], never: &["idle"] },
    Reading { file: "autocannon-title.txt", labels: &["autocannon"], first: (Some(469_000), 0, Some(4150.0)), tells: &[], never: &["cut_off"] },
    Reading { file: "k6-waits.txt", labels: &["k6"], first: (Some(274), 0, Some(101_260.0)),
        tells: &["script_waits: an iteration takes 1.10 s, its requests 101 ms; 8.82/s is its pace"], never: &["influxdb"] },
    Reading { file: "k6-stages.txt", labels: &["k6"], first: (Some(41_322), 994, Some(9_530_000.0)),
        tells: &["ramp: Up to 1000 looping VUs for 11m30s over 9 stages", "at_limit: max", "interrupted: 543"], never: &["script_waits"] },
    Reading { file: "other-lengths.md", labels: &["plain", "rich"], first: (Some(600_000), 0, Some(5100.0)),
        tells: &["other_content: 140 B a response and 2.10 kB", "+33.3 % the other way round"], never: &[] },
    Reading { file: "timeout-flag.md", labels: &["wrk"], first: (Some(600_000), 1214, Some(5100.0)),
        tells: &["more than 6s (--timeout)"], never: &["2 s"] },
    Reading { file: "fragments.txt", labels: &["wrk"], first: (Some(600_000), 0, Some(5100.0)), tells: &[], never: &["one_run"] },
    Reading { file: "ab-warns.txt", labels: &["ab"], first: (Some(10_000), 0, Some(31_000.0)),
        tells: &["own_warning: median and mean of the total time are far apart"], never: &[] },
];

#[test]
fn pasted_output_is_read_right() {
    let mut wrong = Vec::new();
    for reading in &READINGS {
        let audit = read(reading.file);
        let labels: Vec<&str> = audit
            .groups
            .iter()
            .map(|group| group.label.as_str())
            .collect();
        let run = &audit.runs[0];
        let first = (
            run.requests,
            run.failures.total(),
            run.latency.mean_us.map(f64::round),
        );
        let told = told(&audit);
        let lacks = reading.tells.iter().filter(|part| !told.contains(**part));
        let has = reading.never.iter().filter(|part| told.contains(**part));
        let parts: Vec<&&str> = lacks.chain(has).collect();
        if labels != reading.labels || first != reading.first || !parts.is_empty() {
            wrong.push(format!(
                "{}: {labels:?} {first:?} {parts:?}\n{told}",
                reading.file
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn runs_after_an_announcement_are_not_named_by_an_earlier_command() {
    let audit = read("announced.md");
    assert_eq!(audit.groups[1].label, "Testing beta on port 3002");
}

#[test]
fn numbers_of_the_table_pick_labels() {
    let groups = read("numbers-of-labels.md").groups;
    assert_eq!([pick(&groups, "1"), pick(&groups, "3")], [[0], [2]]);
}

#[test]
fn remarks_between_lines_do_not_divide_a_run() {
    let audit = read("vegeta-remarks.txt");
    assert_eq!((audit.runs.len(), audit.runs[0].requests), (1, Some(40)));
    assert!(!told(&audit).contains("fell_behind"), "{}", told(&audit));
}

#[test]
fn output_of_a_tool_that_prints_like_another_is_refused() {
    let ghz = read("ghz.txt");
    assert!(ghz.runs.is_empty() && ghz.files[0].unread.contains("ghz"));
    // Without its command.
    let text = std::fs::read_to_string(written("pasted/ghz.txt")).unwrap();
    let (_, output) = text.split_once("\n\n").unwrap();
    assert!(audit("notes.txt", output.as_bytes()).runs.is_empty());
    let ab = "Concurrency Level: 10\nComplete requests: 1000\nRequests per second: 81.3\n";
    for before in [
        "$ ws-benchmark -c 10 ws://a/\n",
        "This is ws-benchmark, Version 1.0\n",
        "",
    ] {
        let audit = audit("notes.txt", format!("{before}{ab}").as_bytes());
        assert!(
            audit.runs.is_empty() && !audit.files[0].unread.is_empty(),
            "{before}"
        );
    }
}

#[test]
fn what_was_not_understood_is_never_zero() {
    for line in [
        "  Socket errors: connect 0, read 12 , write x, timeout 3",
        "  Non-2xx or 3xx responses: ~1200",
    ] {
        let text = crate::wrk("a", 100_000, 500, &format!("{line}\n"));
        let audit = audit("notes.md", text.as_bytes());
        assert_eq!(audit.runs[0].unread.len(), 1, "{line}");
        assert!(audit.runs[0].failures.status.is_none(), "{line}");
        assert!(
            told(&audit).contains("not_understood: line 7"),
            "{}",
            told(&audit)
        );
    }
}

#[test]
fn thousands_that_somebody_separated_are_whole_numbers() {
    let text = include_str!("../corpus/by-hand/vegeta-12-plain.txt");
    let separated = text.replace("1200000, 1000.00", "375,915, 1,253.05");
    assert_ne!(separated, text);
    let audit = audit("notes.txt", separated.as_bytes());
    assert_eq!(audit.runs[0].bytes, Some(375_915.0));
}
