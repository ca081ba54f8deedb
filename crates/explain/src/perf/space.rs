//! The address space of a process: what lies at an address. Kept from the start of sampling, so that a process which ends meanwhile
//! can still be named, and read again at its end for what was loaded since.
//!
//! Files whose code is seen are opened while the process is there: one that ends takes its mount namespace with it, and a file may be
//! removed. Each is opened once, however many processes map it. What is in them is read elsewhere.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

use indexmap::IndexMap;
use machine::process;

/// Where code comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    Kernel,
    /// A file: its index in [`Binaries`].
    File(usize),
    /// Made at run time by this process.
    RunTime(u32),
    /// Code that the kernel lends to processes, such as `[vdso]`.
    Lent(String),
    /// Nothing that was known to be code.
    Unknown,
}

/// A place in code: of a file counted from its beginning, else an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub origin: Origin,
    pub at: u64,
}

#[derive(Debug)]
pub(crate) struct Binary {
    /// Its name without folders.
    pub module: String,
    pub file: Option<File>,
}

/// The files of all processes, by device and number on it.
pub(crate) type Binaries = IndexMap<(String, u64), Binary>;

/// More files than any process maps; the rest go without names.
const OPEN_MAX: usize = 512;
/// What the kernel appends to the path of a file that is no longer there by that name.
const DELETED: &str = " (deleted)";
/// Shared memory, through which programs that make code at run time write it.
const SHARED_MEMORY: [&str; 4] = ["/memfd:", "/SYSV", "/dev/", "//anon"];

/// A stretch of memory that holds code, as a line of `/proc/PID/maps` tells of it.
struct Mapping<'t> {
    start: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    /// The file's device, as `fe:01`, and its number on it; 0 where there is no file.
    device: &'t str,
    inode: u64,
    /// The file's path as the process's own mount namespace has it, or what the kernel calls memory without a file.
    path: String,
}

impl<'t> Mapping<'t> {
    /// `7f75e5ae4000-7f75e5b0a000 r-xp 00026000 fe:00 12345    /lib/libc.so.6`; `None` for one without code.
    ///
    /// Not procfs-core's: for one line that it does not know it gives up the whole file, and some paths make it panic.
    fn parse(line: &'t str) -> Option<Mapping<'t>> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        fields.next().filter(|permissions| permissions.as_bytes().get(2) == Some(&b'x'))?;
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(fields.next()?)?,
            device: fields.next()?,
            inode: fields.next()?.parse().ok()?,
            // The kernel writes a line end in a name so; nothing else is changed.
            path: fields.next().unwrap_or_default().trim_start().replace("\\012", "\n"),
        })
    }

    fn code(self, pid: u32, binaries: &mut Binaries) -> Code {
        let (start, end) = (self.start, self.end);
        let is_shared_memory = SHARED_MEMORY.iter().any(|name| self.path.starts_with(name));
        let (origin, base) = if self.path.starts_with("[vdso") || self.path.starts_with("[vsyscall") {
            (Origin::Lent(self.path), 0)
        } else if self.inode == 0 || !self.path.starts_with('/') || is_shared_memory {
            (Origin::RunTime(pid), 0)
        } else {
            (Origin::File(self.index(pid, binaries)), start.wrapping_sub(self.offset))
        };
        Code { start, end, base, origin }
    }

    /// The index of its file.
    fn index(&self, pid: u32, binaries: &mut Binaries) -> usize {
        let has_room = binaries.len() < OPEN_MAX;
        let entry = binaries.entry((self.device.to_owned(), self.inode));
        let index = entry.index();
        entry.or_insert_with(|| {
            let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
            let module = path.rsplit('/').next().unwrap_or(path).to_owned();
            Binary { module, file: if has_room { self.open(pid) } else { None } }
        });
        index
    }

    fn open(&self, pid: u32) -> Option<File> {
        if !self.path.ends_with(DELETED) {
            // The path is one of the process's own mount namespace. It has no symbolic links left, so that one which stands there now
            // was put there since.
            return open_regular(&format!("/proc/{pid}/root{}", self.path), libc::O_NOFOLLOW);
        }
        // A file that has no name any more can still be had through the process itself. The kernel allows the one way for the program
        // alone, the other to root.
        let program = format!("/proc/{pid}/exe");
        match fs::metadata(&program).is_ok_and(|metadata| metadata.ino() == self.inode) {
            true => open_regular(&program, 0),
            false => open_regular(&format!("/proc/{pid}/map_files/{:x}-{:x}", self.start, self.end), 0),
        }
    }
}

