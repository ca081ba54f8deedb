//! What is shown while records are read: nothing, unless it takes long enough to wonder.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use history::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::print;

/// Whoever waits longer wants to know for what.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows how many records are read, on stderr.
#[derive(Debug)]
pub struct Watch {
    begun: Instant,
    bar: Option<ProgressBar>,
    told: bool,
}

impl Watch {
    pub fn new() -> Watch {
        Watch { begun: Instant::now(), bar: None, told: false }
    }

    /// Takes in that another record was read.
    pub fn show(&mut self, progress: Progress) {
        if !self.told && self.begun.elapsed() >= PATIENCE && progress.done < progress.of {
            self.told = true;
            if io::stderr().is_terminal() {
                let style = ProgressStyle::with_template("reading records {pos} of {len} {bar:30}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                self.bar = Some(ProgressBar::new(progress.of as u64).with_style(style));
            } else {
                print::talk(&format!("reading records: {} of {} so far", progress.done, progress.of));
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_position(progress.done as u64);
        }
    }

    /// Clears what renews itself.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
