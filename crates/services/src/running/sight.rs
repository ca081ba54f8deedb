//! What can be seen of a running service from outside: its processes, and whose sockets listen on its port.
//!
//! It reads `/proc` and judges nothing. Sockets are those of the calling thread's network, which has to be the service's.

use serde::{Deserialize, Serialize};

use super::Running;
use crate::process::{ProcessInfo, Stat};
use crate::{sockets, tree};

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
}

impl Running {
    /// Its processes now, parents first, with those of the `variables` that each was started with.
    pub fn processes(&self, variables: &[&str]) -> Vec<ProcessInfo> {
        infos(&self.alive(), variables)
    }

    /// Whose socket answers on its port now. Ports can be shared, so that a stale server may answer every other
    /// connection: all sockets that a connection can reach have to be the service's.
    pub fn listening(&self) -> Listening {
        let listeners = sockets::listeners(self.address.port());
        self.owner(&listeners, &held(&self.alive()))
    }

    /// Its processes, as [`Running::processes`] gives them, and who listens on its port, in one look: a millisecond or two.
    pub fn sight(&self, variables: &[&str]) -> Sight {
        let listeners = sockets::listeners(self.address.port());
        let alive = self.alive();
        let held = held(&alive);
        let listens = |held: &&Held| {
            let inodes = held.inodes.as_deref().unwrap_or_default();
            listeners.iter().any(|listener| inodes.contains(&listener.inode))
        };
        Sight {
            processes: infos(&alive, variables),
            listeners: held.iter().filter(listens).map(|held| held.pid).collect(),
            listening: self.owner(&listeners, &held),
        }
    }

    fn owner(&self, listeners: &[sockets::Listener], held: &[Held]) -> Listening {
        let reached = sockets::reached(listeners, self.address.ip());
        let ours: Vec<u64> = held.iter().filter_map(|held| held.inodes.as_ref()).flatten().copied().collect();
        match reached.iter().find(|listener| !ours.contains(&listener.inode)) {
            None if reached.is_empty() => Listening::Unknown,
            None => Listening::Ours,
            // A process with more rights than we have hides its descriptors: it may well be the one.
            Some(_) if held.iter().any(|held| held.inodes.is_none()) => Listening::Unknown,
            Some(stranger) => Listening::Theirs(sockets::owner(stranger)),
        }
    }

    /// Those of its processes that have not ended.
    fn alive(&self) -> Vec<Stat> {
        let processes = tree::descendants(self.link.pid());
        self.link.kin.remember(&processes);
        processes.into_iter().filter(Stat::is_alive).collect()
    }
}

fn infos(alive: &[Stat], variables: &[&str]) -> Vec<ProcessInfo> {
    alive.iter().map(|stat| stat.info(variables)).collect()
}

/// The sockets that a process has open, by inode; `None`: they may not be looked at.
struct Held {
    pid: u32,
    inodes: Option<Vec<u64>>,
}

fn held(alive: &[Stat]) -> Vec<Held> {
    alive.iter().map(|stat| Held { pid: stat.id.pid, inodes: sockets::open_sockets(stat.id.pid) }).collect()
}
