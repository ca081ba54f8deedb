//! Why a generator could not be started. What goes wrong later is counted, never returned.

/// The spec asks for something that cannot be: the field, and what is wrong with it.
pub(crate) fn refuse<T>(field: &'static str, problem: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Spec { field, problem: problem.into() })
}

pub(crate) fn no_thread(error: impl std::fmt::Display) -> LoadError {
    LoadError::System(format!("cannot start a load thread: {error}"))
}

/// Why [`Generator::start`](crate::Generator::start) failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The spec asks for something that cannot be.
    #[error("{field}: {problem}")]
    Spec {
        /// The field of the spec, as `load.threads`.
        field: &'static str,
        /// What is wrong with it, with its value and the limit.
        problem: String,
    },
    /// The system does not grant what it takes: open files, a CPU, a thread, a system call. In words that say which.
    #[error("{0}")]
    System(String),
}
