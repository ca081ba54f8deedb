//! How services end on request or unexpectedly, and when their Proofload, their warden, or both die. The
//! service must not outlive them.
//!
//! This test program, run again, plays Proofload: see [`proofload`] below.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use proofload_services::{Exit, end_orphans, orphans};

use crate::stage::{
    PATIENCE, Stage, folders, get, group_of, of, scratch_folders, signal, wait_until, with_env,
};

/// A service with a worker and a daemon.
const TREE: &str = "(setsid sleep 600 &); sleep 600 & exec node server.js";
const STAGE: &str = "PROOFLOAD_TEST_STAGE";
const SCRIPT: &str = "PROOFLOAD_TEST_SCRIPT";
const PATIENT: &str = "PROOFLOAD_TEST_STOP_TIMEOUT_S";
/// Time limit for the cleanup of a tree whose supervisor dies, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// Not a test: starts a service, prints the process numbers, and waits to be killed.
#[test]
#[ignore = "run by the other tests, as Proofload"]
fn proofload() {
    let Ok(folder) = std::env::var(STAGE) else {
        return;
    };
    let told = |name: &str| std::env::var(name).unwrap();
    // If the tests run under nohup, this process ignores it too.
    // SAFETY: sets a disposition, before anything is started.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    let stage = Stage::new();
    let env = [("STAGE", folder.as_str()), ("OWN_FOLDER", "{scratch}")];
    let mut service = with_env(stage.shell(&told(SCRIPT)), &env);
    of(&mut service).stop_timeout = Duration::from_secs(told(PATIENT).parse().unwrap());
    let running = stage.start(&service).unwrap();
    let environ = &running.sight(&["NODE_ENV", "HOME"]).processes[0].environ;
    let names: Vec<&str> = environ.keys().map(String::as_str).collect();
    let report = format!(
        "{} {} {}",
        running.pid,
        running.warden_pid(),
        names.join(",")
    );
    fs::write(Path::new(&folder).join("new"), report).unwrap();
    fs::rename(
        Path::new(&folder).join("new"),
        Path::new(&folder).join("report"),
    )
    .unwrap();
    thread::sleep(Duration::from_secs(600));
}

/// A Proofload in its own process group with a running service. Its caller ignores SIGTERM, which must not
/// matter.
struct Played {
    process: Child,
    service: u32,
    warden: u32,
    variables: String,
}

impl Drop for Played {
    /// Neither a failed test nor a successful one may leave a Proofload behind.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn play(stage: &Stage, script: &str, size: usize, stop_timeout_s: &str) -> Played {
    let process = Command::new("/bin/sh")
        .args([
            "-c",
            "trap '' TERM; exec \"$0\" --ignored --exact deaths::proofload",
        ])
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
    let mut played = Played {
        process,
        service: 0,
        warden: 0,
        variables: String::new(),
    };
    let ready = wait_until(PATIENCE, || {
        stage.path("report").exists() && stage.alive().len() == size
    });
    assert!(ready, "no service of {size} processes: {:?}", stage.alive());
    assert_eq!(
        scratch_folders(played.process.id()).len(),
        1,
        "the service has a folder of its own"
    );
    let report = fs::read_to_string(stage.path("report")).unwrap();
    let mut parts = report.split(' ');
    let mut number = || parts.next().unwrap().parse().unwrap();
    (played.service, played.warden) = (number(), number());
    played.variables = parts.collect();
    played
}

#[test]
fn a_killed_proofload_leaves_nothing_also_of_what_ignores_sigterm() {
    let deaf = "trap '' TERM; while :; do sleep 600; done & exec node server.js";
    for (script, stop_timeout_s) in [(TREE, "60"), (deaf, "1")] {
        let stage = Stage::new();
        let mut played = play(&stage, script, 3, stop_timeout_s);
        let id = played.process.id();
        signal(id, libc::SIGKILL);
        played.process.wait().unwrap();
        assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
        let warden = format!("/proc/{}", played.warden);
        assert!(
            wait_until(SOON, || !Path::new(&warden).exists()),
            "the warden stayed"
        );
        assert_eq!(folders(&format!("proofload-{id}-*")), [] as [&str; 0]);
        assert_eq!(scratch_folders(id), [] as [&str; 0]);
    }
}

#[test]
fn a_closing_terminal_and_an_interrupt_reach_proofload_only() {
    let stage = Stage::new();
    // If the shell were interrupted as well, it would print it.
    let mut played = play(
        &stage,
        "trap 'echo interrupted >$STAGE/interrupted' INT HUP; node server.js & wait",
        2,
        "60",
    );
    assert_eq!(
        played.variables, "HOME",
        "the caller's NODE_ENV is not the service's"
    );
    let session =
        rustix::process::getsid(rustix::process::Pid::from_raw(played.service as i32)).unwrap();
    assert_eq!(
        session.as_raw_nonzero().get() as u32,
        played.warden,
        "it may open the caller's terminal"
    );
    // SAFETY: signals the group that this test created.
    unsafe { libc::kill(-i32::try_from(played.process.id()).unwrap(), libc::SIGHUP) };
    played.process.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(!stage.path("interrupted").exists());
}

