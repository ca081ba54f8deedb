//! Writes seeds for the fuzz targets in their input formats: test data, and a few files written by hand.
//! Existing files in the output folder are not removed.

use std::fs;
use std::io;
use std::path::Path;

#[path = "../../crates/load/tests/responses/cases.rs"]
mod cases;

use crate::ROOT;
use cases::Case;

/// Longer responses are about limits, which fuzzing sets lower. As seeds they would only be slow.
const RESPONSE_BYTES_MAX: usize = 2000;
/// A transcript is fed in pieces of one byte more than this.
const PIECE: u8 = 63;
/// Test files used as seeds with this prefix: the target, the prefix, and the folder.
const COPIED: [(&str, &[u8], &str); 7] = [
    (
        "transcript_reader",
        &[PIECE],
        "crates/foreign/tests/corpus/tools",
    ),
    (
        "transcript_reader",
        &[PIECE],
        "crates/foreign/tests/corpus/by-hand",
    ),
    (
        "transcript_reader",
        &[PIECE],
        "crates/foreign/tests/corpus/studies",
    ),
    ("traffic_reader", &[], "crates/foreign/tests/corpus/traffic"),
    ("plan_reader", &[], "experiments"),
    ("plan_reader", &[], "crates/plan/tests"),
    ("plan_reader", &[], "crates/plan/tests/bad"),
];
/// Has a folder for each target with seeds written by hand.
const BY_HAND: &str = "fuzz/by-hand";
/// A stored record, and the number of its events for the seed with the first block.
const RECORD: &str = "crates/record/tests/records/v1";
const FIRST_BLOCK_LINES: usize = 20;

/// Writes the seeds of each target to a subfolder of `folder`, one file each, and returns their number.
pub fn write(folder: &Path) -> io::Result<usize> {
    let mut count =
        responses(&folder.join("response_reader"))? + records(&folder.join("record_reader"))?;
    for (target, before, from) in COPIED {
        count += copies(&folder.join(target), before, &Path::new(ROOT).join(from))?;
    }
    for target in fs::read_dir(Path::new(ROOT).join(BY_HAND))? {
        let target = target?;
        count += copies(&folder.join(target.file_name()), &[], &target.path())?;
    }
    Ok(count)
}

/// Copies the files of a folder, each with the same prefix.
fn copies(folder: &Path, before: &[u8], from: &Path) -> io::Result<usize> {
    fs::create_dir_all(folder)?;
    let place = from.file_name().unwrap_or_default().to_string_lossy();
    let mut count = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = file_name(&format!("{place} {}", entry.file_name().to_string_lossy()));
            fs::write(
                folder.join(name),
                [before, &fs::read(entry.path())?].concat(),
            )?;
            count += 1;
        }
    }
    Ok(count)
}

/// The format is described in `fuzz/fuzz_targets/record_reader.rs`. A whole record would be too long, so one
/// seed has the first block, and the other has every block with two slices of each variant.
fn records(folder: &Path) -> io::Result<usize> {
    let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(RECORD).join(name));
    let (header, events) = (read("record.json")?, read("events.jsonl")?);
    // The target numbers the lines again.
    let events: Vec<String> = events.lines().filter_map(without_marks).collect();
    fs::create_dir_all(folder)?;
    let mut slices = 0;
    let few = events.iter().filter(|line| {
        slices = if line.starts_with("{\"block_started\"") {
            0
        } else {
            slices
        };
        slices += usize::from(line.contains("\"kind\":\"measured\""));
        !line.starts_with("{\"slice\"") || line.contains("\"measured\"") && slices <= 2
    });
    let few: Vec<&str> = few.map(String::as_str).collect();
    let first: Vec<&str> = events
        .iter()
        .take(FIRST_BLOCK_LINES)
        .map(String::as_str)
        .collect();
    for (name, lines) in [("first-block", first), ("few-slices", few)] {
        fs::write(
            folder.join(name),
            format!("\x01{header}\0{}\n", lines.join("\n")),
        )?;
    }
    Ok(2)
}

/// A line of events without its number and checksum.
fn without_marks(line: &str) -> Option<String> {
    let (_, marked) = line.split_once("\"sum\":\"")?;
    let (_, event) = marked.split_once("\",")?;
    Some(format!("{{{event}"))
}

/// The format is described in `fuzz/fuzz_targets/response_reader.rs`.
fn responses(folder: &Path) -> io::Result<usize> {
    let cases = cases::parse(cases::TEXT).map_err(io::Error::other)?;
    fs::create_dir_all(folder)?;
    let short: Vec<_> = cases
        .iter()
        .filter(|case| case.bytes.len() <= RESPONSE_BYTES_MAX)
        .collect();
    for case in &short {
        fs::write(folder.join(file_name(&case.name)), seed(case))?;
    }
    Ok(short.len())
}

/// A response that is split in its middle.
fn seed(case: &Case) -> Vec<u8> {
    let method = u8::from(case.method == "HEAD");
    let [low, high, ..] = (case.bytes.len() / 2).to_le_bytes();
    [&[method, 1, low, high], case.bytes.as_slice()].concat()
}

fn file_name(case: &str) -> String {
    case.chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '-'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_seeds_and_each_seed_is_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let count = write(folder.path()).unwrap();
        let files =
            |target: &str| fs::read_dir(folder.path().join(target)).map_or(0, Iterator::count);
        let targets = fs::read_dir(Path::new(ROOT).join("fuzz/fuzz_targets")).unwrap();
        let targets: Vec<String> = targets
            .map(|target| {
                target
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .into()
            })
            .collect();
        let counts: Vec<usize> = targets.iter().map(|target| files(target)).collect();
        assert!(
            counts.iter().all(|count| *count >= 2),
            "{targets:?} have {counts:?} seeds"
        );
        assert_eq!(
            counts.iter().sum::<usize>(),
            count,
            "two seeds share a name"
        );
        assert!(files("response_reader") > 150 && files("transcript_reader") > 40);
        let seed = fs::read(folder.path().join("response_reader/HEAD-without-a-length")).unwrap();
        assert_eq!(seed, b"\x01\x01\x09\x00HTTP/1.1 200 OK\r\n\r\n");
        let seed = fs::read(
            folder
                .path()
                .join("transcript_reader/tools-wrk-4-1-0-plain-txt"),
        )
        .unwrap();
        assert!(
            seed.starts_with(b"\x3fRunning 2s test"),
            "{:?}",
            seed.escape_ascii().to_string()
        );
    }
}
