//! The report page as a file: it runs only its own script, loads nothing, stays small, and mentions missing
//! parts.

use std::fs;
use std::path::Path;

use analysis::conclude;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plan::Metric;
use proofload_report::page::{Grade, Outcome, RunState, page_of};
use proofload_report::{MeasuredRecord, Report};
use record::{Record, Repeat};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::explained::between;
use crate::records::{
    as_page as data, factorial, hostile, in_open_loop, kept, of_variants, slices,
};

const TEMPLATE: &str = include_str!("../../src/page/page.html");
const HOSTILE: [&str; 8] = [
    "</script><script>alert(1)</script>",
    "</ScRiPt ><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"onload=\"alert(1)' x",
    "a\u{2028}b\u{2029}c\u{0}]]>",
    "\u{202e}gnp.exe \u{9b}31m",
    "{{title}}{{data}}{{policy}}",
    "ש👩\u{200d}💻 ü",
];

fn embedded(page: &str) -> Value {
    serde_json::from_str(between(page, "id=\"data\">", "</script>")).expect("the data are JSON")
}

fn page(record: &Record) -> String {
    page_of(&data(record))
}

#[test]
fn a_name_that_is_markup_does_nothing() {
    for name in HOSTILE {
        let page = page(&hostile(name));
        for part in ["<script", "</script", "<img", "<!--"] {
            let (found, own) = (
                page.to_lowercase().matches(part).count(),
                TEMPLATE.to_lowercase().matches(part).count(),
            );
            assert_eq!(found, own, "{part} with {name:?}");
        }
        for part in ['\u{2028}', '\u{202e}', '\u{0}', '\u{9b}'] {
            assert!(
                !page.contains(part) || TEMPLATE.contains(part),
                "{part:?} came through"
            );
        }
        // Names are unchanged except for misleading characters.
        let misleads = |c: char| {
            c.is_control() || matches!(c, '\u{200d}' | '\u{202e}' | '\u{2028}' | '\u{2029}')
        };
        let shown: String = name
            .chars()
            .map(|c| if misleads(c) { '\u{fffd}' } else { c })
            .collect();
        assert_eq!(embedded(&page)["title"], shown);
    }
    let page = page(&hostile(HOSTILE[0]));
    assert!(
        page.contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)"),
        "the title is text"
    );
}

