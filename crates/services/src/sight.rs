//! What is seen of the processes of services from outside: who they are, and whose sockets answer. Must not: start or signal any.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use machine::process::{self, ProcessId, Stat, describe};
use machine::sockets::{self, Listener, open_sockets};
use serde::{Deserialize, Serialize};

use crate::ports::on_port;
use crate::running::Running;
use crate::sample::{Meter, ProcessInfo, Sample, Tree, peak_bytes};

// What can be seen of a running service from outside: its processes, and whose sockets listen on its port.
//
// It reads `/proc` and judges nothing. Sockets are those of the calling thread's network, which has to be the service's.

/// Whose socket answers on a service's port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listening {
    /// A process of the service.
    Ours,
    /// Somebody else, also or only: `node server.js (pid 123)`.
    Theirs(String),
    /// The system does not say: `/proc/net/tcp` shows no such socket, or descriptors may not be read.
    Unknown,
}

/// All that can be seen of a service at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Its processes, parents first.
    pub processes: Vec<ProcessInfo>,
    /// Numbers of those of them that hold a socket which listens on its port, on whatever address: in a cluster of Node.js the first
    /// process, which deals connections to the others.
    pub listeners: Vec<u32>,
    /// Whose socket answers on its port.
    pub listening: Listening,
    /// Ports that a service which does not heed PORT began to listen on after it was ready: it may be that one of these serves.
    #[serde(default)]
    pub late_ports: Vec<u16>,
}

impl Running {
    /// Its processes now, parents first, with those of the `variables` that each was started with.
    pub fn processes(&self, variables: &[&str]) -> Vec<ProcessInfo> {
        infos(&self.alive(), variables)
    }

    /// Whose socket answers on its port now. Ports can be shared, so that a stale server may answer every other
    /// connection: all sockets that a connection can reach have to be the service's.
    pub fn listening(&self) -> Listening {
        let listeners = on_port(self.address.port());
        self.owner(&listeners, &held(&self.alive()))
    }

    /// Its processes, as [`Running::processes`] gives them, and who listens on its port, in one look: a millisecond or two.
    pub fn sight(&self, variables: &[&str]) -> Sight {
        let listeners = on_port(self.address.port());
        let alive = self.alive();
        let held = held(&alive);
        let listens = |(pid, inodes): &Held| {
            let listens = |one: &Listener| inodes.as_ref().is_some_and(|held| held.contains(&one.inode));
            listeners.iter().any(listens).then_some(*pid)
        };
        Sight {
            processes: infos(&alive, variables),
            listeners: held.iter().filter_map(listens).collect(),
            listening: self.owner(&listeners, &held),
            late_ports: self.late_ports(),
        }
    }

    fn owner(&self, listeners: &[Listener], held: &[Held]) -> Listening {
        if self.container.is_some() {
            // It listens in a network of its own, or the engine does for it.
            return Listening::Unknown;
        }
        let reached = sockets::reached(listeners, self.address.ip());
        let ours: Vec<u64> = held.iter().flat_map(|(_, inodes)| inodes).flatten().copied().collect();
        match reached.iter().find(|listener| !ours.contains(&listener.inode)) {
            None if reached.is_empty() => Listening::Unknown,
            None => Listening::Ours,
            // A process with more rights than we have hides its descriptors: it may well be the one.
            Some(_) if held.iter().any(|(_, inodes)| inodes.is_none()) => Listening::Unknown,
            Some(stranger) => Listening::Theirs(sockets::owner(stranger)),
        }
    }
}

/// The sockets by which connections get to a service, and the processes that have them open.
#[derive(Debug, Default)]
pub(crate) struct Door {
    sockets: Vec<u64>,
    holders: Vec<ProcessId>,
}

