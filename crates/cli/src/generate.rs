//! `proofload generate`: a generator that is told everything on stdin and tells everything on stdout; see docs/formats.md.

use std::fs;
use std::io::{self, BufReader};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fleet::Host;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{Failed, SELF};

/// Flags of `generate`. What to do comes on stdin.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// End if nothing comes on stdin for so long at the beginning: whoever started it may be gone without its stdin having been
    /// closed, as where nobody ever attached to a pod's
    #[arg(long, value_name = "TIME", value_parser = plan::duration)]
    first_order_within: Option<Duration>,
}

/// Serves until stdin ends.
///
/// # Errors
/// If stdout cannot be written, or nothing ever came on stdin.
pub fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    if let Some(longest) = args.first_order_within
        && !anything_comes(longest)?
    {
        return Err(Failed {
            message: format!("nothing came on stdin within {} s", longest.as_secs()),
            hint: Some("whoever started this generator is gone".to_owned()),
            code: SELF,
        }
        .into());
    }
    let uname = rustix::system::uname();
    let host = Host {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        name: uname.nodename().to_string_lossy().into_owned(),
        processors: std::thread::available_parallelism().map_or(1, |many| many.get() as u32),
        cpu_and_steal,
    };
    fleet::serve(BufReader::new(io::stdin()), io::stdout(), &host).map_err(|error| Failed {
        message: format!("stdout: {error}"),
        hint: Some("whoever wanted this load is gone".to_owned()),
        code: SELF,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether stdin has something to read, or its end, within so long.
fn anything_comes(longest: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let limit = Timespec { tv_sec: longest.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&limit))?;
    Ok(ready > 0)
}

/// Ticks of all processors together and those of them that were stolen, by /proc/stat (proc(5)).
fn cpu_and_steal() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = ticks.map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user's already.
    Some((ticks.iter().take(8).sum(), *ticks.get(7)?))
}
