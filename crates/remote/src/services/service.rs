//! One service on another machine: what [`::services::Running`] is here.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::services::{
    AgentHost, Exit, Leftover, Placement, Ports, ProcessThreads, Running, Sample, Sight, Stopped,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machine::write_whole;
use model::Found;
use plan::Service;

use crate::Error;
use crate::protocol::{Request, Response};
use crate::services::host::{OTHER_RESPONSE, PATIENCE, RemoteHost, lost, pick};
use crate::services::{
    Answer, Question, ServiceView, ServicesRequest, ServicesResponse, StartService, Started,
};

/// The answer to the question of its name.
macro_rules! answer {
    ($of:expr, $name:ident $(, $with:expr)?) => {
        match $of.ask(Question::$name $(($with))?)? {
            Answer::$name(answer) => Ok(answer),
            _ => Err(lost($of.host().unwrap_or_default(), OTHER_RESPONSE)),
        }
    };
}

/// A service that was started on another machine and became ready there. Dropping it stops it.
#[derive(Debug)]
pub struct RemoteService {
    /// The machine it runs on.
    pub host: Arc<RemoteHost>,
    name: String,
    /// Which it is among the services of its machine.
    pub number: u64,
    /// Where it listens.
    pub address: SocketAddr,
    /// How it was when it became ready.
    pub started: Started,
    /// How it had ended by the last view, with its last lines.
    pub exited: Option<(Exit, String)>,
    /// Where its log goes once it has ended.
    log: PathBuf,
    stop_patience: Duration,
    is_stopped: bool,
}

impl RemoteService {
    /// Starts a service there and waits until it is ready, as [`::services::start`] does here. Of the `placement` the CPUs count for nothing,
    /// for it may use all there are, and no agent is loaded. Its log is written here when it has ended.
    ///
    /// # Errors
    /// What [`::services::start`] said there, and that the machine is lost; nothing of it is left then.
    pub fn start(
        host: &Arc<RemoteHost>,
        service: &Service,
        ports: &Ports,
        placement: &Placement,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<RemoteService, Error> {
        let number = host.number();
        let wanted = StartService {
            number,
            service: service.clone(),
            ports: ports.clone(),
            placement: placement.clone(),
        };
        // It waits so long for the service and for its workers, and gives it so long to end where it has to.
        let stop_timeout = service.command().map(|command| command.stop_timeout).unwrap_or_default();
        let patience = service.ready_timeout * 2 + stop_timeout + PATIENCE * 2;
        let request = Request::Services(ServicesRequest::Start(Box::new(wanted)));
        match host.request(&request, patience, cancelled)? {
            Response::Services(ServicesResponse::Started(started)) => Ok(RemoteService {
                host: Arc::clone(host),
                name: service.name.clone(),
                number,
                address: SocketAddr::new(placement.address, started.port),
                started: *started,
                exited: None,
                log: placement.log.clone(),
                stop_patience: stop_timeout + PATIENCE,
                is_stopped: false,
            }),
            Response::Failed(failed) => {
                // Why it did not start matters more than why that could not be written.
                let _ = failed.log.as_deref().map(|log| write_log(log, &placement.log));
                Err(host.failed(failed))
            }
            _ => Err(host.lost("it sent something else than a start")),
        }
    }

    /// Takes in what a view of its machine has of it.
    pub fn update(&mut self, view: &ServiceView) {
        if view.exited.is_some() {
            self.exited.clone_from(&view.exited);
        }
    }

    fn sample(&mut self) -> Result<Sample, Error> {
        let request = ServicesRequest::Sample(self.number);
        let view = self.host.ask(request, PATIENCE, pick!(Sampled(view) => *view))?;
        self.update(&view);
        Ok(view.sample)
    }

    /// Stops it and fetches its log. Where its machine is lost it ends by itself, and what is left of it is unknown here.
    pub fn stop(mut self) -> Stopped {
        self.end().unwrap_or_else(|error| {
            let description = format!("it is unknown whether {} has ended: {error}", self.name);
            let leftovers = vec![Leftover { pid: self.started.pid, description }];
            Stopped { leftovers, ..Stopped::default() }
        })
    }

    fn end(&mut self) -> Result<Stopped, Error> {
        self.is_stopped = true;
        let request = ServicesRequest::Stop(self.number);
        let (stopped, log) =
            self.host.ask(request, self.stop_patience, pick!(Stopped { stopped, log } => (stopped, log)))?;
        // If the disk is full here, other files of the record fail with an error.
        let _ = write_log(&log, &self.log);
        Ok(stopped)
    }
}

impl Drop for RemoteService {
    fn drop(&mut self) {
        if !self.is_stopped {
            let _ = self.end();
        }
    }
}

/// Writes a log that came from there, in base64.
fn write_log(text: &str, path: &Path) -> io::Result<()> {
    STANDARD.decode(text).map_err(io::Error::other).and_then(|bytes| write_whole(path, &bytes))
}

// A service, on this machine or on another one: the same questions to both, with the same answers.
//
// A question to another machine takes a round trip, and fails where the machine is lost; one to this machine never does.

/// A service that was started and became ready. Dropping it stops it.
#[derive(Debug)]
pub enum ServiceHandle {
    /// On this machine.
    Here(Box<Running>),
    /// On another one.
    There(Box<RemoteService>),
}

impl ServiceHandle {
    /// Where it was found, if it listens neither on PORT nor where it was found when it was started before.
    pub fn found(&self) -> Option<Found> {
        match self {
            Self::Here(running) => running.found.clone(),
            Self::There(remote) => remote.started.found.clone(),
        }
    }

