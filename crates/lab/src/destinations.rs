//! Targets of a run's load: the addresses behind the host names of its plan, resolved once, and which of them
//! were confirmed.
//!
//! This module owns the rule: another machine gets no load without confirmation, and the confirmed address is
//! the one that is loaded. Every trial passes [`Destinations::check`] before anything is sent. The caller
//! asks for the confirmation.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use load::Address;
use plan::{Plan, Service, Url, UrlPlace, Variant};

use crate::deployed::DeployedServices;

/// The addresses that a plan's load goes to, each resolved once.
#[derive(Debug, Clone, Default)]
pub struct Destinations {
    /// Addresses behind the hosts of URLs.
    urls: BTreeMap<(String, u16), Vec<SocketAddr>>,
    /// Whether other machines send load: an address of this machine may belong to another one there.
    is_sent_from_elsewhere: bool,
    agreed: BTreeSet<IpAddr>,
}

/// Resolves a host name.
pub type LookUp<'a> = &'a dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

impl Destinations {
    /// Resolves the hosts of all URLs of a plan with the system's resolver.
    ///
    /// # Errors
    /// A host without an address, or a loopback address with generators on other machines, where it would be
    /// each generator's own machine.
    pub fn of_urls(plan: &Plan) -> Result<Destinations, String> {
        Destinations::looked_up(plan, &|host, port| {
            Ok((host, port).to_socket_addrs()?.collect())
        })
    }

    fn looked_up(plan: &Plan, look_up: LookUp<'_>) -> Result<Destinations, String> {
        let is_sent_from_elsewhere = plan.generators.is_elsewhere();
        let mut found = Destinations {
            is_sent_from_elsewhere,
            ..Destinations::default()
        };
        for url in urls(plan) {
            let UrlPlace::Tcp { host, port } = &url.place else {
                continue;
            };
            let key = (host.clone(), *port);
            if found.urls.contains_key(&key) {
                continue;
            }
            let known = look_up(host, *port)
                .map_err(|error| format!("cannot connect to {host}: {error}"))?;
            let own = known.iter().find(|address| is_loopback(address.ip()));
            if let Some(own) = own.filter(|_| is_sent_from_elsewhere) {
                return Err(format!(
                    "{host} is {} here, which is each generator's own machine",
                    own.ip()
                ));
            }
            found.urls.insert(key, known);
        }
        Ok(found)
    }

    /// Describes each target that is not this machine, without duplicates. The user must confirm them.
    /// `deployed` are the plan's Services of clusters, whose pods may be on any machine.
    pub fn strangers(&self, plan: &Plan, deployed: &DeployedServices) -> Vec<String> {
        let named = urls(plan).filter_map(|url| self.stranger(url));
        model::distinct(named.map(|(name, _)| name).chain(deployed.described()))
    }

    /// Confirms all of [`Self::strangers`].
    pub fn agree(&mut self, plan: &Plan, deployed: &DeployedServices) {
        let named = urls(plan).filter_map(|url| self.stranger(url));
        let agreed: Vec<IpAddr> = named.flat_map(|(_, addresses)| addresses).collect();
        self.agreed.extend(
            agreed
                .into_iter()
                .chain(deployed.addresses().map(|address| address.ip())),
        );
    }

    /// Name and addresses of the machine of a URL, if it is not this machine.
    fn stranger(&self, url: &Url) -> Option<(String, Vec<IpAddr>)> {
        let name = url.host().to_owned();
        let others = self
            .known(url)
            .iter()
            .filter(|address| !self.is_this_machine(address));
        let others = model::distinct(others.map(|address| address.ip()));
        let listed = model::distinct(others.iter().map(ToString::to_string)).join(", ");
        let told = if listed == name {
            name
        } else {
            format!("{name} ({listed})")
        };
        (!others.is_empty()).then_some((told, others))
    }

    /// The resolved addresses of a URL's host. Empty for a unix socket.
    pub(crate) fn known(&self, url: &Url) -> &[SocketAddr] {
        let UrlPlace::Tcp { host, port } = &url.place else {
            return &[];
        };
        self.urls
            .get(&(host.clone(), *port))
            .map_or(&[], Vec::as_slice)
    }

    fn is_this_machine(&self, address: &SocketAddr) -> bool {
        !self.is_sent_from_elsewhere && is_own_address(address)
    }

