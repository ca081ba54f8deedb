//! A plan's services that are no processes of this machine: on other machines, which are reached for a run, or running already.

use lab::{DeployedError, DeployedServices, Reached, RemoteHosts, RemoteHostsError};
use plan::Plan;
use remote::Program;

use crate::exit::{self, Failed};
use crate::hosts::CopyWatch;
use crate::{REMOTE_AGENT, print};

/// Reaches every host of a plan. Without any it does nothing.
///
/// # Errors
/// If one cannot be reached, or services cannot be started there.
pub fn open(plan: &Plan) -> Result<RemoteHosts, Failed> {
    let mut program = None;
    let mut reach = |host: &str| {
        print::talk(&format!("reaching {host}"));
        let program = match &program {
            Some(program) => program,
            // What runs on the generators' machines runs on these.
            None => {
                program.insert(plan.generators.program.as_deref().map_or_else(Program::own, Program::at)?)
            }
        };
        let mut copying = CopyWatch::default();
        let channel =
            remote::ssh::open_watched(host, program, &[REMOTE_AGENT], &mut |copied| copying.show(copied))?;
        let address = plan.wants_address_of(host).then(|| remote::address(host)).transpose()?;
        Ok(Reached { channel, address })
    };
    let hosts = RemoteHosts::open(plan, &mut reach).map_err(|error| failed(&error))?;
    for (host, process) in hosts.ended() {
        print::talk(&format!("ended on {host}: {process}, which a killed run had left"));
    }
    Ok(hosts)
}

/// Finds whatever a plan loads that runs already. Without any it does nothing.
///
/// # Errors
/// If it cannot be loaded, or asks for what nobody knows of processes that run already.
pub fn deployed(plan: &Plan) -> Result<DeployedServices, Failed> {
    if plan.design.explain && plan.loads_deployed() {
        let message = "profiles are taken of processes that Proofload starts, and what this experiment loads runs already";
        return Err(Failed::usage(message).hint(
            "profile a copy of the service that Proofload starts: `command` in place of `kubernetes`",
        ));
    }
    let found = DeployedServices::open(plan).map_err(|error| Failed {
        hint: error.hint(),
        message: error.to_string(),
        code: if matches!(error, DeployedError::Alike { .. }) { exit::USAGE } else { exit::SERVICE },
    })?;
    for place in found.places() {
        print::talk(&format!("found {place}"));
    }
    Ok(found)
}

fn failed(error: &RemoteHostsError) -> Failed {
    Failed { message: error.to_string(), hint: error.hint(), code: exit::SERVICE }
}
