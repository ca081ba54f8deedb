//! The address space of a process: what lies at an address. Kept from the start of sampling, so that a process which ends meanwhile
//! can still be named, and read again at its end for what was loaded since.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use crate::perf::binaries::{Binaries, open_regular};
use crate::perf::maps::{Backing, Mapping, executable};
use crate::perf::process;

/// What lies at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The kernel.
    Kernel(u64),
    /// A file: its index in [`Binaries`], and where in it.
    Binary {
        /// The index.
        binary: usize,
        /// Bytes from the file's begin.
        offset: u64,
    },
    /// Code made at run time.
    RunTime(u64),
    /// Code that the kernel lends to processes, such as `[vdso]`.
    Lent(String),
    /// Nothing that was known to be code.
    Unknown,
}

/// The address space of a process.
#[derive(Debug)]
pub(crate) struct Space {
    /// The process.
    pub pid: u32,
    /// Names that it writes for code made at run time.
    pub jit_names: Option<File>,
    first: Vec<Code>,
    last: Vec<Code>,
}

#[derive(Debug)]
struct Code {
    mapping: Mapping,
    /// Its file's index; `None` where there is no file.
    binary: Option<usize>,
}

impl Space {
    /// That of a process as it is now.
    pub(crate) fn of(pid: u32, binaries: &mut Binaries) -> Space {
        let first = codes(pid, binaries);
        Space { pid, jit_names: jit_names(pid), first, last: Vec::new() }
    }

    /// Reads again what may have changed since, if the process is still there.
    pub(crate) fn refresh(&mut self, binaries: &mut Binaries) {
        self.last = codes(self.pid, binaries);
        self.jit_names = jit_names(self.pid).or(self.jit_names.take());
    }

    /// What lies at an address, or lay there at the start.
    pub(crate) fn place(&self, address: u64) -> Place {
        let Some(code) = find(&self.last, address).or_else(|| find(&self.first, address)) else {
            return Place::Unknown;
        };
        let mapping = &code.mapping;
        match (mapping.backing(), code.binary) {
            (Backing::File, Some(binary)) => {
                Place::Binary { binary, offset: (address - mapping.start).saturating_add(mapping.offset) }
            }
            (Backing::Lent, _) => Place::Lent(mapping.module().to_owned()),
            _ => Place::RunTime(address),
        }
    }
}

fn codes(pid: u32, binaries: &mut Binaries) -> Vec<Code> {
    let mappings = executable(&process::maps(pid)).into_iter();
    let code = |mapping: Mapping| {
        let binary = (mapping.backing() == Backing::File).then(|| binaries.index(pid, &mapping));
        Code { mapping, binary }
    };
    mappings.map(code).collect()
}

fn find(codes: &[Code], address: u64) -> Option<&Code> {
    let after = codes.partition_point(|code| code.mapping.start <= address);
    codes.get(after.checked_sub(1)?).filter(|code| address < code.mapping.end)
}

/// The file belongs to the process's user, or to root: in a folder that anybody may write to, others could put one there.
fn jit_names(pid: u32) -> Option<File> {
    let path = format!("/proc/{pid}/root/tmp/perf-{}.map", process::own_number(pid));
    let file = open_regular(&path, libc::O_NOFOLLOW)?;
    let owner = file.metadata().ok()?.uid();
    (owner == 0 || Some(owner) == process::user(pid)).then_some(file)
}
