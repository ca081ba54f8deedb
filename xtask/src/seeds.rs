//! Seeds for the fuzz targets, in the form that each of them reads: the responses that the response reader's tests know, and the
//! outputs of other tools that the transcript reader's tests know. It writes into one folder and must not remove anything from
//! it.

use std::fs;
use std::io;
use std::path::Path;

#[path = "../../crates/load/tests/responses/cases.rs"]
mod cases;

use cases::Case;

/// Longer responses are about limits, which fuzzing sets lower; as seeds they would only be slow.
const BYTES_MAX: usize = 2000;

/// Where the outputs of other tools are, and the folders of them.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/foreign/tests/corpus");
const KINDS: [&str; 3] = ["tools", "by-hand", "studies"];
/// A transcript is fed in pieces of one byte more than this.
const PIECE: u8 = 63;

/// Writes the seeds of each target into a folder of its name below `folder`, one file each, and tells how many.
pub fn write(folder: &Path) -> io::Result<usize> {
    Ok(responses(&folder.join("response_reader"))? + transcripts(&folder.join("transcript_reader"))?)
}

/// `fuzz/fuzz_targets/transcript_reader.rs` says what they look like.
fn transcripts(folder: &Path) -> io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut count = 0;
    for kind in KINDS {
        for entry in fs::read_dir(Path::new(CORPUS).join(kind))? {
            let entry = entry?;
            let bytes = [&[PIECE], fs::read(entry.path())?.as_slice()].concat();
            fs::write(folder.join(file_name(&entry.file_name().to_string_lossy())), bytes)?;
            count += 1;
        }
    }
    Ok(count)
}

/// `fuzz/fuzz_targets/response_reader.rs` says what they look like.
fn responses(folder: &Path) -> io::Result<usize> {
    let cases = cases::parse(cases::TEXT).map_err(io::Error::other)?;
    fs::create_dir_all(folder)?;
    let short: Vec<_> = cases.iter().filter(|case| case.bytes.len() <= BYTES_MAX).collect();
    for case in &short {
        fs::write(folder.join(file_name(&case.name)), seed(case))?;
    }
    Ok(short.len())
}

/// The response with one cut, in its middle.
fn seed(case: &Case) -> Vec<u8> {
    let method = u8::from(case.method == "HEAD");
    let [low, high, ..] = (case.bytes.len() / 2).to_le_bytes();
    [&[method, 1, low, high], case.bytes.as_slice()].concat()
}

fn file_name(case: &str) -> String {
    case.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_short_case_and_each_output_is_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let count = write(folder.path()).unwrap();
        let files = |target: &str| fs::read_dir(folder.path().join(target)).unwrap().count();
        let (responses, transcripts) = (files("response_reader"), files("transcript_reader"));
        assert!(responses > 150 && transcripts > 40, "{responses} responses, {transcripts} transcripts");
        assert_eq!(responses + transcripts, count, "two cases share a name");
        let seed = fs::read(folder.path().join("response_reader/HEAD-without-a-length")).unwrap();
        assert_eq!(seed, b"\x01\x01\x09\x00HTTP/1.1 200 OK\r\n\r\n");
        let seed = fs::read(folder.path().join("transcript_reader/wrk-4-1-0-plain-txt")).unwrap();
        assert!(seed.starts_with(b"\x3fRunning 2s test"), "{:?}", seed.escape_ascii().to_string());
    }
}
