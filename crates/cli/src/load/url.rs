//! The URL on the command line: what of it goes to the resolver, and what into the request.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long an address may take to accept a connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// `http://HOST:PORT/PATH?QUERY`, or `https`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is `https`.
    pub secure: bool,
    /// A name or an address; an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: String,
}

impl Url {
    /// Reads a URL; `http://` may be left out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Url, String> {
        let (secure, rest) = match text.split_once("://") {
            None => (false, text),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => {
                return Err(format!("{text}: {scheme} cannot be loaded, only http and https"));
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(format!("{text}: user and password belong into a header: -H 'Authorization: ...'"));
        }
        let (host, port) =
            host_and_port(authority, default_port(secure)).map_err(|problem| format!("{text}: {problem}"))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url { secure, host, port, path: format!("{slash}{path}") })
    }

    /// Host and port as in the URL and in the `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.secure) { host } else { format!("{host}:{}", self.port) }
    }

    /// Without the path.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }

    /// The first of the host's addresses that accepts a connection, of those of the same family as `source` if there is one.
    /// One connection is opened for it, and closed.
    ///
    /// # Errors
    /// [`NoAddress`]: the host has none, or nobody answers there.
    pub fn resolve(&self, source: Option<IpAddr>) -> Result<SocketAddr, NoAddress> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.map_err(|error| NoAddress::Unknown(format!("{}: {error}", self.host)))?;
        let fits = |address: &SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
        let mut why = match source {
            None => "it has no address".to_owned(),
            Some(source) => format!("it has no address of the same family as --source {source}"),
        };
        for address in found.filter(fits) {
            match TcpStream::connect_timeout(&address, PROBE_TIMEOUT) {
                Ok(_) => return Ok(address),
                Err(error) => why = error.to_string(),
            }
        }
        Err(NoAddress::Silent(format!("cannot connect to {}: {why}", self.authority())))
    }
}

/// Why there is nothing to load.
#[derive(Debug)]
pub enum NoAddress {
    /// The name means nothing.
    Unknown(String),
    /// Nobody accepts connections.
    Silent(String),
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { HTTPS_PORT } else { HTTP_PORT }
}

fn host_and_port(authority: &str, default_port: u16) -> Result<(String, u16), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("the [ of the address is never closed")?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err("there is no host".into());
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some("") => default_port,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("{digits:?} is no port, from 1 to 65535")),
        },
        None => return Err(format!("{port:?} after the address is no port")),
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_reads_as_it_is_meant() {
        for (text, authority, path) in [
            ("http://127.0.0.1:3000", "127.0.0.1:3000", "/"),
            ("HTTP://localhost/a/b?c=d#e", "localhost", "/a/b?c=d"),
            ("localhost:8080?q", "localhost:8080", "/?q"),
            ("http://[::1]:81/", "[::1]:81", "/"),
            ("http://host:80/", "host", "/"),
            ("https://host:443", "host", "/"),
            ("https://host:80/", "host:80", "/"),
        ] {
            let url = Url::read(text).unwrap();
            assert_eq!((url.authority().as_str(), url.path.as_str()), (authority, path), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_by_name() {
        for (text, problem) in [
            ("ftp://localhost/", "ftp cannot"),
            ("http:///path", "no host"),
            ("http://host:99999/", "99999"),
            ("http://host:0/", "no port"),
            ("http://[::1/", "never closed"),
            ("http://user:secret@host/", "Authorization"),
        ] {
            let error = Url::read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
