//! Why a service is not there: everything a user needs to put it right.
//!
//! The message is one line; the service's last output and a hint come apart, for the caller to lay out.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::message::Exit;
use crate::probe::Seen;

/// Why a service could not be started, or did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No file of that name.
    #[error("service {service}: command not found: {program}")]
    CommandNotFound {
        /// The service.
        service: String,
        /// The program as the experiment names it.
        program: String,
        /// The folders searched, or the one file looked for.
        searched: String,
    },
    /// There is a file, but it cannot be run.
    #[error("service {service}: cannot run {}: {reason}", path.display())]
    NotExecutable {
        /// The service.
        service: String,
        /// The program's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The working directory is not there.
    #[error("service {service}: no such directory: {}", path.display())]
    DirectoryMissing {
        /// The service.
        service: String,
        /// The directory.
        path: PathBuf,
    },
    /// A placeholder that nothing is known for.
    #[error("service {service}: {place}: {source}")]
    Placeholder {
        /// The service.
        service: String,
        /// Where it stands: `command` or `env.NAME`.
        place: String,
        /// Which it is.
        source: plan::UnknownPlaceholder,
    },
    /// It ended before it was ready.
    #[error("service {service} ended with {exit} after {}, before it was ready: {command}", text(*after))]
    ExitedEarly {
        /// The service.
        service: String,
        /// Its command, filled in.
        command: Box<str>,
        /// How its first process ended.
        exit: Exit,
        /// Time since its start.
        after: Duration,
        /// The last lines of its output.
        tail: Box<str>,
    },
    /// It did not become ready in time. It has been stopped.
    #[error("service {service} was not ready after {}: waited for {waited_for}, {last_seen}", text(*timeout))]
    NotReady {
        /// The service.
        service: String,
        /// Its command, filled in.
        command: Box<str>,
        /// What would have counted as ready.
        waited_for: Box<str>,
        /// Its `ready_timeout`.
        timeout: Duration,
        /// What the last look showed.
        last_seen: Seen,
        /// The last lines of its output.
        tail: Box<str>,
    },
    /// Somebody listens on its port before it is started.
    #[error("service {service}: port {port} is taken by {owner}")]
    PortTaken {
        /// The service.
        service: String,
        /// The port.
        port: u16,
        /// `node server.js (pid 123)`.
        owner: String,
    },
    /// The port answers, but it is another process that does. The service has been stopped.
    #[error("service {service}: {address} is answered by {owner}, not by the service")]
    NotOurs {
        /// The service.
        service: String,
        /// Where it should listen.
        address: SocketAddr,
        /// `node server.js (pid 123)`.
        owner: String,
        /// The last lines of the service's output.
        tail: Box<str>,
    },
    /// It is to listen on an address that its machine does not have.
    #[error("service {service}: {address} is no address of the machine that it runs on")]
    AddressMissing {
        /// The service.
        service: String,
        /// The address.
        address: IpAddr,
    },
    /// No port could be found for it.
    #[error("service {service}: no free port between {} and {}", range.0, range.1)]
    NoFreePort {
        /// The service.
        service: String,
        /// First and last port tried.
        range: (u16, u16),
    },
    /// [`crate::Ports`] were chosen for other services.
    #[error("service {service}: no port was chosen for it")]
    NoPort {
        /// The service.
        service: String,
    },
    /// PM2 is to start it and is not installed.
    #[error("service {service}: pm2 not found, by which it is to be started")]
    Pm2Missing {
        /// The service.
        service: String,
        /// Its directory.
        directory: PathBuf,
        /// The folders searched beside those above the directory.
        searched: String,
    },
    /// Its launcher cannot start its command.
    #[error("service {service}: its launcher starts scripts on Node.js: {reason}")]
    WrongCommand {
        /// The service.
        service: String,
        /// What is wrong with the command.
        reason: String,
    },
    /// It became ready and has fewer workers than it is to have. It has been stopped.
    #[error("service {service}: {running} of {wanted} workers run after {}: {command}", text(*after))]
    TooFewWorkers {
        /// The service.
        service: String,
        /// Its command, filled in.
        command: Box<str>,
        /// Workers that ran at the end.
        running: usize,
        /// Workers that were to run.
        wanted: u32,
        /// Time since it was started.
        after: Duration,
        /// The last lines of its output.
        tail: Box<str>,
    },
    /// The folder of its own cannot be made.
    #[error("service {service}: cannot make its folder {}: {reason}", path.display())]
    ScratchFailed {
        /// The service.
        service: String,
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Its output cannot be kept.
    #[error("service {service}: cannot write its log {}: {reason}", path.display())]
    LogFailed {
        /// The service.
        service: String,
        /// The log.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The process that should have started it failed: a fault of Proofload or of the system.
    #[error("service {service}: its warden failed: {reason}")]
    WardenFailed {
        /// The service.
        service: String,
        /// What is known.
        reason: String,
    },
    /// Something could not be done on another machine.
    #[error("on {host}: {message}")]
    There {
        /// The machine.
        host: String,
        /// What it said.
        message: Box<str>,
        /// The last lines of the service's output.
        tail: Box<str>,
        /// What to do about it.
        hint: Option<Box<str>>,
    },
    /// Nothing is heard any more of another machine, on which everything that we had started ends by itself.
    #[error("{host}: {reason}")]
    HostLost {
        /// The machine.
        host: String,
        /// What is known.
        reason: String,
    },
    /// The caller wanted no more. The service has been stopped.
    #[error("service {service}: cancelled")]
    Cancelled {
        /// The service.
        service: String,
    },
}

impl TargetError {
    /// The last lines of the service's output, where there are any.
    pub fn tail(&self) -> Option<&str> {
        match self {
            Self::ExitedEarly { tail, .. }
            | Self::NotReady { tail, .. }
            | Self::NotOurs { tail, .. }
            | Self::TooFewWorkers { tail, .. }
            | Self::There { tail, .. } => Some(&**tail).filter(|tail| !tail.is_empty()),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::CommandNotFound { program, searched, .. } => {
                format!("looked for it in {searched}{}", how_to_install(program))
            }
            Self::Pm2Missing { directory, searched, .. } => format!(
                "install it with `npm install pm2` in {}; looked for node_modules/.bin/pm2 there and in all folders \
                 above, then in PATH: {searched}",
                directory.display()
            ),
            Self::WrongCommand { .. } => "write the command as [\"node\", \"server.js\"]".to_owned(),
            Self::TooFewWorkers { .. } => {
                "its output says why workers ended; raise `ready_timeout` if they only need more time"
                    .to_owned()
            }
            Self::ScratchFailed { .. } => "TMPDIR names another place for such folders".to_owned(),
            Self::DirectoryMissing { .. } => {
                "`directory` is relative to the folder of the experiment file".to_owned()
            }
            Self::ExitedEarly { exit, .. } if exit.is_success() => {
                "a service must stay; one that goes to the background must leave a process behind".to_owned()
            }
            Self::ExitedEarly { exit: Exit::Signal(libc::SIGKILL), .. } => {
                "the kernel kills with SIGKILL when memory runs out".to_owned()
            }
            Self::NotReady { last_seen, .. } => return last_seen.hint(),
            Self::PortTaken { .. } => {
                "stop that process, or leave `port` out: then a free one is chosen for each trial".to_owned()
            }
            Self::AddressMissing { .. } => "`address` must be one that `ip address` tells there".to_owned(),
            Self::There { hint, .. } => return hint.as_deref().map(str::to_owned),
            Self::NotOurs { .. } => "stop that process: its answers would have been measured".to_owned(),
            _ => return None,
        })
    }
}

/// Where programs that experiments often start come from.
fn how_to_install(program: &str) -> &'static str {
    match program {
        "nginx" => "; on Debian and Ubuntu `apt-get install nginx` installs it",
        "haproxy" => "; on Debian and Ubuntu `apt-get install haproxy` installs it",
        "node" | "npm" | "npx" => {
            "; install Node.js 20 or newer from nodejs.org or with your system's packages"
        }
        _ => "",
    }
}

/// `350 ms`, `5 s`, `2.5 s`.
fn text(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{} ms", duration.as_millis());
    }
    let tenths = duration.as_millis() / 100;
    if tenths.is_multiple_of(10) {
        format!("{} s", tenths / 10)
    } else {
        format!("{}.{} s", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let texts = [350, 5000, 2540].map(|ms| text(Duration::from_millis(ms)));
        assert_eq!(texts, ["350 ms", "5 s", "2.5 s"]);
    }
}
