//! Messages of an agent, version 1 of the protocol: one JSON object per line. Pure.
//!
//! An agent is code in an unknown process, so its messages are validated. Unreadable lines are no messages,
//! and the size of every part is limited.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Protocol version of this module.
const VERSION: u32 = 1;
/// Maximum length of a text in a message, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum length of the reason why a line is no message.
const REASON_CHARS_MAX: usize = 200;
/// Maximum number of notes of one capture.
const NOTES_MAX: usize = 4;
/// Names of versions that are kept.
const VERSIONS: [&str; 4] = ["node", "v8", "uv", "openssl"];

/// Role of a JavaScript thread with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A process that serves alone.
    Service,
    /// The primary process of a Node.js cluster, which distributes connections.
    Primary,
    /// A worker process of a cluster.
    Worker,
    /// A worker thread of any of these.
    Thread,
    /// A process that only starts the service: npm, or PM2's own processes.
    Tool,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A JavaScript thread whose agent has introduced itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAgent {
    /// Process number as the kernel reports it. The agent's own claim is ignored.
    #[serde(skip)]
    pub pid: u32,
    /// Thread number of Node.js: 0 is the main thread.
    #[serde(default)]
    pub thread: u32,
    /// Thread number of the kernel, if the agent knows it.
    pub thread_id: Option<u32>,
    /// Its role.
    pub role: Role,
    /// Versions of Node.js and its components: `node`, `v8`, `uv`, `openssl`.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// NODE_ENV as the process sees it.
    pub node_env: Option<String>,
    /// UV_THREADPOOL_SIZE as the process sees it.
    pub uv_threadpool_size: Option<String>,
    /// The file that it runs.
    pub main: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum AgentMessage {
    /// The first message.
    Hello {
        v: u32,
        #[serde(flatten)]
        agent: Box<ThreadAgent>,
    },
    /// The role has changed, for example to the primary of a cluster.
    Role { role: Role },
    /// The capture has started. Contains the process's settings at this time, which a service may set itself.
    Armed {
        id: u64,
        node_env: Option<String>,
        uv_threadpool_size: Option<String>,
    },
    /// The capture has ended with this result.
    Captured(Box<Captured>),
    /// The order failed.
    Failed { id: u64, reason: String },
}

/// Result of a capture as the agent reports it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Captured {
    pub id: u64,
    pub requests: Option<u64>,
    /// File of the profile.
    pub file: Option<PathBuf>,
    pub counters: Option<serde_json::Value>,
    /// Reasons why the agent could not do something.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl AgentMessage {
    /// Parses a line.
    ///
    /// # Errors
    /// The reason why it is no message.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        // The reason may quote the agent's own text, whose length is not limited.
        let told =
            |error: serde_json::Error| model::text::cut(&error.to_string(), REASON_CHARS_MAX);
        let mut message: Self =
            serde_json::from_slice(line).map_err(|error| format!("no message: {}", told(error)))?;
        match &mut message {
            Self::Hello { v, .. } if *v != VERSION => {
                return Err(format!(
                    "protocol version {v} does not match version {VERSION}"
                ));
            }
            Self::Hello { agent, .. } => {
                agent
                    .versions
                    .retain(|name, _| VERSIONS.contains(&name.as_str()));
                let texts = [
                    &mut agent.node_env,
                    &mut agent.uv_threadpool_size,
                    &mut agent.main,
                ];
                agent
                    .versions
                    .values_mut()
                    .chain(texts.into_iter().flatten())
                    .for_each(cut);
            }
            Self::Failed { reason, .. } => cut(reason),
            Self::Armed {
                node_env,
                uv_threadpool_size,
                ..
            } => {
                [node_env, uv_threadpool_size]
                    .into_iter()
                    .flatten()
                    .for_each(cut);
            }
            Self::Captured(captured) => {
                captured.notes.truncate(NOTES_MAX);
                captured.notes.iter_mut().for_each(cut);
            }
            Self::Role { .. } => {}
        }
        Ok(message)
    }

    /// Number of the order to which this is a response.
    pub fn order(&self) -> Option<u64> {
        match self {
            Self::Armed { id, .. } | Self::Failed { id, .. } => Some(*id),
            Self::Captured(captured) => Some(captured.id),
            Self::Hello { .. } | Self::Role { .. } => None,
        }
    }
}

/// Truncates a text to the maximum length, at a character boundary.
fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        model::text::cut_bytes(text, TEXT_BYTES_MAX - '…'.len_utf8());
        text.push('…');
    }
}

// NODE_OPTIONS as Node.js reads it. Pure.
//
// The rules (`ParseNodeOptionsEnvVar` of Node's src/node_options.cc): only a space ends an argument. Double
// quotes preserve spaces. Within quotes, and only there, a backslash takes the next character literally.

/// Value that makes Node.js load `file` before anything else. The service's `own` value follows unchanged.
pub(super) fn with_require(file: &str, own: Option<&str>) -> String {
    let require = format!("--require {}", quoted(file));
    match own.filter(|own| !own.trim().is_empty()) {
        Some(own) => format!("{require} {own}"),
        None => require,
    }
}

