//! Services on other machines: which there are, and whom they have to hear.
//!
//! Pure: it knows names, and reaches nobody.

use std::collections::BTreeMap;

use super::{Plan, Service, Variant};

impl Plan {
    /// The hosts that services run on, each with all its services of all variants, every one that differs from the others once.
    pub fn hosts(&self) -> BTreeMap<&str, Vec<&Service>> {
        let mut hosts: BTreeMap<&str, Vec<&Service>> = BTreeMap::new();
        for service in self.variants.iter().flat_map(|variant| &variant.services) {
            let Some(host) = &service.host else { continue };
            let known = hosts.entry(host).or_default();
            if !known.contains(&service) {
                known.push(service);
            }
        }
        hosts
    }

    /// Whether a host's own address is wanted: for services there that others ask for, and that are not told where to listen.
    pub fn wants_address_of(&self, host: &str) -> bool {
        let wants = |variant: &Variant| {
            let there = variant.services.iter().filter(|service| service.host.as_deref() == Some(host));
            there
                .filter(|service| service.address.is_none())
                .any(|service| variant.is_asked_from_elsewhere(service))
        };
        self.variants.iter().any(wants)
    }
}

impl Variant {
    /// Whether this service is asked for something from another machine: by the generator, which is here, or by a service that needs it.
    pub fn is_asked_from_elsewhere(&self, service: &Service) -> bool {
        let by_generator = service.name == self.entry && service.host.is_some();
        let needs_it = self.services.iter().filter(|other| other.needs.contains(&service.name));
        by_generator || needs_it.into_iter().any(|other| other.host != service.host)
    }
}
