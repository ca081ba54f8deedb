//! A machine elsewhere as its channel shows it: orders go out one after the other, a thread reads what comes back, and another says now
//! and then that we are still there.
//!
//! Every question has a time after which it is answered by nobody; then, as when the channel ends, the machine is lost and stays so.

use std::any::Any;
use std::io::{self, BufReader, Read, Write};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plan::Service;

use super::{ATTEND_VERSION, Answer, Failed, First, HostView, Order, Ready, line};
use crate::Ports;
use crate::error::TargetError;

/// How often it is said that we are there. A machine that hears nothing for [`crate::AttendHost::lease`] ends what it attends to.
const BEAT: Duration = Duration::from_secs(10);
/// How long an answer may take that takes no time in itself: a slow network and a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a machine may take to end everything and go. It goes on with that also when nobody waits.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether somebody wants no more of what is waited for.
const GLANCE: Duration = Duration::from_millis(20);
const OTHER_ANSWER: &str = "it answered something else than it was asked";

/// A machine elsewhere on which somebody attends to services. Dropping it ends those that are left there.
pub struct Attendant {
    host: String,
    ready: Ready,
    output: Output,
    answers: Mutex<Answers>,
    /// Numbers of services.
    numbers: AtomicU64,
    /// Dropped, it ends the thread that says that we are there.
    beat: Option<Sender<()>>,
    /// What keeps the channel; last of all, for it may end the other side by force.
    _keeper: Mutex<Box<dyn Any + Send>>,
}

impl std::fmt::Debug for Attendant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attendant").field("host", &self.host).finish_non_exhaustive()
    }
}

/// What orders are written to; nothing once it is closed.
type Output = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

/// What came back and was not taken yet.
struct Answers {
    heard: Receiver<io::Result<Option<Answer>>>,
    /// Answers on their way that nobody waits for any more.
    unwanted: u32,
    /// Why nothing comes any more.
    lost: Option<String>,
}

impl Attendant {
    /// Begins with who attends at the other end of a channel: its stdin, its stdout, and what keeps them. `services` are all that may be
    /// started there.
    ///
    /// # Errors
    /// [`TargetError::HostLost`] if it does not answer, [`TargetError::There`] if services could not be started there.
    pub fn open(
        host: impl Into<String>,
        input: Box<dyn Write + Send>,
        output: Box<dyn Read + Send>,
        keeper: Box<dyn Any + Send>,
        services: &[&Service],
    ) -> Result<Attendant, TargetError> {
        let host = host.into();
        let threads = |error: io::Error| TargetError::HostLost {
            host: host.clone(),
            reason: format!("no thread to hear it: {error}"),
        };
        let heard = listen(output).map_err(threads)?;
        let input: Output = Arc::new(Mutex::new(Some(input)));
        let beat = beat(&input).map_err(threads)?;
        let nothing = Ready {
            version: ATTEND_VERSION,
            proofload: String::new(),
            cpus: Vec::new(),
            about: serde_json::Value::Null,
            ended: Vec::new(),
        };
        let mut attendant = Attendant {
            host,
            ready: nothing,
            output: input,
            answers: Mutex::new(Answers { heard, unwanted: 0, lost: None }),
            numbers: AtomicU64::new(0),
            beat: Some(beat),
            _keeper: Mutex::new(keeper),
        };
        attendant.ready = attendant.begin(services)?;
        Ok(attendant)
    }

    fn begin(&self, services: &[&Service]) -> Result<Ready, TargetError> {
        // Texts of templates are told when a service is started.
        let told = |service: &&Service| Service { templates: Default::default(), ..(*service).clone() };
        let services = services.iter().map(told).collect();
        self.ask(&Order::Begin { version: ATTEND_VERSION, services }, PATIENCE, |answer| match answer {
            Answer::Ready(ready) => Some(ready),
            _ => None,
        })
    }

    /// The machine, as people know it: `ssh://bench-1`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Processors that its services may use.
    pub fn cpus(&self) -> &[usize] {
        &self.ready.cpus
    }

    /// What describes it, as the program there has it.
    pub fn about(&self) -> &serde_json::Value {
        &self.ready.about
    }

    /// What runs that were killed had left there, and was ended: a command and a number each.
    pub fn ended(&self) -> &[String] {
        &self.ready.ended
    }

    /// Chooses ports there, as [`Ports::choose`] does here.
    ///
    /// # Errors
    /// As that does; and if the machine is lost.
    pub fn choose(&self, services: &[Service], address: IpAddr, random: u64) -> Result<Ports, TargetError> {
        let order = Order::Choose { services: services.to_vec(), address, random };
        self.ask(&order, PATIENCE, |answer| match answer {
            Answer::Chosen { ports } => Some(ports),
            _ => None,
        })
    }

