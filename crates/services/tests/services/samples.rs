//! Samples compared with what processes measure themselves.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use proofload_services::{CpuSource, Running};

use crate::stage::{PATIENCE, Stage, get, wait_until};

/// The share of a running thread is at most a scheduler tick old, and a machine has a few CPUs.
const TICKS_NS: u64 = 25_000_000;

fn assert_near(measured_ns: u64, truth_ns: u64) {
    let allowed = truth_ns / 50 + TICKS_NS;
    assert!(
        measured_ns.abs_diff(truth_ns) < allowed,
        "CPU time: {measured_ns} ns, in truth {truth_ns} ns"
    );
}

#[test]
fn cpu_time_is_what_the_process_itself_measures_with_a_control_group_and_without() {
    for group in [true, false] {
        let stage = Stage::new();
        let service = stage.service(&["node", "server.js"]);
        let mut running = stage
            .start_placed(&service, |placement| placement.group = group)
            .unwrap();
        let own_ns = |path: &str| get(running.address, path).parse::<u64>().unwrap() * 1000;
        let before = own_ns("/");
        let truth = own_ns("/burn/1000") - before;
        // An ended process is fully accounted for.
        std::thread::sleep(Duration::from_millis(50));
        let now = own_ns("/");
        let sample = running.sample();
        assert_near(sample.cpu_ns, now);
        assert!(truth >= 1_000_000_000 && (group || sample.cpu_source == CpuSource::Processes));
    }
}

#[test]
fn a_process_that_was_moved_to_another_group_is_counted_all_the_same() {
    let stage = Stage::new();
    // As `systemd-run --scope` does it.
    let leave = "group=$(find /sys/fs/cgroup -name proofload-$PROOFLOAD_TRIAL | head -n 1); \
                 [ -z \"$group\" ] || echo $$ >\"$group/../cgroup.procs\"; exec node server.js";
    let mut running = stage.start(&stage.shell(leave)).unwrap();
    let used_ns = get(running.address, "/burn/400").parse::<u64>().unwrap() * 1000;
    std::thread::sleep(Duration::from_millis(50));
    let sample = running.sample();
    assert_eq!(sample.cpu_source, CpuSource::Processes);
    assert!(
        sample.cpu_ns + TICKS_NS >= used_ns,
        "{} of {used_ns} ns",
        sample.cpu_ns
    );
}

#[test]
fn children_that_come_and_go_between_samples_are_counted() {
    let stage = Stage::new();
    let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let script = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10; do sh -c '{burn}'; done; times >$STAGE/times; exec node server.js"
    );
    let mut running = stage
        .start_placed(&stage.shell(&script), |placement| placement.group = false)
        .unwrap();
    let sample = running.sample();
    assert_eq!(sample.processes, 1);
    // "0m0.01s 0m0.00s" of the shell, then of its children.
    let times = fs::read_to_string(stage.path("times")).unwrap();
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let children: f64 = times.lines().nth(1).unwrap().split(' ').map(seconds).sum();
    let node_ns = get(running.address, "/").parse::<u64>().unwrap() * 1000;
    let truth_ns = node_ns + (children * 1e9) as u64;
    assert!(children > 0.1, "{times}");
    assert_near(sample.cpu_ns, truth_ns);
}

#[test]
fn memory_threads_and_switches_are_those_of_the_whole_tree() {
    let stage = Stage::new();
    let mut running = stage
        .start(&stage.shell("sleep 600 & node server.js; wait"))
        .unwrap();
    let first = running.sample();
    assert_eq!(first.processes, 3);
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let node = running
        .sight(&[])
        .processes
        .iter()
        .find(|process| process.argv[0] == "node")
        .unwrap()
        .id
        .pid;
    let threads: u32 = status(node)
        .lines()
        .find_map(|line| line.strip_prefix("Threads:\t"))
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(first.threads, threads + 2);
    assert!(first.rss_bytes > 20 << 20, "{first:?}");
    (0..20).for_each(|_| drop(get(running.address, "/")));
    let second = running.sample();
    assert!(
        second.switches_voluntary > first.switches_voluntary,
        "{first:?} {second:?}"
    );
    assert!(second.cpu_ns > first.cpu_ns);
}

#[test]
fn each_process_is_told_by_its_own_time_and_what_they_share_is_held_once() {
    let stage = Stage::new();
    // The second one gets another port and no requests.
    let mut running = stage
        .start(&stage.shell("PORT=0 node server.js & node server.js; wait"))
        .unwrap();
    let nodes = |running: &Running| -> usize {
        running
            .sight(&[])
            .processes
            .iter()
            .filter(|process| process.argv[0] == "node")
            .count()
    };
    assert!(wait_until(PATIENCE, || nodes(&running) == 2));
    // Until both have loaded their modules.
    std::thread::sleep(Duration::from_millis(500));
    let before = running.sample();
    drop(get(running.address, "/burn/400"));
    std::thread::sleep(Duration::from_millis(50));
    let after = running.sample();
    let used = after.cpu_by_process_since(&before);
    assert!(
        used[0] > 350_000_000 && used.iter().skip(1).all(|ns| *ns < used[0] / 10),
        "{used:?}"
    );
    assert!(
        after
            .cpu_by_process
            .is_sorted_by(|one, other| one.cpu_ns >= other.cpu_ns)
    );

    let (held, summed) = (running.peak_memory(), after.rss_bytes);
    assert!(held > 20 << 20, "{held} of {summed}");
    let tells = fs::read_to_string("/proc/self/smaps_rollup")
        .is_ok_and(|text| text.contains("Shared_Clean"));
    // The program's own text is tens of megabytes, and counts once.
    assert!(!tells || held + (10 << 20) < summed, "{held} of {summed}");
}

#[test]
fn what_children_fetched_from_storage_counts_when_they_are_gone() {
    let stage = Stage::new();
    let data = stage.path("data");
    fs::write(&data, vec![7; 2 << 20]).unwrap();
    let fetch = format!(
        "dd if={} of=/dev/null bs=1M iflag=direct 2>/dev/null",
        data.display()
    );
    // The kernel's value for a shell whose child did the same: a file system in memory fetches nothing.
    let told = Command::new("sh")
        .args(["-c", &format!("{fetch}; cat /proc/$$/io")])
        .output()
        .unwrap()
        .stdout;
    let told = String::from_utf8(told).unwrap();
    let counted = told
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))
        .unwrap_or("0");
    if counted.parse::<u64>().unwrap() < 2 << 20 {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {} is not on storage",
            data.display()
        );
        return;
    }
    let mut running = stage
        .start(&stage.shell(&format!("{fetch}; {fetch}; exec node server.js")))
        .unwrap();
    let fetched = running.sample().read_bytes;
    assert!(fetched >= 4 << 20, "{fetched}");
}
