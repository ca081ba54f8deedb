//! Strings that name machines: one to be reached by SSH, and an address to listen on.
//!
//! They say whether a text can be such a thing. Whether there is one is found out when it is reached.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{FormError, TextForm, text_form};

/// A machine that SSH reaches, written `ssh://bench-1` or `ssh://user@10.0.0.7:2222`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Host(pub String);

const SCHEME: &str = "ssh://";
const HOST_BYTES_MAX: usize = 300;

impl TextForm for Host {
    const NAME: &'static str = "Host";
    const WANTED: &'static str = "a host such as \"ssh://bench-1\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected a host such as \"ssh://bench-1\"",
            hint: "ssh://HOST, ssh://USER@HOST or ssh://USER@HOST:PORT; HOST may be a name of ~/.ssh/config",
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| error("does not begin with `ssh://`"))?;
        let (user, place) = rest.rsplit_once('@').map_or((None, rest), |(user, place)| (Some(user), place));
        let (host, port) = divided(place);
        // What begins with a hyphen would be an option to ssh.
        let plain = |word: &str| {
            let odd = |c: char| c.is_whitespace() || c.is_control() || "/@[]?#%\\\"'`$;&|<>()*".contains(c);
            !word.is_empty() && !word.starts_with('-') && !word.contains(odd)
        };
        if text.len() > HOST_BYTES_MAX || !plain(host) || !user.is_none_or(plain) {
            return Err(error("names no host"));
        }
        if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
            return Err(error("has a port that is not from 1 to 65535"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Host and port; an IPv6 address stands in brackets.
fn divided(place: &str) -> (&str, Option<&str>) {
    let bracketed = place.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match bracketed {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("no port"))),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An IP address that a service listens on, and that others find it at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(crate) struct Address(pub IpAddr);

impl TextForm for Address {
    const NAME: &'static str = "Address";
    const WANTED: &'static str = "an IP address such as \"10.0.0.7\"";

    fn read(text: &str) -> Result<Self, FormError> {
        let error = |reason: &str| FormError {
            reason: reason.to_owned(),
            label: "expected an IP address such as \"10.0.0.7\"",
            hint: "one address of the machine that the service runs on, at which others can connect to it; no name, no port",
        };
        let address: IpAddr = text.parse().map_err(|_| error("is not an IP address"))?;
        if address.is_unspecified() || address.is_multicast() {
            return Err(error("is no address that anybody can connect to"));
        }
        Ok(Self(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

text_form!(
    Host,
    "^ssh://[^-/\\s][^/\\s]*$",
    "A machine reached by SSH: ssh://HOST, ssh://USER@HOST or ssh://USER@HOST:PORT."
);
text_form!(Address, "^[0-9A-Fa-f:.]+$", "An IP address, of version 4 or 6.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_what_ssh_takes_and_nothing_that_it_would_take_for_something_else() {
        for good in [
            "ssh://h",
            "ssh://bench-1.example.org",
            "ssh://me@10.0.0.7:22",
            "ssh://[fe80::1]:22",
            "ssh://a_b",
        ] {
            assert_eq!(Host::read(good).unwrap().to_string(), good);
        }
        for bad in [
            "h",
            "ssh:h",
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-l@h",
            "ssh://@h",
            "ssh://h/path",
            "ssh://h:0",
            "ssh://h:x",
            "ssh://h:99999",
            "ssh://[::1]22",
            "ssh://::1",
            "ssh://a b",
            "ssh://$(x)",
            "kubernetes://x",
        ] {
            assert!(Host::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_one_that_others_can_connect_to() {
        assert_eq!(Address::read("10.0.0.7").unwrap().to_string(), "10.0.0.7");
        assert_eq!(Address::read("fd00::7").unwrap().to_string(), "fd00::7");
        for bad in ["", "host", "10.0.0.7:80", "0.0.0.0", "::", "224.0.0.1", "[::1]", "10.0.0.256"] {
            assert!(Address::read(bad).is_err(), "{bad}");
        }
    }
}
