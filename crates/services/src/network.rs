//! A link of limited rate, or with a delay, between a client and the services of one trial.
//!
//! ```text
//! client ── link0 ═══ rate each way, delay each way ═══ link0 ── services ── loopback among them
//! 198.18.0.1                                        198.18.0.2
//! ```
//! Both sides are network namespaces without a name: they, and the link between them, are gone with the last process,
//! thread and descriptor on them, whatever ends Proofload. Nobody else on the machine notices them, and on them nothing
//! is reachable but the other side. Threads enter them to start what shall live there.
//!
//! Rate is the kernel's token bucket filter (tbf) at both ends, delay is netem's. The round trip is measured before the
//! link is used.

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

/// The two addresses, of the block that RFC 2544 sets aside for measuring networks.
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVICES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The device at each end.
const DEVICE: &str = "link0";
/// Hardware addresses known beforehand, so that nothing waits for ARP.
const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVICES_MAC: &str = "02:00:00:00:00:02";
/// How long a new link may take to carry its first packet, beyond what it is asked to take.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Round trips of which the shortest counts: others may have met a busy machine.
const ROUND_TRIPS: usize = 3;
/// A port on which nobody listens in a namespace that was just made. To be refused takes one round trip.
const NOBODY: u16 = 1;

/// Two hosts with a link between them.
#[derive(Debug)]
pub struct Network {
    /// Where the client is.
    pub client: Host,
    /// Where the services are.
    pub services: Host,
}

impl Network {
    /// Makes one as `link` says.
    ///
    /// # Errors
    /// If this user may not, a command or a kernel module is missing, the kernel refuses, or the link is shorter than asked.
    pub fn make(link: &plan::Network) -> Result<Self, Error> {
        can_be_made()?;
        let (client, services) = (Host::new()?, Host::new()?);
        // A path by which commands find it.
        let far = format!("/proc/{}/fd/{}", process::id(), services.0.as_raw_fd());
        client.run("ip", &format!("link add {DEVICE} type veth peer name {DEVICE} netns {far}"))?;
        let delay = link.delay.filter(|delay| !delay.is_zero());
        let ends = [
            (&client, (CLIENT, CLIENT_MAC), (SERVICES, SERVICES_MAC)),
            (&services, (SERVICES, SERVICES_MAC), (CLIENT, CLIENT_MAC)),
        ];
        for (host, near, far) in ends {
            // No IPv6 on it: its announcements would be packets that nobody asked for. Where there is none, or no right to write this,
            // there is nothing to keep off or no harm in it.
            let quiet = format!("/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6");
            let _ = host.within(|| fs::write(quiet, "1"));
            host.run("ip", &end_of_link(near, far))?;
            if let Some(delay) = delay {
                host.batch("tc", &netem(delay))?.map_err(|reason| no_netem(&reason))?;
            }
            if let Some(rate) = link.rate_bit_per_s {
                host.run("tc", &bucket(rate, delay.is_some()))?;
            }
        }
        let network = Self { client, services };
        network.measure(delay.unwrap_or_default())?;
        Ok(network)
    }

    /// Where the entry must listen to be reached by the client.
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(SERVICES)
    }

    /// Whether the shortest of some round trips, once packets arrive at all, is as long as it has to be.
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
                let message = format!("the link of `load.network` carried nothing within {within} s");
                return Err(Error::new(message));
            }
            let nobody = SocketAddr::from((SERVICES, NOBODY));
            let answer = TcpStream::connect_timeout(&nobody, least + PATIENCE / 4);
            match answer.map_err(|error| error.kind()) {
                Err(ErrorKind::ConnectionRefused) => found.push(begin.elapsed()),
                // The kernel takes a moment to see that the cable is plugged in.
                _ => thread::sleep(LOOK_AGAIN),
            }
        }
        let shortest = found.into_iter().min().unwrap_or_default();
        if shortest >= least {
            return Ok(());
        }
        // Exact: they may differ by little.
        let shown = |time: Duration| decimal(time.as_secs_f64() * 1e3, 3);
        Err(Error::new(format!(
            "the link of `load.network` is not what was asked for: a round trip took {} ms, at least {} ms are due",
            shown(shortest),
            shown(least)
        )))
    }
}

/// Whether this user on this machine can have networks at all, as far as can be told without making one.
///
/// # Errors
/// What is missing.
pub fn can_be_made() -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        let message = "`load.network` takes root: it makes network namespaces with a link between them";
        let hint = "run it as root, or leave `load.network` out to measure over loopback";
        return Err(Error::new(message).help(hint));
    }
    if !has_capabilities() {
        return Err(refused("root has not all rights here", "a container withholds them"));
    }
    ["ip", "tc"].into_iter().try_for_each(|command| find(command).map(drop))
}

