//! Contract checks: which responses are good, an example of each kind of failure, and the different contents.
//!
//! It checks parsed heads and lengths. One in n responses is checked in full. It allocates only for those,
//! for the first example of a breach, and for folded header values.

use model::quantity::many;
use model::text::cut_end;
use model::{CONTENTS_MAX, ContentSeen, ContractFailure, FailureKind, LOCATION, SampleCounts};

use crate::Contract;
use crate::content::{Content, ContentReader};
use crate::reader::{ResponseHead, values};

/// Maximum length of an unexpected header value in an example.
const EXAMPLE_CHARS: usize = 200;
/// The first response of a slice is sampled once slices have lasted this long in total. Otherwise each of
/// many short slices would pay for its own sample.
pub(crate) const FIRST_EVERY_NS: u64 = 250_000_000;

/// The first breach of the contract found in a response: an index into the failures of the endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breach(usize);

/// The kinds of failure under every contract. The contract's headers follow.
const KINDS: [FailureKind; 4] = [
    FailureKind::Status,
    FailureKind::BodyBytes,
    FailureKind::Coding,
    FailureKind::Content,
];

/// The contracts of all endpoints with the breaches so far.
#[derive(Debug)]
pub(crate) struct ContractCheck {
    endpoints: Vec<CheckedEndpoint>,
    /// One in n responses is checked in full. 0 means none.
    sample_every: u64,
    /// Total planned length of slices since the first response of one was sampled.
    lasted_ns: u64,
    /// Whether the fields of all heads are read.
    pub(crate) has_users: bool,
    log_ins: Vec<ContractFailure>,
    /// The first unknown content coding.
    unknown_coding: Option<String>,
}

#[derive(Debug)]
struct CheckedEndpoint {
    contract: Contract,
    /// One for each of [`KINDS`], then one for each header of the contract. The count is 0 if it never
    /// happened.
    failures: Vec<ContractFailure>,
    contents: Vec<ContentSeen>,
    /// Heads of good responses that could have been sampled since the first response of a slice was.
    heads: u64,
    sampled: SampleCounts,
}

/// Check results of an endpoint in a slice.
#[derive(Debug, Default)]
pub(crate) struct EndpointSeen {
    pub(crate) contents: Vec<ContentSeen>,
    pub(crate) sampled: SampleCounts,
}

/// Check results of a slice.
#[derive(Debug, Default)]
pub(crate) struct ChecksSeen {
    pub(crate) failures: Vec<ContractFailure>,
    /// Results by endpoint.
    pub(crate) endpoints: Vec<EndpointSeen>,
    pub(crate) unknown_coding: Option<String>,
}

impl ContractCheck {
    /// `contracts` has one contract for each endpoint, in the same order.
    pub(crate) fn new(contracts: Vec<Contract>, sample_every: u64) -> ContractCheck {
        let endpoint = |contract: Contract| {
            let failures = none_of(&contract);
            let sampled = SampleCounts::default();
            CheckedEndpoint {
                contract,
                failures,
                contents: Vec::new(),
                heads: 0,
                sampled,
            }
        };
        let endpoints = contracts.into_iter().map(endpoint).collect();
        let (log_ins, unknown_coding) = (Vec::new(), None);
        ContractCheck {
            endpoints,
            sample_every,
            lasted_ns: 0,
            has_users: false,
            log_ins,
            unknown_coding,
        }
    }

    /// Begins a slice with this planned length.
    pub(crate) fn begin(&mut self, window_ns: u64) {
        self.lasted_ns = self.lasted_ns.saturating_add(window_ns);
        if self.lasted_ns >= FIRST_EVERY_NS {
            self.lasted_ns = 0;
            self.endpoints
                .iter_mut()
                .for_each(|endpoint| endpoint.heads = 0);
        }
    }

    fn is_sampled(&self, endpoint: u16) -> bool {
        self.sample_every > 0
            && self.endpoints[usize::from(endpoint)]
                .heads
                .is_multiple_of(self.sample_every)
    }

    /// Whether the header fields of the next response of this endpoint are needed, not only its status.
    pub(crate) fn reads_fields(&self, endpoint: u16) -> bool {
        self.has_users
            || self.is_sampled(endpoint)
            || !self.endpoints[usize::from(endpoint)]
                .contract
                .headers
                .is_empty()
    }

    /// Checks a final head. Stores an example of a breach. [`Check::body`] counts the breach.
    pub(crate) fn head(&mut self, endpoint: u16, head: &ResponseHead<'_>) -> Option<Breach> {
        let CheckedEndpoint {
            contract, failures, ..
        } = &mut self.endpoints[usize::from(endpoint)];
        if !contract.accepts_status(head.status) {
            return Some(note(
                failures,
                |kind| *kind == FailureKind::Status,
                || seen_status(head),
            ));
        }
        let (name, _) = contract
            .headers
            .iter()
            .find(|(name, accepted)| !has(head, name, accepted))?;
        let is_of = |kind: &FailureKind| matches!(kind, FailureKind::Header(of) if of == name);
        Some(note(failures, is_of, || seen_values(head, name)))
    }

