//! The machine on which a run was made: enough to tell whether two records may be compared.
//!
//! Reads /proc and /sys and asks the runtimes for their version; what cannot be read is `None`, never an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plan::Plan;
use serde::{Deserialize, Serialize};

/// Runtimes that answer `--version` at once and do nothing else.
const RUNTIMES: [&str; 8] = ["node", "bun", "deno", "python3", "ruby", "php", "java", "nginx"];

/// Longest wait for a runtime's answer.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// A fingerprint of machine and software.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release, for example `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// Processor's name.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor of the first processor, where the kernel shows one.
    pub governor: Option<String>,
    /// Load average over one minute before the run.
    pub load_average: Option<f64>,
    /// Limit on open descriptors (soft), from /proc/self/limits.
    pub descriptors: Option<u64>,
    /// Versions of the runtimes that the plan's commands name, and of PM2 where a launcher is.
    pub runtimes: BTreeMap<String, String>,
    /// Commit of the services' source, `+` behind it where files differ from the commit.
    pub commit: Option<String>,
}

impl Environment {
    /// Looks at this machine, and at the runtimes and the source that a plan uses.
    pub fn look(plan: &Plan) -> Environment {
        let services = || plan.variants.iter().flat_map(|variant| &variant.services);
        let pm2 = services().find(|service| service.launcher.is_pm2());
        let pm2 = pm2.and_then(|service| pm2_version(&service.directory));
        let programs = services().filter_map(|service| service.command.first());
        Environment {
            kernel: first_line("/proc/sys/kernel/osrelease"),
            cpu_model: field("/proc/cpuinfo", "model name"),
            cpus: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: field("/proc/meminfo", "MemTotal").and_then(|text| kilobytes(&text)),
            governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            load_average: first_line("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            descriptors: descriptors(),
            runtimes: programs
                .filter_map(|program| Some((program.clone(), version_of(program)?)))
                .chain(pm2.map(|version| ("pm2".to_owned(), version)))
                .collect(),
            commit: services().next().and_then(|service| commit_of(&service.directory)),
        }
    }
}

fn first_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kilobytes(text: &str) -> Option<u64> {
    Some(text.strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn descriptors() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

fn version_of(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    if !RUNTIMES.contains(&name) {
        return None;
    }
    // nginx and java know only the short form, and answer on stderr.
    let flag = if matches!(name, "nginx") { "-v" } else { "--version" };
    let answer = output_of(Command::new(program).arg(flag))?;
    Some(answer.strip_prefix("nginx version: nginx/").unwrap_or(&answer).to_owned())
}

/// Of the PM2 that is installed beside a service, as its package says: to ask it would start its daemon.
fn pm2_version(directory: &Path) -> Option<String> {
    let packages = directory.ancestors().map(|folder| folder.join("node_modules/pm2/package.json"));
    let text = packages.filter_map(|package| fs::read_to_string(package).ok()).next()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(package.get("version")?.as_str()?.to_owned())
}

fn commit_of(directory: &Path) -> Option<String> {
    let describe = ["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"];
    output_of(Command::new("git").arg("-C").arg(directory).args(describe))
}

/// First line of what a program prints, if it ends well and in time.
fn output_of(command: &mut Command) -> Option<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let deadline = Instant::now() + VERSION_TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            // A runtime that hangs on its version is no reason to hang as well.
            child.kill().ok()?;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok().filter(|output| output.status.success())?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Some(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}
