//! Looking after running slices: how far they are, and whether somebody wants them to end.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use load::{Generator, Interrupt, Progress, Until};
use model::Counts;

use crate::{print, signals};

/// Shorter runs are over before anybody has read a bar.
const SHOWN_FROM: Duration = Duration::from_secs(2);
const RENEWED_EVERY: Duration = Duration::from_millis(100);
const BY_TIME: &str = "{wide_bar} {msg}";
const BY_COUNT: &str = "{wide_bar} {msg}{human_pos} of {human_len} answers, {eta} left";

/// Ends what runs on the first signal; a second signal ends the program.
#[derive(Debug)]
pub struct Watch {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    interrupted: AtomicBool,
    /// Ends the generator that runs, or ran last.
    running: Mutex<Option<Interrupt>>,
}

/// Which part of the whole a slice is, for the bar.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// What it is; empty where it is the only one.
    pub name: String,
    /// How long the parts before it took, and those after it will.
    pub before: Duration,
    pub after: Duration,
}

impl Watch {
    /// Begins to listen to signals. Once in a program.
    ///
    /// # Errors
    /// If the signal handlers cannot be installed.
    pub fn start() -> anyhow::Result<Watch> {
        let state = Arc::new(State::default());
        let seen = Arc::clone(&state);
        signals::on_first(move || {
            // First the mark, then the stop: `run` does it the other way round, so that one of them sees the other.
            seen.interrupted.store(true, Ordering::SeqCst);
            if let Some(interrupt) = &*seen.running.lock().unwrap_or_else(PoisonError::into_inner) {
                interrupt.stop();
            }
            print::talk("stopping; once more to leave at once");
        })?;
        Ok(Watch { state })
    }

    /// Whether a signal has come.
    pub fn interrupted(&self) -> bool {
        self.state.interrupted.load(Ordering::SeqCst)
    }

    /// Runs one slice with progress on a terminal; it is over at once if a signal has come before.
    pub fn run(&self, generator: &mut Generator, until: Until, part: &Part) -> Counts {
        let interrupt = generator.interrupt();
        *self.state.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(interrupt.clone());
        if self.interrupted() {
            interrupt.stop();
        }
        let (progress, over) = (generator.progress(), AtomicBool::new(false));
        thread::scope(|scope| {
            if let Some(bar) = bar(until, part) {
                let over = &over;
                scope.spawn(move || show(&bar, (until, part), (&progress, over)));
            }
            let slice = generator.run(until);
            over.store(true, Ordering::Relaxed);
            slice
        })
    }
}

/// A bar, where somebody can see it for long enough.
fn bar(until: Until, part: &Part) -> Option<ProgressBar> {
    let (length, template) = match until {
        Until::Elapsed(duration) => {
            let whole = part.before.saturating_add(duration).saturating_add(part.after);
            if whole <= SHOWN_FROM {
                return None;
            }
            (milliseconds(whole), BY_TIME)
        }
        Until::Requests(total) => (total, BY_COUNT),
    };
    let style = ProgressStyle::with_template(template).ok()?;
    let bar = io::stderr().is_terminal().then(|| ProgressBar::new(length).with_style(style))?;
    bar.set_message(part.name.clone());
    Some(bar)
}

fn show(bar: &ProgressBar, (until, part): (Until, &Part), (progress, over): (&Progress, &AtomicBool)) {
    let began = Instant::now();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(RENEWED_EVERY);
        let elapsed = began.elapsed();
        match until {
            // The count of a run that may be short appears once it is not.
            Until::Requests(_) if elapsed < SHOWN_FROM => {}
            Until::Requests(_) => bar.set_position(progress.done()),
            Until::Elapsed(duration) => {
                let left_s = duration.saturating_sub(elapsed).saturating_add(part.after).as_secs_f64().ceil();
                let done = report::count(progress.done());
                bar.set_position(milliseconds(part.before.saturating_add(elapsed.min(duration))));
                bar.set_message(format!("{}{left_s} s left, {done} answers", part.name));
            }
        }
    }
    bar.finish_and_clear();
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
