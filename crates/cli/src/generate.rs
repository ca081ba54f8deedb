//! `proofload generate`: a generator that is told everything on stdin and tells everything on stdout; see docs/formats.md.

use std::fs;
use std::io::{self, BufReader};
use std::process::ExitCode;

use clap::Args;
use fleet::Host;

use crate::exit::{Failed, SELF};

/// Flags of `generate`: none. What to do comes on stdin.
#[derive(Debug, Args)]
pub struct GenerateArgs {}

/// Serves until stdin ends.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_: &GenerateArgs) -> anyhow::Result<ExitCode> {
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

/// Ticks of all processors together and those of them that were stolen, by /proc/stat (proc(5)).
fn cpu_and_steal() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = ticks.map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user's already.
    Some((ticks.iter().take(8).sum(), *ticks.get(7)?))
}
