//! Proofload's side of a warden: starts it, sends it orders, and stores its notices.
//!
//! A separate thread reads, so that the death of a warden is noticed, and its service ended, at any time.
//! This module does not decide when a service ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use machine::process::ProcessId;
use rustix::process::{Resource, prlimit};

use crate::Warden;
use crate::bell::Bell;
use crate::kin::Kin;
use crate::marker::Marker;
use crate::message::{Exit, Notice, Order, StartFailure, Stopped, WardenSpec};
use crate::sample::pid_of;

/// Time that a warden may need beyond `stop_timeout`: its own wait after SIGKILL, and a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// Additional time for removing a container, or finding that it is still there.
const CLEANUP: Duration = Duration::from_secs(80);
/// Time that a warden may take to end after its output is closed.
const SILENT_PATIENCE: Duration = Duration::from_secs(2);
/// Time that a warden may take to answer a question.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// Notices of a warden so far.
#[derive(Debug, Default)]
pub(crate) struct WardenNews {
    /// Number of the root process.
    pub started: Option<u32>,
    pub failed: Option<StartFailure>,
    pub exited: Option<(Exit, String)>,
    pub empty: bool,
    /// The answer to the last question.
    pub tail: Option<String>,
    pub report: Option<Stopped>,
    /// The warden has ended. Its remaining processes have been killed, except these.
    pub closed: Option<Vec<ProcessId>>,
    /// Its first line that was not a notice, printed by another program.
    noise: Option<String>,
}

/// A running warden.
#[derive(Debug)]
pub(crate) struct Link {
    child: Child,
    orders: Option<ChildStdin>,
    news: Arc<Bell<WardenNews>>,
    reader: Option<JoinHandle<()>>,
    /// Time that the warden may take to end after the order to stop.
    patience: Duration,
    pub kin: Arc<Kin>,
}

