//! Why a machine was not had by SSH, and what helps. OpenSSH's own words are shown: whoever looks them up finds them.

use std::io;

use crate::last_lines::last;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The destination is none; `ssh` was not asked.
    #[error("no destination for ssh: {problem}")]
    Destination {
        /// What is wrong with it.
        problem: String,
    },
    /// This system's `ssh` could not be started.
    #[error("ssh cannot be started: {source}")]
    NoSsh {
        /// Why.
        source: io::Error,
    },
    /// The name means no address.
    #[error("no such host: {words}")]
    Unknown {
        /// What `ssh` said.
        words: String,
    },
    /// Nothing answers there.
    #[error("not reached: {words}")]
    Unreachable {
        /// What `ssh` said.
        words: String,
    },
    /// The host's key was never seen before.
    #[error("its host key is not known here, so that anybody might be answering: {words}")]
    KeyUnknown {
        /// What `ssh` said.
        words: String,
    },
    /// The host's key is another one than before.
    #[error("its host key is not the one that is known here: {words}")]
    KeyChanged {
        /// What `ssh` said, with the place of the known key.
        words: String,
    },
    /// It lets us in with none of our keys.
    #[error("it accepts none of our keys: {words}")]
    Refused {
        /// What `ssh` said.
        words: String,
    },
    /// It did not answer in time.
    #[error("no answer within {seconds} s {at}")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
        /// At what: `to the login`.
        at: &'static str,
    },
    /// The connection, or what ran there, ended.
    #[error("ended {at}{}{words}", if words.is_empty() { "" } else { ": " })]
    Ended {
        /// At what: `at the login`.
        at: &'static str,
        /// What was said last.
        words: String,
    },
    /// What answers is no shell.
    #[error("no shell that runs commands: it said {words:?}")]
    NoShell {
        /// What came instead of an answer.
        words: String,
    },
    /// It is no Linux.
    #[error("it runs {system}, and Proofload runs on Linux")]
    System {
        /// What `uname -s` says.
        system: String,
    },
    /// Its processor is another.
    #[error("it is {theirs}, and the program is for {ours}")]
    Machine {
        /// What `uname -m` says there.
        theirs: String,
        /// What the program is for.
        ours: &'static str,
    },
    /// No room for the program.
    #[error("no room for the program in {folder}: it has {needed_bytes} bytes; {room}")]
    Full {
        /// Where it should go.
        folder: String,
        /// How much it takes.
        needed_bytes: u64,
        /// What `df` says.
        room: String,
    },
    /// The program could not be written there.
    #[error("the program cannot be written to {folder} as {user}: {words}")]
    Unwritable {
        /// Where it should go.
        folder: String,
        /// Who may not.
        user: String,
        /// What was said.
        words: String,
    },
    /// What arrived is not what was sent.
    #[error("the program arrived damaged in {folder}: its SHA-256 differs")]
    Damaged {
        /// Where it should have gone.
        folder: String,
    },
    /// It is there and does not run.
    #[error("{file} does not run there: {words}")]
    WontRun {
        /// The program.
        file: String,
        /// What was said, or how it ended.
        words: String,
        /// What helps.
        remedy: Remedy,
    },
}

/// What helps where a program does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing may be run from that file system.
    OtherFolder,
    /// A program that needs no library.
    Static,
    /// Not known.
    None,
}

