//! At which address a machine is found that `ssh` knows by some name: what its configuration makes of the name, resolved.
//!
//! Nothing is connected to. Where the way leads through a proxy of SSH's the address may be one that only the proxy reaches.

use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Command, Stdio};

use crate::HostError;

/// The address of a destination as `ssh` takes it, of version 4 if there is one.
///
/// # Errors
/// If `ssh` is not there or does not take the name, or the name has no address.
pub fn address(destination: &str) -> Result<IpAddr, HostError> {
    let failed = |reason: String| HostError::NoAddress { host: destination.to_owned(), reason };
    let asked = Command::new("ssh").args(["-G", "--", destination]).stdin(Stdio::null()).output();
    let said = asked.map_err(|error| failed(format!("ssh cannot be started: {error}")))?;
    if !said.status.success() {
        let words = String::from_utf8_lossy(&said.stderr);
        return Err(failed(format!("ssh does not know it: {}", words.trim())));
    }
    let name = host_name(&String::from_utf8_lossy(&said.stdout))
        .ok_or_else(|| failed("ssh gives no name for it".to_owned()))?;
    let found = (name.as_str(), 0).to_socket_addrs();
    let found = found.map_err(|error| failed(format!("{name} has no address: {error}")))?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| failed(format!("{name} has no address")))
}

/// What `ssh -G` prints has a keyword and its value on each line.
fn host_name(settings: &str) -> Option<String> {
    let name = settings.lines().find_map(|line| line.strip_prefix("hostname "))?;
    let name = name.trim().trim_start_matches('[').trim_end_matches(']');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_that_the_configuration_gives() {
        let settings = "host bench-1\nuser me\nhostname 10.0.0.7\nport 22\nhostkeyalias x\n";
        assert_eq!(host_name(settings).as_deref(), Some("10.0.0.7"));
        assert_eq!(host_name("hostname [fd00::1]\n").as_deref(), Some("fd00::1"));
        assert_eq!(host_name("user me\n"), None);
    }
}
