//! Heartbeats: here a thread that sends them, there the time since the last byte came. A network that is cut ends no connection.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::connection::Input;
use crate::clock::monotonic_ns;

/// How often agents get one. An agent that gets nothing for [`crate::AgentHost::timeout`] ends.
const EVERY: Duration = Duration::from_secs(10);

/// A thread that sends heartbeats to all that it knows, whatever else is done or waited for. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    inputs: Arc<Mutex<Vec<Weak<Input>>>>,
    _ended: Sender<()>,
}

impl Heartbeat {
    /// # Errors
    /// If there is no thread for it.
    pub fn new() -> io::Result<Heartbeat> {
        Heartbeat::every(EVERY)
    }

    fn every(pause: Duration) -> io::Result<Heartbeat> {
        let (_ended, ended) = channel::<()>();
        let inputs = Arc::<Mutex<Vec<Weak<Input>>>>::default();
        let all = Arc::clone(&inputs);
        let beat = move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let mut inputs = all.lock().unwrap_or_else(PoisonError::into_inner);
                inputs.retain(|input| input.strong_count() > 0);
                let living: Vec<Arc<Input>> = inputs.iter().filter_map(Weak::upgrade).collect();
                drop(inputs);
                living.iter().for_each(|input| input.beat());
            }
        };
        std::thread::Builder::new().name("heartbeat".into()).spawn(beat)?;
        Ok(Heartbeat { inputs, _ended })
    }

    /// From now on this one gets them, too, until it is dropped.
    pub fn include(&self, input: &Arc<Input>) {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(input));
    }
}

/// When bytes last came, by our clock; 0 before the first. Before that an agent may wait for long: others are still being made ready.
#[derive(Debug, Clone, Default)]
pub(super) struct LastByte(Arc<AtomicU64>);

impl LastByte {
    /// How much of a timeout is left.
    pub fn left(&self, timeout: Duration, now_ns: u64) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => timeout,
            last_ns => timeout.saturating_sub(Duration::from_nanos(now_ns.saturating_sub(last_ns))),
        }
    }

    fn came(&self, now_ns: u64) {
        self.0.store(now_ns.max(1), Ordering::Relaxed);
    }
}

/// An input that is watched. Each piece counts and not each frame: a long one takes time to come.
pub(super) struct Watched<R> {
    pub input: R,
    pub last: LastByte,
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
    use std::io::BufReader;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn all_get_heartbeats_but_one_that_is_written_to_and_none_is_kept_open() {
        let piped = || {
            let (output, input) = io::pipe().unwrap();
            (Arc::new(Input::new(Box::new(input))), BufReader::new(output))
        };
        let line = |of: &mut BufReader<io::PipeReader>| {
            let mut line = String::new();
            of.read_line(&mut line).unwrap();
            line
        };
        let heartbeat = Heartbeat::every(Duration::from_millis(1)).unwrap();
        let ((one, mut first), (other, mut second), (busy, _unread)) = (piped(), piped(), piped());
        // A long request is being written to it, for which no other waits.
        let _writing = busy.lock();
        [&busy, &one, &other].into_iter().for_each(|input| heartbeat.include(input));
        for _ in 0..3 {
            assert_eq!(
                (line(&mut first), line(&mut second)),
                ("\"heartbeat\"\n".into(), "\"heartbeat\"\n".into())
            );
        }
        drop(one);
        while !line(&mut first).is_empty() {}
        assert_eq!(line(&mut second), "\"heartbeat\"\n");
        drop((heartbeat, other));
        while !line(&mut second).is_empty() {}
    }

    #[test]
    fn a_timeout_begins_with_the_first_byte_and_anew_with_each_piece() {
        let timeout = Duration::from_secs(60);
        let last = LastByte::default();
        assert_eq!((last.left(timeout, 0), last.left(timeout, 5_000 * S)), (timeout, timeout));
        last.came(5_000 * S);
        assert_eq!(last.left(timeout, 5_010 * S), Duration::from_secs(50));
        assert_eq!(
            (last.left(timeout, 5_060 * S), last.left(timeout, 9_000 * S)),
            (Duration::ZERO, Duration::ZERO)
        );
        // Another thread may have read the clock before it came.
        assert_eq!(last.left(timeout, 4_999 * S), timeout);
        let mut input = Watched { input: &b"[1]\n[2"[..], last: last.clone() };
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line).unwrap();
        let read_ns = monotonic_ns();
        assert!(last.left(timeout, read_ns) > Duration::from_secs(50));
        last.came(read_ns - 50 * S);
        input.read_to_end(&mut line).unwrap();
        assert_eq!(line, b"[1]\n[2");
        assert!(last.left(timeout, read_ns) > Duration::from_secs(50));
    }
}
