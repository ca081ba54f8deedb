//! Other tools' command lines as they are: which of `proofload load`'s means the same, and what of the figures differs.
//!
//! Pure: arguments go in, arguments and sentences come out. It parses none of our own flags, runs nothing and prints nothing.

mod ab;
mod command;
mod getopt;
mod number;
mod wrk;

use clap::ValueEnum;

use crate::exit::Failed;

pub use command::{given_before, shown};

/// A tool whose command line is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// wrk 4
    Wrk,
    /// wrk2, which is wrk at a rate
    Wrk2,
    /// ab 2.3, from Apache
    Ab,
}

impl Tool {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Wrk => "wrk",
            Tool::Wrk2 => "wrk2",
            Tool::Ab => "ab",
        }
    }

    /// A command line of it, for a hint.
    pub fn example(self) -> &'static str {
        match self {
            Tool::Wrk => "-t2 -c64 -d30s http://127.0.0.1:3000/",
            Tool::Wrk2 => "-t2 -c64 -d30s -R1000 http://127.0.0.1:3000/",
            Tool::Ab => "-k -n 10000 -c 64 http://127.0.0.1:3000/",
        }
    }

    fn refuses(self, problem: impl std::fmt::Display) -> Failed {
        Failed::usage(format!("{}: {problem}", self.name()))
    }
}

/// A command line of `proofload load`, and how it differs from the one that it stands for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// As one would type them, the URL last.
    pub arguments: Vec<String>,
    /// Each of them one difference.
    pub differences: Vec<Difference>,
}

/// A difference, and in which runs it makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// One sentence or two.
    pub text: String,
    /// Where it is worth reading.
    pub when: When,
}

/// What a difference needs in order to matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// Requests timed out.
    TimedOut,
    /// Some answers were not good.
    NotGood,
    /// Connections were lost with a request on them.
    Lost,
    /// More than so many requests were answered.
    AnsweredOver(u64),
    /// The machine has fewer processors than this.
    ProcessorsBelow(u64),
}

/// What of a run decides which differences matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    pub timed_out: u64,
    pub not_good: u64,
    pub lost: u64,
    pub answered: u64,
    pub processors: u64,
}

impl When {
    /// Whether it was so in this run.
    pub fn met(self, came: &Came) -> bool {
        match self {
            When::Always => true,
            When::TimedOut => came.timed_out > 0,
            When::NotGood => came.not_good > 0,
            When::Lost => came.lost > 0,
            When::AnsweredOver(requests) => came.answered > requests,
            When::ProcessorsBelow(threads) => came.processors < threads,
        }
    }
}

impl Translation {
    fn flag(&mut self, name: &str) {
        self.arguments.push(name.to_owned());
    }

    fn flag_with(&mut self, name: &str, value: impl ToString) {
        self.arguments.extend([name.to_owned(), value.to_string()]);
    }

    /// None of these tools checks a certificate.
    fn unchecked_tls(&mut self, url: &str) {
        if url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            self.flag("--insecure");
        }
    }

    fn differs(&mut self, when: When, text: impl Into<String>) {
        self.differences.push(Difference { text: text.into(), when });
    }
}

/// What a command line of another tool means here.
///
/// # Errors
/// What of it cannot be done or is none of that tool's, with what to do instead. The exit code is that of usage.
pub fn translate(tool: Tool, arguments: &[String]) -> Result<Translation, Failed> {
    match tool {
        Tool::Wrk | Tool::Wrk2 => wrk::translate(tool, arguments),
        Tool::Ab => ab::translate(arguments),
    }
}

/// Whether one of these header lines has this name.
fn names(headers: &[String], name: &str) -> bool {
    let named = |line: &String| {
        line.split_once(':').is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name))
    };
    headers.iter().any(named)
}

#[cfg(test)]
mod tests;
