//! The ports of a variant's services: fixed by the experiment, or free ones.
//!
//! It chooses and checks. It cannot reserve a port: between the choice and the service's own bind another
//! process may take it, which [`crate::start`] detects.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;

use machine::sockets::{self, Listener};
use plan::Service;

use crate::Error;

/// Range in which free ports are searched, without the kernel's range for outgoing connections.
const PREFERRED: RangeInclusive<u16> = 10_000..=65_535;

/// Maps service names to ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports {
    ports: BTreeMap<String, u16>,
}

impl Ports {
    /// Chooses ports for all services of a variant, which will listen on `address`. `random` decides where
    /// the search begins, so that concurrent trials do not choose the same ports.
    ///
    /// # Errors
    /// A fixed port that is in use, or no free port.
    pub fn choose(services: &[Service], address: IpAddr, random: u64) -> Result<Self, Error> {
        let mut ports = BTreeMap::new();
        for service in services {
            if let Some(port) = fixed(service) {
                check_free(&service.name, SocketAddr::new(address, port))?;
                ports.insert(service.name.clone(), port);
            }
        }
        let range = candidates();
        let mut next = usize::try_from(random % range.len().max(1) as u64).unwrap_or(0);
        for service in services.iter().filter(|service| fixed(service).is_none()) {
            let mut order = range
                .iter()
                .cycle()
                .skip(next)
                .take(range.len())
                .enumerate();
            let is_open = |port: u16| !ports.values().any(|used| *used == port) && is_free(port);
            let Some((steps, port)) = order.find(|(_, port)| is_open(**port)) else {
                let end = |port: Option<&u16>| port.copied().unwrap_or(0);
                let (first, last) = (end(range.first()), end(range.last()));
                return Err(Error::of(
                    &service.name,
                    format!("no free port between {first} and {last}"),
                ));
            };
            next = (next + steps + 1) % range.len();
            ports.insert(service.name.clone(), *port);
        }
        Ok(Self { ports })
    }

    /// Whether a service was seen to use one of these ports, regardless of the assigned one.
    pub fn meets(&self, command: &plan::ServiceCommand) -> bool {
        let mut seen = command
            .listens_on
            .into_iter()
            .chain(command.other_ports.iter().copied());
        seen.any(|port| self.ports.values().any(|chosen| *chosen == port))
    }

    /// The port of a service.
    pub fn of(&self, service: &str) -> Option<u16> {
        self.ports.get(service).copied()
    }
}

fn fixed(service: &Service) -> Option<u16> {
    service.command()?.port
}

/// The sockets that listen on a port, on any address.
pub(crate) fn on_port(port: u16) -> Vec<Listener> {
    sockets::listeners()
        .into_iter()
        .filter(|listener| listener.port == port)
        .collect()
}

/// The preferred ports without the range for outgoing connections. With that range on machines where no other
/// ports remain.
fn candidates() -> Vec<u16> {
    // The kernel's default if it cannot be read.
    let ephemeral = sockets::local_ports().unwrap_or(32_768..=60_999);
    let outside: Vec<u16> = PREFERRED.filter(|port| !ephemeral.contains(port)).collect();
    if outside.len() < 100 {
        PREFERRED.collect()
    } else {
        outside
    }
}

/// Whether no process listens on the port on any address, so that a service may bind any of them.
///
/// Rust binds with SO_REUSEADDR: closing connections of an earlier trial do not count, any listener does.
fn is_free(port: u16) -> bool {
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let everywhere_6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    // Without IPv6 this bind fails, but not because the port is in use.
    TcpListener::bind(everywhere).is_ok()
        && !failed(&TcpListener::bind(everywhere_6), ErrorKind::AddrInUse)
}

fn failed(bound: &io::Result<TcpListener>, why: ErrorKind) -> bool {
    bound.as_ref().is_err_and(|error| error.kind() == why)
}

/// Checks that a service may be started that is to listen at `address`.
///
/// # Errors
/// A port in use, with its owner's command and number.
pub(crate) fn check_free(service: &str, address: SocketAddr) -> Result<(), Error> {
    let bound = TcpListener::bind(address);
    if bound.is_ok() {
        return Ok(());
    }
    let listeners = on_port(address.port());
    let owner = match sockets::reached(&listeners, address.ip())
        .first()
        .or(listeners.first())
    {
        Some(listener) => sockets::owner(listener),
        None if failed(&bound, ErrorKind::AddrInUse) => {
            "a connection that somebody has open".to_owned()
        }
        None if failed(&bound, ErrorKind::AddrNotAvailable) => {
            let message = format!(
                "nothing can listen on {}: this machine has no such address",
                address.ip()
            );
            return Err(Error::of(service, message)
                .help("`ip -brief address` lists the addresses that it has"));
        }
        // Forbidden (a port below 1024). The service will report it.
        None => return Ok(()),
    };
    Err(Error::of(
        service,
        format!("port {} is taken by {owner}", address.port()),
    )
    .help("stop that process, or leave `port` out: then a free one is chosen for each trial"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn service(name: &str, port: Option<u16>) -> Service {
        Service {
            name: name.to_owned(),
            source: plan::ServiceSource::Command(plan::ServiceCommand {
                port,
                ..plan::ServiceCommand::default()
            }),
            ready: plan::Ready::Tcp,
            ready_timeout: Duration::from_secs(1),
            needs: Vec::new(),
        }
    }

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn chosen_ports_differ_and_are_free_of_listeners() {
        let services = [service("a", None), service("b", None)];
        let first = Ports::choose(&services, LOOPBACK, 17).unwrap();
        let (a, b) = (first.of("a").unwrap(), first.of("b").unwrap());
        assert_ne!(a, b);
        let _listener = TcpListener::bind((LOOPBACK, a)).unwrap();
        let second = Ports::choose(&services, LOOPBACK, 17).unwrap();
        assert!(second.of("a") != Some(a) && second.of("b") != Some(a));
    }

    #[test]
    fn a_taken_port_names_its_owner() {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = Ports::choose(&[service("api", Some(port))], LOOPBACK, 0)
            .unwrap_err()
            .to_string();
        let (taken, me) = (
            format!("service api: port {port} is taken by "),
            std::process::id(),
        );
        assert!(
            error.starts_with(&taken) && error.ends_with(&format!("(pid {me})")),
            "{error}"
        );
    }
}
