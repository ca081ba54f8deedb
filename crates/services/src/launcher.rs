//! From a service's own command to the one that is executed: as it is, as a cluster of Node.js, or by way of PM2.
//!
//! It decides on words and files. Starting, counting and ending processes is others' business.

mod cluster;
mod pm2;

use std::path::{Path, PathBuf};

use plan::{Launcher, Service, Workers};

use crate::Placement;
use crate::cpus::cpus_allowed;
use crate::error::TargetError;
use crate::message::Head;

/// What is executed, and what has to be there for it.
#[derive(Debug, Default)]
pub(crate) struct Launch {
    /// The program's file.
    pub program: PathBuf,
    pub command: Vec<String>,
    /// Variables beside the service's own.
    pub env: Vec<(String, String)>,
    /// Variables of the caller that must not get through.
    pub withheld: Vec<String>,
    /// Files of the scratch folder, by their names in it.
    pub files: Vec<(String, String)>,
    pub head: Option<Head>,
    /// Where the service's output is written to instead of its standard output.
    pub logs: Vec<PathBuf>,
}

/// A service's command as it stands in the experiment, filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub service: &'a Service,
    pub command: &'a [String],
    /// The file of its program.
    pub program: &'a Path,
    /// Folders in which programs are looked for, as in `PATH`.
    pub path: &'a str,
    pub workers: Option<u32>,
    pub scratch: &'a Path,
}

/// As how many processes a service is to serve, on the CPUs that it gets.
pub(crate) fn workers(service: &Service, placement: &Placement) -> Option<u32> {
    service.workers.map(|workers| match workers {
        Workers::Number(number) => number,
        Workers::Cores => {
            let cpus = if placement.cpus.is_empty() { cpus_allowed().len() } else { placement.cpus.len() };
            u32::try_from(cpus).unwrap_or(u32::MAX).max(1)
        }
    })
}

/// How a service is started by its launcher.
///
/// # Errors
/// A command that the launcher cannot start, or a launcher that is not installed.
pub(crate) fn launch(wanted: &Wanted<'_>) -> Result<Launch, TargetError> {
    match wanted.service.launcher {
        Launcher::Exec => Ok(Launch {
            program: wanted.program.to_owned(),
            command: wanted.command.to_vec(),
            ..Launch::default()
        }),
        Launcher::Cluster => Ok(cluster::launch(wanted)),
        Launcher::Pm2Fork | Launcher::Pm2Cluster => pm2::launch(wanted),
    }
}
