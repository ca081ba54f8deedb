//! The processes of a trial's services, as recorded, and other processes that listen on their ports.
//!
//! It judges nothing. From environments it records only the experiment's variables and those that turn
//! profilers on, because the rest is private.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use load::Address;
use model::text::cut_bytes;
use plan::{Plan, Secrets};
use record::{ProcessSeen, ServiceStarted};
use services::{CpuSource, Listening, Running, ServiceProcesses, WatchedProcesses};

use super::RealEnvironment;
use super::keeping::cpu_source;

/// Maximum number of processes of a service in a record.
pub(super) const PROCESSES_MAX: usize = 64;
/// Maximum length of a command line, in bytes.
pub(super) const COMMAND_BYTES_MAX: usize = 512;
/// Time between two checks of a foreign socket. A worker that ends meanwhile may be taken for a foreign
/// process, but not twice.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The part of the environments of a service's processes that is recorded.
#[derive(Default)]
pub(super) struct ProcessWatch {
    names: BTreeSet<String>,
    /// Values that the plan gives variables of these names, and the words of its commands, as recorded. They
    /// are not secret.
    given: BTreeSet<(String, String)>,
}

impl ProcessWatch {
    /// Variables that any variant sets for this service, by `env` or in its command, and variables that
    /// change a program from outside.
    pub fn of(plan: &Plan, service: &str) -> ProcessWatch {
        let services = plan.variants.iter().flat_map(|variant| &variant.services);
        let services = services.filter(|other| other.name == service);
        let services: Vec<&plan::ServiceCommand> =
            services.filter_map(plan::Service::command).collect();
        let words = services
            .iter()
            .flat_map(|service| &service.command)
            .flat_map(|word| word.split_whitespace());
        let set = services.iter().flat_map(|service| service.env.clone());
        let given = set
            .chain(words.filter_map(assigned))
            .map(|(name, value)| (name, literal(value)));
        let given: BTreeSet<(String, String)> = given.collect();
        let watched = analysis::WATCHED_VARIABLES.map(str::to_owned);
        let names = given
            .iter()
            .map(|(name, _)| name.clone())
            .chain(watched)
            .collect();
        ProcessWatch { names, given }
    }

    /// A variable as recorded. A value from elsewhere, such as the shell of Proofload, may be a secret.
    fn told(&self, name: &str, value: &str) -> String {
        let given = self
            .given
            .iter()
            .filter(|(given, literal)| given == name && !literal.is_empty());
        let watched = analysis::WATCHED_VARIABLES.contains(&name);
        let known = watched
            || value.is_empty()
            || given
                .into_iter()
                .any(|(_, literal)| value.contains(literal));
        if known {
            value.to_owned()
        } else {
            "(another value)".to_owned()
        }
    }
}

/// A value as its process gets it. A value with placeholders is returned as written.
fn literal(value: String) -> String {
    plan::fill(&value, |_| None).unwrap_or(value)
}

/// The variable and value of a word such as `NODE_ENV=production`.
fn assigned(word: &str) -> Option<(String, String)> {
    let (name, value) = word
        .trim_matches(['\'', '"', '(', ')', ';'])
        .split_once('=')?;
    let value = value.trim_matches(['\'', '"']);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(plain))
        .then(|| (name.to_owned(), value.to_owned()))
}

impl RealEnvironment {
    /// A ready service with its processes. Call it in the service's network.
    pub(super) fn started(&self, service: &mut Running) -> ServiceStarted {
        let watch = &self.watches[&service.name];
        ServiceStarted {
            service: service.name.clone(),
            pid: service.pid,
            port: service.address.port(),
            found: service.found.clone(),
            other_ports: service.other_ports.clone(),
            cpus: self.division.services.clone(),
            cpu_source: cpu_source(service.sample().cpu_source).to_owned(),
            workers: service.workers(),
            image: service.image.clone(),
            processes: kept(&sight(service, watch), watch, &self.plan.secrets),
        }
    }
}

