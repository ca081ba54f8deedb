//! Pages are generated, explanations have the right thresholds, and no Markdown reaches a terminal.

use std::fs;
use std::path::Path;

use model::{Metric, MetricLoop};

use super::*;

/// Parts of each section, in this order.
const LABELS: [&str; 4] = ["**Seen.**", "**Why.**", "**What to do.**", "**Threshold.**"];

/// Compares a page of the documentation with its generated form, or writes it if UPDATE_DOCS is set.
fn generated(page: &str, generate: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = path.join(page);
    let written = fs::read_to_string(&path).expect("a page");
    let wanted = generate(&written);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, wanted).expect("a page that can be written");
        return;
    }
    let hint = "run: UPDATE_DOCS=1 cargo test -p proofload-report validity";
    let line = wanted.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert!(wanted == written, "docs/{page} is stale; {hint}\n{line:?}");
}

#[test]
fn pages_are_generated_from_checks_and_metrics() {
    let by_subject = Check::ALL.chunk_by(|one, next| one.row().subject == next.row().subject);
    let sections = by_subject.flat_map(|checks| {
        let heading = format!("## {}\n", checks[0].row().subject.heading());
        let anchor = |check: &Check| check.number().to_lowercase();
        let sections = checks
            .iter()
            .map(move |check| format!("<a id=\"{}\"></a>\n{}\n", anchor(check), section(*check)));
        std::iter::once(heading).chain(sections)
    });
    let sections = sections.collect::<Vec<_>>().join("\n");
    // Text before the first heading is written by hand.
    generated("validity.md", |page| {
        let (begin, _) = page.split_once("\n## ").expect("a subject");
        format!("{begin}\n{sections}")
    });
    generated("experiment-file.md", metrics_in);
}

/// The reference of the experiment file with the names of all metrics, and a row for the limit of each.
fn metrics_in(page: &str) -> String {
    let replaced = |page: &str, begin: &str, end: &str, with: &str| {
        let (before, rest) = page.split_once(begin).expect(begin);
        let (_, after) = rest.split_once(end).expect(end);
        format!("{before}{begin}{with}{end}{after}")
    };
    let names = Metric::ALL.iter();
    let names: Vec<String> = names.map(|of| format!("`\"{}\"`", of.name())).collect();
    let page = replaced(page, "\n| `metric` | ", ", or a list", &names.join(", "));
    let row = |metric: &Metric| {
        let change = if metric.wants_more() {
            "> -5%"
        } else {
            "< +5%"
        };
        let (name, limit) = (metric.name(), metric.row().limit);
        let only = match metric.row().loops {
            MetricLoop::Closed => " Closed loop only. |",
            MetricLoop::Open => " Open loop only. |",
            MetricLoop::Search => " With `design.slo` only. |",
            MetricLoop::Either => " |",
        };
        format!("| `{name}` | `\"{limit}\"`, `\"{change}\"` |{only}\n")
    };
    let rows: String = Metric::ALL.iter().map(row).collect();
    let heading = "\n| key | an amount, a change | meaning |\n|---|---|---|\n";
    replaced(&page, heading, "| `failed` |", &rows)
}

#[test]
fn explanations_have_four_parts() {
    for check in Check::ALL {
        let text = check.explanation();
        let places: Vec<Option<usize>> = LABELS.iter().map(|label| text.find(label)).collect();
        assert!(
            places[0] == Some(0) && places.iter().all(Option::is_some) && places.is_sorted(),
            "{}: {LABELS:?}",
            check.number()
        );
    }
}

/// The `const` items of a crate's sources: name and value, as written.
fn constants(folder: &Path, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("sources").flatten() {
        if entry.path().is_dir() {
            constants(&entry.path(), into);
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a source");
        for item in text.split("const ").skip(1) {
            let declared = item
                .split_once(';')
                .and_then(|(item, _)| item.split_once(" = "));
            let Some((head, value)) = declared else {
                continue;
            };
            into.extend(
                head.split_once(':')
                    .map(|(name, _)| (name.to_owned(), value.to_owned())),
            );
        }
    }
}

#[test]
fn thresholds_are_told_as_they_are() {
    let mut known = Vec::new();
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    ["analysis/src", "lab/src", "model/src"]
        .iter()
        .for_each(|folder| constants(&crates.join(folder), &mut known));
    let mut told = 0;
    let codes = |check: &Check| check.explanation().split('`').skip(1).step_by(2);
    for code in Check::ALL.iter().flat_map(codes) {
        let Some((name, value)) = code.split_once(" = ") else {
            continue;
        };
        let truths: Vec<&str> = known
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, truth)| truth.as_str())
            .collect();
        // Two crates may have constants with the same name.
        assert!(
            truths.is_empty() || truths.contains(&value),
            "an explanation has {code}, and it is {truths:?}"
        );
        told += usize::from(!truths.is_empty());
    }
    assert!(
        told >= 12,
        "explanations name thresholds by their constants, such as `STEAL_SHARE_MAX = 0.02`: {told}"
    );
}

#[test]
fn a_section_is_plain_text_in_a_terminal_and_in_a_page() {
    for check in Check::ALL {
        let document = Explained { checks: &[*check] }.document();
        let text = anstream::adapter::strip_str(&crate::text(&document, 72)).to_string();
        for mark in ["](", "**", "```", "\n|", "\n#", "<a "] {
            assert!(
                !text.contains(mark),
                "{}: `{mark}` is left in\n{text}",
                check.number()
            );
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 72),
            "{text}"
        );
        let paragraphs = paragraphs(*check);
        assert!(
            paragraphs.len() >= LABELS.len(),
            "{}: {paragraphs:?}",
            check.number()
        );
        let bare = |text: &String| {
            !text.is_empty()
                && !["\n", "](", "**", "<a "]
                    .iter()
                    .any(|mark| text.contains(mark))
        };
        assert!(
            paragraphs.iter().all(bare),
            "{}: {paragraphs:?}",
            check.number()
        );
    }
    let lines = lines(
        "### V1. Title\n\n**Seen.** See [the\npage](a.md#b), **now** ([V2](#v2)).\n\n- one two\n  three\n- four",
    );
    let told: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line.name.as_str(), line.text.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("seen", "See the page [docs/a.md#b], now (V2)."),
            ("", "- one two three"),
            ("", "- four")
        ]
    );
}

#[test]
fn findings_are_explained_by_one_command_that_names_each_once() {
    let of = |check| Finding::warning(check, "seen", "do");
    let findings = [of(Check::Errors), of(Check::WorkersLost), of(Check::Errors)];
    assert_eq!(
        explained_by(findings.iter()).as_deref(),
        Some("proofload explain V8 V17")
    );
    assert_eq!(explained_by([].iter()), None);
}
