//! A link with limited rate or added delay between a client and the services of one trial.
//!
//! ```text
//! client ── link0 ═══ rate each way, delay each way ═══ link0 ── services ── loopback among them
//! 198.18.0.1                                        198.18.0.2
//! ```
//! Both sides are unnamed network namespaces. They and their link disappear with the last process, thread and
//! descriptor in them, however Proofload ends. Other processes on the machine do not notice them. In each
//! namespace only the other side is reachable. Threads enter a namespace to start processes in it.
//!
//! The rate is limited by the kernel's token bucket filter (tbf) at both ends. The delay comes from netem.
//! The round trip is measured before the link is used.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use machine::process::{field, text};
use model::quantity::decimal;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The two addresses, from the block that RFC 2544 reserves for network benchmarks.
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVICES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Device name at each end.
const DEVICE: &str = "link0";
/// Fixed hardware addresses, so that nothing waits for ARP.
const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVICES_MAC: &str = "02:00:00:00:00:02";
/// Time that a new link may take for its first packet, beyond its configured delay.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Number of round trips, of which the shortest counts. Others may be slow because the machine is busy.
const ROUND_TRIPS: usize = 3;
/// A port without listener in a new namespace. A refused connection takes one round trip.
const NOBODY: u16 = 1;

/// Two hosts with a link between them.
#[derive(Debug)]
pub struct NetworkPair {
    /// The client's host.
    pub client: HostNamespace,
    /// The services' host.
    pub services: HostNamespace,
}

impl NetworkPair {
    /// Creates the network that `link` describes.
    ///
    /// # Errors
    /// If the user lacks permission, a command or a kernel module is missing, the kernel refuses, or
    /// the measured round trip is shorter than configured.
    pub fn make(link: &plan::Network) -> Result<Self, Error> {
        can_be_made()?;
        let (client, services) = (HostNamespace::new()?, HostNamespace::new()?);
        // A path by which commands find it.
        let far = format!("/proc/{}/fd/{}", process::id(), services.0.as_raw_fd());
        client.run(
            "ip",
            &format!("link add {DEVICE} type veth peer name {DEVICE} netns {far}"),
        )?;
        let delay = link.delay.filter(|delay| !delay.is_zero());
        let ends = [
            (&client, (CLIENT, CLIENT_MAC), (SERVICES, SERVICES_MAC)),
            (&services, (SERVICES, SERVICES_MAC), (CLIENT, CLIENT_MAC)),
        ];
        for (host, near, far) in ends {
            // Disables IPv6, whose announcements would be unexpected packets. Errors are ignored: either
            // there is no IPv6, or a few packets do no harm.
            let quiet = format!("/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6");
            let _ = host.within(|| fs::write(quiet, "1"));
            host.run("ip", &end_of_link(near, far))?;
            if let Some(delay) = delay {
                host.batch("tc", &netem(delay))?
                    .map_err(|reason| no_netem(&reason))?;
            }
            if let Some(rate) = link.rate_bit_per_s {
                host.run("tc", &bucket(rate, delay.is_some()))?;
            }
        }
        let network = Self { client, services };
        network.measure(delay.unwrap_or_default())?;
        Ok(network)
    }

    /// Address on which the entry must listen to be reached by the client.
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(SERVICES)
    }

    /// Checks that the shortest round trip, once packets arrive, is as long as configured.
    fn measure(&self, delay: Duration) -> Result<(), Error> {
        let _there = self.client.visit()?;
        let least = delay * 2;
        let patience = PATIENCE + least * 10;
        let deadline = Instant::now() + patience;
        let mut found: Vec<Duration> = Vec::new();
        while found.len() < ROUND_TRIPS {
            let begin = Instant::now();
            if begin >= deadline {
                let within = patience.as_secs();
                let message =
                    format!("the link of `load.network` carried nothing within {within} s");
                return Err(Error::new(message));
            }
            let nobody = SocketAddr::from((SERVICES, NOBODY));
            let answer = TcpStream::connect_timeout(&nobody, least + PATIENCE / 4);
            match answer.map_err(|error| error.kind()) {
                Err(ErrorKind::ConnectionRefused) => found.push(begin.elapsed()),
                // The kernel takes a moment to detect the carrier.
                _ => thread::sleep(LOOK_AGAIN),
            }
        }
        let shortest = found.into_iter().min().unwrap_or_default();
        if shortest >= least {
            return Ok(());
        }
        // Precise numbers, because the two may differ by little.
        let shown = |time: Duration| decimal(time.as_secs_f64() * 1e3, 3);
        Err(Error::new(format!(
            "the link of `load.network` is not what was asked for: a round trip took {} ms, at least {} ms are due",
            shown(shortest),
            shown(least)
        )))
    }
}