impl Running {
    /// That of this moment; one without holders where they may not be seen.
    pub(crate) fn door_now(&self) -> Door {
        let reached = sockets::reached(&on_port(self.address.port()), self.address.ip());
        let sockets: Vec<u64> = reached.iter().map(|listener| listener.inode).collect();
        let holds = |stat: &Stat| holds(stat, &sockets) == Some(true);
        let holders = self.alive().into_iter().filter(holds).map(|stat| stat.id).collect();
        Door { sockets, holders }
    }

    /// Whether all who answered when it became ready are gone, and with them their sockets: its program was started again. One that goes
    /// to the background, or gives itself new workers, hands the socket on.
    pub(crate) fn has_another_door(&self) -> bool {
        let Door { sockets, holders } = &self.door;
        if holders.is_empty() || !holders.iter().all(|id| id.is_gone()) {
            return false;
        }
        // Of one that has ended altogether its end tells. Who may not be looked at may have been handed the socket.
        let alive = self.alive();
        !alive.is_empty() && alive.iter().all(|stat| holds(stat, sockets) == Some(false))
    }
}

/// Whether a process has one of these open; `None`: it may not be looked at.
fn holds(stat: &Stat, sockets: &[u64]) -> Option<bool> {
    Some(open_sockets(stat.id.pid)?.iter().any(|inode| sockets.contains(inode)))
}

fn infos(alive: &[Stat], variables: &[&str]) -> Vec<ProcessInfo> {
    alive.iter().map(|stat| ProcessInfo::of(stat, variables)).collect()
}

/// A process, and the sockets that it has open, by inode; `None`: they may not be looked at.
type Held = (u32, Option<Vec<u64>>);

fn held(alive: &[Stat]) -> Vec<Held> {
    alive.iter().map(|stat| (stat.id.pid, open_sockets(stat.id.pid))).collect()
}

// The processes behind an address that somebody else started: found by who listens there, and sampled as a service's are.
//
// It sees those whose open files it may read, which are those of the same user. It neither starts nor stops anything.

const NOBODY: &str = "no process of this machine listens there";
const NOT_OURS: &str = "whose process listens there may not be read: another user's, or one in a container";
const FORWARDED: &str =
    "what listens there only forwards (docker-proxy, ssh, kubectl or the like): the service is behind it";
const ACTIVATED: &str = "systemd listens there, and no service that it has started for that";
/// Programs that pass connections on. What they use is not what the service uses.
const FORWARDERS: &str = "docker-proxy rootlesskit rootlessport slirp4netns pasta pasta.avx2 ssh sshd kubectl socat \
    systemd-socket-";
/// Listens for services that it starts, and is the parent of everything else.
const ACTIVATOR: &str = "systemd";

/// Processes that ran already, with all that they start.
#[derive(Debug)]
pub struct Watched {
    meter: Meter,
    /// Those that listen.
    listening: Vec<u32>,
    /// The topmost of them.
    roots: Vec<ProcessId>,
}

