//! `proofload remote-agent`: the process that Proofload starts on other machines, to generate load there. Requests
//! come on stdin, responses go to stdout. See docs/formats.md.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use remote::{AgentHost, Program, ServeError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{CliError, SELF};

/// The hidden subcommand that prints the hash of this binary, for machines without a command for it.
pub const SHA256: &str = "__sha256";
/// Heartbeats come every ten seconds. After this time without one the other side counts as dead.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Flags of `remote-agent`. Requests come on stdin.
#[derive(Debug, Args)]
pub struct RemoteAgentArgs {
    /// End if nothing comes on stdin for this time at the start: the starting process may be gone without
    /// having closed stdin, as in a pod that is never attached to
    #[arg(long, value_name = "TIME", value_parser = plan::duration, default_value = "1h")]
    first_order_within: Duration,
}

/// Serves until stdin is closed, or nothing comes for a minute after the first request.
pub fn run(args: &RemoteAgentArgs) -> anyhow::Result<u8> {
    if !anything_comes(args.first_order_within)? {
        let message = format!(
            "no request on stdin within {} s",
            args.first_order_within.as_secs()
        );
        return Err(failed(message).into());
    }
    let uname = rustix::system::uname();
    let host = AgentHost {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        name: uname.nodename().to_string_lossy().into_owned(),
        processors: std::thread::available_parallelism().map_or(1, |many| many.get() as u32),
        timeout: TIMEOUT,
    };
    remote::serve(io::stdin(), io::stdout(), host).map_err(|error| {
        let end = if matches!(error, ServeError::TimedOut { .. }) {
            "stdin"
        } else {
            "stdout"
        };
        failed(format!("{end}: {error}"))
    })?;
    Ok(0)
}

/// Prints the hash of this binary.
pub fn print_own_sha256() -> u8 {
    let printed = Program::own().map(|program| writeln!(io::stdout(), "{}", program.sha256));
    if matches!(printed, Ok(Ok(()))) {
        0
    } else {
        SELF
    }
}

fn failed(message: String) -> CliError {
    CliError::new(SELF, message).hint("the Proofload that started this agent is gone")
}

/// Waits at most this long for input or its end. Returns whether there is any.
fn anything_comes(longest: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let limit = Timespec {
        tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&limit))?;
    Ok(ready > 0)
}
