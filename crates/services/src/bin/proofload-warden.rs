//! A program that is only a warden, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    proofload_services::warden_main()
}
