//! What is shown while an experiment runs: a view that renews itself on a terminal, plain lines elsewhere, events for other programs.
//!
//! All three are drawn from one fold over what the lab tells ([`State`]). Must not: hold the lab up, or take time within a slice that
//! could be taken between two.

mod bar;
mod drawing;
mod events;
mod keys;
mod logs;
mod parts;
mod state;
mod surface;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod words;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anstream::AutoStream;
use anstream::ColorChoice;
use lab::{Stop, Update};
use record::{Header, Record};
use serde_json::Value;

use crate::print;
use events::Stream;
use state::State;
use view::View;
use words::Plain;

pub use terminal::leave;

/// A run as it is shown.
#[derive(Debug)]
pub struct Live {
    form: Form,
    events: Option<Stream>,
}

/// What is shown on stderr.
#[derive(Debug)]
enum Form {
    /// A view that renews itself.
    View(View),
    /// Lines.
    Plain(State, Plain),
    /// Nothing but what is said: the terminal has the events.
    Events(State),
}

/// Tells something without disturbing what renews itself, from any thread.
#[derive(Debug, Clone)]
pub struct Teller(Option<view::Handle>);

impl Teller {
    /// Tells that the run stops.
    pub fn stopping(&self, text: &str) {
        match &self.0 {
            Some(view) => view.stopping(text),
            None => print::talk(text),
        }
    }
}

impl Live {
    /// Begins to show a run: on stderr by what that is, and as `events` on stdout if they are wanted. Keys ask `stop`.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn begin(header: &Header, record: PathBuf, stop: Stop, events: bool) -> io::Result<Live> {
        let state = State::of(header.clone());
        let stream = events.then(Stream::begin).transpose()?;
        if let Some(stream) = &stream {
            stream.send(&events::started(header, &record));
        }
        // Where both go to one terminal, a view would stand in the midst of the events.
        let form = if events && io::stdout().is_terminal() {
            Form::Events(state)
        } else if can_renew() {
            let styled = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
            Form::View(View::begin(state, record.join("logs"), stop, styled)?)
        } else {
            Form::Plain(state, Plain::default())
        };
        Ok(Live { form, events: stream })
    }

    /// Takes in what just happened.
    pub fn show(&mut self, update: &Update<'_>) {
        match &mut self.form {
            Form::View(view) => {
                view.take_in(update);
                if let Some(text) = words::said(update.news) {
                    view.handle().say(&text);
                }
            }
            Form::Plain(state, plain) => {
                state.take_in(update);
                if let Some(line) = plain.line(state, update) {
                    print::talk(&line);
                }
            }
            Form::Events(state) => state.take_in(update),
        }
        let Some(stream) = &self.events else { return };
        let lines = match &self.form {
            Form::View(view) => view.with_state(|state| events::of(state, update)),
            Form::Plain(state, _) | Form::Events(state) => events::of(state, update),
        };
        lines.iter().for_each(|line| stream.send(line));
    }

    /// What tells something beside what renews itself.
    pub fn teller(&self) -> Teller {
        match &self.form {
            Form::View(view) => Teller(Some(view.handle())),
            Form::Plain(..) | Form::Events(_) => Teller(None),
        }
    }

    /// Takes the view away, so that the report stands alone. What is told from now on is told as it is.
    pub fn clear(&mut self) {
        if let Form::View(view) = &mut self.form {
            view.end();
        }
    }

    /// Sends the last events: how the run ended, and its report.
    ///
    /// # Errors
    /// If stdout could not be written, but for a reader that went away.
    pub fn finish(self, record: &Record, report: impl FnOnce() -> Value) -> io::Result<()> {
        let Some(stream) = self.events else { return Ok(()) };
        stream.send(&events::ended(record));
        stream.send(&events::report(record, report()));
        stream.finish()
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
