//! What a command needs, looked at before it starts anything: the folder of its record, programs, addresses, ports, and files of the load. What
//! is refused here leaves nothing behind.
//!
//! Must not: send a request, start a service, or write a file that stays.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use plan::{Plan, Secrets, Service, Variant};
use record::WriteError;
use rustix::fs::{Access, access};
use services::Ports;

use crate::exit::{self, Failed};
use crate::{print, run};

/// Checks a plan, and the folder in which its record is to be made.
///
/// What a killed run left is ended on the way: it would hold ports, and be measured along with this one.
pub fn plan(plan: &Plan, directory: Option<&Path>) -> Result<(), Failed> {
    names(plan, directory)?;
    directory.map_or(Ok(()), record)?;
    commands(plan)?;
    address(plan)?;
    // What is prepared first may be the files of the load.
    if plan.prepare.is_empty() {
        lab::check_load(plan).map_err(run::failed)?;
    }
    networks(plan)?;
    // A measurement of what runs already leaves the machine as it is.
    let is_here = |variant: &Variant| variant.services.iter().any(Service::is_here);
    if plan.measure.is_none() || plan.variants.iter().any(is_here) {
        end_orphans(&plan.secrets);
    }
    ports(plan)
}

/// Whether a record can be made in this folder: it is empty or not there, and may be written.
pub fn record(directory: &Path) -> Result<(), Failed> {
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(run::unwritable(WriteError::Occupied { path: directory.to_owned() }));
    }
    let there = directory.ancestors().find(|folder| folder.exists());
    let folder = there.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let allowed = match folder.is_dir() {
        true => access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from),
        false => Err(io::ErrorKind::NotADirectory.into()),
    };
    allowed.map_err(|source| run::unwritable(WriteError::Io { path: directory.to_owned(), source }))
}

/// Whether the record can name its folder and those of the plan, which takes UTF-8.
fn names(plan: &Plan, directory: Option<&Path>) -> Result<(), Failed> {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let unnamed = directory.map(whole).filter(|path| path.to_str().is_none());
    let what = match (unnamed, serde_json::to_vec(plan)) {
        // Only services that are started here are told where it is.
        (Some(path), _) if !plan.loads_running() => format!("{}: the folder of the record", path.display()),
        (_, Err(_)) => "a folder that the experiment names or lies in".to_owned(),
        _ => return Ok(()),
    };
    Err(Failed::usage(format!("{what} has a name that is not UTF-8")).hint("rename it, or name another one"))
}

/// Whether everything that is to be started on this machine is there.
///
/// # Errors
/// With all that is missing.
pub fn commands(plan: &Plan) -> Result<(), Failed> {
    // What is checked out, made or built first may be what is missing.
    let worktree = plan.against.as_ref().map(|against| &against.worktree).filter(|root| !root.exists());
    let is_to_come = |service: &Service| {
        service.command().zip(worktree).is_some_and(|(command, root)| command.directory.starts_with(root))
    };
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let errors: Vec<services::Error> = services
        .filter(|service| plan.prepare.is_empty() && !is_to_come(service))
        .filter_map(|service| services::check_command(service).err())
        .collect();
    let Some(last) = errors.last() else { return Ok(()) };
    let messages = model::distinct(errors.iter().map(ToString::to_string));
    Err(Failed::new(exit::SERVICE, messages.join("\n       ")).hinted(last.hint()))
}

/// Whether the ports that services of this machine insist on are free. A variant behind a link has a network of its own.
pub fn ports(plan: &Plan) -> Result<(), Failed> {
    for variant in plan.variants.iter().filter(|variant| variant.load.network.is_none()) {
        let here = variant.services.iter().filter(|service| service.is_here()).cloned();
        Ports::choose(&here.collect::<Vec<_>>(), Ipv4Addr::LOCALHOST.into(), 0).map_err(Failed::service)?;
    }
    Ok(())
}

/// Makes each link that a variant asks for once, so that what is missing is told before anything starts.
fn networks(plan: &Plan) -> Result<(), Failed> {
    let links = plan.variants.iter().filter_map(|variant| variant.load.network.as_ref());
    for link in model::distinct(links) {
        services::Network::make(link)?;
    }
    Ok(())
}

/// Whether services of this machine can listen where generators elsewhere look for them.
fn address(plan: &Plan) -> Result<(), Failed> {
    let Some(address) = plan.generators.address else { return Ok(()) };
    let Err(error) = TcpListener::bind((address, 0)) else { return Ok(()) };
    let message = format!("generators.address: nothing can listen on {address} here: {error}");
    Err(Failed::new(exit::SELF, message)
        .hint("`ip -brief address` lists the addresses that this machine has"))
}

/// Ends what a run left that was killed together with its wardens: it would be measured along with this one.
fn end_orphans(secrets: &Secrets) {
    let orphans = services::orphans();
    for orphan in &orphans {
        let command = secrets.mask_words(&orphan.argv).join(" ");
        print::tell!("ending {command} (pid {}), left by a run that was killed", orphan.id.pid);
    }
    for id in services::end_orphans(&orphans) {
        print::tell!("pid {} could not be ended; it disturbs what is measured", id.pid);
    }
}
