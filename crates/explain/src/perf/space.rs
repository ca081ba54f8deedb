//! The address space of a process: maps addresses to code. Captured at the start of sampling, so that a
//! process that exits meanwhile can still be named. Read again at the end for code loaded since.
//!
//! Files with sampled code are opened while the process runs: its mount namespace ends with it, and a file
//! may be removed. Each is opened once, regardless of how many processes map it. Their contents are read
//! elsewhere.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

use indexmap::IndexMap;
use machine::process;

/// The source of code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CodeOrigin {
    Kernel,
    /// A file: its index in [`Binaries`].
    File(usize),
    /// Generated at run time by this process.
    RunTime(u32),
    /// Code that the kernel maps into processes, such as `[vdso]`.
    Lent(String),
    /// An address that is not known to be code.
    Unknown,
}

/// A position in code: an offset for a file, otherwise an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeAddress {
    pub origin: CodeOrigin,
    pub at: u64,
}

#[derive(Debug)]
pub(crate) struct Binary {
    /// Its name without folders.
    pub module: String,
    pub file: Option<File>,
}

/// The files of all processes, by device and inode.
pub(crate) type Binaries = IndexMap<(String, u64), Binary>;

/// More files than any process maps. Further files get no names.
const OPEN_MAX: usize = 512;
/// Suffix that the kernel appends to the path of a deleted file.
const DELETED: &str = " (deleted)";
/// Shared memory, through which JIT compilers write code.
const SHARED_MEMORY: [&str; 4] = ["/memfd:", "/SYSV", "/dev/", "//anon"];

/// A region of memory that contains code, from a line of `/proc/PID/maps`.
struct MemoryMapping<'t> {
    start: u64,
    end: u64,
    /// Its offset in the file.
    offset: u64,
    /// The file's device, such as `fe:01`, and its inode. 0 if there is no file.
    device: &'t str,
    inode: u64,
    /// The file's path in the process's own mount namespace, or the kernel's name for memory without a file.
    path: String,
}

impl<'t> MemoryMapping<'t> {
    /// Parses `7f75e5ae4000-7f75e5b0a000 r-xp 00026000 fe:00 12345    /lib/libc.so.6`. `None` if it is not
    /// executable.
    ///
    /// Not procfs-core's parser: it rejects the whole file for one unknown line, and some paths make it
    /// panic.
    fn parse(line: &'t str) -> Option<MemoryMapping<'t>> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        fields
            .next()
            .filter(|permissions| permissions.as_bytes().get(2) == Some(&b'x'))?;
        Some(MemoryMapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(fields.next()?)?,
            device: fields.next()?,
            inode: fields.next()?.parse().ok()?,
            // The kernel escapes a line end in a name like this, and nothing else.
            path: fields
                .next()
                .unwrap_or_default()
                .trim_start()
                .replace("\\012", "\n"),
        })
    }

    fn code(self, pid: u32, binaries: &mut Binaries) -> CodeRange {
        let (start, end) = (self.start, self.end);
        let is_shared_memory = SHARED_MEMORY.iter().any(|name| self.path.starts_with(name));
        let (origin, base) = if self.path.starts_with("[vdso") || self.path.starts_with("[vsyscall")
        {
            (CodeOrigin::Lent(self.path), 0)
        } else if self.inode == 0 || !self.path.starts_with('/') || is_shared_memory {
            (CodeOrigin::RunTime(pid), 0)
        } else {
            (
                CodeOrigin::File(self.index(pid, binaries)),
                start.wrapping_sub(self.offset),
            )
        };
        CodeRange {
            start,
            end,
            base,
            origin,
        }
    }

    /// The index of its file.
    fn index(&self, pid: u32, binaries: &mut Binaries) -> usize {
        let has_room = binaries.len() < OPEN_MAX;
        let entry = binaries.entry((self.device.to_owned(), self.inode));
        let index = entry.index();
        entry.or_insert_with(|| {
            let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
            let module = path.rsplit('/').next().unwrap_or(path).to_owned();
            Binary {
                module,
                file: if has_room { self.open(pid) } else { None },
            }
        });
        index
    }

    fn open(&self, pid: u32) -> Option<File> {
        if !self.path.ends_with(DELETED) {
            // The path is in the process's own mount namespace and contains no symbolic links, so a link that
            // exists there now was created later.
            return open_regular(&format!("/proc/{pid}/root{}", self.path), libc::O_NOFOLLOW);
        }
        // A deleted file can still be opened through the process. The kernel allows the first way only for
        // the program itself, and the second only for root.
        let program = format!("/proc/{pid}/exe");
        match fs::metadata(&program).is_ok_and(|metadata| metadata.ino() == self.inode) {
            true => open_regular(&program, 0),
            false => open_regular(
                &format!("/proc/{pid}/map_files/{:x}-{:x}", self.start, self.end),
                0,
            ),
        }
    }
}

