//! A `proofload` for Linux, as a file of this machine.

use crate::HostError;

/// See above.
#[derive(Debug, Clone)]
pub struct Program;

impl Program {
    /// The program of this process.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn own() -> Result<Program, HostError> {
        Ok(Program)
    }
}
