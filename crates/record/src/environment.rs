//! The machine of a run, in enough detail to decide whether two records are comparable.
//!
//! The facts come from `machine`. A fact that cannot be read is `None`, never an error. This module does not
//! judge machines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;

use machine::{Facts, commit_of, output_of, version_of};
use plan::{Plan, Service, ServiceCommand as Started};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fingerprint of machine and software.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineFingerprint {
    /// Kernel release, for example `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// The C library, for example `glibc 2.41`, if it reports its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Number of processors that this process may use.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor, if the kernel reports one. If processors have several, the first by name.
    pub governor: Option<String>,
    /// Load average over one minute before the run.
    pub load_average: Option<f64>,
    /// Soft limit on open file descriptors, if there is one.
    pub descriptors: Option<u64>,
    /// Versions of the runtimes in the plan's commands, and of PM2 if it is a launcher.
    pub runtimes: BTreeMap<String, String>,
    /// Commit of the services' source, with a trailing `+` if files differ from the commit.
    pub commit: Option<String>,
}

impl MachineFingerprint {
    /// Reads this machine, and the runtimes and the source that a plan uses.
    pub fn look(plan: &Plan) -> MachineFingerprint {
        let services = plan.variants.iter().flat_map(|variant| &variant.services);
        let services: Vec<&Started> = services.filter_map(Service::command).collect();
        let source = source(plan).and_then(Service::command);
        let pm2 = services.iter().find(|service| service.launcher.is_pm2());
        let pm2 =
            pm2.and_then(|service| Some(("pm2".to_owned(), pm2_version(&service.directory)?)));
        // Each program is queried once, however many variants use it.
        let programs: BTreeSet<&String> = services
            .iter()
            .filter_map(|service| service.command.first())
            .collect();
        let runtimes = programs
            .into_iter()
            .filter_map(|name| Some((name.clone(), version_of(name)?)));
        let facts = Facts::look();
        MachineFingerprint {
            kernel: facts.host.kernel,
            libc: output_of(machine::command("getconf").arg("GNU_LIBC_VERSION")),
            cpu_model: facts.processors.model,
            cpus: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: facts.memory.total_bytes,
            governor: facts.frequency.governors.into_iter().next(),
            load_average: facts.host.load_average,
            descriptors: facts.limits.files_soft.filter(|limit| *limit != u64::MAX),
            runtimes: runtimes.chain(pm2).collect(),
            commit: source.and_then(|service| commit_of(&service.directory)),
        }
    }
}

/// The service whose commit is recorded: the first. If the plan compares two commits, the first one here.
fn source(plan: &Plan) -> Option<&Service> {
    let here = plan.comparisons.first().filter(|_| plan.against.is_some());
    let variant = plan
        .variants
        .get(here.map_or(0, |comparison| comparison.candidate))?;
    variant.services.first()
}

const PACKAGE_BYTES_MAX: u64 = 4 << 20;

/// Version of the PM2 installed next to a service, from its package file. Running PM2 would start its daemon.
fn pm2_version(directory: &Path) -> Option<String> {
    directory
        .ancestors()
        .find_map(|folder| package_version(&folder.join("node_modules/pm2")))
}

/// Version of the npm package in a folder, from its package file.
pub fn package_version(folder: &Path) -> Option<String> {
    let text = plan::read_file(&folder.join("package.json"), PACKAGE_BYTES_MAX).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(package["version"].as_str()?.to_owned())
}
