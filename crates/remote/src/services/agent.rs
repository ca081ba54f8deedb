//! The services of an agent: carries out one request after the other, and leaves nothing when it is dropped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::services::{
    MachineTexts, Placement, Ports, Running, TargetError, TcpTexts, Warden, check_address, cpus_allowed,
    end_orphans, orphans, quota_files, start,
};
use plan::Service;

use super::log::MemoryLog;
use super::message::{
    Begun, First, HostView, ServiceView, ServicesRequest, ServicesResponse, StartService, Started,
};
use crate::clock::{monotonic_ns, own_cpu_ns};
use crate::protocol::{AgentHost, Blame, Control, Failed};

/// What runs services on an agent's machine.
pub(crate) struct ServicesAgent {
    warden: Warden,
    about: fn(&[Service]) -> serde_json::Value,
    spin_ns: fn() -> Option<u64>,
    control: Control,
    /// By their numbers, so that later ones were started later.
    living: BTreeMap<u64, Living>,
    quota_files: Vec<PathBuf>,
}

struct Living {
    running: Running,
    log: MemoryLog,
}

impl Living {
    fn view(&mut self, number: u64) -> ServiceView {
        let sample = self.running.sample();
        let exited = self.running.exited().map(|exit| (exit, self.running.tail()));
        ServiceView { number, sample, exited }
    }
}

type Carried = Result<ServicesResponse, Failed>;

impl ServicesAgent {
    pub fn new(host: &AgentHost, control: Control) -> ServicesAgent {
        ServicesAgent {
            warden: host.warden.clone(),
            about: host.about,
            spin_ns: host.spin_ns,
            control,
            living: BTreeMap::new(),
            quota_files: Vec::new(),
        }
    }

    pub fn carry_out(&mut self, request: ServicesRequest) -> Carried {
        use ServicesResponse as To;
        match request {
            ServicesRequest::Begin { services } => self.begin(services),
            ServicesRequest::Choose { services, address, random } => {
                let ports = Ports::choose(&services, address, random);
                ports.map(|ports| To::Chosen { ports }).map_err(|error| failed(&error, None))
            }
            ServicesRequest::Start(wanted) => self.start(*wanted),
            ServicesRequest::View { first, spin } => Ok(To::Viewed(Box::new(self.view(first, spin)))),
            ServicesRequest::Sample(number) => self.of(number, |of| To::Sampled(Box::new(of.view(number)))),
            ServicesRequest::Ask(number, question) => {
                self.of(number, |of| To::Answered(question.answer(&of.running)))
            }
            ServicesRequest::Stop(number) => self.stop(number),
        }
    }

    fn of(&mut self, number: u64, job: impl FnOnce(&mut Living) -> ServicesResponse) -> Carried {
        self.living.get_mut(&number).map(job).ok_or_else(|| unknown(number))
    }

    /// Makes room, and looks whether services could be started at all: what is missing is an error before anything runs.
    fn begin(&self, services: Vec<Service>) -> Carried {
        let services: Vec<Service> = services.into_iter().map(at_home).collect();
        services.iter().try_for_each(check).map_err(|error| failed(&error, None))?;
        let left = orphans();
        let ended = left.iter().map(|process| format!("{} (pid {})", process.argv.join(" "), process.id.pid));
        let ended = ended.collect();
        end_orphans(&left);
        Ok(ServicesResponse::Begun(Begun { cpus: cpus_allowed(), about: (self.about)(&services), ended }))
    }

