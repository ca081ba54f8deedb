//! The agent's side: carries out what comes on its input, and sends what came of it on its output.
//!
//! One thread reads requests and answers pings at once, also while a window runs; another carries requests out, one after the other. When
//! the input ends, so does whatever is under way: nothing may run here unwatched. A timeout ends it, too, whatever both are
//! doing: where a network was cut no input ends, and what is written goes nowhere.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use load::Interrupt;
use plan::Service;

use super::connection::{LastByte, Watched};
use super::{Failed, Request, Response, VERSION, read, write};
use crate::Blame;
use crate::generators::GeneratorAgent;
use crate::services::{ServicesAgent, message::ServicesRequest};
use machine::clock::monotonic_ns;

/// How long what is under way may take to end once the other side is gone. What is left then ends with the process: wardens see to it.
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
    /// How to run a warden.
    pub warden: services::Warden,
    /// Describes the machine with what these services use of it.
    pub about: fn(&[Service]) -> serde_json::Value,
}

/// Why an agent ends early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its responses cannot be written.
    #[error("{0}")]
    Unwritable(#[from] io::Error),
    /// Nothing came, not even a heartbeat.
    #[error("nothing came for {} s", timeout.as_secs())]
    TimedOut {
        /// How long that may be.
        timeout: Duration,
    },
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
    let (output, control, last, timeout) =
        (Arc::new(Mutex::new(output)), Control::default(), LastByte::default(), host.timeout);
    let (requests, queue) = sync_channel(REQUESTS_MAX);
    let reader = Reader { output: output.clone(), control: control.clone(), requests: requests.clone() };
    let input = Watched { input: BufReader::new(input), last: last.clone() };
    // It ends with the input, or with the process: reading cannot be broken off.
    thread::Builder::new().name("requests".into()).spawn(move || reader.read(input))?;
    let agent = Agent::new(host, control.clone());
    let (done, ended) = channel();
    // It too: writing to a pipe that nobody reads cannot be broken off either.
    thread::Builder::new().name("agent".into()).spawn(move || done.send(agent.serve(&queue, &output)))?;
    loop {
        let left = last.left(timeout, monotonic_ns());
        match ended.recv_timeout(left) {
            Ok(_) if control.is_timed_out() => return Err(ServeError::TimedOut { timeout }),
            Ok(served) => return served.map_err(ServeError::from),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            // Or it has panicked, and said so.
            Err(_) => {
                control.end(true);
                let _ = requests.try_send(Ok(Request::End));
                let _ = ended.recv_timeout(END_MAX);
                return Err(ServeError::TimedOut { timeout });
            }
        }
    }
}

/// Whether what is under way is wanted no more. It may be asked before there is anything to interrupt.
#[derive(Clone, Default)]
pub(crate) struct Control(Arc<Mutex<Wishes>>);

#[derive(Default)]
struct Wishes {
    is_over: bool,
    is_timed_out: bool,
    is_cancelled: bool,
    load: Option<Interrupt>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a start under way is to be broken off.
    pub fn is_cancelled(&self) -> bool {
        let wishes = self.lock();
        wishes.is_over || wishes.is_cancelled
    }

    /// From now on the end interrupts this load. False where the end came before.
    pub fn watch(&self, load: Interrupt) -> bool {
        let mut wishes = self.lock();
        wishes.load = Some(load);
        !wishes.is_over
    }

    fn set_cancelled(&self, is_cancelled: bool) {
        self.lock().is_cancelled = is_cancelled;
    }

    fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn is_timed_out(&self) -> bool {
        self.lock().is_timed_out
    }

    fn end(&self, is_timed_out: bool) {
        let mut wishes = self.lock();
        (wishes.is_over, wishes.is_timed_out) = (true, wishes.is_timed_out || is_timed_out);
        if let Some(load) = &wishes.load {
            load.stop();
        }
    }
}

/// Both threads write to it, whole frames.
type Output<W> = Arc<Mutex<W>>;