    /// Returns a reader for the content of the response with this good head, if it is to be sampled. Error
    /// pages are not sampled as contents of an endpoint.
    pub(crate) fn sample(
        &mut self,
        endpoint: u16,
        head: &ResponseHead<'_>,
    ) -> Option<Box<ContentReader>> {
        let is_sampled = self.is_sampled(endpoint);
        self.endpoints[usize::from(endpoint)].heads += 1;
        is_sampled.then(|| Box::new(ContentReader::of(head)))
    }

    /// Checks the content of a sampled response with a good head, and records the content if it is good.
    pub(crate) fn content(&mut self, endpoint: u16, content: ContentReader) -> Option<Breach> {
        let CheckedEndpoint {
            contract,
            failures,
            contents,
            sampled,
            ..
        } = &mut self.endpoints[usize::from(endpoint)];
        let Content {
            digest,
            encoded_bytes,
            decoded_bytes,
            unknown_coding,
            ..
        } = match content.finish() {
            Ok(content) => content,
            Err(flaw) => {
                sampled.add(false);
                return Some(note(failures, |kind| *kind == FailureKind::Coding, || flaw));
            }
        };
        self.unknown_coding = self.unknown_coding.take().or(unknown_coding);
        if contract.content.is_some_and(|expected| expected != digest) {
            sampled.add(false);
            let example = || format!("SHA-256 {digest}");
            return Some(note(
                failures,
                |kind| *kind == FailureKind::Content,
                example,
            ));
        }
        // [`Check::body`] reports a wrong length.
        if contract
            .body_bytes
            .is_some_and(|expected| expected != encoded_bytes)
        {
            return None;
        }
        sampled.add(true);
        let seen = ContentSeen {
            sha256: digest.to_string(),
            encoded_bytes,
            decoded_bytes,
            count: 1,
        };
        match contents
            .iter()
            .position(|known| known.sha256 == seen.sha256)
        {
            Some(place) => contents[place].merge(&seen),
            None if contents.len() < CONTENTS_MAX => contents.push(seen),
            None => {}
        }
        None
    }

    /// Checks a complete response. Returns whether it is good.
    pub(crate) fn body(&mut self, endpoint: u16, breach: Option<Breach>, bytes: u64) -> bool {
        match self.breach(endpoint, breach, bytes) {
            Some(failure) => {
                failure.count += 1;
                false
            }
            None => true,
        }
    }

    /// The breach of a complete response, if any.
    fn breach(
        &mut self,
        endpoint: u16,
        breach: Option<Breach>,
        bytes: u64,
    ) -> Option<&mut ContractFailure> {
        let CheckedEndpoint {
            contract, failures, ..
        } = &mut self.endpoints[usize::from(endpoint)];
        let wrong_length = contract
            .body_bytes
            .is_some_and(|expected| expected != bytes);
        let Breach(place) = match breach {
            None if wrong_length => note(
                failures,
                |kind| *kind == FailureKind::BodyBytes,
                || many(bytes, "byte"),
            ),
            other => other?,
        };
        Some(&mut failures[place])
    }

    /// Describes the breach in a complete response to a log-in, if any. Omits the value of a header, which
    /// may be a secret: a masking rule by name would not match within a sentence.
    pub(crate) fn refusal(
        &mut self,
        endpoint: u16,
        breach: Option<Breach>,
        bytes: u64,
    ) -> Option<String> {
        let ContractFailure { kind, example, .. } = self.breach(endpoint, breach, bytes)?;
        let is_header = matches!(kind, FailureKind::Header(_));
        Some(if is_header {
            format!("{kind} is not as expected")
        } else {
            format!("{kind} {example}")
        })
    }

    /// Counts the complete response to a log-in as a failure.
    pub(crate) fn log_in_failed(&mut self, name: &str, example: String) {
        let kind = FailureKind::LogIn(name.to_owned());
        match self.log_ins.iter_mut().find(|known| known.kind == kind) {
            Some(known) => known.count += 1,
            None => self.log_ins.push(ContractFailure {
                kind,
                count: 1,
                example,
            }),
        }
    }

    /// Returns the results of a slice, and resets them.
    pub(crate) fn take(&mut self) -> ChecksSeen {
        let take = |CheckedEndpoint {
                        contract, failures, ..
                    }: &mut CheckedEndpoint| {
            std::mem::replace(failures, none_of(contract))
                .into_iter()
                .filter(|failure| failure.count > 0)
        };
        let failures = self
            .endpoints
            .iter_mut()
            .flat_map(take)
            .chain(self.log_ins.drain(..))
            .collect();
        let endpoints = self.endpoints.iter_mut().map(
            |CheckedEndpoint {
                 contents, sampled, ..
             }| {
                EndpointSeen {
                    contents: std::mem::take(contents),
                    sampled: std::mem::take(sampled),
                }
            },
        );
        ChecksSeen {
            failures,
            endpoints: endpoints.collect(),
            unknown_coding: self.unknown_coding.take(),
        }
    }
}

