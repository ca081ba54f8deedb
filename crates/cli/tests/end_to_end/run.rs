//! `proofload run` on real services: verdicts, counts, failures, interruption. Nothing is left behind.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::place::{Draft, Place, Run, accounted_for, ended, signal, skip, wait_until};

#[test]
fn a_slower_service_is_found_slower_and_every_request_is_accounted_for() {
    let place = Place::new();
    let experiment = place.two("api.env.SPIN_MS = 1", "api.env.SPIN_MS = 3", "");
    let Some(said) = place.run_well(&experiment, "SLOWER") else {
        return;
    };
    said.prints(&["candidate"]);
    let trials = accounted_for(&place.opened());
    assert!(trials >= 8, "{trials}");

    // Every form of the report is drawn from the record alone.
    fs::remove_file(&experiment).expect("the experiment is not needed any more");
    assert_eq!(place.report("text").ends(0).out, said.out);
    place
        .report("markdown")
        .prints(&["- **slower**: candidate vs baseline"]);
    let json = place.report("json").json();
    assert_eq!(json["comparisons"][0]["outcome"], "worse");
    assert_eq!(json["blocks"], trials / 2);
    let page = place.read("record/report.html");
    assert!(
        page.contains("candidate has a lower throughput than baseline") && page.contains("</html>")
    );
    assert_eq!(place.report("html").out, page);

    // By default, a run only prints the first screen. Four blocks of these slices take 16 s.
    place.two("", "api.env.X = 1", "warmup = \"1s\"\nslice = \"1s\"");
    let short = place.said(&[
        "run",
        "experiment.toml",
        "-q",
        "--budget",
        "16s",
        "--out",
        "short",
    ]);
    let repeat = "Repeat proofload run experiment.toml --budget 16s --seed ";
    short.prints(&["INCONCLUSIVE", "run it with --budget ", repeat]);
    assert!(
        short.err.is_empty() && short.out.lines().count() <= 20,
        "{short}"
    );
}

#[test]
fn a_service_that_fails_is_told_with_its_last_words() {
    // `compare` reports one that ends at once in the same words.
    for (mode, part) in [
        ("hang", "not ready"),
        ("die", "out of luck after many requests"),
    ] {
        let place = Place::new();
        let experiment = place.experiment(&Draft {
            service: if mode == "hang" {
                "ready_timeout = \"2s\""
            } else {
                ""
            },
            more: &format!("[factors.mode]\nok = {{}}\nbad = {{ api.env.MODE = \"{mode}\" }}"),
            ..Draft::default()
        });
        place.run(&experiment).ends(3).tells(&[part]);
        place.is_quiet();
        place.said(&["report", "record"]).ends(3);
    }
}

#[test]
fn an_experiment_in_which_nothing_succeeds_is_void_at_once() {
    let place = Place::new();
    let said = place.run(&place.two("api.env.MODE = \"500\"", "api.env.MODE = \"silent\"", ""));
    said.ends(4)
        .prints(&["succeeded: status 500; candidate: no response within 1s"]);
    assert_eq!(place.opened().complete_blocks().count(), 0);
}

/// Starts a long run and waits until one of its services runs.
fn under_way(place: &Place) -> Child {
    let child = place
        .command(&place.two("", "api.env.X = 1", "slices = 20"))
        .begun();
    wait_until("a slice is in the record", || {
        place.has_event(r#""kind":"measured""#)
    });
    child
}

#[test]
fn ctrl_c_ends_cleanly_with_what_there_is() {
    let place = Place::new();
    let child = under_way(&place);
    // Below npx one Ctrl-C arrives twice: from the terminal, and from npm.
    (0..2).for_each(|_| signal(child.id(), "-INT"));
    ended(child).ends(130).prints(&["interrupted"]);
    place.is_quiet();
}

#[test]
fn a_kill_leaves_no_process_and_a_record_that_opens() {
    let place = Place::new();
    let mut child = under_way(&place);
    assert!(
        place.left_running().len() >= 3,
        "proofload, a warden and a service"
    );
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    wait_until("nothing is left", || place.left_running().is_empty());
    place
        .said(&["report", "record"])
        .prints(&["did not end by itself"]);
}

#[test]
fn as_the_first_process_of_a_container_it_ends_when_it_is_told_to() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--pid", "--fork", "--mount-proc"]);
    unshare
        .args([env!("CARGO_BIN_EXE_proofload"), "remote-agent"])
        .stdin(Stdio::piped());
    let mut child = unshare.begun();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let first = || {
        fs::read_to_string(&children)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    wait_until("it ends", || {
        // Before it has begun there is no handler.
        first()
            .into_iter()
            .for_each(|first| _ = Command::new("kill").arg(first.to_string()).status());
        child.try_wait().expect("it can be waited for").is_some()
    });
    let said = ended(child);
    if said.err.contains("unshare") {
        skip(&format!("this system gives no process namespace: {said}"));
        return;
    }
    said.ends(130);
}

#[test]
fn a_full_disk_ends_the_run_and_the_record_still_opens() {
    let namespaces = Command::new("unshare")
        .args(["--map-root-user", "--mount", "true"])
        .status();
    if !namespaces.is_ok_and(|status| status.success()) {
        skip("this system gives no mount namespace in which a disk could be full");
        return;
    }
    let place = Place::new();
    let experiment = place.two("", "api.env.X = 1", "");
    fs::create_dir(place.path("small")).expect("a folder");
    // A file system of 64 KiB in a separate mount namespace.
    let script = r#"small=$1; mount -t tmpfs -o size=64k tmpfs "$1" && shift && "$@"; code=$?
        proof=$1; "$proof" report "$small/record" >&2; exit $code"#;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(place.path("small"));
    unshare
        .args([env!("CARGO_BIN_EXE_proofload"), "run"])
        .arg(&experiment);
    let said = unshare.arg("--out").arg(place.path("small/record")).said();
    said.ends(6).tells(&["the disk is full"]);
    assert!(
        said.err.contains("cut off") || said.err.contains("blocks"),
        "{said}"
    );
}
