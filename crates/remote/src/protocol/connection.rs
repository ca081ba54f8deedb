//! An agent on another machine, as its channel shows it: requests go in, a thread reads what comes out.

use std::any::Any;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Heartbeat, Request, Response, read, write};
use crate::Channel;
use crate::clock::monotonic_ns;

/// Messages that may wait to be taken in; with more their readers wait.
pub(crate) const QUEUE_MAX: usize = 1024;

/// A channel with an agent at its other end. Dropping it closes it, which ends the agent.
pub(crate) struct Connection {
    /// Where the agent runs, as people know it: `local`, `ssh://bench-1`.
    pub name: String,
    /// Number of its process, where that is a child of ours.
    pub process: Option<u32>,
    input: Arc<Input>,
    /// After the input: it may end the other side by force.
    _keeper: Mutex<Box<dyn Any + Send>>,
}

/// Something that came.
#[derive(Debug)]
pub(crate) struct Message {
    /// The number that its reader was given.
    pub from: u64,
    /// When its first byte came, by our clock.
    pub at_ns: u64,
    /// `None` is the end.
    pub response: io::Result<Option<Response>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Connection {
    /// From now on responses are read, on a thread that ends with the channel, and the agent gets heartbeats.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn open(
        channel: Channel,
        number: u64,
        to: SyncSender<Message>,
        heartbeat: &Heartbeat,
    ) -> io::Result<Connection> {
        let process = channel.process();
        let Channel { name, input, output, keeper } = channel;
        let input = Arc::new(Input::new(input));
        heartbeat.include(&input);
        let listen = move || listen(BufReader::new(output), number, &to);
        std::thread::Builder::new().name(format!("responses-{number}")).spawn(listen)?;
        Ok(Connection { name, process, input, _keeper: Mutex::new(keeper) })
    }

    /// Sends a request. An agent that reads no more has ended, or its channel has: the other end says why, in better words.
    ///
    /// # Errors
    /// If the request is too long, or the channel takes nothing any more.
    pub fn send(&self, request: &Request) -> io::Result<()> {
        match self.input.send(request) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends the agent, which may have ended already.
    pub fn end(&self) {
        let _ = self.input.send(&Request::End);
        self.input.close();
    }
}

fn listen(mut output: impl BufRead, from: u64, to: &SyncSender<Message>) {
    loop {
        // A long frame takes time to read.
        let filled = output.fill_buf().map(drop);
        let at_ns = monotonic_ns();
        let response = filled.and_then(|()| read(&mut output));
        let is_last = !matches!(response, Ok(Some(_)));
        if to.send(Message { from, at_ns, response }).is_err() || is_last {
            return;
        }
    }
}

type Writer = Box<dyn Write + Send>;

/// The stdin of an agent, written to by whole frames; nothing once it is closed.
pub(crate) struct Input(Mutex<Option<Writer>>);

impl Input {
    pub fn new(writer: Writer) -> Input {
        Input(Mutex::new(Some(writer)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, request: &Request) -> io::Result<()> {
        match self.lock().as_mut() {
            Some(writer) => write(writer.as_mut(), request),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Sends a heartbeat, unless a request is being sent right now, which says as much for however long that takes.
    pub fn beat(&self) {
        if let Ok(mut input) = self.0.try_lock()
            && let Some(writer) = input.as_mut()
        {
            // That it is gone is known from its other end, in better words.
            let _ = write(writer.as_mut(), &Request::Heartbeat);
        }
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Input")
    }
}
