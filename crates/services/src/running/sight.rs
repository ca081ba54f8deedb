//! External view of a service's processes: who they are, and whose sockets listen. This module does not start
//! or signal any process.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use machine::process::{self, ProcessId, Stat, describe};
use machine::sockets::{self, Listener, open_sockets};

use crate::ports::on_port;
use crate::running::Running;
use crate::sample::{Meter, ProcessInfo, ServiceTree, UsageSample, peak_bytes};

// External view of a running service: its processes, and the sockets that listen on its port.
//
// It reads `/proc` and judges nothing. It sees sockets in the network namespace of the calling thread, which
// has to be the service's.

/// Owner of the sockets that answer on a service's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listening {
    /// A process of the service.
    Ours,
    /// Another process, alone or in addition: `node server.js (pid 123)`.
    Theirs(String),
    /// Unknown: `/proc/net/tcp` shows no such socket, or descriptors may not be read.
    Unknown,
}

/// External view of a service at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceProcesses {
    /// Processes, parents first.
    pub processes: Vec<ProcessInfo>,
    /// Process numbers of the processes with a socket that listens on the service's port, on any address. In
    /// a Node.js cluster this is the primary process, which distributes connections.
    pub listeners: Vec<u32>,
    /// Owner of the sockets that answer on the port.
    pub listening: Listening,
    /// Ports on which a service that ignores PORT began to listen after it was ready. One of these may be the
    /// port that serves.
    pub late_ports: Vec<u16>,
}

impl Running {
    /// Returns the current processes, parents first, with the requested `variables` of their start
    /// environments.
    pub fn processes(&self, variables: &[&str]) -> Vec<ProcessInfo> {
        infos(&self.alive(), variables)
    }

    /// Returns the owner of the sockets that answer on the port. Ports can be shared, so a stale server may
    /// answer every other connection: all sockets that a connection can reach have to belong to the service.
    pub fn listening(&self) -> Listening {
        let listeners = on_port(self.address.port());
        self.owner(&listeners, &held(&self.alive()))
    }

    /// Returns the processes as [`Running::processes`] does, and the listeners on the port, in one pass that
    /// takes a millisecond or two.
    pub fn sight(&self, variables: &[&str]) -> ServiceProcesses {
        let listeners = on_port(self.address.port());
        let alive = self.alive();
        let held = held(&alive);
        let listens = |(pid, inodes): &OpenSockets| {
            let listens = |one: &Listener| {
                inodes
                    .as_ref()
                    .is_some_and(|held| held.contains(&one.inode))
            };
            listeners.iter().any(listens).then_some(*pid)
        };
        ServiceProcesses {
            processes: infos(&alive, variables),
            listeners: held.iter().filter_map(listens).collect(),
            listening: self.owner(&listeners, &held),
            late_ports: self.late_ports(),
        }
    }

    fn owner(&self, listeners: &[Listener], held: &[OpenSockets]) -> Listening {
        if self.container.is_some() {
            // It listens in another network namespace, or the engine listens for it.
            return Listening::Unknown;
        }
        let reached = sockets::reached(listeners, self.address.ip());
        let ours: Vec<u64> = held
            .iter()
            .flat_map(|(_, inodes)| inodes)
            .flatten()
            .copied()
            .collect();
        match reached
            .iter()
            .find(|listener| !ours.contains(&listener.inode))
        {
            None if reached.is_empty() => Listening::Unknown,
            None => Listening::Ours,
            // A process with more rights than ours hides its descriptors. It may be the owner.
            Some(_) if held.iter().any(|(_, inodes)| inodes.is_none()) => Listening::Unknown,
            Some(stranger) => Listening::Theirs(sockets::owner(stranger)),
        }
    }
}

/// The sockets through which connections reach a service, and the processes that have them open.
#[derive(Debug, Default)]
pub(crate) struct ListenSockets {
    sockets: Vec<u64>,
    holders: Vec<ProcessId>,
}

impl Running {
    /// Returns the current sockets. The holders are empty if they may not be read.
    pub(crate) fn door_now(&self) -> ListenSockets {
        let reached = sockets::reached(&on_port(self.address.port()), self.address.ip());
        let sockets: Vec<u64> = reached.iter().map(|listener| listener.inode).collect();
        let holds = |stat: &Stat| holds(stat, &sockets) == Some(true);
        let holders = self
            .alive()
            .into_iter()
            .filter(holds)
            .map(|stat| stat.id)
            .collect();
        ListenSockets { sockets, holders }
    }

