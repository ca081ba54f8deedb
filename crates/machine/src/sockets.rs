//! Sockets: listeners, and the range of ports that the kernel assigns to connections.
//!
//! Read-only, in the network namespace of the calling thread, which may differ from that of other threads.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use procfs_core::net::{TcpNetEntries, TcpState};
use procfs_core::{ExplicitSystemInfo, FromReadSI};

use crate::process::{describe, everyone, names, patiently, text};

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// The address that it listens on.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its inode number.
    pub inode: u64,
    /// User that opened it.
    pub uid: u32,
}

/// All listening sockets of this network. Also empty if `/proc` cannot be read.
pub fn listeners() -> Vec<Listener> {
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"].into_iter();
    tables
        .filter_map(|table| patiently(|| File::open(table)).ok())
        .flat_map(|table| parse(BufReader::new(table)))
        .collect()
}

/// The kernel lists listening sockets (state 0A) first. With thousands of closing connections after them,
/// reading on would cost tens of milliseconds, so it ends there.
fn parse(table: impl BufRead) -> Vec<Listener> {
    let mut lines = table.lines().map_while(Result::ok);
    let heading = lines.next().unwrap_or_default();
    let listening = lines.take_while(|line| line.split_ascii_whitespace().nth(3) == Some("0A"));
    let text = listening.fold(heading, |text, line| text + "\n" + &line);
    let here = ExplicitSystemInfo {
        boot_time_secs: 0,
        ticks_per_second: 100,
        page_size: 4096,
        is_little_endian: cfg!(target_endian = "little"),
    };
    let entries =
        TcpNetEntries::from_read(text.as_bytes(), &here).map_or(Vec::new(), |table| table.0);
    let listeners = entries
        .into_iter()
        .filter(|entry| entry.state == TcpState::Listen);
    let listener = listeners.map(|entry| Listener {
        address: entry.local_address.ip().to_canonical(),
        port: entry.local_address.port(),
        inode: entry.inode,
        uid: entry.uid,
    });
    listener.collect()
}

