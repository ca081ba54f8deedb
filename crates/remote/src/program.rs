//! The program that is copied to other machines: its bytes, its hash, and the machines that can run it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use model::Digest;

use crate::{Blame, Error};

/// The program of this process, even if its file has been replaced meanwhile.
const OWN: &str = "/proc/self/exe";
/// Maximum size. More than any program has.
const BYTES_MAX: u64 = 1 << 30;
/// Number of digits of the hash in a file name. They distinguish versions, and comparisons use the whole
/// hash.
const NAME_DIGITS: usize = 16;

/// A `proofload` for Linux in a file on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Size in bytes.
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

    /// The program in another file, for example built for older or other machines. The file is read here and
    /// once more when the program is copied.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a program for Linux.
    pub fn at(path: &Path) -> Result<Program, Error> {
        let failed = |source| failed(path, source);
        let program = plan::read_file(path, BYTES_MAX).map_err(failed)?;
        let unfit = || {
            failed(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a Linux (ELF) program",
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

    /// File name on other machines: `proofload-` and the beginning of the hash.
    pub fn file_name(&self) -> String {
        format!("proofload-{}", &self.sha256[..NAME_DIGITS])
    }

    pub(crate) fn open(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|source| self.failed(source))
    }

    pub(crate) fn failed(&self, source: io::Error) -> Error {
        failed(&self.path, source)
    }

    /// Whether a machine with this name from `uname -m` can run the program. True for an unknown processor,
    /// because only a trial run can show it.
    pub(crate) fn runs_on(&self, machine: &str) -> bool {
        self.machine.is_empty() || self.machine.contains(&machine)
    }

    /// Name of the machine that the program is built for, as in `uname -m`.
    pub(crate) fn machine(&self) -> &'static str {
        self.machine.first().copied().unwrap_or("another processor")
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::new(format!("{}: {source}", path.display()))
        .by(Blame::Request)
        .help("use a proofload that is built for Linux")
}

/// Machines that can run a program with this beginning, by their name in `uname -m`, the program's target
/// first. Reads the identification and the field e_machine of the ELF header (elf(5)). `None` if this is not
/// an ELF file, and an empty list for an unknown processor.
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
        // Big-endian files for two processors: s390x is known by name, and 32-bit PowerPC is not.
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
        assert!(error.ends_with("/p: not a Linux (ELF) program"), "{error}");
        std::fs::write(&file, "#!/bin/sh\nexec something-long-enough\n").unwrap();
        assert!(Program::at(&file).is_err());
    }
}