/// Checks that this user on this machine can create networks, as far as possible without creating one.
///
/// # Errors
/// The missing permission or component.
pub fn can_be_made() -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        let message =
            "`load.network` takes root: it makes network namespaces with a link between them";
        let hint = "run it as root, or leave `load.network` out to measure over loopback";
        return Err(Error::new(message).help(hint));
    }
    if !has_capabilities() {
        return Err(refused(
            "root has not all rights here",
            "a container withholds them",
        ));
    }
    ["ip", "tc"]
        .into_iter()
        .try_for_each(|command| find(command).map(drop))
}

/// Whether this process has CAP_NET_ADMIN and CAP_SYS_ADMIN. True if the kernel does not report it.
fn has_capabilities() -> bool {
    let status = text(std::process::id(), "status");
    let effective = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    effective.is_none_or(|mask| [12, 21].iter().all(|bit| mask >> bit & 1 == 1))
}

/// Configures the addresses of one end, and its neighbour.
fn end_of_link((address, mac): (Ipv4Addr, &str), (far, far_mac): (Ipv4Addr, &str)) -> String {
    let length = QUEUE_FRAMES;
    format!(
        "link set {DEVICE} address {mac} txqueuelen {length}\n\
         address add {address}/30 dev {DEVICE}\n\
         link set {DEVICE} up\n\
         neighbour add {far} lladdr {far_mac} dev {DEVICE} nud permanent\n"
    )
}

/// Error for a refusal of the kernel.
fn refused(what: impl std::fmt::Display, reason: impl std::fmt::Display) -> Error {
    Error::new(format!("cannot make the link of `load.network`: {what}: {reason}")).help(
        "it takes CAP_SYS_ADMIN and CAP_NET_ADMIN, which root lacks in many containers, and a kernel with veth, tbf and, for a delay, \
         netem",
    )
}

/// Error for a kernel without netem, or one that cannot load it.
fn no_netem(reason: &str) -> Error {
    Error::new(format!(
        "`load.network.delay` takes the kernel module sch_netem, which cannot be used here: {reason}"
    ))
    .help("install and load it (Ubuntu: apt-get install linux-modules-extra-$(uname -r); modprobe sch_netem), or leave `delay` out")
}

// One side of a link: a network namespace with its own loopback, which threads can enter.
//
// It creates namespaces, and runs `ip` and `tc` in them. Other modules provide the arguments.

/// Folders of administration commands, which are often not in a user's PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// The namespace of the thread that opens this file.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. It exists as long as this value and everything that was created in it.
#[derive(Debug)]
pub struct HostNamespace(File);

/// Finds a command for network configuration.
fn find(command: &str) -> Result<PathBuf, Error> {
    let mut candidates = FOLDERS.iter().map(|folder| Path::new(folder).join(command));
    candidates.find(|path| path.exists()).ok_or_else(|| {
        Error::new(format!(
            "`load.network` takes the command {command}, which is not installed"
        ))
        .help("ip and tc come together: apt-get install iproute2")
    })
}

impl HostNamespace {
    /// Creates a namespace with its loopback up.
    fn new() -> Result<Self, Error> {
        let refused = |error: std::io::Error| refused("a network namespace", error);
        // On a separate thread, so that the caller's thread stays in its namespace.
        let made = thread::Builder::new().name("network".to_owned()).spawn(|| {
            // SAFETY: it moves this thread to a new network and leaves its memory and descriptors as they are.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open(OWN)
        });
        let made = made
            .map_err(refused)?
            .join()
            .map_err(|_| self::refused("a thread", "it failed"))?;
        let host = Self(made.map_err(refused)?);
        host.run("ip", "link set lo up")?;
        Ok(host)
    }