impl Watched {
    /// Those that a connection to `address` reaches.
    ///
    /// # Errors
    /// If nobody listens there, some who do may not be seen, or they only forward.
    pub fn at(address: SocketAddr) -> Result<Watched, &'static str> {
        let listeners = on_port(address.port());
        let reached = sockets::reached(&listeners, address.ip());
        Watched::holding(&reached.iter().map(|one| one.inode).collect::<Vec<_>>())
    }

    /// The same of a socket in the file system.
    ///
    /// # Errors
    /// As [`Watched::at`].
    pub fn at_socket(path: &Path) -> Result<Watched, &'static str> {
        Watched::holding(&sockets::unix_listeners(path))
    }

    fn holding(inodes: &[u64]) -> Result<Watched, &'static str> {
        if inodes.is_empty() {
            return Err(NOBODY);
        }
        let (mut holders, mut held) = (Vec::new(), BTreeSet::new());
        let all = process::everyone();
        for stat in &all {
            let open = open_sockets(stat.id.pid).unwrap_or_default();
            let ours: Vec<u64> = open.into_iter().filter(|inode| inodes.contains(inode)).collect();
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
        if holders.iter().any(|stat| FORWARDERS.split(' ').any(|name| name == stat.name)) {
            return Err(FORWARDED);
        }
        // Between one and another may stand a process that does not listen: it would count twice.
        let below = holders.iter().flat_map(|stat| process::by_parents(stat.id.pid, &all));
        let below: BTreeSet<ProcessId> = below.map(|stat| stat.id).collect();
        let roots: Vec<ProcessId> =
            holders.iter().map(|stat| stat.id).filter(|id| !below.contains(id)).collect();
        let listening = holders.iter().map(|stat| stat.id.pid).collect();
        let mut meter = Meter::new(Tree::From(roots.clone()));
        meter.watch_quotas();
        Ok(Watched { meter, listening, roots })
    }

    /// What they have used so far.
    pub fn sample(&mut self) -> Sample {
        self.meter.sample().0
    }

    /// Forgets the peaks of their memory up to now, so that those to come are of what comes.
    pub fn forget_peaks(&self) {
        for stat in self.meter.tree.processes() {
            // Whose peak stays is told with what it had before: too much, and never too little.
            let _ = fs::write(format!("/proc/{}/clear_refs", stat.id.pid), "5");
        }
    }

    /// Peak resident memory in bytes, pages that they share counted once.
    pub fn peak_memory(&self) -> u64 {
        peak_bytes(&self.meter.tree.processes())
    }

    /// All of them, as those of a service that was started here, with those of the `variables` that each was started with.
    pub fn sight(&self, variables: &[&str]) -> Sight {
        Sight {
            processes: infos(&self.meter.tree.processes(), variables),
            listeners: self.listening.clone(),
            listening: Listening::Ours,
            late_ports: Vec::new(),
        }
    }

    /// The first of them.
    pub fn pid(&self) -> u32 {
        self.roots.first().map_or(0, |id| id.pid)
    }

    /// How many of the topmost are gone, also if others have taken their places, of which nothing is known.
    pub fn lost(&self) -> u32 {
        let lost = self.roots.iter().filter(|id| !id.is_alive()).count();
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Whether a process is among both.
    pub fn shares_with(&self, other: &Watched) -> bool {
        let pids = |one: &Watched| -> BTreeSet<u32> {
            one.meter.tree.processes().iter().map(|stat| stat.id.pid).collect()
        };
        !pids(self).is_disjoint(&pids(other))
    }

    /// `node server.js (pid 123)`.
    pub fn describe(&self) -> String {
        self.roots.iter().map(|id| describe(id.pid)).collect::<Vec<_>>().join(", ")
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
        let mut found = Watched::at(address).unwrap();
        assert_eq!(found.pid(), std::process::id());
        assert!(found.shares_with(&Watched::at(address).unwrap()));
        found.forget_peaks();
        let (sample, peak) = (found.sample(), found.peak_memory());
        assert!(sample.cpu_ns > 0 && sample.rss_bytes > 0 && peak > 0, "{sample:?}, peak {peak}");
        drop(socket);
        assert_eq!(Watched::at(address).unwrap_err(), NOBODY);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = UnixListener::bind(&path).unwrap();
        assert_eq!(Watched::at_socket(&path).unwrap().pid(), std::process::id());
        drop(socket);
        assert_eq!(Watched::at_socket(&path).unwrap_err(), NOBODY);
    }

    /// Listens until its input ends.
    const LISTENS: &str = r#"
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
"#;
    /// So does a child of a child of it, and the child between them does not.
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

    /// What is found of a program that is called so and runs this; it has ended by then.
    fn found_of(name: &str, script: &str) -> Result<Watched, &'static str> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::os::unix::fs::symlink("/usr/bin/python3", &path).unwrap();
        let mut command = std::process::Command::new(&path);
        let pipe = std::process::Stdio::piped;
        let mut listens = command.args(["-c", script]).stdin(pipe()).stdout(pipe()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(listens.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()));
        let found = Watched::at(address);
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
        assert_eq!(found_of("app", HANDS_DOWN).unwrap().lost(), 1, "it counts once");
    }
}
