//! Proofload's end of a warden: starts it, tells it things, and keeps what it says for whoever asks.
//!
//! A thread of its own reads, so that the death of a warden is noticed, and its service ended, whatever Proofload is
//! doing. It must not decide when a service ends.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Warden;
use crate::group::CpuGroup;
use crate::marker::Marker;
use crate::message::{Exit, Failure, Notice, Order, Report, Spec};
use crate::orphans::Kin;
use crate::process::ProcessId;

/// What a warden may need beyond `stop_timeout`: its own patience with SIGKILL, and a busy machine.
const SLACK: Duration = Duration::from_secs(10);
/// How long a warden may take to answer a question.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// What a warden has said so far.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub started: Option<(u32, Option<CpuGroup>)>,
    pub failed: Option<Failure>,
    pub exited: Option<(Exit, String)>,
    pub empty: bool,
    /// The answer to the last question for it.
    pub tail: Option<String>,
    pub report: Option<Report>,
    /// The warden has ended; what it left behind has been killed, but for these.
    pub closed: Option<Vec<ProcessId>>,
    /// Its first line that was no notice: some other program's.
    noise: Option<String>,
}

/// News, and a bell.
#[derive(Debug, Default)]
struct Board {
    news: Mutex<News>,
    changed: Condvar,
}

/// A warden that runs.
#[derive(Debug)]
pub(crate) struct Link {
    child: Child,
    orders: Option<ChildStdin>,
    board: Arc<Board>,
    reader: Option<JoinHandle<()>>,
    /// How long the warden may take to end after it was told to.
    patience: Duration,
    pub kin: Arc<Kin>,
}

impl Link {
    /// Starts a warden and gives it its spec. What becomes of it, its news will tell.
    ///
    /// # Errors
    /// Why it could not be started, in words.
    pub fn open(warden: &Warden, spec: &Spec, marker: Marker) -> Result<Self, String> {
        let line =
            serde_json::to_string(spec).map_err(|error| format!("cannot be told what to start: {error}"))?;
        let Some((program, arguments)) = warden.command.split_first() else {
            return Err("no command".to_owned());
        };
        let mut child = Command::new(program)
            .arg0("proofload")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let (mut orders, notices) = (child.stdin.take(), child.stdout.take());
        // A warden that is gone already says why, or its end does.
        let _ = orders.as_mut().map(|orders| orders.write_all(format!("{line}\n").as_bytes()));
        let board = Arc::new(Board::default());
        let kin = Arc::new(Kin::new(marker, child.id()));
        let reader = {
            let (board, kin) = (Arc::clone(&board), Arc::clone(&kin));
            let read = move || notices.map_or((), |notices| read(notices, &board, &kin));
            thread::Builder::new().name("warden".to_owned()).spawn(read)
        };
        let patience = spec.stop_timeout + SLACK;
        let mut link = Self { child, orders, board, reader: None, patience, kin };
        match reader {
            Ok(reader) => {
                link.reader = Some(reader);
                Ok(link)
            }
            Err(error) => {
                // Its orders end with the link, and with them whatever it has started; nobody waits to hear of it.
                link.orders = None;
                let _ = link.child.wait();
                Err(format!("no thread to hear it: {error}"))
            }
        }
    }

    /// The warden's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is known now.
    pub fn news(&self) -> MutexGuard<'_, News> {
        lock(&self.board.news)
    }

    /// Waits until the news have what `wanted` looks for, or for `patience`.
    pub fn wait<T>(&self, patience: Duration, mut wanted: impl FnMut(&mut News) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut news = self.news();
        loop {
            if let Some(found) = wanted(&mut news) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            news = match self.board.changed.wait_timeout(news, left) {
                Ok((news, _)) => news,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
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
    pub fn stop(&mut self) -> Option<Report> {
        self.tell(Order::Stop);
        self.close();
        self.news().report.take()
    }

    /// Ends the orders, which ends the service, and waits until the warden has gone. One that does not go is killed, and
    /// the reader then kills what it looked after.
    fn close(&mut self) {
        self.orders = None;
        let Some(reader) = self.reader.take() else { return };
        if self.wait(self.patience, |news| news.closed.is_some().then_some(())).is_none() {
            let _ = self.child.kill();
        }
        let _ = reader.join();
        let _ = self.child.wait();
    }

    /// Why a warden that has ended never started anything.
    pub fn last_words(&mut self) -> String {
        let noise = self.news().noise.take();
        let status = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        match noise {
            Some(line) => format!("it said {line:?} and ended with {status}"),
            None => format!("it ended with {status}"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

/// The reader's whole life.
fn read(notices: ChildStdout, board: &Board, kin: &Kin) {
    for line in BufReader::new(notices).lines().map_while(Result::ok) {
        let notice = serde_json::from_str(&line).map_err(|_| line);
        if let Ok(Notice::Started { group, .. }) = &notice {
            kin.set_group(group.clone());
        }
        lock(&board.news).take(notice);
        board.changed.notify_all();
    }
    let lost = {
        let news = lock(&board.news);
        // One that never started anything leaves nothing; one that failed later does.
        news.report.is_none() && (news.failed.is_none() || news.started.is_some())
    };
    let left = if lost { kin.end() } else { Vec::new() };
    lock(&board.news).closed = Some(left);
    board.changed.notify_all();
}

fn lock(news: &Mutex<News>) -> MutexGuard<'_, News> {
    news.lock().unwrap_or_else(PoisonError::into_inner)
}

impl News {
    fn take(&mut self, notice: Result<Notice, String>) {
        match notice {
            Ok(Notice::Started { pid, group }) => self.started = Some((pid, group)),
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