impl Fault {
    /// From how `ssh` ended before anything was answered; `came` is what was printed instead of an answer.
    pub(super) fn of_login(lines: &[String], came: &[String]) -> Fault {
        let has =
            |parts: &[&str]| lines.iter().rev().find(|line| parts.iter().any(|part| line.contains(part)));
        let changed = lines.iter().any(|line| line.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"));
        let words = last(lines);
        if changed {
            let offending = has(&["Offending "]).cloned();
            return Fault::KeyChanged { words: offending.unwrap_or(words) };
        }
        if has(&["Host key verification failed", "host key is known for"]).is_some() {
            return Fault::KeyUnknown { words };
        }
        if let Some(words) = has(&["Could not resolve hostname"]).cloned() {
            return Fault::Unknown { words };
        }
        if has(&["Permission denied (", "Too many authentication failures"]).is_some() {
            return Fault::Refused { words };
        }
        if has(&["connect to host", "Connection timed out", "Connection refused", "No route to host"])
            .is_some()
        {
            return Fault::Unreachable { words };
        }
        if !came.is_empty() {
            return Fault::NoShell { words: last(came) };
        }
        Fault::Ended { at: "at the login", words }
    }

    /// From how a try of the program ended: its exit status as a shell has it, and what was said.
    pub(super) fn of_try(file: &str, status: &str, lines: &[String]) -> Fault {
        let said = |part: &str| lines.iter().any(|line| line.contains(part));
        let remedy = if said("Permission denied") {
            Remedy::OtherFolder
        } else if said("GLIBC") || said("error while loading shared libraries") || status == "127" {
            Remedy::Static
        } else {
            Remedy::None
        };
        let words = last(lines);
        let words = if words.is_empty() { format!("it ended with exit status {status}") } else { words };
        Fault::WontRun { file: file.to_owned(), words, remedy }
    }

    /// What helps, where that is known. `host` is the machine, as `ssh://` and its destination.
    pub fn hint(&self, host: &str) -> Option<String> {
        let destination = destination(host);
        Some(match self {
            Fault::Destination { .. } => {
                "as ssh takes it: a name of ~/.ssh/config, user@host, or ssh://user@host:port".into()
            }
            Fault::NoSsh { .. } => "install OpenSSH's client, the command ssh".into(),
            Fault::Unknown { .. } => "names are looked up as ssh does, in ~/.ssh/config first".into(),
            Fault::Unreachable { .. } | Fault::Silent { .. } => format!("see whether this works: ssh {destination} true"),
            Fault::KeyUnknown { .. } => {
                format!("compare the key's fingerprint once, by hand: ssh {destination}")
            }
            Fault::KeyChanged { .. } => {
                format!("if it was set up anew, forget the old key (ssh-keygen -R HOST) and compare the new one: ssh {destination}")
            }
            Fault::Refused { .. } => format!(
                "nobody is asked for a password in a run: have a key that works without (ssh-add, IdentityFile in ~/.ssh/config) \
                 and try: ssh -o BatchMode=yes {destination} true"
            ),
            Fault::NoShell { .. } => {
                format!("the account needs a login shell and no forced command; see what this prints: ssh {destination} sh -c date")
            }
            Fault::Machine { theirs, .. } => {
                format!("name a program that was built for {theirs}: `generators.program`, or --program")
            }
            Fault::Full { .. } => "make room there, or have XDG_CACHE_HOME name another folder for that account; \
                                   what Proofload has put there goes with: proofload hosts --remove"
                .to_owned()
                + &format!(" {destination}"),
            Fault::Unwritable { .. } => {
                "XDG_CACHE_HOME, set for that account, names another folder than ~/.cache".into()
            }
            Fault::Damaged { .. } => "try again; twice means that disk or memory of that machine is at fault".into(),
            Fault::WontRun { remedy: Remedy::OtherFolder, .. } => {
                "its file system may be mounted noexec: have XDG_CACHE_HOME, set for that account, name a folder elsewhere".into()
            }
            Fault::WontRun { remedy: Remedy::Static, .. } => {
                "its libraries are too old or others: build a program that needs none, RUSTFLAGS='-C target-feature=+crt-static' \
                 cargo build --release --target x86_64-unknown-linux-gnu, and name it: `generators.program`, or --program"
                    .into()
            }
            Fault::Ended { .. } | Fault::System { .. } | Fault::WontRun { .. } => return None,
        })
    }
}

/// What a person types after `ssh`.
fn destination(host: &str) -> &str {
    let plain = host.strip_prefix("ssh://").unwrap_or(host);
    if plain.contains(':') { host } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_words_of_openssh_are_understood() {
        let fault = |text: &str| Fault::of_login(&lines(text), &[]);
        let cases = [
            (
                "ssh: Could not resolve hostname nosuch: Name or service not known",
                "no such host: ssh: Could not",
            ),
            ("ssh: connect to host 10.0.0.9 port 22: Connection timed out", "not reached: ssh: connect"),
            ("kex_exchange_identification: read: Connection reset by peer", "ended at the login: kex_"),
            (
                "No ED25519 host key is known for h and you have requested strict checking.\nHost key verification failed.",
                "its host key is not known here",
            ),
            (
                "Authorised use only\nroot@h: Permission denied (publickey).",
                "it accepts none of our keys: Authorised use only; root@h",
            ),
            (
                "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\nConnection closed by UNKNOWN port 65535",
                "not reached: channel 0",
            ),
        ];
        for (text, start) in cases {
            assert!(fault(text).to_string().starts_with(start), "{text}: {}", fault(text));
        }
        let changed = fault(
            "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\nOffending ED25519 key in /root/.ssh/known_hosts:7\n\
             Host key for h has changed and you have requested strict checking.\nHost key verification failed.",
        );
        let shown = changed.to_string();
        assert!(shown.ends_with("known here: Offending ED25519 key in /root/.ssh/known_hosts:7"), "{shown}");
        let came = lines("This account is currently not available.");
        assert!(Fault::of_login(&[], &came).to_string().starts_with("no shell that runs commands"));
    }

    #[test]
    fn what_a_loader_says_leads_to_what_helps() {
        let remedy = |status: &str, text: &str| match Fault::of_try("/f", status, &lines(text)) {
            Fault::WontRun { remedy, .. } => remedy,
            other => panic!("{other}"),
        };
        let old = "/f: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.39' not found (required by /f)";
        assert_eq!(remedy("1", old), Remedy::Static);
        assert_eq!(remedy("127", "sh: 63: /f: not found"), Remedy::Static);
        assert_eq!(remedy("126", "sh: 63: /f: Permission denied"), Remedy::OtherFolder);
        assert_eq!(remedy("132", "Illegal instruction"), Remedy::None);
        let silent = Fault::of_try("/f", "139", &[]).to_string();
        assert_eq!(silent, "/f does not run there: it ended with exit status 139");
        let hint = Fault::Silent { seconds: 30, at: "to the login" }.hint("ssh://me@h:22");
        assert_eq!(hint.as_deref(), Some("see whether this works: ssh ssh://me@h:22 true"));
    }
}
