//! Progress of a copy to another machine: nothing, unless it takes long enough to wonder.

use std::time::Duration;

use remote::ssh::Copied;
use report::{bytes, seconds};

use crate::print;

/// Before that nothing is shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two lines.
const EVERY: Duration = Duration::from_secs(5);

/// Tells on stderr how far a copy is, a line now and then: several may go on at once.
#[derive(Debug)]
pub struct CopyWatch {
    next: Duration,
}

impl Default for CopyWatch {
    fn default() -> CopyWatch {
        CopyWatch { next: PATIENCE }
    }
}

impl CopyWatch {
    /// Takes in that another piece was sent.
    pub fn show(&mut self, copied: Copied<'_>) {
        if copied.elapsed < self.next || copied.bytes >= copied.of {
            return;
        }
        self.next = copied.elapsed + EVERY;
        let left_s =
            copied.elapsed.as_secs_f64() * (copied.of - copied.bytes) as f64 / copied.bytes.max(1) as f64;
        print::talk(&format!(
            "{}: copying the program: {} of {}, about {} left",
            copied.host,
            bytes(copied.bytes as f64),
            bytes(copied.of as f64),
            seconds(left_s.max(1.0))
        ));
    }
}