impl Link {
    /// Starts a warden and sends it its spec. Everything that follows is reported in its news.
    ///
    /// # Errors
    /// The reason why it could not be started.
    pub fn open(warden: &Warden, spec: &WardenSpec, marker: Marker) -> Result<Self, StartFailure> {
        let line = serde_json::to_string(spec)
            .map_err(|error| StartFailure::because("cannot encode its orders", error))?;
        let (program, arguments) = warden
            .command
            .split_first()
            .ok_or_else(|| StartFailure::of_warden("no command"))?;
        // Processes below the warden inherit this environment.
        let mut child = machine::command(program)
            .arg0("proofload")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                StartFailure::because(format!("cannot start {}", program.display()), error)
            })?;
        // Before the warden has its spec it starts nothing. If the limit may not be set, it has ours.
        let _ = prlimit(pid_of(child.id()), Resource::Nofile, warden.files);
        let (mut orders, notices) = (child.stdin.take(), child.stdout.take());
        // If the warden has already ended, its notice or its exit status has the reason.
        let _ = orders
            .as_mut()
            .map(|orders| orders.write_all(format!("{line}\n").as_bytes()));
        let news = Arc::new(Bell::default());
        let kin = Arc::new(Kin::new(marker, child.id(), spec.cleanup.clone()));
        let cleanup = if spec.cleanup.is_none() {
            Duration::ZERO
        } else {
            CLEANUP
        };
        let patience = spec.stop_timeout + SLACK + cleanup;
        // Without a reader it is dropped here. That ends its orders, and with them everything it started.
        let mut link = Self {
            child,
            orders,
            news,
            reader: None,
            patience,
            kin,
        };
        let (news, kin) = (Arc::clone(&link.news), Arc::clone(&link.kin));
        let read = move || notices.map_or((), |notices| read(notices, &news, &kin));
        let reader = thread::Builder::new().name("warden".to_owned()).spawn(read);
        let reader = reader.map_err(|error| {
            StartFailure::because("cannot start a thread to read its output", error)
        })?;
        link.reader = Some(reader);
        Ok(link)
    }

    /// Process number of the warden.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The current news.
    pub fn news(&self) -> MutexGuard<'_, WardenNews> {
        self.news.lock()
    }

    /// Waits until `wanted` finds something in the news, at most for `patience`.
    pub fn wait<T>(
        &self,
        patience: Duration,
        wanted: impl FnMut(&mut WardenNews) -> Option<T>,
    ) -> Option<T> {
        self.news.wait(patience, &|| false, wanted)
    }

    /// Waits like `wait`, or returns why there will be no such news.
    pub fn outcome<T>(
        &mut self,
        patience: Duration,
        mut wanted: impl FnMut(&mut WardenNews) -> Option<T>,
    ) -> Option<Result<T, StartFailure>> {
        let outcome = self.wait(patience, |news| {
            if let Some(found) = wanted(news) {
                return Some(Ok(found));
            }
            let failed = news.failed.clone();
            (failed.is_some() || news.closed.is_some()).then_some(Err(failed))
        })?;
        Some(outcome.map_err(|failure| failure.unwrap_or_else(|| self.last_words())))
    }

    /// Sends an order. If the warden has ended, nothing happens, and the news show it.
    pub fn tell(&self, order: Order) {
        if let (Some(mut orders), Ok(line)) = (self.orders.as_ref(), serde_json::to_string(&order))
        {
            let _ = orders.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// The last 20 lines of the output.
    pub fn tail(&self) -> String {
        self.news().tail = None;
        self.tell(Order::Tail);
        let answer = self.wait(ANSWER_PATIENCE, |news| match news.tail.take() {
            None if news.closed.is_some() => Some(None),
            answer => answer.map(Some),
        });
        let last_words = || self.news().exited.as_ref().map(|(_, tail)| tail.clone());
        answer.flatten().or_else(last_words).unwrap_or_default()
    }

    /// Stops the service, waits, and returns the warden's report. `None` if the warden was killed.
    pub fn stop(&mut self) -> Option<Stopped> {
        self.tell(Order::Stop);
        self.close();
        self.news().report.take()
    }

    /// Closes the orders, which ends the service, and waits for the warden to end. A warden that does not end
    /// is killed, and the reader then kills its processes.
    fn close(&mut self) {
        self.orders = None;
        let Some(reader) = self.reader.take() else {
            let _ = self.child.wait();
            return;
        };
        if self
            .wait(self.patience, |news| news.closed.is_some().then_some(()))
            .is_none()
        {
            let _ = self.child.kill();
        }
        let _ = reader.join();
        let _ = self.end();
    }

    /// Waits for a warden whose output is closed. It has ended, unless its output cannot be read.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = machine::ended_within(SILENT_PATIENCE, || self.child.try_wait()) {
            return Ok(status);
        }
        let _ = self.child.kill();
        self.child.wait()
    }

    /// Describes a warden that has ended without a reason.
    fn last_words(&mut self) -> StartFailure {
        let noise = self.news().noise.take();
        let noise = noise
            .map(|line| format!("said {line:?} and "))
            .unwrap_or_default();
        let status = self
            .end()
            .map(|status| status.to_string())
            .unwrap_or_default();
        StartFailure::of_warden(format!("it {noise}ended with {status}"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn read(notices: ChildStdout, news: &Bell<WardenNews>, kin: &Kin) {
    for line in BufReader::new(notices).lines().map_while(Result::ok) {
        let notice = serde_json::from_str(&line).map_err(|_| line);
        if let Ok(Notice::Started { group, .. }) = &notice {
            kin.group.lock().clone_from(group);
        }
        news.change(|news| news.take(notice));
    }
    let lost = {
        let news = news.lock();
        // A warden that never started anything leaves nothing. One that failed later does.
        news.report.is_none() && (news.failed.is_none() || news.started.is_some())
    };
    let left = if lost { kin.end() } else { Vec::new() };
    news.change(|news| news.closed = Some(left));
}

impl WardenNews {
    fn take(&mut self, notice: Result<Notice, String>) {
        match notice {
            Ok(Notice::Started { pid, .. }) => self.started = Some(pid),
            Ok(Notice::Failed(failure)) => self.failed = Some(failure),
            Ok(Notice::Exited { exit, tail }) => self.exited = Some((exit, tail)),
            Ok(Notice::Empty) => self.empty = true,
            Ok(Notice::Tail(tail)) => self.tail = Some(tail),
            Ok(Notice::Stopped(report)) => self.report = Some(report),
            Err(line) => {
                self.noise.get_or_insert(line);
            }
        }
    }

    /// How the service ended, if it has: completely, or its root process with a failure. A root process that
    /// succeeded may have left a daemon, which is the service then.
    pub fn end(&self) -> Option<Exit> {
        if self.closed.is_some() && self.report.is_none() {
            return Some(Exit::WithWarden);
        }
        let (exit, _) = self.exited.as_ref()?;
        (self.empty || !exit.is_success()).then_some(*exit)
    }
}

/// A thread that ends with this value. Drop closes the other end of the descriptor that the job was given,
/// and joins the thread.
#[derive(Debug)]
pub(crate) struct Lasting {
    life: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Lasting {
    pub fn spawn(name: &str, job: impl FnOnce(OwnedFd) + Send + 'static) -> io::Result<Self> {
        let (life, end) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || job(end.into()))?;
        Ok(Self {
            life: Some(life),
            thread: Some(thread),
        })
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.life = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
