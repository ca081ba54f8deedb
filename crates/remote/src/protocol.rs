//! What Proofload and its agent on another machine send each other: frames, messages, heartbeats, and the loop of the agent.
//!
//! ```text
//!   here                            there
//!   Fleet ── requests ──► stdin     proofload remote-agent: generates load
//!         ◄─ responses ── stdout
//! ```
//! A frame is one JSON object on a line of its own, of limited length. Each request has one response, in order, but for `heartbeat`,
//! `cancel` and `end`, which have none, and `ping`, whose response does not wait for others. The agent opens no port. How it was started,
//! and what carries its frames, is not this module's business.
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

/// Reads frames of either side up to the first that is none; panics where one that is sent on is not the same there.
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

// The messages. Times are those of the agent's own CLOCK_MONOTONIC: how far it is from ours is known from pings.

/// Version of the protocol. Both sides must have the same: they are the same program.
pub const VERSION: u32 = 8;

/// Why nothing can be done with a program that speaks this version.
pub(crate) fn other_version(version: u32, proofload: &str) -> String {
    format!(
        "it speaks version {version} of the protocol (Proofload {proofload}), and this is version {VERSION} (Proofload {}); have the same \
         Proofload at both ends: see `generators.program`, or the image of the pods",
        env!("CARGO_PKG_VERSION")
    )
}

/// From Proofload to its agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentRequest {
    /// Comes first, with the [`VERSION`].
    Hello { version: u32 },
    /// Compares clocks. The number comes back at once.
    Ping(u64),
    /// We are still there.
    Heartbeat,
    /// Ends the window under way early, with the counts so far.
    Cancel,
    /// To a generator.
    Generator(GeneratorRequest),
    /// Ends whatever is under way, and the agent.
    End,
}

/// From an agent to Proofload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AgentResponse {
    /// To [`Request::Hello`]: the [`VERSION`], that of the program, the machine's name, and how many processors the agent may use.
    Ready {
        version: u32,
        proofload: String,
        host: String,
        processors: u32,
    },
    /// To [`Request::Ping`]: its number, and CLOCK_MONOTONIC when it was read, in nanoseconds.
    Pong { ping: u64, clock_ns: u64 },
    /// From a generator.
    Generator(GeneratorResponse),
    /// The request could not be carried out, or was not understood.
    Failed(Error),
    /// The agent ends, in good order.
    Ended,
}

/// A request to a generator. Windows have numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorRequest {
    /// What to load from now on. Connections of an earlier load are closed.
    Begin { spec: Box<LoadSpec> },
    /// Opens connections for a window of load that will last so long.
    Prepare { number: u64, until: Until },
    /// Runs the window that was prepared, from then on in nanoseconds of the agent's CLOCK_MONOTONIC. A time in the past means at once.
    Run { number: u64, start_at_ns: u64 },
    /// Closes all connections: nothing is to be loaded for now.
    Rest,
}

/// A response of a generator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum GeneratorResponse {
    /// To [`GeneratorRequest::Begin`]: threads are there.
    Begun,
    /// To [`GeneratorRequest::Prepare`]: connections are open, as far as they can be.
    Prepared { number: u64 },
    /// To [`GeneratorRequest::Run`]: what was counted; how much later than agreed the window began, in nanoseconds, because the request came
    /// late or the machine had no time; CPU steal as a share of the machine's CPU time, 0 to 1, `None` where the kernel does not say.
    Slice {
        number: u64,
        late_ns: u64,
        steal_share: Option<f64>,
        counts: Box<Counts>,
    },
    /// To [`GeneratorRequest::Rest`]: no connection is open.
    Resting,
}

// The agent's side: carries out what comes on its input, and sends what came of it on its output.
//
// One thread reads requests and answers pings at once, also while a window runs; another carries requests out, one after the other. When
// the input ends, so does whatever is under way: nothing may run here unwatched. A timeout ends it, too, whatever both are
// doing: where a network was cut no input ends, and what is written goes nowhere.

/// How long the window under way may take to end once the other side is gone. What is left then ends with the process.
const END_MAX: Duration = Duration::from_secs(5);
/// Requests that may wait; with more the reader waits.
const REQUESTS_MAX: usize = 64;

/// What an agent has of its program and machine.
#[derive(Debug, Clone)]
pub struct AgentHost {
    /// Version of the program.
    pub proofload: String,
    /// Name of the machine.
    pub name: String,
    /// Processors that the agent may use.
    pub processors: u32,
    /// How long nothing may come, after the first byte, before we take the other side for dead.
    pub timeout: Duration,
}

/// Why an agent ends early.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ServeError {
    /// Its responses cannot be written.
    #[error("{0}")]
    Unwritable(#[from] io::Error),
    /// Nothing came for so long, not even a heartbeat.
    #[error("nothing came for {} s", timeout.as_secs())]
    TimedOut { timeout: Duration },
}

/// Serves until the input ends, says so, or times out; then ends what is left.
///
/// # Errors
/// If the output cannot be written, or nothing came for too long. A request that cannot be carried out gets a response, and is no error
/// here.
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
    // It ends with the input, or with the process: reading cannot be broken off.
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
    // It too: writing to a pipe that nobody reads cannot be broken off either.
    thread::Builder::new()
        .name("agent".into())
        .spawn(move || done.send(agent.serve(&queue, &output)))?;
    loop {
        let left = last.left(timeout, monotonic_ns());
        match ended.recv_timeout(left) {
            Ok(_) if control.wishes().is_timed_out => return Err(ServeError::TimedOut { timeout }),
            Ok(served) => return served.map_err(ServeError::from),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            // Or it has panicked, and said so.
            Err(_) => {
                control.end(true);
                let _ = requests.try_send(Ok(AgentRequest::End));
                let _ = ended.recv_timeout(END_MAX);
                return Err(ServeError::TimedOut { timeout });
            }
        }
    }
}

/// Whether the window under way is to end. It may be asked before there is anything to interrupt.
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

    /// From now on the end interrupts this load. False where the end came before.
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

/// Both threads write to it, whole frames.
type SharedOutput<W> = Arc<Mutex<W>>;

fn send(output: &SharedOutput<impl Write>, response: &AgentResponse) -> io::Result<()> {
    write(
        &mut *output.lock().unwrap_or_else(PoisonError::into_inner),
        response,
    )
}

/// Reads requests until there are no more, and then ends what is under way.
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
        // What follows what was not understood cannot be understood either.
        let is_last = request.is_err();
        if requests.send(request).is_err() || is_last {
            break;
        }
    }
    control.end(false);
    // It wakes an agent that waits for a request; any other looks at the control.
    let _ = requests.try_send(Ok(AgentRequest::End));
}

/// What carries requests out.
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
            // A request that was not understood gets its response all the same.
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
        // Connections close here.
        drop(self);
        let ended_all = format!(
            "nothing came for {} s, so everything there was ended",
            timeout.as_secs()
        );
        let last = match is_timed_out {
            true => AgentResponse::Failed(Error::new(ended_all)),
            false => AgentResponse::Ended,
        };
        // If the other side has gone, it need not know.
        let _ = send(output, &last);
        served
    }

    fn carry_out(&mut self, request: AgentRequest) -> AgentResponse {
        let carried_out = match request {
            // Also to another version: so it learns which one is spoken here.
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
            // The reading thread keeps these to itself.
            AgentRequest::Ping(_)
            | AgentRequest::Heartbeat
            | AgentRequest::Cancel
            | AgentRequest::End => Err(Error::new("out of turn").by(Blame::Request)),
        };
        carried_out.unwrap_or_else(AgentResponse::Failed)
    }
}
