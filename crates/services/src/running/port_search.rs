//! Finds the port of a service that does not listen on the assigned one, from its own sockets. This module
//! does not start or signal any process.
//!
//! PORT wins if the service listens there. Other ports are considered after they have not changed for a while
//! and the service has become idle, because a metrics or debugger port often opens first. If several ports
//! respond, none is chosen.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use machine::sockets::{self, open_sockets};
use model::PortFound;
use plan::Service;

use crate::Error;
use crate::probe::{self, ProbeResult, ReadyCondition};
use crate::running::Running;

/// Poll interval for the service's sockets. Each poll reads a table of the kernel.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Other ports than PORT are considered after they have been the same, and the service idle, for this long,
/// or for this share of `ready_timeout` if that is less.
const SETTLED: Duration = Duration::from_secs(3);
const SETTLED_SHARE: u32 = 4;
/// A service that was busy for longer than this between two polls is still starting, for at most half of
/// `ready_timeout`.
const BUSY: Duration = Duration::from_millis(20);

/// Search state for one service.
#[derive(Debug, Default)]
pub(crate) struct PortSearch {
    looked: Option<Instant>,
    /// Addresses of the last poll in order of ports, the time since which they are the same, and the CPU time
    /// used by then.
    seen: Option<(Vec<SocketAddr>, Instant, u64)>,
    /// The address at which the service is ready.
    pub taken: Option<(SocketAddr, PortFound)>,
}

impl PortSearch {
    /// Whether these addresses belong to a service that has settled.
    fn is_settled(
        &mut self,
        here: &[SocketAddr],
        busy_ns: u64,
        still_starting: bool,
        patience: Duration,
    ) -> bool {
        let busy_max_ns = u64::try_from(BUSY.as_nanos()).unwrap_or(u64::MAX);
        match &mut self.seen {
            Some((seen, since, before_ns)) if seen == here => {
                let was_busy = busy_ns.saturating_sub(*before_ns) > busy_max_ns;
                *before_ns = busy_ns;
                if was_busy && still_starting {
                    *since = Instant::now();
                }
                since.elapsed() >= patience
            }
            _ => {
                self.seen = Some((here.to_vec(), Instant::now(), busy_ns));
                false
            }
        }
    }
}

