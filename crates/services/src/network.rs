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
//! Rate is the kernel's token bucket filter (tbf) at both ends; delay is netem's where the kernel has it, else that of
//! [`relay`], which carries frames between two taps. The round trip is measured before the link is used.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::cpus::pin;
use crate::link::Lasting;
use machine::process::{field, text};
use model::quantity::decimal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open as open_file};
use rustix::io::Errno;
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_current_timer_slack, unshare_unsafe,
};

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
    /// First, so that it has let go of its taps before their hosts are gone.
    _relay: Option<Lasting>,
    /// Where the client is.
    pub client: Host,
    /// Where the services are.
    pub services: Host,
}

impl Network {
    /// Makes one as `link` says. What carries its frames, if it takes a process of ours, runs on these CPUs, or on any if
    /// there are none.
    ///
    /// # Errors
    /// If this user may not, a command is missing, the kernel refuses, or the link is shorter than asked.
    pub fn make(link: &plan::Network, cpus: &[usize]) -> Result<Self, Error> {
        can_be_made()?;
        let (client, services) = (Host::new()?, Host::new()?);
        let delay = link.delay.filter(|delay| !delay.is_zero());
        // Whether the kernel can delay packets by itself; tried on loopback, where it is taken off again.
        let tried = "qdisc add dev lo root netem delay 1ms\nqdisc del dev lo root";
        let netem = delay.filter(|_| client.run("tc", tried).is_ok());
        let relay = match delay.filter(|_| netem.is_none()) {
            Some(delay) => {
                let ends = [client.within(open_tap)??, services.within(open_tap)??];
                Some(relay(ends, delay, cpus)?)
            }
            None => {
                // A path by which commands find it.
                let far = format!("/proc/{}/fd/{}", process::id(), services.0.as_raw_fd());
                client.run("ip", &format!("link add {DEVICE} type veth peer name {DEVICE} netns {far}"))?;
                None
            }
        };
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
            let queues = queues(link.rate_bit_per_s, netem);
            if !queues.is_empty() {
                host.run("tc", &queues)?;
            }
        }
        let network = Self { _relay: relay, client, services };
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
         netem or tun",
    )
}

