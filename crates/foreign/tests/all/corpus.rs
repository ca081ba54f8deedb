//! Real output of the tools is parsed completely, with the figures given by the service and the flags.

use std::fs;

use proofload_foreign::{Audit, Reader, ToolRun};

use crate::{audit, written};

/// Each file of the corpus by its name, with its bytes.
fn tools() -> Vec<(String, Vec<u8>)> {
    let folders = ["tools", "by-hand"].map(|name| fs::read_dir(written(name)).unwrap());
    let files = folders
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn read(name: &str, bytes: &[u8]) -> Vec<ToolRun> {
    audit(name, bytes).runs
}

/// `wrk-4.1.0-plain.txt` is wrk's, of version 4.1.0, and a plain run.
fn parts(name: &str) -> (&str, &str) {
    let stem = name.rsplit_once('.').unwrap().0;
    (
        name.split('-').next().unwrap(),
        stem.rsplit_once('-').unwrap().1,
    )
}

#[test]
fn every_output_of_a_real_tool_is_one_whole_run() {
    let files = tools();
    assert!(files.len() >= 20, "{} files", files.len());
    for (name, bytes) in files {
        let (tool, kind) = parts(&name);
        let runs = read(&name, &bytes);
        assert_eq!(runs.len(), 1, "{name}: {runs:#?}");
        let run = &runs[0];
        assert_eq!(run.tool.name(), tool, "{name}");
        assert_eq!(run.json, name.ends_with(".json"), "{name}");
        assert!(!run.truncated, "{name}: {run:#?}");
        assert_eq!(
            run.abort.is_some(),
            kind == "reset" && tool == "ab",
            "{name}: {run:#?}"
        );
        match kind {
            "plain" => plain(&name, run),
            "errors" => {
                let failed = run.failures.status.unwrap();
                assert!(
                    failed > 0 && run.requests.unwrap_or(failed) >= failed,
                    "{name}: {run:#?}"
                );
            }
            "timeouts" => {
                let late = run.failures.timeouts.unwrap() + run.failures.other.unwrap_or(0);
                assert!(late > 0, "{name}: {run:#?}");
            }
            "rate" => assert!(run.latency.quantile(99.0).is_some(), "{name}: {run:#?}"),
            "reset" => assert!(
                run.abort.is_some() || run.failures.total() > 0,
                "{name}: {run:#?}"
            ),
            other => panic!("{name}: what is {other}?"),
        }
    }
}

/// A run of a second or more on 1,000 bytes, without failures.
fn plain(name: &str, run: &ToolRun) {
    let rate = run.rate().unwrap();
    assert!(rate > 10.0, "{name}: {run:#?}");
    if let (Some(requests), Some(seconds)) = (run.requests, run.duration_s) {
        let counted = requests as f64 / seconds;
        let tolerance = if run.rounded { 0.6 } else { 0.1 };
        assert!(
            (counted / rate - 1.0).abs() < tolerance,
            "{name}: {counted} is not {rate}"
        );
    }
    let (mean, max) = (run.latency.mean_us.unwrap(), run.latency.max_us.unwrap());
    assert!(
        mean > 10.0 && mean <= max && max < 60e6,
        "{name}: {mean} of {max}"
    );
    for quantile in &run.latency.quantiles {
        assert!(
            quantile.us <= max * 1.01,
            "{name}: {quantile:?} beyond {max}"
        );
    }
    let ascending = |pair: &[proofload_foreign::PrintedQuantile]| {
        pair[0].percent <= pair[1].percent && pair[0].us <= pair[1].us * 1.000_1
    };
    assert!(
        run.latency.quantiles.windows(2).all(ascending),
        "{name}: {:?}",
        run.latency.quantiles
    );
    if let Some(size) = run.bytes_per_response() {
        assert!(
            (1000.0..1500.0).contains(&size),
            "{name}: {size} bytes a response"
        );
    }
    assert_eq!(run.failures.total(), 0, "{name}: {run:#?}");
}

#[test]
fn one_value_is_the_same_in_text_and_in_json_of_a_tool() {
    // Text and JSON of the same run, which only some tools provide.
    for (text, json) in [
        (
            "by-hand/vegeta-12-plain.txt",
            "by-hand/vegeta-12-plain.json",
        ),
        ("tools/k6-0.49.0-plain.txt", "tools/k6-0.49.0-plain.json"),
        ("tools/k6-1.1.0-plain.txt", "tools/k6-1.1.0-plain.json"),
    ] {
        let one = |name: &str| read(name, &fs::read(written(name)).unwrap()).remove(0);
        let (text, json) = (one(text), one(json));
        assert_eq!(text.requests, json.requests);
        let near = |one: Option<f64>, other: Option<f64>| {
            (one.unwrap() / other.unwrap() - 1.0).abs() < 0.01
        };
        assert!(
            near(text.latency.mean_us, json.latency.mean_us),
            "{text:#?} {json:#?}"
        );
        assert!(
            near(text.requests_per_s, json.requests_per_s),
            "{text:#?} {json:#?}"
        );
    }
}

#[test]
fn what_terminals_editors_and_systems_do_to_a_file_changes_nothing() {
    for (name, bytes) in tools() {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let plain = read(&name, &bytes);
        for (begin, end) in [
            ("", "\r"),
            ("> ", ""),
            ("\t\t", ""),
            ("\x1b[1;32m", "\x1b[0m"),
            ("| ", " |"),
        ] {
            let changed: String = text
                .lines()
                .map(|line| format!("{begin}{line}{end}\n"))
                .collect();
            assert_eq!(
                read(&name, changed.as_bytes()),
                plain,
                "{name}, {begin:?} {end:?}"
            );
        }
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        let utf16: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&name, &utf16), plain, "{name}, UTF-16");
        // Regardless of how the file is split.
        let mut reader = Reader::new(&name);
        bytes.chunks(7).for_each(|piece| reader.feed(piece));
        assert_eq!(
            Audit::of(vec![reader.finish()]).runs,
            plain,
            "{name}, in pieces"
        );
    }
}

#[test]
fn all_outputs_in_one_file_are_as_many_runs() {
    let files = tools();
    let all: Vec<u8> = files
        .iter()
        .flat_map(|(name, bytes)| [format!("\n## {name}\n\n").into_bytes(), bytes.clone()].concat())
        .collect();
    let audit = audit("all.md", &all);
    assert_eq!(audit.runs.len(), files.len());
    for (run, (name, _)) in audit.runs.iter().zip(&files) {
        assert_eq!(&run.label, name);
    }
    assert!(audit.groups.iter().all(|group| group.runs.len() == 1));
}

#[test]
fn values_in_an_array_are_called_by_their_titles() {
    let bytes = fs::read(written("tools/autocannon-9.0.0-plain.json")).unwrap();
    let one = String::from_utf8(bytes).unwrap();
    let titled = |title: &str| {
        one.trim()
            .replacen('{', &format!("{{\"title\":\"{title}\","), 1)
    };
    let both = format!("[{},{}]", titled("express"), titled("fastify"));
    let audit = audit("results.json", both.as_bytes());
    let labels: Vec<&str> = audit
        .groups
        .iter()
        .map(|group| group.label.as_str())
        .collect();
    assert_eq!(labels, ["express", "fastify"]);
}
