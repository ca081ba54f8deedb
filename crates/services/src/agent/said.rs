//! What an agent says, version 1 of the protocol: one JSON object a line. Pure.
//!
//! An agent is code in a process that we do not know. Whatever it says is checked: what cannot be read is no message, and nothing in one
//! has a size without bound.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// The version of the protocol that is spoken here.
const VERSION: u32 = 1;
/// Of a text in a message, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Notes of one capture.
const NOTES_MAX: usize = 4;
/// Names of versions that are kept.
const VERSIONS: [&str; 4] = ["node", "v8", "uv", "openssl"];

/// What a JavaScript thread with an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A process that serves alone.
    Service,
    /// The first process of a cluster of Node.js, which deals connections to the others.
    Primary,
    /// One of those.
    Worker,
    /// A worker thread of any of them.
    Thread,
    /// What only starts the service: npm, or PM2's own processes.
    Tool,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "service",
            Self::Primary => "primary",
            Self::Worker => "worker",
            Self::Thread => "thread",
            Self::Tool => "tool",
        })
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said {
    /// The first one.
    Hello(Box<Hello>),
    /// It has become something else, the primary of a cluster for example.
    Role { role: Role },
    /// What was asked for has begun.
    Armed(Armed),
    /// It has ended, and this came of it.
    Captured(Box<Captured>),
    /// It could not be done.
    Failed { id: u64, reason: String },
}

/// Who an agent says that it is. Its process is known from the kernel, which is believed instead.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hello {
    v: u32,
    #[serde(default)]
    pub thread: u32,
    #[serde(default)]
    pub thread_id: Option<u32>,
    pub role: Role,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    #[serde(default)]
    pub node_env: Option<String>,
    #[serde(default)]
    pub uv_threadpool_size: Option<String>,
    #[serde(default)]
    pub main: Option<String>,
}

/// That a capture has begun, and what was set for the process by then: a service may set it itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Armed {
    pub id: u64,
    #[serde(default)]
    pub node_env: Option<String>,
    #[serde(default)]
    pub uv_threadpool_size: Option<String>,
}

/// What came of a capture, as the agent tells it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Captured {
    pub id: u64,
    #[serde(default)]
    pub requests: Option<u64>,
    /// Where the profile was written to.
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub counters: Option<serde_json::Value>,
    /// What it could not do, in words.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Said {
    /// Reads a line.
    ///
    /// # Errors
    /// Why it is no message, in words.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let mut said: Said = serde_json::from_slice(line).map_err(|error| format!("no message: {error}"))?;
        match &mut said {
            Self::Hello(hello) if hello.v != VERSION => {
                return Err(format!("speaks version {} of the protocol, and this is {VERSION}", hello.v));
            }
            Self::Hello(hello) => hello.bound(),
            Self::Failed { reason, .. } => cut(reason),
            Self::Armed(armed) => {
                let texts = [&mut armed.node_env, &mut armed.uv_threadpool_size];
                texts.into_iter().flatten().for_each(cut);
            }
            Self::Captured(captured) => {
                captured.notes.truncate(NOTES_MAX);
                captured.notes.iter_mut().for_each(cut);
            }
            Self::Role { .. } => {}
        }
        Ok(said)
    }
}

impl Hello {
    fn bound(&mut self) {
        self.versions.retain(|name, _| VERSIONS.contains(&name.as_str()));
        let texts = [&mut self.node_env, &mut self.uv_threadpool_size, &mut self.main];
        self.versions.values_mut().chain(texts.into_iter().flatten()).for_each(cut);
    }
}

/// Cuts a text to what is kept, at a character's end.
fn cut(text: &mut String) {
    let whole = |at: &usize| text.is_char_boundary(*at);
    let at = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(whole).unwrap_or(0);
    text.truncate(at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_agents_write_them() {
        let hello = r#"{"v":1,"type":"hello","pid":7,"ppid":6,"thread":0,"threadId":7,"role":"worker","clusterId":2,"pm2":null,
            "versions":{"node":"22.1.0","v8":"12","uv":"1","openssl":"3","zlib":"1"},"nodeEnv":"production","uvThreadpoolSize":null,
            "execArgv":[],"main":"/srv/a.js","monotonicNs":"12345678901234567890"}"#;
        let Ok(Said::Hello(hello)) = Said::parse(hello.as_bytes()) else { panic!("a greeting") };
        assert_eq!((hello.role, hello.thread, hello.thread_id), (Role::Worker, 0, Some(7)));
        assert_eq!((hello.node_env.as_deref(), hello.uv_threadpool_size), (Some("production"), None));
        assert_eq!(hello.versions.keys().collect::<Vec<_>>(), ["node", "openssl", "uv", "v8"]);
        let armed = Armed { id: 3, node_env: Some("test".into()), uv_threadpool_size: None };
        let line = br#"{"type":"armed","id":3,"nodeEnv":"test","uvThreadpoolSize":null}"#;
        assert_eq!(Said::parse(line), Ok(Said::Armed(armed)));
        assert_eq!(
            Said::parse(br#"{"type":"role","role":"primary"}"#),
            Ok(Said::Role { role: Role::Primary })
        );
        let captured = br#"{"type":"captured","id":3,"kind":"cpu","requests":9,"startNs":"1","endNs":"2","file":"/a","bytes":5}"#;
        let Ok(Said::Captured(captured)) = Said::parse(captured) else { panic!("a capture") };
        assert_eq!((captured.id, captured.requests, captured.file.as_deref()), (3, Some(9), Some("/a")));
    }

    #[test]
    fn what_is_no_message_is_refused_and_what_is_long_is_cut() {
        for line in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"type":"hello","role":"service"}"#,
            r#"{"v":2,"type":"hello","role":"service"}"#,
            r#"{"v":1,"type":"hello","role":"king"}"#,
            r#"{"type":"armed","id":-1}"#,
            r#"{"type":"armed","id":"__proto__"}"#,
            r#"{"type":"captured","id":1,"requests":1e400}"#,
        ] {
            assert!(Said::parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(Said::parse(&b"[".repeat(1 << 17)).is_err(), "depth is bounded");
        let long = format!(r#"{{"type":"failed","id":1,"reason":"{}"}}"#, "é".repeat(TEXT_BYTES_MAX));
        let Ok(Said::Failed { reason, .. }) = Said::parse(long.as_bytes()) else { panic!("a failure") };
        assert_eq!(reason.len(), TEXT_BYTES_MAX);
    }
}
