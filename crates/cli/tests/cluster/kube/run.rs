//! `proofload run` with generators in pods: the record of a normal run, and of runs in which a pod, Proofload
//! or the API server is killed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use super::cluster::{Namespace, script, within};
use crate::measured;
use crate::place::{self, Draft, Run as _, Said};

/// A `proofload run`, by default of a service beside the control plane, loaded by pods of a user with only
/// the shipped role.
pub struct Run {
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Run {
    fn start(namespace: &Namespace, design: &str) -> Run {
        let pods = namespace.two_pods();
        let generators = pods.replace(
            "[generators.kub",
            "[generators]\nlocal = 0\naddress = \"10.83.0.1\"\n[generators.kub",
        );
        Run::of(
            &Draft {
                more: &generators,
                design,
                ..Draft::default()
            }
            .text(),
        )
    }

    /// Runs an experiment with this text.
    pub fn of(text: &str) -> Run {
        let folder = tempfile::tempdir().expect("a folder for the run");
        let file = folder.path().join("experiment.toml");
        fs::write(&file, text).expect("the experiment is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_proofload"));
        command
            .arg("run")
            .arg(&file)
            .args(["--yes", "--out"])
            .arg(folder.path().join("record"));
        Run {
            folder,
            child: Some(command.begun()),
        }
    }

    pub fn record(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// Waits until something was measured.
    pub fn measures(&mut self) {
        let record = self.record();
        within(Duration::from_secs(60), || {
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().expect("it is ours"));
            assert!(ended.is_none(), "it has ended: {}", self.ended());
            measured(&record) > 0
        });
    }

    pub fn ended(&mut self) -> Said {
        place::ended(self.child.take().expect("it was started"))
    }
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_pod_that_is_killed_costs_its_block_and_another_takes_its_place() {
    let namespace = Namespace::new("killed").with_role();
    let mut run = Run::start(&namespace, "budget = \"120s\"\nslice = \"1s\"\nblocks = 6");
    run.measures();
    let pods = namespace.list("pods", "{.metadata.name} ");
    let victim = pods.split(' ').next().expect("a pod").to_owned();
    namespace.kubectl(&["delete", "pod", "--wait=false", &victim]);
    let said = run.ended();
    said.ends(0).says(&["V48"]);
    let record = record::open(&run.record()).expect("the record opens");
    let [lost] = &record.generators_lost[..] else {
        panic!("{:?}\n{said}", record.generators_lost)
    };
    assert!(lost.generator.contains(&format!("/{victim}@")), "{lost:?}");
    assert!(lost.why.contains("the pod was deleted"), "{lost:?}");
    // In blocks that count, each slice is the work of exactly both.
    let slices = || record.complete_trials().flat_map(|trial| &trial.slices);
    assert!(slices().count() >= 6);
    for slice in slices() {
        let sent: Vec<u64> = slice.generators.iter().map(|part| part.sent).collect();
        assert!(
            sent.len() == 2 && sent.iter().all(|sent| *sent > 0),
            "{:?}",
            slice.generators
        );
        assert_eq!(sent.iter().sum::<u64>(), slice.counts.sent);
    }
    namespace.is_empty_within(Duration::from_secs(10));
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn when_proofload_is_killed_its_pods_end_and_the_job_goes_by_itself() {
    let namespace = Namespace::new("orphans").with_role();
    let mut run = Run::start(&namespace, "budget = \"300s\"\nslice = \"5s\"\nblocks = 6");
    // In the middle of a load.
    run.measures();
    let mut child = run.child.take().expect("it runs");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let complete = "{.status.conditions[?(@.type=='Complete')].status}";
    within(Duration::from_secs(15), || {
        namespace.list("jobs", complete) == "True"
    });
    record::open(&run.record()).expect("what there is of the record opens");
    namespace.is_empty_within(Duration::from_secs(45));
}

/// The API server is unavailable until this is dropped.
struct Away;

impl Away {
    fn begin() -> Away {
        script(&["stop-api"]);
        Away
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        script(&["start-api"]);
    }
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn a_restart_of_the_api_server_costs_a_block_and_a_new_job_goes_on() {
    let namespace = Namespace::new("api-restart").with_role();
    let mut run = Run::start(&namespace, "budget = \"180s\"\nslice = \"1s\"\nblocks = 6");
    run.measures();
    let away = Away::begin();
    std::thread::sleep(Duration::from_secs(8));
    drop(away);
    let said = run.ended();
    said.ends(0).says(&["V48"]);
    let record = record::open(&run.record()).expect("the record opens");
    let [one, other] = &record.generators_lost[..] else {
        panic!("{:?}\n{said}", record.generators_lost)
    };
    assert_eq!(one.block, other.block);
    assert!(
        one.why
            .contains("the connection broke: https://10.83.0.1:6443 does not answer"),
        "{one:?}"
    );
    let slices = || record.complete_trials().flat_map(|trial| &trial.slices);
    assert!(
        slices().count() >= 6 && slices().all(|slice| slice.generators.len() == 2),
        "{said}"
    );
    namespace.is_empty_within(Duration::from_secs(10));
}

#[test]
#[ignore = "wants a cluster: make test-cluster"]
fn an_api_server_that_stays_away_ends_the_run_after_a_minute_and_the_record_is_whole() {
    let namespace = Namespace::new("api-gone").with_role();
    let mut run = Run::start(
        &namespace,
        "budget = \"300s\"\nslice = \"1s\"\nblocks = 100",
    );
    run.measures();
    let away = Away::begin();
    let said = run.ended();
    drop(away);
    said.ends(6)
        .says(&["V48", "could not be replaced", "does not answer"]);
    let record = record::open(&run.record()).expect("the record opens");
    assert!(
        record.damage.is_empty() && record.ended.is_some(),
        "{:?}",
        record.damage
    );
    // They ended with their stdin. The Job could not be deleted. It disappears by itself when controllers
    // reach the API server again.
    within(Duration::from_secs(30), || {
        namespace.list("pods", "{.status.phase} ") == "Succeeded Succeeded "
    });
    script(&["restart-controllers"]);
    namespace.is_empty_within(Duration::from_secs(90));
    // Other tests need the nodes, which were unreachable meanwhile.
    within(Duration::from_secs(90), || {
        namespace.list("nodes", "{.spec.taints}").is_empty()
    });
}
