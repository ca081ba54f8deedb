//! The program that is put elsewhere: its bytes, what they hash to, and which machines can run them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use model::Digest;

use crate::{Blame, Error};

/// The program of this process, also when its file was replaced meanwhile.
const OWN: &str = "/proc/self/exe";
/// More than any program has.
const BYTES_MAX: u64 = 1 << 30;
/// Digits of the hash in a file's name: enough to tell versions apart, while the whole hash is what is compared.
const NAME_DIGITS: usize = 16;

/// A `proofload` for Linux, as a file of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// How long it is.
    pub bytes: u64,
    machine: &'static [&'static str],
}

impl Program {
    /// The program of this process.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn own() -> Result<Program, Error> {
        Program::at(Path::new(OWN))
    }

    /// Another one, such as one that was built for older or other machines. It is read once here and again when it is put somewhere.
    ///
    /// # Errors
    /// If it cannot be read, or is none for Linux.
    pub fn at(path: &Path) -> Result<Program, Error> {
        let failed = |source| failed(path, source);
        let program = plan::read_file(path, BYTES_MAX).map_err(failed)?;
        let unfit = || {
            failed(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is no program for Linux",
            ))
        };
        let machine = machines(&program).ok_or_else(unfit)?;
        let sha256 = Digest::of(&program).to_string();
        Ok(Program {
            path: path.to_owned(),
            sha256,
            bytes: program.len() as u64,
            machine,
        })
    }

    /// Its file on other machines: `proofload-` and the begin of its hash.
    pub fn file_name(&self) -> String {
        format!("proofload-{}", &self.sha256[..NAME_DIGITS])
    }

    pub(crate) fn open(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|source| self.failed(source))
    }

    pub(crate) fn failed(&self, source: io::Error) -> Error {
        failed(&self.path, source)
    }

    /// Whether a machine of this name, as `uname -m` has it, runs it. For a processor that is not known here, it takes a try.
    pub(crate) fn runs_on(&self, machine: &str) -> bool {
        self.machine.is_empty() || self.machine.contains(&machine)
    }

    /// The name of the machine that it is for, as `uname -m` has it.
    pub(crate) fn machine(&self) -> &'static str {
        self.machine.first().copied().unwrap_or("another processor")
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::new(format!("{}: {source}", path.display()))
        .by(Blame::Request)
        .help("name a proofload that was built for Linux")
}

/// The machines that run a program that begins like this, as `uname -m` calls them, its own first: by the identification and the
/// field e_machine of its ELF header (elf(5)). None where it is no ELF file; an empty list where the processor is not known here.
fn machines(begin: &[u8]) -> Option<&'static [&'static str]> {
    let head = begin.get(..20)?;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let (wide, big) = (head[4] == 2, head[5] == 2);
    let number = [head[18], head[19]];
    let number = if big {
        u16::from_be_bytes(number)
    } else {
        u16::from_le_bytes(number)
    };
    Some(match (number, wide) {
        (62, true) => &["x86_64"],
        (3, _) => &["i686", "i586", "i486", "i386", "x86_64"],
        (183, _) => &["aarch64", "arm64"],
        (40, _) => &["armv7l", "armv6l", "armv8l"],
        (243, true) => &["riscv64"],
        (22, true) => &["s390x"],
        (21, true) if big => &["ppc64"],
        (21, true) => &["ppc64le"],
        _ => &[],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_bytes_and_by_what_runs_it() {
        let own = Program::own().unwrap();
        assert!(own.runs_on(std::env::consts::ARCH), "{own:?}");
        assert!(!own.runs_on("vax"));
        assert_eq!(own.bytes, std::fs::metadata(OWN).unwrap().len());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p");
        // Of 32 bits and the other order of bytes, for a processor that we know by name: PowerPC is none of them, s390x is.
        let elf = |class: u8, order: u8, machine: [u8; 2]| {
            let mut head = [&b"\x7fELF"[..], &[class, order, 1], &[0; 11]].concat();
            head.extend(machine);
            std::fs::write(&file, head).unwrap();
            Program::at(&file).unwrap().machine()
        };
        assert_eq!(elf(2, 2, [0, 22]), "s390x");
        assert_eq!(elf(2, 1, [183, 0]), "aarch64");
        assert_eq!(elf(1, 2, [0, 20]), "another processor");
        std::fs::write(&file, "abc").unwrap();
        let error = Program::at(&file).unwrap_err().to_string();
        assert!(error.ends_with("/p: it is no program for Linux"), "{error}");
        std::fs::write(&file, "#!/bin/sh\nexec something-long-enough\n").unwrap();
        assert!(Program::at(&file).is_err());
    }
}
