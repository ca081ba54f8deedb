//! Open files: as many as the load needs, or a clear refusal before it starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::LoadError;

/// Files the caller may open while the load runs (its record, sockets of its own) without running into the limit.
const RESERVE: u64 = 32;

/// Checks that `connections` on `threads` fit in, and raises the soft limit to the hard one where only that lets them.
///
/// It is left alone otherwise: processes started later inherit it, and a service should not run under another limit
/// only because a load has begun before.
pub(crate) fn ensure_descriptors(connections: u32, threads: u32) -> Result<(), LoadError> {
    let needed = open_files() + u64::from(connections) + u64::from(threads) + RESERVE;
    let Rlimit { current: soft, maximum: hard } = getrlimit(Resource::Nofile);
    // No limit at all is `None`.
    if soft.is_none_or(|soft| needed <= soft) {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard });
    let limit = if raised.is_ok() { hard } else { soft };
    match limit {
        Some(limit) if needed > limit => Err(LoadError::Descriptors { needed, limit }),
        _ => Ok(()),
    }
}

fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}
