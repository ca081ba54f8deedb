//! Services of several workers: the launcher `cluster`, and clusters that programs make themselves.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use plan::{Launcher, Service, Workers};
use proofload_services::{Exit, Running};

use crate::stage::{PATIENCE, Stage, get, of, wait_until, with_env};

/// A service of `workers` workers.
pub fn crew(stage: &Stage, launcher: Launcher, command: &[&str], workers: u32) -> Service {
    let mut service = stage.service(command);
    (of(&mut service).launcher, of(&mut service).workers) = (launcher, Some(Workers::Number(workers)));
    service
}

/// What a worker says of itself.
pub fn says(address: SocketAddr) -> serde_json::Value {
    serde_json::from_str(&get(address, "/")).unwrap()
}

/// Numbers of the processes that answer.
pub fn answering(address: SocketAddr, connections: usize) -> HashSet<u64> {
    (0..connections).map(|_| says(address)["pid"].as_u64().unwrap()).collect()
}

/// How often each worker that was asked to end was asked.
fn asked(stage: &Stage) -> Vec<usize> {
    let entries = fs::read_dir(stage.folder.path()).unwrap().flatten();
    let files = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("terminated-"));
    files.map(|file| fs::read_to_string(file.path()).unwrap().lines().count()).collect()
}

fn crash(running: &Running) {
    get(running.address(), "/crash");
    assert!(wait_until(PATIENCE, || running.workers_lost() > 0), "nobody is missed");
}

#[test]
fn an_unmodified_program_runs_as_workers_that_all_serve_and_see_nothing_of_it() {
    for script in ["crew.js", "crew.mjs"] {
        let stage = Stage::new();
        let command = ["node", "--no-warnings", script, "--require", "x"];
        let running = stage.start(&crew(&stage, Launcher::Cluster, &command, 3)).unwrap();
        assert_eq!(running.workers(), Some(3), "{script}");
        assert_eq!(stage.alive().len(), 4);
        let sight = running.sight(&["STAGE"]);
        assert_eq!(sight.listeners, [running.pid()]);
        assert!(sight.processes.iter().all(|one| one.marked && one.environ.contains_key("STAGE")));
        let pids = answering(running.address(), 9);
        assert_eq!(pids.len(), 3, "connections are dealt to all");
        assert!(!pids.contains(&running.pid().into()), "the first process only deals them");
        let said = says(running.address());
        assert_eq!(said["flags"], serde_json::json!(["--no-warnings"]));
        assert_eq!(said["arguments"], serde_json::json!(["--require", "x"]));
        assert_eq!(said["told"], serde_json::json!([]));
        assert_eq!(running.workers_lost(), 0);
        let stopped = running.stop();
        assert_eq!((stopped.exit, stopped.killed), (Some(Exit::Status(0)), 0), "{script}");
        assert_eq!(asked(&stage), [1, 1, 1], "each is asked to end, and once");
    }
}

#[test]
fn a_worker_is_there_before_the_load_however_long_it_takes_to_come() {
    let stage = Stage::new();
    let service = with_env(crew(&stage, Launcher::Cluster, &["node", "crew.js"], 4), &[("LOADING", "150")]);
    let running = stage.start(&service).unwrap();
    assert_eq!(answering(running.address(), 8).len(), 4);
}

#[test]
fn a_worker_that_ends_is_missed_and_told_and_not_replaced() {
    let stage = Stage::new();
    let mut running = stage.start(&crew(&stage, Launcher::Cluster, &["node", "crew.js"], 3)).unwrap();
    crash(&running);
    assert_eq!((running.workers_lost(), running.exited()), (1, None));
    assert!(
        wait_until(PATIENCE, || running.tail().contains("ended with exit code 7; 2 of 3 workers are left")),
        "{}",
        running.tail()
    );
    assert_eq!(answering(running.address(), 6).len(), 2);
}

#[test]
fn a_program_that_ends_at_once_in_its_workers_is_a_failure_with_its_own_words() {
    let stage = Stage::new();
    let service = with_env(crew(&stage, Launcher::Cluster, &["node", "crew.js"], 2), &[("BOOM", "1")]);
    let error = stage.start(&service).unwrap_err();
    let (message, tail) = (error.to_string(), error.tail().unwrap());
    assert!(message.starts_with("service api ended with status 1 after "), "{message}");
    assert!(message.ends_with(", before it was ready: node crew.js"), "{message}");
    assert!(tail.contains("boom: no such thing") && tail.contains("exit code 3; 0 of 2 workers"), "{tail}");
}

#[test]
fn a_cluster_that_a_program_makes_itself_is_counted_and_held_to_its_number() {
    let stage = Stage::new();
    let mut own = crew(&stage, Launcher::Exec, &["node", "pair.js"], 2);
    of(&mut own).workers = None;
    let running = stage.start(&own).unwrap();
    assert_eq!(running.workers(), Some(2));
    crash(&running);
    drop(running);
    let mut service = crew(&stage, Launcher::Exec, &["node", "pair.js"], 4);
    service.ready_timeout = Duration::from_secs(4);
    let error = stage.start(&service).unwrap_err();
    assert!(error.to_string().starts_with("service api: 2 of 4 workers run after 4"), "{error}");
    assert!(error.tail().unwrap().contains("started "), "{error:?}");
}

#[test]
fn a_program_that_is_no_cluster_may_be_told_a_number_and_has_no_workers() {
    let stage = Stage::new();
    let service = with_env(crew(&stage, Launcher::Exec, &["node", "crew.js", "{workers}"], 4), &[]);
    let running = stage.start(&service).unwrap();
    assert_eq!((running.workers(), running.workers_lost()), (None, 0));
    assert_eq!(says(running.address())["arguments"], serde_json::json!(["4"]));
}
