//! Deaths of those who look after a service: Proofload, its warden, both. The service must not outlive them.
//!
//! Proofload's part is played by this test program run once more: [`proofload`] below.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use proofload_services::{Exit, end_orphans, orphans};

use crate::stage::{PATIENCE, Stage, folders, group_of, of, scratch_folders, signal, wait_until, with_env};

/// A service with a worker and a daemon.
const TREE: &str = "(setsid sleep 600 &); sleep 600 & exec node server.js";
const STAGE: &str = "PROOFLOAD_TEST_STAGE";
const SCRIPT: &str = "PROOFLOAD_TEST_SCRIPT";
const PATIENT: &str = "PROOFLOAD_TEST_STOP_TIMEOUT_S";
/// What becomes of a tree whose keeper dies becomes of it in this time, on a busy machine too.
const SOON: Duration = Duration::from_secs(10);

/// Not a test: starts a service, says who is who, and waits to be killed.
#[test]
#[ignore = "run by the other tests, as Proofload"]
fn proofload() {
    let Ok(folder) = std::env::var(STAGE) else { return };
    // Whoever runs the tests by nohup ignores it, and so would we.
    // SAFETY: sets a disposition, before anything is started.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    let script = std::env::var(SCRIPT).unwrap();
    let stage = Stage::new();
    let mut service = stage.shell(&script);
    of(&mut service).env.insert("STAGE".to_owned(), folder.clone());
    of(&mut service).env.insert("OWN_FOLDER".to_owned(), "{scratch}".to_owned());
    of(&mut service).stop_timeout = Duration::from_secs(std::env::var(PATIENT).unwrap().parse().unwrap());
    let running = stage.start(&service).unwrap();
    let environ = &running.processes(&["NODE_ENV", "HOME"])[0].environ;
    let names: Vec<&str> = environ.keys().map(String::as_str).collect();
    let report = format!("{} {} {}", running.pid(), running.warden_pid(), names.join(","));
    fs::write(Path::new(&folder).join("new"), report).unwrap();
    fs::rename(Path::new(&folder).join("new"), Path::new(&folder).join("report")).unwrap();
    thread::sleep(Duration::from_secs(600));
}

/// A Proofload of its own process group with a running service. Its caller ignores SIGTERM, which must not matter.
struct Played {
    process: Child,
    service: u32,
    warden: u32,
    variables: String,
}

impl Drop for Played {
    /// A test that fails must not leave a Proofload behind, nor must one that succeeds.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn play(stage: &Stage, script: &str, size: usize) -> Played {
    play_patient(stage, script, size, "60")
}

fn play_patient(stage: &Stage, script: &str, size: usize, stop_timeout_s: &str) -> Played {
    let process = Command::new("/bin/sh")
        .args(["-c", "trap '' TERM; exec \"$0\" --ignored --exact deaths::proofload"])
        .arg(std::env::current_exe().unwrap())
        .env(STAGE, stage.folder.path())
        .env(SCRIPT, script)
        .env(PATIENT, stop_timeout_s)
        .env("NODE_ENV", "development")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut played = Played { process, service: 0, warden: 0, variables: String::new() };
    let ready = wait_until(PATIENCE, || stage.path("report").exists() && stage.alive().len() == size);
    assert!(ready, "no service of {size} processes: {:?}", stage.alive());
    assert_eq!(scratch_folders(played.process.id()).len(), 1, "the service has a folder of its own");
    let report = fs::read_to_string(stage.path("report")).unwrap();
    let mut parts = report.split(' ');
    let mut number = || parts.next().unwrap().parse().unwrap();
    (played.service, played.warden) = (number(), number());
    played.variables = parts.collect();
    played
}

#[test]
fn a_killed_proofload_leaves_nothing() {
    let stage = Stage::new();
    let mut played = play(&stage, TREE, 3);
    let id = played.process.id();
    signal(id, libc::SIGKILL);
    played.process.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(
        wait_until(SOON, || !Path::new(&format!("/proc/{}", played.warden)).exists()),
        "the warden stayed"
    );
    assert_eq!(folders(&format!("proofload-{id}-*")), [] as [&str; 0]);
    assert_eq!(scratch_folders(id), [] as [&str; 0]);
}

