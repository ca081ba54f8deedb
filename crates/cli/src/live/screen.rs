//! The live view at work: one small thread that draws it, reads keys, and waits for the rest of the time.
//!
//! The lab's thread only folds updates in and wakes it, so that a terminal that stands still holds up nothing that is measured. Within
//! a slice it draws once a second: the time passes, nothing else.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use lab::{News, Update};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

use super::State;
use super::drawing::{Frame, draw};
use super::terminal::{self, Surface};
use crate::print::{self, talk};
use crate::signals;

/// Without news it is drawn so often: the time passes.
const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// With news not more often than this.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// More bytes at once than somebody presses keys: something was pasted, and no key of it was meant.
const PASTED_FROM: usize = 5;
const ESCAPE: u8 = 0x1b;
/// Lines that are kept of all logs together.
const LINES_MAX: usize = 24;
/// Logs that are looked at: of those that were written last.
const LOGS_MAX: usize = 4;
/// Read of each, from its end.
const BYTES_MAX: u64 = 4096;

/// What the lab's thread, signals and the view have in common.
#[derive(Clone)]
pub struct Screen(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    /// Wakes the view by any byte. Never waits: where many bytes lie already, one more tells nothing new.
    wake: UnixStream,
}

struct Inner {
    state: State,
    /// When the state took in its last update.
    noticed: Instant,
    shown: Shown,
    /// What is to be said above the view.
    said: Vec<String>,
    /// Whether there is a view.
    drawn: bool,
}

impl Screen {
    /// A screen without a view, and what ends a wait for it.
    pub fn new(state: State) -> io::Result<(Screen, UnixStream)> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (noticed, shown) = (Instant::now(), Shown::default());
        let inner = Mutex::new(Inner { state, noticed, shown, said: Vec::new(), drawn: false });
        Ok((Screen(Arc::new(Shared { inner, wake })), woken))
    }

    /// Begins to draw; keys ask the program for its end.
    pub fn view(&self, woken: UnixStream, logs: PathBuf, styled: bool) -> io::Result<JoinHandle<()>> {
        self.lock().shown.keys = io::IsTerminal::is_terminal(&io::stdin());
        let (screen, surface) = (self.clone(), Surface::new(styled));
        let mut painter = Painter { screen, woken, logs, surface, drawn: None };
        terminal::leave_on_panic();
        signals::on_suspend(terminal::leave)?;
        self.lock().drawn = true;
        thread::Builder::new().name("view".into()).spawn(move || painter.work())
    }

    /// Takes in what just happened, and looks at the state then.
    pub fn take_in<T>(&self, update: &Update<'_>, look: impl FnOnce(&State) -> T) -> T {
        let mut inner = self.lock();
        inner.state.take_in(update);
        inner.noticed = Instant::now();
        let seen = look(&inner.state);
        // What happened is shown along with what is done next.
        if let News::Progress(_) = update.news {
            self.wake();
        }
        seen
    }

    /// Says a text above the view; on stderr where there is none.
    pub fn say(&self, text: &str) {
        let mut inner = self.lock();
        if !inner.drawn {
            drop(inner);
            return talk(text);
        }
        inner.said.push(text.to_owned());
        self.wake();
    }

    /// Says likewise that the run stops, and shows it: whether that came by a key or by a signal.
    pub fn stopping(&self, text: &str) {
        self.lock().shown.stops = true;
        self.say(text);
    }

    pub fn end(&self) {
        self.lock().drawn = false;
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whatever a panic elsewhere left half done is only shown.
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = (&self.0.wake).write(&[0]);
    }
}

/// What the thread has for itself.
struct Painter {
    screen: Screen,
    woken: UnixStream,
    logs: PathBuf,
    surface: Surface,
    drawn: Option<Instant>,
}

