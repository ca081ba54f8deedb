//! The contract at work: which responses are good, what the first bad one of each kind looked like, and which contents
//! were seen.
//!
//! It looks at heads as they are parsed and at lengths; one response in so many is looked at in full. It allocates only for
//! those, for the first example of a breach, and for a value that a server has folded.

use std::borrow::Cow;

use model::{ContentSeen, ContractFailure, FailureKind};

use crate::Contract;
use crate::content::{Content, ContentFlaw, ContentReader};
use crate::reader::Head;

/// The most that is kept of an unexpected header value.
const EXAMPLE_CHARS: usize = 200;
/// Different contents of an endpoint that are told apart.
const CONTENTS_MAX: usize = 16;

/// In what a response broke the contract: the first thing noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    Status,
    /// The contract's header of this index.
    Header(usize),
    BodyBytes,
    /// The content cannot be decoded.
    Coding,
    /// The decoded content is another.
    Digest,
}

/// The kinds of breach that every contract knows; those of its headers follow.
const KINDS: [Breach; 4] = [Breach::Status, Breach::BodyBytes, Breach::Coding, Breach::Digest];

/// The contracts of all endpoints with the breaches seen so far.
#[derive(Debug)]
pub(crate) struct Check {
    endpoints: Vec<Endpoint>,
    /// One response in so many is looked at in full; 0: none.
    sample_every: u64,
    heads: u64,
}

#[derive(Debug)]
struct Endpoint {
    contract: Contract,
    /// One entry for each of [`KINDS`], then one for each header of the contract.
    seen: Vec<Seen>,
    contents: Vec<ContentSeen>,
}

#[derive(Debug, Default, Clone)]
struct Seen {
    count: u64,
    example: Option<String>,
}

impl Check {
    /// The contracts are those of the endpoints, in their order.
    pub(crate) fn new(contracts: Vec<Contract>, sample_every: u64) -> Check {
        let endpoint = |contract: Contract| {
            let seen = vec![Seen::default(); KINDS.len() + contract.headers.len()];
            Endpoint { contract, seen, contents: Vec::new() }
        };
        Check { endpoints: contracts.into_iter().map(endpoint).collect(), sample_every, heads: 0 }
    }

    /// Whether the fields of the next head of this endpoint are looked at, beside its status.
    pub(crate) fn reads_fields(&self, endpoint: u16) -> bool {
        let is_sampled = self.sample_every > 0 && self.heads.is_multiple_of(self.sample_every);
        is_sampled || !self.endpoints[usize::from(endpoint)].contract.headers.is_empty()
    }

    /// Looks at a final head. An example of a breach is kept here, the breach is counted by [`Check::body`].
    pub(crate) fn head(&mut self, endpoint: u16, head: &Head<'_>) -> Option<Breach> {
        self.endpoints[usize::from(endpoint)].head(head)
    }

    /// What looks at the content of the response with this head, if its turn has come.
    pub(crate) fn sample(&mut self, head: &Head<'_>) -> Option<Box<ContentReader>> {
        let number = self.heads;
        self.heads += 1;
        if self.sample_every == 0 || !number.is_multiple_of(self.sample_every) {
            return None;
        }
        let codings: Vec<_> = values(head, "content-encoding").collect();
        let codings: Vec<&[u8]> = codings.iter().map(AsRef::as_ref).collect();
        Some(Box::new(ContentReader::new(&codings)))
    }

    /// Notes the content of a sampled response.
    pub(crate) fn content(&mut self, endpoint: u16, content: ContentReader) -> Option<Breach> {
        let endpoint = &mut self.endpoints[usize::from(endpoint)];
        match content.finish() {
            Ok(content) => endpoint.content(&content),
            Err(error) => Some(endpoint.error(&error)),
        }
    }

    /// Judges a complete response: true when it is good.
    pub(crate) fn body(&mut self, endpoint: u16, breach: Option<Breach>, bytes: u64) -> bool {
        let endpoint = &mut self.endpoints[usize::from(endpoint)];
        let wrong_length = endpoint.contract.body_bytes.is_some_and(|expected| expected != bytes);
        let breach = match breach {
            None if wrong_length => {
                Some(note(&mut endpoint.seen, Breach::BodyBytes, || format!("{bytes} bytes")))
            }
            other => other,
        };
        if let Some(breach) = breach {
            endpoint.seen[slot(breach)].count += 1;
        }
        breach.is_none()
    }

