//! Writes events to stdout, each line as a whole and at once, from a thread of its own: whoever reads slowly, or not any more, holds
//! nothing up.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::form::Line;

/// Events on their way out.
#[derive(Debug)]
pub struct Stream {
    lines: Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Stream {
    /// Begins to write.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn begin() -> io::Result<Stream> {
        let (lines, received) = channel();
        let thread =
            thread::Builder::new().name("events".into()).spawn(move || write_all(&received, io::stdout()))?;
        Ok(Stream { lines, thread })
    }

    /// Sends a line.
    pub fn send(&self, line: &Line) {
        // Plain structs with text keys and finite numbers cannot fail to become JSON.
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        // A writer that has ended tells why at the end.
        let _ = self.lines.send(text);
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If stdout could not be written, but for a reader that went away: `| head` is no error.
    pub fn finish(self) -> io::Result<()> {
        drop(self.lines);
        match self.thread.join() {
            Ok(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

fn write_all(lines: &Receiver<Vec<u8>>, mut out: impl Write) -> io::Result<()> {
    for line in lines {
        out.write_all(&line).and_then(|()| out.flush())?;
    }
    Ok(())
}