impl Painter {
    fn work(&mut self) {
        // Without it a new size is seen a second later.
        let resized = self.screen.0.wake.try_clone().and_then(|wake| pipe::register(SIGWINCH, wake));
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

    /// A shell that has us in the background has the terminal for itself; and it gave back what we had set when it stopped us.
    fn follow_the_shell(&mut self) {
        let ours = terminal::is_ours();
        if ours == terminal::is_taken() {
            return;
        }
        // Whatever was drawn before has somebody else's words below it.
        self.surface.forget();
        if ours { terminal::take(self.screen.lock().shown.keys) } else { terminal::give_back() }
    }

    fn draw(&mut self) {
        let Some((columns, rows)) = terminal::size() else { return };
        let wants_logs = self.screen.lock().shown.logs;
        let logs = if wants_logs { last_lines(&self.logs) } else { Vec::new() };
        let (lines, said) = {
            let mut inner = self.screen.lock();
            let said = std::mem::take(&mut inner.said);
            let since_s = inner.noticed.elapsed().as_secs_f64();
            let frame = Frame { state: &inner.state, shown: &inner.shown, logs: &logs, since_s };
            (draw(frame, columns, rows), said)
        };
        put(&self.surface.paint(&said, &lines, columns));
        self.drawn = Some(Instant::now());
    }

    fn say_plainly(&mut self) {
        let said = std::mem::take(&mut self.screen.lock().said);
        said.iter().for_each(|text| talk(text));
    }

    /// Waits for news, keys, a new size, or until the time is to be renewed.
    fn wait(&mut self) {
        let stdin = io::stdin();
        let mut sources = vec![PollFd::new(&self.woken, PollFlags::IN)];
        if self.screen.lock().shown.keys && terminal::is_taken() && terminal::is_ours() {
            sources.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let until = Timespec { tv_sec: RENEWED_EVERY.as_secs() as i64, tv_nsec: 0 };
        let _ = poll(&mut sources, Some(&until));
        if sources.get(1).is_some_and(|stdin| !stdin.revents().is_empty()) {
            self.read_keys();
        }
        // News come in twos and threes: what comes within a moment is drawn together.
        let rest = self.drawn.map(|drawn| AT_MOST_EVERY.saturating_sub(drawn.elapsed()));
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
            // Nobody is there any more.
            Ok(0) | Err(_) => return self.screen.lock().shown.keys = false,
        };
        let stops = self.screen.lock().shown.press(&bytes[..count]);
        // The same as a Ctrl-C, which may be ignored, so that there is one way to stop.
        (0..stops).for_each(|_| _ = kill_process(getpid(), Signal::TERM));
    }
}

/// Writes to the terminal in one go, as far as it takes it.
fn put(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

/// What the user wants to be shown, and to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Whether keys are heard at all.
    pub keys: bool,
    /// Whether the user has asked for the end of the run.
    pub stops: bool,
    pub logs: bool,
    /// Whether it is shown what the keys do.
    pub help: bool,
}

impl Shown {
    /// Takes in what was read at once, and tells how many of the keys are what a Ctrl-C is: the first stops, the second leaves. Cursor keys
    /// and the like begin with an escape and mean nothing, as does what was pasted.
    fn press(&mut self, bytes: &[u8]) -> usize {
        if bytes.contains(&ESCAPE) || bytes.len() >= PASTED_FROM {
            return 0;
        }
        bytes.iter().filter(|byte| self.key(byte.to_ascii_lowercase())).count()
    }

    /// Takes in a key, and tells whether it asks for an end.
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

/// The last lines of the logs in a record's folder that were written last, each with the name of its log; none where there is nothing to
/// read.
fn last_lines(logs: &Path) -> Vec<String> {
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let entries = fs::read_dir(logs).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|path| Some((written(&path)?, path))).collect();
    logs.sort_by(|one, other| other.cmp(one));
    logs.truncate(LOGS_MAX);
    // The newest last, as in a log.
    let mut lines: Vec<String> = logs.iter().rev().flat_map(|(_, path)| of_one(path)).collect();
    lines.drain(..lines.len().saturating_sub(LINES_MAX));
    lines
}

fn of_one(path: &Path) -> Vec<String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = tail(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX / LOGS_MAX)..];
    let shown = |line: &&str| format!("{name}: {}", print::without_secrets(&without_control(line)));
    last.iter().map(shown).collect()
}

/// Services may colour what they say, or move a cursor: on our terminal they do not.
fn without_control(line: &str) -> String {
    let line = anstream::adapter::strip_str(line).to_string();
    let line: String = line.replace('\t', "  ").chars().filter(|letter| !letter.is_control()).collect();
    model::text::line(&line)
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    // Half a secret may stand behind it.
    let begin = if start > 0 { "…" } else { "" };
    Ok(format!("{begin}{}", String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_with_their_log_and_without_what_moves_a_cursor() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(last_lines(&folder.path().join("nowhere")), Vec::<String>::new());
        let long: String = (0..2000).map(|number| format!("line {number}\n")).collect();
        fs::write(folder.path().join("block-01-a-api.log"), long + "\x1b[2J\x1b[31mred\x07\tend\n\n")
            .expect("a log");
        let lines = last_lines(folder.path());
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX / LOGS_MAX, "block-01-a-api: line 1995"));
        assert_eq!(lines.last().map(String::as_str), Some("block-01-a-api: red  end"));
    }

    #[test]
    fn letters_are_keys_and_cursor_keys_or_pasted_text_are_not() {
        let mut shown = Shown::default();
        for nothing in
            [&b"\x1b[A"[..], b"\x1bOP", b"\x1b[200~qps\x1b[201~", b"make quick", b"x\n\xc3\xa9", b""]
        {
            assert_eq!((shown.press(nothing), &shown), (0, &Shown::default()), "{nothing:?}");
        }
        assert_eq!(shown.press(b"l?"), 0);
        assert!(shown.logs && shown.help);
        assert_eq!((shown.press(b"qxS"), shown.stops), (2, true));
    }
}
