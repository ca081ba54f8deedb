//! Open files: as many as the load needs, or a clear refusal before it starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::LoadError;

/// Files the caller may open while the load runs (its record, sockets of its own) without running into the limit.
const RESERVE: u64 = 32;

/// Raises the soft limit to the hard one and checks that `connections` on `threads` fit in.
pub(crate) fn ensure_descriptors(connections: u32, threads: u32) -> Result<(), LoadError> {
    let limit = raise();
    let needed = open_files() + u64::from(connections) + u64::from(threads) + RESERVE;
    if needed > limit {
        return Err(LoadError::Descriptors { needed, limit });
    }
    Ok(())
}

/// The limit that holds afterwards. Where raising is not allowed, the old one stays, and the check decides.
fn raise() -> u64 {
    let old = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: old.maximum, maximum: old.maximum };
    let now = if setrlimit(Resource::Nofile, raised).is_ok() { old.maximum } else { old.current };
    now.unwrap_or(u64::MAX)
}

fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}