/// Whether this process has CAP_NET_ADMIN and CAP_SYS_ADMIN; assumed where that is not told.
fn has_capabilities() -> bool {
    let status = text(std::process::id(), "status");
    let effective = field(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    effective.is_none_or(|mask| [12, 21].iter().all(|bit| mask >> bit & 1 == 1))
}

/// Addresses of one end, and who is at the other.
fn end_of_link((address, mac): (Ipv4Addr, &str), (far, far_mac): (Ipv4Addr, &str)) -> String {
    let length = QUEUE_FRAMES;
    format!(
        "link set {DEVICE} address {mac} txqueuelen {length}\n\
         address add {address}/30 dev {DEVICE}\n\
         link set {DEVICE} up\n\
         neighbour add {far} lladdr {far_mac} dev {DEVICE} nud permanent\n"
    )
}

/// The kernel refused something.
fn refused(what: impl std::fmt::Display, reason: impl std::fmt::Display) -> Error {
    Error::new(format!("cannot make the link of `load.network`: {what}: {reason}")).help(
        "it takes CAP_SYS_ADMIN and CAP_NET_ADMIN, which root lacks in many containers, and a kernel with veth, tbf and, for a delay, \
         netem",
    )
}

/// The kernel has no netem, or cannot load it.
fn no_netem(reason: &str) -> Error {
    Error::new(format!(
        "`load.network.delay` takes the kernel module sch_netem, which cannot be used here: {reason}"
    ))
    .help("install and load it (Ubuntu: apt-get install linux-modules-extra-$(uname -r); modprobe sch_netem), or leave `delay` out")
}

// One side of a link: a network namespace with its own loopback, which threads can visit.
//
// It makes namespaces, and runs `ip` and `tc` in them; what they are told is said elsewhere.

/// Where administrators' commands are; users often have none of it in their PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// The namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace that lives as long as this value, and as what was made in it.
#[derive(Debug)]
pub struct Host(File);

/// Where a command is that sets up networks.
fn find(command: &str) -> Result<PathBuf, Error> {
    let mut candidates = FOLDERS.iter().map(|folder| Path::new(folder).join(command));
    candidates.find(|path| path.exists()).ok_or_else(|| {
        Error::new(format!("`load.network` takes the command {command}, which is not installed"))
            .help("ip and tc come together: apt-get install iproute2")
    })
}

impl Host {
    /// A new one, with its loopback up.
    fn new() -> Result<Self, Error> {
        let refused = |error: std::io::Error| refused("a network namespace", error);
        // A thread of its own, so that the caller's is where it was.
        let made = thread::Builder::new().name("network".to_owned()).spawn(|| {
            // SAFETY: it moves this thread to a new network and leaves its memory and descriptors as they are.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open(OWN)
        });
        let made = made.map_err(refused)?.join().map_err(|_| self::refused("a thread", "it failed"))?;
        let host = Self(made.map_err(refused)?);
        host.run("ip", "link set lo up")?;
        Ok(host)
    }

    /// Takes the calling thread there until the visit is dropped. Threads, processes and sockets made meanwhile stay there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn visit(&self) -> Result<Visit, Error> {
        let home = File::open(OWN).map_err(|error| refused(OWN, error))?;
        enter(&self.0).map_err(|error| refused("entering a network namespace", error))?;
        Ok(Visit { home, _of_this_thread: PhantomData })
    }

    fn within<T>(&self, job: impl FnOnce() -> T) -> Result<T, Error> {
        let _there = self.visit()?;
        Ok(job())
    }

    /// Runs a command there on lines of its batch language.
    fn run(&self, command: &str, lines: &str) -> Result<(), Error> {
        self.batch(command, lines)?.map_err(|reason| refused(format!("{command} {lines:?}"), reason))
    }

    /// The same, with the reason if the command fails.
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
                // A command that stops at an error need not read the rest; its status tells.
                let _ = input.write_all(lines.as_bytes());
            }
            child.wait_with_output()
        };
        Ok(self.within(batch)?.map_err(|error| error.to_string()).and_then(|output| {
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").to_owned())
        }))
    }
}

/// A stay of the calling thread in another network namespace. Dropped, the thread is back.
#[derive(Debug)]
pub struct Visit {
    home: File,
    /// Namespaces are the threads': another thread could not bring this one back.
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Whoever was let out is let in: it takes the same right, and the namespace is held by the descriptor.
        let _ = enter(&self.home);
    }
}

fn enter(namespace: &File) -> rustix::io::Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

// What `tc` is told so that a link has a rate. Pure text.
//
// Two sizes decide how true a token bucket is to a cable. *Burst* is what may pass at once after a pause: on a cable,
// nothing. It has to be a frame, or none would ever pass; it should be what the link carries until the kernel's timer
// is late, or the rate is not reached. A millisecond's worth and no less than two frames is enough for both, and a
// response is at most that much too early. *Limit* is how much may wait: as much as a link carries in a quarter of a
// second, which is what routers are built with, and no less than a congestion window or two. What does not fit is
// lost, as it would be there. A longer queue loses less and is no better: with 64 connections on 20 Mbit/s a second's
// worth still overflowed, and TCP then waited for more than a second where it waits for 0.2 s now.

/// The largest frame of Ethernet, without its checksum.
const FRAME_BYTES: u64 = 1514;
/// Frames in a device's own queue. Behind a delay many are under way at once; netem's own limit is set to as many.
const QUEUE_FRAMES: u32 = 100_000;
const LATE_PER_S: u64 = 1000;
const QUEUED_PER_S: u64 = 4;
const LIMIT_BYTES_MIN: u64 = 64 << 10;

/// A line for `tc` that gives the device a delay.
fn netem(delay: Duration) -> String {
    let us = delay.as_micros();
    format!("qdisc add dev {DEVICE} root handle 1: netem delay {us}us limit {QUEUE_FRAMES}\n")
}

/// A line for `tc` that gives the device a rate, below netem if it has a delay.
fn bucket(bit_per_s: u64, has_delay: bool) -> String {
    let parent = if has_delay { "parent 1:1 handle 10:" } else { "root" };
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
        assert_eq!(bucket(1_000_000_000), "rate 1000000000bit burst 125000 limit 31250000\n");
        // Both are 32-bit numbers in the kernel.
        assert_eq!(bucket(10_000_000_000), "rate 10000000000bit burst 1250000 limit 312500000\n");
    }
}
