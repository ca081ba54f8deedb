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

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

mod error;
mod host;
mod relay;
mod shape;
mod tap;

pub use error::NetworkError;
pub use host::Visit;

use host::{Command, Host};
use relay::Relay;

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
    _relay: Option<Relay>,
    client: Host,
    services: Host,
    round_trip: Duration,
}

impl Network {
    /// Makes one as `link` says. What carries its frames, if it takes a process of ours, runs on these CPUs, or on any if
    /// there are none.
    ///
    /// # Errors
    /// If this user may not, a command is missing, the kernel refuses, or the link is shorter than asked.
    pub fn make(link: &plan::Network, cpus: &[usize]) -> Result<Self, NetworkError> {
        can_be_made()?;
        let (client, services) = (Host::new()?, Host::new()?);
        let delay = link.delay.filter(|delay| !delay.is_zero());
        let netem = delay.filter(|_| has_netem(&client));
        let relay = match delay.filter(|_| netem.is_none()) {
            Some(delay) => {
                let ends = [client.within(|| tap::open(DEVICE))??, services.within(|| tap::open(DEVICE))??];
                Some(Relay::start(ends, delay, cpus)?)
            }
            None => {
                let far = services.path();
                client.run(
                    Command::Ip,
                    &format!("link add {DEVICE} type veth peer name {DEVICE} netns {far}"),
                )?;
                None
            }
        };
        let ends = [
            (&client, (CLIENT, CLIENT_MAC), (SERVICES, SERVICES_MAC)),
            (&services, (SERVICES, SERVICES_MAC), (CLIENT, CLIENT_MAC)),
        ];
        for (host, near, far) in ends {
            host.be_quiet(DEVICE);
            host.run(Command::Ip, &end_of_link(near, far))?;
            let queues = shape::queues(DEVICE, link.rate_bit_per_s, netem);
            if !queues.is_empty() {
                host.run(Command::Tc, &queues)?;
            }
        }
        let mut network = Self { _relay: relay, client, services, round_trip: Duration::ZERO };
        network.round_trip = network.measure(delay.unwrap_or_default())?;
        Ok(network)
    }

    /// Where the entry must listen to be reached by the client.
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(SERVICES)
    }

    /// The shortest round trip that was measured when it was made.
    pub fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Takes the calling thread to where the client is, until the visit is dropped. Threads, processes and sockets made
    /// meanwhile stay there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn visit_client(&self) -> Result<Visit, NetworkError> {
        self.client.visit()
    }

    /// The same to where the services are.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn visit_services(&self) -> Result<Visit, NetworkError> {
        self.services.visit()
    }

    /// The shortest of some round trips, once packets arrive at all.
    fn measure(&self, delay: Duration) -> Result<Duration, NetworkError> {
        let _there = self.client.visit()?;
        let least = delay * 2;
        let patience = PATIENCE + least * 10;
        let deadline = Instant::now() + patience;
        let mut found: Vec<Duration> = Vec::new();
        while found.len() < ROUND_TRIPS {
            let begin = Instant::now();
            if begin >= deadline {
                return Err(NetworkError::Dead { patience });
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
        if shortest < least { Err(NetworkError::Short { least, shortest }) } else { Ok(shortest) }
    }
}

/// Whether this user on this machine can have networks at all, as far as can be told without making one.
///
/// # Errors
/// What is missing.
pub fn can_be_made() -> Result<(), NetworkError> {
    if !rustix::process::geteuid().is_root() {
        return Err(NetworkError::NotRoot);
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    if !has_capabilities(&status) {
        return Err(NetworkError::refused("root has not all rights here", "a container withholds them"));
    }
    [Command::Ip, Command::Tc].into_iter().try_for_each(|command| command.path().map(drop))
}

/// Whether a thread of this `/proc/PID/status` has CAP_NET_ADMIN and CAP_SYS_ADMIN; taken for granted where that is not told.
fn has_capabilities(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_none_or(|mask| [12, 21].iter().all(|bit| mask >> bit & 1 == 1))
}

/// Addresses of one end, and who is at the other.
fn end_of_link((address, mac): (Ipv4Addr, &str), (far, far_mac): (Ipv4Addr, &str)) -> String {
    let length = shape::QUEUE_FRAMES;
    format!(
        "link set {DEVICE} address {mac} txqueuelen {length}\n\
         address add {address}/30 dev {DEVICE}\n\
         link set {DEVICE} up\n\
         neighbour add {far} lladdr {far_mac} dev {DEVICE} nud permanent\n"
    )
}

/// Whether the kernel can delay packets by itself; tried on loopback, where it is taken off again.
fn has_netem(host: &Host) -> bool {
    host.run(Command::Tc, "qdisc add dev lo root netem delay 1ms\nqdisc del dev lo root").is_ok()
}
