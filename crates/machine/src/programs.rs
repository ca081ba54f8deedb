//! Runs programs that are queried, such as runtimes for their version. Only runtimes that answer at once and
//! do nothing else are queried. Git has its own module.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Variables through which code in a CI job can act on the job: files that the runner of GitHub Actions
/// evaluates, and tokens that GitHub and GitLab create for the job. A final `_` stands for all names with
/// this prefix. Credentials that a workflow names itself (`NPM_TOKEN`) are not listed: builds need them, and
/// only their owner knows which.
pub const CI_VARIABLES: &str = "GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY ACTIONS_RUNTIME_ ACTIONS_ID_TOKEN_ \
    ACTIONS_CACHE_ ACTIONS_RESULTS_ GITHUB_TOKEN GH_TOKEN GITHUB_ENTERPRISE_TOKEN GH_ENTERPRISE_TOKEN CI_JOB_TOKEN CI_JOB_JWT CI_JOB_JWT_ \
    CI_REGISTRY_PASSWORD CI_DEPLOY_PASSWORD CI_DEPENDENCY_PROXY_PASSWORD CI_REPOSITORY_URL";

/// Whether a variable with this name is one of [`CI_VARIABLES`].
pub fn is_ci_variable(name: &str) -> bool {
    let matches = |known: &str| name == known || known.ends_with('_') && name.starts_with(known);
    CI_VARIABLES.split_whitespace().any(matches)
}

/// A command with the environment of this process, but without [`CI_VARIABLES`]. Used for all programs that
/// run code of the experiment or of a repository, including wardens and so all services, and for Git. Not
/// used for `ssh` and `kubectl`, which act with the user's own credentials.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let names = env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_str().is_some_and(is_ci_variable)) {
        command.env_remove(name);
    }
    command
}

/// Runtimes that answer `--version` at once and do nothing else.
const RUNTIMES: [&str; 9] = [
    "node", "bun", "deno", "python3", "ruby", "php", "java", "nginx", "haproxy",
];
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Poll interval for a child that is about to exit.
const END_LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Maximum stored output of a program, for each of its outputs.
pub(crate) const OUTPUT_BYTES_MAX: usize = 64 << 20;
const READS_MAX: usize = 64;

/// Version of a runtime, by its name or path. `None` if it is not installed, or not on the list.
pub fn version_of(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    if !RUNTIMES.contains(&name) {
        return None;
    }
    // These support only the short form, and nginx answers on stderr.
    let flag = if matches!(name, "nginx" | "haproxy") {
        "-v"
    } else {
        "--version"
    };
    let answer = output_of(command(program).arg(flag))?;
    Some(
        answer
            .strip_prefix("nginx version: nginx/")
            .unwrap_or(&answer)
            .to_owned(),
    )
}

/// First line of a program's output, if it exits successfully within five seconds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = run(command, PATIENCE)
        .ok()
        .flatten()
        .filter(|output| output.status.success())?;
    let said = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    Some(
        String::from_utf8_lossy(&said)
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
    )
}

/// The output of a command, if it exits successfully in time. Otherwise the reason, or the last line of its
/// errors.
///
/// # Errors
/// Returns a message.
pub fn answer_of(command: &mut Command, patience: Duration) -> Result<String, String> {
    let ran = run(command, patience).map_err(|error| error.to_string())?;
    let output = ran.ok_or_else(|| format!("no answer within {} s", patience.as_secs()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint
        .trim()
        .lines()
        .last()
        .map_or_else(|| output.status.to_string(), str::to_owned))
}

/// Runs a command without input until it exits, then kills the rest of its process group. `None` if it timed
/// out. Output beyond 64 MiB is dropped, and other holders of its pipes are not waited for.
///
/// # Errors
/// Returns an error if it cannot be started or waited for.
pub fn run(command: &mut Command, patience: Duration) -> io::Result<Option<Output>> {
    run_keeping(command, patience, OUTPUT_BYTES_MAX)
}

/// The same with another limit for each output.
///
/// # Errors
/// As [`run`].
pub fn run_keeping(
    command: &mut Command,
    patience: Duration,
    bytes_max: usize,
) -> io::Result<Option<Output>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // SAFETY: prctl(2) is async-signal-safe, and the closure does nothing else. The child exits with us,
    // because Ctrl-C no longer reaches it.
    #[cfg(target_os = "linux")]
    unsafe {
        command.pre_exec(|| {
            Ok(rustix::process::set_parent_process_death_signal(Some(
                Signal::KILL,
            ))?)
        })
    };
    let mut child = command.spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (mut out, mut err) = (
        Pipe::of(child.stdout.take())?,
        Pipe::of(child.stderr.take())?,
    );
    let deadline = Instant::now() + patience;
    let ended = loop {
        let ended = has_ended(group)?;
        // Output from before the exit is in the pipes.
        out.drain(bytes_max);
        err.drain(bytes_max);
        if ended || Instant::now() >= deadline {
            break ended;
        }
        thread::sleep(LOOK_AGAIN);
    };
    // Before it is reaped, because its PID may be reused afterwards.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    let status = child.wait()?;
    Ok(ended.then_some(Output {
        status,
        stdout: out.bytes,
        stderr: err.bytes,
    }))
}

