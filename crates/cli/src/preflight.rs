//! Checks of a command's requirements before it starts anything: the folder of its record, programs,
//! addresses, ports, and files of the load. A rejected command leaves nothing behind.
//!
//! This module does not send a request, start a service, or write a file that stays.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use plan::{Plan, Secrets, Service, Variant};
use record::WriteError;
use rustix::fs::{Access, access};
use services::Ports;

use crate::exit::{self, CliError};
use crate::{failure, print};

/// Checks a plan, and the folder for its record.
///
/// Also ends the remains of a killed run, which would occupy ports and be measured along with this one.
pub fn plan(plan: &Plan, directory: Option<&Path>) -> Result<(), CliError> {
    names(plan, directory)?;
    directory.map_or(Ok(()), record)?;
    commands(plan)?;
    address(plan)?;
    // Files of the load may be prepared first.
    if plan.prepare.is_empty() {
        lab::check_load(plan).map_err(failure::failed)?;
    }
    networks(plan)?;
    // A measurement of a running service does not affect the machine.
    if plan.measure.is_none() || !plan.variants.iter().all(Variant::runs_already) {
        end_orphans(&plan.secrets);
    }
    ports(plan)
}

/// Checks that a record can be created in this folder: it is empty or missing, and writable.
pub fn record(directory: &Path) -> Result<(), CliError> {
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(failure::unwritable(WriteError::Occupied {
            path: directory.to_owned(),
        }));
    }
    let there = directory.ancestors().find(|folder| folder.exists());
    let folder = there
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let allowed = match folder.is_dir() {
        true => access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from),
        false => Err(io::ErrorKind::NotADirectory.into()),
    };
    allowed.map_err(|source| {
        failure::unwritable(WriteError::Io {
            path: directory.to_owned(),
            source,
        })
    })
}

/// Checks that the folders of the record and the plan are UTF-8, so that the record can contain them.
fn names(plan: &Plan, directory: Option<&Path>) -> Result<(), CliError> {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let unnamed = directory.map(whole).filter(|path| path.to_str().is_none());
    let what = match (unnamed, serde_json::to_vec(plan)) {
        // Only services that are started get its path.
        (Some(path), _) if !plan.loads_running() => {
            format!("{}: the folder of the record", path.display())
        }
        (_, Err(_)) => "a folder that the experiment names or lies in".to_owned(),
        _ => return Ok(()),
    };
    Err(
        CliError::usage(format!("{what} has a name that is not UTF-8"))
            .hint("rename it, or name another one"),
    )
}

/// Checks that everything to be started exists.
///
/// # Errors
/// Lists everything that is missing.
pub fn commands(plan: &Plan) -> Result<(), CliError> {
    // A missing file may be checked out, prepared or built first.
    let worktree = plan
        .against
        .as_ref()
        .map(|against| &against.worktree)
        .filter(|root| !root.exists());
    let is_to_come = |service: &Service| {
        service
            .command()
            .zip(worktree)
            .is_some_and(|(command, root)| command.directory.starts_with(root))
    };
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let errors: Vec<services::Error> = services
        .filter(|service| plan.prepare.is_empty() && !is_to_come(service))
        .filter_map(|service| services::check_command(service).err())
        .collect();
    let Some(last) = errors.last() else {
        return Ok(());
    };
    let messages = model::distinct(errors.iter().map(ToString::to_string));
    Err(CliError::new(exit::SERVICE, messages.join("\n       ")).hinted(last.hint()))
}

/// Checks that the fixed ports of services are free. A variant behind a link has a separate network.
pub fn ports(plan: &Plan) -> Result<(), CliError> {
    for variant in plan
        .variants
        .iter()
        .filter(|variant| variant.load.network.is_none())
    {
        let started = variant
            .services
            .iter()
            .filter(|service| service.command().is_some())
            .cloned();
        Ports::choose(&started.collect::<Vec<_>>(), Ipv4Addr::LOCALHOST.into(), 0)
            .map_err(CliError::service)?;
    }
    Ok(())
}

/// Creates each link of a variant once, so that missing requirements are reported before anything starts.
fn networks(plan: &Plan) -> Result<(), CliError> {
    let links = plan
        .variants
        .iter()
        .filter_map(|variant| variant.load.network.as_ref());
    for link in model::distinct(links) {
        services::NetworkPair::make(link)?;
    }
    Ok(())
}

/// Checks that services can listen on the address that remote generators use.
fn address(plan: &Plan) -> Result<(), CliError> {
    let Some(address) = plan.generators.address else {
        return Ok(());
    };
    let Err(error) = TcpListener::bind((address, 0)) else {
        return Ok(());
    };
    let message = format!("generators.address: nothing can listen on {address} here: {error}");
    Err(CliError::new(exit::SELF, message)
        .hint("`ip -brief address` lists the addresses that this machine has"))
}

/// Ends the remains of a run that was killed together with its wardens: they would be measured along with
/// this one.
fn end_orphans(secrets: &Secrets) {
    let orphans = services::orphans();
    for orphan in &orphans {
        let command = secrets.mask_words(&orphan.argv).join(" ");
        print::tell!(
            "ending {command} (pid {}), left by a run that was killed",
            orphan.id.pid
        );
    }
    for id in services::end_orphans(&orphans) {
        print::tell!(
            "pid {} could not be ended; it disturbs what is measured",
            id.pid
        );
    }
}
