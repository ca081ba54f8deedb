//! The page and the catalogue agree, the page has the right thresholds, and no Markdown reaches a terminal.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::Subject;

use super::*;

/// Parts of each section, in this order.
const LABELS: [&str; 4] = ["**Seen.**", "**Why.**", "**What to do.**", "**Threshold.**"];

#[test]
fn each_check_has_its_section_and_each_section_its_check() {
    for check in Check::ALL {
        let text = section(*check).unwrap_or_default();
        let (number, name, title) = (check.number(), check.name(), check.row().title);
        let head = format!("### {number}. {title}\n\n`{name}`, {}.", grades(*check));
        assert!(
            text.starts_with(&head),
            "docs/validity.md wants a section of its own that begins with\n{head}\n\n{text}"
        );
        let places: Vec<Option<usize>> = LABELS.iter().map(|label| text.find(label)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{number}: {LABELS:?}"
        );
    }
    assert_eq!(
        PAGE.matches("<a id=\"v").count(),
        Check::ALL.len(),
        "a section of no check"
    );
}

#[test]
fn subjects_are_the_headings_of_the_page_in_its_order() {
    let headings: Vec<&str> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let subjects: BTreeSet<Subject> = Check::ALL.iter().map(|check| check.row().subject).collect();
    let subjects: Vec<&str> = subjects.into_iter().map(Subject::heading).collect();
    let of_checks: Vec<&str> = headings
        .iter()
        .copied()
        .filter(|heading| subjects.contains(heading))
        .collect();
    assert_eq!(of_checks, subjects);
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
    for code in PAGE.split('`').skip(1).step_by(2) {
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
            "docs/validity.md has {code}, and it is {truths:?}"
        );
        told += usize::from(!truths.is_empty());
    }
    assert!(
        told >= 12,
        "the page names thresholds by their constants, such as `STEAL_SHARE_MAX = 0.02`: {told}"
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
