//! When something last came from whoever gives orders. A network that is cut tells nobody, so whoever says nothing for too long is taken
//! for dead.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::generators::clock::monotonic_ns;

/// When bytes last came, by our clock; 0 before the first. Those before whom others are still being made ready may wait for long.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWord(Arc<AtomicU64>);

impl LastWord {
    /// How much of `lease` is left at a time of our clock; nothing once it is over.
    pub fn left(&self, lease: Duration, now_ns: u64) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => lease,
            last_ns => lease.saturating_sub(Duration::from_nanos(now_ns.saturating_sub(last_ns))),
        }
    }

    fn came(&self, now_ns: u64) {
        self.0.store(now_ns.max(1), Ordering::Relaxed);
    }
}

/// An input that is watched. Each piece counts and not each line: a long one takes time to come.
pub(crate) struct Watched<R> {
    input: R,
    last: LastWord,
}

impl<R> Watched<R> {
    pub fn new(input: R, last: LastWord) -> Watched<R> {
        Watched { input, last }
    }
}

impl<R: BufRead> BufRead for Watched<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let filled = self.input.fill_buf()?;
        self.last.came(monotonic_ns());
        Ok(filled)
    }

    fn consume(&mut self, amount: usize) {
        self.input.consume(amount);
    }
}

impl<R: BufRead> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_lease_begins_with_the_first_word_and_anew_with_each() {
        let lease = Duration::from_secs(60);
        let last = LastWord::default();
        assert_eq!((last.left(lease, 0), last.left(lease, 5_000 * S)), (lease, lease));
        last.came(5_000 * S);
        assert_eq!(last.left(lease, 5_010 * S), Duration::from_secs(50));
        last.came(5_059 * S);
        assert_eq!(last.left(lease, 5_060 * S), Duration::from_secs(59));
        assert_eq!(
            (last.left(lease, 5_119 * S), last.left(lease, 9_000 * S)),
            (Duration::ZERO, Duration::ZERO)
        );
        // Another thread may have read the clock before it came.
        assert_eq!(last.left(lease, 5_058 * S), lease);
    }

    #[test]
    fn each_piece_of_a_line_counts() {
        let last = LastWord::default();
        let mut input = Watched::new(&b"[1]\n[2"[..], last.clone());
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line).unwrap();
        assert_eq!(line, b"[1]\n");
        let heard_ns = monotonic_ns();
        assert!(last.left(Duration::from_secs(60), heard_ns) > Duration::from_secs(50));
        last.came(heard_ns - 50 * S);
        input.read_to_end(&mut line).unwrap();
        assert_eq!(line, b"[1]\n[2");
        assert!(last.left(Duration::from_secs(60), heard_ns) > Duration::from_secs(50));
    }
}
