//! The side of the machine on which services run: carries out one order after the other, and leaves nothing when there is nobody to
//! give them.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use plan::Service;

use super::kept_log::KeptLog;
use super::orders::Orders;
use super::{
    ATTEND_VERSION, Answer, Begun, Failed, First, HostView, Order, Ready, ServiceView, Started, line,
};
use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::error::TargetError;
use crate::ports::check_address;
use crate::running::{Running, start};
use crate::texts::{MachineTexts, TcpTexts};
use crate::{Placement, Ports, Warden, cpus_allowed, end_orphans, orphans, quota_files};

/// What who attends has of the program that it is.
pub struct AttendHost<'a> {
    /// Version of the program.
    pub proofload: String,
    /// How to run a warden.
    pub warden: Warden,
    /// How long it may be silent before we take whoever gives orders for dead.
    pub lease: Duration,
    /// Describes the machine with what these services use of it.
    pub about: &'a dyn Fn(&[Service]) -> serde_json::Value,
    /// CPU time of a fixed piece of arithmetic, in nanoseconds.
    pub spin_ns: fn() -> Option<u64>,
}

/// Attends to services until the input ends, says so, or is silent for too long; then ends those that are left.
///
/// # Errors
/// If the output cannot be written while somebody gives orders. What cannot be carried out is answered, and no error here.
pub fn attend(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    host: &AttendHost<'_>,
) -> io::Result<()> {
    let orders = Orders::listen(input, host.lease)?;
    let mut attending = Attending { host, orders, living: BTreeMap::new(), quota_files: quota_files(&[]) };
    let served = attending.serve(&mut output);
    let last = match attending.orders.is_silent() {
        true => refused(format!(
            "nobody said anything for {} s, so all services there were ended",
            host.lease.as_secs()
        )),
        false => Answer::Ended,
    };
    attending.stop_all();
    // Who has gone need not hear it.
    let _ = line::write(&mut output, &last);
    served
}

struct Attending<'a> {
    host: &'a AttendHost<'a>,
    orders: Orders,
    /// By the numbers that they were given, so that later ones were started later.
    living: BTreeMap<u64, Kept>,
    quota_files: Vec<PathBuf>,
}

struct Kept {
    running: Running,
    log: KeptLog,
}

impl Kept {
    fn seen(&mut self, number: u64) -> ServiceView {
        let sample = self.running.sample();
        let exited = self.running.exited().map(|exit| (exit, self.running.tail()));
        ServiceView { number, sample, exited }
    }
}

