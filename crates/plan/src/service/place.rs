//! Services on other machines: what they cannot have from this one, and whether those who ask for them get there.
//!
//! Of the other machine it knows nothing: what is there is found out when it is reached.

use std::path::PathBuf;

use super::deployed;
use crate::check::clipped;
use crate::file::{self, Settings};
use crate::model::Service;
use crate::problem::Problem;
use crate::site::Site;
use crate::text_form::Host;

/// The working directory on `host`: absolute, or below the home.
pub(super) fn directory(site: &mut Site<'_>, name: &str, service: &file::Service, host: &Host) -> PathBuf {
    let written = &service.directory;
    if written == "~" || written.starts_with("~/") || written.starts_with('/') {
        return written.into();
    }
    let at = ["services", name, "directory"];
    let is_there = site.tree.entry(&at).is_some();
    if is_there || site.source.complete {
        let message = match is_there {
            true => format!("`services.{name}.directory`: `{}` says nothing on {host}", clipped(written)),
            false => format!("service `{name}` has no `directory` on {host}"),
        };
        let span = if is_there { site.tree.place(&at) } else { site.tree.place(&["services", name, "host"]) };
        let problem = Problem::new(span, message, "expected an absolute path, or one below the home: ~/shop");
        site.report(problem.hint(
            "the folder of this file is not there; give `directory` the place of the service's code on that host",
        ));
    }
    written.into()
}

/// Whether a service runs on another machine.
pub(super) fn is_elsewhere(site: &Site<'_>, name: &str) -> bool {
    site.tree.entry(&["services", name, "host"]).is_some()
}

/// Reports services of a variant that somebody on another machine asks for and cannot get to.
pub(super) fn report_out_of_reach(
    site: &mut Site<'_>,
    settings: &Settings,
    entry: &str,
    started: &[Service],
) {
    if let Some(there) = started.iter().find(|service| service.host.is_some())
        && settings.load.network.is_some()
    {
        let message = format!(
            "`load.network` makes a link within this machine, and service `{}` runs on {}",
            there.name,
            host_of(there)
        );
        let span = site.tree.place(&["load", "network"]);
        let problem = Problem::new(span, message, "not together with services on other machines");
        site.report(problem.hint("leave it out: there is a real network between the two"));
    }
    if let Some(linked) = started.iter().find(|service| service.name == entry && service.address.is_some())
        && settings.load.network.is_some()
    {
        let message =
            format!("`services.{entry}.address` and `load.network` both say where `{entry}` listens");
        let span = site.tree.place(&["services", &linked.name, "address"]);
        let problem = Problem::new(span, message, "not together with a link");
        site.report(problem.hint("leave `address` out: on a link {address} is that of its other end"));
    }
    if let Some(entry) = started.iter().find(|service| service.kubernetes.is_some())
        && settings.load.network.is_some()
    {
        deployed::report_link(site, entry);
    }
    for service in started {
        let Some(from) = asked_from(service, entry, started) else { continue };
        let loopback = service.address.is_some_and(|address| address.is_loopback());
        if service.host.is_none() && service.address.is_none() && site.source.complete {
            let message =
                format!("service `{}` runs here, and {from} cannot get to it at 127.0.0.1", service.name);
            let span = site.tree.key_place(&["services", &service.name]);
            let problem = Problem::new(span, message, "expected a key `address`");
            site.report(problem.hint(
                "the address of this machine at which others find it, and that it listens on: {address}",
            ));
        } else if loopback {
            let message = format!(
                "`services.{}.address` is its own machine's alone, and {from} asks for it",
                service.name
            );
            let span = site.tree.place(&["services", &service.name, "address"]);
            let problem = Problem::new(span, message, "expected an address that others can connect to");
            site.report(problem);
        }
    }
}

/// Who asks for a service from another machine, in words.
fn asked_from(service: &Service, entry: &str, started: &[Service]) -> Option<String> {
    let needs_it = |other: &&Service| other.needs.contains(&service.name) && other.host != service.host;
    let other = started.iter().find(needs_it);
    let other = other.map(|other| match &other.host {
        Some(host) => format!("`{}` on {host}", other.name),
        None => format!("`{}`, which runs here,", other.name),
    });
    let generator =
        || (service.name == entry && service.host.is_some()).then(|| "the load generator".to_owned());
    other.or_else(generator)
}

fn host_of(service: &Service) -> &str {
    service.host.as_deref().unwrap_or_default()
}