/// The listeners that a connection to `address` can reach. The kernel prefers the exact address to a
/// wildcard, and for those IPv4 to IPv6. There may be several, because ports can be shared.
pub fn reached(listeners: &[Listener], address: IpAddr) -> Vec<Listener> {
    let on = |wanted: IpAddr| -> Vec<Listener> {
        listeners
            .iter()
            .copied()
            .filter(|listener| listener.address == wanted)
            .collect()
    };
    let candidates = [
        address.to_canonical(),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let usable = |wanted: &IpAddr| address.is_ipv4() || wanted.is_ipv6();
    candidates
        .into_iter()
        .filter(usable)
        .map(on)
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Whether an address belongs to this machine: to our network, or to that of any visible process, such as a
/// container's.
pub fn is_address_here(address: IpAddr) -> bool {
    let mut looked_at = HashSet::new();
    everyone().iter().any(|stat| {
        let pid = stat.id.pid;
        // The network of other users' processes may be hidden. Then each process is checked.
        let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let is_new = network.is_none_or(|network| looked_at.insert(network));
        is_new
            && match address.to_canonical() {
                IpAddr::V4(address) => is_local_v4(&text(pid, "net/fib_trie"), address),
                IpAddr::V6(address) => is_local_v6(&text(pid, "net/if_inet6"), address),
            }
    })
}

/// Parses `/proc/net/fib_trie`: an address is followed by its routes, each with its prefix, scope and type.
fn is_local_v4(trie: &str, address: Ipv4Addr) -> bool {
    let (wanted, mut is_below) = (address.to_string(), false);
    trie.lines().map(str::trim).any(|line| {
        is_below = line
            .strip_prefix("|-- ")
            .map_or(is_below, |leaf| leaf == wanted);
        is_below && line == "/32 host LOCAL"
    })
}

/// Parses `/proc/net/if_inet6`: a line for each address begins with it, as 32 digits.
fn is_local_v6(table: &str, address: Ipv6Addr) -> bool {
    let wanted = format!("{:032x}", u128::from(address));
    table.lines().any(|line| line.starts_with(&wanted))
}

/// The inodes of the sockets that listen at a path, as it was given when they were created or with its links
/// resolved.
pub fn unix_listeners(path: &Path) -> Vec<u64> {
    /// `__SO_ACCEPTCON` of the kernel.
    const LISTENS: u64 = 1 << 16;
    let whole = path.canonicalize();
    let is_it = |name: &str| {
        Path::new(name) == path || whole.as_deref().is_ok_and(|whole| whole == Path::new(name))
    };
    let table = fs::read("/proc/thread-self/net/unix").unwrap_or_default();
    // Num RefCount Protocol Flags Type St Inode Path. Paths may contain blanks, and others' may not be text.
    let inode = |line: &str| {
        let (mut fields, mut rest) = ([""; 7], line);
        for field in &mut fields {
            rest = rest.trim_start();
            (*field, rest) = rest.split_at(rest.find(' ')?);
        }
        let flags = u64::from_str_radix(fields[3], 16).ok()?;
        let inode = fields[6].parse().ok()?;
        (flags & LISTENS != 0 && is_it(rest.strip_prefix(' ')?)).then_some(inode)
    };
    String::from_utf8_lossy(&table)
        .lines()
        .skip(1)
        .filter_map(inode)
        .collect()
}

/// The inodes of a process's open sockets. `None` if its descriptors are not readable, or it is gone.
pub fn open_sockets(pid: u32) -> Option<Vec<u64>> {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    let inode = |name: OsString| {
        let link = patiently(|| fs::read_link(folder.join(&name))).ok()?;
        link.to_str()?
            .strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    };
    Some(names(&folder).ok()?.into_iter().filter_map(inode).collect())
}

/// Describes the owner of a socket: `node server.js (pid 123)`, or its user.
pub fn owner(listener: &Listener) -> String {
    let holds =
        |pid: &u32| open_sockets(*pid).is_some_and(|inodes| inodes.contains(&listener.inode));
    match everyone().iter().map(|stat| stat.id.pid).find(holds) {
        Some(pid) => describe(pid),
        None => format!(
            "a process of user {} whose name may not be read",
            listener.uid
        ),
    }
}

/// The ports that the kernel uses for outgoing connections: `ip_local_port_range`.
pub fn local_ports() -> Option<RangeInclusive<u16>> {
    parse_ports(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

/// First and last, both included.
pub(crate) fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = text
        .split_ascii_whitespace()
        .map_while(|end| end.parse().ok());
    Some(ends.next()?..=ends.next()?)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn at(address: &str) -> Listener {
        Listener {
            address: address.parse().unwrap(),
            port: 8080,
            inode: 4711,
            uid: 1000,
        }
    }

    #[test]
    fn a_socket_of_our_own_is_found_with_its_owner() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found: Vec<Listener> = listeners()
            .into_iter()
            .filter(|one| one.port == port)
            .collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, "127.0.0.1".parse::<IpAddr>().unwrap());
        assert!(
            open_sockets(std::process::id())
                .unwrap()
                .contains(&found[0].inode)
        );
        assert!(owner(&found[0]).ends_with(&format!("(pid {})", std::process::id())));
    }

    #[test]
    fn a_unix_socket_is_found_by_a_path_with_blanks() {
        let path = std::env::temp_dir().join(format!("proofload sockets  {}", std::process::id()));
        let socket = UnixListener::bind(&path).unwrap();
        let found = unix_listeners(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            open_sockets(std::process::id())
                .unwrap()
                .contains(&found[0])
        );
        drop(socket);
    }

    #[test]
    fn listening_sockets_are_read_and_nothing_behind_them() {
        let line = |state: &str| {
            format!(
                "   0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 {state} \
                 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0\n"
            )
        };
        let table = format!("  sl  local_address\n{}{}garbage\n", line("0A"), line("06"));
        assert_eq!(parse(table.as_bytes()), [at("127.0.0.1")]);
        assert_eq!(
            (parse("".as_bytes()), parse("sl\nx".as_bytes())),
            (vec![], vec![])
        );
    }

    #[test]
    fn an_address_is_here_if_it_is_local_in_any_network() {
        assert!(is_address_here("127.0.0.1".parse().unwrap()));
        // Reserved for documentation (RFC 5737).
        assert!(!is_address_here("203.0.113.7".parse().unwrap()));
        let trie = "Main:\n     |-- 172.17.0.0\n        /16 link UNICAST\n     |-- 172.17.0.2\n        /32 link UNICAST\n\
                    Local:\n     |-- 172.17.0.2\n        /32 host LOCAL\n     |-- 172.17.255.255\n        /32 link BROADCAST\n";
        let is_local = |address: &str| is_local_v4(trie, address.parse().unwrap());
        assert!(is_local("172.17.0.2"));
        assert!(!is_local("172.17.0.0") && !is_local("172.17.255.255") && !is_local("172.17.0.20"));
        let table = "fd000000000000000000000000000002 04 40 00 82     eth0\n";
        let is_local = |address: &str| is_local_v6(table, address.parse().unwrap());
        assert!(is_local("fd00::2") && !is_local("fd00::20"));
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