/// Quotes one argument. It is only quoted if necessary, because some programs parse the variable in a simpler
/// way.
fn quoted(argument: &str) -> String {
    if !argument.contains([' ', '"']) {
        return argument.to_owned();
    }
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_agents_write_them() {
        let hello = r#"{"v":1,"type":"hello","pid":7,"ppid":6,"thread":0,"threadId":7,"role":"worker","clusterId":2,"pm2":null,
            "versions":{"node":"22.1.0","v8":"12","uv":"1","openssl":"3","zlib":"1"},"nodeEnv":"production","uvThreadpoolSize":null,
            "main":"/srv/a.js"}"#;
        let Ok(AgentMessage::Hello { agent: hello, .. }) = AgentMessage::parse(hello.as_bytes())
        else {
            panic!("a greeting")
        };
        assert_eq!(
            (hello.role, hello.thread, hello.thread_id),
            (Role::Worker, 0, Some(7))
        );
        assert_eq!(
            (hello.node_env.as_deref(), hello.uv_threadpool_size),
            (Some("production"), None)
        );
        assert_eq!(
            hello.versions.keys().collect::<Vec<_>>(),
            ["node", "openssl", "uv", "v8"]
        );
        let armed = AgentMessage::Armed {
            id: 3,
            node_env: Some("test".into()),
            uv_threadpool_size: None,
        };
        let line = br#"{"type":"armed","id":3,"nodeEnv":"test","uvThreadpoolSize":null}"#;
        assert_eq!(AgentMessage::parse(line), Ok(armed));
        let role = AgentMessage::parse(br#"{"type":"role","role":"primary"}"#);
        assert_eq!(
            role,
            Ok(AgentMessage::Role {
                role: Role::Primary
            })
        );
        let captured = br#"{"type":"captured","id":3,"kind":"cpu","requests":9,"startNs":"1","endNs":"2","file":"/a","bytes":5}"#;
        let Ok(AgentMessage::Captured(captured)) = AgentMessage::parse(captured) else {
            panic!("a capture")
        };
        assert_eq!((captured.id, captured.requests), (3, Some(9)));
        assert_eq!(captured.file.as_deref(), Some("/a".as_ref()));
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
            r#"{"type":"captured","requests":1}"#,
        ] {
            assert!(AgentMessage::parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(
            AgentMessage::parse(&b"[".repeat(1 << 17)).is_err(),
            "depth is bounded"
        );
        let odd = format!(r#"{{"type":"{}"}}"#, "a".repeat(100_000));
        let reason = AgentMessage::parse(odd.as_bytes()).expect_err("no type of ours");
        assert!(
            reason.contains("unknown variant") && reason.len() < 300,
            "{} bytes",
            reason.len()
        );
        let long = format!(
            r#"{{"type":"failed","id":1,"reason":"{}"}}"#,
            "é".repeat(TEXT_BYTES_MAX)
        );
        let Ok(AgentMessage::Failed { reason, .. }) = AgentMessage::parse(long.as_bytes()) else {
            panic!("a failure")
        };
        assert!(reason.len() <= TEXT_BYTES_MAX && reason.ends_with('…'));
    }

    #[test]
    fn a_path_is_quoted_where_it_must_be_and_what_the_service_says_is_kept() {
        for (file, own, expected) in [
            ("/tmp/a.cjs", None, "--require /tmp/a.cjs"),
            ("/tmp/a.cjs", Some(" "), "--require /tmp/a.cjs"),
            (
                "/tmp/a.cjs",
                Some("--max-old-space-size=300"),
                "--require /tmp/a.cjs --max-old-space-size=300",
            ),
            // An error in it is the service's own, as it would be without Proofload.
            (
                "/tmp/a.cjs",
                Some("--x=\"a b"),
                "--require /tmp/a.cjs --x=\"a b",
            ),
            // Outside of quotes a backslash is an ordinary character. Node.js itself reads what needs quotes
            // below.
            ("/a\\b/c", None, "--require /a\\b/c"),
        ] {
            assert_eq!(with_require(file, own), expected);
        }
    }

    #[test]
    fn node_itself_finds_the_file_whatever_its_folder_is_called() {
        for name in [
            "plain",
            "two words",
            "back\\slash",
            "quo\"te",
            "all \\ of\" them \\",
        ] {
            let parent = tempfile::tempdir().unwrap();
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let file = folder.join("a.cjs");
            std::fs::write(&file, "process.stdout.write('loaded ')").unwrap();
            let options = with_require(file.to_str().unwrap(), Some("--no-deprecation"));
            let script = "process.stdout.write(process.env.NODE_OPTIONS.slice(-16))";
            let mut node = std::process::Command::new("node");
            let output = node
                .args(["-e", script])
                .env("NODE_OPTIONS", options)
                .output()
                .unwrap();
            let [said, complaint] =
                [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
            assert_eq!(said, "loaded --no-deprecation", "{name}: {complaint}");
        }
    }
}