#[test]
fn the_policy_lets_run_the_page_s_own_script_and_nothing_else() {
    // A browser hashes the text it reads, in which every line ends in the same way. Control characters could
    // be changed on the way through a terminal.
    assert!(
        !TEMPLATE.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
        "a control character"
    );
    let page = page(&kept());
    let policy = between(
        &page,
        "http-equiv=\"Content-Security-Policy\" content=\"",
        "\"",
    );
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for (name, element) in [
        ("script-src", "<script type=\"module\""),
        ("style-src", "<style"),
    ] {
        let text = between(
            page.split_once(element).expect("the page has one").1,
            ">",
            "</",
        );
        let source = format!(
            "{name} 'sha256-{}';",
            STANDARD.encode(Sha256::digest(text.as_bytes()))
        );
        assert!(policy.contains(&source), "{policy} has not {source}");
    }
    for part in [
        "img-src data:;",
        "base-uri 'none';",
        "form-action 'none';",
        "require-trusted-types-for 'script';",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(
        !["unsafe", "http", "*"]
            .iter()
            .any(|part| policy.contains(part)),
        "{policy}"
    );
    // The page does not refer to external resources. Namespaces of SVG and MathML are names, not addresses.
    let page = page.replace("http://www.w3.org/", "");
    for part in [
        "http://",
        "https://",
        "//cdn",
        " src=\"",
        "@import",
        "<link",
        "sourceMappingURL",
    ] {
        assert!(!page.contains(part), "{part} is in the page");
    }
}

#[test]
fn the_page_has_what_the_other_forms_have_and_numbers_for_its_pictures() {
    let record = kept();
    let data = data(&record);
    let text = crate::records::as_text(&record)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        data.figures
            .rows
            .iter()
            .flatten()
            .all(|cell| text.contains(cell.as_str())),
        "{text}"
    );
    for (name, line) in data.method.iter().chain(&data.place) {
        assert!(text.contains(line.as_str()), "{name}: {line}");
    }
    assert_eq!(
        (data.state, data.left_out.as_slice()),
        (RunState::Decided, &[][..])
    );
    let verdict = &data.verdicts[0];
    assert!(
        text.contains(&verdict.detail) && verdict.also.iter().all(|also| text.contains(also)),
        "{text}"
    );
    assert_eq!((verdict.outcome, verdict.also.len()), (Outcome::Better, 1));
    let ratio = verdict.ratio.expect("a ratio");
    let mean =
        verdict.blocks.iter().map(|ratio| ratio.ln()).sum::<f64>() / verdict.blocks.len() as f64;
    assert!(
        (mean.exp() / ratio.estimate - 1.0).abs() < 1e-4,
        "the blocks are those of the estimate"
    );
    let metrics: Vec<&str> = data
        .series
        .iter()
        .map(|series| series.metric.as_str())
        .collect();
    assert_eq!(metrics, ["throughput", "CPU/request", "peak memory"]);
    assert_eq!(data.series[0].blocks, (1..=10).collect::<Vec<u32>>());
    assert_eq!(data.latencies.len(), 1);
    assert!(data.latencies[0].note.is_some() && data.latencies[0].curves[1].points.len() > 5);
    let lines: Vec<(usize, u32)> = data
        .time_lines
        .iter()
        .map(|line| (line.variant, line.block))
        .collect();
    assert_eq!(lines, [(0, 5), (1, 5)]);
    assert!(
        data.time_lines
            .iter()
            .all(|line| line.warm_up > 1 && line.warm_up < line.at_s.len())
    );
    assert_eq!(data.repeat, "proofload run simulated.toml --seed 11");
}

#[test]
fn the_command_that_repeats_a_run_can_be_typed() {
    let mut record = kept();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    for (repeat, command) in [
        (
            Repeat::Command(words(&["run", "my shop/a.toml"])),
            "run 'my shop/a.toml'",
        ),
        (Repeat::SavedFile, "run records/simulated/experiment.toml"),
    ] {
        record.header.repeat = repeat;
        assert_eq!(
            data(&record).repeat,
            format!("proofload {command} --seed 11")
        );
    }
    // A longer budget replaces the typed one.
    record.header.repeat = Repeat::Command(words(&["run", "a.toml", "--budget", "1m30s"]));
    let told = data(&record);
    assert_eq!(told.repeat, "proofload run a.toml --budget 1m30s --seed 11");
    for step in told.next {
        assert!(step.matches("--budget").count() <= 1, "{step}");
    }
    // A load has no file.
    let words = ["proofload", "--records", "r", "load", "http://shop/"];
    (record.header.command, record.header.repeat) =
        (words.map(str::to_owned).into(), Repeat::AsTyped);
    let told = data(&record);
    assert_eq!(told.repeat, "proofload --records r load http://shop/");
    assert!(
        !told.next.iter().any(|step| step.contains("proofload run")),
        "{:?}",
        told.next
    );
}

#[test]
fn a_void_comparison_has_no_number_anywhere() {
    let mut record = factorial(2, 0.0);
    for slice in slices(&mut record) {
        (slice.counts.successful, slice.counts.timed_out) =
            (slice.counts.successful / 2, slice.counts.successful / 2);
    }
    let data = data(&record);
    assert_eq!(data.state, RunState::Invalid);
    for verdict in &data.verdicts {
        assert_eq!((verdict.outcome, verdict.ratio), (Outcome::Invalid, None));
        assert!(
            verdict.blocks.is_empty() && verdict.also.is_empty(),
            "{verdict:?}"
        );
    }
    assert!(data.interactions.is_empty());
    assert!(data.effects.is_some_and(|effects| effects.lines.is_empty()));
    let first = &data.findings[0];
    assert_eq!((first.grade, first.check.number()), (Grade::Invalid, "V8"));
    assert!(data.explanations["V8"].len() > 3, "{:?}", data.explanations);
    assert_eq!(data.errors.len(), data.variants.len());
    assert!(
        data.errors
            .iter()
            .all(|row| row.failure.phase == "time-out"),
        "{:?}",
        data.errors
    );
}

