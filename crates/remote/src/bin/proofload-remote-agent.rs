//! An agent, or a warden of one, and nothing else: this crate's tests need a program that can be started as one.

use std::env;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use proofload_remote::{AgentHost, serve};
use services::{Warden, warden_main};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("agent") => agent(words.get(1)),
        _ => warden_main(),
    }
}

/// The word behind it is the timeout, in milliseconds.
fn agent(timeout_ms: Option<&String>) -> ExitCode {
    let host = AgentHost {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        name: "there".to_owned(),
        processors: 1,
        timeout: Duration::from_millis(timeout_ms.and_then(|text| text.parse().ok()).unwrap_or(60_000)),
        warden: Warden::new(vec!["/proc/self/exe".into()]),
        about: |services| services.len().into(),
    };
    match serve(io::stdin(), io::stdout(), host) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