/// The exit status of a child, if it exits within this time. `look` is its `try_wait`.
pub fn ended_within(
    patience: Duration,
    mut look: impl FnMut() -> io::Result<Option<ExitStatus>>,
) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        match look() {
            Ok(None) if Instant::now() < deadline => thread::sleep(END_LOOK_AGAIN),
            seen => return seen.ok().flatten(),
        }
    }
}

/// Whether a child has exited. Does not reap it.
fn has_ended(pid: Option<Pid>) -> io::Result<bool> {
    let Some(pid) = pid else { return Ok(true) };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), look)?.is_some())
}

/// An output that is read without blocking.
struct Pipe {
    end: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn of(end: Option<impl Into<OwnedFd>>) -> io::Result<Pipe> {
        let end: Option<OwnedFd> = end.map(Into::into);
        end.as_ref()
            .map_or(Ok(()), |end| rustix::io::ioctl_fionbio(end, true))?;
        Ok(Pipe {
            end,
            bytes: Vec::new(),
        })
    }

    /// Reads the available data. Limited per call, for a program that never pauses.
    fn drain(&mut self, bytes_max: usize) {
        let mut buffer = [0; 64 << 10];
        for _ in 0..READS_MAX {
            match self
                .end
                .as_ref()
                .map(|end| rustix::io::read(end, &mut buffer))
            {
                Some(Ok(count)) if count > 0 => {
                    let room = bytes_max - self.bytes.len();
                    self.bytes.extend_from_slice(&buffer[..count.min(room)]);
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ci_variables_are_exact_or_prefixes() {
        let known = [
            "GITHUB_ENV",
            "ACTIONS_ID_TOKEN_REQUEST_URL",
            "ACTIONS_CACHE_SERVICE_V2",
            "CI_JOB_JWT_V2",
        ];
        let others = [
            "GITHUB_ENVIRONMENT",
            "GITHUB_ACTIONS",
            "ACTIONS_CACHE",
            "CI_JOB_ID",
            "NPM_TOKEN",
            "CI",
        ];
        assert!(known.into_iter().all(is_ci_variable));
        assert!(!others.into_iter().any(is_ci_variable));
    }

    #[test]
    fn a_program_that_leaves_a_child_with_its_pipe_is_read_and_the_child_ended() {
        let begun = Instant::now();
        let mut shim = Command::new("/bin/sh");
        shim.args(["-c", "sleep 1000 & echo v1; echo $!"]);
        let output = run(&mut shim, Duration::from_secs(60)).unwrap().unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the child's end was waited for"
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let (version, pid) = text.trim().split_once('\n').unwrap();
        assert_eq!(version, "v1");
        let gone =
            || crate::process::Stat::read(pid.parse().unwrap()).is_none_or(|stat| !stat.is_alive());
        assert!(
            (0..500).any(|_| gone() || {
                thread::sleep(LOOK_AGAIN);
                false
            }),
            "{pid} is left"
        );
    }

    #[test]
    fn a_program_that_never_stops_printing_takes_bounded_memory_and_time() {
        let mut endless = Command::new("yes");
        assert!(
            run(&mut endless, Duration::from_millis(300))
                .unwrap()
                .is_none()
        );
        let mut much = Command::new("/bin/sh");
        much.args(["-c", "head -c 80000000 /dev/zero"]);
        let output = run(&mut much, Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(output.stdout.len(), OUTPUT_BYTES_MAX);
    }
}
