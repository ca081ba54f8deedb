//! One program on another machine, as its stdin and stdout, and what keeps it there.

use std::any::Any;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::HostError;

/// The stdin and stdout of a program, wherever it runs.
///
/// It ends when `input` is closed. `keeper` is what else has to live for as long as it does (a child process, a connection, a Job), and
/// when dropped takes away whatever is left.
pub struct Channel {
    /// Where it runs, as people know it: `local`, `ssh://bench-1`, `kubernetes://bench/proofload-x7k2-3`.
    pub name: String,
    /// Its stdin.
    pub input: Box<dyn Write + Send>,
    /// Its stdout.
    pub output: Box<dyn Read + Send>,
    /// See above.
    pub keeper: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Channel {
    /// Of two ends and what keeps them.
    pub fn new(
        name: impl Into<String>,
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
        keeper: impl Any + Send,
    ) -> Channel {
        let name = name.into();
        Channel { name, input: Box::new(input), output: Box::new(output), keeper: Box::new(keeper) }
    }

    /// The number of its process, where that is a child of this one.
    pub fn process(&self) -> Option<u32> {
        self.keeper.downcast_ref::<Ended>().map(|child| child.0.id())
    }
}

/// A program on this machine, in a process of its own; what it says on stderr is ours.
///
/// # Errors
/// If it cannot be started.
pub fn here(name: impl Into<String>, mut command: Command) -> Result<Channel, HostError> {
    let name = name.into();
    let failed = |source| HostError::NotStarted { host: name.clone(), source };
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let missing = || failed(std::io::Error::other("it has no stdin or no stdout"));
    let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or_else(missing)?;
    Ok(Channel::new(name, input, output, Ended(child)))
}

/// A child that is not left behind: it has seen the end of its stdin by now, or is made to end.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only where it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
