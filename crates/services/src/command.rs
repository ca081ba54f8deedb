//! From a service of the plan to what its warden is told: placeholders filled in, the program found, the environment made.
//!
//! It looks at files and starts nothing.
//!
//! The environment of a service is Proofload's own, without [`WITHHELD`], with the service's variables on top.

use std::env;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plan::Service;
use rustix::fs::{Access, access};

use crate::error::TargetError;
use crate::launcher::Wanted;
use crate::marker::Marker;
use crate::message::{Scratch, Spec};
use crate::{Placement, Ports, launcher, scratch};

/// Variables of the caller's shell that a service does not get, unless the experiment sets them: each changes what a
/// Node service does, and would do so in every variant without being seen in any. The last three tell a Node process
/// that its parent is one, which is true of Proofload's caller at most.
pub const WITHHELD: [&str; 10] = [
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_V8_COVERAGE",
    "COVERAGE_PROCESS_START",
    "CPUPROFILE",
    "HEAPPROFILE",
    "PORT",
    "NODE_CHANNEL_FD",
    "NODE_CHANNEL_SERIALIZATION_MODE",
    "NODE_UNIQUE_ID",
];

/// The variable by whose length a trial shifts the stack of its processes.
const PADDING: &str = "PROOFLOAD_PADDING";
/// Where programs are looked for when there is no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// Where servers such as nginx are installed.
const SERVER_FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// A service with nothing left to decide.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The warden's orders.
    pub spec: Spec,
    /// Its command as the experiment has it, filled in: what people know it by.
    pub command: String,
    /// As how many processes it is to serve, where that is known.
    pub workers: Option<u32>,
}

/// Makes the warden's orders.
///
/// # Errors
/// An unknown placeholder, a missing directory, a missing program, or one that cannot be run.
pub(crate) fn prepare(
    service: &Service,
    ports: &Ports,
    placement: &Placement,
    marker: &Marker,
) -> Result<Prepared, TargetError> {
    let scratch = scratch::directory(marker);
    let workers = launcher::workers(service, placement);
    let known = Known { service, ports, placement, scratch: &scratch, workers };
    let command = service.command.iter().map(|part| known.fill("command", part));
    let command = command.collect::<Result<Vec<_>, TargetError>>()?;
    let env =
        service.env.iter().map(|(name, text)| Ok((name.clone(), known.fill(&format!("env.{name}"), text)?)));
    let mut env = env.collect::<Result<Vec<_>, TargetError>>()?;
    let path = search_path(&env);
    let program = resolve(service, &command, &path)?;
    let wanted =
        Wanted { service, command: &command, program: &program, path: &path, workers, scratch: &scratch };
    let mut launch = launcher::launch(&wanted)?;
    for (name, text) in &service.templates {
        launch.files.push((name.clone(), known.render(name, text)?));
    }
    for (name, value) in launch.env {
        env.retain(|(other, _)| *other != name);
        env.push((name, value));
    }
    if let Some(agent) = &placement.agent {
        agent.enter(&mut env);
    }
    if placement.padding_bytes > 0 {
        env.push((PADDING.to_owned(), "x".repeat(placement.padding_bytes)));
    }
    let asked_for = service.command.iter().chain(service.env.values()).any(|text| names_scratch(text));
    let needs_scratch = asked_for || !launch.files.is_empty();
    let spec = Spec {
        program: launch.program,
        command: launch.command,
        directory: service.directory.clone(),
        env_withheld: WITHHELD.map(str::to_owned).into_iter().chain(launch.withheld).collect(),
        env,
        cpus: placement.cpus.clone(),
        log: placement.log.clone(),
        stop_timeout: service.stop_timeout,
        marker: marker.as_str().to_owned(),
        group: placement.group,
        scratch: needs_scratch.then(|| Scratch { directory: scratch.clone(), files: launch.files }),
        head: launch.head,
        logs: launch.logs,
    };
    Ok(Prepared { spec, command: command.join(" "), workers })
}

fn names_scratch(text: &str) -> bool {
    plan::placeholders(text).iter().any(|placeholder| placeholder.name == "scratch")
}

/// What placeholders of a service stand for.
struct Known<'a> {
    service: &'a Service,
    ports: &'a Ports,
    placement: &'a Placement,
    scratch: &'a Path,
    workers: Option<u32>,
}

