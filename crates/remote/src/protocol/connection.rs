//! An agent on another machine, as its channel shows it: requests go in, a thread reads what comes out.

use std::any::Any;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use machine::clock::monotonic_ns;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Channel;
use crate::protocol::{AgentRequest, AgentResponse};

/// Messages that may wait to be taken in; with more their readers wait.
pub(crate) const QUEUE_MAX: usize = 1024;

/// A channel with an agent at its other end. Dropping it closes it, which ends the agent.
pub(crate) struct AgentConnection {
    /// Where the agent runs, as people know it: `local`, `ssh://bench-1`.
    pub name: String,
    /// Number of its process, where that is a child of ours.
    pub process: Option<u32>,
    input: Arc<AgentStdin>,
    /// After the input: it may end the other side by force.
    _keeper: Mutex<Box<dyn Any + Send>>,
}

#[derive(Debug)]
pub(crate) struct FrameMessage {
    /// The number that its reader was given.
    pub from: u64,
    /// When its first byte came, by our clock.
    pub at_ns: u64,
    /// `None` is the end.
    pub response: io::Result<Option<AgentResponse>>,
}

impl std::fmt::Debug for AgentConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl AgentConnection {
    /// From now on responses are read, on a thread that ends with the channel, and the agent gets heartbeats.
    pub fn open(
        channel: Channel,
        number: u64,
        to: SyncSender<FrameMessage>,
        heartbeat: &Heartbeat,
    ) -> io::Result<AgentConnection> {
        let process = channel.process();
        let Channel {
            name,
            input,
            output,
            keeper,
        } = channel;
        let input = Arc::new(AgentStdin(Mutex::new(Some(input))));
        heartbeat.include(&input);
        let listen = move || listen(BufReader::new(output), number, &to);
        std::thread::Builder::new()
            .name(format!("responses-{number}"))
            .spawn(listen)?;
        Ok(AgentConnection {
            name,
            process,
            input,
            _keeper: Mutex::new(keeper),
        })
    }

    /// Sends a request. An agent that reads no more has ended, or its channel has: the other end says why, in better words.
    ///
    /// # Errors
    /// If the request is too long, or the channel takes nothing any more.
    pub fn send(&self, request: &AgentRequest) -> io::Result<()> {
        match self.input.send(request) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends the agent, which may have ended already.
    pub fn end(&self) {
        let _ = self.input.send(&AgentRequest::End);
        *self.input.lock() = None;
    }
}

fn listen(mut output: impl BufRead, from: u64, to: &SyncSender<FrameMessage>) {
    loop {
        // A long frame takes time to read.
        let filled = output.fill_buf().map(drop);
        let at_ns = monotonic_ns();
        let response = filled.and_then(|()| read(&mut output));
        let is_last = !matches!(response, Ok(Some(_)));
        if to
            .send(FrameMessage {
                from,
                at_ns,
                response,
            })
            .is_err()
            || is_last
        {
            return;
        }
    }
}

type BoxedWriter = Box<dyn Write + Send>;

/// The stdin of an agent, written to by whole frames; nothing once it is closed.
pub(crate) struct AgentStdin(Mutex<Option<BoxedWriter>>);

impl AgentStdin {
    pub fn lock(&self) -> MutexGuard<'_, Option<BoxedWriter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, request: &AgentRequest) -> io::Result<()> {
        self.lock()
            .as_mut()
            .map_or(Ok(()), |writer| write(writer.as_mut(), request))
    }

    /// Sends a heartbeat, unless a request is being sent right now, which says as much for however long that takes.
    pub fn beat(&self) {
        if let Ok(mut input) = self.0.try_lock()
            && let Some(writer) = input.as_mut()
        {
            // That it is gone is known from its other end, in better words.
            let _ = write(writer.as_mut(), &AgentRequest::Heartbeat);
        }
    }
}

// One JSON value a line, and nothing else: read with a limit, written in one piece.
//
// Lines, because what comes first from another machine may be a greeting for people, and an error should show it.

/// The longest frame, in bytes: a load with a large table of values, or a slice with thousands of requests.
const FRAME_BYTES_MAX: u64 = 256 << 20;
/// How much of a frame that is not understood an error shows.
const SHOWN_CHARS: usize = 80;

/// Reads the next frame; `None` at the end. Memory grows with what comes, up to the limit. An empty line is no frame.
///
/// # Errors
/// If it cannot be read, is too long, cut off, or not what was expected: with its beginning.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    read_up_to(input, FRAME_BYTES_MAX)
}

fn read_up_to<T: DeserializeOwned>(
    input: &mut impl BufRead,
    bytes_max: u64,
) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = input
            .by_ref()
            .take(bytes_max)
            .read_until(b'\n', &mut line)?;
        match line.last() {
            None => return Ok(None),
            Some(b'\n') if line.iter().all(u8::is_ascii_whitespace) => {}
            Some(b'\n') => break,
            Some(_) if length as u64 == bytes_max => {
                return Err(unfit(
                    &line,
                    &format!("a message of over {bytes_max} bytes"),
                ));
            }
            Some(_) => {
                return Err(unfit(
                    &line,
                    &format!("a message was cut off after {length} bytes"),
                ));
            }
        }
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(|error| unfit(&line, &format!("not understood ({error})")))
}

