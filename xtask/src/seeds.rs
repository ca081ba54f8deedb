//! Seeds for the fuzz target of the response reader: the responses that its tests know, in the form that the target
//! reads (`fuzz/fuzz_targets/response_reader.rs`). It writes into one folder and must not remove anything from it.

use std::fs;
use std::io;
use std::path::Path;

#[path = "../../crates/load/tests/responses/cases.rs"]
mod cases;

use cases::Case;

/// Longer responses are about limits, which fuzzing sets lower; as seeds they would only be slow.
const BYTES_MAX: usize = 2000;

/// Writes the seeds into `folder`, one file each, and tells how many.
pub fn write(folder: &Path) -> io::Result<usize> {
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
    fn each_short_case_is_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let count = write(folder.path()).unwrap();
        assert!(count > 150, "{count} seeds");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), count, "two cases share a name");
        let seed = fs::read(folder.path().join("HEAD-without-a-length")).unwrap();
        assert_eq!(seed, b"\x01\x01\x09\x00HTTP/1.1 200 OK\r\n\r\n");
    }
}
