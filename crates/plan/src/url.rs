//! URLs of loaded services: the parts for the resolver, and the parts for requests. This is the only parser
//! of them.
//!
//! Text only. It resolves no name and opens no connection.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_form::text_form;

/// Replaces the host for a unix socket: `http://unix:/run/shop.sock:/path`, as in nginx.
const UNIX: &str = "unix:";
const LOCALHOST: &str = "localhost";

/// A parsed `http://HOST:PORT/PATH?QUERY` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "std::borrow::Cow<'_, str>", into = "String")]
pub struct Url {
    /// Whether it is `https`.
    pub secure: bool,
    /// The address.
    pub place: UrlPlace,
    /// Path and query, beginning with `/`.
    pub path: String,
}

/// Address of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlPlace {
    /// A port of a host.
    Tcp {
        /// A name or an address. An IPv6 address is without brackets.
        host: String,
        /// From 1.
        port: u16,
    },
    /// Absolute path of a unix socket.
    Unix(PathBuf),
}

impl Url {
    /// The host's name. An IPv6 address is without its zone, and a unix socket has `localhost`.
    pub fn host(&self) -> &str {
        match &self.place {
            UrlPlace::Tcp { host, .. } if host.contains(':') => {
                host.split('%').next().unwrap_or(host)
            }
            UrlPlace::Tcp { host, .. } => host,
            UrlPlace::Unix(_) => LOCALHOST,
        }
    }

    /// Host and port as in the `Host` header, where a zone means nothing (RFC 6874).
    pub fn authority(&self) -> String {
        let UrlPlace::Tcp { port, .. } = &self.place else {
            return LOCALHOST.to_owned();
        };
        self.with_port(self.host(), *port)
    }

    fn with_port(&self, host: &str, port: u16) -> String {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        if port == default_port(self.secure) {
            host
        } else {
            format!("{host}:{port}")
        }
    }

    /// The URL without the path.
    pub fn origin(&self) -> String {
        let place = match &self.place {
            UrlPlace::Tcp { host, port } => self.with_port(host, *port),
            UrlPlace::Unix(socket) => format!("{UNIX}{}", socket.display()),
        };
        format!("{}://{place}", if self.secure { "https" } else { "http" })
    }

    /// Whether it certainly refers to this machine: to loopback, `0.0.0.0`, or a unix socket.
    pub fn is_local(&self) -> bool {
        let UrlPlace::Tcp { host, .. } = &self.place else {
            return true;
        };
        let name = host.to_ascii_lowercase();
        let address = self
            .host()
            .parse()
            .map(|address: IpAddr| address.to_canonical());
        let is_here = |address: IpAddr| address.is_loopback() || address.is_unspecified();
        name == LOCALHOST || name.ends_with(".localhost") || address.is_ok_and(is_here)
    }

    /// The request target of a path below it: `/api/` and `/orders?x=1` make `/api/orders?x=1`. The URL's own
    /// query is dropped.
    pub fn below(&self, path: &str) -> String {
        let base = self.path.split('?').next().unwrap_or_default();
        format!("{}{path}", base.trim_end_matches('/'))
    }
}

impl FromStr for Url {
    type Err = String;

    /// Parses a URL. `http://` may be omitted. The error follows the URL: "has no host".
    fn from_str(text: &str) -> Result<Url, String> {
        // A query may contain a URL.
        let scheme = text
            .split_once("://")
            .filter(|(scheme, _)| !scheme.contains(['/', '?', ':']));
        let (secure, rest) = match scheme {
            None => (false, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => {
                return Err(format!(
                    "begins with {scheme}, only http and https can be loaded"
                ));
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, path) = match rest.strip_prefix(UNIX) {
            Some(rest) => {
                let (socket, path) = rest.split_once(':').unwrap_or((rest, ""));
                if !socket.starts_with('/') || socket.ends_with('/') {
                    return Err("names no socket by an absolute path".to_owned());
                }
                (UrlPlace::Unix(socket.into()), path)
            }
            None => {
                let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                (tcp(authority, default_port(secure))?, path)
            }
        };
        if let Some(c) = path.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(format!("contains {c:?}, which must be percent-encoded"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url {
            secure,
            place,
            path: format!("{slash}{path}"),
        })
    }
}

fn tcp(authority: &str, default_port: u16) -> Result<UrlPlace, String> {
    if authority.contains('@') {
        return Err("has a user, which belongs into a header such as Authorization".to_owned());
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest
            .split_once(']')
            .ok_or("opens a [ that is never closed")?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err("has no host".to_owned());
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("has a blank in its host".to_owned());
    }
    let port = match port.strip_prefix(':') {
        Some("") => default_port,
        None if port.is_empty() => default_port,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 => port,
            // A part that is not a number may be a password, if the URL has no host.
            _ if !digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err("has a port that is no number, expected 1 to 65535".to_owned());
            }
            _ => return Err(format!("has the port {digits:?}, expected 1 to 65535")),
        },
        None => return Err(format!("has {port:?} behind its address")),
    };
    // RFC 6874 writes the % before the zone of an IPv6 address as %25.
    let host = match host
        .split_once("%25")
        .filter(|(_, zone)| host.contains(':') && !zone.is_empty())
    {
        Some((address, zone)) => format!("{address}%{zone}"),
        None => host.to_owned(),
    };
    Ok(UrlPlace::Tcp { host, port })
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if matches!(self.place, UrlPlace::Unix(_)) {
            ":"
        } else {
            ""
        };
        write!(f, "{}{colon}{}", self.origin(), self.path)
    }
}

