//! How services end when they are asked to, or when they should not have.

use std::fs;
use std::time::{Duration, Instant};

use proofload_services::Exit;

use crate::stage::{PATIENCE, Stage, folders, get, group_of, of, signal, wait_until, with_env};

#[test]
fn a_service_is_asked_once_and_may_take_its_time() {
    let stage = Stage::new();
    // A second SIGTERM would be counted, too. The shell waits for node, which the same SIGTERM ends.
    let script = "trap 'echo asked' TERM; node server.js; sleep 1; wait; exit 7";
    let running = stage.start(&stage.shell(script)).unwrap();
    let stopped = running.stop();
    assert_eq!((stopped.exit, stopped.killed, stopped.leftovers), (Some(Exit::Status(7)), 0, Vec::new()));
    let log = fs::read_to_string(stage.path("log")).unwrap();
    assert_eq!(log.matches("asked").count(), 1, "{log}");
}

#[test]
fn a_service_that_ignores_sigterm_is_killed_with_its_children() {
    let stage = Stage::new();
    // An ignored signal stays ignored in the programs that a shell starts; node resets it, so it is the shells that stay.
    let script = "trap '' TERM; (while :; do sleep 600; done) & node server.js; while :; do sleep 600; done";
    let mut service = stage.shell(script);
    of(&mut service).stop_timeout = Duration::from_millis(300);
    let stopped = stage.start(&service).unwrap().stop();
    assert_eq!(stopped.exit, Some(Exit::Signal(libc::SIGKILL)));
    assert!(stopped.killed >= 2, "{stopped:?}");
    assert_eq!(stopped.leftovers, []);
    assert!(stage.alive().is_empty());
}

#[test]
fn a_stopped_process_can_be_ended() {
    let stage = Stage::new();
    let running = stage.start(&stage.service(&["node", "server.js"])).unwrap();
    signal(running.pid(), libc::SIGSTOP);
    assert_eq!(running.stop().exit, Some(Exit::Signal(libc::SIGTERM)));
}

#[test]
fn a_flood_of_output_neither_blocks_the_service_nor_fills_the_disk() {
    let stage = Stage::new();
    let running = stage.start(&with_env(stage.service(&["node", "server.js"]), &[("FLOOD", "1")])).unwrap();
    // Output to a pipe blocks node: had nobody emptied it, there would be no answers and no progress.
    let written = || {
        let io = fs::read_to_string(format!("/proc/{}/io", running.pid())).unwrap();
        let count = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    assert!(wait_until(PATIENCE, || written() > 20 << 20), "only {} bytes", written());
    assert!(!get(running.address(), "/").is_empty());
    assert!(running.tail().contains("0123456789abcdef"));
    let stopped = running.stop();
    let log = fs::metadata(stage.path("log")).unwrap().len();
    assert!(log < (1 << 20) + (64 << 10) + 100, "{log}");
    assert!(stopped.output_bytes > 20 << 20 && stopped.output_dropped_bytes + log >= stopped.output_bytes);
}

#[test]
fn a_daemon_does_not_slip_away() {
    let stage = Stage::new();
    // Started from a child that ends, in a session of its own: no parent and no group leads from it to the service.
    let script = "(setsid sh -c 'setsid sleep 600 & sleep 600' &); exec node server.js";
    let running = stage.start(&stage.shell(script)).unwrap();
    assert!(wait_until(PATIENCE, || stage.alive().len() >= 4), "{:?}", stage.alive());
    let stopped = running.stop();
    assert_eq!((stopped.killed, stopped.leftovers), (0, Vec::new()));
    assert!(stage.alive().is_empty());
}

#[test]
fn who_forks_faster_than_they_are_looked_at_does_not_get_away() {
    let stage = Stage::new();
    // Six processes at a time from when they are to end, each of which begins the next in a session of its own and ends; for a
    // minute at most.
    let storm = "import os, signal, time\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n\
        print('waits', flush=True)\n\
        signal.sigwait([signal.SIGTERM])\n\
        for n in range(6):\n    if os.fork() == 0: break\n\
        else: os._exit(0)\n\
        end = time.time() + 60\n\
        while time.time() < end:\n    if os.fork(): os._exit(0)\n    os.setsid()\n    time.sleep(0.0005)\n";
    fs::write(stage.path("storm.py"), storm).unwrap();
    let start = format!("python3 {} & exec node server.js", stage.path("storm.py").display());
    let mut service = stage.shell(&start);
    of(&mut service).stop_timeout = Duration::from_millis(300);
    let running = stage.start(&service).unwrap();
    assert!(wait_until(PATIENCE, || running.tail().contains("waits")));
    let begun = Instant::now();
    let stopped = running.stop();
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert_eq!(stopped.leftovers, []);
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[test]
fn a_service_may_go_to_the_background_and_ends_when_its_last_process_does() {
    let stage = Stage::new();
    let mut running = stage.start(&stage.shell("setsid node server.js & echo started")).unwrap();
    let daemons = running.processes(&[]);
    assert_eq!((daemons.len(), running.exited()), (1, None));
    assert_ne!(daemons[0].id.pid, running.pid());
    assert_eq!(running.sample().processes, 1);
    signal(daemons[0].id.pid, libc::SIGKILL);
    assert!(wait_until(PATIENCE, || running.exited() == Some(Exit::Status(0))));
    assert_eq!(running.tail(), "started");
}

#[test]
fn a_dropped_service_is_stopped() {
    let stage = Stage::new();
    let running = stage.start(&stage.service(&["node", "server.js"])).unwrap();
    assert_eq!(stage.alive().len(), 1);
    let group = group_of(running.pid());
    drop(running);
    assert!(stage.alive().is_empty());
    assert_eq!(group.map_or_else(Vec::new, |name| folders(&name)), [] as [&str; 0]);
}
