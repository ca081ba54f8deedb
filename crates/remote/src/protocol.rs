//! Protocol between Proofload and its agent on another machine: frames, messages, heartbeats, and the loop of
//! the agent.
//!
//! ```text
//!   here                            there
//!   Fleet ── requests ──► stdin     proofload remote-agent: generates load
//!         ◄─ responses ── stdout
//! ```
//! A frame is one JSON object on one line of limited length. Each request has one response, and responses are
//! in order. There are two exceptions: `heartbeat`, `cancel` and `end` have no response, and the response to
//! `ping` does not wait for others. The agent opens no port. This module does not start agents and does not
//! transport frames.
//!
//! ```text
//! ──► {"hello":{"version":8}}
//! ◄── {"ready":{"version":8,"proofload":"0.1.0","host":"bench-1","processors":8}}
//! ──► {"ping":1}
//! ◄── {"pong":{"ping":1,"clock_ns":81234567890}}
//! ──► "heartbeat"                                            every ten seconds
//! ──► {"generator":{"begin":{"spec":{…}}}}
//! ◄── {"generator":"begun"}
//! ──► {"generator":{"prepare":{"number":1,"until":{"elapsed":{"secs":10,"nanos":0}}}}}
//! ◄── {"generator":{"prepared":{"number":1}}}
//! ──► {"generator":{"run":{"number":1,"start_at_ns":91234567890}}}
//! ◄── {"generator":{"slice":{"number":1,"late_ns":0,"steal_share":0.0,"counts":{…}}}}
//!                                                            instead of any response: {"failed":{"message":"…",…}}
//! ──► "end"                                                  or the end of stdin
//! ◄── "ended"
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use load::{Handle, LoadSpec, Until};
use machine::clock::monotonic_ns;
use model::Counts;
use serde::{Deserialize, Serialize};

use self::connection::{LastByte, WatchedInput};
use crate::generators::GeneratorAgent;
use crate::{Blame, Error};

pub(crate) use connection::{AgentConnection, FrameMessage, Heartbeat, QUEUE_MAX, read, write};

mod connection;

/// Reads frames of both directions up to the first invalid one. Panics if a frame changes when it is sent and
/// read again.
#[cfg(fuzzing)]
pub fn same_when_sent_again(bytes: &[u8]) {
    fn same<T: serde::Serialize + serde::de::DeserializeOwned>(mut input: &[u8]) {
        while let Ok(Some(value)) = read::<T>(&mut input) {
            let mut sent = Vec::new();
            write(&mut sent, &value).expect("what was read can be sent");
            let again: T = read(&mut &sent[..])
                .expect("what was sent is read")
                .expect("and is there");
            let mut twice = Vec::new();
            write(&mut twice, &again).expect("once more");
            assert_eq!(sent, twice);
        }
    }
    same::<AgentResponse>(bytes);
    same::<AgentRequest>(bytes);
}

// Messages. Times are CLOCK_MONOTONIC of the agent's machine. Pings measure its offset from our clock.

/// Version of the protocol. Both sides must have the same version, because they are the same program.
pub const VERSION: u32 = 8;

/// Error message for an agent with a different version of the protocol.
pub(crate) fn other_version(version: u32, proofload: &str) -> String {
    format!(
        "protocol version {version} (Proofload {proofload}) does not match version {VERSION} (Proofload {}); use the same Proofload on both \
         machines: see `generators.program`, or the image of the pods",
        env!("CARGO_PKG_VERSION")
    )
}

/// A request from Proofload to its agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentRequest {
    /// First request, with the [`VERSION`].
    Hello { version: u32 },
    /// Compares clocks. The number is returned at once.
    Ping(u64),
    /// Shows that Proofload still runs.
    Heartbeat,
    /// Ends the current window early, with the counts so far.
    Cancel,
    /// A request to a generator.
    Generator(GeneratorRequest),
    /// Ends the current window and the agent.
    End,
}

/// A response from an agent to Proofload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentResponse {
    /// Response to [`AgentRequest::Hello`]: the [`VERSION`], the version of the program, the name of the
    /// machine, and the number of processors that the agent may use.
    Ready {
        version: u32,
        proofload: String,
        host: String,
        processors: u32,
    },
    /// Response to [`AgentRequest::Ping`]: its number, and CLOCK_MONOTONIC in nanoseconds when it was read.
    Pong { ping: u64, clock_ns: u64 },
    /// A response from a generator.
    Generator(GeneratorResponse),
    /// The request failed, or could not be parsed.
    Failed(Error),
    /// The agent ends normally.
    Ended,
}

