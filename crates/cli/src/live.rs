//! What is shown while an experiment runs: a view that renews itself on a terminal, plain lines elsewhere, events for other programs.
//!
//! All three are drawn from one fold over what the lab tells ([`State`]). Must not: hold the lab up, or take time within a slice that
//! could be taken between two.

mod drawing;
mod events;
mod screen;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod words;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::thread::JoinHandle;

use anstream::{AutoStream, ColorChoice};
use lab::{Stop, Update};
use record::{Header, Record};
use serde_json::Value;

use crate::print;
use events::Stream;
use screen::Screen;
use state::State;
use words::Plain;

pub use terminal::leave;

/// A run as it is shown: by a view, by lines, or where the terminal has the events by neither.
#[derive(Debug)]
pub struct Live {
    screen: Screen,
    view: Option<JoinHandle<()>>,
    plain: Option<Plain>,
    events: Option<Stream>,
}

impl Live {
    /// Begins to show a run: on stderr by what that is, and as `events` on stdout if they are wanted. Keys ask `stop`.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn begin(header: &Header, record: PathBuf, stop: Stop, events: bool) -> io::Result<Live> {
        let (screen, woken) = Screen::new(State::of(header.clone()))?;
        let events = events.then(Stream::begin).transpose()?;
        if let Some(stream) = &events {
            stream.send(&events::started(header, &record));
        }
        // Where both go to one terminal, a view would stand in the midst of the events.
        let shared = events.is_some() && io::stdout().is_terminal();
        let renews = !shared && !print::is_quiet() && can_renew();
        let styled = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        let view = renews.then(|| screen.view(woken, record.join("logs"), stop, styled)).transpose()?;
        let plain = (!shared && !renews && !print::is_quiet()).then(Plain::default);
        Ok(Live { screen, view, plain, events })
    }

    /// Takes in what just happened.
    pub fn show(&mut self, update: &Update<'_>) {
        let Live { screen, view, plain, events } = self;
        let (line, lines) = screen.take_in(update, |state| {
            let line = match plain {
                Some(plain) => plain.line(state, update),
                None => view.as_ref().and_then(|_| words::said(state, update.news)),
            };
            (line, events.as_ref().map(|_| events::of(state, update)).unwrap_or_default())
        });
        line.iter().for_each(|line| screen.say(line));
        events.iter().for_each(|stream| lines.iter().for_each(|line| stream.send(line)));
    }

    /// What tells something beside what renews itself, from any thread.
    pub fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// Takes the view away and puts the terminal back, so that the report stands alone. What is told from now on is told as it is.
    pub fn clear(&mut self) {
        let Some(view) = self.view.take() else { return };
        self.screen.end();
        // One that panicked has put the terminal back already.
        let _ = view.join();
    }

    /// Sends the last events: how the run ended, and its report.
    ///
    /// # Errors
    /// If stdout could not be written, but for a reader that went away.
    pub fn finish(mut self, record: &Record, report: impl FnOnce() -> Value) -> io::Result<()> {
        let Some(stream) = self.events.take() else { return Ok(()) };
        stream.send(&events::ended(record));
        stream.send(&events::report(record, report()));
        stream.finish()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The event that follows those of a run with a gate, as a line.
pub fn gate_event(record: &Record, gate: Value) -> String {
    // As with every event: plain structs cannot fail to become JSON.
    serde_json::to_string(&events::gate(record, gate)).unwrap_or_default() + "\n"
}

/// Whether stderr is a terminal on which lines can be renewed.
fn can_renew() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stderr().is_terminal() && !dumb && terminal::size().is_some()
}