/// Records a running service that can be observed, like a started one.
pub(super) fn watched(
    service: &str,
    watched: &WatchedProcesses,
    address: &Address,
    secrets: &Secrets,
) -> ServiceStarted {
    let port = if let Address::Tcp(address) = address {
        address.port()
    } else {
        0
    };
    ServiceStarted {
        service: service.to_owned(),
        pid: watched.pid(),
        port,
        cpus: machine::process::cpus(watched.pid()),
        cpu_source: cpu_source(CpuSource::Processes).to_owned(),
        processes: kept(&watched.sight(&[]), &ProcessWatch::default(), secrets),
        ..ServiceStarted::default()
    }
}

/// The processes of each service, the other processes that listen on their ports, and the ports on which a
/// service began to listen later. Call it in the services' network.
pub(super) fn at_end(
    services: &[Running],
    watches: &BTreeMap<String, ProcessWatch>,
    secrets: &Secrets,
) -> (BTreeMap<String, Vec<ProcessSeen>>, Vec<String>, Vec<String>) {
    let (mut processes, mut strangers, mut late_ports) = (BTreeMap::new(), Vec::new(), Vec::new());
    for service in services {
        let (port, name) = (service.address.port(), &service.name);
        let watch = &watches[name];
        let sight = sight(service, watch);
        if matches!(sight.listening, Listening::Theirs(_)) {
            thread::sleep(LOOK_AGAIN);
            if let Listening::Theirs(stranger) = service.listening() {
                strangers.push(secrets.mask(None, &format!("{stranger} on port {port} of {name}")));
            }
        }
        late_ports.extend(
            sight
                .late_ports
                .iter()
                .map(|late| format!("{late} beside port {port} of {name}")),
        );
        processes.insert(name.clone(), kept(&sight, watch, secrets));
    }
    (processes, strangers, late_ports)
}

fn sight(service: &Running, watch: &ProcessWatch) -> ServiceProcesses {
    service.sight(&watch.names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn kept(sight: &ServiceProcesses, watch: &ProcessWatch, secrets: &Secrets) -> Vec<ProcessSeen> {
    let told = |(name, value): (&String, &String)| {
        (
            name.clone(),
            watch.told(name, &secrets.mask(Some(name), value)),
        )
    };
    let kept = |process: &services::ProcessInfo| ProcessSeen {
        pid: process.id.pid,
        parent: process.ppid,
        command: command_line(&process.argv, secrets, COMMAND_BYTES_MAX),
        listens: sight.listeners.contains(&process.id.pid),
        marked: process.marked,
        environment: process.environ.iter().map(told).collect(),
    };
    sight
        .processes
        .iter()
        .take(PROCESSES_MAX)
        .map(kept)
        .collect()
}

/// Cuts a command line as recorded. Secrets are masked first, because a cut secret would not be recognized.
pub(super) fn command_line(argv: &[String], secrets: &Secrets, bytes: usize) -> String {
    let mut line = secrets.mask_words(argv).join(" ");
    cut_bytes(&mut line, bytes);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_every_variant_are_looked_for_in_all_of_them() {
        let text = r#"name = "x"
[services.api]
command = ["sh", "-c", "(POOL=4 exec node server.js --size=3)"]
[services.other]
command = ["x"]
env = { SECRET = "1" }
[factors.mode]
a = { api.env.MODE = "a", api.env.CFG = "a=1 {{}" }
b = { api.command = ["env", "LD_PRELOAD=j.so", "-u", "GONE", "node", "a=/b"] }
"#;
        let text = text.replace("[services.api]", "entry = \"api\"\n[services.api]");
        let plan = plan::parse(&text, std::path::Path::new("/")).expect("a plan");
        let watch = ProcessWatch::of(&plan, "api");
        let found = &watch.names;
        for name in ["POOL", "MODE", "LD_PRELOAD", "NODE_OPTIONS"] {
            assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
        }
        assert!(
            found
                .iter()
                .all(|found| found != "SECRET" && !found.contains("size")),
            "{found:?}"
        );
        assert_eq!(found.iter().filter(|name| *name == "LD_PRELOAD").count(), 1);
        // A variable that the plan does not set may come from the user's own shell.
        for (name, value) in [("MODE", "a"), ("POOL", "4"), ("CFG", "a=1 {}")] {
            assert_eq!(watch.told(name, value), value);
        }
        assert_eq!(
            (watch.told("MODE", "hunter2"), watch.told("NODE_ENV", "x")),
            ("(another value)".into(), "x".into())
        );
    }
}
