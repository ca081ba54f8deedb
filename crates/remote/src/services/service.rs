//! One service on another machine: what [`::services::Running`] is here.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::services::{Exit, Leftover, Placement, Ports, Sample, Stopped, TargetError};
use plan::Service;

use super::host::{PATIENCE, RemoteHost};
use super::log;
use super::message::{
    Answer, Question, ServiceView, ServicesRequest, ServicesResponse, StartService, Started,
};
use crate::protocol::Response;

/// A service that was started on another machine and became ready there. Dropping it stops it.
#[derive(Debug)]
pub struct RemoteService {
    host: Arc<RemoteHost>,
    name: String,
    number: u64,
    address: SocketAddr,
    started: Started,
    /// How it ended, as of the last view, with its last lines.
    exited: Option<(Exit, String)>,
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
    /// [`TargetError::There`] with what [`::services::start`] said there, and [`TargetError::HostLost`]; nothing of it is left then.
    pub fn start(
        host: &Arc<RemoteHost>,
        service: &Service,
        ports: &Ports,
        placement: &Placement,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<RemoteService, TargetError> {
        let number = host.number();
        let wanted = StartService {
            number,
            service: service.clone(),
            ports: ports.clone(),
            address: placement.address,
            addresses: placement.addresses.clone(),
            padding_bytes: placement.padding_bytes,
            group: placement.group,
            values: placement.values.clone(),
        };
        // It waits so long for the service and for its workers, and gives it so long to end where it has to.
        let patience = service.ready_timeout * 2 + service.stop_timeout + PATIENCE * 2;
        match host.exchange(ServicesRequest::Start(Box::new(wanted)), patience, cancelled)? {
            Response::Services(ServicesResponse::Started(started)) => Ok(RemoteService {
                host: Arc::clone(host),
                name: service.name.clone(),
                number,
                address: SocketAddr::new(placement.address, started.port),
                started: *started,
                exited: None,
                log: placement.log.clone(),
                stop_patience: service.stop_timeout + PATIENCE,
                is_stopped: false,
            }),
            Response::Failed(failed) => {
                // Why it did not start matters more than why that could not be written.
                let _ = failed.log.as_deref().map(|log| write_log(log, &placement.log));
                Err(host.failed(failed))
            }
            _ => Err(host.lost("it sent something else than a start".to_owned())),
        }
    }

    /// The service's name in the experiment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine it runs on.
    pub fn host(&self) -> &Arc<RemoteHost> {
        &self.host
    }

    /// Which it is among the services of its machine.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of its first process, there.
    pub fn pid(&self) -> u32 {
        self.started.pid
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Workers that it had when it became ready.
    pub fn workers(&self) -> Option<u32> {
        self.started.workers
    }

    /// How it had ended by the last view, with its last lines.
    pub fn exited(&self) -> Option<&(Exit, String)> {
        self.exited.as_ref()
    }

    /// Takes in what a view of its machine has of it.
    pub fn update(&mut self, view: &ServiceView) {
        if view.exited.is_some() {
            self.exited.clone_from(&view.exited);
        }
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// If the machine is lost; so have all questions to it.
    pub fn sample(&mut self) -> Result<Sample, TargetError> {
        let view = self.ask(ServicesRequest::Sample(self.number), |response| match response {
            ServicesResponse::Sampled(view) => Some(*view),
            _ => None,
        })?;
        self.update(&view);
        Ok(view.sample)
    }

    pub(super) fn question(&self, question: Question) -> Result<Answer, TargetError> {
        self.ask(ServicesRequest::Ask(self.number, question), |response| match response {
            ServicesResponse::Answered(answer) => Some(answer),
            _ => None,
        })
    }

    /// Stops it and fetches its log. Where its machine is lost it ends by itself, and what is left of it is unknown here.
    pub fn stop(mut self) -> Stopped {
        self.end().unwrap_or_else(|error| Stopped {
            exit: None,
            killed: 0,
            leftovers: vec![Leftover {
                pid: self.started.pid,
                description: format!("it is unknown whether {} has ended: {error}", self.name),
            }],
            output_bytes: 0,
            output_dropped_bytes: 0,
        })
    }

    fn end(&mut self) -> Result<Stopped, TargetError> {
        self.is_stopped = true;
        let request = ServicesRequest::Stop(self.number);
        let (stopped, log) = self.host.ask(request, self.stop_patience, |response| match response {
            ServicesResponse::Stopped { stopped, log } => Some((stopped, log)),
            _ => None,
        })?;
        // If the disk is full here, other files of the record fail with an error.
        let _ = write_log(&log, &self.log);
        Ok(stopped)
    }

    fn ask<T>(
        &self,
        request: ServicesRequest,
        pick: impl FnOnce(ServicesResponse) -> Option<T>,
    ) -> Result<T, TargetError> {
        self.host.ask(request, PATIENCE, pick)
    }
}

impl Drop for RemoteService {
    fn drop(&mut self) {
        if !self.is_stopped {
            let _ = self.end();
        }
    }
}

/// Writes a log that came from there.
fn write_log(text: &str, path: &Path) -> io::Result<()> {
    log::decoded(text).and_then(|bytes| fs::write(path, bytes))
}
