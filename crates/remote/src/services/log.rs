//! The log of a service on another machine: in memory, so that whatever ends there nothing is left to be removed.
//!
//! A warden writes a log to a file; this one has no name, only a descriptor of ours. What is kept of an output is
//! bounded (1 MiB and 64 KiB), and so is this.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

/// A file without a name.
#[derive(Debug)]
pub(crate) struct MemoryLog(File);

impl MemoryLog {
    /// A new one, empty.
    ///
    /// # Errors
    /// If there is no memory or no descriptor left.
    pub fn new() -> io::Result<MemoryLog> {
        Ok(MemoryLog(File::from(made()?)))
    }

    /// Where a child of ours finds it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// All of it in base64, as far as it can be read.
    pub fn encoded(mut self) -> String {
        let mut bytes = Vec::new();
        if self.0.rewind().is_ok() {
            let _ = self.0.read_to_end(&mut bytes);
        }
        STANDARD.encode(bytes)
    }
}

/// Since Linux 6.3 a machine may insist on a flag that nothing in it will be run; older kernels do not know the flag.
fn made() -> io::Result<OwnedFd> {
    let name = "proofload-log";
    match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => Ok(memfd_create(name, MemfdFlags::CLOEXEC)?),
        made => Ok(made?),
    }
}

/// What [`MemoryLog::encoded`] gave, as it was.
///
/// # Errors
/// If it is no such text.
pub(crate) fn decoded(text: &str) -> io::Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