    /// Whether all processes that answered when the service became ready have ended, and their sockets with
    /// them: the program was started again. A program that daemonizes or replaces its workers hands the
    /// socket on.
    pub(crate) fn has_another_door(&self) -> bool {
        let ListenSockets { sockets, holders } = &self.door;
        if holders.is_empty() || !holders.iter().all(|id| id.is_gone()) {
            return false;
        }
        // A service that has ended altogether is detected by its end. A process that may not be read may have
        // been handed the socket.
        let alive = self.alive();
        !alive.is_empty() && alive.iter().all(|stat| holds(stat, sockets) == Some(false))
    }
}

/// Whether a process has one of these sockets open. `None` if it may not be read.
fn holds(stat: &Stat, sockets: &[u64]) -> Option<bool> {
    Some(
        open_sockets(stat.id.pid)?
            .iter()
            .any(|inode| sockets.contains(inode)),
    )
}

fn infos(alive: &[Stat], variables: &[&str]) -> Vec<ProcessInfo> {
    alive
        .iter()
        .map(|stat| ProcessInfo::of(stat, variables))
        .collect()
}

/// A process and the inodes of its open sockets. `None` if they may not be read.
type OpenSockets = (u32, Option<Vec<u64>>);

fn held(alive: &[Stat]) -> Vec<OpenSockets> {
    alive
        .iter()
        .map(|stat| (stat.id.pid, open_sockets(stat.id.pid)))
        .collect()
}

// Processes behind an address that Proofload did not start: found by their listening sockets, and sampled
// like a service.
//
// Finds only processes whose open files may be read, which are processes of the same user. Neither starts nor
// stops anything.

const NOBODY: &str = "no process of this machine listens there";
const NOT_OURS: &str =
    "whose process listens there may not be read: another user's, or one in a container";
const FORWARDED: &str = "what listens there only forwards (docker-proxy, ssh, kubectl or the like): the service is behind it";
const ACTIVATED: &str = "systemd listens there, and no service that it has started for that";
/// Programs that forward connections. Their resource use is not the service's.
const FORWARDERS: &str = "docker-proxy rootlesskit rootlessport slirp4netns pasta pasta.avx2 ssh sshd kubectl socat \
    systemd-socket-";
/// Listens for services that it starts, and is the parent of all other processes.
const ACTIVATOR: &str = "systemd";

/// Processes that were already running, with all their descendants.
#[derive(Debug)]
pub struct WatchedProcesses {
    meter: Meter,
    /// Processes that listen.
    listening: Vec<u32>,
    /// The topmost processes.
    roots: Vec<ProcessId>,
}

