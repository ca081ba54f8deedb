//! No input makes the readers panic, hang or use unlimited memory, and none invents a run.

use std::sync::LazyLock;

use proofload_foreign::{Audit, LINE_BYTES_MAX, RUNS_MAX, Reader};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{audit, written};

/// All results of a text: findings, and each possible comparison.
fn everything(bytes: &[u8]) -> Audit {
    let audit = audit("input", bytes);
    for candidate in 0..audit.groups.len().min(8) {
        let _ = proofload_foreign::compare(&audit, 0, candidate);
    }
    for finding in &audit.findings {
        for (_, figure) in finding
            .cases
            .iter()
            .flat_map(|case| case.evidence.figures())
        {
            assert!(figure.value.is_finite(), "{finding:?}");
        }
    }
    for run in &audit.runs {
        assert!(run.lines.first <= run.lines.last, "{run:?}");
    }
    audit
}

/// Lines and words that the tools have printed, with the blanks around them.
static PRINTED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let files = std::fs::read_dir(written("tools")).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let mut pieces: Vec<String> = texts
        .flat_map(|text| {
            let lines = text.lines().map(|line| format!("{line}\n"));
            lines
                .chain(text.split_inclusive([' ', '\t', ':']).map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect();
    pieces.sort();
    pieces.dedup();
    pieces
});

/// Tool output, numbers of all kinds, and the decorations of people and terminals.
fn piece() -> impl Strategy<Value = String> {
    let signs = [
        "{", "}", "\"", "\\", "[", "]", "\n", "\n\n", "\r", "\t", "\x1b", "\0", "> ", "| ", "é",
        "…", "\u{202f}",
    ];
    let numbers = [
        "nan%", "-nan", "1e999", "-5", "1,234.5", "4k", "0", "ab -c ", "gzip", "nginx:\n", "```\n",
    ];
    let words = [
        "99999999999999999999",
        "Running 1e999s test @ ",
        "# heading\n",
        "**bold**\n",
        "no compression\n",
        "$ wrk -t0 -c0 -d0s -R",
        "\x1b[31m",
    ];
    let odd = [signs.as_slice(), &numbers, &words].concat();
    prop_oneof![
        6 => prop::sample::select(PRINTED.as_slice()),
        4 => prop::sample::select(odd).prop_map(str::to_owned),
        1 => ".{0,20}",
        1 => any::<f64>().prop_map(|number| number.to_string()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_mixture_of_what_tools_print_breaks_anything(pieces in vec(piece(), 0..60)) {
        everything(pieces.concat().as_bytes());
    }

    #[test]
    fn no_bytes_break_anything(bytes in vec(any::<u8>(), 0..400)) {
        everything(&bytes);
    }

    #[test]
    fn an_output_with_bytes_changed_breaks_nothing(
        which in any::<prop::sample::Index>(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..30), end in any::<prop::sample::Index>()
    ) {
        let files: Vec<_> = std::fs::read_dir(written("tools")).unwrap().map(|file| file.unwrap().path()).collect();
        let mut bytes = std::fs::read(which.get(&files)).unwrap();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let end = end.index(bytes.len());
        everything(&bytes[..end]);
        everything(&bytes);
    }
}

#[test]
fn nothing_known_is_no_run() {
    let short = ["", "\n", "-", "nan", "1e999", "{\"a\": 1}\n"];
    let long = [
        "hello\nworld\n",
        "Summary:\n\nit was fast\n",
        "Running out of time\n",
    ];
    for text in short.into_iter().chain(long) {
        assert!(audit("input", text.as_bytes()).runs.is_empty(), "{text:?}");
    }
}

#[test]
fn long_lines_and_many_runs_are_bounded() {
    let mut reader = Reader::new("big");
    let run = b"Running 10s test @ http://a/\n  1 threads and 1 connections\n  5 requests in 10.00s, 1.00MB read\nRequests/sec: 0.50\nTransfer/sec: 1.00KB\n";
    for _ in 0..RUNS_MAX + 5 {
        reader.feed(run);
    }
    // One line of many times the maximum length, of the worst kind: JSON that never ends.
    reader.feed(b"{\"latency\":\"");
    for _ in 0..64 {
        reader.feed(&vec![b'{'; LINE_BYTES_MAX / 8]);
    }
    reader.feed(b"\n");
    // Lines that take quadratic time if each sequence start is followed to the end.
    let marks = [
        "[",
        "\x1b]",
        "\x1b[",
        "\r",
        "> ",
        "| ",
        "**",
        "{\"",
        "{} ",
        "[[{\"a\":",
    ];
    for begins in marks.into_iter().chain(["$ wrk -", "1 ", "\u{202f}1"]) {
        reader.feed(begins.repeat(LINE_BYTES_MAX / begins.len()).as_bytes());
        reader.feed(b"\n");
    }
    reader.feed(run);
    let (about, runs) = reader.finish();
    assert!(about.too_many_runs);
    assert_eq!(runs.len(), RUNS_MAX);
    let audit = Audit::of(vec![(about, runs)]);
    assert_eq!(audit.groups.len(), 1);
}
