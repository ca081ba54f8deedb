//! What can go wrong with a connection, a request or a response: in which phase, for which cause, and against which part of the contract.
//!
//! Each word has one text, by which records keep it and reports show it. Must not: decide what follows from a failure.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Share of requests without an expected response above which figures mean nothing, our own as those of other tools.
pub const FAILED_SHARE_MAX: f64 = 0.001;

/// What a connection was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Opening the connection. No request is lost by it, unless each has a connection of its own.
    Connect,
    /// Agreeing on TLS, after the connection was opened. No request is lost by it.
    Tls,
    /// Writing the request.
    Send,
    /// The request was written, the response head was not complete.
    Head,
    /// The response head was complete, the body was not.
    Body,
    /// Between two requests. No request is lost by it.
    Idle,
    /// A word that this version does not know.
    #[serde(untagged)]
    Other(Unknown),
}

/// Why it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Nobody listens there (`ECONNREFUSED`).
    Refused,
    /// The peer reset the connection (`ECONNRESET`, `EPIPE`).
    Reset,
    /// Longer than the load allows, or the kernel gave up (`ETIMEDOUT`).
    Timeout,
    /// The peer ended an idle connection in good order.
    Closed,
    /// The peer ended the connection though a response was owed.
    ClosedEarly,
    /// What arrived is not a response, or follows one that nobody requested.
    Malformed,
    /// What arrived is HTTP/2, and HTTP/1.1 was spoken.
    SpeaksHttp2,
    /// What arrived is HTTP/1, and HTTP/2 was spoken.
    SpeaksHttp1,
    /// The response head is longer than 64 KiB or has more than 128 lines.
    TooLarge,
    /// No free local port is left for this address (`EADDRNOTAVAIL`).
    AddressExhausted,
    /// No way to the address (`ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN`).
    Unreachable,
    /// The server's certificate is not trusted, or not for this name.
    Certificate,
    /// The peers could not agree on TLS, or what came was none.
    Tls,
    /// The server refused the stream without looking at the request (`REFUSED_STREAM`, or `GOAWAY` on its way).
    StreamRefused,
    /// The server reset the stream.
    StreamReset,
    /// The engine gave the connection up because of another request on it.
    Abandoned,
    /// Another error of the operating system.
    #[serde(untagged)]
    OsError(OsError),
    /// A word that this version does not know.
    #[serde(untagged)]
    Other(Unknown),
}

impl Cause {
    /// The setting that avoids the error. None if the cause does not tell one.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Cause::SpeaksHttp2 => Some("the server speaks HTTP/2: --http2, in a file load.protocol = \"h2\""),
            Cause::SpeaksHttp1 => Some("the server speaks HTTP/1.1, and not HTTP/2: leave out --http2"),
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

/// How often one kind of error was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// Where in a request's life: `connect`, `tls`, `send`, `head`, `body` or `idle`.
    #[schemars(with = "String")]
    pub phase: Phase,
    /// What happened: `refused`, `reset`, `timeout`, `closed-early`, ...
    #[schemars(with = "String")]
    pub cause: Cause,
    /// How often.
    pub count: u64,
}

impl ErrorCount {
    /// Whether a request ran out of time: [`Counts::timed_out`](crate::Counts::timed_out) has it as well. A time-out of connecting, or
    /// between requests, cost none.
    pub fn is_request_timeout(&self) -> bool {
        self.cause == Cause::Timeout && !matches!(self.phase, Phase::Connect | Phase::Tls | Phase::Idle)
    }
}

/// The number of an error of the operating system, in text `os-error 113`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OsError(pub i32);

/// A text of a record that stands for nothing this version knows. It is kept once for the life of the program, so that what holds it can
/// be copied.
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

/// One way in which complete responses broke the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractFailure {
    /// What was not as agreed.
    #[serde(alias = "what")]
    pub kind: FailureKind,
    /// In how many responses.
    pub count: u64,
    /// What was seen instead, the first time.
    pub example: String,
}

/// Between status and place in the example of a redirect: `302 to /en/`.
pub const LOCATION: &str = " to ";

/// What of a response broke the contract.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The status code.
    Status,
    /// The length of the content.
    #[serde(rename = "body length")]
    BodyBytes,
    /// The content coding: what came cannot be decoded, or by nobody here.
    #[serde(rename = "content coding")]
    Coding,
    /// The decoded content.
    Content,
    /// The header of this name.
    #[serde(untagged, serialize_with = "write_header", deserialize_with = "read_header")]
    Header(String),
    /// A request of this name, by which a user logs in: its response was not as expected, or lacked what was to be captured.
    #[serde(untagged, serialize_with = "write_log_in", deserialize_with = "read_log_in")]
    LogIn(String),
    /// A word that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// What stands before the name of a header, and before that of a request.
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
    text.strip_prefix(prefix).map(str::to_owned).ok_or_else(|| serde::de::Error::custom("another word"))
}

/// Shows words as records keep them.
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

/// What stands before the number.
const OS_ERROR: &str = "os-error ";

impl Serialize for OsError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{OS_ERROR}{}", self.0))
    }
}

impl<'de> Deserialize<'de> for OsError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OsError, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_prefix(OS_ERROR).and_then(|number| number.parse().ok());
        number.map(OsError).ok_or_else(|| serde::de::Error::custom("no error of an operating system"))
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
            assert_eq!((cause.to_string().as_str(), to_string(&cause).unwrap()), (text, json.clone()));
            assert_eq!(from_str::<Cause>(&json).unwrap(), cause);
        }
        let phases: Vec<Phase> = from_str(r#"["connect","tls","send","head","body","idle"]"#).unwrap();
        assert!(!phases.iter().any(|phase| matches!(phase, Phase::Other(_))), "{phases:?}");
        assert_eq!(from_str::<Phase>(r#""thinking""#).unwrap().to_string(), "thinking");
        for kind in
            ["status", "body length", "content coding", "content", "header etag", "log-in x", "trailer x"]
        {
            let read: FailureKind = from_str(&format!("{kind:?}")).unwrap();
            assert_eq!(
                (read.to_string(), matches!(read, FailureKind::Other(_))),
                (kind.into(), kind == "trailer x")
            );
        }
    }
}
