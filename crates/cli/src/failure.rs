//! Errors of the lab and of records as errors of the program, with their exit codes and hints.

use lab::LabError;
use record::WriteError;

use crate::exit::{self, CliError};

/// Converts an error of the lab.
pub fn failed(error: LabError) -> CliError {
    match error {
        LabError::Record(error) => unwritable(error),
        LabError::Failed(reason) => CliError::new(reason.exit_code().unwrap_or(exit::SELF), reason),
    }
}

/// Converts an error of writing a record.
pub fn unwritable(error: WriteError) -> CliError {
    let is_occupied = matches!(error, WriteError::Occupied { .. });
    let code = if is_occupied { exit::USAGE } else { exit::SELF };
    let hint = if is_occupied {
        "name another folder with --out, or with --record of `proofload profile`"
    } else if error.is_disk_full() {
        "the disk is full, or a limit of file sizes is reached (ulimit -f); a record that was begun opens \
         with `proofload report`"
    } else {
        "choose a folder you may write to with --out, or with --record of `proofload profile`"
    };
    CliError::new(code, &error).hint(hint)
}