#[test]
fn two_factors_have_their_means_over_trials_and_over_the_others() {
    let record = factorial(4, 0.0);
    let data = data(&record);
    let names = ("node_env", "body", "throughput");
    let of = data.interactions.iter();
    let grid = of.filter(|of| {
        (
            of.across.0.as_str(),
            of.lines.0.as_str(),
            of.metric.as_str(),
        ) == names
    });
    let values = grid.map(|grid| &grid.values).next().expect("it is there");
    let value = |line: usize, across: usize| values[line][across].expect("a value");
    // Effects planted in the tests' records: ×1.4, ×0.7, and ×1.1 of both together. The copy of the baseline
    // is not included.
    for (seen, planted) in [
        (value(0, 1) / value(0, 0), 1.4),
        (value(1, 1) / value(1, 0), 1.4 * 1.1),
        (value(1, 0) / value(0, 0), 0.7),
    ] {
        assert!((seen / planted - 1.0).abs() < 0.02, "{planted}: {values:?}");
    }
    assert_eq!(data.interactions.len(), 6 * 3);
    assert!(
        data.effects
            .is_some_and(|effects| effects.lines.iter().any(|line| line.interaction))
    );
}

#[test]
fn captures_are_told_as_in_the_other_forms() {
    let (record, explanation) = (kept(), crate::explained::full());
    let conclusion = conclude(&record);
    let page = MeasuredRecord::new(&record, &conclusion, Some(&explanation)).page();
    let why = page
        .and_then(|page| page.why)
        .expect("there is an explanation");
    assert_eq!(why.reasons.len(), explanation.comparisons.len());
    assert_eq!(
        why.reasons[0].1[0],
        explanation.comparisons[0].reconciliation
    );
    assert!(!why.tables.is_empty() && why.tables.iter().all(|table| !table.heading.is_empty()));
    assert_eq!(why.flame_page.as_deref(), Some("flame.html"));
}

/// The stored record, truncated within an event.
fn broken_off(bytes_kept: impl Fn(&str) -> usize) -> Record {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../record/tests/records/v1"
    ));
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["record.json", "experiment.toml"] {
        fs::copy(path.join(name), folder.path().join(name)).expect("a copy");
    }
    let events = fs::read_to_string(path.join("events.jsonl")).expect("events");
    let kept = bytes_kept(&events);
    if kept > 0 {
        fs::write(folder.path().join("events.jsonl"), &events[..kept]).expect("events");
    }
    record::open(folder.path()).expect("it opens")
}

#[test]
fn a_record_that_broke_off_gives_a_page_that_says_what_is_missing() {
    let cut = broken_off(|events| {
        events
            .find("\"block_started\":{\"block\":8,")
            .expect("block 8")
            + 4000
    });
    let told = data(&cut);
    assert_eq!(told.state, RunState::Broken);
    assert!(
        told.answer.starts_with("The run did not end by itself"),
        "{}",
        told.answer
    );
    assert!(
        told.findings
            .iter()
            .any(|finding| finding.evidence.contains("cut off")),
        "{:?}",
        told.findings
    );
    assert_eq!(told.left_out, ["block 8 has no end: it is in no figure"]);
    assert_eq!(told.series[0].blocks.len(), 7);

    let first = broken_off(|events| {
        events
            .match_indices("\"slice\":")
            .nth(1)
            .expect("a second slice")
            .0
            + 90
    });
    let told = data(&first);
    assert!(told.series[0].blocks.is_empty() && told.latencies[0].curves[0].points.is_empty());
    assert_eq!(told.time_lines.len(), 1, "what there is of the first block");

    let empty = broken_off(|_| 0);
    let told = data(&empty);
    assert!(
        told.answer.ends_with("nothing had been measured"),
        "{}",
        told.answer
    );
    assert!(
        told.findings
            .iter()
            .any(|finding| finding.evidence.contains("events.jsonl is missing"))
    );
    assert!(told.time_lines.is_empty() && told.plan.is_some());
    for record in [cut, first, empty] {
        assert_eq!(
            embedded(&page(&record))["experiment"],
            record.header.plan.name
        );
    }
}

