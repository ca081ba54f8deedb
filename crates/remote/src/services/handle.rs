//! A service, on this machine or on another one: the same questions to both, with the same answers.
//!
//! A question to another machine takes a round trip, and fails where the machine is lost; one to this machine never does.

use std::net::SocketAddr;

use ::services::{AgentHost, Exit, Listening, ProcessThreads, Running, Sample, Sight, Stopped, TargetError};

use super::RemoteService;
use super::host::OTHER_RESPONSE;
use super::message::{Answer, Question};

/// A service that was started and became ready. Dropping it stops it.
#[derive(Debug)]
pub enum ServiceHandle {
    /// On this machine.
    Here(Box<Running>),
    /// On another one.
    There(Box<RemoteService>),
}

impl ServiceHandle {
    /// The service's name in the experiment.
    pub fn name(&self) -> &str {
        match self {
            Self::Here(running) => running.name(),
            Self::There(remote) => remote.name(),
        }
    }

    /// The machine that it runs on; `None` is this one.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::There(remote) => Some(remote.host().name()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Here(running) => running.address(),
            Self::There(remote) => remote.address(),
        }
    }

    /// Number of its first process, on its machine.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Here(running) => running.pid(),
            Self::There(remote) => remote.pid(),
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
        self.here().and_then(Running::agent)
    }

    /// Workers that it had when it became ready; `None` where its other processes look alike.
    pub fn workers(&self) -> Option<u32> {
        match self {
            Self::Here(running) => running.workers(),
            Self::There(remote) => remote.workers(),
        }
    }

    /// How it ended, if it has: here by now, elsewhere by the last look at its machine.
    pub fn exited(&mut self) -> Option<Exit> {
        match self {
            Self::Here(running) => running.exited(),
            Self::There(remote) => remote.exited().map(|(exit, _)| *exit),
        }
    }

    /// The last lines of its output.
    pub fn tail(&self) -> String {
        match self {
            Self::Here(running) => running.tail(),
            Self::There(remote) => match remote.exited() {
                Some((_, tail)) => tail.clone(),
                None => match remote.question(Question::Tail) {
                    Ok(Answer::Tail(tail)) => tail,
                    Ok(_) | Err(_) => String::new(),
                },
            },
        }
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// If its machine is lost; so have all questions below.
    pub fn sample(&mut self) -> Result<Sample, TargetError> {
        match self {
            Self::Here(running) => Ok(running.sample()),
            Self::There(remote) => remote.sample(),
        }
    }

    /// Its processes and who listens on its port.
    ///
    /// # Errors
    /// As [`ServiceHandle::sample`].
    pub fn sight(&self, variables: &[&str]) -> Result<Sight, TargetError> {
        match self.ask(Question::Sight(variables.iter().map(|name| (*name).to_owned()).collect()))? {
            Answer::Sight(answer) => Ok(answer),
            _ => Err(self.unfit()),
        }
    }

    /// Whose socket answers on its port now.
    ///
    /// # Errors
    /// As [`ServiceHandle::sample`].
    pub fn listening(&self) -> Result<Listening, TargetError> {
        match self.ask(Question::Listening)? {
            Answer::Listening(answer) => Ok(answer),
            _ => Err(self.unfit()),
        }
    }

    /// Its processes and what each of their threads has used so far, parents first.
    ///
    /// # Errors
    /// As [`ServiceHandle::sample`].
    pub fn threads(&self) -> Result<Vec<ProcessThreads>, TargetError> {
        match self.ask(Question::Threads)? {
            Answer::Threads(answer) => Ok(answer),
            _ => Err(self.unfit()),
        }
    }

    /// Peak resident memory of its processes in bytes.
    ///
    /// # Errors
    /// As [`ServiceHandle::sample`].
    pub fn peak_memory(&self) -> Result<u64, TargetError> {
        match self.ask(Question::PeakMemory)? {
            Answer::PeakMemory(answer) => Ok(answer),
            _ => Err(self.unfit()),
        }
    }

    /// How many of its workers are gone, also if others have taken their places.
    ///
    /// # Errors
    /// As [`ServiceHandle::sample`].
    pub fn workers_lost(&self) -> Result<u32, TargetError> {
        match self.ask(Question::WorkersLost)? {
            Answer::WorkersLost(answer) => Ok(answer),
            _ => Err(self.unfit()),
        }
    }

    fn ask(&self, question: Question) -> Result<Answer, TargetError> {
        match self {
            Self::Here(running) => Ok(question.answer(running)),
            Self::There(remote) => remote.question(question),
        }
    }

    /// That an answer is to another question.
    fn unfit(&self) -> TargetError {
        let host = self.host().unwrap_or_default().to_owned();
        TargetError::HostLost { host, reason: OTHER_RESPONSE.to_owned() }
    }

    /// Stops it and waits until nothing of it is left; the log of one elsewhere is here then.
    pub fn stop(self) -> Stopped {
        match self {
            Self::Here(running) => running.stop(),
            Self::There(remote) => remote.stop(),
        }
    }
}
