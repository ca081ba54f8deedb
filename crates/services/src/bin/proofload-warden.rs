//! A warden, or with the word `attend` who attends to services, and nothing else: this crate's tests need a program that can be started
//! as one.

use std::env;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use proofload_services::{AttendHost, Warden, attend, warden_main};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("attend") => attends(words.get(1)),
        _ => warden_main(),
    }
}

/// The word behind it is the lease, in milliseconds.
fn attends(lease_ms: Option<&String>) -> ExitCode {
    let host = AttendHost {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        warden: Warden { command: vec!["/proc/self/exe".into()] },
        lease: Duration::from_millis(lease_ms.and_then(|text| text.parse().ok()).unwrap_or(60_000)),
        about: &|services| services.len().into(),
        spin_ns: || Some(1),
    };
    match attend(io::stdin(), io::stdout(), &host) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
