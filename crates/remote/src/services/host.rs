//! An agent on another machine that runs services: requests go out one after the other, and each has a time limit. When one is over, as
//! when the channel ends, the machine is lost and stays so.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::services::Ports;
use plan::Service;

use super::{Begun, First, HostView, ServicesRequest, ServicesResponse};
use crate::protocol::{
    Connection, Failed, Heartbeat, Message, QUEUE_MAX, Request, Response, VERSION, other_version,
};
use crate::{Blame, Channel, Error};

/// How long a response may take that takes no time in itself: a slow network and a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// How long a machine may take to end everything. It goes on with that also when nobody waits.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How often it is asked whether what is waited for is cancelled.
const GLANCE: Duration = Duration::from_millis(20);
pub(super) const OTHER_RESPONSE: &str = "its response is to another request";

/// What takes the one response that fits a request.
macro_rules! pick {
    ($name:ident $fields:tt => $of:expr) => {
        |response| match response {
            ServicesResponse::$name $fields => Some($of),
            _ => None,
        }
    };
}
pub(super) use pick;

/// Another machine with an agent that runs services. Dropping it ends those that are left there.
#[derive(Debug)]
pub struct RemoteHost {
    /// What was known of it before any service started.
    pub begun: Begun,
    connection: Connection,
    responses: Mutex<Responses>,
    /// Numbers of services.
    numbers: AtomicU64,
    _heartbeat: Heartbeat,
}

#[derive(Debug)]
struct Responses {
    messages: Receiver<Message>,
    /// Responses on their way that nobody waits for any more.
    unwanted: u32,
    /// Why nothing comes any more.
    lost: Option<String>,
}

impl RemoteHost {
    /// Greets the agent at the other end of a channel. `services` are all that may be started there.
    ///
    /// # Errors
    /// If there is no agent of our version, or services could not be started there.
    pub fn open(channel: Channel, services: &[&Service]) -> Result<RemoteHost, Error> {
        let host = channel.name.clone();
        let no_thread = |error: io::Error| lost(&host, format!("no thread for its channel: {error}"));
        let (to, messages) = sync_channel(QUEUE_MAX);
        let heartbeat = Heartbeat::new().map_err(no_thread)?;
        let connection = Connection::open(channel, 0, to, &heartbeat).map_err(no_thread)?;
        let mut host = RemoteHost {
            begun: Begun::default(),
            connection,
            responses: Mutex::new(Responses { messages, unwanted: 0, lost: None }),
            numbers: AtomicU64::new(0),
            _heartbeat: heartbeat,
        };
        host.greet()?;
        host.begun = host.begin(services)?;
        Ok(host)
    }

    fn greet(&self) -> Result<(), Error> {
        match self.request(&Request::Hello { version: VERSION }, PATIENCE, &|| false)? {
            Response::Ready { version: VERSION, .. } => Ok(()),
            Response::Ready { version, proofload, .. } => Err(self.lost(other_version(version, &proofload))),
            Response::Failed(failed) => Err(self.failed(failed)),
            _ => Err(self.lost(OTHER_RESPONSE)),
        }
    }

    fn begin(&self, services: &[&Service]) -> Result<Begun, Error> {
        // Texts of templates come with the start of a service.
        let plain = |service: &&Service| {
            let mut plain = (*service).clone();
            plain.command_mut().into_iter().for_each(|command| command.templates.clear());
            plain
        };
        let services = services.iter().map(plain).collect();
        self.ask(ServicesRequest::Begin { services }, PATIENCE, pick!(Begun(begun) => begun))
    }

    /// The machine, as people know it: `ssh://bench-1`.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// Chooses ports there, as [`Ports::choose`] does here.
    ///
    /// # Errors
    /// As that does; and if the machine is lost.
    pub fn choose(&self, services: &[Service], address: IpAddr, random: u64) -> Result<Ports, Error> {
        let request = ServicesRequest::Choose { services: services.to_vec(), address, random };
        self.ask(request, PATIENCE, pick!(Chosen { ports } => ports))
    }