impl Running {
    /// Looks for the service on other ports. `waited` is the time since its start.
    ///
    /// # Errors
    /// Several ports that respond, so that the choice is ambiguous.
    pub(crate) fn look_elsewhere(
        &self,
        search: &mut PortSearch,
        service: &Service,
        (wanted, waited): (ReadyCondition<'_>, Duration),
        abandoned: &mut dyn FnMut() -> bool,
    ) -> Result<ProbeResult, Error> {
        // A container's sockets are in another network namespace.
        if self.container.is_some()
            || search
                .looked
                .is_some_and(|looked| looked.elapsed() < LOOK_EVERY)
        {
            return Ok(ProbeResult::Refused);
        }
        search.looked = Some(Instant::now());
        let may_be = |at: &SocketAddr| service.chooses_port() || at.port() == self.address.port();
        let here: Vec<SocketAddr> = self
            .reached_listeners()
            .into_iter()
            .filter(may_be)
            .collect();
        let patience = SETTLED.min(service.ready_timeout / SETTLED_SHARE);
        let still_starting = waited < service.ready_timeout / 2;
        if !search.is_settled(&here, self.busy_ns(), still_starting, patience) {
            return Ok(ProbeResult::Refused);
        }
        let looks: Vec<(SocketAddr, ProbeResult)> = here
            .iter()
            .map(|at| (*at, probe::look(*at, wanted, abandoned)))
            .collect();
        let ready: Vec<SocketAddr> = looks
            .iter()
            .filter(|(_, seen)| *seen == ProbeResult::Ready)
            .map(|(at, _)| *at)
            .collect();
        // A port that is still starting may be the right one.
        let unready = looks
            .into_iter()
            .map(|(_, seen)| seen)
            .find(|seen| *seen != ProbeResult::Ready);
        match (ready.as_slice(), unready) {
            ([], unready) => Ok(unready.unwrap_or(ProbeResult::Refused)),
            ([_], Some(unready)) if unready.may_become_ready() => Ok(unready),
            ([at], _) => {
                let address = Some(at.ip()).filter(|ip| *ip != self.address.ip());
                search.taken = Some((
                    *at,
                    PortFound {
                        given: self.given,
                        address,
                    },
                ));
                Ok(ProbeResult::Ready)
            }
            (several, _) => Err(self.ambiguous(several)),
        }
    }

    fn ambiguous(&self, ports: &[SocketAddr]) -> Error {
        let ports: Vec<String> = ports.iter().map(|at| at.port().to_string()).collect();
        let (listed, given) = (ports.join(" and "), self.given);
        let message = format!(
            "it listens on {listed}, all of which respond, and not on the PORT {given} that it was given"
        );
        Error::of(&self.name, message).after(self.tail()).help(format!(
            "name the port that gets the load: --port {}, or `port` of the service in an experiment file; or have the service listen on PORT",
            ports.join(" or --port ")
        ))
    }

    /// Rejects a service that was found on another port and now listens on PORT. Otherwise not all starts
    /// would be loaded at the same port.
    pub(crate) fn check_same_port(&self) -> Result<(), Error> {
        let (port, given) = (self.address.port(), self.given);
        if port == given || !self.reached_listeners().iter().any(|at| at.port() == given) {
            return Ok(());
        }
        let message = format!(
            "it listens on the PORT {given} that it was given, and on {port}, where it was found when it was started before"
        );
        Err(Error::of(&self.name, message).after(self.tail()).help(format!(
            "if {port} is not the port of the application, have {{port}} stand in its command or environment; otherwise --port {port}, or \
             `port = {port}` of the service"
        )))
    }

    /// Ports other than the port of the load, in order.
    pub(crate) fn ports_beside(&self) -> Vec<u16> {
        let ports = self.reached_listeners().into_iter().map(|at| at.port());
        ports.filter(|port| *port != self.address.port()).collect()
    }

    /// Ports on which a service that was found elsewhere than PORT began to listen after it was ready.
    pub(crate) fn late_ports(&self) -> Vec<u16> {
        if self.container.is_some() || self.address.port() == self.given {
            return Vec::new();
        }
        self.ports_beside()
            .into_iter()
            .filter(|port| !self.other_ports.contains(port))
            .collect()
    }

    /// Describes where the service listens, if it does.
    pub(crate) fn seen_elsewhere(&self) -> Option<ProbeResult> {
        let all = self.own_listeners();
        let listens = all
            .iter()
            .find(|at| at.port() == self.address.port())
            .or(all.first())?;
        // Generators elsewhere, and clients behind a link, cannot reach loopback.
        let hint = match self.address.ip().is_loopback() {
            true => format!(
                "let it listen on {{address}} and {{port}}: its environment or arguments have to say so; or set `port = {}`",
                listens.port()
            ),
            false => "clients reach it at this address only: let it listen on {address}".to_owned(),
        };
        Some(ProbeResult::Other(
            format!("but it listens on {listens} only"),
            hint,
        ))
    }

    /// The addresses at which a connection from here reaches the service: one for each port, in order.
    fn reached_listeners(&self) -> Vec<SocketAddr> {
        let all = self.own_listeners();
        let reached = all.iter().filter_map(|at| self.reached_at(*at));
        let by_port: BTreeMap<u16, SocketAddr> = reached.map(|at| (at.port(), at)).collect();
        by_port.into_values().collect()
    }

    /// The sockets on which its processes listen, in order of ports. For each port the assigned address comes
    /// last.
    fn own_listeners(&self) -> Vec<SocketAddr> {
        let alive = self.alive();
        let ours: Vec<u64> = alive
            .iter()
            .filter_map(|stat| open_sockets(stat.id.pid))
            .flatten()
            .collect();
        let listeners = sockets::listeners()
            .into_iter()
            .filter(|listener| ours.contains(&listener.inode));
        let mut all: Vec<SocketAddr> = listeners
            .map(|listener| SocketAddr::new(listener.address, listener.port))
            .collect();
        all.sort_by_key(|at| (at.port(), at.ip() == self.address.ip()));
        all
    }

    /// The address at which a connection from here reaches a socket that listens at `at`. `None` if there is
    /// none.
    fn reached_at(&self, at: SocketAddr) -> Option<SocketAddr> {
        let asked: IpAddr = self.address.ip();
        let is_reached = at.ip() == asked || at.ip().is_unspecified();
        let other = || (asked.is_loopback() && at.ip().is_loopback()).then_some(at);
        if is_reached {
            Some(SocketAddr::new(asked, at.port()))
        } else {
            other()
        }
    }
}
