//! Connection to an agent over its channel. Requests are written by the caller, and a thread reads responses.

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

/// Maximum number of queued messages. Readers wait while the queue is full.
pub(crate) const QUEUE_MAX: usize = 1024;

/// A channel with an agent at its other end. Dropping it closes the channel, which ends the agent.
pub(crate) struct AgentConnection {
    /// Location of the agent as shown to users: `local`, `ssh://bench-1`.
    pub name: String,
    /// Process ID, if the agent is a child of this process.
    pub process: Option<u32>,
    input: Arc<AgentStdin>,
    /// Declared after the input and so dropped later, because it may end the other side by force.
    _keeper: Mutex<Box<dyn Any + Send>>,
}

#[derive(Debug)]
pub(crate) struct FrameMessage {
    /// Number of the channel, as passed to its reader.
    pub from: u64,
    /// When the first byte arrived, by our clock.
    pub at_ns: u64,
    /// `None` is the end of the channel.
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
    /// Opens a connection. Responses are read on a thread that ends with the channel, and the agent gets
    /// heartbeats.
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

    /// Sends a request. A broken pipe is not an error: the agent or its channel has ended, and the output
    /// reports the reason more precisely.
    ///
    /// # Errors
    /// If the request is too long, or the channel accepts no more data.
    pub fn send(&self, request: &AgentRequest) -> io::Result<()> {
        match self.input.send(request) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends the agent, unless it has already ended.
    pub fn end(&self) {
        let _ = self.input.send(&AgentRequest::End);
        *self.input.lock() = None;
    }
}

fn listen(mut output: impl BufRead, from: u64, to: &SyncSender<FrameMessage>) {
    loop {
        // The time is taken before the frame is read, because a long frame takes time.
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

/// Stdin of an agent. Accepts whole frames, and ignores them after it is closed.
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

    /// Sends a heartbeat. Skips it while a request is being sent, because the bytes of the request have the
    /// same effect.
    pub fn beat(&self) {
        if let Ok(mut input) = self.0.try_lock()
            && let Some(writer) = input.as_mut()
        {
            // An error is ignored, because the output reports the reason more precisely.
            let _ = write(writer.as_mut(), &AgentRequest::Heartbeat);
        }
    }
}

// A frame is one JSON value on one line. It is read with a size limit and written in one piece.
//
// The format is lines, because another machine may first print a greeting, which an error should show.

/// Maximum size of a frame in bytes. Long frames are loads with a large table of values, and slices with
/// thousands of requests.
const FRAME_BYTES_MAX: u64 = 256 << 20;
/// Number of characters of an invalid frame that an error shows.
const SHOWN_CHARS: usize = 80;

/// Reads the next frame, or returns `None` at the end. Memory grows with the bytes received, up to the limit.
/// Empty lines are skipped.
///
/// # Errors
/// If the frame cannot be read, is too long, cut off, or not a value of the expected type. The error shows
/// the beginning of the frame.
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
                    &format!("a message exceeds {bytes_max} bytes"),
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
        .map_err(|error| unfit(&line, &format!("invalid message ({error})")))
}

/// Writes a value as a frame and flushes the output.
pub(crate) fn write(output: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::from)?;
    line.push(b'\n');
    if line.len() as u64 > FRAME_BYTES_MAX {
        let problem = format!(
            "a message of {} bytes: must be at most {FRAME_BYTES_MAX}",
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

// Heartbeats. A thread on this side sends them, and the agent measures the time since the last byte arrived.
// A network that is cut does not end connections.

/// Interval between heartbeats. An agent ends if it receives nothing for [`crate::AgentHost::timeout`].
const EVERY: Duration = Duration::from_secs(10);

/// A thread that sends heartbeats to all registered agents, independent of other work. Dropping this value
/// ends the thread.
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

    /// Sends heartbeats to this input, too, until the input is dropped.
    pub fn include(&self, input: &Arc<AgentStdin>) {
        self.inputs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(input));
    }
}

/// When the last byte arrived, by our clock. 0 before the first byte: an agent may wait long for it, while
/// other generators are prepared.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastByte(Arc<AtomicU64>);

impl LastByte {
    /// Returns the remaining part of a timeout.
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

/// An input that records when bytes arrive. Each piece counts instead of each frame, because a long frame
/// takes time to arrive.
pub(crate) struct WatchedInput<R> {
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
        assert!(error(&[b'1'; 500]).starts_with("a message exceeds 40 bytes: \"1111"));
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
        // A long request is being written to `busy`. The other agents do not wait for it.
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
        // Another thread may have read the clock before the byte arrived.
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