#[test]
fn a_killed_warden_takes_its_service_with_it_also_what_hides_its_environment() {
    let stage = Stage::new();
    // Without the marker it is identified by its session, and by earlier samples.
    let script = "(setsid sleep 600 &); env -i STAGE=$STAGE sleep 600 & env -i STAGE=$STAGE setsid sleep 600 & exec node server.js";
    let service = with_env(stage.shell(script), &[("OWN_FOLDER", "{scratch}")]);
    let mut running = stage.start(&service).unwrap();
    let hidden = || {
        running
            .sight(&[])
            .processes
            .iter()
            .filter(|process| !process.marked)
            .count()
    };
    assert!(wait_until(PATIENCE, || stage.alive().len() == 4 && hidden() == 2));
    let scratch = running.sight(&["OWN_FOLDER"]).processes[0].environ["OWN_FOLDER"].clone();
    assert!(Path::new(&scratch).is_dir());
    let group = group_of(running.pid);
    running.sample();
    signal(running.warden_pid(), libc::SIGKILL);
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(wait_until(SOON, || running.exited() == Some(Exit::WithWarden)));
    let stopped = running.stop();
    assert_eq!(
        (stopped.exit, stopped.leftovers),
        (Some(Exit::WithWarden), Vec::new())
    );
    assert!(!Path::new(&scratch).exists());
    assert_eq!(
        group.map_or_else(Vec::new, |name| folders(&name)),
        [] as [&str; 0]
    );
}

#[test]
fn if_both_are_killed_the_first_process_ends_and_the_rest_is_found() {
    let stage = Stage::new();
    let mut played = play(&stage, TREE, 3, "60");
    let id = played.process.id();
    // Stopped first, so that neither sees the other die.
    for number in [libc::SIGSTOP, libc::SIGKILL] {
        [played.warden, id]
            .iter()
            .for_each(|pid| signal(*pid, number));
    }
    played.process.wait().unwrap();
    assert!(wait_until(SOON, || !stage
        .alive()
        .contains(&played.service)));
    let left = stage.alive();
    assert_eq!(left.len(), 2);
    let found = orphans();
    let ours: Vec<_> = found
        .into_iter()
        .filter(|orphan| left.contains(&orphan.id.pid))
        .collect();
    assert_eq!(ours.len(), 2);
    assert_eq!(end_orphans(&ours), []);
    assert_eq!(scratch_folders(id), [] as [&str; 0]);
}

#[test]
fn what_runs_in_a_container_is_nobodys_orphan_here() {
    let stage = Stage::new();
    // In that namespace its Proofload may be alive, with a number that belongs to another process here.
    let mut command = Command::new("unshare");
    command.args([
        "--pid",
        "--fork",
        "--kill-child",
        "env",
        "PROOFLOAD_TRIAL=4194304-1-00",
        "sleep",
        "600",
    ]);
    let mut container = command.env("STAGE", stage.folder.path()).spawn().unwrap();
    let number = container.id();
    let is_marked = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        *pid != number
            && environ
                .windows(16)
                .any(|window| window == b"PROOFLOAD_TRIAL=")
    };
    let inside = || stage.alive().into_iter().find(is_marked);
    wait_until(Duration::from_secs(3), || inside().is_some());
    match inside() {
        None => {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: this user or kernel gives no PID namespace"
            );
        }
        Some(inside) => assert!(orphans().iter().all(|orphan| orphan.id.pid != inside)),
    }
    container.kill().unwrap();
    container.wait().unwrap();
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
}

// How services end on request or unexpectedly.

#[test]
fn a_service_is_asked_once_and_may_take_its_time() {
    let stage = Stage::new();
    // A second SIGTERM would be counted, too. The shell waits for node, which the same SIGTERM ends.
    let script = "trap 'echo asked' TERM; node server.js; sleep 1; wait; exit 7";
    let running = stage.start(&stage.shell(script)).unwrap();
    let stopped = running.stop();
    assert_eq!(
        (stopped.exit, stopped.killed, stopped.leftovers),
        (Some(Exit::Status(7)), 0, Vec::new())
    );
    let log = fs::read_to_string(stage.path("log")).unwrap();
    assert_eq!(log.matches("asked").count(), 1, "{log}");
}

