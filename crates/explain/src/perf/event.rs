//! The kernel interface: events that sample a thread, and the rings that receive samples.
//!
//! All unsafe code of this crate is here, so that it can be reviewed in one place. This module does not
//! handle processes and names, and does not interpret the bytes of a ring.
//!
//! Calls, structures and numbers come from `linux/perf_event.h` and perf_event_open(2). They are few, so no
//! crate of bindings is needed.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// `struct perf_event_attr` in its first size, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;

// Contents of a sample, in this order: the address, process and thread, the chain of callers.
const SAMPLE_IP: u64 = 1 << 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;

const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const INHERIT_THREAD: u64 = 1 << 35;

// `_IO('$', n)`.
const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const SET_OUTPUT: u32 = 0x2405;

/// Sampling mode of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Whether the kernel's own work is sampled.
    pub kernel: bool,
    /// Whether inheritance is limited to threads of the same process (Linux 5.13).
    pub threads_only: bool,
}

/// An event, which ends when it is dropped.
pub(crate) struct PerfEvent(OwnedFd);

impl PerfEvent {
    /// Creates an event that does not sample before it is enabled. It covers a thread while it runs on a CPU,
    /// and threads that it starts. `None` is the calling thread, to check whether this is allowed.
    pub(crate) fn open(whom: Option<(u32, usize)>, mode: Mode) -> io::Result<PerfEvent> {
        let absent = || io::Error::from_raw_os_error(libc::ESRCH);
        let (task, cpu): (libc::c_int, libc::c_int) = match whom {
            None => (0, -1),
            Some((tid, cpu)) => (
                tid.try_into().map_err(|_| absent())?,
                cpu.try_into().map_err(|_| absent())?,
            ),
        };
        let descriptor = i32::try_from(perf_event_open(attributes(mode), task, cpu)?)
            .map_err(io::Error::other)?;
        // SAFETY: the call has just created this descriptor, and no other code knows it.
        Ok(PerfEvent(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Samples from now on, including threads that were started since the event was created.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// Redirects samples to the ring of another event on the same CPU.
    pub(crate) fn send_to(&self, other: &PerfEvent) -> io::Result<()> {
        self.control(SET_OUTPUT, other.0.as_raw_fd())
    }

    fn control(&self, request: u32, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: these requests take a number, no pointer.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
fn perf_event_open(
    mut attributes: Attributes,
    task: libc::c_int,
    cpu: libc::c_int,
) -> io::Result<libc::c_long> {
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel reads as many bytes from the address as given in the structure's field `size`, and
    // writes at most to that field. It keeps no pointer.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            task,
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(descriptor)
    }
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
fn perf_event_open(_: Attributes, _: libc::c_int, _: libc::c_int) -> io::Result<libc::c_long> {
    Err(io::ErrorKind::Unsupported.into())
}

fn attributes(mode: Mode) -> Attributes {
    let kernel = if mode.kernel { 0 } else { EXCLUDE_KERNEL };
    let threads_only = if mode.threads_only { INHERIT_THREAD } else { 0 };
    Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        sample_period: super::PERIOD_NS,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_CALLCHAIN,
        flags: DISABLED | INHERIT | EXCLUDE_HYPERVISOR | SAMPLE_ID_ALL | kernel | threads_only,
        ..Attributes::default()
    }
}

/// Memory shared with the kernel: a page with the write and read positions, then the samples.
///
/// ```text
/// 0      1024  1032        page                       page + size
/// | ...  head  tail ...    | samples, round and round |
/// ```
pub(crate) struct PerfRing {
    memory: NonNull<c_void>,
    page: usize,
    size: usize,
    /// Bytes read so far, as reported to the kernel.
    tail: u64,
}

const HEAD: usize = 1024;
const TAIL: usize = 1032;

// SAFETY: this value owns the mapping. The kernel writes to it from any CPU anyway, and reads are ordered by
// the head.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps memory of `pages` pages, a power of two, for the samples of an event and of events redirected to
    /// it.
    pub(crate) fn map(event: &PerfEvent, pages: usize) -> io::Result<PerfRing> {
        let page = page_bytes();
        let size = pages * page;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + size,
                access,
                MapFlags::SHARED,
                &event.0,
                0,
            )
        }?;
        let memory =
            NonNull::new(memory).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(PerfRing {
            memory,
            page,
            size,
            tail: 0,
        })
    }

    /// Appends new data since the last call, and frees its space. Records are always complete.
    pub(crate) fn drain(&mut self, into: &mut Vec<u8>) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let unread = usize::try_from(head.wrapping_sub(self.tail))
            .map_or(self.size, |unread| unread.min(self.size));
        let start = (self.tail % self.size as u64) as usize;
        let before_end = unread.min(self.size - start);
        self.copy(start, before_end, into);
        self.copy(0, unread - before_end, into);
        self.tail = head;
        self.position(TAIL).store(head, Ordering::Release);
    }

    fn copy(&self, start: usize, count: usize, into: &mut Vec<u8>) {
        into.reserve(count);
        // SAFETY: `start` and `count` lie within the samples' part of the mapping, and between tail and head,
        // where the kernel does not write before the tail is updated. The vector has room for `count` bytes
        // after its last, in other memory. All of them are written before its length is set.
        unsafe {
            let from = self.memory.as_ptr().cast::<u8>().add(self.page + start);
            from.copy_to_nonoverlapping(into.as_mut_ptr().add(into.len()), count);
            into.set_len(into.len() + count);
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page of the mapping, which lives as long as this value. Both offsets are
        // aligned to 8 bytes. The kernel also reads and writes them as whole words.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().cast::<u8>().add(offset).cast()) }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, unmapped once. No reference into it outlives this value.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.page + self.size) };
    }
}

pub(crate) fn page_bytes() -> usize {
    // SAFETY: takes no pointer and changes nothing.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .unwrap_or(4096)
}
