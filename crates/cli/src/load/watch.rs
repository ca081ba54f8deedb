//! What is shown of a measurement while it runs: what it waits for, a bar on a terminal, and a line for each step of several.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use analysis::Window;
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Doing, News, Progress, Stop, Update};
use model::{Event, Slice, SliceKind, Until};
use plan::{Measure, Plan, Variant};
use report::{count, rate, seconds};

use crate::print;

/// Shorter runs are over before anybody has read a bar.
const SHOWN_FROM: Duration = Duration::from_secs(2);
/// What takes longer to be ready is told.
const PATIENCE: Duration = Duration::from_secs(2);
const RENEWED_EVERY: Duration = Duration::from_millis(100);
const BY_TIME: &str = "{wide_bar} {msg}";
const BY_COUNT: &str = "{wide_bar} {human_pos} of {human_len} responses, {eta} left";

/// A measurement as it is shown.
pub struct Watch {
    measure: Option<Measure>,
    connections: u32,
    /// Slices that are over.
    done: usize,
    /// What is told where nothing happens for [`PATIENCE`].
    awaited: Option<String>,
    /// Dropped when something happens.
    waiting: Option<Sender<()>>,
    bar: Option<Bar>,
}

/// A bar that a thread of its own renews.
struct Bar {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Begins to show the measurement of a plan that has one, whose slices tell `stop` how far they are.
    pub fn begin(plan: &Plan, stop: Stop) -> Watch {
        let shown = plan.measure.as_ref().filter(|_| io::stderr().is_terminal() && !print::is_quiet());
        let bar = shown.and_then(|measure| Bar::begin(measure, stop));
        let connections = plan.variants.first().map_or(0, |variant| variant.load.connections);
        let entry = plan.variants.first().and_then(Variant::entry_service);
        let awaited = entry.and_then(|entry| {
            let (origin, limit) = (entry.url()?.origin(), seconds(entry.ready_timeout.as_secs_f64()));
            Some(format!("waiting for {origin} to be ready, for up to {limit}"))
        });
        Watch { measure: plan.measure.clone(), connections, done: 0, awaited, waiting: None, bar }
    }

    /// Takes in what just happened.
    pub fn show(&mut self, update: &Update<'_>) {
        self.waiting = None;
        match update.news {
            News::Progress(Progress::Trial { doing: Doing::Starting, .. }) => {
                self.waiting = self.awaited.clone().map(told_in_time);
            }
            News::Progress(Progress::Trial { doing: Doing::MeasuringCapacity, .. }) => print::talk(&format!(
                "measuring capacity: closed loop, {} connections, for {}",
                self.connections,
                self.capacity()
            )),
            News::Event(Event::Slice(slice)) => self.over(slice),
            News::Event(_) | News::Progress(_) => {}
        }
    }

    /// Takes the bar away, so that the report stands alone.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.over.store(true, Ordering::Relaxed);
            // It has nothing to say.
            let _ = bar.thread.join();
        }
    }

    /// A slice is over: whoever waits for the others sees how it went.
    fn over(&mut self, slice: &Slice) {
        let counts = &slice.counts;
        match (slice.kind, slice.asked.and_then(|asked| asked.open)) {
            (SliceKind::Capacity, _) => {
                let per_s = counts.successful_in_window as f64 * 1e9 / counts.window_ns.max(1) as f64;
                print::talk(&format!("capacity: {}", rate(per_s)));
            }
            (SliceKind::Measured, Some(open)) if self.slices() > 1 => {
                self.done += 1;
                let window = Window::alone(slice);
                let kept = window.kept().map_or(String::new(), |kept| format!(": {}", kept.words()));
                let p99 = counts.open.as_ref().and_then(|open| open.response.quantile(0.99));
                let p99 = p99.map_or(String::new(), |p99| format!(", p99 {}", model::Quantity::ns(p99.ns())));
                print::talk(&format!("step {} of {}, {}{kept}{p99}", self.done, self.slices(), open.ask));
            }
            (SliceKind::Measured | SliceKind::WarmUp | SliceKind::Probe | SliceKind::Overload, _) => {}
        }
    }

    fn slices(&self) -> usize {
        self.measure.as_ref().map_or(1, Measure::slices)
    }

    /// For how long it is measured, after how long.
    fn capacity(&self) -> String {
        let lengths = self.measure.as_ref().and_then(Measure::capacity).unwrap_or_default();
        format!("{} after {} of warm-up", seconds(lengths.1.as_secs_f64()), seconds(lengths.0.as_secs_f64()))
    }
}

impl Bar {
    fn begin(measure: &Measure, stop: Stop) -> Option<Bar> {
        let (length, template) = match measure.until {
            Until::Elapsed(_) if measure.total() <= SHOWN_FROM => return None,
            Until::Elapsed(_) => (milliseconds(measure.total()), BY_TIME),
            Until::Requests(total) => (total, BY_COUNT),
        };
        let style = ProgressStyle::with_template(template).ok()?;
        let bar = ProgressBar::new(length).with_style(style);
        let over = Arc::new(AtomicBool::new(false));
        let (seen, until) = (Arc::clone(&over), measure.until);
        let renew = move || {
            let began = Instant::now();
            while !seen.load(Ordering::Relaxed) {
                thread::sleep(RENEWED_EVERY);
                let elapsed = began.elapsed();
                match until {
                    // The count of a run that may be short appears once it is not.
                    Until::Requests(_) if elapsed < SHOWN_FROM => {}
                    Until::Requests(_) => bar.set_position(stop.responses()),
                    Until::Elapsed(_) => {
                        let left_s =
                            Duration::from_millis(length).saturating_sub(elapsed).as_secs_f64().ceil();
                        bar.set_position(milliseconds(elapsed).min(length));
                        bar.set_message(format!("{left_s} s left, {} responses", count(stop.responses())));
                    }
                }
            }
            bar.finish_and_clear();
        };
        let thread = thread::Builder::new().name("bar".into()).spawn(renew).ok()?;
        Some(Bar { over, thread })
    }
}

/// Tells this once [`PATIENCE`] is over, unless what is returned has been dropped by then.
fn told_in_time(text: String) -> Sender<()> {
    let (waiting, over) = mpsc::channel();
    let tell = move || {
        if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            print::talk(&text);
        }
    };
    // Without a thread nothing is told.
    let _ = thread::Builder::new().name("patience".into()).spawn(tell);
    waiting
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
