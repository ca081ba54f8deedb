//! Proofload's end of a warden: starts it, tells it things, and keeps what it says for whoever asks.
//!
//! A thread of its own reads, so that the death of a warden is noticed, and its service ended, whatever Proofload is
//! doing. It must not decide when a service ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use machine::process::ProcessId;
use rustix::process::{Resource, prlimit};

use crate::Warden;
use crate::marker::{Kin, Marker};
use crate::message::{Exit, Failure, Notice, Order, Spec, Stopped};
use crate::sample::pid_of;

/// What a warden may need beyond `stop_timeout`: its own patience with SIGKILL, and a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// And for a container to be removed, or found to be there still.
const CLEANUP: Duration = Duration::from_secs(80);
/// How long one may take to end once it says nothing more.
const SILENT_PATIENCE: Duration = Duration::from_secs(2);
/// How long a warden may take to answer a question.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// What a warden has said so far.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Number of the first process.
    pub started: Option<u32>,
    pub failed: Option<Failure>,
    pub exited: Option<(Exit, String)>,
    pub empty: bool,
    /// The answer to the last question for it.
    pub tail: Option<String>,
    pub report: Option<Stopped>,
    /// The warden has ended; what it left behind has been killed, but for these.
    pub closed: Option<Vec<ProcessId>>,
    /// Its first line that was no notice: some other program's.
    noise: Option<String>,
}

/// A warden that runs.
#[derive(Debug)]
pub(crate) struct Link {
    child: Child,
    orders: Option<ChildStdin>,
    news: Arc<Bell<News>>,
    reader: Option<JoinHandle<()>>,
    /// How long the warden may take to end after it was told to.
    patience: Duration,
    pub kin: Arc<Kin>,
}

