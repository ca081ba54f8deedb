//! Services of several workers: the launcher `cluster`, and clusters that programs make themselves.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plan::{Launcher, Service, Workers};
use proofload_services::{Exit, Running};

use crate::stage::{PATIENCE, Stage, fixtures, get, of, wait_until, with_env};

/// A service of `workers` workers.
pub fn crew(stage: &Stage, launcher: Launcher, command: &[&str], workers: u32) -> Service {
    let mut service = stage.service(command);
    (of(&mut service).launcher, of(&mut service).workers) =
        (launcher, Some(Workers::Number(workers)));
    service
}

/// A worker's description of itself.
fn says(address: SocketAddr) -> serde_json::Value {
    serde_json::from_str(&get(address, "/")).unwrap()
}

/// Numbers of the processes that answer.
fn answering(address: SocketAddr, connections: usize) -> HashSet<u64> {
    (0..connections)
        .map(|_| says(address)["pid"].as_u64().unwrap())
        .collect()
}

/// Number of SIGTERMs that each worker received, for workers that received any.
fn asked(stage: &Stage) -> Vec<usize> {
    let entries = fs::read_dir(stage.folder.path()).unwrap().flatten();
    let files = entries.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("terminated-")
    });
    files
        .map(|file| fs::read_to_string(file.path()).unwrap().lines().count())
        .collect()
}

fn crash(running: &Running) {
    get(running.address, "/crash");
    assert!(
        wait_until(PATIENCE, || running.workers_lost() > 0),
        "nobody is missed"
    );
}

#[test]
fn an_unmodified_program_runs_as_workers_that_all_serve_and_see_nothing_of_it() {
    for script in ["crew.js", "crew.mjs"] {
        let stage = Stage::new();
        let command = ["node", "--no-warnings", script, "--require", "x"];
        let running = stage
            .start(&crew(&stage, Launcher::Cluster, &command, 3))
            .unwrap();
        assert_eq!(running.workers(), Some(3), "{script}");
        assert_eq!(stage.alive().len(), 4);
        let sight = running.sight(&["STAGE"]);
        assert_eq!(sight.listeners, [running.pid]);
        assert!(
            sight
                .processes
                .iter()
                .all(|one| one.marked && one.environ.contains_key("STAGE"))
        );
        let pids = answering(running.address, 9);
        assert_eq!(pids.len(), 3, "connections are dealt to all");
        assert!(
            !pids.contains(&running.pid.into()),
            "the first process only deals them"
        );
        let said = says(running.address);
        assert_eq!(said["flags"], serde_json::json!(["--no-warnings"]));
        assert_eq!(said["arguments"], serde_json::json!(["--require", "x"]));
        assert_eq!(said["told"], serde_json::json!([]));
        assert_eq!(running.workers_lost(), 0);
        let stopped = running.stop();
        assert_eq!(
            (stopped.exit, stopped.killed),
            (Some(Exit::Status(0)), 0),
            "{script}"
        );
        assert_eq!(asked(&stage), [1, 1, 1], "each is asked to end, and once");
    }
}

#[test]
fn a_worker_is_there_before_the_load_however_long_it_takes_to_come() {
    let stage = Stage::new();
    let service = with_env(
        crew(&stage, Launcher::Cluster, &["node", "crew.js"], 4),
        &[("LOADING", "150")],
    );
    let running = stage.start(&service).unwrap();
    assert_eq!(answering(running.address, 8).len(), 4);
}

#[test]
fn a_worker_that_ends_is_missed_and_told_and_not_replaced() {
    let stage = Stage::new();
    let mut running = stage
        .start(&crew(&stage, Launcher::Cluster, &["node", "crew.js"], 3))
        .unwrap();
    crash(&running);
    assert_eq!((running.workers_lost(), running.exited()), (1, None));
    let told = "ended with exit code 7; 2 of 3 workers are left";
    assert!(
        wait_until(PATIENCE, || running.tail().contains(told)),
        "{}",
        running.tail()
    );
    assert_eq!(answering(running.address, 6).len(), 2);
}

