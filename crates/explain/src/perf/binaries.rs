//! Files whose code was seen in processes, opened while they are there: a process that ends takes its mount namespace with it, and a
//! file may be removed. Each is opened once, however many processes map it. What is in them is read elsewhere.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::perf::maps::Mapping;

/// More files than any process maps; the rest go without names.
const OPEN_MAX: usize = 512;

/// A file.
#[derive(Debug)]
pub(crate) struct Binary {
    /// Its name without folders.
    pub module: String,
    /// The file, if it could be opened.
    pub file: Option<File>,
}

/// The files of all processes.
#[derive(Debug, Default)]
pub(crate) struct Binaries {
    list: Vec<Binary>,
    /// Index into the list, by device and number on it.
    known: HashMap<(String, u64), usize>,
}

impl Binaries {
    /// The index of a mapping's file.
    pub(crate) fn index(&mut self, pid: u32, mapping: &Mapping) -> usize {
        let key = (mapping.device.clone(), mapping.inode);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let file = if self.list.len() < OPEN_MAX { open(pid, mapping) } else { None };
        self.list.push(Binary { module: mapping.module().to_owned(), file });
        self.known.insert(key, self.list.len() - 1);
        self.list.len() - 1
    }

    /// The files, by index.
    pub(crate) fn into_list(self) -> Vec<Binary> {
        self.list
    }
}

fn open(pid: u32, mapping: &Mapping) -> Option<File> {
    if mapping.is_deleted() {
        return open_deleted(pid, mapping);
    }
    // The path is one of the process's own mount namespace. It has no symbolic links left, so that one which stands there now was
    // put there since.
    open_regular(&format!("/proc/{pid}/root{}", mapping.path), libc::O_NOFOLLOW)
}

/// A file that has no name any more can still be had through the process itself. The kernel allows the one way for the program alone, the
/// other to root.
fn open_deleted(pid: u32, mapping: &Mapping) -> Option<File> {
    let program = format!("/proc/{pid}/exe");
    let is_program = fs::metadata(&program).is_ok_and(|metadata| metadata.ino() == mapping.inode);
    if is_program {
        return open_regular(&program, 0);
    }
    open_regular(&format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end), 0)
}

/// Opens a file that is one. Of a pipe, opening would wait for whoever is to write to it.
pub(crate) fn open_regular(path: &str, flags: i32) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | flags)
        .open(path)
        .ok()?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}