// One side of a link: a network namespace with its own loopback, which threads can visit.
//
// A tap is a network device whose cable is a descriptor: what the kernel sends is read from it, what is written arrives.
//
// It makes namespaces and taps, and runs `ip` and `tc` in them; what they are told is said elsewhere.

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
        let path = find(command)?;
        let refused = |reason: String| refused(format!("{command} {lines:?}"), reason);
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
        let output = self.within(batch)?.map_err(|error| refused(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(refused(said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").to_owned()))
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

/// Makes the device in the calling thread's network namespace. It is gone when the descriptor is closed.
fn open_tap() -> Result<OwnedFd, Error> {
    let refused = |error: io::Error| refused("/dev/net/tun", error);
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tap = open_file("/dev/net/tun", flags, Mode::empty()).map_err(|error| refused(error.into()))?;
    let mut wanted = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TAP | libc::IFF_NO_PI) as i16 },
    };
    // The last byte stays 0.
    for (to, from) in wanted.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(DEVICE.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads an ifreq and writes the device's name into it; this one lives until the call is over.
    let made = unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF, &raw mut wanted) };
    if made == 0 { Ok(tap) } else { Err(refused(io::Error::last_os_error())) }
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

/// Lines for `tc` that give the device a rate and, by netem, a delay; empty for neither.
fn queues(rate_bit_per_s: Option<u64>, netem: Option<Duration>) -> String {
    let delay = netem.map(|delay| format!("netem delay {}us limit {QUEUE_FRAMES}", delay.as_micros()));
    match (delay, rate_bit_per_s.map(bucket)) {
        (None, None) => String::new(),
        (Some(one), None) | (None, Some(one)) => format!("qdisc add dev {DEVICE} root {one}\n"),
        (Some(delay), Some(bucket)) => format!(
            "qdisc add dev {DEVICE} root handle 1: {delay}\n\
             qdisc add dev {DEVICE} parent 1:1 handle 10: {bucket}\n"
        ),
    }
}

fn bucket(bit_per_s: u64) -> String {
    let bytes_per_s = bit_per_s / 8;
    let burst = (bytes_per_s / LATE_PER_S).max(2 * FRAME_BYTES);
    let limit = (bytes_per_s / QUEUED_PER_S).max(LIMIT_BYTES_MIN);
    format!("tbf rate {bit_per_s}bit burst {burst} limit {limit}")
}

// A cable with a length: a thread that carries frames from one tap to the other, each as long after it was sent.
//
// ```text
// tap 0 ──► [frame, due] [frame, due] … ──► tap 1      and the same the other way
// ```
// The delay is the same for every frame, so a queue is in the order in which its frames are due. It loses a frame only
// where more are under way than it has room for, and must not look into any.

/// The largest frame: no offload is asked of the kernel, so it hands out none larger than the device's MTU of 1500.
const FRAME_BYTES_MAX: usize = 1536;
/// Frames under way in one direction at most: a second of 780 Mbit/s in full frames, and about 100 MB of memory.
const FRAMES_MAX: usize = 65_536;
/// Frames read at a time, so that those that are due meanwhile do not wait for long.
const BATCH: usize = 64;

/// Carries frames between two taps, on these CPUs, or on any if there are none. Dropped, it has ended, and its taps are closed.
fn relay(taps: [OwnedFd; 2], delay: Duration, cpus: &[usize]) -> Result<Lasting, Error> {
    let cpus = cpus.to_vec();
    let run = move |stop| {
        // Where the generator is, for services are not to be disturbed. Refused, it runs where it may.
        let _ = pin(&cpus);
        // Timers may otherwise be 50 µs late, to save power.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        carry(&taps, delay, &stop);
    };
    Lasting::spawn("relay", run).map_err(|error| refused("a thread that delays packets", error))
}

/// Carries until `stop` can be read, or a tap is gone.
fn carry(taps: &[OwnedFd; 2], delay: Duration, stop: &OwnedFd) {
    let mut ways = [Way::default(), Way::default()];
    loop {
        let now = Instant::now();
        ways[0].deliver(now, &taps[1]);
        ways[1].deliver(now, &taps[0]);
        let due = ways.iter().filter_map(Way::due).min();
        let timeout =
            due.and_then(|due| Timespec::try_from(due.saturating_duration_since(Instant::now())).ok());
        let wanted = |way: &Way| if way.has_room() { PollFlags::IN } else { PollFlags::empty() };
        let mut waiting = [
            PollFd::from_borrowed_fd(taps[0].as_fd(), wanted(&ways[0])),
            PollFd::from_borrowed_fd(taps[1].as_fd(), wanted(&ways[1])),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let seen = waiting.map(|descriptor| descriptor.revents());
        if !seen[2].is_empty() {
            return;
        }
        for (way, tap, seen) in [(0, &taps[0], seen[0]), (1, &taps[1], seen[1])] {
            if !seen.is_empty() && !ways[way].take(tap, delay) {
                return;
            }
        }
    }
}

/// Frames under way in one direction.
#[derive(Default)]
struct Way {
    frames: VecDeque<(Instant, Vec<u8>)>,
    /// Buffers of frames that have arrived, for others.
    spare: Vec<Vec<u8>>,
}

impl Way {
    fn has_room(&self) -> bool {
        self.frames.len() < FRAMES_MAX
    }

    /// When the next frame is due.
    fn due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }

    /// Reads what was sent; false if the tap is gone.
    fn take(&mut self, tap: &OwnedFd, delay: Duration) -> bool {
        for _ in 0..BATCH {
            if !self.has_room() {
                break;
            }
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.resize(FRAME_BYTES_MAX, 0);
            match rustix::io::read(tap, &mut frame) {
                Ok(length) => {
                    frame.truncate(length);
                    self.frames.push_back((Instant::now() + delay, frame));
                }
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.spare.push(frame);
                    break;
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Hands over what is due by `now`. What the other side does not take is lost, as on any cable.
    fn deliver(&mut self, now: Instant, tap: &OwnedFd) {
        while self.due().is_some_and(|due| due <= now) {
            let Some((_, frame)) = self.frames.pop_front() else { return };
            let _ = rustix::io::write(tap, &frame);
            self.spare.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_passes_frames_and_a_fast_one_milliseconds() {
        assert_eq!(bucket(8_000), "tbf rate 8000bit burst 3028 limit 65536");
        assert_eq!(bucket(1_000_000_000), "tbf rate 1000000000bit burst 125000 limit 31250000");
        // Both are 32-bit numbers in the kernel.
        assert_eq!(bucket(10_000_000_000), "tbf rate 10000000000bit burst 1250000 limit 312500000");
        assert_eq!(queues(None, None), "");
    }
}
