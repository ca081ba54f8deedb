//! The live view at work: one small thread that draws it, reads keys, and waits for the rest of the time.
//!
//! The lab's thread only folds updates in and wakes it, so that a terminal that stands still holds up nothing that is measured. Within
//! a slice it draws once a second: the time passes, nothing else.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::{News, Stop, Update};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

use super::drawing::{Frame, draw};
use super::keys::{Act, Shown, Wish, keys};
use super::state::State;
use super::surface::Surface;
use super::{logs, terminal};
use crate::signals;

/// Without news it is drawn so often: the time passes.
const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// With news not more often than this.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// The live view.
#[derive(Debug)]
pub struct View {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Tells the view's thread something.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    /// Wakes the thread by any byte. Never waits: where many bytes lie already, one more tells nothing new.
    wake: UnixStream,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// When the state took in its last update.
    noticed: Instant,
    shown: Shown,
    /// What is to be said above the view.
    said: Vec<String>,
    ended: bool,
}

/// What the thread has for itself.
struct Painter {
    shared: Arc<Shared>,
    woken: UnixStream,
    stop: Stop,
    logs: PathBuf,
    surface: Surface,
    /// Whether stdin may be read for keys.
    keys: bool,
    drawn: Option<Instant>,
}

impl Handle {
    /// Says a text above the view; on stderr where there is no view any more.
    pub fn say(&self, text: &str) {
        let mut inner = self.0.lock();
        if inner.ended {
            drop(inner);
            return crate::print::talk(text);
        }
        inner.said.push(text.to_owned());
        drop(inner);
        self.0.wake();
    }

    /// Says likewise that the run stops, and shows it: whether that came by a key or by a signal.
    pub fn stopping(&self, text: &str) {
        self.0.lock().shown.wish = Wish::Stop;
        self.say(text);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whatever a panic elsewhere left half done is only shown.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = (&self.wake).write(&[0]);
    }
}

impl View {
    /// Begins to draw; keys ask `stop` for a pause, and the program for its end.
    ///
    /// # Errors
    /// If no thread or socket can be had.
    pub fn begin(state: State, logs: PathBuf, stop: Stop, styled: bool) -> io::Result<View> {
        let (wake, woken) = UnixStream::pair()?;
        for end in [&wake, &woken] {
            end.set_nonblocking(true)?;
        }
        let keys = io::IsTerminal::is_terminal(&io::stdin());
        let shown = Shown { keys, ..Shown::default() };
        let inner = Inner { state, noticed: Instant::now(), shown, said: Vec::new(), ended: false };
        let shared = Arc::new(Shared { inner: Mutex::new(inner), wake });
        let surface = Surface::new(styled);
        let mut painter =
            Painter { shared: Arc::clone(&shared), woken, stop, logs, surface, keys, drawn: None };
        terminal::leave_on_panic();
        signals::on_suspend(terminal::leave)?;
        let thread = thread::Builder::new().name("view".into()).spawn(move || painter.work())?;
        Ok(View { handle: Handle(shared), thread: Some(thread) })
    }

    /// Takes in what just happened.
    pub fn take_in(&self, update: &Update<'_>) {
        let mut inner = self.handle.0.lock();
        inner.state.take_in(update);
        inner.noticed = Instant::now();
        drop(inner);
        // What happened is shown along with what is done next.
        if let News::Progress(_) = update.news {
            self.handle.0.wake();
        }
    }

    /// Looks at the state.
    pub fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.handle.0.lock().state)
    }

    /// What says something above the view.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes the view away and puts the terminal back.
    pub fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.handle.0.lock().ended = true;
        self.handle.0.wake();
        // One that panicked has put the terminal back already.
        let _ = thread.join();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}

impl Painter {
    fn work(&mut self) {
        // Without it a new size is seen a second later.
        let resized = self.shared.wake.try_clone().and_then(|wake| pipe::register(SIGWINCH, wake));
        while !self.shared.lock().ended {
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
            let erased = self.surface.erase(columns);
            put(&erased);
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
        if ours && !terminal::is_taken() {
            // Whatever was drawn before has the shell's words below it.
            self.surface.forget();
            terminal::take(self.keys);
        } else if !ours && terminal::is_taken() {
            self.surface.forget();
            terminal::give_back();
        }
    }

    fn draw(&mut self) {
        let Some((columns, rows)) = terminal::size() else { return };
        let wants_logs = self.shared.lock().shown.logs;
        let logs = if wants_logs { logs::last_lines(&self.logs) } else { Vec::new() };
        let (buffer, said) = {
            let mut inner = self.shared.lock();
            let said = std::mem::take(&mut inner.said);
            let since_s = inner.noticed.elapsed().as_secs_f64();
            let frame = Frame { state: &inner.state, shown: &inner.shown, logs: &logs, since_s };
            (draw(frame, columns, rows), said)
        };
        put(&self.surface.paint(&said, &buffer, columns));
        self.drawn = Some(Instant::now());
    }

    fn say_plainly(&mut self) {
        let said = std::mem::take(&mut self.shared.lock().said);
        said.iter().for_each(|text| crate::print::talk(text));
    }

    /// Waits for news, keys, a new size, or until the time is to be renewed.
    fn wait(&mut self) {
        let reads = self.keys && terminal::is_taken() && terminal::is_ours();
        let stdin = io::stdin();
        let mut sources = vec![PollFd::new(&self.woken, PollFlags::IN)];
        if reads {
            sources.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let until = Timespec { tv_sec: RENEWED_EVERY.as_secs() as i64, tv_nsec: 0 };
        let _ = poll(&mut sources, Some(&until));
        let pressed = sources.get(1).is_some_and(|stdin| !stdin.revents().is_empty());
        if pressed {
            self.read_keys();
        }
        // News come in twos and threes: what comes within a moment is drawn together.
        let rest = self.drawn.map(|drawn| AT_MOST_EVERY.saturating_sub(drawn.elapsed()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero() && !self.shared.lock().ended) {
            thread::sleep(rest);
        }
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    fn read_keys(&mut self) {
        let mut bytes = [0; 64];
        let count = match rustix::io::read(io::stdin(), &mut bytes) {
            // Nobody is there any more.
            Ok(0) => return self.keys = false,
            Ok(count) => count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
            Err(_) => return self.keys = false,
        };
        for key in keys(&bytes[..count]) {
            let act = self.shared.lock().shown.press(key);
            match act {
                Some(Act::SetPaused(paused)) => self.stop.set_paused(paused),
                // The very same as a Ctrl-C, so that there is one way to stop.
                Some(Act::Interrupt) => {
                    let _ = kill_process(getpid(), Signal::INT);
                }
                None => {}
            }
        }
    }
}

/// Writes to the terminal in one go, as far as it takes it.
fn put(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}