impl Known<'_> {
    fn fill(&self, place: &str, text: &str) -> Result<String, TargetError> {
        plan::fill(text, |name| self.lookup(name)).map_err(|source| self.unknown(place.to_owned(), source))
    }

    fn render(&self, name: &str, text: &str) -> Result<String, TargetError> {
        plan::render(text, |name| self.lookup(name))
            .map_err(|source| self.unknown(format!("templates.{name}"), source))
    }

    fn unknown(&self, place: String, source: plan::UnknownPlaceholder) -> TargetError {
        TargetError::Placeholder { service: self.service.name.clone(), place, source }
    }

    fn lookup(&self, name: &str) -> Option<String> {
        let known = match name {
            "port" => self.ports.of(&self.service.name).map(|port| port.to_string()),
            "address" => Some(text(self.placement.address)),
            "directory" => Some(self.service.directory.display().to_string()),
            "scratch" => Some(self.scratch.display().to_string()),
            "workers" => self.workers.map(|workers| workers.to_string()),
            other => self.asked_for(other),
        };
        known.or_else(|| self.placement.values.get(name).cloned())
    }

    /// What leads to a service that this one asks for something: `api.port`, `api.address`.
    fn asked_for(&self, name: &str) -> Option<String> {
        let (service, what) = name.rsplit_once('.')?;
        match what {
            "port" => self.ports.of(service).map(|port| port.to_string()),
            "address" if service == self.service.name => Some(text(self.placement.address)),
            "address" => self.placement.addresses.get(service).copied().map(text),
            _ => None,
        }
    }
}

/// As it stands in a URL.
fn text(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Where programs are looked for: the service's own `PATH`, or the one that it inherits.
fn search_path(env: &[(String, String)]) -> String {
    let own = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let inherited = || env::var_os("PATH").map(|path| path.to_string_lossy().into_owned());
    own.or_else(inherited).unwrap_or_else(|| PATH_DEFAULT.to_owned())
}

/// Whether this is a file that may be executed.
pub(crate) fn executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// The program's file. As a shell in the service's directory would find it, and in the folders of servers last, which
/// are in root's `PATH` only.
fn resolve(service: &Service, command: &[String], path: &str) -> Result<PathBuf, TargetError> {
    if !service.directory.is_dir() {
        let path = service.directory.clone();
        return Err(TargetError::DirectoryMissing { service: service.name.clone(), path });
    }
    let program = command.first().map(String::as_str).unwrap_or_default();
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![service.directory.join(program)]
    } else {
        let folders = env::split_paths(path).chain(SERVER_FOLDERS.map(PathBuf::from));
        folders.map(|folder| service.directory.join(folder).join(program)).collect()
    };
    if let Some(file) = candidates.iter().find(|file| !program.is_empty() && executable(file)) {
        return Ok(file.clone());
    }
    let existing = candidates.iter().find(|file| !program.is_empty() && file.is_file());
    let service = service.name.clone();
    match existing {
        Some(file) => {
            let reason = "it is not executable (chmod +x)".to_owned();
            Err(TargetError::NotExecutable { service, path: file.clone(), reason })
        }
        None => {
            let searched = match candidates.as_slice() {
                [file] if program.contains('/') => file.display().to_string(),
                _ => format!("PATH: {path}"),
            };
            Err(TargetError::CommandNotFound { service, program: program.to_owned(), searched })
        }
    }
}

/// Why a file that is there and executable was refused by the kernel.
pub(crate) fn refused(service: String, path: &Path, error_number: i32) -> TargetError {
    let error = std::io::Error::from_raw_os_error(error_number);
    let interpreter = || {
        let start = fs::read(path).unwrap_or_default();
        let first = String::from_utf8_lossy(start.strip_prefix(b"#!")?).lines().next()?.trim().to_owned();
        Some(first)
    };
    let reason = match (error_number, interpreter()) {
        (libc::ENOENT, Some(interpreter)) => {
            format!("its first line asks for {interpreter:?}, which is not there")
        }
        (libc::ENOENT, None) => "the loader that it asks for is not there (another libc?)".to_owned(),
        (libc::ENOEXEC, _) => "it is no program for this machine and has no #! line".to_owned(),
        _ => error.to_string(),
    };
    TargetError::NotExecutable { service, path: path.to_owned(), reason }
}
