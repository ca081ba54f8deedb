//! What threads used and agents said of one service in a window, in the record's words, and what is missing. Pure but for the questions
//! to agents that have answered already.

use record::{AgentSeen, CapturedProcess, NodeCounters, ProfileFile, ThreadUse};
use remote::services::ServiceHandle;
use services::{Agent, ProcessThreads, Role, Take, ThreadCpu};

use super::super::processes::cut_at;
use super::Folder;

/// Of a command line, in bytes.
const COMMAND_BYTES_MAX: usize = 512;
/// Processes of a service that are kept.
const PROCESSES_MAX: usize = 64;
/// Of a program's name.
const NODE: &str = "node";

/// An agent that was to capture, and what came of it.
pub(super) type Came = (Agent, Result<Take, String>);

/// What is known of a service in a window.
pub(super) struct Told<'a> {
    pub attended: &'a ServiceHandle,
    pub before: &'a [ProcessThreads],
    pub after: &'a [ProcessThreads],
    /// Whether agents were to capture.
    pub armed: bool,
    pub came: Vec<Came>,
    pub folder: &'a Folder,
}

/// Whether a process runs Node.js, by the file that it runs.
pub(super) fn is_node(process: &ProcessThreads) -> bool {
    process.program == NODE || process.program == "nodejs"
}

impl Told<'_> {
    /// Its processes with what their threads used and their agents told, parents first.
    pub fn processes(&self) -> Vec<CapturedProcess> {
        let agents = self.agents();
        let process = |now: &ProcessThreads| {
            let before = self.before.iter().find(|before| before.id == now.id);
            let mut command = now.argv.join(" ");
            cut_at(&mut command, COMMAND_BYTES_MAX);
            let of_it = agents.iter().filter(|(agent, _)| agent.pid == now.id.pid);
            CapturedProcess {
                pid: now.id.pid,
                parent: now.parent,
                command,
                threads: now.used_since(before).into_iter().map(thread).collect(),
                agents: of_it.map(|(agent, came)| self.seen(agent, *came)).collect(),
                native: None,
            }
        };
        self.after.iter().take(PROCESSES_MAX).map(process).collect()
    }

    /// Those who were to capture, and those who are there beside them, with what came of it.
    fn agents(&self) -> Vec<(Agent, Option<&Result<Take, String>>)> {
        let mut agents: Vec<(Agent, Option<&Result<Take, String>>)> =
            self.came.iter().map(|(agent, came)| (agent.clone(), Some(came))).collect();
        let there = self.attended.agent().map(|host| host.agents()).unwrap_or_default();
        for agent in there {
            if !agents.iter().any(|(known, _)| (known.pid, known.thread) == (agent.pid, agent.thread)) {
                agents.push((agent, None));
            }
        }
        agents.sort_by_key(|(agent, _)| (agent.pid, agent.thread));
        agents
    }

    fn seen(&self, agent: &Agent, came: Option<&Result<Take, String>>) -> AgentSeen {
        let late = || self.armed && agent.role != Role::Tool;
        let mut failed = match came {
            Some(Err(reason)) => Some(reason.clone()),
            Some(Ok(_)) => None,
            None => late().then(|| "it came when the capture had begun".to_owned()),
        };
        let take = came.and_then(|came| came.as_ref().ok());
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

    /// What could not be had, in words.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let gone = self.before.iter().filter(|before| !self.after.iter().any(|now| now.id == before.id));
        missing.extend(gone.map(|gone| {
            format!("{} ended in the window, and what it used is in no thread's figure", named(gone))
        }));
        let over = self.after.len().saturating_sub(PROCESSES_MAX);
        if over > 0 {
            missing.push(format!("{over} processes more than the {PROCESSES_MAX} that are told"));
        }
        if self.armed {
            missing.extend(self.without_agent());
        }
        let ended =
            self.came.iter().filter(|(agent, _)| !self.after.iter().any(|now| now.id.pid == agent.pid));
        missing.extend(ended.filter_map(|(agent, came)| {
            Some(format!("the agent in pid {}: {}", agent.pid, came.as_ref().err()?))
        }));
        let notes = self.came.iter().filter_map(|(agent, came)| Some((agent, came.as_ref().ok()?)));
        missing.extend(notes.flat_map(|(agent, take)| {
            take.notes.iter().map(move |note| format!("the agent in pid {}: {note}", agent.pid))
        }));
        missing.extend(self.attended.agent().map(|host| host.notes()).unwrap_or_default());
        missing
    }

    /// Processes that have no agent: what runs Node.js and has none is told one by one.
    fn without_agent(&self) -> Vec<String> {
        if let Some(host) = self.attended.host() {
            return vec![format!(
                "it runs on {host}, where no agent is loaded: there is CPU by thread, and no profile of JavaScript"
            )];
        }
        let there = self.attended.agent().map(|host| host.agents()).unwrap_or_default();
        let has_one = |process: &&ProcessThreads| {
            let pid = process.id.pid;
            there.iter().chain(self.came.iter().map(|(agent, _)| agent)).any(|agent| agent.pid == pid)
        };
        if !self.after.iter().any(is_node) {
            return vec![
                "it does not run Node.js: there is CPU by thread, and no profile of JavaScript".to_owned(),
            ];
        }
        let without = self.after.iter().filter(|process| is_node(process) && !has_one(process));
        let why = "has no agent: the service sets NODE_OPTIONS itself when it starts it, or closes descriptors that it does not know";
        without.take(PROCESSES_MAX).map(|process| format!("{} {why}", named(process))).collect()
    }
}

fn named(process: &ProcessThreads) -> String {
    let mut command = process.argv.join(" ");
    cut_at(&mut command, 80);
    format!("{command} (pid {})", process.id.pid)
}

fn thread(used: ThreadCpu) -> ThreadUse {
    ThreadUse { id: used.id, name: used.name, cpu_ns: used.cpu_ns, waited_ns: used.waited_ns }
}