#[test]
fn a_closing_terminal_and_an_interrupt_reach_proofload_only() {
    let stage = Stage::new();
    // Were the shell interrupted as well, it would say so.
    let mut played =
        play(&stage, "trap 'echo interrupted >$STAGE/interrupted' INT HUP; node server.js & wait", 2);
    assert_eq!(played.variables, "HOME", "the caller's NODE_ENV is not the service's");
    let session = rustix::process::getsid(rustix::process::Pid::from_raw(played.service as i32)).unwrap();
    assert_eq!(session.as_raw_nonzero().get() as u32, played.warden, "it may open the caller's terminal");
    // SAFETY: signals the group that this test made.
    unsafe { libc::kill(-i32::try_from(played.process.id()).unwrap(), libc::SIGHUP) };
    played.process.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(!stage.path("interrupted").exists());
}

#[test]
fn a_service_that_ignores_sigterm_does_not_survive_proofload_either() {
    let stage = Stage::new();
    let script = "trap '' TERM; while :; do sleep 600; done & exec node server.js";
    let mut played = play_patient(&stage, script, 3, "1");
    signal(played.process.id(), libc::SIGKILL);
    played.process.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
}

#[test]
fn a_killed_warden_takes_its_service_with_it() {
    let stage = Stage::new();
    let service = with_env(stage.shell(TREE), &[("OWN_FOLDER", "{scratch}")]);
    let mut running = stage.start(&service).unwrap();
    assert!(wait_until(PATIENCE, || stage.alive().len() == 3));
    let scratch = running.processes(&["OWN_FOLDER"])[0].environ["OWN_FOLDER"].clone();
    assert!(Path::new(&scratch).is_dir());
    let group = group_of(running.pid());
    signal(running.warden_pid(), libc::SIGKILL);
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(wait_until(SOON, || running.exited() == Some(Exit::WithWarden)));
    let stopped = running.stop();
    assert_eq!((stopped.exit, stopped.leftovers), (Some(Exit::WithWarden), Vec::new()));
    assert!(!Path::new(&scratch).exists());
    assert_eq!(group.map_or_else(Vec::new, |name| folders(&name)), [] as [&str; 0]);
}

#[test]
fn a_process_that_hides_its_environment_does_not_survive_its_warden() {
    let stage = Stage::new();
    // Without the marker it is known by its session, and by having been seen.
    let script = "env -i STAGE=$STAGE sleep 600 & env -i STAGE=$STAGE setsid sleep 600 & exec node server.js";
    let mut running = stage.start(&stage.shell(script)).unwrap();
    assert!(
        wait_until(PATIENCE, || running.processes(&[]).iter().filter(|process| !process.marked).count() == 2)
    );
    running.sample();
    signal(running.warden_pid(), libc::SIGKILL);
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
}

#[test]
fn if_both_are_killed_the_first_process_ends_and_the_rest_is_found() {
    let stage = Stage::new();
    let mut played = play(&stage, TREE, 3);
    let id = played.process.id();
    // Stopped first, so that neither sees the other die.
    for pid in [played.warden, id] {
        signal(pid, libc::SIGSTOP);
    }
    for pid in [played.warden, id] {
        signal(pid, libc::SIGKILL);
    }
    played.process.wait().unwrap();
    assert!(wait_until(SOON, || !stage.alive().contains(&played.service)));
    let left = stage.alive();
    assert_eq!(left.len(), 2);
    let found = orphans();
    let ours: Vec<_> = found.into_iter().filter(|orphan| left.contains(&orphan.id.pid)).collect();
    assert_eq!(ours.len(), 2);
    assert_eq!(end_orphans(&ours), []);
    assert_eq!(scratch_folders(id), [] as [&str; 0]);
}

#[test]
fn what_runs_in_a_container_is_nobodys_orphan_here() {
    let stage = Stage::new();
    // There its Proofload may well live, by a number that is another process's here.
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "env", "PROOFLOAD_TRIAL=4194304-1-00", "sleep", "600"]);
    let mut container = command.env("STAGE", stage.folder.path()).spawn().unwrap();
    let number = container.id();
    let is_marked = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        *pid != number && environ.windows(16).any(|window| window == b"PROOFLOAD_TRIAL=")
    };
    let inside = || stage.alive().into_iter().find(is_marked);
    if !wait_until(Duration::from_secs(3), || inside().is_some()) {
        let _ = writeln!(std::io::stderr(), "skipped: this user or kernel gives no PID namespace");
        container.kill().unwrap();
        container.wait().unwrap();
        return;
    }
    let inside = inside().unwrap();
    assert!(orphans().iter().all(|orphan| orphan.id.pid != inside));
    container.kill().unwrap();
    container.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
}
