//! One command that fills a folder, from its start to its end, below a warden.
//!
//! It knows the folder and nothing of the cache around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plan::Preparation;

use super::cache::free_bytes;
use super::{PrepareError, Preparing, label};
use crate::Warden;
use crate::command::WITHHELD;
use crate::link::{Link, News};
use crate::marker::Marker;
use crate::message::{Exit, Failure, Spec};
use crate::source::ELSEWHERE;

/// How often it is looked whether somebody wants no more.
const GLANCE: Duration = Duration::from_millis(50);
/// How often a watcher hears of it.
const TELL: Duration = Duration::from_secs(1);
/// What it makes is thrown away if it is ended early, so it need not be given time.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// A disk with less than this is full: what was written to its end takes whole blocks, and some were given back.
const FULL_BYTES: u64 = 4 << 20;
/// What programs say when they find a disk or a quota full.
const FULL_WORDS: [&str; 4] = ["ENOSPC", "No space left on device", "EDQUOT", "Disk quota exceeded"];

/// Runs the command of a step with `output` as the folder to fill.
pub(super) fn run(
    warden: &Warden,
    step: &Preparation,
    output: &Path,
    log: &Path,
    watch: &mut dyn FnMut(Preparing),
    cancelled: &dyn Fn() -> bool,
) -> Result<(), PrepareError> {
    let name = || label(step);
    let marker = Marker::new();
    let spec = spec(step, output, log, &marker)?;
    let command: Box<str> = spec.command.join(" ").into();
    let begin = Instant::now();
    watch(Preparing::Making(Duration::ZERO));
    let mut told = Duration::ZERO;
    // Dropped on whatever way out, which ends all that is left of the command.
    let mut link =
        Link::open(warden, &spec, marker).map_err(|reason| PrepareError::Warden { name: name(), reason })?;
    let (exit, tail) = loop {
        match link.wait(GLANCE, end) {
            Some(End::Exited(exit, tail)) => break (exit, tail),
            Some(End::Failed(failure)) => return Err(not_run(step, &spec, failure)),
            Some(End::Lost) => {
                return Err(PrepareError::Warden { name: name(), reason: link.last_words() });
            }
            None => {}
        }
        let elapsed = begin.elapsed();
        if cancelled() {
            return Err(PrepareError::Cancelled { name: name() });
        }
        if elapsed >= step.timeout {
            let tail = link.tail().into();
            return Err(PrepareError::TimedOut { name: name(), command, timeout: step.timeout, tail });
        }
        if elapsed >= told + TELL {
            told = elapsed;
            watch(Preparing::Making(elapsed));
        }
    };
    if !exit.is_success() {
        let after = begin.elapsed();
        let full = is_full(output, &tail).then(|| output.parent().map(Path::to_owned)).flatten();
        return Err(PrepareError::Failed { name: name(), command, exit, after, tail: tail.into(), full });
    }
    // What it left running might still write.
    link.stop();
    if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
        Ok(())
    } else {
        Err(PrepareError::Empty { name: name(), command, tail: tail.into() })
    }
}

/// How a command came to its end.
enum End {
    Exited(Exit, String),
    Failed(Failure),
    /// The warden has gone without a word about it.
    Lost,
}

fn end(news: &mut News) -> Option<End> {
    if let Some((exit, tail)) = news.exited.take() {
        return Some(End::Exited(exit, tail));
    }
    if let Some(failure) = news.failed.take() {
        return Some(End::Failed(failure));
    }
    news.closed.is_some().then_some(End::Lost)
}

fn spec(step: &Preparation, output: &Path, log: &Path, marker: &Marker) -> Result<Spec, PrepareError> {
    let lookup = |name: &str| match name {
        "output" => Some(output.display().to_string()),
        "directory" => Some(step.directory.display().to_string()),
        _ => None,
    };
    let fill = |place: String, text: &str| {
        plan::fill(text, lookup).map_err(|source| PrepareError::Placeholder {
            name: label(step),
            place,
            source,
        })
    };
    let command: Result<Vec<String>, _> =
        step.command.iter().map(|part| fill("command".to_owned(), part)).collect();
    let env = step.env.iter().map(|(name, text)| Ok((name.clone(), fill(format!("env.{name}"), text)?)));
    let command = command?;
    Ok(Spec {
        // Found by the kernel's rules, in the command's own directory and PATH.
        program: PathBuf::from(command.first().map(String::as_str).unwrap_or_default()),
        command,
        directory: step.directory.clone(),
        env_withheld: withheld(step),
        env: env.collect::<Result<_, PrepareError>>()?,
        cpus: Vec::new(),
        log: log.to_owned(),
        stop_timeout: STOP_TIMEOUT,
        marker: marker.as_str().to_owned(),
        group: false,
        scratch: None,
        head: None,
        logs: Vec::new(),
    })
}

/// Of a build also what points git and npm somewhere else than to where it runs.
fn withheld(step: &Preparation) -> Vec<String> {
    let own: &[&str] = if step.mark.is_some() { &ELSEWHERE } else { &[] };
    WITHHELD.iter().chain(own).map(|name| (*name).to_owned()).collect()
}

fn not_run(step: &Preparation, spec: &Spec, failure: Failure) -> PrepareError {
    let name = label(step);
    let program = spec.program.display().to_string();
    match failure {
        Failure::Execute(libc::ENOENT) if !spec.directory.is_dir() => {
            let reason = format!("its directory {} is not there", spec.directory.display());
            PrepareError::NotRun { name, program, reason }
        }
        Failure::Execute(number) => {
            let reason = std::io::Error::from_raw_os_error(number).to_string();
            PrepareError::NotRun { name, program, reason }
        }
        Failure::Log(reason) => {
            let reason = format!("cannot write its log {}: {reason}", spec.log.display());
            PrepareError::Warden { name, reason }
        }
        Failure::Scratch(reason) | Failure::Warden(reason) => PrepareError::Warden { name, reason },
    }
}

fn is_full(output: &Path, tail: &str) -> bool {
    free_bytes(output).is_some_and(|free| free < FULL_BYTES)
        || FULL_WORDS.iter().any(|word| tail.contains(word))
}
