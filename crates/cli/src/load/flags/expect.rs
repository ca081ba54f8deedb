//! What a response must be to count as a success.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use model::{Contract, Digest};

use crate::exit::Failed;
use crate::explanation::read_bounded;

const SHA256: &str = "sha256:";
/// More than any content that is loaded for its throughput.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// Flags about responses.
#[derive(Debug, Args)]
#[command(next_help_heading = "Expectations")]
pub struct Expect {
    /// The status codes of a success, separated by commas [default: any 2xx]
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(100..1000))]
    expect_status: Vec<u16>,
    /// A header that must be there with this value; NAME alone: with any. Several values of a name are alternatives, NAME: with none
    /// allows that it is absent. May be repeated
    #[arg(long = "expect-header", value_name = "NAME: VALUE", value_parser = header)]
    expect_headers: Vec<(String, Option<String>)>,
    /// How long the content must be, in bytes as they are sent: compressed if it is compressed
    #[arg(long, value_name = "N")]
    expect_bytes: Option<u64>,
    /// What the content must be once it is decompressed: that of FILE, or what has this SHA-256. Sampled responses are compared
    #[arg(long, value_name = "FILE|sha256:HEX")]
    expect_body: Option<String>,
    /// Read one response in N in full and decode it; 0: none
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub sample: u64,
}

impl Expect {
    /// The contract of all requests that have none of their own.
    ///
    /// # Errors
    /// If the expected content cannot be read, or none would be looked at.
    pub fn contract(&self) -> Result<Contract, Failed> {
        if self.expect_body.is_some() && self.sample == 0 {
            let problem = "--expect-body compares sampled responses, and --sample 0 takes none";
            return Err(Failed::usage(problem).hint("--sample 1 compares all, the default one in 10000"));
        }
        Ok(Contract {
            status: self.expect_status.clone(),
            headers: by_name(&self.expect_headers).into_iter().collect(),
            body_bytes: self.expect_bytes,
            content: self.expect_body.as_deref().map(content).transpose()?,
        })
    }
}

fn header(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value.trim().to_owned())),
        None => (text, None),
    };
    match name.trim() {
        "" => Err("expected NAME: VALUE, or NAME alone".into()),
        name => Ok((name.to_owned(), value)),
    }
}

/// The values of each name together. A name that was given alone accepts all of them.
fn by_name(given: &[(String, Option<String>)]) -> BTreeMap<String, Vec<String>> {
    let mut headers = BTreeMap::<String, Vec<String>>::new();
    for (name, _) in given {
        if headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        let values = given.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        // One without a value makes it none at all.
        let values: Option<Vec<String>> = values.map(|(_, value)| value.clone()).collect();
        headers.insert(name.clone(), values.unwrap_or_default());
    }
    headers
}

fn content(text: &str) -> Result<Digest, Failed> {
    if let Some(digits) = text.strip_prefix(SHA256) {
        return digits.parse().map_err(|error| Failed::usage(format!("--expect-body {text}: {error}")));
    }
    let unreadable = |error| Failed::usage(format!("--expect-body: cannot read {text}: {error}"));
    Ok(Digest::of(&read_bounded(Path::new(text), CONTENT_BYTES_MAX).map_err(unreadable)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_of_a_header_are_alternatives_and_a_name_alone_takes_any() {
        let given = ["X-Cache: HIT", "Vary", "x-cache:", "ETag: \"a:b\"", "vary: Accept"]
            .map(|text| header(text).unwrap());
        let expected = [("X-Cache", vec!["HIT", ""]), ("Vary", vec![]), ("ETag", vec!["\"a:b\""])];
        let expected =
            expected.map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()));
        let expected = BTreeMap::from(expected);
        assert_eq!(by_name(&given), expected);
        assert!(header(": x").is_err());
    }

    #[test]
    fn a_digest_is_taken_or_told_what_it_lacks() {
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content(abc).unwrap(), Digest::of(b"abc"));
        assert!(content("sha256:ba78").unwrap_err().message.contains("64 hexadecimal digits"));
        assert!(content("/nowhere/at/all").unwrap_err().message.contains("cannot read /nowhere/at/all"));
    }
}
