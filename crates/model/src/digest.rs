//! SHA-256 digests, formatted and parsed as 64 hexadecimal digits. This module does not know the hashed data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const DIGEST_BYTES: usize = 32;

/// A SHA-256 digest (FIPS 180-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; DIGEST_BYTES]);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
}

impl From<[u8; DIGEST_BYTES]> for Digest {
    fn from(bytes: [u8; DIGEST_BYTES]) -> Digest {
        Digest(bytes)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    /// Parses 64 hexadecimal digits of either case.
    fn from_str(text: &str) -> Result<Digest, String> {
        let wanted = format!(
            "a SHA-256 digest has {} hexadecimal digits",
            2 * DIGEST_BYTES
        );
        let mut digits: Vec<u8> = Vec::new();
        for (at, found) in text.chars().enumerate() {
            let strange = || format!("{wanted}, character {} of this is {found:?}", at + 1);
            digits.push(found.to_digit(16).ok_or_else(strange)? as u8);
        }
        if digits.len() != 2 * DIGEST_BYTES {
            return Err(format!("{wanted}, this has {}", digits.len()));
        }
        Ok(Digest(std::array::from_fn(|at| {
            digits[2 * at] << 4 | digits[2 * at + 1]
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_and_read_as_hexadecimal_digits() {
        // FIPS 180-4, the one-block example.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), abc);
        assert_eq!(abc.parse(), Ok(Digest::of(b"abc")));
        assert_eq!(abc.to_uppercase().parse(), Ok(Digest::of(b"abc")));
    }

    #[test]
    fn what_is_no_digest_is_told_apart() {
        let wanted = "a SHA-256 digest has 64 hexadecimal digits,";
        for (text, told) in [
            ("ba7816".to_owned(), "this has 6"),
            (
                format!("ba7g{}", "0".repeat(60)),
                "character 4 of this is 'g'",
            ),
            ("é".repeat(32), "character 1 of this is 'é'"),
            (format!("+{}", "0".repeat(63)), "character 1 of this is '+'"),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(format!("{wanted} {told}")));
        }
    }
}