/// A request to a generator. Windows are numbered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorRequest {
    /// Begins a load. Connections of an earlier load are closed.
    Begin { spec: Box<LoadSpec> },
    /// Opens connections for a window of this length.
    Prepare { number: u64, until: Until },
    /// Runs the prepared window from this time on, in nanoseconds of the agent's CLOCK_MONOTONIC. A time in
    /// the past means at once.
    Run { number: u64, start_at_ns: u64 },
    /// Closes all connections until the next load begins.
    Rest,
}

/// A response of a generator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorResponse {
    /// Response to [`GeneratorRequest::Begin`]: the threads are running.
    Begun,
    /// Response to [`GeneratorRequest::Prepare`]: connections are open, except those that could not be
    /// opened.
    Prepared { number: u64 },
    /// Response to [`GeneratorRequest::Run`]: the counts of the window.
    ///
    /// `late_ns` is how much later than agreed the window began, in nanoseconds, because the request arrived
    /// late or the machine was busy. `steal_share` is CPU steal as a share of the machine's CPU time, 0 to 1,
    /// and `None` if the kernel does not report it.
    Slice {
        number: u64,
        late_ns: u64,
        steal_share: Option<f64>,
        counts: Box<Counts>,
    },
    /// Response to [`GeneratorRequest::Rest`]: all connections are closed.
    Resting,
}

// The agent: executes requests from its input, and writes responses to its output.
//
// One thread reads requests and answers pings at once, even while a window runs. Another thread executes
// requests in order. When the input ends, the current window ends, too, because nothing may run here
// unsupervised. A timeout also ends it, whatever both threads do: after a network was cut, no input ends, and
// output is lost.

/// How long the current window may take to end after the other side is gone. The rest ends with the process.
const END_MAX: Duration = Duration::from_secs(5);
/// Maximum number of queued requests. The reader waits while the queue is full.
const REQUESTS_MAX: usize = 64;

/// Description of an agent's program and machine.
#[derive(Debug, Clone)]
pub struct AgentHost {
    /// Version of the program.
    pub proofload: String,
    /// Name of the machine.
    pub name: String,
    /// Number of processors that the agent may use.
    pub processors: u32,
    /// Maximum silence, after the first byte, before the other side counts as dead.
    pub timeout: Duration,
}

/// Error that ends an agent early.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ServeError {
    /// Responses cannot be written.
    #[error("{0}")]
    Unwritable(#[from] io::Error),
    /// Nothing arrived within the timeout, not even a heartbeat.
    #[error("no message for {} s", timeout.as_secs())]
    TimedOut { timeout: Duration },
}

/// Serves requests until the input ends, an `end` request arrives, or a timeout passes. Then ends the current
/// window.
///
/// # Errors
/// If the output cannot be written, or nothing arrived within the timeout. A request that fails gets a
/// response, and is not an error here.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    host: AgentHost,
) -> Result<(), ServeError> {
    let (output, control, last, timeout) = (
        Arc::new(Mutex::new(output)),
        Control::default(),
        LastByte::default(),
        host.timeout,
    );
    let (requests, queue) = sync_channel(REQUESTS_MAX);
    let (heard, wishes, to) = (Arc::clone(&output), control.clone(), requests.clone());
    let input = WatchedInput {
        input: BufReader::new(input),
        last: last.clone(),
    };
    // The thread ends with the input or with the process, because a blocked read cannot be interrupted.
    thread::Builder::new()
        .name("requests".into())
        .spawn(move || listen(input, &heard, &wishes, &to))?;
    let generator = GeneratorAgent::new(control.clone());
    let agent = AgentWorker {
        host,
        control: control.clone(),
        generator,
    };
    let (done, ended) = channel();
    // The same applies to this thread: a blocked write to a pipe without a reader cannot be interrupted.
    thread::Builder::new()
        .name("agent".into())
        .spawn(move || done.send(agent.serve(&queue, &output)))?;
    loop {
        let left = last.left(timeout, monotonic_ns());
        match ended.recv_timeout(left) {
            Ok(_) if control.wishes().is_timed_out => return Err(ServeError::TimedOut { timeout }),
            Ok(served) => return served.map_err(ServeError::from),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            // The timeout has passed, or the thread has panicked and reported it.
            Err(_) => {
                control.end(true);
                let _ = requests.try_send(Ok(AgentRequest::End));
                let _ = ended.recv_timeout(END_MAX);
                return Err(ServeError::TimedOut { timeout });
            }
        }
    }
}

/// Ends the current window. The request to end may come before there is a load to interrupt.
#[derive(Clone, Default)]
pub(crate) struct Control(Arc<Mutex<Wishes>>);