/// Writes a value as a frame, at once.
pub(crate) fn write(output: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    if line.len() as u64 > FRAME_BYTES_MAX {
        let problem = format!(
            "a message of {} bytes is too long, at most {FRAME_BYTES_MAX}",
            line.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    output.write_all(&line)?;
    output.flush()
}

fn unfit(line: &[u8], problem: &str) -> io::Error {
    let begin = &line[..line.len().min(SHOWN_CHARS * 4)];
    let text = String::from_utf8_lossy(begin);
    let shown: String = text.trim_end().chars().take(SHOWN_CHARS).collect();
    let more = if begin.len() < line.len() || shown.len() < text.trim_end().len() {
        "…"
    } else {
        ""
    };
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{problem}: {shown:?}{more}"),
    )
}

// Heartbeats: here a thread that sends them, there the time since the last byte came. A network that is cut ends no connection.

/// How often agents get one. An agent that gets nothing for [`crate::AgentHost::timeout`] ends.
const EVERY: Duration = Duration::from_secs(10);

/// A thread that sends heartbeats to all that it knows, whatever else is done or waited for. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    inputs: Arc<Mutex<Vec<Weak<AgentStdin>>>>,
    _ended: Sender<()>,
}

impl Heartbeat {
    pub fn new() -> io::Result<Heartbeat> {
        Heartbeat::every(EVERY)
    }

    fn every(pause: Duration) -> io::Result<Heartbeat> {
        let (_ended, ended) = channel::<()>();
        let inputs = Arc::<Mutex<Vec<Weak<AgentStdin>>>>::default();
        let all = Arc::clone(&inputs);
        let beat = move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let mut inputs = all.lock().unwrap_or_else(PoisonError::into_inner);
                inputs.retain(|input| input.strong_count() > 0);
                let living: Vec<Arc<AgentStdin>> =
                    inputs.iter().filter_map(Weak::upgrade).collect();
                drop(inputs);
                living.iter().for_each(|input| input.beat());
            }
        };
        std::thread::Builder::new()
            .name("heartbeat".into())
            .spawn(beat)?;
        Ok(Heartbeat { inputs, _ended })
    }

    /// From now on this one gets them, too, until it is dropped.
    pub fn include(&self, input: &Arc<AgentStdin>) {
        self.inputs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(input));
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
pub(super) struct WatchedInput<R> {
    pub input: R,
    pub last: LastByte,
}

impl<R: BufRead> BufRead for WatchedInput<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let filled = self.input.fill_buf()?;
        self.last.came(monotonic_ns());
        Ok(filled)
    }

    fn consume(&mut self, amount: usize) {
        self.input.consume(amount);
    }
}

impl<R: BufRead> Read for WatchedInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_frame_is_whole_or_an_error_that_shows_its_beginning() {
        let mut input = &b"\n[1]\r\n  \n[2]\n"[..];
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![1]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), Some(vec![2]));
        assert_eq!(read::<Vec<u32>>(&mut input).unwrap(), None);
        let error = |mut text: &[u8]| {
            read_up_to::<Vec<u32>>(&mut text, 40)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(b"[1"), "a message was cut off after 2 bytes: \"[1\"");
        let greeting = error(b"Welcome to Debian!\n");
        assert!(greeting.contains("\"Welcome to Debian!\""), "{greeting}");
        assert!(error(&[b'1'; 500]).starts_with("a message of over 40 bytes: \"1111"));
    }

    proptest! {
        #[test]
        fn values_come_back_and_nothing_that_comes_is_a_panic_or_taken_in_beyond_the_limit(
            values in proptest::collection::vec(".{0,50}", 0..8),
            junk in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut frames = Vec::new();
            values.iter().for_each(|value| write(&mut frames, value).unwrap());
            let mut input = &frames[..];
            for value in &values {
                prop_assert_eq!(read::<String>(&mut input).unwrap(), Some(value.clone()));
            }
            prop_assert_eq!(read::<String>(&mut input).unwrap(), None);
            let mut input = &junk[..];
            while let Ok(Some(_)) = read_up_to::<serde_json::Value>(&mut input, 100) {}
            let first = junk.iter().position(|byte| *byte == b'\n').map_or(junk.len(), |end| end + 1);
            let mut input = &junk[..];
            if first > 100 && read_up_to::<serde_json::Value>(&mut input, 100).is_err() {
                prop_assert_eq!(junk.len() - input.len(), 100);
            }
        }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn all_get_heartbeats_but_one_that_is_written_to_and_none_is_kept_open() {
        let piped = || {
            let (output, input) = io::pipe().unwrap();
            (
                Arc::new(AgentStdin(Mutex::new(Some(Box::new(input))))),
                BufReader::new(output),
            )
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
        [&busy, &one, &other]
            .into_iter()
            .for_each(|input| heartbeat.include(input));
        for _ in 0..3 {
            assert_eq!(
                [line(&mut first), line(&mut second)],
                ["\"heartbeat\"\n"; 2]
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
        assert_eq!(
            (last.left(timeout, 0), last.left(timeout, 5_000 * S)),
            (timeout, timeout)
        );
        last.came(5_000 * S);
        assert_eq!(last.left(timeout, 5_010 * S), Duration::from_secs(50));
        assert_eq!(
            [5_060, 9_000].map(|s| last.left(timeout, s * S)),
            [Duration::ZERO; 2]
        );
        // Another thread may have read the clock before it came.
        assert_eq!(last.left(timeout, 4_999 * S), timeout);
        let mut input = WatchedInput {
            input: &b"[1]\n[2"[..],
            last: last.clone(),
        };
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