#[test]
fn indices_that_lead_nowhere_are_no_panic() {
    let mut record = kept();
    let plan = &mut record.header.plan;
    plan.comparisons.push(plan::Comparison {
        baseline: 7,
        candidate: 99,
        label: "x vs y".into(),
    });
    plan.variants[1].levels.clear();
    plan.factors.push(plan::Factor {
        name: "unknown".into(),
        levels: vec!["a".into(), "b".into()],
    });
    for block in &mut record.blocks {
        block.order = vec![5, 0];
        block.number = 1;
    }
    let told = data(&record);
    assert_eq!(told.verdicts.len(), 1);
    let left_out = "x vs y: the plan has no such variants".to_owned();
    assert!(told.left_out.contains(&left_out), "{:?}", told.left_out);
    record.header.plan.variants.clear();
    assert!(data(&record).variants.is_empty());
}

#[test]
fn a_record_of_200_variants_or_of_10_000_blocks_is_a_page_below_5_megabytes() {
    for (variants, blocks) in [(200, 12), (2, 10_000)] {
        let names: Vec<String> = (0..variants)
            .map(|index| format!("level-{index}"))
            .collect();
        let record = of_variants(&names, blocks, 3);
        let page = page(&record);
        let told = embedded(&page);
        assert!(
            page.len() < 5_000_000,
            "{} bytes of {variants} × {blocks}",
            page.len()
        );
        assert!(
            page.len() > 300_000,
            "{} bytes of {variants} × {blocks}: is it all there?",
            page.len()
        );
        assert_eq!(told["variants"].as_array().map(Vec::len), Some(variants));
        assert_eq!(
            told["verdicts"].as_array().map(Vec::len),
            Some(variants - 1)
        );
        let drawn = told["latencies"][0]["curves"]
            .as_array()
            .expect("curves")
            .iter();
        let drawn = drawn.filter(|curve| {
            curve["points"]
                .as_array()
                .is_some_and(|points| !points.is_empty())
        });
        assert_eq!(drawn.count(), variants.min(64));
        assert_eq!(
            told["left_out"].as_array().is_some_and(Vec::is_empty),
            variants == 2
        );
    }
}

#[test]
fn an_open_loop_has_response_times_and_quantiles_by_block() {
    let mut record = in_open_loop(Metric::P90);
    for slice in slices(&mut record) {
        if slice.kind != record::SliceKind::Measured {
            slice.counts.open = None;
        }
        slice
            .counts
            .open
            .iter_mut()
            .for_each(|open| open.unsent = 3);
    }
    let told = data(&record);
    let kinds: Vec<&str> = told
        .latencies
        .iter()
        .map(|curves| curves.kind.as_str())
        .collect();
    assert_eq!(kinds, ["response time", "service time"]);
    let metrics: Vec<&str> = told
        .series
        .iter()
        .map(|series| series.metric.as_str())
        .collect();
    assert_eq!(
        metrics,
        ["CPU/request", "peak memory", "p50", "p90", "p99", "p99.9"]
    );
    assert!(told.series[3].values.iter().flatten().all(Option::is_some));
    assert!(
        told.errors
            .iter()
            .any(|row| row.failure.cause == "due and never sent"),
        "{:?}",
        told.errors
    );
    let line = &told.time_lines[0];
    assert!(
        line.p90_us[..line.warm_up].iter().all(Option::is_none),
        "warm-up is in closed loop"
    );
    assert!(line.p90_us[line.warm_up..].iter().all(Option::is_some));
}
