//! One side of a link: a network namespace with its own loopback, which threads can visit.
//!
//! It makes namespaces and runs `ip` and `tc` in them; what they are told is said elsewhere.

use std::fs::{self, File};
use std::io::Write;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::NetworkError;

/// Where administrators' commands are; users often have none of it in their PATH.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// The namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace that lives as long as this value, and as what was made in it.
#[derive(Debug)]
pub(super) struct Host(File);

/// A command that sets up networks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command {
    Ip,
    Tc,
}

impl Command {
    fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
        }
    }

    pub fn path(self) -> Result<PathBuf, NetworkError> {
        let mut candidates = FOLDERS.iter().map(|folder| Path::new(folder).join(self.name()));
        candidates.find(|path| path.exists()).ok_or(NetworkError::NoCommand(self.name()))
    }
}

impl Host {
    /// A new one, with its loopback up.
    pub fn new() -> Result<Self, NetworkError> {
        let refused = |error: std::io::Error| NetworkError::refused("a network namespace", error);
        // A thread of its own, so that the caller's is where it was.
        let made = thread::Builder::new().name("network".to_owned()).spawn(|| {
            // SAFETY: it moves this thread to a new network and leaves its memory and descriptors as they are.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            File::open(OWN)
        });
        let made =
            made.map_err(refused)?.join().map_err(|_| NetworkError::refused("a thread", "it failed"))?;
        let host = Self(made.map_err(refused)?);
        host.run(Command::Ip, "link set lo up")?;
        Ok(host)
    }

    /// A path by which commands find it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// Takes the calling thread there until the visit is dropped.
    pub fn visit(&self) -> Result<Visit, NetworkError> {
        let home = File::open(OWN).map_err(|error| NetworkError::refused(OWN, error))?;
        enter(&self.0).map_err(|error| NetworkError::refused("entering a network namespace", error))?;
        Ok(Visit { home, _of_this_thread: PhantomData })
    }

    /// Does `job` there.
    pub fn within<T>(&self, job: impl FnOnce() -> T) -> Result<T, NetworkError> {
        let _there = self.visit()?;
        Ok(job())
    }

    /// Runs a command there on lines of its batch language.
    pub fn run(&self, command: Command, lines: &str) -> Result<(), NetworkError> {
        let path = command.path()?;
        let refused = |reason: String| NetworkError::refused(format!("{} {lines:?}", command.name()), reason);
        let batch = || {
            let mut child = process::Command::new(path)
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

    /// Keeps IPv6 off a device: its announcements would be packets that nobody asked for. Where there is no IPv6, or no
    /// right to write this, there is nothing to keep off or no harm in it.
    pub fn be_quiet(&self, device: &str) {
        let _ = self.within(|| fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1"));
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
