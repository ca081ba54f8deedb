//! The agent: executes requests from its input, and writes responses to its output.
//!
//! One thread reads requests and answers pings at once, even while a window runs. Another thread executes
//! requests in order. When the input ends, the current window ends, too, because nothing may run here
//! unsupervised. A timeout also ends it, whatever both threads do: after a network was cut, no input ends, and
//! output is lost.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use machine::clock::monotonic_ns;

use crate::control::Control;
use crate::generators::GeneratorAgent;
use crate::protocol::{AgentRequest, AgentResponse, LastByte, VERSION, WatchedInput, read, write};
use crate::{Blame, Error};

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
