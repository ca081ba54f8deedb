//! `proofload attend`: services of a run that another machine carries out, started, sampled and stopped here as it says on stdin.
//!
//! It ties `target`, which does all of that, to what this program knows of its machine.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plan::Service;
use record::Environment;
use serde_json::Value;
use services::{AttendHost, Warden};

use crate::WARDEN;
use crate::exit::{Failed, SELF};

/// Whoever gives orders, here and to a generator, says every ten seconds that they are there. After this long without a word they are not.
pub const LEASE: Duration = Duration::from_secs(60);

/// Flags of `attend`: none. What to do comes on stdin.
#[derive(Debug, Args)]
pub struct AttendArgs {}

/// Attends until stdin ends or is silent for a minute; then ends whatever is left.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_: &AttendArgs) -> anyhow::Result<ExitCode> {
    let host = AttendHost {
        proofload: env!("CARGO_PKG_VERSION").to_owned(),
        warden: Warden::of_this_program(WARDEN),
        lease: LEASE,
        about: &about,
        spin_ns: lab::spin_ns,
    };
    services::attend(io::stdin(), io::stdout(), &host).map_err(|error| Failed {
        message: format!("stdout: {error}"),
        hint: Some("whoever gave orders is gone".to_owned()),
        code: SELF,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a record keeps of this machine.
fn about(services: &[Service]) -> Value {
    serde_json::to_value(Environment::look_for(services)).unwrap_or_default()
}