impl From<Url> for String {
    fn from(url: Url) -> String {
        url.to_string()
    }
}

text_form!(
    Url = "Url",
    "^([Hh][Tt][Tt][Pp][Ss]?://)?[^/].*$",
    "Where a service runs already: http://HOST:PORT/PATH, https://…, or http://unix:/run/shop.sock:/PATH.",
    "a URL such as \"http://127.0.0.1:3000\"",
    "http://HOST:PORT/PATH or https://…; of a unix socket http://unix:/run/shop.sock:/PATH",
    str::parse
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_reads_as_it_is_meant_and_writes_itself() {
        for (text, authority, path, local) in [
            ("http://127.0.0.1:3000", "127.0.0.1:3000", "/", true),
            ("HTTP://localhost/a/b?c=d#e", "localhost", "/a/b?c=d", true),
            ("example.org:8080?q", "example.org:8080", "/?q", false),
            (
                "localhost:3000/in?to=http://a/",
                "localhost:3000",
                "/in?to=http://a/",
                true,
            ),
            ("http://[::1]:81/", "[::1]:81", "/", true),
            ("http://[fe80::1%25eth0]:81/", "[fe80::1]:81", "/", false),
            ("http://[fe80::1%eth0]/", "[fe80::1]", "/", false),
            ("http://0.0.0.0:80/", "0.0.0.0", "/", true),
            ("http://10.0.0.7:80/", "10.0.0.7", "/", false),
            ("https://host:443", "host", "/", false),
            ("https://host:80/", "host:80", "/", false),
            ("http://unix:/run/a.sock:/b?c", "localhost", "/b?c", true),
            ("https://unix:/run/a.sock", "localhost", "/", true),
        ] {
            let url: Url = text.parse().unwrap();
            let read = (url.authority(), url.path.as_str(), url.is_local());
            assert_eq!(read, (authority.to_owned(), path, local), "{text}");
            assert_eq!(url.to_string().parse(), Ok(url), "{text}");
        }
    }

    #[test]
    fn reads_the_zone_of_an_address_in_both_forms() {
        for text in ["http://[fe80::1%25eth0]:81/", "http://[fe80::1%eth0]:81/"] {
            let url: Url = text.parse().unwrap();
            assert_eq!(
                url.place,
                UrlPlace::Tcp {
                    host: "fe80::1%eth0".to_owned(),
                    port: 81
                }
            );
            assert_eq!(
                (url.host(), url.origin().as_str()),
                ("fe80::1", "http://[fe80::1%eth0]:81")
            );
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_by_name() {
        for (text, problem) in [
            ("ftp://localhost/", "begins with ftp"),
            ("http:///path", "no host"),
            ("http://host:99999/", "99999"),
            ("http://host:0/", "port"),
            ("http://[::1/", "never closed"),
            ("http://user:secret@host/", "Authorization"),
            ("http://unix:run/a.sock:/", "absolute"),
            ("http://a b/", "blank"),
            ("http://a/b c", "percent"),
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn paths_are_below_it() {
        let below = |url: &str, path: &str| url.parse::<Url>().unwrap().below(path);
        assert_eq!(below("http://a", "/x?y"), "/x?y");
        assert_eq!(below("http://a/api/?k=1", "/x"), "/api/x");
    }
}
