//! Looking after a running slice: how far it is, and whether somebody wants it to end.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use load::{Generator, Progress, Slice, Until};

use crate::{print, signals};

/// Shorter runs are over before anybody has read a bar.
const SHOWN_FROM: Duration = Duration::from_secs(2);
const RENEWED_EVERY: Duration = Duration::from_millis(100);
const BY_TIME: &str = "{wide_bar} {msg}";
const BY_COUNT: &str = "{wide_bar} {human_pos} of {human_len} answers, {eta} left";

/// Runs one slice with progress on a terminal. The second value says whether a signal ended it early; a second signal
/// ends the program.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn run(generator: &mut Generator, until: Until) -> anyhow::Result<(Slice, bool)> {
    let interrupted = stop_on_signal(generator)?;
    let (progress, over) = (generator.progress(), AtomicBool::new(false));
    let slice = thread::scope(|scope| {
        if let Some(bar) = bar(until) {
            let over = &over;
            scope.spawn(move || show(&bar, until, (&progress, over)));
        }
        let slice = generator.run(until);
        over.store(true, Ordering::Relaxed);
        slice
    });
    Ok((slice, interrupted.load(Ordering::Relaxed)))
}

fn stop_on_signal(generator: &Generator) -> anyhow::Result<Arc<AtomicBool>> {
    let (interrupt, interrupted) = (generator.interrupt(), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&interrupted);
    signals::on_first(move || {
        seen.store(true, Ordering::Relaxed);
        interrupt.stop();
        print::talk("stopping; once more to leave at once");
    })?;
    Ok(interrupted)
}

/// A bar, where somebody can see it for long enough.
fn bar(until: Until) -> Option<ProgressBar> {
    let (length, template) = match until {
        Until::Elapsed(duration) if duration <= SHOWN_FROM => return None,
        Until::Elapsed(duration) => (milliseconds(duration), BY_TIME),
        Until::Requests(total) => (total, BY_COUNT),
    };
    let style = ProgressStyle::with_template(template).ok()?;
    io::stderr().is_terminal().then(|| ProgressBar::new(length).with_style(style))
}

fn show(bar: &ProgressBar, until: Until, (progress, over): (&Progress, &AtomicBool)) {
    let began = Instant::now();
    while !over.load(Ordering::Relaxed) {
        thread::sleep(RENEWED_EVERY);
        let elapsed = began.elapsed();
        match until {
            // The count of a run that may be short appears once it is not.
            Until::Requests(_) if elapsed < SHOWN_FROM => {}
            Until::Requests(_) => bar.set_position(progress.done()),
            Until::Elapsed(duration) => {
                let left_s = duration.saturating_sub(elapsed).as_secs_f64().ceil();
                bar.set_position(milliseconds(elapsed));
                bar.set_message(format!("{left_s} s left, {} answers", report::count(progress.done())));
            }
        }
    }
    bar.finish_and_clear();
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
