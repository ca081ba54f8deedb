//! Errors of starting a generator. Later failures are counted, never returned.

/// The error for an invalid spec: the field and the problem.
pub(crate) fn refuse<T>(field: &'static str, problem: impl Into<String>) -> Result<T, LoadError> {
    Err(LoadError::Spec {
        field,
        problem: problem.into(),
    })
}

pub(crate) fn no_thread(error: impl std::fmt::Display) -> LoadError {
    LoadError::System(format!("cannot start a load thread: {error}"))
}

/// The reason [`Generator::start`](crate::Generator::start) failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The spec is invalid.
    #[error("{field}: {problem}")]
    Spec {
        /// The field of the spec, such as `load.threads`.
        field: &'static str,
        /// The problem, with the value and the limit.
        problem: String,
    },
    /// The system denies a resource: open files, a CPU, a thread, a system call. The text names it.
    #[error("{0}")]
    System(String),
}