    /// Hands out the breaches of all endpoints together and starts over.
    pub(crate) fn take(&mut self) -> Vec<ContractFailure> {
        self.heads = 0;
        self.endpoints.iter_mut().flat_map(Endpoint::take).collect()
    }

    /// Hands out the contents seen, by endpoint, and starts over.
    pub(crate) fn take_contents(&mut self) -> Vec<Vec<ContentSeen>> {
        self.endpoints.iter_mut().map(|endpoint| std::mem::take(&mut endpoint.contents)).collect()
    }
}

impl Endpoint {
    fn head(&mut self, head: &Head<'_>) -> Option<Breach> {
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

    fn content(&mut self, content: &Content) -> Option<Breach> {
        let &Content { digest, encoded_bytes, decoded_bytes } = content;
        let seen = ContentSeen { sha256: digest.to_string(), encoded_bytes, decoded_bytes, count: 1 };
        match self.contents.iter().position(|known| known.sha256 == seen.sha256) {
            Some(index) => self.contents[index].merge(&seen),
            None if self.contents.len() < CONTENTS_MAX => self.contents.push(seen),
            None => {}
        }
        let other = self.contract.content.is_some_and(|expected| expected != digest);
        other.then(|| note(&mut self.seen, Breach::Digest, || format!("SHA-256 {digest}")))
    }

    fn error(&mut self, error: &ContentFlaw) -> Breach {
        note(&mut self.seen, Breach::Coding, || error.to_string())
    }

    fn take(&mut self) -> Vec<ContractFailure> {
        let fresh = vec![Seen::default(); KINDS.len() + self.contract.headers.len()];
        let seen = std::mem::replace(&mut self.seen, fresh);
        let names = self.contract.headers.keys().map(|name| FailureKind::Header(name.clone()));
        let kinds = [FailureKind::Status, FailureKind::BodyBytes, FailureKind::Coding, FailureKind::Content];
        kinds
            .into_iter()
            .chain(names)
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
        Breach::Coding => 2,
        Breach::Digest => 3,
        Breach::Header(index) => KINDS.len() + index,
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

/// The values of all fields of this name, each on one line.
pub(crate) fn values<'a>(head: &Head<'a>, name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
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
        let mut check = Check::new(vec![contract], 0);
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
        let breach = check.head(0, &Head { status, headers: &headers });
        let good = check.body(0, breach, bytes);
        let failures = check.take();
        assert_eq!(good, failures.is_empty());
        assert!(check.take().is_empty(), "taking starts over");
        failures.into_iter().map(|failure| (failure.kind, failure.example)).collect()
    }

    #[test]
    fn one_breach_is_named_for_a_response() {
        let contract = Contract {
            status: vec![],
            headers: [("Content-Encoding".into(), vec!["br".into(), "gzip".into()])].into(),
            body_bytes: Some(12),
            ..Contract::default()
        };
        let of = |status, headers: &[_], bytes| judged(contract.clone(), status, headers, bytes);
        assert_eq!(of(204, &[("content-encoding", "GZIP")], 12), []);
        assert_eq!(of(301, &[], 12), [(FailureKind::Status, "301".into())]);
        let header = FailureKind::Header("Content-Encoding".into());
        assert_eq!(of(200, &[], 11), [(header.clone(), "absent".into())]);
        assert_eq!(of(200, &[("content-encoding", "zstd")], 12), [(header, "zstd".into())]);
        let folded = Contract { headers: [("x".into(), vec!["a b".into()])].into(), ..Contract::default() };
        assert_eq!(judged(folded.clone(), 200, &[("X", "a \r\n\t b")], 0), []);
        assert_eq!(judged(folded, 200, &[("X", "a\r\n c")], 0)[0].1, "a c");
        let long = of(200, &[("content-encoding", "br")], 11);
        assert_eq!(long, [(FailureKind::BodyBytes, "11 bytes".into())]);
    }

    #[test]
    fn an_empty_value_allows_absence_and_no_value_asks_for_presence() {
        let contract = |values: &[&str]| Contract {
            headers: [("etag".into(), values.iter().map(|value| value.to_string()).collect())].into(),
            ..Contract::default()
        };
        assert_eq!(judged(contract(&[""]), 200, &[], 0), []);
        assert_eq!(judged(contract(&[""]), 200, &[("ETag", "x")], 0).len(), 1);
        assert_eq!(judged(contract(&[]), 200, &[("ETag", "x")], 0), []);
        assert_eq!(judged(contract(&[]), 200, &[], 0).len(), 1);
    }
}
