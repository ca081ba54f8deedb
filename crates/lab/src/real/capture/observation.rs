//! One service in one window, as the record has it: what its threads used, what its agents reported, and what is missing. Pure but for
//! the questions to agents that have answered already.

use model::{Absence, AgentSeen, CapturedProcess, Missing, NodeCounters, ProfileFile, ThreadUse};
use plan::Secrets;
use remote::services::ServiceHandle;
use services::{Agent, ProcessThreads, Role, Take, ThreadCpu};

use super::super::processes::{COMMAND_BYTES_MAX, PROCESSES_MAX, command_line};
use super::Folder;

/// Of a program's name.
const NODE: &str = "node";

/// An agent that was to capture, and its result.
pub(super) type Outcome = (Agent, Taken);
type Taken = Result<Take, String>;

/// What is known of a service in a window.
pub(super) struct Observation<'a> {
    pub service: &'a ServiceHandle,
    pub before: &'a [ProcessThreads],
    pub after: &'a [ProcessThreads],
    /// Whether agents were to capture.
    pub armed: bool,
    pub results: Vec<Outcome>,
    pub folder: &'a Folder,
    pub secrets: &'a Secrets,
}

/// Whether a process runs Node.js, by the file that it runs.
pub(super) fn is_node(process: &ProcessThreads) -> bool {
    process.program == NODE || process.program == "nodejs"
}

impl Observation<'_> {
    /// Its processes with what their threads used and their agents reported, parents first.
    pub fn processes(&self) -> Vec<CapturedProcess> {
        let agents = self.agents();
        let process = |now: &ProcessThreads| {
            let before = self.before.iter().find(|before| before.id == now.id);
            let inside = agents.iter().filter(|(agent, _)| agent.pid == now.id.pid);
            CapturedProcess {
                pid: now.id.pid,
                parent: now.parent,
                command: command_line(&now.argv, self.secrets, COMMAND_BYTES_MAX),
                threads: now.used_since(before).into_iter().map(thread).collect(),
                agents: inside.map(|(agent, result)| self.seen(agent, *result)).collect(),
                native: None,
            }
        };
        self.after.iter().take(PROCESSES_MAX).map(process).collect()
    }

    /// Agents that were to capture with their results, and those that are there beside them.
    fn agents(&self) -> Vec<(Agent, Option<&Taken>)> {
        let mut agents: Vec<(Agent, Option<&Taken>)> =
            self.results.iter().map(|(agent, result)| (agent.clone(), Some(result))).collect();
        let there = self.service.agent().map(|host| host.agents()).unwrap_or_default();
        for agent in there {
            if !agents.iter().any(|(known, _)| (known.pid, known.thread) == (agent.pid, agent.thread)) {
                agents.push((agent, None));
            }
        }
        agents.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        agents
    }

    fn seen(&self, agent: &Agent, result: Option<&Taken>) -> AgentSeen {
        let late = || self.armed && agent.role != Role::Tool;
        let mut failed = match result {
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(_)) => None,
            None => late().then(|| "it came when the capture had begun".to_owned()),
        };
        let take = result.and_then(|result| result.as_ref().ok());
        let counters =
            take.and_then(|take| take.counters.clone()).map(serde_json::from_value::<NodeCounters>);
        let counters = counters.transpose().unwrap_or_else(|error| {
            failed = Some(format!("its counters cannot be read: {error}"));
            None
        });
        let file = take.and_then(|take| take.file.as_ref());
        let profile = file.map(|(file, bytes)| ProfileFile { path: self.folder.named(file), bytes: *bytes });
        AgentSeen {
            thread: agent.thread,
            thread_id: agent.thread_id,
            role: agent.role.to_string(),
            versions: agent.versions.clone(),
            node_env: agent.node_env.clone(),
            uv_threadpool_size: agent.uv_threadpool_size.clone(),
            main: agent.main.clone(),
            requests: take.and_then(|take| take.requests),
            counters,
            profile,
            failed,
        }
    }

    /// What could not be had.
    pub fn missing(&self) -> Vec<Missing> {
        let gone = self.before.iter().filter(|before| !self.after.iter().any(|now| now.id == before.id));
        let mut missing: Vec<Missing> = gone
            .map(|gone| {
                let why = format!(
                    "{} ended in the window; its CPU time is in no thread's figure",
                    named(gone, self.secrets)
                );
                Missing::new(Absence::Gone, why)
            })
            .collect();
        let over = self.after.len().saturating_sub(PROCESSES_MAX);
        if over > 0 {
            let why = format!("{over} processes more than the {PROCESSES_MAX} that the record keeps");
            missing.push(Missing::new(Absence::Other, why));
        }
        if self.armed {
            missing.extend(self.without_agent());
        }
        for (agent, result) in &self.results {
            let lives = self.after.iter().any(|now| now.id.pid == agent.pid);
            let of = |text: &str| format!("the agent in pid {}: {text}", agent.pid);
            match result {
                // Where the process lives, the reason stands beside its agent.
                Err(reason) if !lives => missing.push(Missing::new(Absence::Gone, of(reason))),
                Err(_) => {}
                Ok(take) => {
                    missing.extend(take.notes.iter().map(|note| Missing::new(Absence::Other, of(note))));
                }
            }
        }
        let host = self.service.agent().map(|host| host.notes()).unwrap_or_default();
        missing.extend(host.into_iter().map(|note| Missing::new(Absence::Other, note)));
        missing
    }

    /// Processes that have no agent: each that runs Node.js by itself.
    fn without_agent(&self) -> Vec<Missing> {
        if let Some(host) = self.service.host() {
            let why = format!(
                "it runs on {host}, where no agent is loaded: CPU time is known by thread, and there is no profile of JavaScript"
            );
            return vec![Missing::new(Absence::Other, why)];
        }
        if !self.after.iter().any(is_node) {
            let why =
                "it does not run Node.js: CPU time is known by thread, and there is no profile of JavaScript";
            return vec![Missing::new(Absence::NotNode, why)];
        }
        let there = self.service.agent().map(|host| host.agents()).unwrap_or_default();
        let has_one = |process: &&ProcessThreads| {
            let pid = process.id.pid;
            there.iter().chain(self.results.iter().map(|(agent, _)| agent)).any(|agent| agent.pid == pid)
        };
        let without = self.after.iter().filter(|process| is_node(process) && !has_one(process));
        let why = |process: &ProcessThreads| {
            let reason = "the service sets NODE_OPTIONS itself when it starts it, or closes descriptors that it does not know";
            Missing::new(Absence::Agent, format!("{} has no agent: {reason}", named(process, self.secrets)))
        };
        without.take(PROCESSES_MAX).map(why).collect()
    }
}

fn named(process: &ProcessThreads, secrets: &Secrets) -> String {
    format!("{} (pid {})", command_line(&process.argv, secrets, 80), process.id.pid)
}

fn thread(used: ThreadCpu) -> ThreadUse {
    ThreadUse { id: used.id, name: used.name, cpu_ns: used.cpu_ns, waited_ns: used.waited_ns }
}