#[test]
fn a_program_that_ends_at_once_in_its_workers_is_a_failure_with_its_own_words() {
    let stage = Stage::new();
    let service = with_env(
        crew(&stage, Launcher::Cluster, &["node", "crew.js"], 2),
        &[("BOOM", "1")],
    );
    let error = stage.start(&service).unwrap_err();
    let (message, tail) = (error.to_string(), error.tail().unwrap());
    assert!(
        message.starts_with("service api ended with status 1 after "),
        "{message}"
    );
    assert!(
        message.ends_with(", before it was ready: node crew.js"),
        "{message}"
    );
    assert!(
        tail.contains("boom: no such thing") && tail.contains("exit code 3; 0 of 2 workers"),
        "{tail}"
    );
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
    assert!(
        error
            .to_string()
            .starts_with("service api: 2 of 4 workers running after 4"),
        "{error}"
    );
    assert!(error.tail().unwrap().contains("started "), "{error:?}");
}

#[test]
fn a_program_that_is_started_again_by_what_started_it_is_missed() {
    let stage = Stage::new();
    let mut running = stage
        .start(&stage.shell("while :; do node crew.js; done"))
        .unwrap();
    assert_eq!((running.workers(), running.workers_lost()), (None, 0));
    crash(&running);
    assert_eq!((running.workers_lost(), running.exited()), (1, None));
}

#[test]
fn a_program_that_is_no_cluster_may_be_told_a_number_and_has_no_workers() {
    let stage = Stage::new();
    let service = crew(&stage, Launcher::Exec, &["node", "crew.js", "{workers}"], 4);
    let running = stage.start(&service).unwrap();
    assert_eq!((running.workers(), running.workers_lost()), (None, 0));
    assert_eq!(says(running.address)["arguments"], serde_json::json!(["4"]));
}

// Services that the real PM2 starts. `scripts/setup` installs it from npm into the folder `targets`.

pub fn with_pm2(stage: &Stage, launcher: Launcher, workers: u32) -> Service {
    let script = fixtures().join("crew.js").display().to_string();
    let targets = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../targets")
        .canonicalize()
        .unwrap();
    assert!(
        targets.join("node_modules/.bin/pm2").exists(),
        "PM2 is missing: run scripts/setup"
    );
    let mut service = crew(
        stage,
        launcher,
        &["node", "--no-warnings", &script, "x"],
        workers,
    );
    of(&mut service).directory = targets.join("express-json");
    service
}

/// Number of starts of the program according to its log.
fn starts(stage: &Stage) -> usize {
    let log = fs::read_to_string(stage.path("log")).unwrap();
    log.lines()
        .filter(|line| line.starts_with("started "))
        .count()
}

#[test]
fn in_cluster_mode_workers_have_the_environment_from_their_start_and_end_without_being_replaced() {
    let stage = Stage::new();
    let env = [
        ("UV_THREADPOOL_SIZE", "7"),
        ("NODE_OPTIONS", "--max-old-space-size=300"),
        ("HOME", "{scratch}"),
    ];
    let running = stage
        .start(&with_env(with_pm2(&stage, Launcher::Pm2Cluster, 3), &env))
        .unwrap();
    assert_eq!(running.workers(), Some(3));
    let said = says(running.address);
    assert_eq!(
        (said["pool"].as_str(), said["watched"].as_bool()),
        (Some("7"), Some(true))
    );
    assert_eq!(said["arguments"], serde_json::json!(["x"]));
    assert!(
        wait_until(PATIENCE, || answering(running.address, 9).len() == 3),
        "all three serve"
    );
    // The environment at the worker's start counts: Node.js reads it before PM2 can set anything.
    let processes = running
        .sight(&[
            "NODE_UNIQUE_ID",
            "UV_THREADPOOL_SIZE",
            "NODE_OPTIONS",
            "PM2_HOME",
        ])
        .processes;
    let environs: Vec<_> = processes.iter().map(|process| &process.environ).collect();
    let workers: Vec<_> = environs
        .into_iter()
        .filter(|all| all.contains_key("NODE_UNIQUE_ID"))
        .collect();
    assert_eq!(workers.len(), 3);
    assert!(
        workers.iter().all(|own| own["UV_THREADPOOL_SIZE"] == "7"),
        "{workers:?}"
    );
    assert!(
        workers
            .iter()
            .all(|own| own["NODE_OPTIONS"] == "--max-old-space-size=300"),
        "{workers:?}"
    );
    let home = PathBuf::from(&workers[0]["PM2_HOME"]);
    assert!(home.join("rpc.sock").exists());
    let stopped = running.stop();
    assert_eq!(
        (stopped.killed, stopped.leftovers.as_slice()),
        (0, [].as_slice())
    );
    assert!(stage.alive().is_empty() && !home.exists());
    assert_eq!(
        starts(&stage),
        3,
        "none was started again while it was being ended"
    );
}

