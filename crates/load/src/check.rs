//! The contract at work: which responses are good, and what the first bad one of each kind looked like.
//!
//! It looks at heads as they are parsed and at lengths; it allocates only for the first example of a breach, and for a
//! value that a server has folded.

use std::borrow::Cow;

use crate::reader::Head;
use crate::{Contract, ContractFailure, FailureKind};

/// The most that is kept of an unexpected header value.
const EXAMPLE_CHARS: usize = 200;

/// In what a response broke the contract: the first thing noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    Status,
    /// The contract's header of this index.
    Header(usize),
    BodyBytes,
}

/// A contract with the breaches seen so far.
#[derive(Debug)]
pub(crate) struct Check {
    contract: Contract,
    /// One entry for the status, one for the length, then one for each header of the contract.
    seen: Vec<Seen>,
}

#[derive(Debug, Default, Clone)]
struct Seen {
    count: u64,
    example: Option<String>,
}

impl Check {
    pub(crate) fn new(contract: Contract) -> Check {
        let kinds = 2 + contract.headers.len();
        Check { contract, seen: vec![Seen::default(); kinds] }
    }

    /// Looks at a final head. An example of a breach is kept here, the breach is counted by [`Check::body`].
    pub(crate) fn head(&mut self, head: &Head<'_>) -> Option<Breach> {
        let met = match self.contract.status.as_slice() {
            [] => (200..300).contains(&head.status),
            accepted => accepted.contains(&head.status),
        };
        if !met {
            return Some(note(&mut self.seen, Breach::Status, || head.status.to_string()));
        }
        let mut headers = self.contract.headers.iter().enumerate();
        let (index, (name, _)) = headers.find(|(_, (name, accepted))| !has(head, name, accepted))?;
        Some(note(&mut self.seen, Breach::Header(index), || seen_values(head, name)))
    }

    /// Judges a complete response: true when it is good.
    pub(crate) fn body(&mut self, breach: Option<Breach>, bytes: u64) -> bool {
        let wrong_length = self.contract.body_bytes.is_some_and(|expected| expected != bytes);
        let breach = match breach {
            None if wrong_length => {
                Some(note(&mut self.seen, Breach::BodyBytes, || format!("{bytes} bytes")))
            }
            other => other,
        };
        if let Some(breach) = breach {
            self.seen[slot(breach)].count += 1;
        }
        breach.is_none()
    }

    /// Hands out what was seen and starts over.
    pub(crate) fn take(&mut self) -> Vec<ContractFailure> {
        let seen = std::mem::replace(&mut self.seen, vec![Seen::default(); 2 + self.contract.headers.len()]);
        let kinds = [FailureKind::Status, FailureKind::BodyBytes]
            .into_iter()
            .chain(self.contract.headers.iter().map(|(name, _)| FailureKind::Header(name.clone())));
        kinds
            .zip(seen)
            .filter(|(_, seen)| seen.count > 0)
            .map(|(kind, seen)| ContractFailure {
                kind,
                count: seen.count,
                example: seen.example.unwrap_or_default(),
            })
            .collect()
    }
}

/// Keeps an example of a breach unless there is one.
fn note(seen: &mut [Seen], breach: Breach, example: impl FnOnce() -> String) -> Breach {
    seen[slot(breach)].example.get_or_insert_with(example);
    breach
}

fn slot(breach: Breach) -> usize {
    match breach {
        Breach::Status => 0,
        Breach::BodyBytes => 1,
        Breach::Header(index) => 2 + index,
    }
}

fn has(head: &Head<'_>, name: &str, accepted: &[String]) -> bool {
    let mut values = values(head, name).peekable();
    if values.peek().is_none() {
        return accepted.iter().any(String::is_empty);
    }
    accepted.is_empty()
        || values.any(|value| accepted.iter().any(|a| a.as_bytes().eq_ignore_ascii_case(&value)))
}

fn values<'a>(head: &Head<'a>, name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    head.headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| unfolded(header.value.trim_ascii()))
}

/// A value on one line: each fold, with the blanks around it, is one blank (RFC 9112, section 5.2).
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let lines: Vec<_> = value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect();
    Cow::Owned(lines.join(&b' '))
}

fn seen_values(head: &Head<'_>, name: &str) -> String {
    let values: Vec<_> =
        values(head, name).map(|value| String::from_utf8_lossy(&value).into_owned()).collect();
    if values.is_empty() { "absent".into() } else { values.join(", ").chars().take(EXAMPLE_CHARS).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(
        contract: Contract,
        status: u16,
        headers: &[(&str, &str)],
        bytes: u64,
    ) -> Vec<(FailureKind, String)> {
        let mut check = Check::new(contract);
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
        let breach = check.head(&Head { status, headers: &headers });
        let good = check.body(breach, bytes);
        let failures = check.take();
        assert_eq!(good, failures.is_empty());
        assert!(check.take().is_empty(), "taking starts over");
        failures.into_iter().map(|failure| (failure.kind, failure.example)).collect()
    }

    #[test]
    fn one_breach_is_named_for_a_response() {
        let contract = Contract {
            status: vec![],
            headers: vec![("Content-Encoding".into(), vec!["br".into(), "gzip".into()])],
            body_bytes: Some(12),
        };
        let of = |status, headers: &[_], bytes| judged(contract.clone(), status, headers, bytes);
        assert_eq!(of(204, &[("content-encoding", "GZIP")], 12), []);
        assert_eq!(of(301, &[], 12), [(FailureKind::Status, "301".into())]);
        let header = FailureKind::Header("Content-Encoding".into());
        assert_eq!(of(200, &[], 11), [(header.clone(), "absent".into())]);
        assert_eq!(of(200, &[("content-encoding", "zstd")], 12), [(header, "zstd".into())]);
        let folded = Contract { headers: vec![("x".into(), vec!["a b".into()])], ..Contract::default() };
        assert_eq!(judged(folded.clone(), 200, &[("X", "a \r\n\t b")], 0), []);
        assert_eq!(judged(folded, 200, &[("X", "a\r\n c")], 0)[0].1, "a c");
        let long = of(200, &[("content-encoding", "br")], 11);
        assert_eq!(long, [(FailureKind::BodyBytes, "11 bytes".into())]);
    }

    #[test]
    fn an_empty_value_allows_absence_and_no_value_asks_for_presence() {
        let contract = |values: &[&str]| Contract {
            headers: vec![("etag".into(), values.iter().map(|value| value.to_string()).collect())],
            ..Contract::default()
        };
        assert_eq!(judged(contract(&[""]), 200, &[], 0), []);
        assert_eq!(judged(contract(&[""]), 200, &[("ETag", "x")], 0).len(), 1);
        assert_eq!(judged(contract(&[]), 200, &[("ETag", "x")], 0), []);
        assert_eq!(judged(contract(&[]), 200, &[], 0).len(), 1);
    }
}
