//! Who listens on a port, as the kernel's table of TCP sockets and the descriptors of processes tell.
//!
//! It reads only. What an owner means for a trial is said elsewhere.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::process::describe;

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listener {
    pub address: IpAddr,
    pub inode: u64,
    /// User that opened it.
    pub uid: u32,
}

/// State 0A of `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// All sockets of this network that listen on `port`, on whatever address. Empty also where `/proc` cannot be read.
pub(crate) fn listeners(port: u16) -> Vec<Listener> {
    let mut found = Vec::new();
    // Of the calling thread's network, which need not be that of the other threads.
    for table in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        let Ok(file) = File::open(table) else { continue };
        let mut here = Vec::new();
        for line in BufReader::new(file).lines().skip(1).map_while(Result::ok) {
            match parse(&line) {
                Some((state, local_port, listener)) if state == LISTENING => {
                    here.extend((local_port == port).then_some(listener));
                }
                // The kernel lists listening sockets first. With thousands of closing connections behind them, reading
                // on would cost tens of milliseconds, so it ends where something was found.
                _ if !here.is_empty() => break,
                _ => {}
            }
        }
        found.append(&mut here);
    }
    found
}

/// State, local port and socket of a line of `/proc/net/tcp` or `tcp6`.
fn parse(line: &str) -> Option<(&str, u16, Listener)> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let uid = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let listener = Listener { address: parse_address(address)?, inode, uid };
    Some((state, u16::from_str_radix(port, 16).ok()?, listener))
}

/// An address is written as 32-bit words in the machine's order whose bytes are the address's.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    if text.len() == 8 {
        return Some(IpAddr::V4(Ipv4Addr::from(word(0)?)));
    }
    let words = [word(0)?, word(1)?, word(2)?, word(3)?];
    let bytes: [u8; 16] = words.concat().try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
}

/// Those of `listeners` that a connection to `address` can reach: the kernel prefers the exact address to any address,
/// and there IPv4 to IPv6. There may be several: ports can be shared.
pub(crate) fn reached(listeners: &[Listener], address: IpAddr) -> Vec<Listener> {
    let on = |wanted: IpAddr| -> Vec<Listener> {
        listeners.iter().copied().filter(|listener| listener.address == wanted).collect()
    };
    let candidates =
        [address.to_canonical(), IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let usable = |wanted: &IpAddr| address.is_ipv4() || wanted.is_ipv6();
    candidates.into_iter().filter(usable).map(on).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The inodes of the sockets a process has open; `None`: its descriptors may not be read, or it is gone.
pub(crate) fn open_sockets(pid: u32) -> Option<Vec<u64>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let inode = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    Some(entries.filter_map(|entry| inode(entry.ok()?)).collect())
}

/// `node server.js (pid 123)`, or what else can be said of the owner of a socket.
pub(crate) fn owner(listener: &Listener) -> String {
    let holds = |pid: &u32| open_sockets(*pid).is_some_and(|inodes| inodes.contains(&listener.inode));
    match crate::tree::everyone().iter().map(|stat| stat.id.pid).find(holds) {
        Some(pid) => describe(pid),
        None => format!("a process of user {} whose name may not be read", listener.uid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn at(address: &str) -> Listener {
        Listener { address: address.parse().unwrap(), inode: 1, uid: 0 }
    }

    #[test]
    fn a_socket_of_our_own_is_found_with_its_owner() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listeners(socket.local_addr().unwrap().port());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, "127.0.0.1".parse::<IpAddr>().unwrap());
        assert!(open_sockets(std::process::id()).unwrap().contains(&found[0].inode));
        assert!(owner(&found[0]).ends_with(&format!("(pid {})", std::process::id())));
    }

    #[test]
    fn a_line_of_tcp6_is_read() {
        let line = "   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A \
                    00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0";
        let (state, port, listener) = parse(line).unwrap();
        assert_eq!((state, port), (LISTENING, 8080));
        let expected = Listener { inode: 4711, uid: 1000, ..at("127.0.0.1") };
        assert_eq!(listener, expected);
    }

    #[test]
    fn the_kernel_prefers_the_exact_address() {
        let (exact, any, any6) = (at("127.0.0.1"), at("0.0.0.0"), at("::"));
        let all = [any6, any, at("10.0.0.1"), exact];
        assert_eq!(reached(&all, exact.address), [exact]);
        assert_eq!(reached(&all[..3], exact.address), [any]);
        assert_eq!(reached(&all[..1], exact.address), [any6]);
        assert_eq!(reached(&[any], "::1".parse().unwrap()), []);
    }
}
