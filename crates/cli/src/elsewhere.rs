//! A plan's services that are no processes of this machine: on other machines, which are reached for a run, or running already.

use std::io::{self, IsTerminal};

use lab::{DeployedServices, RemoteHosts};
use model::Until;
use model::quantity::many;
use plan::{Plan, Service, duration_text};
use remote::{Blame, Program};
use report::rate;

use crate::exit::{self, Failed};
use crate::hosts::CopyWatch;
use crate::{REMOTE_AGENT, print, records};

/// Reaches every host of a plan. Without any it does nothing.
pub fn open(plan: &Plan) -> Result<RemoteHosts, Failed> {
    let mut program = None;
    let mut reach = |host: &str| {
        print::tell!("reaching {host}");
        let program = match &program {
            Some(program) => program,
            // What runs on the generators' machines runs on these.
            None => {
                // It may take half a minute, and who leaves by Ctrl-C leaves no empty folder: the record makes it again.
                records::release();
                program.insert(plan.generators.program.as_deref().map_or_else(Program::own, Program::at)?)
            }
        };
        let mut copying = CopyWatch::default();
        let channel =
            remote::ssh::open_watched(host, program, &[REMOTE_AGENT], &mut |copied| copying.show(copied))?;
        let address = plan.wants_address_of(host).then(|| remote::address(host)).transpose()?;
        Ok((channel, address))
    };
    let hosts = RemoteHosts::open(plan, &mut reach).map_err(Failed::service)?;
    for (host, process) in hosts.ended() {
        let process = plan.secrets.hide(&process);
        print::tell!("ended on {host}: {process}, which a killed run had left");
    }
    Ok(hosts)
}

/// Finds whatever a plan loads that runs already, once whoever is there said that other machines may be loaded, which `yes` says
/// beforehand. Without any it does nothing.
pub fn deployed(plan: &Plan, yes: bool) -> Result<DeployedServices, Failed> {
    if plan.design.explain && plan.loads_running() {
        let message = "profiles are taken of processes that Proofload starts, and what this experiment loads runs already";
        return Err(Failed::usage(message).hint(
            "profile a copy of the service that Proofload starts: `command` in place of `kubernetes` or `url`",
        ));
    }
    consent(plan, yes)?;
    check_urls(plan)?;
    check_figures(plan)?;
    let found = DeployedServices::open(plan).map_err(|error| match *error.blame() == Blame::Request {
        true => error.into(),
        false => Failed::service(error),
    })?;
    found.places().for_each(|place| print::tell!("found {place}"));
    Ok(found)
}

/// Whether somebody listens at each URL. Where all load comes from other machines they know that, and not this one.
pub fn check_urls(plan: &Plan) -> Result<(), Failed> {
    for variant in plan.variants.iter().filter(|_| plan.generators.local > 0) {
        let Some(url) = variant.entry_service().and_then(Service::url) else { continue };
        // Of what is measured alone there is nothing to say then; what is compared lacks a service.
        let code = if plan.measure.is_some() { exit::VOID } else { exit::SERVICE };
        lab::reach(url, variant.load.sources.first().copied()).map_err(|why| {
            Failed::new(code, format!("no request was sent: {why}"))
                .hint("is the service running, and at this address?")
        })?;
    }
    Ok(())
}

/// Whether the figures of processes that verdicts and limits ask for can be had.
fn check_figures(plan: &Plan) -> Result<(), Failed> {
    let limits = plan.gate.iter().filter_map(|limit| limit.limit.figure.metric());
    let metrics = plan.design.metrics().filter(|_| plan.measure.is_none());
    let Some(metric) = metrics.chain(limits).find(|metric| metric.is_of_processes()) else { return Ok(()) };
    let Some((index, why)) = lab::unseen(plan).pop_first() else { return Ok(()) };
    let (variant, metric) = (&plan.variants[index].name, metric.name());
    let message = format!("{variant}: `{metric}` is not known of what runs already: {why}");
    Err(Failed::usage(message)
        .hint("throughput, response times and failures are; or have Proofload start it: `command` in place of `url`"))
}

/// Asks once, before anything is sent, whether hosts that may be other machines may be loaded. Only URLs that the user named are loaded at
/// all; this is about what the load does to whoever else uses those machines. Asks on a terminal; elsewhere `yes`, which is `--yes`, has to
/// have been given.
pub fn consent(plan: &Plan, yes: bool) -> Result<(), Failed> {
    let hosts = plan.foreign_hosts();
    if hosts.is_empty() || yes {
        return Ok(());
    }
    let what = format!("{}: this sends {}", hosts.join(", "), amount(plan));
    if !io::stdin().is_terminal() {
        return Err(Failed::usage(format!("{what}; nobody said that it may"))
            .hint("--yes, if these machines are yours to load, or their owners agree"));
    }
    // As above.
    records::release();
    // Asked however quiet all else is to be.
    print::coloured(&model::text::line(&format!("{what}. Are they yours to load? [y/N]")));
    let mut said = String::new();
    let read = io::stdin().read_line(&mut said);
    match (read, said.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(Failed::usage("nothing was sent: nobody said that it may")),
    }
}

/// About how much is sent: `1000 requests/s for up to 10m`.
fn amount(plan: &Plan) -> String {
    let connections = plan.variants.iter().map(|variant| variant.load.connections).max().unwrap_or(0);
    let connections = many(connections.into(), "connection");
    let full = format!("as many requests as {connections} get responses to");
    if let Some(measure) = &plan.measure {
        let paced = if measure.rates.is_some() { "requests at the rates that were asked for" } else { &full };
        return match measure.until {
            Until::Requests(requests) => many(requests.saturating_mul(measure.slices() as u64), "request"),
            Until::Elapsed(_) => format!("{paced} for {}", duration_text(measure.total())),
        };
    }
    let own = plan.variants.iter().filter_map(|variant| variant.load.rate_per_s);
    let per_s = own.reduce(f64::max).or(plan.design.mean_rate_per_s());
    let paced = match per_s.map(rate) {
        None => full,
        Some(rate) if plan.design.warmup.is_some_and(|warmup| warmup.is_zero()) => rate,
        // At their limit: that is what shows whether services are steady.
        Some(rate) => format!("{rate}, and {full} while they warm up,"),
    };
    format!("{paced} for up to {}", duration_text(plan.design.budget))
}