#[test]
fn in_fork_mode_there_is_one_and_its_monitoring_can_be_left_out() {
    for pmx in [true, false] {
        let stage = Stage::new();
        let mut service = with_pm2(&stage, Launcher::Pm2Fork, 1);
        of(&mut service).pmx = pmx;
        let running = stage.start(&service).unwrap();
        assert_eq!(running.workers(), Some(1));
        let said = says(running.address);
        assert_eq!(said["watched"].as_bool(), Some(pmx));
        assert_eq!(said["arguments"], serde_json::json!(["x"]));
        assert_eq!(running.stop().killed, 0);
        assert_eq!(starts(&stage), 1);
    }
}

#[test]
fn a_worker_that_pm2_replaces_is_missed_all_the_same() {
    for launcher in [Launcher::Pm2Fork, Launcher::Pm2Cluster] {
        let stage = Stage::new();
        let workers = if launcher == Launcher::Pm2Fork { 1 } else { 2 };
        let mut running = stage.start(&with_pm2(&stage, launcher, workers)).unwrap();
        get(running.address, "/crash");
        assert!(wait_until(PATIENCE, || running.workers_lost() == 1));
        let replaced = || running.tail().matches("started ").count() == workers as usize + 1;
        assert!(
            wait_until(PATIENCE, replaced),
            "{launcher:?}: {}",
            running.tail()
        );
        assert_eq!(running.exited(), None);
    }
}

#[test]
fn a_daemon_that_takes_too_long_is_killed_before_it_can_start_anything_again() {
    let stage = Stage::new();
    // PM2 would give each of them 1.6 s.
    let mut service = with_env(with_pm2(&stage, Launcher::Pm2Cluster, 3), &[("DEAF", "1")]);
    of(&mut service).stop_timeout = Duration::from_secs(2);
    let stopped = stage.start(&service).unwrap().stop();
    assert!(
        stopped.killed >= 1 && stopped.leftovers.is_empty(),
        "{stopped:?}"
    );
    assert!(stage.alive().is_empty());
    assert_eq!(starts(&stage), 3);
}

#[test]
fn without_pm2_it_is_told_what_to_install_and_where() {
    let stage = Stage::new();
    let node = stage.path("node");
    fs::write(&node, "#!/bin/sh\n").unwrap();
    fs::set_permissions(node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut service = crew(&stage, Launcher::Pm2Cluster, &["node", "crew.js"], 2);
    of(&mut service).directory = stage.folder.path().to_owned();
    let service = with_env(service, &[("PATH", stage.folder.path().to_str().unwrap())]);
    let error = stage.start(&service).unwrap_err();
    assert_eq!(
        error.to_string(),
        "service api: pm2 not found, by which it is to be started"
    );
    let wanted = format!(
        "install it with `npm install pm2` in {}",
        stage.folder.path().display()
    );
    assert!(
        error.hint().unwrap().starts_with(&wanted),
        "{:?}",
        error.hint()
    );
}
