//! Programs that services are made of: which version is installed here.
//!
//! Only programs that answer at once and do nothing else are asked.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runtimes that answer `--version` at once and do nothing else.
const RUNTIMES: [&str; 9] = ["node", "bun", "deno", "python3", "ruby", "php", "java", "nginx", "haproxy"];
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Version of a runtime, by its name or path; `None` where it is not there, or none that may be asked.
pub fn version_of(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    if !RUNTIMES.contains(&name) {
        return None;
    }
    // These know only the short form, and nginx answers on stderr.
    let flag = if matches!(name, "nginx" | "haproxy") { "-v" } else { "--version" };
    let answer = output_of(Command::new(program).arg(flag))?;
    Some(answer.strip_prefix("nginx version: nginx/").unwrap_or(&answer).to_owned())
}

/// First line of what a program prints, if it ends well and within five seconds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            // A runtime that hangs on its version is no reason to hang as well.
            child.kill().ok()?;
            child.wait().ok()?;
            // Who else holds its pipes is not waited for.
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok().filter(|output| output.status.success())?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Some(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}