#[derive(Default)]
struct Wishes {
    is_over: bool,
    is_timed_out: bool,
    load: Option<Handle>,
}

impl Control {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the load to interrupt at the end. Returns false if the end has already been requested.
    pub fn watch(&self, load: Handle) -> bool {
        let mut wishes = self.wishes();
        wishes.load = Some(load);
        !wishes.is_over
    }

    fn cancel(&self) {
        self.wishes().load.iter().for_each(Handle::stop);
    }

    fn end(&self, is_timed_out: bool) {
        let mut wishes = self.wishes();
        (wishes.is_over, wishes.is_timed_out) = (true, wishes.is_timed_out || is_timed_out);
        wishes.load.iter().for_each(Handle::stop);
    }
}

/// Output shared by both threads. Each writes whole frames.
type SharedOutput<W> = Arc<Mutex<W>>;

fn send(output: &SharedOutput<impl Write>, response: &AgentResponse) -> io::Result<()> {
    write(
        &mut *output.lock().unwrap_or_else(PoisonError::into_inner),
        response,
    )
}

/// Reads requests until there are no more, then ends the current window.
fn listen(
    mut input: impl BufRead,
    output: &SharedOutput<impl Write>,
    control: &Control,
    requests: &SyncSender<io::Result<AgentRequest>>,
) {
    loop {
        let request = read::<AgentRequest>(&mut input);
        match &request {
            Ok(Some(AgentRequest::Ping(ping))) => {
                let pong = AgentResponse::Pong {
                    ping: *ping,
                    clock_ns: monotonic_ns(),
                };
                if send(output, &pong).is_ok() {
                    continue;
                }
                break;
            }
            Ok(Some(AgentRequest::Heartbeat)) => continue,
            Ok(Some(AgentRequest::Cancel)) => {
                control.cancel();
                continue;
            }
            Ok(Some(AgentRequest::End)) => break,
            Ok(_) | Err(_) => {}
        }
        let Some(request) = request.transpose() else {
            break;
        };
        // Input that follows an unreadable frame cannot be parsed either.
        let is_last = request.is_err();
        if requests.send(request).is_err() || is_last {
            break;
        }
    }
    control.end(false);
    // Wakes an agent that waits for a request. A busy agent checks `control`.
    let _ = requests.try_send(Ok(AgentRequest::End));
}

/// Executes requests.
struct AgentWorker {
    host: AgentHost,
    control: Control,
    generator: GeneratorAgent,
}

impl AgentWorker {
    fn serve(
        mut self,
        requests: &Receiver<io::Result<AgentRequest>>,
        output: &SharedOutput<impl Write>,
    ) -> io::Result<()> {
        let mut served = Ok(());
        while let Ok(request) = requests.recv() {
            // An unreadable request still gets its response.
            if self.control.wishes().is_over && request.is_ok() {
                break;
            }
            let not_understood = |error: io::Error| {
                AgentResponse::Failed(Error::new(error.to_string()).by(Blame::Request))
            };
            let response = request.map_or_else(not_understood, |request| self.carry_out(request));
            served = send(output, &response);
            if served.is_err() {
                break;
            }
        }
        let (is_timed_out, timeout) = (self.control.wishes().is_timed_out, self.host.timeout);
        // Closes connections.
        drop(self);
        let ended_all = format!(
            "no message for {} s, so the agent stopped",
            timeout.as_secs()
        );
        let last = match is_timed_out {
            true => AgentResponse::Failed(Error::new(ended_all)),
            false => AgentResponse::Ended,
        };
        // An error is ignored, because the other side may be gone.
        let _ = send(output, &last);
        served
    }

    fn carry_out(&mut self, request: AgentRequest) -> AgentResponse {
        let carried_out = match request {
            // Also answers a different version, so that the other side learns the version of this agent.
            AgentRequest::Hello { .. } => {
                let AgentHost {
                    proofload,
                    name: host,
                    processors,
                    ..
                } = self.host.clone();
                Ok(AgentResponse::Ready {
                    version: VERSION,
                    proofload,
                    host,
                    processors,
                })
            }
            AgentRequest::Generator(request) => self
                .generator
                .carry_out(request)
                .map(AgentResponse::Generator),
            // Handled by the thread that reads requests.
            AgentRequest::Ping(_)
            | AgentRequest::Heartbeat
            | AgentRequest::Cancel
            | AgentRequest::End => Err(Error::new("unexpected request").by(Blame::Request)),
        };
        carried_out.unwrap_or_else(AgentResponse::Failed)
    }
}
