//! The machine on which a run was made: enough to tell whether two records may be compared.
//!
//! `machine` reads it; what cannot be read is `None`, never an error. It keeps what tells machines apart, and must not judge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;

use machine::{Facts, commit_of, output_of, version_of};
use plan::{Command as Started, Plan, Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fingerprint of machine and software.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Kernel release, for example `6.1.0-18-amd64`.
    pub kernel: Option<String>,
    /// The C library, for example `glibc 2.41`, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// Processor's name.
    pub cpu_model: Option<String>,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor, the first by name where processors have several, where the kernel shows one.
    pub governor: Option<String>,
    /// Load average over one minute before the run.
    pub load_average: Option<f64>,
    /// Limit on open descriptors (soft), where there is one.
    pub descriptors: Option<u64>,
    /// Versions of the runtimes that the plan's commands name, and of PM2 where a launcher is.
    pub runtimes: BTreeMap<String, String>,
    /// Commit of the services' source, `+` behind it where files differ from the commit.
    pub commit: Option<String>,
    /// The other machines that services run on, by host, each with what its services use there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Environment>,
}

impl Environment {
    /// Looks at this machine, and at the runtimes and the source that a plan uses here.
    pub fn look(plan: &Plan) -> Environment {
        let services = plan.variants.iter().flat_map(|variant| &variant.services);
        let here: Vec<&Started> =
            services.filter(|service| service.is_here()).filter_map(Service::command).collect();
        Environment::of(&here, source(plan).filter(|service| service.is_here()).and_then(Service::command))
    }

    /// Looks at this machine, and at what these services use, the first of which is the one whose source is told.
    pub fn look_for(services: &[Service]) -> Environment {
        let commands: Vec<&Started> = services.iter().filter_map(Service::command).collect();
        Environment::of(&commands, commands.first().copied())
    }

    /// Processors of the machine that a service runs on; `None` is this one.
    pub fn cpus_of(&self, host: Option<&str>) -> usize {
        let there = host.map(|host| self.hosts.get(host).map_or(0, |there| there.cpus));
        there.unwrap_or(self.cpus).max(1)
    }

    fn of(services: &[&Started], source: Option<&Started>) -> Environment {
        let pm2 = services.iter().find(|service| service.launcher.is_pm2());
        let pm2 = pm2.and_then(|service| Some(("pm2".to_owned(), pm2_version(&service.directory)?)));
        // Each is asked once, however many variants have it.
        let programs: BTreeSet<&String> =
            services.iter().filter_map(|service| service.command.first()).collect();
        let runtimes = programs.into_iter().filter_map(|name| Some((name.clone(), version_of(name)?)));
        let facts = Facts::look();
        Environment {
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
            hosts: BTreeMap::new(),
        }
    }
}

/// The service whose source is told: the first, and of a plan that compares two commits the first of those here.
fn source(plan: &Plan) -> Option<&Service> {
    let here = plan.comparisons.first().filter(|_| plan.against.is_some());
    let variant = plan.variants.get(here.map_or(0, |comparison| comparison.candidate))?;
    variant.services.first()
}

const PACKAGE_BYTES_MAX: u64 = 4 << 20;

/// Of the PM2 that is installed beside a service, as its package says: to ask it would start its daemon.
fn pm2_version(directory: &Path) -> Option<String> {
    directory.ancestors().find_map(|folder| package_version(&folder.join("node_modules/pm2")))
}

/// The version of the package of npm in a folder, as it says itself.
pub fn package_version(folder: &Path) -> Option<String> {
    let text = plan::read_file(&folder.join("package.json"), PACKAGE_BYTES_MAX).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(package["version"].as_str()?.to_owned())
}