fn send(output: &Output<impl Write>, response: &Response) -> io::Result<()> {
    write(&mut *output.lock().unwrap_or_else(PoisonError::into_inner), response)
}

struct Reader<W> {
    output: Output<W>,
    control: Control,
    requests: SyncSender<io::Result<Request>>,
}

impl<W: Write> Reader<W> {
    /// Reads requests until there are no more, and then ends what is under way.
    fn read(self, mut input: impl BufRead) {
        loop {
            let request = read::<Request>(&mut input);
            let is_last = match &request {
                Ok(Some(Request::Ping(ping))) => {
                    let pong = Response::Pong { ping: *ping, clock_ns: monotonic_ns() };
                    if send(&self.output, &pong).is_ok() {
                        continue;
                    }
                    break;
                }
                Ok(Some(Request::Heartbeat)) => continue,
                Ok(Some(Request::Cancel)) => {
                    self.control.set_cancelled(true);
                    continue;
                }
                Ok(Some(Request::End) | None) => break,
                // What broke off the last start is not meant for this one.
                Ok(Some(Request::Services(ServicesRequest::Start(_)))) => {
                    self.control.set_cancelled(false);
                    false
                }
                Ok(Some(_)) => false,
                // What follows cannot be understood either.
                Err(_) => true,
            };
            if self.requests.send(request.map(|request| request.unwrap_or(Request::End))).is_err() || is_last
            {
                break;
            }
        }
        self.control.end(false);
        // It wakes an agent that waits for a request; any other looks at the control.
        let _ = self.requests.try_send(Ok(Request::End));
    }
}

/// What carries requests out.
struct Agent {
    host: AgentHost,
    control: Control,
    generator: GeneratorAgent,
    services: ServicesAgent,
}

impl Agent {
    fn new(host: AgentHost, control: Control) -> Agent {
        let generator = GeneratorAgent::new(control.clone());
        let services = ServicesAgent::new(&host, control.clone());
        Agent { host, control, generator, services }
    }

    fn serve(
        mut self,
        requests: &Receiver<io::Result<Request>>,
        output: &Output<impl Write>,
    ) -> io::Result<()> {
        let mut served = Ok(());
        while let Ok(request) = requests.recv() {
            // A request that was not understood gets its response all the same.
            if self.control.is_over() && request.is_ok() {
                break;
            }
            let response = request.map_or_else(not_understood, |request| self.carry_out(request));
            served = send(output, &response);
            if served.is_err() {
                break;
            }
        }
        let (is_timed_out, timeout) = (self.control.is_timed_out(), self.host.timeout);
        // Services end here.
        drop(self);
        let ended_all = format!("nothing came for {} s, so everything there was ended", timeout.as_secs());
        let last = match is_timed_out {
            true => Response::Failed(Failed::new(Blame::Machine, ended_all)),
            false => Response::Ended,
        };
        // If the other side has gone, it need not know.
        let _ = send(output, &last);
        served
    }

    fn carry_out(&mut self, request: Request) -> Response {
        let carried_out = match request {
            // Also to another version: so it learns which one is spoken here.
            Request::Hello { .. } => Ok(self.ready()),
            Request::Generator(request) => self.generator.carry_out(request).map(Response::Generator),
            Request::Services(request) => self.services.carry_out(request).map(Response::Services),
            // The reading thread keeps these to itself.
            Request::Ping(_) | Request::Heartbeat | Request::Cancel | Request::End => {
                Err(Failed::new(Blame::Request, "out of turn"))
            }
        };
        carried_out.unwrap_or_else(Response::Failed)
    }

    fn ready(&self) -> Response {
        let AgentHost { proofload, name, processors, .. } = self.host.clone();
        Response::Ready { version: VERSION, proofload, host: name, processors }
    }
}

fn not_understood(error: io::Error) -> Response {
    Response::Failed(Failed::new(Blame::Request, error.to_string()))
}