/// Opens a file that is one. Of a pipe, opening would wait for whoever is to write to it.
pub(crate) fn open_regular(path: &str, flags: i32) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | flags;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

/// The address space of a process.
#[derive(Debug)]
pub(crate) struct Space {
    pub pid: u32,
    /// Names that it writes for code made at run time.
    pub jit_names: Option<File>,
    first: Vec<Code>,
    last: Vec<Code>,
}

#[derive(Debug)]
struct Code {
    start: u64,
    end: u64,
    /// What is taken from an address, to have the place.
    base: u64,
    origin: Origin,
}

// Markers in a chain of addresses: whose those that follow are. Markers are [`MARKERS`] or more.
const KERNEL: u64 = (-128i64) as u64;
const USER: u64 = (-512i64) as u64;
const MARKERS: u64 = (-4095i64) as u64;

/// Whether a chain says more than whose addresses would follow.
pub(crate) fn has_address(chain: &[u64]) -> bool {
    chain.iter().any(|entry| *entry < MARKERS)
}

impl Space {
    /// That of a process as it is now.
    pub fn of(pid: u32, binaries: &mut Binaries) -> Space {
        let first = codes(pid, &process::text(pid, "maps"), binaries);
        Space { pid, jit_names: jit_names(pid), first, last: Vec::new() }
    }

    /// Reads again what may have changed since, if the process is still there.
    pub fn refresh(&mut self, binaries: &mut Binaries) {
        self.last = codes(self.pid, &process::text(self.pid, "maps"), binaries);
        self.jit_names = jit_names(self.pid).or(self.jit_names.take());
    }

    /// What lies at an address, or lay there at the start; `None` where that is no code.
    pub fn place(&self, address: u64) -> Option<Place> {
        let find = |codes: &'_ [Code]| -> Option<Place> {
            let after = codes.partition_point(|code| code.start <= address);
            let code = codes[..after].last().filter(|code| address < code.end)?;
            Some(Place { origin: code.origin.clone(), at: address.wrapping_sub(code.base) })
        };
        find(&self.last).or_else(|| find(&self.first))
    }

    /// What a chain leads through, the root first. The kernel writes it so:
    ///
    /// ```text
    /// kernel marker, where it is, its caller, ..., user marker, where it is, its caller, ...
    /// ```
    ///
    /// Callers stand with the address that they will be returned to. The call itself is before it, and where it was the last instruction
    /// of a function the address after it belongs to another: one byte less is always inside of the call.
    pub fn places(&self, chain: &[u64]) -> Vec<Place> {
        // A chain without a marker is one address that stands for a sample without chain.
        let mut side = if chain.first().is_some_and(|address| address >> 63 == 1) { KERNEL } else { USER };
        let mut is_first = true;
        let mut places = Vec::with_capacity(chain.len());
        for &entry in chain {
            if entry >= MARKERS {
                (side, is_first) = (entry, true);
                continue;
            }
            // Where the thread was the kernel knows; callers it finds by frame pointers, if there are any.
            let is_certain = std::mem::replace(&mut is_first, false);
            let at = if is_certain { entry } else { entry.saturating_sub(1) };
            match side {
                KERNEL => places.push(Place { origin: Origin::Kernel, at }),
                USER => match self.place(at) {
                    Some(place) => places.push(place),
                    None if is_certain => places.push(Place { origin: Origin::Unknown, at }),
                    // Compiled code without frame pointers keeps other things in that register. What does not lead to code is such a
                    // thing, and so is all that seems to lie behind it.
                    None => break,
                },
                // A guest's.
                _ => {}
            }
        }
        places.reverse();
        places
    }
}

