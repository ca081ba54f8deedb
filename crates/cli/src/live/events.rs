//! A run as events for other programs: one JSON object a line, versioned, as docs/events.md tells.

mod form;
mod from_lab;
mod stream;
#[cfg(test)]
mod tests;

pub use from_lab::{ended, gate, of, report, started};
pub use stream::Stream;
