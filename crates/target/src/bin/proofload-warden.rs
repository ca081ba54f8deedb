//! A warden and nothing else, for this crate's tests: they need a program that can be started as one.

use std::process::ExitCode;

fn main() -> ExitCode {
    proofload_target::warden_main()
}