impl Attending<'_> {
    fn serve(&mut self, output: &mut impl Write) -> io::Result<()> {
        while let Some(order) = self.orders.next() {
            let answer = match order {
                Ok(order) => self.carry_out(order),
                Err(error) => refused(error.to_string()),
            };
            line::write(output, &answer)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, order: Order) -> Answer {
        match order {
            Order::Begin { version, services } => self.begin(version, services),
            Order::Choose { services, address, random } => match Ports::choose(&services, address, random) {
                Ok(ports) => Answer::Chosen { ports },
                Err(error) => Answer::Failed(failed(&error, None)),
            },
            Order::Start(begun) => self.start(*begun),
            Order::View { first, spin } => Answer::Viewed(Box::new(self.view(first, spin))),
            Order::Sample(number) => self.of(number, |kept| Answer::Sampled(Box::new(kept.seen(number)))),
            Order::Sight { number, variables } => self.of(number, |kept| {
                let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
                Answer::Sighted(kept.running.sight(&variables))
            }),
            Order::Listening(number) => self.of(number, |kept| Answer::Listened(kept.running.listening())),
            Order::Threads(number) => self.of(number, |kept| Answer::Threaded(kept.running.threads())),
            Order::PeakMemory(number) => {
                self.of(number, |kept| Answer::PeakMemory(kept.running.peak_memory()))
            }
            Order::WorkersLost(number) => {
                self.of(number, |kept| Answer::WorkersLost(kept.running.workers_lost()))
            }
            Order::Tail(number) => self.of(number, |kept| Answer::Tail(kept.running.tail())),
            Order::Stop(number) => self.stop(number),
            // Heard by the reading thread alone.
            Order::Beat | Order::Cancel | Order::End => refused("out of turn".to_owned()),
        }
    }

    fn of(&mut self, number: u64, job: impl FnOnce(&mut Kept) -> Answer) -> Answer {
        match self.living.get_mut(&number) {
            Some(kept) => job(kept),
            None => refused(format!("there is no service of the number {number}")),
        }
    }

    /// Makes room, and looks whether services could be started at all: what is missing is told before anything runs.
    fn begin(&self, version: u32, services: Vec<Service>) -> Answer {
        let proofload = self.host.proofload.clone();
        if version != ATTEND_VERSION {
            return refused(format!(
                "version {version} of the conversation is asked for, and proofload {proofload} speaks {ATTEND_VERSION}"
            ));
        }
        let services: Vec<Service> = services.into_iter().map(at_home).collect();
        if let Some(error) = services.iter().find_map(|service| check(service).err()) {
            return Answer::Failed(failed(&error, None));
        }
        let left = orphans();
        let ended = left.iter().map(|process| format!("{} (pid {})", process.argv.join(" "), process.id.pid));
        let ended = ended.collect();
        end_orphans(&left);
        let about = (self.host.about)(&services);
        Answer::Ready(Ready { version: ATTEND_VERSION, proofload, cpus: cpus_allowed(), about, ended })
    }

    fn start(&mut self, begun: Begun) -> Answer {
        let log = match KeptLog::new() {
            Ok(log) => log,
            Err(error) => return refused(format!("no memory for a log: {error}")),
        };
        let service = at_home(begun.service);
        let placement = Placement {
            padding_bytes: begun.padding_bytes,
            address: begun.address,
            addresses: begun.addresses,
            group: begun.group,
            values: begun.values,
            ..Placement::new(log.path())
        };
        let cancelled = || self.orders.is_cancelled();
        let running = match start(&self.host.warden, &service, &begun.ports, &placement, &cancelled) {
            Ok(running) => running,
            Err(error) => return Answer::Failed(failed(&error, Some(log.encoded()))),
        };
        let started = Started {
            pid: running.pid(),
            port: running.address().port(),
            startup: running.startup(),
            workers: running.workers(),
        };
        self.living.insert(begun.number, Kept { running, log });
        self.find_quotas();
        Answer::Started(Box::new(started))
    }

    fn stop(&mut self, number: u64) -> Answer {
        let Some(Kept { running, log }) = self.living.remove(&number) else {
            return refused(format!("there is no service of the number {number}"));
        };
        let stopped = running.stop();
        self.find_quotas();
        Answer::Stopped { stopped, log: log.encoded() }
    }

    /// Asks all of them before it waits for any, the last one started first.
    fn stop_all(&mut self) {
        self.living.values_mut().rev().for_each(|kept| kept.running.begin_stop());
        while self.living.pop_last().is_some() {}
    }

    fn find_quotas(&mut self) {
        let pids: Vec<u32> = self.living.values().map(|kept| kept.running.pid()).collect();
        self.quota_files = quota_files(&pids);
    }

    fn view(&mut self, first: First, spin: bool) -> HostView {
        let spin_ns = if spin { (self.host.spin_ns)() } else { None };
        let sampled = (first == First::Services).then(|| self.sample());
        let at_ns = monotonic_ns();
        let ours_before_ns = self.ours_ns();
        let (machine, tcp) = (MachineTexts::read(&self.quota_files), TcpTexts::read());
        let ours_ns = (ours_before_ns, self.ours_ns());
        let services = sampled.unwrap_or_else(|| self.sample());
        HostView { at_ns, services, machine, tcp, ours_ns, spin_ns }
    }

    fn sample(&mut self) -> Vec<ServiceView> {
        self.living.iter_mut().map(|(number, kept)| kept.seen(*number)).collect()
    }

    fn ours_ns(&self) -> u64 {
        process_cpu_ns() + self.living.values().map(|kept| kept.running.warden_cpu_ns()).sum::<u64>()
    }
}

/// The service with its directory as it is here: `~` is the home of whoever logged in.
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
    Failed {
        message: error.to_string(),
        tail: error.tail().map(str::to_owned),
        hint,
        log,
        cancelled: matches!(error, TargetError::Cancelled { .. }),
    }
}

fn refused(message: String) -> Answer {
    Answer::Failed(Failed { message, tail: None, hint: None, log: None, cancelled: false })
}
