//! Services that the real PM2 starts. It comes from npm by `scripts/setup`, into the folder `targets`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plan::{Launcher, Service};

use crate::launchers::{answering, crew, says};
use crate::stage::{PATIENCE, Stage, fixtures, get, of, wait_until, with_env};

/// The folder of the services under test, beside which PM2 is installed.
fn targets() -> PathBuf {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets").canonicalize().unwrap();
    assert!(targets.join("node_modules/.bin/pm2").exists(), "PM2 is missing: run scripts/setup");
    targets
}

pub fn service(stage: &Stage, launcher: Launcher, workers: u32) -> Service {
    let script = fixtures().join("crew.js").display().to_string();
    let directory = targets().join("express-json");
    let mut service = crew(stage, launcher, &["node", "--no-warnings", &script, "x"], workers);
    of(&mut service).directory = directory;
    service
}

/// How often the program was started, as its kept log has it.
fn starts(stage: &Stage) -> usize {
    let log = fs::read_to_string(stage.path("log")).unwrap();
    log.lines().filter(|line| line.starts_with("started ")).count()
}

#[test]
fn in_cluster_mode_workers_have_the_environment_from_their_start_and_end_without_being_replaced() {
    let stage = Stage::new();
    let env =
        [("UV_THREADPOOL_SIZE", "7"), ("NODE_OPTIONS", "--max-old-space-size=300"), ("HOME", "{scratch}")];
    let running = stage.start(&with_env(service(&stage, Launcher::Pm2Cluster, 3), &env)).unwrap();
    assert_eq!(running.workers(), Some(3));
    let said = says(running.address());
    assert_eq!((said["pool"].as_str(), said["watched"].as_bool()), (Some("7"), Some(true)));
    assert_eq!(said["arguments"], serde_json::json!(["x"]));
    assert!(wait_until(PATIENCE, || answering(running.address(), 9).len() == 3), "all three serve");
    // What counts is what a worker was started with: Node.js reads it before PM2 can set anything.
    let processes = running.processes(&["NODE_UNIQUE_ID", "UV_THREADPOOL_SIZE", "NODE_OPTIONS", "PM2_HOME"]);
    let workers: Vec<_> =
        processes.iter().filter(|process| process.environ.contains_key("NODE_UNIQUE_ID")).collect();
    assert_eq!(workers.len(), 3);
    for worker in &workers {
        assert_eq!(worker.environ["UV_THREADPOOL_SIZE"], "7");
        assert_eq!(worker.environ["NODE_OPTIONS"], "--max-old-space-size=300");
    }
    let home = PathBuf::from(&workers[0].environ["PM2_HOME"]);
    assert!(home.join("rpc.sock").exists());
    let stopped = running.stop();
    assert_eq!((stopped.killed, stopped.leftovers.as_slice()), (0, [].as_slice()));
    assert!(stage.alive().is_empty() && !home.exists());
    assert_eq!(starts(&stage), 3, "none was started again while it was being ended");
}

#[test]
fn in_fork_mode_there_is_one_and_its_monitoring_can_be_left_out() {
    for pmx in [true, false] {
        let stage = Stage::new();
        let mut service = service(&stage, Launcher::Pm2Fork, 1);
        of(&mut service).pmx = pmx;
        let running = stage.start(&service).unwrap();
        assert_eq!(running.workers(), Some(1));
        let said = says(running.address());
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
        let mut running = stage.start(&service(&stage, launcher, workers)).unwrap();
        get(running.address(), "/crash");
        assert!(wait_until(PATIENCE, || running.workers_lost() == 1));
        let replaced = || running.tail().matches("started ").count() == workers as usize + 1;
        assert!(wait_until(PATIENCE, replaced), "{launcher:?}: {}", running.tail());
        assert_eq!(running.exited(), None);
    }
}

#[test]
fn a_daemon_that_takes_too_long_is_killed_before_it_can_start_anything_again() {
    let stage = Stage::new();
    // PM2 would give each of them 1.6 s.
    let mut service = with_env(service(&stage, Launcher::Pm2Cluster, 3), &[("DEAF", "1")]);
    of(&mut service).stop_timeout = Duration::from_secs(2);
    let stopped = stage.start(&service).unwrap().stop();
    assert!(stopped.killed >= 1 && stopped.leftovers.is_empty(), "{stopped:?}");
    assert!(stage.alive().is_empty());
    assert_eq!(starts(&stage), 3);
}

#[test]
fn a_program_that_ends_at_once_leaves_its_own_words_and_no_daemon() {
    let stage = Stage::new();
    let mut service = with_env(service(&stage, Launcher::Pm2Cluster, 2), &[("BOOM", "1")]);
    // Long enough for PM2 to come up on a busy machine.
    service.ready_timeout = Duration::from_secs(10);
    let error = stage.start(&service).unwrap_err();
    assert!(error.tail().is_some_and(|tail| tail.contains("boom: no such thing")), "{error:?}");
    assert!(stage.alive().is_empty());
}

#[test]
fn without_pm2_it_is_told_what_to_install_and_where() {
    let stage = Stage::new();
    let bin = stage.path("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("node"), "#!/bin/sh\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bin.join("node"), executable).unwrap();
    let mut service = crew(&stage, Launcher::Pm2Cluster, &["node", "crew.js"], 2);
    of(&mut service).directory = stage.folder.path().to_owned();
    let service = with_env(service, &[("PATH", bin.to_str().unwrap())]);
    let error = stage.start(&service).unwrap_err();
    assert_eq!(error.to_string(), "service api: pm2 not found, by which it is to be started");
    let wanted = format!("install it with `npm install pm2` in {}", stage.folder.path().display());
    assert!(error.hint().unwrap().starts_with(&wanted), "{:?}", error.hint());
}
