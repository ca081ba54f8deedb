//! Errors with everything a user needs to fix them.
//!
//! The message is one line. The last output and a hint are separate fields, so that the caller can lay them
//! out. Errors are created where they are found, and pass unchanged from one machine to another.

use serde::{Deserialize, Serialize};

/// Reason why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Error {
    message: String,
    blame: Blame,
    hint: Option<String>,
    tail: Option<String>,
}

/// Cause of an error, as far as callers distinguish it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The request: another machine would refuse it, too.
    Request,
    /// The machine, or something that runs there.
    Machine,
    /// Neither: the caller cancelled, and everything that was started has been ended.
    Cancelled,
    /// This other machine is lost. Everything that was started there ends by itself.
    Lost(String),
    /// A cluster that does not answer, which may be temporary.
    Away,
    /// Missing rights or credentials in a cluster, which may pass, too: one that starts anew does not know for a moment who may do what.
    Rights,
}

impl Error {
    /// With what, where, the value and the limit, in one line. The machine is to blame, unless [`Error::by`] says otherwise.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), blame: Blame::Machine, hint: None, tail: None }
    }

    /// Of a service.
    pub(crate) fn of(service: &str, message: impl std::fmt::Display) -> Error {
        Error::new(format!("service {service}: {message}"))
    }

    /// That the caller wanted no more of this.
    pub fn cancelled(what: &str) -> Error {
        Error::new(format!("{what}: cancelled")).by(Blame::Cancelled)
    }

    /// The same with who or what is to blame.
    #[must_use]
    pub fn by(self, blame: Blame) -> Error {
        Error { blame, ..self }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn help(self, hint: impl Into<String>) -> Error {
        Error { hint: Some(hint.into()), ..self }
    }

    /// The same with the last lines of some output; none at all say nothing.
    #[must_use]
    pub fn after(self, tail: impl Into<String>) -> Error {
        Error { tail: Some(tail.into()).filter(|tail| !tail.is_empty()), ..self }
    }

    /// The same as another machine says it.
    #[must_use]
    pub fn on(self, host: &str) -> Error {
        Error { message: format!("on {host}: {}", self.message), ..self }
    }

    /// What is to blame.
    pub fn blame(&self) -> &Blame {
        &self.blame
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The last lines of the output of what failed, where there are any.
    pub fn tail(&self) -> Option<&str> {
        self.tail.as_deref()
    }
}

/// What a SIGKILL that nobody here has sent may mean.
pub(crate) const NO_MEMORY: &str = "the kernel kills with SIGKILL when memory runs out";
