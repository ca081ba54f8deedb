//! What a spec cannot ask for, refused before anything starts: what is wrong, the value and the limit.
//!
//! It opens a socket for a moment to see whether a source address is one of this machine's, and sends nothing.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::net::{AddressFamily, SocketType};

use crate::arena::RequestArena;
use crate::protocol;
use crate::{Address, Arrivals, Lanes, LoadError, LoadSpec, Protocol};

/// Requests under way on one connection: far more than any server takes.
const LANES_MAX: u32 = 1000;
/// Of a unix socket's path: `sun_path` of unix(7), without the byte that ends it.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What the spec says of itself.
pub(super) fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    if spec.connections == 0 {
        return refuse("load.connections", "0 is too few, at least 1".into());
    }
    if spec.threads == 0 || spec.threads > spec.connections {
        let limit = spec.connections;
        return refuse(
            "load.threads",
            format!("{} threads for {limit} connections, from 1 to {limit}", spec.threads),
        );
    }
    if let Some(Lanes { first, of }) = spec.lanes
        && first.checked_add(spec.threads).is_none_or(|end| end > of)
    {
        let problem = format!("{} threads from lane {first} on, of {of} lanes", spec.threads);
        return refuse("load.lanes", problem);
    }
    check_protocol(spec.protocol)?;
    if let Arrivals::Open { rate, .. } = spec.arrivals
        && let Some(problem) = rate.problem()
    {
        return refuse("load.rate", problem);
    }
    if spec.timeout.is_zero() {
        return refuse("load.timeout", "0 is too short for any response".into());
    }
    if spec.connect_timeout.is_zero() {
        return refuse("load.connect_timeout", "0 is too short for any connection".into());
    }
    match &spec.address {
        Address::Tcp(address) => check_sources(spec, *address),
        Address::Unix(path) => check_socket(spec, path),
    }
}

/// What its requests say, once they are rendered.
pub(super) fn check_requests(spec: &LoadSpec, arena: &RequestArena) -> Result<(), LoadError> {
    let row = protocol::row(spec.protocol);
    match arena.variants().find(|(_, bytes)| !(row.has_form)(bytes)) {
        None => Ok(()),
        Some((endpoint, _)) => refuse(
            "load.requests",
            format!("{:?} cannot be sent over {}: it needs a host that is one", endpoint.name, row.name),
        ),
    }
}

fn check_protocol(protocol: Protocol) -> Result<(), LoadError> {
    let (field, what) = protocol::row(protocol).lanes;
    match protocol.lanes() {
        1..=LANES_MAX => Ok(()),
        lanes => refuse(field, format!("{lanes} {what}, from 1 to {LANES_MAX}")),
    }
}

/// Each source is of the target's family and one of this machine's addresses.
fn check_sources(spec: &LoadSpec, target: SocketAddr) -> Result<(), LoadError> {
    for &source in &spec.sources {
        if source.is_ipv4() != target.is_ipv4() {
            let problem = format!("{source} cannot reach {target}: one is IPv4, the other IPv6");
            return refuse("load.sources", problem);
        }
        let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let bound = rustix::net::socket(family, SocketType::STREAM, None)
            .and_then(|socket| rustix::net::bind(&socket, &SocketAddr::new(source, 0)));
        if let Err(errno) = bound {
            let problem =
                format!("{source} cannot be connected from: {errno}; is it an address of this machine?");
            return refuse("load.sources", problem);
        }
    }
    Ok(())
}

fn check_socket(spec: &LoadSpec, path: &Path) -> Result<(), LoadError> {
    let bytes = path.as_os_str().as_bytes();
    if let Some(source) = spec.sources.first() {
        let problem = format!("{source} for the unix socket {}: sources are for TCP", path.display());
        return refuse("load.sources", problem);
    }
    if bytes.is_empty() || bytes.contains(&0) {
        return refuse(
            "load.address",
            format!("{:?} is no path of a unix socket", path.display().to_string()),
        );
    }
    if bytes.len() > SOCKET_PATH_BYTES_MAX {
        let (length, path) = (bytes.len(), path.display());
        let problem = format!(
            "the path of a unix socket has {length} bytes, at most {SOCKET_PATH_BYTES_MAX}: {path}; a symbolic link makes it shorter"
        );
        return refuse("load.address", problem);
    }
    Ok(())
}

fn refuse<T>(field: &'static str, problem: String) -> Result<T, LoadError> {
    Err(LoadError::Spec { field, problem })
}
