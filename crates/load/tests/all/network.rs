//! Hosts connected by a cable, made of network namespaces, so faults do not affect anything else.
//!
//! They have no name, and disappear with the last thread and socket in them, however a test ends. This takes
//! root and the command `ip`. It does not touch the network that this process was started in.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use proofload_load::DriverChoice;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::for_both_drivers;
use crate::server::wait_until;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A host with only a loopback interface.
pub struct Host(File);

/// A client's host and a server's.
pub struct Network {
    pub client: Host,
    pub server: Host,
}

/// Runs a test once for each driver if hosts can be created. Without root it prints that the test was
/// skipped.
///
/// CI runs as root. If root cannot create them, the test fails instead of being skipped.
pub fn with_hosts(test: &str, job: impl Fn(DriverChoice) + Sync) {
    if rustix::process::geteuid().is_root() {
        return for_both_drivers(job);
    }
    // Not with a macro: the test runner captures what a passing test prints.
    let _ = writeln!(
        std::io::stderr(),
        "skipped: {test}: network namespaces take root"
    );
}

impl Host {
    pub fn new() -> Host {
        let made = std::thread::spawn(|| {
            // SAFETY: it moves this thread to a new network and leaves its memory and files unchanged.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect(
                "a network namespace needs CAP_SYS_ADMIN, which root lacks in some containers",
            );
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        let host = Host(made.join().unwrap());
        host.ip("link set lo up");
        host
    }

    /// Runs `job` on this host, with the threads and sockets it makes.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .unwrap();
                job()
            });
            there
                .join()
                .expect("see above for what failed on this host")
        })
    }

    /// Commands for `ip`, one per line.
    pub fn ip(&self, commands: &str) {
        self.run(|| {
            let mut ip = Command::new(ip_path())
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            ip.stdin
                .take()
                .unwrap()
                .write_all(commands.as_bytes())
                .unwrap();
            assert!(
                ip.wait().unwrap().success(),
                "see above for what ip said to\n{commands}"
            );
        });
    }

    pub fn set_ipv4(&self, name: &str, value: &str) {
        self.run(|| std::fs::write(Path::new("/proc/sys/net/ipv4").join(name), value))
            .unwrap();
    }
}

fn ip_path() -> &'static str {
    ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .expect("the command ip is missing: run scripts/setup, or apt-get install iproute2")
}

impl Network {
    pub fn new() -> Network {
        let (client, server) = (Host::new(), Host::new());
        let far = format!("/proc/{}/fd/{}", std::process::id(), server.0.as_raw_fd());
        // Both know each other's address on the cable, so nothing waits for ARP, which retries only once a
        // second.
        let (near_mac, far_mac) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        client.ip(&format!(
            "link add near address {near_mac} type veth peer name far address {far_mac} netns {far}
             address add {CLIENT}/24 dev near
             link set near up
             neighbour add {SERVER} lladdr {far_mac} dev near"
        ));
        server.ip(&format!(
            "address add {SERVER}/24 dev far
             link set far up
             neighbour add {CLIENT} lladdr {near_mac} dev far"
        ));
        // The kernel takes some time to bring the link up. No process listens, so a refusal proves that
        // packets arrive.
        let anyone = SocketAddr::from((SERVER, 1));
        let call = || {
            TcpStream::connect_timeout(&anyone, Duration::from_millis(20))
                .unwrap_err()
                .kind()
        };
        client.run(|| wait_until("packets arrive", || call() == ErrorKind::ConnectionRefused));
        Network { client, server }
    }

    /// A free port of the server.
    pub fn listen(&self) -> TcpListener {
        self.server
            .run(|| TcpListener::bind(SocketAddr::from((SERVER, 0))))
            .unwrap()
    }

    /// Drops all packets of the client and the server from now on.
    pub fn lose_packets(&self) {
        self.server.ip(&format!("route add blackhole {CLIENT}/32"));
    }

    pub fn carry_packets(&self) {
        self.server
            .ip(&format!("route delete blackhole {CLIENT}/32"));
    }
}
