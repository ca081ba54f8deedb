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
    /// A cluster that does not answer, which may be temporary.
    Away,
    /// Missing rights or credentials in a cluster, which may be temporary too: a starting cluster may not
    /// know its permissions yet.
    Rights,
}

impl Error {
    /// An error with a one-line message: what, where, the value and the limit. The cause is the machine
    /// unless [`Error::by`] sets another.
    pub fn new(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            blame: Blame::Machine,
            hint: None,
            tail: None,
        }
    }

    /// An error of a service.
    pub(crate) fn of(service: &str, message: impl std::fmt::Display) -> Error {
        Error::new(format!("service {service}: {message}"))
    }

    /// The caller cancelled the operation.
    pub fn cancelled(what: &str) -> Error {
        Error::new(format!("{what}: cancelled")).by(Blame::Cancelled)
    }

    /// Sets the cause.
    #[must_use]
    pub fn by(self, blame: Blame) -> Error {
        Error { blame, ..self }
    }

    /// Sets the hint.
    #[must_use]
    pub fn help(self, hint: impl Into<String>) -> Error {
        Error {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Sets the last lines of some output. An empty output is ignored.
    #[must_use]
    pub fn after(self, tail: impl Into<String>) -> Error {
        Error {
            tail: Some(tail.into()).filter(|tail| !tail.is_empty()),
            ..self
        }
    }

    /// Cause of the error.
    pub fn blame(&self) -> &Blame {
        &self.blame
    }

    /// How to fix it, if known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The last lines of the failed program's output, if there are any.
    pub fn tail(&self) -> Option<&str> {
        self.tail.as_deref()
    }
}

/// Possible reason for a SIGKILL that Proofload did not send.
pub(crate) const NO_MEMORY: &str = "the kernel kills with SIGKILL when memory runs out";
