//! Buffers that the kernel fills as bytes arrive: a ring of them shared with it ("provided buffers").
//!
//! The kernel takes a buffer for each receive that completes; whoever has looked at it gives it back. It must not hand
//! out a buffer's bytes after giving the buffer back.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Buffers of a thread, a power of two. They are used in turn, so that more of them would only cool the cache; where they
/// run out, a receive ends early and is begun anew.
pub(super) const COUNT: u16 = 64;
/// The size of each. What of a body is longer arrives in several.
pub(super) const BYTES: usize = 16 * 1024;

/// See the module's text.
pub(super) struct Buffers {
    /// The ring's entries, a page of their own, then the buffers.
    memory: NonNull<c_void>,
    /// The ring's end, also in memory, where the kernel reads it.
    tail: u16,
}

/// Bytes of the ring itself, rounded up to whole pages of any usual size.
const RING_BYTES: usize = (COUNT as usize * size_of::<BufRingEntry>()).next_multiple_of(64 * 1024);
const TOTAL_BYTES: usize = RING_BYTES + COUNT as usize * BYTES;

impl Buffers {
    /// Allocates the memory and hands all buffers over.
    pub(super) fn new() -> Result<Buffers, Errno> {
        let access = ProtFlags::READ.union(ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), TOTAL_BYTES, access, MapFlags::PRIVATE) }?;
        let memory = NonNull::new(memory).ok_or(Errno::NOMEM)?;
        let mut buffers = Buffers { memory, tail: 0 };
        for id in 0..COUNT {
            buffers.give_back(id);
        }
        Ok(buffers)
    }

    /// Where the ring begins, as the kernel is told once.
    pub(super) fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The first `count` bytes of buffer `id`, which a completion has named.
    pub(super) fn bytes(&self, id: u16, count: usize) -> &[u8] {
        assert!(id < COUNT && count <= BYTES, "the kernel was given {COUNT} buffers of {BYTES} bytes");
        // SAFETY: within the mapping, initialised by mmap; the kernel does not write to a buffer it has completed
        // until that is given back, which takes this value mutably.
        unsafe { std::slice::from_raw_parts(self.buffer(id), count) }
    }

    /// Gives buffer `id` back to the kernel.
    pub(super) fn give_back(&mut self, id: u16) {
        let address = self.buffer(id) as u64;
        let ring = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the slot is within the ring's pages; the kernel reads slots before the tail only. The entry's last
        // field is left alone, for in slot 0 it is the tail itself.
        let entry = unsafe { &mut *ring.add(usize::from(self.tail % COUNT)) };
        entry.set_addr(address);
        entry.set_len(BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry of the mapping, aligned to 2 bytes; the kernel reads it with acquire.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(ring).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn buffer(&self, id: u16) -> *mut u8 {
        // SAFETY: `id` is below COUNT, so that the result lies within the mapping.
        unsafe { self.memory.as_ptr().cast::<u8>().add(RING_BYTES + usize::from(id) * BYTES) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, unmapped once. The driver drops its ring first, so that the kernel has no
        // request left that could write here.
        let _ = unsafe { munmap(self.memory.as_ptr(), TOTAL_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_go_round_and_none_lies_in_another() {
        let mut buffers = Buffers::new().unwrap();
        for turn in 0..3 * COUNT {
            let id = turn * 7 % COUNT;
            assert!(buffers.bytes(id, BYTES).ends_with(&[0]));
            buffers.give_back(id);
        }
        assert_eq!(buffers.tail, 4 * COUNT);
        let places: Vec<_> = (0..COUNT).map(|id| buffers.bytes(id, BYTES).as_ptr_range()).collect();
        assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(places[0].start as u64 - buffers.address() >= RING_BYTES as u64);
    }
}