    /// Further ports that it listened on when it became ready.
    pub fn other_ports(&self) -> &[u16] {
        match self {
            Self::Here(running) => &running.other_ports,
            Self::There(remote) => &remote.started.other_ports,
        }
    }

    /// The service's name in the experiment.
    pub fn name(&self) -> &str {
        match self {
            Self::Here(running) => &running.name,
            Self::There(remote) => &remote.name,
        }
    }

    /// The machine that it runs on; `None` is this one.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::There(remote) => Some(remote.host.name()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Here(running) => running.address,
            Self::There(remote) => remote.address,
        }
    }

    /// Number of its first process, on its machine.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Here(running) => running.pid,
            Self::There(remote) => remote.started.pid,
        }
    }

    /// It, where it runs here.
    pub fn here(&self) -> Option<&Running> {
        match self {
            Self::Here(running) => Some(running),
            Self::There(_) => None,
        }
    }

    /// Where the agents in its Node.js processes are asked; `None` where none were loaded, as on other machines.
    pub fn agent(&self) -> Option<&AgentHost> {
        self.here()?.agent.as_ref()
    }

    /// Workers that it had when it became ready; `None` where its other processes look alike.
    pub fn workers(&self) -> Option<u32> {
        match self {
            Self::Here(running) => running.workers(),
            Self::There(remote) => remote.started.workers,
        }
    }

    /// How it ended, if it has, with the last lines of its output: here by now, elsewhere by the last look at its machine.
    pub fn exited(&mut self) -> Option<(Exit, String)> {
        match self {
            Self::Here(running) => running.exited().map(|exit| (exit, running.tail())),
            Self::There(remote) => remote.exited.clone(),
        }
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// If its machine is lost. So it is with all questions below.
    pub fn sample(&mut self) -> Result<Sample, Error> {
        match self {
            Self::Here(running) => Ok(running.sample()),
            Self::There(remote) => remote.sample(),
        }
    }

    /// Its processes and who listens on its port.
    pub fn sight(&self, variables: &[&str]) -> Result<Sight, Error> {
        answer!(self, Sight, variables.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Its processes and what each of their threads has used so far, parents first.
    pub fn threads(&self) -> Result<Vec<ProcessThreads>, Error> {
        answer!(self, Threads)
    }

    /// Peak resident memory of its processes in bytes.
    pub fn peak_memory(&self) -> Result<u64, Error> {
        answer!(self, PeakMemory)
    }

    /// How many of its workers are gone, also if others have taken their places.
    pub fn workers_lost(&self) -> Result<u32, Error> {
        answer!(self, WorkersLost)
    }

    fn ask(&self, question: Question) -> Result<Answer, Error> {
        match self {
            Self::Here(running) => Ok(question.answer(running)),
            Self::There(remote) => {
                let request = ServicesRequest::Ask(remote.number, question);
                remote.host.ask(request, PATIENCE, pick!(Answered(answer) => answer))
            }
        }
    }

    /// Stops it and waits until nothing of it is left; the log of one elsewhere is here then.
    pub fn stop(self) -> Stopped {
        match self {
            Self::Here(running) => running.stop(),
            Self::There(remote) => remote.stop(),
        }
    }
}
