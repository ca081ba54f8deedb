//! The thread of the live view: it draws the view, reads keys, and otherwise waits.
//!
//! The lab's thread only merges updates and wakes this thread, so that a stalled terminal blocks no
//! measurement. Within a slice it draws once a second, because only the time changes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use lab::{Update, UpdateNews};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

use super::LiveState;
use super::drawing::{LiveFrame, draw};
use super::terminal::{self, Surface};
use crate::print::{self, talk};
use crate::signals;

/// Redraw interval without news.
const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// Minimum redraw interval with news.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// More bytes at once than a user types: pasted text, which contains no intended keys.
const PASTED_FROM: usize = 5;
const ESCAPE: u8 = 0x1b;
/// Maximum number of lines of all logs together.
const LINES_MAX: usize = 24;
/// Maximum number of logs, the most recently written ones.
const LOGS_MAX: usize = 4;
/// Maximum number of bytes read at the end of each log.
const BYTES_MAX: u64 = 4096;

/// State shared by the lab's thread, signals and the view.
#[derive(Clone)]
pub struct Screen(Arc<ScreenShared>);

struct ScreenShared {
    inner: Mutex<Inner>,
    /// Any byte wakes the view. Writing never blocks: if many bytes are pending, another one is not needed.
    wake: UnixStream,
}

struct Inner {
    state: LiveState,
    /// Time of the last update of the state.
    noticed: Instant,
    shown: ScreenRequests,
    /// Messages to be printed above the view.
    said: Vec<String>,
    /// Whether there is a view.
    drawn: bool,
}

impl Screen {
    /// Creates a screen without a view, and the descriptor that wakes it.
    pub fn new(state: LiveState) -> io::Result<(Screen, UnixStream)> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (noticed, shown) = (Instant::now(), ScreenRequests::default());
        let inner = Mutex::new(Inner {
            state,
            noticed,
            shown,
            said: Vec::new(),
            drawn: false,
        });
        Ok((Screen(Arc::new(ScreenShared { inner, wake })), woken))
    }

    /// Starts drawing. Keys may request the end of the program.
    pub fn view(
        &self,
        woken: UnixStream,
        logs: PathBuf,
        styled: bool,
    ) -> io::Result<JoinHandle<()>> {
        self.lock().shown.keys = io::IsTerminal::is_terminal(&io::stdin());
        let (screen, surface) = (self.clone(), Surface::new(styled));
        let mut painter = Painter {
            screen,
            woken,
            logs,
            surface,
            drawn: None,
        };
        terminal::leave_on_panic();
        signals::on_suspend(terminal::leave)?;
        self.lock().drawn = true;
        thread::Builder::new()
            .name("view".into())
            .spawn(move || painter.work())
    }

    /// Merges an update, and then calls `look` with the state.
    pub fn take_in<T>(&self, update: &Update<'_>, look: impl FnOnce(&LiveState) -> T) -> T {
        let mut inner = self.lock();
        inner.state.take_in(update);
        inner.noticed = Instant::now();
        let seen = look(&inner.state);
        // Events are drawn together with the next activity.
        if let UpdateNews::Progress(_) = update.news {
            self.wake();
        }
        seen
    }

    /// Prints a message above the view, or on stderr without a view.
    pub fn say(&self, text: &str) {
        let mut inner = self.lock();
        if !inner.drawn {
            drop(inner);
            return talk(text);
        }
        inner.said.push(text.to_owned());
        self.wake();
    }

    /// Prints a message and marks the run as stopping, requested by a key or a signal.
    pub fn stopping(&self, text: &str) {
        self.lock().shown.stops = true;
        self.say(text);
    }

    pub fn end(&self) {
        self.lock().drawn = false;
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // State that a panic elsewhere left inconsistent is only displayed.
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = (&self.0.wake).write(&[0]);
    }
}

/// State of the thread.
struct Painter {
    screen: Screen,
    woken: UnixStream,
    logs: PathBuf,
    surface: Surface,
    drawn: Option<Instant>,
}

impl Painter {
    fn work(&mut self) {
        // Without it a new size is noticed a second later.
        let resized = self
            .screen
            .0
            .wake
            .try_clone()
            .and_then(|wake| pipe::register(SIGWINCH, wake));
        while self.screen.lock().drawn {
            self.follow_the_shell();
            if terminal::is_taken() {
                self.draw();
            } else {
                self.say_plainly();
            }
            self.wait();
        }
        if terminal::is_taken() {
            let columns = terminal::size().map_or(u16::MAX, |(columns, _)| columns);
            put(&self.surface.erase(columns));
        }
        terminal::give_back();
        self.say_plainly();
        if let Ok(id) = resized {
            unregister(id);
        }
    }

    /// Follows job control: in the background the terminal belongs to the shell, which has also reset its
    /// modes when it stopped this program.
    fn follow_the_shell(&mut self) {
        let ours = terminal::is_ours();
        if ours == terminal::is_taken() {
            return;
        }
        // Other output may follow the earlier drawing.
        self.surface.forget();
        if ours {
            terminal::take(self.screen.lock().shown.keys)
        } else {
            terminal::give_back()
        }
    }

    fn draw(&mut self) {
        let Some((columns, rows)) = terminal::size() else {
            return;
        };
        let wants_logs = self.screen.lock().shown.logs;
        let logs = if wants_logs {
            last_lines(&self.logs)
        } else {
            Vec::new()
        };
        let (lines, said) = {
            let mut inner = self.screen.lock();
            let said = std::mem::take(&mut inner.said);
            let since_s = inner.noticed.elapsed().as_secs_f64();
            let frame = LiveFrame {
                state: &inner.state,
                shown: &inner.shown,
                logs: &logs,
                since_s,
            };
            (draw(frame, columns, rows), said)
        };
        put(&self.surface.paint(&said, &lines, columns));
        self.drawn = Some(Instant::now());
    }