    /// Asks what its services and the machine have used, without waiting for the answer: several machines look at the same time.
    ///
    /// # Errors
    /// If the machine is lost.
    pub fn view(&self, first: First, spin: bool) -> Result<Viewing<'_>, TargetError> {
        let answers = self.answers();
        self.tell(&Order::View { first, spin }).map_err(|error| self.lost_by(error))?;
        Ok(Viewing { attendant: self, answers, is_finished: false })
    }

    /// The number of the next service.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Gives an order and waits for its answer.
    pub(super) fn ask<T>(
        &self,
        order: &Order,
        patience: Duration,
        pick: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, TargetError> {
        match self.hear(order, patience, &|| false)? {
            Answer::Failed(failed) => Err(self.failed(failed)),
            answer => pick(answer).ok_or_else(|| self.lost(OTHER_ANSWER.to_owned())),
        }
    }

    /// The same, whatever the answer is; `cancelled` is asked every 20 ms, and true breaks off what was ordered.
    pub(super) fn hear(
        &self,
        order: &Order,
        patience: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, TargetError> {
        let mut answers = self.answers();
        if let Some(reason) = &answers.lost {
            return Err(self.lost(reason.clone()));
        }
        self.tell(order).map_err(|error| self.lost_by(error))?;
        let cancel = || cancelled().then(|| drop(self.tell(&Order::Cancel))).is_some();
        answers.next(patience, cancel).map_err(|reason| self.lost(reason))
    }

    pub(super) fn failed(&self, failed: Failed) -> TargetError {
        let Failed { message, tail, hint, cancelled, .. } = failed;
        let host = self.host.clone();
        if cancelled {
            return TargetError::Cancelled { service: host };
        }
        let (message, tail) = (message.into(), tail.unwrap_or_default().into());
        TargetError::There { host, message, tail, hint: hint.map(Into::into) }
    }

    fn tell(&self, order: &Order) -> io::Result<()> {
        tell(&self.output, order)
    }

    pub(super) fn lost(&self, reason: String) -> TargetError {
        TargetError::HostLost { host: self.host.clone(), reason }
    }

    fn lost_by(&self, error: io::Error) -> TargetError {
        self.lost(format!("the connection is lost: {error}"))
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look that a machine was asked for.
pub struct Viewing<'a> {
    attendant: &'a Attendant,
    answers: MutexGuard<'a, Answers>,
    is_finished: bool,
}

impl Viewing<'_> {
    /// The machine.
    pub fn host(&self) -> &str {
        &self.attendant.host
    }

    /// Waits for what it saw.
    ///
    /// # Errors
    /// If the machine is lost.
    pub fn finish(mut self) -> Result<HostView, TargetError> {
        self.is_finished = true;
        match self.answers.next(PATIENCE, || false) {
            Ok(Answer::Viewed(view)) => Ok(*view),
            Ok(Answer::Failed(failed)) => Err(self.attendant.failed(failed)),
            Ok(_) => Err(self.attendant.lost(OTHER_ANSWER.to_owned())),
            Err(reason) => Err(self.attendant.lost(reason)),
        }
    }
}

impl Drop for Viewing<'_> {
    /// Where another machine is lost nobody waits for what this one saw.
    fn drop(&mut self) {
        self.answers.unwanted += u32::from(!self.is_finished);
    }
}

impl Answers {
    /// The next one, unless it takes longer than `patience`. `cancel` breaks off what was ordered, and tells whether it did.
    ///
    /// # Errors
    /// Why nothing comes any more, in words.
    fn next(&mut self, patience: Duration, cancel: impl Fn() -> bool) -> Result<Answer, String> {
        if let Some(reason) = &self.lost {
            return Err(reason.clone());
        }
        let deadline = Instant::now() + patience;
        let mut is_cancelled = false;
        let reason = loop {
            match self.heard.recv_timeout(GLANCE) {
                Ok(Ok(Some(_))) if self.unwanted > 0 => self.unwanted -= 1,
                Ok(Ok(Some(answer))) => return Ok(answer),
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => {
                    break "the connection is lost".to_owned();
                }
                Ok(Err(error)) => break format!("the connection is lost: {error}"),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                    break format!("it has not answered for {} s", patience.as_secs());
                }
                Err(RecvTimeoutError::Timeout) => is_cancelled = is_cancelled || cancel(),
            }
        };
        // An answer that comes later would be taken for that to another question.
        self.lost = Some(reason.clone());
        Err(reason)
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.beat = None;
        let _ = self.tell(&Order::End);
        *self.output.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let deadline = Instant::now() + END_PATIENCE;
        let answers = self.answers();
        // Until the channel ends: then the other side has gone, and so has everything below it.
        while answers.lost.is_none() {
            match answers.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Ok(Some(_))) => {}
                Ok(_) | Err(_) => break,
            }
        }
    }
}

fn tell(output: &Mutex<Option<Box<dyn Write + Send>>>, order: &Order) -> io::Result<()> {
    match output.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(output) => line::write(output, order),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Reads answers on a thread of their own until there are no more.
fn listen(output: Box<dyn Read + Send>) -> io::Result<Receiver<io::Result<Option<Answer>>>> {
    let (to, heard) = channel();
    let read = move || {
        let mut output = BufReader::new(output);
        loop {
            let answer = line::read(&mut output);
            let is_last = !matches!(answer, Ok(Some(_)));
            if to.send(answer).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("attended".to_owned()).spawn(read)?;
    Ok(heard)
}

/// Says now and then that we are there, until what is returned is dropped.
fn beat(output: &Output) -> io::Result<Sender<()>> {
    let (sender, ended) = channel::<()>();
    let output = Arc::clone(output);
    let beat = move || {
        while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            if tell(&output, &Order::Beat).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("beat".to_owned()).spawn(beat)?;
    Ok(sender)
}