    /// Moves the calling thread into the namespace until the returned value is dropped. Threads, processes
    /// and sockets that are created meanwhile stay there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn visit(&self) -> Result<NamespaceVisit, Error> {
        let home = File::open(OWN).map_err(|error| refused(OWN, error))?;
        enter(&self.0).map_err(|error| refused("entering a network namespace", error))?;
        Ok(NamespaceVisit {
            home,
            _of_this_thread: PhantomData,
        })
    }

    fn within<T>(&self, job: impl FnOnce() -> T) -> Result<T, Error> {
        let _there = self.visit()?;
        Ok(job())
    }

    /// Runs a command in the namespace with input in its batch language.
    fn run(&self, command: &str, lines: &str) -> Result<(), Error> {
        self.batch(command, lines)?
            .map_err(|reason| refused(format!("{command} {lines:?}"), reason))
    }

    /// Runs a command likewise, and returns the reason if the command fails.
    fn batch(&self, command: &str, lines: &str) -> Result<Result<(), String>, Error> {
        let path = find(command)?;
        let batch = || {
            let mut child = machine::command(path)
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()?;
            if let Some(mut input) = child.stdin.take() {
                // A command that stops at an error need not read the rest. Its status reports the failure.
                let _ = input.write_all(lines.as_bytes());
            }
            child.wait_with_output()
        };
        Ok(self
            .within(batch)?
            .map_err(|error| error.to_string())
            .and_then(|output| {
                if output.status.success() {
                    return Ok(());
                }
                let said = String::from_utf8_lossy(&output.stderr);
                Err(said
                    .lines()
                    .find(|line| !line.trim().is_empty())
                    .unwrap_or("it failed")
                    .to_owned())
            }))
    }
}

/// Moves the calling thread back to its own namespace on drop.
#[derive(Debug)]
pub struct NamespaceVisit {
    home: File,
    /// Namespaces belong to threads: another thread could not move this one back.
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for NamespaceVisit {
    fn drop(&mut self) {
        // This succeeds if entering did: it needs the same permission, and the descriptor keeps the namespace
        // alive.
        let _ = enter(&self.home);
    }
}

fn enter(namespace: &File) -> rustix::io::Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

// Arguments of `tc` for a link with a rate. Pure text.
//
// Two sizes decide how closely a token bucket imitates a cable. *Burst* is the amount that may pass at once
// after a pause. On a cable it is zero. It must be at least a frame, or no frame would ever pass. It should
// be as much as the link transfers until the kernel's timer is late, or the rate is not reached. A
// millisecond's worth and at least two frames satisfy both, and a response is at most that much too early.
// *Limit* is the amount that may wait: as much as the link transfers in a quarter of a second, as routers are
// built, and at least a congestion window or two. Packets beyond it are lost, as on a real link. A longer
// queue loses less and is no better: with 64 connections on 20 Mbit/s, a second's worth still overflowed, and
// TCP then waited for more than a second where it waits for 0.2 s now.

/// The largest Ethernet frame, without its checksum.
const FRAME_BYTES: u64 = 1514;
/// Frames in a device's own queue. With a delay many frames are in flight at once. Netem's own limit has the
/// same value.
const QUEUE_FRAMES: u32 = 100_000;
const LATE_PER_S: u64 = 1000;
const QUEUED_PER_S: u64 = 4;
const LIMIT_BYTES_MIN: u64 = 64 << 10;

/// A `tc` line that adds a delay to the device.
fn netem(delay: Duration) -> String {
    let us = delay.as_micros();
    format!("qdisc add dev {DEVICE} root handle 1: netem delay {us}us limit {QUEUE_FRAMES}\n")
}

/// A `tc` line that limits the device's rate, below netem if it has a delay.
fn bucket(bit_per_s: u64, has_delay: bool) -> String {
    let parent = if has_delay {
        "parent 1:1 handle 10:"
    } else {
        "root"
    };
    let bytes_per_s = bit_per_s / 8;
    let burst = (bytes_per_s / LATE_PER_S).max(2 * FRAME_BYTES);
    let limit = (bytes_per_s / QUEUED_PER_S).max(LIMIT_BYTES_MIN);
    format!("qdisc add dev {DEVICE} {parent} tbf rate {bit_per_s}bit burst {burst} limit {limit}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_passes_frames_and_a_fast_one_milliseconds() {
        let bucket = |rate| bucket(rate, false).replace("qdisc add dev link0 root tbf ", "");
        assert_eq!(bucket(8_000), "rate 8000bit burst 3028 limit 65536\n");
        assert_eq!(
            bucket(1_000_000_000),
            "rate 1000000000bit burst 125000 limit 31250000\n"
        );
        // Both are 32-bit numbers in the kernel.
        assert_eq!(
            bucket(10_000_000_000),
            "rate 10000000000bit burst 1250000 limit 312500000\n"
        );
    }
}
