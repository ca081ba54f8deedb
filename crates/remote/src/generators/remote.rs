//! One generator elsewhere, as its channel shows it: a writer for orders, and a thread that reads its answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use crate::generators::beat::{Beat, Input};
use crate::generators::clock::monotonic_ns;
use crate::generators::{Answer, FleetError, Order, line};

/// A channel to a generator: its name for people, and both ends of its lines. Dropping it closes them, which ends the generator.
pub struct Remote {
    /// Where it runs, as people know it: `local`, `ssh://bench-1`.
    pub name: String,
    input: Arc<Input>,
    /// Taken when the fleet begins to read.
    output: Option<Box<dyn Read + Send>>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Something that came from a generator.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Number of the channel: another than that of a lost one whose place it took.
    pub from: u64,
    /// When, by our clock.
    pub at_ns: u64,
    /// What; `None` is the end.
    pub answer: io::Result<Option<Answer>>,
}

impl Remote {
    /// A generator that takes orders from `input` and answers on `output`: its stdin and stdout.
    pub fn new(
        name: impl Into<String>,
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
    ) -> Remote {
        Remote {
            name: name.into(),
            input: Arc::new(Mutex::new(Box::new(input))),
            output: Some(Box::new(output)),
        }
    }

    /// Whoever reads no more has ended, or its channel has: what it says or the channel last said comes from the other end, in better words.
    pub(crate) fn tell(&mut self, order: &Order) -> Result<(), FleetError> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        match line::write(&mut *input, order) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(self.broken(error)),
            _ => Ok(()),
        }
    }

    /// Has it hear that we are there.
    pub(crate) fn hears(&self, beat: &Beat) {
        beat.include(&self.input);
    }

    /// Reads its answers on a thread of their own until there are no more.
    pub(crate) fn listen(&mut self, from: u64, to: SyncSender<Heard>) -> Result<(), FleetError> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let read = move || hear(BufReader::new(output), from, &to);
        let named = std::thread::Builder::new().name(format!("hear-{from}"));
        named.spawn(read).map(drop).map_err(|source| self.broken(source))
    }

    pub(crate) fn broken(&self, source: io::Error) -> FleetError {
        FleetError::Channel { name: self.name.clone(), source }
    }
}

fn hear(mut output: impl BufRead, from: u64, to: &SyncSender<Heard>) {
    loop {
        // A line is stamped when its first byte is there: a long one takes time to read.
        let filled = output.fill_buf().map(drop);
        let at_ns = monotonic_ns();
        let answer = filled.and_then(|()| line::read(&mut output));
        let last = !matches!(answer, Ok(Some(_)));
        if to.send(Heard { from, at_ns, answer }).is_err() || last {
            return;
        }
    }
}