fn codes(pid: u32, maps: &str, binaries: &mut Binaries) -> Vec<Code> {
    let mappings = maps.lines().filter_map(Mapping::parse);
    let mut codes: Vec<Code> = mappings.map(|mapping| mapping.code(pid, binaries)).collect();
    codes.sort_unstable_by_key(|code| code.start);
    codes
}

/// Times of files are some milliseconds late, and starts of processes are told in hundredths of a second.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// The file belongs to the process's user, or to root: in a folder that anybody may write to, others could put one there. And it was
/// written since the process was started: an earlier one of the same number may have left it, in containers as often as not.
fn jit_names(pid: u32) -> Option<File> {
    // Its number as it knows it itself: in a container another than ours.
    let status = process::text(pid, "status");
    let own = process::field(&status, "NSpid").and_then(|numbers| numbers.split_ascii_whitespace().last());
    let own = own.map_or_else(|| pid.to_string(), str::to_owned);
    let file = open_regular(&format!("/proc/{pid}/root/tmp/perf-{own}.map"), libc::O_NOFOLLOW)?;
    let metadata = file.metadata().ok()?;
    let user = fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid());
    let is_trusted = metadata.uid() == 0 || Some(metadata.uid()) == user;
    // A time to come is none that has passed.
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

    /// A process that is not there, with these maps.
    fn space() -> (Space, Binaries) {
        let mut binaries = Binaries::default();
        let first = codes(u32::MAX, MAPS, &mut binaries);
        (Space { pid: u32::MAX, jit_names: None, first, last: Vec::new() }, binaries)
    }

    #[test]
    fn only_code_is_kept_and_each_kind_told_apart() {
        let (space, binaries) = space();
        let at = |address: u64| space.place(address).map(|place| (place.origin, place.at));
        assert_eq!([0x40_0000, 0x7f00_0000_1000].map(at), [None, None]);
        assert_eq!(at(0xb7_2004), Some((Origin::File(0), 0x77_2004)));
        assert_eq!(at(0x7f00_0000_4000), Some((Origin::File(1), 0x1000)));
        assert_eq!(at(0x7fff_0000_0000), Some((Origin::Lent("[vdso]".into()), 0x7fff_0000_0000)));
        for made in [0x7f00_0000_0000, 0x7f00_0000_2000, 0x7f00_0000_6000] {
            assert_eq!(at(made), Some((Origin::RunTime(u32::MAX), made)));
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
        let places = |chain: &[u64]| -> Vec<(Origin, u64)> {
            space.places(chain).into_iter().rev().map(|place| (place.origin, place.at)).collect()
        };
        // Callers are looked up inside of their call; what leads to no code is none, with all behind it.
        let code = 0x7f00_0000_0010;
        let run_time = |at| (Origin::RunTime(u32::MAX), at);
        assert_eq!(
            places(&[KERNEL, kernel, kernel + 0x100, USER, code, code + 1, 0x10, code]),
            [(Origin::Kernel, kernel), (Origin::Kernel, kernel + 0xff), run_time(code), run_time(code)]
        );
        // A guest is not mistaken for the process; an address alone stands for a sample without chain.
        assert_eq!(places(&[(-2048i64) as u64, code, USER, code]), [run_time(code)]);
        assert_eq!(places(&[code]), [run_time(code)]);
        assert_eq!(places(&[kernel]), [(Origin::Kernel, kernel)]);
        assert_eq!(places(&[0x10]), [(Origin::Unknown, 0x10)]);
        assert!(has_address(&[USER, code]) && !has_address(&[KERNEL, USER]) && !has_address(&[]));
    }
}