    /// Requests what its services and the machine have used, and does not wait: several machines look at the same time.
    ///
    /// # Errors
    /// If the machine is lost.
    pub fn view(&self, first: First, spin: bool) -> Result<PendingView<'_>, Error> {
        let mut responses = self.responses();
        self.send(&Request::Services(ServicesRequest::View { first, spin }))?;
        // Where another machine is lost nobody waits for what this one saw.
        responses.unwanted += 1;
        Ok(PendingView { host: self, responses })
    }

    /// The number of the next service.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request and waits for its response.
    pub(super) fn ask<T>(
        &self,
        request: ServicesRequest,
        patience: Duration,
        pick: impl FnOnce(ServicesResponse) -> Option<T>,
    ) -> Result<T, Error> {
        let picked = match self.request(&Request::Services(request), patience, &|| false)? {
            Response::Failed(failed) => return Err(self.failed(failed)),
            Response::Services(response) => pick(response),
            _ => None,
        };
        picked.ok_or_else(|| self.lost(OTHER_RESPONSE))
    }

    /// The same, whatever the response is; `cancelled` is asked every 20 ms, and true breaks off what was requested.
    pub(super) fn request(
        &self,
        request: &Request,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Response, Error> {
        let mut responses = self.responses();
        if let Some(reason) = &responses.lost {
            return Err(self.lost(reason.clone()));
        }
        self.send(request)?;
        let cancel = || cancelled().then(|| drop(self.send(&Request::Cancel))).is_some();
        responses.next(patience, cancel).map_err(|reason| self.lost(reason))
    }

    pub(super) fn failed(&self, failed: Failed) -> Error {
        match failed.error.blame() {
            Blame::Cancelled => Error::cancelled(self.name()),
            _ => failed.error.on(self.name()),
        }
    }

    pub(super) fn lost(&self, reason: impl std::fmt::Display) -> Error {
        lost(self.name(), reason)
    }

    fn send(&self, request: &Request) -> Result<(), Error> {
        self.connection.send(request).map_err(|error| self.lost(format!("the connection is lost: {error}")))
    }

    fn responses(&self) -> MutexGuard<'_, Responses> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That nothing more is known of a machine, and why.
pub(super) fn lost(host: &str, reason: impl std::fmt::Display) -> Error {
    Error::new(format!("{host}: {reason}")).by(Blame::Lost(host.to_owned()))
}

/// A view that was requested of a machine.
pub struct PendingView<'a> {
    host: &'a RemoteHost,
    responses: MutexGuard<'a, Responses>,
}

impl PendingView<'_> {
    /// Waits for it.
    ///
    /// # Errors
    /// If the machine is lost.
    pub fn finish(mut self) -> Result<HostView, Error> {
        self.responses.unwanted -= 1;
        match self.responses.next(PATIENCE, || false) {
            Ok(Response::Services(ServicesResponse::Viewed(view))) => Ok(*view),
            Ok(Response::Failed(failed)) => Err(self.host.failed(failed)),
            Ok(_) => Err(self.host.lost(OTHER_RESPONSE)),
            Err(reason) => Err(self.host.lost(reason)),
        }
    }
}

impl Responses {
    /// The next one, unless it takes longer than `patience`. `cancel` breaks off what was requested, and returns whether it did.
    ///
    /// # Errors
    /// Why nothing comes any more.
    fn next(&mut self, patience: Duration, cancel: impl Fn() -> bool) -> Result<Response, String> {
        if let Some(reason) = &self.lost {
            return Err(reason.clone());
        }
        let deadline = Instant::now() + patience;
        let mut is_cancelled = false;
        let reason = loop {
            match self.messages.recv_timeout(GLANCE).map(|message| message.response) {
                Ok(Ok(Some(_))) if self.unwanted > 0 => self.unwanted -= 1,
                Ok(Ok(Some(response))) => return Ok(response),
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => {
                    break "the connection is lost".to_owned();
                }
                Ok(Err(error)) => break format!("the connection is lost: {error}"),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    break format!("it has not responded for {} s", patience.as_secs());
                }
                Err(RecvTimeoutError::Timeout) => is_cancelled = is_cancelled || cancel(),
            }
        };
        // A response that comes later would be taken for that to another request.
        self.lost = Some(reason.clone());
        Err(reason)
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        self.connection.end();
        let mut responses = self.responses();
        // Until the channel ends: then the other side has gone, and so has everything below it.
        while responses.next(END_PATIENCE, || false).is_ok() {}
    }
}