/// Opens a regular file. Opening a pipe would wait for a writer.
pub(crate) fn open_regular(path: &str, flags: i32) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | flags;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file())
        .then_some(file)
}

/// The address space of a process.
#[derive(Debug)]
pub(crate) struct Space {
    pub pid: u32,
    /// The map in which the process names code generated at run time.
    pub jit_names: Option<File>,
    first: Vec<CodeRange>,
    last: Vec<CodeRange>,
}

#[derive(Debug)]
struct CodeRange {
    start: u64,
    end: u64,
    /// Subtracted from an address to get the position.
    base: u64,
    origin: CodeOrigin,
}

// Markers in a chain of addresses, which define the side of the following ones. Markers are [`MARKERS`] or
// more.
const KERNEL: u64 = (-128i64) as u64;
const USER: u64 = (-512i64) as u64;
const MARKERS: u64 = (-4095i64) as u64;

/// Whether a chain contains anything but markers.
pub(crate) fn has_address(chain: &[u64]) -> bool {
    chain.iter().any(|entry| *entry < MARKERS)
}

impl Space {
    /// The current address space of a process.
    pub fn of(pid: u32, binaries: &mut Binaries) -> Space {
        let first = codes(pid, &process::text(pid, "maps"), binaries);
        Space {
            pid,
            jit_names: jit_names(pid),
            first,
            last: Vec::new(),
        }
    }

    /// Reads the maps again, if the process still exists.
    pub fn refresh(&mut self, binaries: &mut Binaries) {
        self.last = codes(self.pid, &process::text(self.pid, "maps"), binaries);
        self.jit_names = jit_names(self.pid).or(self.jit_names.take());
    }

    /// The code at an address, now or at the start. `None` if it is not code.
    pub fn place(&self, address: u64) -> Option<CodeAddress> {
        let find = |codes: &'_ [CodeRange]| -> Option<CodeAddress> {
            let after = codes.partition_point(|code| code.start <= address);
            let code = codes[..after].last().filter(|code| address < code.end)?;
            Some(CodeAddress {
                origin: code.origin.clone(),
                at: address.wrapping_sub(code.base),
            })
        };
        find(&self.last).or_else(|| find(&self.first))
    }

    /// The positions in a chain, root first. The kernel writes it like this:
    ///
    /// ```text
    /// kernel marker, where it is, its caller, ..., user marker, where it is, its caller, ...
    /// ```
    ///
    /// Callers are given by their return address. The call itself is before it. If the call was the last
    /// instruction of a function, the address after it belongs to another function. One byte less is always
    /// inside of the call.
    pub fn places(&self, chain: &[u64]) -> Vec<CodeAddress> {
        // A chain without a marker is one address, for a sample without a chain.
        let mut side = if chain.first().is_some_and(|address| address >> 63 == 1) {
            KERNEL
        } else {
            USER
        };
        let mut is_first = true;
        let mut places = Vec::with_capacity(chain.len());
        for &entry in chain {
            if entry >= MARKERS {
                (side, is_first) = (entry, true);
                continue;
            }
            // The kernel knows the thread's position. Callers are found by frame pointers, if there are any.
            let is_certain = std::mem::replace(&mut is_first, false);
            let at = if is_certain {
                entry
            } else {
                entry.saturating_sub(1)
            };
            match side {
                KERNEL => places.push(CodeAddress {
                    origin: CodeOrigin::Kernel,
                    at,
                }),
                USER => match self.place(at) {
                    Some(place) => places.push(place),
                    None if is_certain => places.push(CodeAddress {
                        origin: CodeOrigin::Unknown,
                        at,
                    }),
                    // Compiled code without frame pointers uses that register for other values. An address
                    // that is not code is such a value, and so is everything after it.
                    None => break,
                },
                // A guest's address.
                _ => {}
            }
        }
        places.reverse();
        places
    }
}

fn codes(pid: u32, maps: &str, binaries: &mut Binaries) -> Vec<CodeRange> {
    let mappings = maps.lines().filter_map(MemoryMapping::parse);
    let mut codes: Vec<CodeRange> = mappings
        .map(|mapping| mapping.code(pid, binaries))
        .collect();
    codes.sort_unstable_by_key(|code| code.start);
    codes
}

