//! The run as plain lines, where nobody has a terminal: one a block, and between them one now and then. Pure.

use lab::{Notice, Progress};
use report::rate;
use services::Preparing;

use super::screen::{Screen, Trace};
use super::words;

/// Between two lines that only tell that the run goes on: a log of ten minutes is to stay readable.
const EVERY_S: f64 = 5.0;
/// Variants whose last rates a line has room for.
const VARIANTS_MAX: usize = 6;

/// What was told already.
#[derive(Debug, Default)]
pub struct Plain {
    /// When the last line was told, in seconds of the run.
    told_s: f64,
    /// Whether slices have ended since then.
    news: bool,
}

impl Plain {
    /// The line that follows from a notice which `screen` has taken in; `None` for most.
    pub fn line(&mut self, screen: &Screen, progress: &Progress<'_>) -> Option<String> {
        match progress.notice {
            Notice::Preparing(name, preparing) => return first(name, preparing),
            Notice::Connecting(connecting) => {
                return connecting.for_now.is_zero().then(|| words::connecting(connecting));
            }
            Notice::Paused => return Some("paused: nothing is measured".to_owned()),
            Notice::BlockDone(_) => {
                self.told(screen);
                return Some(block(screen));
            }
            Notice::SliceDone(_) => self.news = true,
            // All slices that ended together are known once the next thing begins.
            Notice::Trial(..) if self.news && screen.place.elapsed_s - self.told_s >= EVERY_S => {
                self.told(screen);
                return Some(going_on(screen));
            }
            _ => {}
        }
        words::said(progress)
    }

    fn told(&mut self, screen: &Screen) {
        (self.told_s, self.news) = (screen.place.elapsed_s, false);
    }
}

/// As it begins only: how long it takes is told when it is done.
fn first(name: &str, preparing: &Preparing) -> Option<String> {
    let begins = match preparing {
        Preparing::Waiting => true,
        Preparing::Making(for_now) => for_now.is_zero(),
    };
    begins.then(|| words::preparing(name, preparing))
}

fn block(screen: &Screen) -> String {
    let estimate = |compared| Some((compared, words::so_far(compared)?));
    let estimates = screen.comparisons.iter().filter_map(estimate);
    let estimates: String =
        estimates.map(|(compared, so_far)| format!("; {}: {so_far}", compared.label)).collect();
    format!("{}{estimates}", words::position(&screen.place))
}

fn going_on(screen: &Screen) -> String {
    let last = |trace: &Trace| Some(format!("{} {}", trace.name, rate(trace.slices.back()?.rate_per_s)));
    let mut measured: Vec<&Trace> = screen.variants.iter().filter(|trace| trace.touched > 0).collect();
    measured.sort_by_key(|trace| std::cmp::Reverse(trace.touched));
    measured.truncate(VARIANTS_MAX);
    let mut rates: Vec<String> = measured.into_iter().filter_map(last).collect();
    rates.sort();
    // What each gives tells who is ahead.
    let rates =
        if screen.withheld || rates.is_empty() { String::new() } else { format!(" · {}", rates.join(", ")) };
    let failed = screen.failures.failed;
    let failed = if failed > 0 { format!(" · {failed} requests failed so far") } else { String::new() };
    format!("{}{rates}{failed}", words::position(&screen.place))
}