    /// Checks whether an address may be loaded.
    ///
    /// # Errors
    /// It belongs to another machine, and was not confirmed.
    pub(crate) fn check(&self, address: &Address) -> Result<(), String> {
        match address {
            Address::Unix(_) => Ok(()),
            Address::Tcp(at) if self.is_this_machine(at) || self.agreed.contains(&at.ip()) => {
                Ok(())
            }
            Address::Tcp(at) => {
                let agreed: Vec<String> = self.agreed.iter().map(ToString::to_string).collect();
                let agreed = if agreed.is_empty() {
                    "nothing else".to_owned()
                } else {
                    agreed.join(", ")
                };
                Err(format!(
                    "{at} is another machine, and gets no load: agreed was to {agreed}"
                ))
            }
        }
    }
}

/// The URLs of the services under load.
fn urls(plan: &Plan) -> impl Iterator<Item = &Url> {
    plan.variants
        .iter()
        .filter_map(Variant::entry_service)
        .filter_map(Service::url)
}

fn is_loopback(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Whether an address belongs to this machine in our own network namespace, regardless of its name. A packet
/// to such an address also has it as source. Nothing is sent.
pub(crate) fn is_own_address(at: &SocketAddr) -> bool {
    let any: IpAddr = if at.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    // The port does not matter, and 0 cannot be connected to.
    let with_port = SocketAddr::new(at.ip(), at.port().max(1));
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(if at.port() == 0 { &with_port } else { at })?;
        socket.local_addr()
    });
    is_loopback(at.ip()) || from.is_ok_and(|from| from.ip() == at.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let problems = |problems| panic!("{problems:#?}");
        plan::parse(
            &format!("name = \"x\"\n{text}\n[measure]\nduration = \"1s\"\n"),
            std::path::Path::new("/"),
        )
        .unwrap_or_else(problems)
    }

    fn address(text: &str) -> Address {
        Address::Tcp(text.parse().expect("an address"))
    }

    /// Resolved by a resolver that returns this address for every name.
    fn found(plan: &Plan, at: &str) -> Result<Destinations, String> {
        let at: IpAddr = at.parse().expect("an address");
        Destinations::looked_up(plan, &|_, port| Ok(vec![SocketAddr::new(at, port)]))
    }

    #[test]
    fn an_address_is_this_machines_whatever_it_is_called() {
        let is_own = |text: &str| is_own_address(&text.parse().expect("an address"));
        assert!(is_own("127.0.0.1:1") && is_own("127.0.1.1:1") && is_own("[::ffff:127.0.0.1]:1"));
        assert!(is_own("0.0.0.0:1") && is_own("[::]:1"));
        // Reserved for documentation (RFC 5737).
        assert!(!is_own("192.0.2.7:1") && !is_own("192.0.2.7:0"));
    }

    #[test]
    fn names_are_judged_by_the_address_they_lead_to() {
        let none = DeployedServices::default();
        for (url, at, strangers) in [
            (
                "http://prod.localhost:80/",
                "192.0.2.7",
                vec!["prod.localhost (192.0.2.7)"],
            ),
            (
                "http://localhost/",
                "192.0.2.7",
                vec!["localhost (192.0.2.7)"],
            ),
            ("http://shop.example/", "127.0.0.1", vec![]),
            ("http://192.0.2.7/", "192.0.2.7", vec!["192.0.2.7"]),
            ("http://unix:/run/shop.sock:/", "192.0.2.7", vec![]),
        ] {
            let plan = plan(&format!("[services.api]\nurl = \"{url}\""));
            let mut destinations = found(&plan, at).expect("it is found");
            assert_eq!(destinations.strangers(&plan, &none), strangers, "{url}");
            let to = address(&format!("{at}:80"));
            assert_eq!(destinations.check(&to).is_ok(), at == "127.0.0.1", "{url}");
            destinations.agree(&plan, &none);
            // Only the address at the time of the confirmation is permitted.
            assert_eq!(
                destinations.check(&to).is_ok(),
                at == "127.0.0.1" || !strangers.is_empty(),
                "{url}"
            );
            assert!(
                destinations.check(&address("192.0.2.8:80")).is_err(),
                "{url}"
            );
        }
    }

    #[test]
    fn to_generators_elsewhere_this_machine_is_another() {
        let generators = "[generators]\nlocal = 0\nssh = [\"bench-2\"]\naddress = \"10.0.0.2\"";
        let plan = plan(&format!(
            "[services.api]\nurl = \"http://shop.example/\"\n{generators}"
        ));
        let why = found(&plan, "127.0.0.1").expect_err("to each generator that is itself");
        assert!(why.contains("shop.example is 127.0.0.1 here"), "{why}");
        let mut own = found(&plan, "127.0.0.1").unwrap_or_default();
        own.is_sent_from_elsewhere = true;
        assert!(
            own.check(&address("127.0.0.1:80")).is_err(),
            "to a generator another machine"
        );
    }
}
