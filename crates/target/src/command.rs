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
use crate::marker::Marker;
use crate::message::Spec;
use crate::{Placement, Ports};

/// Variables of the caller's shell that a service does not get, unless the experiment sets them: each changes what a
/// Node service does, and would do so in every variant without being seen in any. The last three tell a Node process
/// that its parent is one, which is true of Proofload's caller at most.
pub const WITHHELD: [&str; 6] = [
    "NODE_ENV",
    "NODE_OPTIONS",
    "PORT",
    "NODE_CHANNEL_FD",
    "NODE_CHANNEL_SERIALIZATION_MODE",
    "NODE_UNIQUE_ID",
];

/// The variable by whose length a trial shifts the stack of its processes.
const PADDING: &str = "PROOFLOAD_PADDING";
/// Where programs are looked for when there is no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes the warden's orders.
///
/// # Errors
/// An unknown placeholder, a missing directory, a missing program, or one that cannot be run.
pub(crate) fn spec(
    service: &Service,
    ports: &Ports,
    placement: &Placement,
    marker: &Marker,
) -> Result<Spec, TargetError> {
    let fill = |place: &str, text: &str| {
        plan::fill(text, |name| lookup(name, service, ports, placement)).map_err(|source| {
            TargetError::Placeholder { service: service.name.clone(), place: place.to_owned(), source }
        })
    };
    let command: Result<Vec<String>, _> = service.command.iter().map(|part| fill("command", part)).collect();
    let env = service.env.iter().map(|(name, text)| Ok((name.clone(), fill(&format!("env.{name}"), text)?)));
    let mut env = env.collect::<Result<Vec<_>, TargetError>>()?;
    let command = command?;
    let program = resolve(service, &command, &env)?;
    if placement.padding_bytes > 0 {
        env.push((PADDING.to_owned(), "x".repeat(placement.padding_bytes)));
    }
    Ok(Spec {
        program,
        command,
        directory: service.directory.clone(),
        env_withheld: WITHHELD.map(str::to_owned).to_vec(),
        env,
        cpus: placement.cpus.clone(),
        log: placement.log.clone(),
        stop_timeout: service.stop_timeout,
        marker: marker.as_str().to_owned(),
        group: placement.group,
    })
}

/// `{port}`, `{NAME.port}`, `{address}`, `{directory}`, and what the placement adds.
fn lookup(name: &str, service: &Service, ports: &Ports, placement: &Placement) -> Option<String> {
    let known = match name {
        "port" => ports.of(&service.name).map(|port| port.to_string()),
        "address" => Some(text(placement.address)),
        "directory" => Some(service.directory.display().to_string()),
        other => other.strip_suffix(".port").and_then(|other| ports.of(other)).map(|port| port.to_string()),
    };
    known.or_else(|| placement.values.get(name).cloned())
}

/// As it stands in a URL.
fn text(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// The program's file. As a shell in the service's directory would find it, with the service's own `PATH`.
fn resolve(service: &Service, command: &[String], env: &[(String, String)]) -> Result<PathBuf, TargetError> {
    if !service.directory.is_dir() {
        let path = service.directory.clone();
        return Err(TargetError::DirectoryMissing { service: service.name.clone(), path });
    }
    let program = command.first().map(String::as_str).unwrap_or_default();
    let own = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
    let path = own.or_else(|| env::var_os("PATH")).unwrap_or_else(|| PATH_DEFAULT.into());
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![service.directory.join(program)]
    } else {
        env::split_paths(&path).map(|folder| service.directory.join(folder).join(program)).collect()
    };
    let existing: Vec<&PathBuf> =
        candidates.iter().filter(|file| !program.is_empty() && file.is_file()).collect();
    if let Some(file) = existing.iter().find(|file| access(file.as_path(), Access::EXEC_OK).is_ok()) {
        return Ok((*file).clone());
    }
    let service = service.name.clone();
    match existing.first() {
        Some(file) => {
            let reason = "it is not executable (chmod +x)".to_owned();
            Err(TargetError::NotExecutable { service, path: (*file).clone(), reason })
        }
        None => {
            let searched = match candidates.as_slice() {
                [file] if program.contains('/') => file.display().to_string(),
                _ => format!("PATH: {}", path.to_string_lossy()),
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