impl Link {
    /// Starts a warden and gives it its spec. What becomes of it, its news will tell.
    ///
    /// # Errors
    /// Why it could not be started.
    pub fn open(warden: &Warden, spec: &Spec, marker: Marker) -> Result<Self, Failure> {
        let line = serde_json::to_string(spec)
            .map_err(|error| Failure::because("cannot be told what to start", error))?;
        let (program, arguments) =
            warden.command.split_first().ok_or_else(|| Failure::of_warden("no command"))?;
        // Whatever runs below the warden has its environment from here.
        let mut child = machine::command(program)
            .arg0("proofload")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Failure::because(format!("cannot start {}", program.display()), error))?;
        // It starts nothing before it has its spec. Where it may not be set, it has ours.
        let _ = prlimit(pid_of(child.id()), Resource::Nofile, warden.files);
        let (mut orders, notices) = (child.stdin.take(), child.stdout.take());
        // A warden that is gone already says why, or its end does.
        let _ = orders.as_mut().map(|orders| orders.write_all(format!("{line}\n").as_bytes()));
        let news = Arc::new(Bell::default());
        let kin = Arc::new(Kin::new(marker, child.id(), spec.cleanup.clone()));
        let cleanup = if spec.cleanup.is_none() { Duration::ZERO } else { CLEANUP };
        let patience = spec.stop_timeout + SLACK + cleanup;
        // Without a reader it is dropped here: its orders end, and with them whatever it has started.
        let mut link = Self { child, orders, news, reader: None, patience, kin };
        let (news, kin) = (Arc::clone(&link.news), Arc::clone(&link.kin));
        let read = move || notices.map_or((), |notices| read(notices, &news, &kin));
        let reader = thread::Builder::new().name("warden".to_owned()).spawn(read);
        let reader = reader.map_err(|error| Failure::because("no thread to hear it", error))?;
        link.reader = Some(reader);
        Ok(link)
    }

    /// The warden's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is known now.
    pub fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock()
    }

    /// Waits until the news have what `wanted` looks for, or for `patience`.
    pub fn wait<T>(&self, patience: Duration, wanted: impl FnMut(&mut News) -> Option<T>) -> Option<T> {
        self.news.wait(patience, &|| false, wanted)
    }

    /// The same, or why there will be none.
    pub fn outcome<T>(
        &mut self,
        patience: Duration,
        mut wanted: impl FnMut(&mut News) -> Option<T>,
    ) -> Option<Result<T, Failure>> {
        let outcome = self.wait(patience, |news| {
            if let Some(found) = wanted(news) {
                return Some(Ok(found));
            }
            let failed = news.failed.clone();
            (failed.is_some() || news.closed.is_some()).then_some(Err(failed))
        })?;
        Some(outcome.map_err(|failure| failure.unwrap_or_else(|| self.last_words())))
    }

    /// Tells the warden; one that is gone hears nothing, which its news show.
    pub fn tell(&self, order: Order) {
        if let (Some(mut orders), Ok(line)) = (self.orders.as_ref(), serde_json::to_string(&order)) {
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

    /// Has the service ended, waits for it, and says what the warden reported; `None` if it was killed.
    pub fn stop(&mut self) -> Option<Stopped> {
        self.tell(Order::Stop);
        self.close();
        self.news().report.take()
    }

    /// Ends the orders, which ends the service, and waits until the warden has gone. One that does not go is killed, and
    /// the reader then kills what it looked after.
    fn close(&mut self) {
        self.orders = None;
        let Some(reader) = self.reader.take() else {
            let _ = self.child.wait();
            return;
        };
        if self.wait(self.patience, |news| news.closed.is_some().then_some(())).is_none() {
            let _ = self.child.kill();
        }
        let _ = reader.join();
        let _ = self.end();
    }

    /// Waits for one of whom nothing more is heard. It has ended, unless it cannot be read.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = machine::ended_within(SILENT_PATIENCE, || self.child.try_wait()) {
            return Ok(status);
        }
        let _ = self.child.kill();
        self.child.wait()
    }

    /// What is known of a warden that has ended without saying why.
    fn last_words(&mut self) -> Failure {
        let noise = self.news().noise.take();
        let noise = noise.map(|line| format!("said {line:?} and ")).unwrap_or_default();
        let status = self.end().map(|status| status.to_string()).unwrap_or_default();
        Failure::of_warden(format!("it {noise}ended with {status}"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn read(notices: ChildStdout, news: &Bell<News>, kin: &Kin) {
    for line in BufReader::new(notices).lines().map_while(Result::ok) {
        let notice = serde_json::from_str(&line).map_err(|_| line);
        if let Ok(Notice::Started { group, .. }) = &notice {
            kin.group.lock().clone_from(group);
        }
        news.change(|news| news.take(notice));
    }
    let lost = {
        let news = news.lock();
        // One that never started anything leaves nothing; one that failed later does.
        news.report.is_none() && (news.failed.is_none() || news.started.is_some())
    };
    let left = if lost { kin.end() } else { Vec::new() };
    news.change(|news| news.closed = Some(left));
}

impl News {
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

    /// How the service ended, if it has: all of it, or its first process with a failure. A first process that ended
    /// well may have left a daemon behind, which is the service then.
    pub fn end(&self) -> Option<Exit> {
        if self.closed.is_some() && self.report.is_none() {
            return Some(Exit::WithWarden);
        }
        let (exit, _) = self.exited.as_ref()?;
        (self.empty || !exit.is_success()).then_some(*exit)
    }
}

// A value that some threads change and others wait for.

/// How often it is asked whether what is waited for is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// The value, and a bell that rings when it changes.
#[derive(Debug, Default)]
pub(crate) struct Bell<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Bell<T> {
    /// The value; nobody leaves it half changed.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it and rings.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until it has what `wanted` looks for, for at most `patience`, and no longer than `cancelled` allows.
    pub fn wait<R>(
        &self,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
        mut wanted: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let deadline = Instant::now() + patience;
        let mut value = self.lock();
        loop {
            if let Some(found) = wanted(&mut value) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now()).min(GLANCE);
            if left.is_zero() || cancelled() {
                return None;
            }
            value = self.changed.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A thread that ends with this value: dropping it closes the other end of the descriptor that the job was given, and waits
/// for the thread.
#[derive(Debug)]
pub(crate) struct Lasting {
    life: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Lasting {
    pub fn spawn(name: &str, job: impl FnOnce(OwnedFd) + Send + 'static) -> io::Result<Self> {
        let (life, end) = UnixStream::pair()?;
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || job(end.into()))?;
        Ok(Self { life: Some(life), thread: Some(thread) })
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.life = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