/// File times are some milliseconds late, and process start times have a resolution of 1/100 s.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// Opens the map if it belongs to the process's user or to root, because others could create one in a
/// world-writable folder. It must have been written since the process started: an earlier process with the
/// same PID may have left it, which is common in containers.
fn jit_names(pid: u32) -> Option<File> {
    // Its own PID, which differs in a container.
    let status = process::text(pid, "status");
    let own = process::field(&status, "NSpid")
        .and_then(|numbers| numbers.split_ascii_whitespace().last());
    let own = own.map_or_else(|| pid.to_string(), str::to_owned);
    let file = open_regular(
        &format!("/proc/{pid}/root/tmp/perf-{own}.map"),
        libc::O_NOFOLLOW,
    )?;
    let metadata = file.metadata().ok()?;
    let user = fs::metadata(format!("/proc/{pid}"))
        .ok()
        .map(|metadata| metadata.uid());
    let is_trusted = metadata.uid() == 0 || Some(metadata.uid()) == user;
    // A time in the future counts as now.
    let untouched = metadata.modified().ok()?.elapsed().unwrap_or_default();
    (is_trusted && untouched <= process::age(pid)? + CLOCKS_APART).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00b72000 r--p 00000000 fe:00 99                         /usr/bin/node
00b72000-025fe000 r-xp 00772000 fe:00 99                         /usr/bin/node
7f0000000000-7f0000001000 rwxp 00000000 00:00 0 
7f0000002000-7f0000003000 r-xp 00000000 00:00 0                          [anon:v8]
7f0000004000-7f0000005000 r-xp 00001000 fe:00 7                  /opt/my app/lib a.so (deleted)
7f0000006000-7f0000007000 r-xp 00000000 00:01 8                  /memfd:code (deleted)
7fff00000000-7fff00001000 r-xp 00000000 00:00 0                          [vdso]
cut off
";

    /// A process that does not exist, with these maps.
    fn space() -> (Space, Binaries) {
        let mut binaries = Binaries::default();
        let first = codes(u32::MAX, MAPS, &mut binaries);
        (
            Space {
                pid: u32::MAX,
                jit_names: None,
                first,
                last: Vec::new(),
            },
            binaries,
        )
    }

    #[test]
    fn only_code_is_kept_and_each_kind_told_apart() {
        let (space, binaries) = space();
        let at = |address: u64| space.place(address).map(|place| (place.origin, place.at));
        assert_eq!([0x40_0000, 0x7f00_0000_1000].map(at), [None, None]);
        assert_eq!(at(0xb7_2004), Some((CodeOrigin::File(0), 0x77_2004)));
        assert_eq!(at(0x7f00_0000_4000), Some((CodeOrigin::File(1), 0x1000)));
        assert_eq!(
            at(0x7fff_0000_0000),
            Some((CodeOrigin::Lent("[vdso]".into()), 0x7fff_0000_0000))
        );
        for made in [0x7f00_0000_0000, 0x7f00_0000_2000, 0x7f00_0000_6000] {
            assert_eq!(at(made), Some((CodeOrigin::RunTime(u32::MAX), made)));
        }
        let modules: Vec<String> = binaries.into_values().map(|binary| binary.module).collect();
        assert_eq!(modules, ["node", "lib a.so"]);
    }

    #[test]
    fn names_that_an_earlier_process_of_this_number_left_are_none_of_its_own() {
        let pid = std::process::id();
        let path = format!("/tmp/perf-{pid}.map");
        let file = File::create(&path).unwrap();
        let is_fresh = jit_names(pid).is_some();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        let is_stale = jit_names(pid).is_none();
        fs::remove_file(&path).unwrap();
        assert!(is_fresh && is_stale);
    }

    #[test]
    fn a_chain_leads_through_its_calls_and_no_further_than_code() {
        let (space, _) = space();
        let kernel = 0xffff_ffff_8100_0000;
        let places = |chain: &[u64]| -> Vec<(CodeOrigin, u64)> {
            space
                .places(chain)
                .into_iter()
                .rev()
                .map(|place| (place.origin, place.at))
                .collect()
        };
        // Callers are resolved inside of their call. A non-code address ends the chain.
        let code = 0x7f00_0000_0010;
        let run_time = |at| (CodeOrigin::RunTime(u32::MAX), at);
        assert_eq!(
            places(&[
                KERNEL,
                kernel,
                kernel + 0x100,
                USER,
                code,
                code + 1,
                0x10,
                code
            ]),
            [
                (CodeOrigin::Kernel, kernel),
                (CodeOrigin::Kernel, kernel + 0xff),
                run_time(code),
                run_time(code)
            ]
        );
        // A guest is not mistaken for the process. A single address stands for a sample without a chain.
        assert_eq!(
            places(&[(-2048i64) as u64, code, USER, code]),
            [run_time(code)]
        );
        assert_eq!(places(&[code]), [run_time(code)]);
        assert_eq!(places(&[kernel]), [(CodeOrigin::Kernel, kernel)]);
        assert_eq!(places(&[0x10]), [(CodeOrigin::Unknown, 0x10)]);
        assert!(has_address(&[USER, code]) && !has_address(&[KERNEL, USER]) && !has_address(&[]));
    }
}
