//! Services of a plan that already run: their addresses, and the consent to load them. The user is asked once,
//! before anything is sent.

use std::io::{self, IsTerminal};

use lab::{DeployedServices, Destinations};
use model::Until;
use model::quantity::many;
use plan::{Plan, Service, duration_text};
use remote::Blame;
use report::rate;

use crate::exit::{self, CliError};
use crate::{print, records};

/// Destinations that the user agreed to load.
#[derive(Debug, Default)]
pub struct Agreed {
    /// The addresses.
    pub destinations: Destinations,
    /// Services of clusters.
    pub deployed: DeployedServices,
}

/// Finds the destinations of a plan, and asks for consent if one is not this machine, unless `yes` (`--yes`) is
/// given. Sends nothing there. This machine resolves the names, also if others send all load, once per run.
pub fn agree(plan: &Plan, yes: bool) -> Result<Agreed, CliError> {
    let mut destinations = look_up(plan)?;
    let deployed =
        DeployedServices::open(plan).map_err(|error| match *error.blame() == Blame::Request {
            true => error.into(),
            false => CliError::service(error),
        })?;
    let strangers = destinations.strangers(plan, &deployed);
    if !strangers.is_empty() {
        consent(plan, &strangers, yes)?;
        destinations.agree(plan, &deployed);
    }
    Ok(Agreed {
        destinations,
        deployed,
    })
}

/// Refuses what cannot be done with services that run already, and looks whether they are there. Without any it does nothing.
pub fn check(plan: &Plan, agreed: &Agreed) -> Result<(), CliError> {
    check_urls(plan, &agreed.destinations)?;
    check_figures(plan, &agreed.destinations)?;
    agreed.deployed.reach(plan).map_err(CliError::service)?;
    agreed
        .deployed
        .places()
        .for_each(|place| print::tell!("found {place}"));
    Ok(())
}

/// Whether somebody listens at each URL, for a run that sends nothing.
pub fn look_at_urls(plan: &Plan) -> Result<(), CliError> {
    check_urls(plan, &look_up(plan)?)
}

fn look_up(plan: &Plan) -> Result<Destinations, CliError> {
    Destinations::of_urls(plan).map_err(|why| unreached(plan, &why))
}

/// Where all load comes from other machines they know whether somebody listens, and not this one.
fn check_urls(plan: &Plan, destinations: &Destinations) -> Result<(), CliError> {
    for variant in plan.variants.iter().filter(|_| plan.generators.local > 0) {
        let Some(url) = variant.entry_service().and_then(Service::url) else {
            continue;
        };
        lab::reach(
            url,
            destinations,
            variant.load.settings.sources.first().copied(),
        )
        .map_err(|why| unreached(plan, &why))?;
    }
    Ok(())
}

fn unreached(plan: &Plan, why: &str) -> CliError {
    // A load alone is then invalid; a comparison lacks a service.
    let code = if plan.measure.is_some() {
        exit::VOID
    } else {
        exit::SERVICE
    };
    CliError::new(code, format!("no request was sent: {why}"))
        .hint("is the service running, and at this address?")
}

/// Whether the figures of processes that verdicts and limits need are available.
fn check_figures(plan: &Plan, destinations: &Destinations) -> Result<(), CliError> {
    let limits = plan
        .gate
        .iter()
        .filter_map(|limit| limit.limit.figure.metric());
    let metrics = plan.design.metrics().filter(|_| plan.measure.is_none());
    let Some(metric) = metrics
        .chain(limits)
        .find(|metric| metric.is_of_processes())
    else {
        return Ok(());
    };
    let Some((index, why)) = lab::unseen(plan, destinations).pop_first() else {
        return Ok(());
    };
    let (variant, metric) = (&plan.variants[index].name, metric.name());
    let message =
        format!("{variant}: `{metric}` is not available for a service that already runs: {why}");
    Err(CliError::usage(message)
        .hint("use throughput, response times or failures, or let Proofload start the service: `command` instead of `url`"))
}

/// Asks for consent to load other machines, because it affects their other users. Without a terminal `yes` is
/// required.
fn consent(plan: &Plan, strangers: &[String], yes: bool) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    let what = format!("{}: this sends {}", strangers.join(", "), amount(plan));
    if !io::stdin().is_terminal() {
        return Err(CliError::usage(format!("{what}; not confirmed"))
            .hint("pass --yes if these machines are yours to load, or if their owners agree"));
    }
    // After Ctrl-C no empty folder remains. The record makes it again.
    records::release();
    // Printed also with --quiet.
    print::coloured(&model::text::line(&format!(
        "{what}. Are they yours to load? [y/N]"
    )));
    let mut said = String::new();
    let read = io::stdin().read_line(&mut said);
    match (read, said.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(CliError::usage("nothing was sent: not confirmed")),
    }
}

/// About how much is sent: `1000 requests/s for up to 10m`.
fn amount(plan: &Plan) -> String {
    let connections = plan
        .variants
        .iter()
        .map(|variant| variant.load.settings.connections)
        .max()
        .unwrap_or(0);
    let connections = many(connections.into(), "connection");
    let full = format!("requests at full speed over {connections}");
    if let Some(measure) = &plan.measure {
        let paced = if measure.rates.is_some() {
            "requests at the requested rates"
        } else {
            &full
        };
        return match measure.until {
            Until::Requests(requests) => {
                many(requests.saturating_mul(measure.slices() as u64), "request")
            }
            Until::Elapsed(_) => format!("{paced} for {}", duration_text(measure.total())),
        };
    }
    let own = plan
        .variants
        .iter()
        .filter_map(|variant| variant.load.rate_per_s);
    let per_s = own.reduce(f64::max).or(plan.design.mean_rate_per_s());
    let paced = match per_s.map(rate) {
        None => full,
        Some(rate) if plan.design.warmup.is_some_and(|warmup| warmup.is_zero()) => rate,
        // At their limit: that is what shows whether services are steady.
        Some(rate) => format!("{rate}, and {full} while they warm up,"),
    };
    format!("{paced} for up to {}", duration_text(plan.design.budget))
}
