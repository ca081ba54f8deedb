//! `proofload remote-agent`: the process that Proofload starts on other machines, to generate load or to run
//! services there. Requests come on stdin, responses go to stdout. See docs/formats.md.

use std::io;
use std::time::Duration;

use clap::Args;
use record::Environment;
use remote::{AgentHost, ServeError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use services::Warden;

use crate::WARDEN;
use crate::exit::{Failed, SELF};

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

/// Serves until stdin is closed, or nothing comes for a minute after the first request. Then ends all
/// remaining processes.
pub fn run(args: &RemoteAgentArgs) -> anyhow::Result<u8> {
    if !anything_comes(args.first_order_within)? {
        let message = format!("nothing came on stdin within {} s", args.first_order_within.as_secs());
        return Err(failed(message).into());
    }
    let uname = rustix::system::uname();
    let host = AgentHost {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        name: uname.nodename().to_string_lossy().into_owned(),
        processors: std::thread::available_parallelism().map_or(1, |many| many.get() as u32),
        timeout: TIMEOUT,
        warden: Warden::of_this_program(WARDEN),
        // Description of this machine for the record.
        about: |services| serde_json::to_value(Environment::look_for(services)).unwrap_or_default(),
    };
    remote::serve(io::stdin(), io::stdout(), host).map_err(|error| {
        let end = if matches!(error, ServeError::TimedOut { .. }) { "stdin" } else { "stdout" };
        failed(format!("{end}: {error}"))
    })?;
    Ok(0)
}

fn failed(message: String) -> Failed {
    Failed::new(SELF, message).hint("the Proofload that started this agent is gone")
}

/// Waits at most this long for input or its end. Returns whether there is any.
fn anything_comes(longest: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let limit = Timespec { tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&limit))?;
    Ok(ready > 0)
}
