//! Finds which of the addresses of a URL's host accepts a connection, which is closed without sending
//! anything, and which processes listen there, if they can be observed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use load::Address;
use machine::sockets::is_address_here;
use plan::{Plan, Service, Url, UrlPlace, Variant};
use services::{WatchedProcesses, reach_socket};

use crate::destinations::{Destinations, is_own_address};

/// Timeout for an address to accept a connection.
const REACH_PATIENCE: Duration = Duration::from_secs(3);

/// The current target of a URL.
#[derive(Debug, Clone)]
pub struct ReachedUrl {
    /// The address that accepts connections.
    pub address: Address,
    /// All addresses of its host of the requested family. Empty for a unix socket.
    pub addresses: Vec<IpAddr>,
}

/// The first of a URL's addresses of the family of `source` that accepts a connection.
///
/// # Errors
/// The host has no such address, or no process listens there.
pub fn reach(
    url: &Url,
    destinations: &Destinations,
    source: Option<IpAddr>,
) -> Result<ReachedUrl, String> {
    let refused = |place: &str, why: &str| format!("cannot connect to {place}: {why}");
    if let UrlPlace::Unix(path) = &url.place {
        reach_socket(path)
            .map_err(|error| refused(&path.display().to_string(), &error.to_string()))?;
        return Ok(ReachedUrl {
            address: Address::Unix(path.clone()),
            addresses: Vec::new(),
        });
    }
    let known = usable(url, destinations, source);
    // A connection that is reset was accepted before.
    let reached = |address: &SocketAddr| Ok(at(*address, &known));
    let mut why = match source {
        None => "it has no address".to_owned(),
        Some(source) => format!("it has no address of the same family as {source}"),
    };
    for address in &known {
        match TcpStream::connect_timeout(address, REACH_PATIENCE) {
            Ok(_) => return reached(address),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return reached(address),
            Err(_) if needs_zone(address) => {
                why = format!(
                    "a link-local address needs the interface it is reached through: http://[{}%eth0]",
                    address.ip()
                );
            }
            Err(error) if address.to_string() == url.authority() => why = error.to_string(),
            Err(error) => why = format!("{address}: {error}"),
        }
    }
    Err(refused(&url.authority(), &why))
}

/// The target of a URL without connecting: the first of its addresses.
///
/// # Errors
/// The host has no address.
pub(crate) fn expected(url: &Url, destinations: &Destinations) -> Result<ReachedUrl, String> {
    let known = usable(url, destinations, None);
    let first = known
        .first()
        .ok_or_else(|| format!("{} has no address", url.authority()))?;
    Ok(at(*first, &known))
}

fn at(address: SocketAddr, known: &[SocketAddr]) -> ReachedUrl {
    ReachedUrl {
        address: Address::Tcp(address),
        addresses: known.iter().map(SocketAddr::ip).collect(),
    }
}

/// The addresses of a URL's host of the family of `source`.
fn usable(url: &Url, destinations: &Destinations, source: Option<IpAddr>) -> Vec<SocketAddr> {
    let fits =
        |address: &&SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
    destinations
        .known(url)
        .iter()
        .filter(fits)
        .copied()
        .collect()
}

/// Whether an address requires an interface, and has none.
fn needs_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// Whether an address belongs to our network namespace.
fn is_here(address: &Address) -> bool {
    let Address::Tcp(at) = address else {
        return true;
    };
    is_own_address(at)
}

/// Whether the listener of an address runs on this machine, possibly in a container's network.
pub(crate) fn works_here(address: &Address) -> bool {
    let Address::Tcp(at) = address else {
        return true;
    };
    is_here(address) || is_address_here(at.ip())
}

/// The processes behind a URL.
///
/// # Errors
/// The reason why they cannot be observed.
pub(crate) fn watched(url: &Url, reached: &ReachedUrl) -> Result<WatchedProcesses, String> {
    if !is_here(&reached.address) {
        return Err(format!(
            "{} is no address of this machine's own network",
            url.host()
        ));
    }
    let watched = match &reached.address {
        Address::Tcp(address) => WatchedProcesses::at(*address),
        Address::Unix(path) => WatchedProcesses::at_socket(path),
    };
    watched.map_err(str::to_owned)
}

/// Variants behind URLs whose processes cannot be observed, by index, with the reason. A process that serves
/// several variants cannot be attributed: its figures are the sum over all of them.
pub fn unseen(plan: &Plan, destinations: &Destinations) -> BTreeMap<usize, String> {
    let watch = |variant: &Variant| {
        let url = variant.entry_service().and_then(Service::url)?;
        let reached = reach(
            url,
            destinations,
            variant.load.settings.sources.first().copied(),
        );
        Some(reached.and_then(|reached| watched(url, &reached)))
    };
    let all: Vec<_> = plan.variants.iter().map(watch).collect();
    let why = |(index, found): (usize, &Option<Result<WatchedProcesses, String>>)| match found
        .as_ref()?
    {
        Err(why) => Some((index, why.clone())),
        Ok(watched) => {
            let others = all.iter().enumerate().filter(|(other, _)| *other != index);
            let mut others =
                others.filter_map(|(other, found)| Some((other, found.as_ref()?.as_ref().ok()?)));
            let (other, _) = others.find(|(_, other)| watched.shares_with(other))?;
            let name = &plan.variants[other].name;
            Some((
                index,
                format!("{} responds for `{name}` too", watched.describe()),
            ))
        }
    };
    all.iter().enumerate().filter_map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_need_a_zone() {
        let text = "name = \"x\"\n[services.api]\nurl = \"http://[fe80::1]:1/\"\n[measure]\nduration = \"1s\"\n";
        let plan = plan::parse(text, std::path::Path::new("/")).expect("a plan");
        let url = plan.variants[0].services[0].url().expect("a URL");
        let destinations = Destinations::of_urls(&plan).expect("an address needs no name server");
        let why = reach(url, &destinations, None).expect_err("no interface is named");
        assert!(why.contains("needs the interface"), "{why}");
    }
}