impl WatchedProcesses {
    /// Finds the processes that a connection to `address` reaches.
    ///
    /// # Errors
    /// If no process listens there, some listeners may not be read, or they only forward.
    pub fn at(address: SocketAddr) -> Result<WatchedProcesses, &'static str> {
        let listeners = on_port(address.port());
        let reached = sockets::reached(&listeners, address.ip());
        WatchedProcesses::holding(&reached.iter().map(|one| one.inode).collect::<Vec<_>>())
    }

    /// Finds the processes that listen on a unix socket.
    ///
    /// # Errors
    /// As [`Watched::at`].
    pub fn at_socket(path: &Path) -> Result<WatchedProcesses, &'static str> {
        WatchedProcesses::holding(&sockets::unix_listeners(path))
    }

    fn holding(inodes: &[u64]) -> Result<WatchedProcesses, &'static str> {
        if inodes.is_empty() {
            return Err(NOBODY);
        }
        let (mut holders, mut held) = (Vec::new(), BTreeSet::new());
        let all = process::everyone();
        for stat in &all {
            let open = open_sockets(stat.id.pid).unwrap_or_default();
            let ours: Vec<u64> = open
                .into_iter()
                .filter(|inode| inodes.contains(inode))
                .collect();
            if !ours.is_empty() {
                held.extend(ours);
                holders.push(stat);
            }
        }
        if inodes.iter().any(|inode| !held.contains(inode)) {
            return Err(NOT_OURS);
        }
        holders.retain(|stat| stat.name != ACTIVATOR);
        if holders.is_empty() {
            return Err(ACTIVATED);
        }
        if holders
            .iter()
            .any(|stat| FORWARDERS.split(' ').any(|name| name == stat.name))
        {
            return Err(FORWARDED);
        }
        // A process that does not listen may be between two that do. It would count twice.
        let below = holders
            .iter()
            .flat_map(|stat| process::by_parents(stat.id.pid, &all));
        let below: BTreeSet<ProcessId> = below.map(|stat| stat.id).collect();
        let roots: Vec<ProcessId> = holders
            .iter()
            .map(|stat| stat.id)
            .filter(|id| !below.contains(id))
            .collect();
        let listening = holders.iter().map(|stat| stat.id.pid).collect();
        let mut meter = Meter::new(ServiceTree::From(roots.clone()));
        meter.watch_quotas();
        Ok(WatchedProcesses {
            meter,
            listening,
            roots,
        })
    }

    /// Resources used so far.
    pub fn sample(&mut self) -> UsageSample {
        self.meter.sample().0
    }

    /// Resets the memory peaks, so that later peaks belong to what follows.
    pub fn forget_peaks(&self) {
        for stat in self.meter.tree.processes() {
            // A peak that cannot be reset is reported with its earlier value: too high, never too low.
            let _ = fs::write(format!("/proc/{}/clear_refs", stat.id.pid), "5");
        }
    }

    /// Peak resident memory in bytes. Pages shared by several processes count once.
    pub fn peak_memory(&self) -> u64 {
        peak_bytes(&self.meter.tree.processes())
    }

    /// Describes all processes as for a started service, with the requested `variables` of their
    /// environments.
    pub fn sight(&self, variables: &[&str]) -> ServiceProcesses {
        ServiceProcesses {
            processes: infos(&self.meter.tree.processes(), variables),
            listeners: self.listening.clone(),
            listening: Listening::Ours,
            late_ports: Vec::new(),
        }
    }

    /// Number of the first process.
    pub fn pid(&self) -> u32 {
        self.roots.first().map_or(0, |id| id.pid)
    }

    /// Number of topmost processes that have ended, also if unknown ones have replaced them.
    pub fn lost(&self) -> u32 {
        let lost = self.roots.iter().filter(|id| !id.is_alive()).count();
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Whether both have a process in common.
    pub fn shares_with(&self, other: &WatchedProcesses) -> bool {
        let pids = |one: &WatchedProcesses| -> BTreeSet<u32> {
            one.meter
                .tree
                .processes()
                .iter()
                .map(|stat| stat.id.pid)
                .collect()
        };
        !pids(self).is_disjoint(&pids(other))
    }

    /// `node server.js (pid 123)`.
    pub fn describe(&self) -> String {
        self.roots
            .iter()
            .map(|id| describe(id.pid))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn who_listens_is_found_and_sampled_and_nobody_where_nobody_does_also_in_the_file_system() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut found = WatchedProcesses::at(address).unwrap();
        assert_eq!(found.pid(), std::process::id());
        assert!(found.shares_with(&WatchedProcesses::at(address).unwrap()));
        found.forget_peaks();
        let (sample, peak) = (found.sample(), found.peak_memory());
        assert!(
            sample.cpu_ns > 0 && sample.rss_bytes > 0 && peak > 0,
            "{sample:?}, peak {peak}"
        );
        drop(socket);
        assert_eq!(WatchedProcesses::at(address).unwrap_err(), NOBODY);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = UnixListener::bind(&path).unwrap();
        assert_eq!(
            WatchedProcesses::at_socket(&path).unwrap().pid(),
            std::process::id()
        );
        drop(socket);
        assert_eq!(WatchedProcesses::at_socket(&path).unwrap_err(), NOBODY);
    }

    /// Listens until its input ends.
    const LISTENS: &str = r#"
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
"#;
    /// A grandchild listens too, and the child between them does not.
    const HANDS_DOWN: &str = r#"
import os, socket, sys
s = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    last = os.fork()
    if last:
        port = s.getsockname()[1]
        s.close()
        print(port, flush=True)
        os.waitpid(last, 0)
        os._exit(0)
sys.stdin.read()
try:
    os.wait()
except ChildProcessError:
    pass
"#;

    /// Runs a program of this name with this script, and returns what is found of it. It has ended by then.
    fn found_of(name: &str, script: &str) -> Result<WatchedProcesses, &'static str> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::os::unix::fs::symlink("/usr/bin/python3", &path).unwrap();
        let mut command = std::process::Command::new(&path);
        let pipe = std::process::Stdio::piped;
        let mut listens = command
            .args(["-c", script])
            .stdin(pipe())
            .stdout(pipe())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(listens.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()));
        let found = WatchedProcesses::at(address);
        assert!(found.iter().all(|found| found.lost() == 0));
        drop(listens.stdin.take());
        listens.wait().unwrap();
        found
    }

    #[test]
    fn who_only_forwards_is_not_the_service_and_who_is_gone_is_missed() {
        assert_eq!(found_of("docker-proxy", LISTENS).unwrap_err(), FORWARDED);
        assert_eq!(found_of("systemd", LISTENS).unwrap_err(), ACTIVATED);
        assert_eq!(found_of("app", LISTENS).unwrap().lost(), 1);
        assert_eq!(
            found_of("app", HANDS_DOWN).unwrap().lost(),
            1,
            "it counts once"
        );
    }
}