    fn start(&mut self, wanted: StartService) -> Carried {
        let no_memory = |error| Failed::new(Blame::Machine, format!("no memory for a log: {error}"));
        let log = MemoryLog::new().map_err(no_memory)?;
        let service = at_home(wanted.service);
        let placement = Placement {
            padding_bytes: wanted.padding_bytes,
            address: wanted.address,
            addresses: wanted.addresses,
            group: wanted.group,
            values: wanted.values,
            ..Placement::new(log.path())
        };
        let cancelled = || self.control.is_cancelled();
        let running = match start(&self.warden, &service, &wanted.ports, &placement, &cancelled) {
            Ok(running) => running,
            Err(error) => return Err(failed(&error, Some(log.encoded()))),
        };
        let started = Started {
            pid: running.pid(),
            port: running.address().port(),
            startup: running.startup(),
            workers: running.workers(),
        };
        self.living.insert(wanted.number, Living { running, log });
        self.find_quotas();
        Ok(ServicesResponse::Started(Box::new(started)))
    }

    fn stop(&mut self, number: u64) -> Carried {
        let Living { running, log } = self.living.remove(&number).ok_or_else(|| unknown(number))?;
        let stopped = running.stop();
        self.find_quotas();
        Ok(ServicesResponse::Stopped { stopped, log: log.encoded() })
    }

    fn find_quotas(&mut self) {
        let pids: Vec<u32> = self.living.values().map(|of| of.running.pid()).collect();
        self.quota_files = quota_files(&pids);
    }

    /// Services first, or the machine: what is nearest to the load comes nearest to it.
    fn view(&mut self, first: First, spin: bool) -> HostView {
        let spin_ns = if spin { (self.spin_ns)() } else { None };
        let sampled = (first == First::Services).then(|| self.sample());
        let at_ns = monotonic_ns();
        let ours_before_ns = self.ours_ns();
        let (machine, tcp) = (MachineTexts::read(&self.quota_files), TcpTexts::read());
        let ours_ns = (ours_before_ns, self.ours_ns());
        let services = sampled.unwrap_or_else(|| self.sample());
        HostView { at_ns, services, machine, tcp, ours_ns, spin_ns }
    }

    fn sample(&mut self) -> Vec<ServiceView> {
        self.living.iter_mut().map(|(number, of)| of.view(*number)).collect()
    }

    fn ours_ns(&self) -> u64 {
        own_cpu_ns() + self.living.values().map(|of| of.running.warden_cpu_ns()).sum::<u64>()
    }
}

impl Drop for ServicesAgent {
    /// Asks all of them before it waits for any, the last one started first.
    fn drop(&mut self) {
        self.living.values_mut().rev().for_each(|of| of.running.begin_stop());
        while self.living.pop_last().is_some() {}
    }
}

/// The service with its directory as it is here: `~` is the home of the user that logged in.
fn at_home(service: Service) -> Service {
    let below = service.directory.strip_prefix("~").ok().map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match below.zip(home) {
        // Joined to nothing a path would end with a slash.
        Some((below, home)) if below.as_os_str().is_empty() => Service { directory: home, ..service },
        Some((below, home)) => Service { directory: home.join(below), ..service },
        None => service,
    }
}

/// Whether a service can be started here at all, as far as that can be seen without starting it.
fn check(service: &Service) -> Result<(), TargetError> {
    if !service.directory.is_dir() {
        let path = service.directory.clone();
        return Err(TargetError::DirectoryMissing { service: service.name.clone(), path });
    }
    service.address.map_or(Ok(()), |address| check_address(&service.name, address))
}

fn failed(error: &TargetError, log: Option<String>) -> Failed {
    let hint = match error {
        TargetError::DirectoryMissing { .. } => {
            Some("`directory` is a folder of that host; put the service's code there first".to_owned())
        }
        TargetError::CommandNotFound { .. } => error.hint().map(|hint| {
            format!("{hint}; a program that only a login shell finds there has to be named by its path, or by `env.PATH`")
        }),
        _ => error.hint(),
    };
    let blame = match error {
        TargetError::Cancelled { .. } => Blame::Cancelled,
        _ => Blame::Machine,
    };
    Failed { hint, tail: error.tail().map(str::to_owned), log, ..Failed::new(blame, error.to_string()) }
}

fn unknown(number: u64) -> Failed {
    Failed::new(Blame::Request, format!("there is no service of the number {number}"))
}