#[test]
fn a_service_that_ignores_sigterm_is_killed_with_its_children() {
    let stage = Stage::new();
    // An ignored signal stays ignored in the programs that a shell starts. Node resets it, so the shells
    // stay.
    let script =
        "trap '' TERM; (while :; do sleep 600; done) & node server.js; while :; do sleep 600; done";
    let mut service = stage.shell(script);
    of(&mut service).stop_timeout = Duration::from_millis(300);
    let stopped = stage.start(&service).unwrap().stop();
    assert_eq!(stopped.exit, Some(Exit::Signal(libc::SIGKILL)));
    assert!(stopped.killed >= 2, "{stopped:?}");
    assert_eq!(stopped.leftovers, []);
    assert!(stage.alive().is_empty());
}

#[test]
fn a_flood_of_output_neither_blocks_the_service_nor_fills_the_disk() {
    let stage = Stage::new();
    let running = stage
        .start(&with_env(
            stage.service(&["node", "server.js"]),
            &[("FLOOD", "1")],
        ))
        .unwrap();
    // Output to a full pipe blocks node: without a reader there would be no answers and no progress.
    let written = || {
        let io = fs::read_to_string(format!("/proc/{}/io", running.pid)).unwrap();
        let count = io
            .lines()
            .find_map(|line| line.strip_prefix("wchar: "))
            .unwrap();
        count.parse::<u64>().unwrap()
    };
    assert!(
        wait_until(PATIENCE, || written() > 20 << 20),
        "only {} bytes",
        written()
    );
    assert!(!get(running.address, "/").is_empty());
    assert!(running.tail().contains("0123456789abcdef"));
    let stopped = running.stop();
    let log = fs::metadata(stage.path("log")).unwrap().len();
    assert!(log < (1 << 20) + (64 << 10) + 100, "{log}");
    assert!(
        stopped.output_bytes > 20 << 20
            && stopped.output_dropped_bytes + log >= stopped.output_bytes
    );
}

#[test]
fn a_daemon_does_not_slip_away_and_who_is_stopped_is_ended_and_its_group_removed() {
    let stage = Stage::new();
    // Started by a child that ends, in its own session: no parent and no group leads from it to the service.
    let script = "(setsid sh -c 'setsid sleep 600 & sleep 600' &); exec node server.js";
    let running = stage.start(&stage.shell(script)).unwrap();
    assert!(
        wait_until(PATIENCE, || stage.alive().len() >= 4),
        "{:?}",
        stage.alive()
    );
    let group = group_of(running.pid);
    signal(running.pid, libc::SIGSTOP);
    let stopped = running.stop();
    assert_eq!(
        (stopped.exit, stopped.killed),
        (Some(Exit::Signal(libc::SIGTERM)), 0)
    );
    assert!(stopped.leftovers.is_empty() && stage.alive().is_empty());
    assert_eq!(
        group.map_or_else(Vec::new, |name| folders(&name)),
        [] as [&str; 0]
    );
}

#[test]
fn who_forks_faster_than_they_are_looked_at_does_not_get_away() {
    let stage = Stage::new();
    // From the time of the stop, six processes at a time, each of which starts the next in a new session and
    // ends, for at most a minute.
    let storm = "import os, signal, time\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n\
        print('waits', flush=True)\n\
        signal.sigwait([signal.SIGTERM])\n\
        for n in range(6):\n    if os.fork() == 0: break\n\
        else: os._exit(0)\n\
        end = time.time() + 60\n\
        while time.time() < end:\n    if os.fork(): os._exit(0)\n    os.setsid()\n    time.sleep(0.0005)\n";
    fs::write(stage.path("storm.py"), storm).unwrap();
    let start = format!(
        "python3 {} & exec node server.js",
        stage.path("storm.py").display()
    );
    let mut service = stage.shell(&start);
    of(&mut service).stop_timeout = Duration::from_millis(300);
    let running = stage.start(&service).unwrap();
    assert!(wait_until(PATIENCE, || running.tail().contains("waits")));
    let begun = Instant::now();
    let stopped = running.stop();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "it took {:?}",
        begun.elapsed()
    );
    assert_eq!(stopped.leftovers, []);
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[test]
fn a_service_may_go_to_the_background_and_ends_when_its_last_process_does() {
    let stage = Stage::new();
    let mut running = stage
        .start(&stage.shell("setsid node server.js & echo started"))
        .unwrap();
    let daemons = running.sight(&[]).processes;
    assert_eq!((daemons.len(), running.exited()), (1, None));
    assert_ne!(daemons[0].id.pid, running.pid);
    assert_eq!(running.sample().processes, 1);
    signal(daemons[0].id.pid, libc::SIGKILL);
    assert!(wait_until(PATIENCE, || running.exited() == Some(Exit::Status(0))));
    assert_eq!(running.tail(), "started");
}
