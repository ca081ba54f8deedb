//! The processes of a trial's services in the record's words, and whoever else listens on their ports.
//!
//! It keeps what was seen and judges nothing. Of environments it keeps only what the experiment is about, or what turns profilers on:
//! the rest is nobody's business.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use plan::Plan;
use record::{ProcessSeen, ServiceStarted};
use target::{Listening, Running, Sight};

use super::Rig;
use super::keeping::cpu_source;

/// Processes of a service that are kept.
const PROCESSES_MAX: usize = 64;
/// Of a command line, in bytes.
const COMMAND_BYTES_MAX: usize = 512;
/// Between two looks at somebody else's socket. A worker that ends just then may be taken for a stranger, but not twice.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The variables that are kept of the processes of a service of this name: those that any variant sets for it, by `env` or in its
/// command, and those that change what runs from outside.
pub(super) fn variables(plan: &Plan, service: &str) -> Vec<String> {
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let services = services.filter(|other| other.name == service);
    let set = services.flat_map(|service| {
        let words = service.command.iter().flat_map(|word| word.split_whitespace());
        service.env.keys().map(String::as_str).chain(words.filter_map(assigned))
    });
    let mut variables: Vec<String> = set.chain(audit::checks::WATCHED_VARIABLES).map(str::to_owned).collect();
    variables.sort_unstable();
    variables.dedup();
    variables
}

/// The variable that a word such as `NODE_ENV=production` sets.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.trim_start_matches(['\'', '"', '(']).split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(plain))
        .then_some(name)
}

impl Rig {
    /// A service that is ready, with its processes. To be called where its network is.
    pub(super) fn started(&self, running: &mut Running) -> ServiceStarted {
        let variables = self.variables.get(running.name()).map(Vec::as_slice).unwrap_or_default();
        ServiceStarted {
            service: running.name().to_owned(),
            pid: running.pid(),
            port: running.address().port(),
            cpus: self.division.services.clone(),
            cpu_source: cpu_source(running.sample().cpu_source).to_owned(),
            workers: running.workers(),
            processes: kept(&sight(running, variables)),
        }
    }
}

/// The processes of each service, and in words who else listens on their ports. To be called where the services' network is.
pub(super) fn at_end(
    services: &[Running],
    variables: &BTreeMap<String, Vec<String>>,
) -> (BTreeMap<String, Vec<ProcessSeen>>, Vec<String>) {
    let (mut processes, mut strangers) = (BTreeMap::new(), Vec::new());
    for service in services {
        let asked = variables.get(service.name()).map(Vec::as_slice).unwrap_or_default();
        let sight = sight(service, asked);
        if matches!(sight.listening, Listening::Theirs(_)) {
            thread::sleep(LOOK_AGAIN);
            if let Listening::Theirs(stranger) = service.listening() {
                strangers.push(format!(
                    "{stranger} on port {} of {}",
                    service.address().port(),
                    service.name()
                ));
            }
        }
        processes.insert(service.name().to_owned(), kept(&sight));
    }
    (processes, strangers)
}

fn sight(service: &Running, variables: &[String]) -> Sight {
    service.sight(&variables.iter().map(String::as_str).collect::<Vec<_>>())
}

fn kept(sight: &Sight) -> Vec<ProcessSeen> {
    let kept = |process: &target::ProcessInfo| {
        let mut command = process.argv.join(" ");
        cut_at(&mut command, COMMAND_BYTES_MAX);
        ProcessSeen {
            pid: process.id.pid,
            parent: process.ppid,
            command,
            listens: sight.listeners.contains(&process.id.pid),
            marked: process.marked,
            environment: process.environ.clone(),
        }
    };
    sight.processes.iter().take(PROCESSES_MAX).map(kept).collect()
}

/// Cuts a text to so many bytes, or a few less where a character stands there.
pub(super) fn cut_at(text: &mut String, bytes: usize) {
    let whole = |at: &usize| text.is_char_boundary(*at);
    let at = (0..=bytes.min(text.len())).rev().find(whole).unwrap_or(0);
    text.truncate(at);
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
a = { api.env.MODE = "a" }
b = { api.command = ["env", "LD_PRELOAD=j.so", "-u", "GONE", "node", "a=/b"] }
"#;
        let text = text.replace("[services.api]", "entry = \"api\"\n[services.api]");
        let plan = plan::parse(&text, std::path::Path::new("/")).expect("a plan");
        let found = variables(&plan, "api");
        for name in ["POOL", "MODE", "LD_PRELOAD", "NODE_OPTIONS"] {
            assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
        }
        assert!(found.iter().all(|found| found != "SECRET" && !found.contains("size")), "{found:?}");
        assert_eq!(found.iter().filter(|name| *name == "LD_PRELOAD").count(), 1);
    }
}
