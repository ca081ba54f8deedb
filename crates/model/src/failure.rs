//! Failures of connections, requests and responses: the phase, the cause, and the violated part of the
//! contract.
//!
//! Each value has one text form, used by records and reports. This module does not decide the consequences of
//! a failure.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum share of requests without an expected response. Above it a measurement is invalid, whether made by
/// Proofload or by another tool.
pub const FAILED_SHARE_MAX: f64 = 0.001;

/// Phase in which a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Opening the connection. No request is lost, unless each has its own connection.
    Connect,
    /// TLS handshake, after the connection was opened. No request is lost.
    Tls,
    /// Writing the request.
    Send,
    /// Waiting for the response head after the request was written.
    Head,
    /// Waiting for the rest of the body after the response head.
    Body,
    /// Between two requests. No request is lost.
    Idle,
    /// A phase that this version does not know.
    #[serde(untagged)]
    Other(Unknown),
}

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// No process listens on the port (`ECONNREFUSED`).
    Refused,
    /// The peer reset the connection (`ECONNRESET`, `EPIPE`).
    Reset,
    /// The load's timeout expired, or the kernel's did (`ETIMEDOUT`).
    Timeout,
    /// The peer closed an idle connection in an orderly way.
    Closed,
    /// The peer closed the connection while a response was pending.
    ClosedEarly,
    /// The received data is not a response, or follows one without a request.
    Malformed,
    /// The server sent HTTP/2 to an HTTP/1.1 client.
    SpeaksHttp2,
    /// The server sent HTTP/1 to an HTTP/2 client.
    SpeaksHttp1,
    /// The response head is longer than 64 KiB or has more than 128 lines.
    TooLarge,
    /// No free local port is left for this address (`EADDRNOTAVAIL`).
    AddressExhausted,
    /// No route to the address (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`).
    Unreachable,
    /// The server's certificate is not trusted, or not valid for this name.
    Certificate,
    /// The TLS handshake failed, or the received data is not TLS.
    Tls,
    /// The server refused the stream without processing the request (`REFUSED_STREAM`, or a crossing
    /// `GOAWAY`).
    StreamRefused,
    /// The server reset the stream.
    StreamReset,
    /// The engine closed the connection because of another request on it.
    Abandoned,
    /// Another error of the operating system.
    #[serde(untagged)]
    OsError(OsError),
    /// A cause that this version does not know.
    #[serde(untagged)]
    Other(Unknown),
}

impl Cause {
    /// The setting that avoids the error. None if the cause does not determine one.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Cause::SpeaksHttp2 => {
                Some("the server speaks HTTP/2: --http2, in a file load.protocol = \"h2\"")
            }
            Cause::SpeaksHttp1 => {
                Some("the server speaks HTTP/1.1, and not HTTP/2: leave out --http2")
            }
            Cause::Refused
            | Cause::Reset
            | Cause::Timeout
            | Cause::Closed
            | Cause::ClosedEarly
            | Cause::Malformed
            | Cause::TooLarge
            | Cause::AddressExhausted
            | Cause::Unreachable
            | Cause::Certificate
            | Cause::Tls
            | Cause::StreamRefused
            | Cause::StreamReset
            | Cause::Abandoned
            | Cause::OsError(_)
            | Cause::Other(_) => None,
        }
    }
}

/// Number of errors of one kind.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ErrorCount {
    /// Phase of the request: `connect`, `tls`, `send`, `head`, `body` or `idle`.
    #[schemars(with = "String")]
    pub phase: Phase,
    /// Cause of the error: `refused`, `reset`, `timeout`, `closed-early`, ...
    #[schemars(with = "String")]
    pub cause: Cause,
    /// Number of occurrences.
    pub count: u64,
}

impl ErrorCount {
    /// Whether a request timed out and is also counted in [`Counts::timed_out`](crate::Counts::timed_out).
    /// Timeouts while connecting or between requests cost no request.
    pub fn is_request_timeout(&self) -> bool {
        self.cause == Cause::Timeout
            && !matches!(self.phase, Phase::Connect | Phase::Tls | Phase::Idle)
    }
}

/// Error number of the operating system, with the text form `os-error 113`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OsError(pub i32);