    fn say_plainly(&mut self) {
        let said = std::mem::take(&mut self.screen.lock().said);
        said.iter().for_each(|text| talk(text));
    }

    /// Waits for news, keys, a new size, or the next redraw.
    fn wait(&mut self) {
        let stdin = io::stdin();
        let mut sources = vec![PollFd::new(&self.woken, PollFlags::IN)];
        if self.screen.lock().shown.keys && terminal::is_taken() && terminal::is_ours() {
            sources.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let until = Timespec {
            tv_sec: RENEWED_EVERY.as_secs() as i64,
            tv_nsec: 0,
        };
        let _ = poll(&mut sources, Some(&until));
        if sources
            .get(1)
            .is_some_and(|stdin| !stdin.revents().is_empty())
        {
            self.read_keys();
        }
        // News come in groups, which are drawn together.
        let rest = self
            .drawn
            .map(|drawn| AT_MOST_EVERY.saturating_sub(drawn.elapsed()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero() && self.screen.lock().drawn) {
            thread::sleep(rest);
        }
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    fn read_keys(&mut self) {
        let mut bytes = [0; 64];
        let count = match rustix::io::read(io::stdin(), &mut bytes) {
            Ok(count @ 1..) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
            // The terminal is gone.
            Ok(0) | Err(_) => return self.screen.lock().shown.keys = false,
        };
        let stops = self.screen.lock().shown.press(&bytes[..count]);
        // The same as a Ctrl-C, which may be ignored, so that there is a single way to stop.
        (0..stops).for_each(|_| _ = kill_process(getpid(), Signal::TERM));
    }
}

/// Writes to the terminal at once, as far as possible.
fn put(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

/// The user's choices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenRequests {
    /// Whether keys are read.
    pub keys: bool,
    /// Whether the user has requested the end of the run.
    pub stops: bool,
    pub logs: bool,
    /// Whether the help for keys is shown.
    pub help: bool,
}

impl ScreenRequests {
    /// Handles input and returns the number of keys that act like a Ctrl-C: the first stops, the second
    /// leaves. Cursor keys begin with an escape and are ignored, and so is pasted text.
    fn press(&mut self, bytes: &[u8]) -> usize {
        if bytes.contains(&ESCAPE) || bytes.len() >= PASTED_FROM {
            return 0;
        }
        bytes
            .iter()
            .filter(|byte| self.key(byte.to_ascii_lowercase()))
            .count()
    }

    /// Handles a key and returns whether it requests the end.
    fn key(&mut self, letter: u8) -> bool {
        let stops = matches!(letter, b'q' | b's');
        match letter {
            _ if stops => self.stops = true,
            b'l' => self.logs = !self.logs,
            b'?' | b'h' => self.help = !self.help,
            _ => {}
        }
        stops
    }
}

/// The last lines of the most recently written logs of a record, each with the name of its log. Empty if
/// there are none.
fn last_lines(logs: &Path) -> Vec<String> {
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let entries = fs::read_dir(logs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut logs: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|path| Some((written(&path)?, path)))
        .collect();
    logs.sort_by(|one, other| other.cmp(one));
    logs.truncate(LOGS_MAX);
    // The newest last, as in a log.
    let mut lines: Vec<String> = logs
        .iter()
        .rev()
        .flat_map(|(_, path)| of_one(path))
        .collect();
    lines.drain(..lines.len().saturating_sub(LINES_MAX));
    lines
}

fn of_one(path: &Path) -> Vec<String> {
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = tail(path).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX / LOGS_MAX)..];
    let shown = |line: &&str| format!("{name}: {}", print::without_secrets(&without_control(line)));
    last.iter().map(shown).collect()
}

/// Removes colours and control sequences of services.
fn without_control(line: &str) -> String {
    let line = anstream::adapter::strip_str(line).to_string();
    let line: String = line
        .replace('\t', "  ")
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    model::text::line(&line)
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    // The first line may begin in the middle of a secret.
    let begin = if start > 0 { "…" } else { "" };
    Ok(format!("{begin}{}", String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_with_their_log_and_without_what_moves_a_cursor() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(
            last_lines(&folder.path().join("nowhere")),
            Vec::<String>::new()
        );
        let long: String = (0..2000).map(|number| format!("line {number}\n")).collect();
        fs::write(
            folder.path().join("block-01-a-api.log"),
            long + "\x1b[2J\x1b[31mred\x07\tend\n\n",
        )
        .expect("a log");
        let lines = last_lines(folder.path());
        assert_eq!(
            (lines.len(), lines[0].as_str()),
            (LINES_MAX / LOGS_MAX, "block-01-a-api: line 1995")
        );
        assert_eq!(
            lines.last().map(String::as_str),
            Some("block-01-a-api: red  end")
        );
    }

    #[test]
    fn letters_are_keys_and_cursor_keys_or_pasted_text_are_not() {
        let mut shown = ScreenRequests::default();
        for nothing in [
            &b"\x1b[A"[..],
            b"\x1bOP",
            b"\x1b[200~qps\x1b[201~",
            b"make quick",
            b"x\n\xc3\xa9",
            b"",
        ] {
            assert_eq!(
                (shown.press(nothing), &shown),
                (0, &ScreenRequests::default()),
                "{nothing:?}"
            );
        }
        assert_eq!(shown.press(b"l?"), 0);
        assert!(shown.logs && shown.help);
        assert_eq!((shown.press(b"qxS"), shown.stops), (2, true));
    }
}
