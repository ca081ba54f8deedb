//! A warden and nothing else: this crate's tests need a program that can be started as one.

use std::process::ExitCode;

fn main() -> ExitCode {
    proofload_services::warden_main()
}
