//! One service on another machine, in Proofload's hands: what [`crate::Running`] is here.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plan::Service;

use super::attendant::{Attendant, PATIENCE};
use super::{Answer, Begun, Order, ServiceView, Started, kept_log};
use crate::error::TargetError;
use crate::message::{Exit, Leftover};
use crate::running::{Listening, Sight, Stopped};
use crate::sample::Sample;
use crate::threads::ProcessThreads;
use crate::{Placement, Ports};

/// A service that was started on another machine and became ready there. Dropping it stops it.
#[derive(Debug)]
pub struct Distant {
    attendant: Arc<Attendant>,
    name: String,
    number: u64,
    address: SocketAddr,
    started: Started,
    /// How it ended, as the last look showed, with its last words.
    exited: Option<(Exit, String)>,
    /// Where its log goes once it has ended.
    log: PathBuf,
    stop_patience: Duration,
    is_stopped: bool,
}

impl Distant {
    /// Starts a service there and waits until it is ready, as [`crate::start`] does here. Of the `placement` the CPUs count for nothing,
    /// for it may use all there are, and no agent is loaded. Its log is written here when it has ended.
    ///
    /// # Errors
    /// [`TargetError::There`] with what [`crate::start`] said there, and [`TargetError::HostLost`]; nothing of it is left then.
    pub fn start(
        attendant: &Arc<Attendant>,
        service: &Service,
        ports: &Ports,
        placement: &Placement,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Distant, TargetError> {
        let number = attendant.number();
        let begun = Begun {
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
        match attendant.hear(&Order::Start(Box::new(begun)), patience, cancelled)? {
            Answer::Started(started) => Ok(Distant {
                attendant: Arc::clone(attendant),
                name: service.name.clone(),
                number,
                address: SocketAddr::new(placement.address, started.port),
                started: *started,
                exited: None,
                log: placement.log.clone(),
                stop_patience: service.stop_timeout + PATIENCE,
                is_stopped: false,
            }),
            Answer::Failed(failed) => {
                // Why it did not start matters more than why that could not be written.
                let _ = failed.log.as_deref().map(|log| keep(log, &placement.log));
                Err(attendant.failed(failed))
            }
            _ => Err(attendant.lost("it answered a start with something else".to_owned())),
        }
    }

    /// The service's name in the experiment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine it runs on.
    pub fn attendant(&self) -> &Arc<Attendant> {
        &self.attendant
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

    /// How it had ended by the last look, with its last words.
    pub fn exited(&self) -> Option<&(Exit, String)> {
        self.exited.as_ref()
    }

    /// Takes in what a look at its machine told of it.
    pub fn saw(&mut self, view: &ServiceView) {
        if view.exited.is_some() {
            self.exited.clone_from(&view.exited);
        }
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// If the machine is lost; so have all questions to it.
    pub fn sample(&mut self) -> Result<Sample, TargetError> {
        let view = self.ask(&Order::Sample(self.number), |answer| match answer {
            Answer::Sampled(view) => Some(*view),
            _ => None,
        })?;
        self.saw(&view);
        Ok(view.sample)
    }

    /// All that can be seen of it.
    ///
    /// # Errors
    /// As [`Distant::sample`].
    pub fn sight(&self, variables: &[&str]) -> Result<Sight, TargetError> {
        let variables = variables.iter().map(|name| (*name).to_owned()).collect();
        self.ask(&Order::Sight { number: self.number, variables }, |answer| match answer {
            Answer::Sighted(sight) => Some(sight),
            _ => None,
        })
    }

    /// Whose socket answers on its port.
    ///
    /// # Errors
    /// As [`Distant::sample`].
    pub fn listening(&self) -> Result<Listening, TargetError> {
        self.ask(&Order::Listening(self.number), |answer| match answer {
            Answer::Listened(listening) => Some(listening),
            _ => None,
        })
    }

    /// Its processes and what each of their threads has used.
    ///
    /// # Errors
    /// As [`Distant::sample`].
    pub fn threads(&self) -> Result<Vec<ProcessThreads>, TargetError> {
        self.ask(&Order::Threads(self.number), |answer| match answer {
            Answer::Threaded(threads) => Some(threads),
            _ => None,
        })
    }

    /// Peak resident memory of its processes in bytes.
    ///
    /// # Errors
    /// As [`Distant::sample`].
    pub fn peak_memory(&self) -> Result<u64, TargetError> {
        self.ask(&Order::PeakMemory(self.number), |answer| match answer {
            Answer::PeakMemory(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// How many of its workers are gone.
    ///
    /// # Errors
    /// As [`Distant::sample`].
    pub fn workers_lost(&self) -> Result<u32, TargetError> {
        self.ask(&Order::WorkersLost(self.number), |answer| match answer {
            Answer::WorkersLost(lost) => Some(lost),
            _ => None,
        })
    }

    /// The last 20 lines of its output; empty where they cannot be had.
    pub fn tail(&self) -> String {
        let tail = self.ask(&Order::Tail(self.number), |answer| match answer {
            Answer::Tail(tail) => Some(tail),
            _ => None,
        });
        tail.unwrap_or_default()
    }

    /// Stops it and fetches its log. Where its machine is lost it ends by itself, and what is left of it nobody knows here.
    pub fn stop(mut self) -> Stopped {
        self.end().unwrap_or_else(|error| Stopped {
            exit: None,
            killed: 0,
            leftovers: vec![Leftover {
                pid: self.started.pid,
                description: format!("nobody knows whether {} has ended: {error}", self.name),
            }],
            output_bytes: 0,
            output_dropped_bytes: 0,
        })
    }

    fn end(&mut self) -> Result<Stopped, TargetError> {
        self.is_stopped = true;
        let order = Order::Stop(self.number);
        let (stopped, log) = self.attendant.ask(&order, self.stop_patience, |answer| match answer {
            Answer::Stopped { stopped, log } => Some((stopped, log)),
            _ => None,
        })?;
        // A disk that is full here is told by whatever else is written to it.
        let _ = keep(&log, &self.log);
        Ok(stopped)
    }

    fn ask<T>(&self, order: &Order, pick: impl FnOnce(Answer) -> Option<T>) -> Result<T, TargetError> {
        self.attendant.ask(order, PATIENCE, pick)
    }
}

impl Drop for Distant {
    fn drop(&mut self) {
        if !self.is_stopped {
            let _ = self.end();
        }
    }
}

/// Writes a log that came from there.
fn keep(log: &str, path: &Path) -> io::Result<()> {
    kept_log::decoded(log).and_then(|bytes| fs::write(path, bytes))
}