/// A text in a record that this version does not know. Each distinct text is leaked once, so that values are
/// `Copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Unknown(&'static str);

impl<'de> Deserialize<'de> for Unknown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unknown, D::Error> {
        static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let text = String::deserialize(deserializer)?;
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts.get(text.as_str()).copied();
        let kept = known.unwrap_or_else(|| text.leak());
        texts.insert(kept);
        Ok(Unknown(kept))
    }
}

/// One way in which complete responses violated the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractFailure {
    /// The violated part of the contract.
    #[schemars(with = "String")]
    pub kind: FailureKind,
    /// Number of such responses.
    pub count: u64,
    /// The first unexpected value.
    pub example: String,
}

/// Separates status and location in the example of a redirect: `302 to /en/`.
pub const LOCATION: &str = " to ";

/// Part of the contract that a response violated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The status code.
    Status,
    /// The length of the content.
    #[serde(rename = "body length")]
    BodyBytes,
    /// The content coding: the content cannot be decoded, or its coding is not supported.
    #[serde(rename = "content coding")]
    Coding,
    /// The decoded content.
    Content,
    /// The header of this name.
    #[serde(
        untagged,
        serialize_with = "write_header",
        deserialize_with = "read_header"
    )]
    Header(String),
    /// The log-in request of this name: its response was not as expected, or lacked a value to capture.
    #[serde(
        untagged,
        serialize_with = "write_log_in",
        deserialize_with = "read_log_in"
    )]
    LogIn(String),
    /// A kind that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// Prefixes of a header name and of a log-in request name.
const HEADER: &str = "header ";
const LOG_IN: &str = "log-in ";

fn write_header<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{HEADER}{name}"))
}

fn read_header<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    after(HEADER, deserializer)
}

fn write_log_in<S: Serializer>(name: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{LOG_IN}{name}"))
}

fn read_log_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    after(LOG_IN, deserializer)
}

fn after<'de, D: Deserializer<'de>>(prefix: &str, deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.strip_prefix(prefix)
        .map(str::to_owned)
        .ok_or_else(|| serde::de::Error::custom("another word"))
}

/// Formats values in their serialized form.
macro_rules! shown_as_kept {
    ($($word:ty),+) => {$(
        impl fmt::Display for $word {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    )+};
}

shown_as_kept!(FailureKind, Phase, Cause);

/// Prefix of the error number.
const OS_ERROR: &str = "os-error ";

impl Serialize for OsError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{OS_ERROR}{}", self.0))
    }
}

impl<'de> Deserialize<'de> for OsError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OsError, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text
            .strip_prefix(OS_ERROR)
            .and_then(|number| number.parse().ok());
        number
            .map(OsError)
            .ok_or_else(|| serde::de::Error::custom("no error of an operating system"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, to_string};

    use super::*;

    #[test]
    fn words_are_kept_as_the_texts_that_are_shown_and_unknown_ones_stay_what_they_are() {
        for (cause, text) in [
            (Cause::ClosedEarly, "closed-early"),
            (Cause::AddressExhausted, "address-exhausted"),
            (Cause::OsError(OsError(113)), "os-error 113"),
            (Cause::Other(Unknown("os-error x")), "os-error x"),
            (Cause::Other(Unknown("closed early")), "closed early"),
        ] {
            let json = format!("{text:?}");
            assert_eq!(
                (cause.to_string().as_str(), to_string(&cause).unwrap()),
                (text, json.clone())
            );
            assert_eq!(from_str::<Cause>(&json).unwrap(), cause);
        }
        let phases: Vec<Phase> =
            from_str(r#"["connect","tls","send","head","body","idle"]"#).unwrap();
        assert!(
            !phases.iter().any(|phase| matches!(phase, Phase::Other(_))),
            "{phases:?}"
        );
        assert_eq!(
            from_str::<Phase>(r#""thinking""#).unwrap().to_string(),
            "thinking"
        );
        for kind in [
            "status",
            "body length",
            "content coding",
            "content",
            "header etag",
            "log-in x",
            "trailer x",
        ] {
            let read: FailureKind = from_str(&format!("{kind:?}")).unwrap();
            assert_eq!(
                (read.to_string(), matches!(read, FailureKind::Other(_))),
                (kind.into(), kind == "trailer x")
            );
        }
    }
}