fn none_of(contract: &Contract) -> Vec<ContractFailure> {
    let headers = contract
        .headers
        .keys()
        .map(|name| FailureKind::Header(name.clone()));
    let kinds = KINDS.into_iter().chain(headers);
    kinds
        .map(|kind| ContractFailure {
            kind,
            count: 0,
            example: String::new(),
        })
        .collect()
}

/// Stores an example of a breach of this kind unless there is one.
fn note(
    failures: &mut [ContractFailure],
    is_of: impl Fn(&FailureKind) -> bool,
    example: impl FnOnce() -> String,
) -> Breach {
    let place = failures
        .iter()
        .position(|failure| is_of(&failure.kind))
        .expect("every kind has its place");
    let kept = &mut failures[place].example;
    if kept.is_empty() {
        *kept = example();
    }
    Breach(place)
}

fn has(head: &ResponseHead<'_>, name: &str, accepted: &[String]) -> bool {
    let mut values = values(head, name).peekable();
    if values.peek().is_none() {
        return accepted.iter().any(String::is_empty);
    }
    accepted.is_empty()
        || values.any(|value| {
            accepted
                .iter()
                .any(|a| a.as_bytes().eq_ignore_ascii_case(&value))
        })
}

/// Formats the status, with the target of a redirect.
fn seen_status(head: &ResponseHead<'_>) -> String {
    let place = values(head, "location")
        .next()
        .filter(|_| (300..400).contains(&head.status));
    let place = place.map(|place| format!("{LOCATION}{}", String::from_utf8_lossy(&place)));
    let told = format!("{}{}", head.status, place.unwrap_or_default());
    cut_end(&told, EXAMPLE_CHARS)
}

fn seen_values(head: &ResponseHead<'_>, name: &str) -> String {
    let values: Vec<_> = values(head, name)
        .map(|value| String::from_utf8_lossy(&value).into_owned())
        .collect();
    if values.is_empty() {
        "absent".into()
    } else {
        cut_end(&values.join(", "), EXAMPLE_CHARS)
    }
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
        let mut check = ContractCheck::new(vec![contract], 0);
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| httparse::Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        let breach = check.head(
            0,
            &ResponseHead {
                status,
                headers: &headers,
            },
        );
        let good = check.body(0, breach, bytes);
        let failures = check.take().failures;
        assert_eq!(good, failures.is_empty());
        assert!(check.take().failures.is_empty(), "taking starts over");
        failures
            .into_iter()
            .map(|failure| (failure.kind, failure.example))
            .collect()
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
        assert_eq!(
            of(302, &[("Location", "/en/")], 0),
            [(FailureKind::Status, "302 to /en/".into())]
        );
        let header = FailureKind::Header("Content-Encoding".into());
        assert_eq!(of(200, &[], 11), [(header.clone(), "absent".into())]);
        assert_eq!(
            of(200, &[("content-encoding", "zstd")], 12),
            [(header, "zstd".into())]
        );
        let folded = Contract {
            headers: [("x".into(), vec!["a b".into()])].into(),
            ..Contract::default()
        };
        assert_eq!(judged(folded.clone(), 200, &[("X", "a \r\n\t b")], 0), []);
        assert_eq!(judged(folded, 200, &[("X", "a\r\n c")], 0)[0].1, "a c");
        let long = of(200, &[("content-encoding", "br")], 11);
        assert_eq!(long, [(FailureKind::BodyBytes, "11 bytes".into())]);
    }

    #[test]
    fn a_log_in_that_is_refused_for_a_header_tells_no_value() {
        let contract = Contract {
            headers: [("set-cookie".into(), vec!["a=b".into()])].into(),
            ..Contract::default()
        };
        let mut check = ContractCheck::new(vec![contract], 0);
        let header = httparse::Header {
            name: "Set-Cookie",
            value: b"session=typed",
        };
        let breach = check.head(
            0,
            &ResponseHead {
                status: 200,
                headers: &[header],
            },
        );
        assert_eq!(
            check.refusal(0, breach, 0).as_deref(),
            Some("header set-cookie is not as expected")
        );
    }

    #[test]
    fn an_empty_value_allows_absence_and_no_value_asks_for_presence() {
        let contract = |values: &[&str]| Contract {
            headers: [(
                "etag".into(),
                values.iter().map(|value| value.to_string()).collect(),
            )]
            .into(),
            ..Contract::default()
        };
        assert_eq!(judged(contract(&[""]), 200, &[], 0), []);
        assert_eq!(judged(contract(&[""]), 200, &[("ETag", "x")], 0).len(), 1);
        assert_eq!(judged(contract(&[]), 200, &[("ETag", "x")], 0), []);
        assert_eq!(judged(contract(&[]), 200, &[], 0).len(), 1);
    }
}
