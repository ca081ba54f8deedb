//! A run whose load comes from hosts by SSH: every request accounted for, and what becomes of it when a host crashes, its cable is
//! pulled, or Proofload is killed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::hosts::{Hosts, program, within};

const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/service.js");
/// Everything that a run does here before it loads, on a busy machine.
const BEGIN: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(15);
const SHORT: &str = "budget = \"90s\"\nslice = \"500ms\"\nslices = 1\nblocks = 6";
/// Long enough for whatever is to happen meanwhile.
const LONG: &str = "budget = \"10m\"\nslice = \"2s\"\nslices = 10";

/// A service beside Proofload, which these hosts load.
fn experiment(hosts: &Hosts, ssh: &[&str], design: &str) -> PathBuf {
    let text = format!(
        r#"name = "from-elsewhere"
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", HOST = "{{address}}" }}
[generators]
local = 0
ssh = {ssh:?}
address = "10.77.0.1"
[load]
connections = 5
timeout = "1s"
[design]
# All hosts are this machine, which is never one's own.
drop_disturbed = false
warmup = "200ms"
{design}
"#
    );
    let file = hosts.path("experiment.toml");
    fs::write(&file, text).expect("the experiment is written");
    file
}

fn started(hosts: &Hosts, ssh: &[&str], design: &str) -> Child {
    let file = experiment(hosts, ssh, design);
    hosts.within(|| {
        let mut run = Command::new(program());
        run.arg("run").arg(file).args(["--seed", "1", "--out"]).arg(hosts.path("record"));
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts")
    })
}

/// A run of which slices are being measured.
fn loading(hosts: &Hosts, ssh: &[&str]) -> Child {
    let run = started(hosts, ssh, LONG);
    let events = hosts.path("record/events.jsonl");
    let slices = || fs::read_to_string(&events).unwrap_or_default().matches("\"measured\"").count();
    assert!(within(BEGIN, || slices() >= 1), "nothing is measured");
    run
}

fn record(hosts: &Hosts) -> record::Record {
    record::open(&hosts.path("record")).expect("the record opens")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn all_quiet(hosts: &Hosts, number: u32) {
    for host in 1..=number {
        assert!(hosts.is_quiet_within(host, SOON), "on h{host}: {:?}", hosts.processes(host));
    }
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn two_hosts_whose_clocks_are_an_hour_apart_load_a_service_and_each_request_is_accounted_for() {
    let Some(hosts) = Hosts::with_clocks(2, "2=3600") else { return };
    let output = started(&hosts, &["h1", "root@h2"], SHORT).wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ssh://h1") && said.contains("ssh://root@h2"), "{said}");
    let record = record(&hosts);
    let mut trials = 0;
    for block in record.complete_blocks() {
        for trial in &block.trials {
            let log = hosts.path(&format!("record/logs/block-{:02}-only-api.log", block.number));
            let log = fs::read_to_string(log).expect("its log");
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            let counted = log.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            // Beside the load there are two looks at a response before it.
            assert!(counted.is_some_and(|counted| (sent..=sent + 2).contains(&counted)), "{sent}: {log}");
            for slice in &trial.slices {
                let [one, other] = &slice.generators[..] else { panic!("{:?}", slice.generators) };
                assert_eq!((one.name.as_str(), other.name.as_str()), ("ssh://h1", "ssh://root@h2"));
                assert!(
                    one.sent > 0 && other.sent > 0 && one.sent + other.sent == slice.counts.sent,
                    "{slice:?}"
                );
                assert!(!one.here && one.late_ns.max(other.late_ns) < 1_000_000_000, "{one:?} {other:?}");
            }
            trials += 1;
        }
    }
    assert_eq!(trials, 6);
    all_quiet(&hosts, 2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_that_crashes_and_stays_away_ends_the_run_with_its_name_and_the_record_is_whole() {
    let Some(hosts) = Hosts::up(2) else { return };
    let run = loading(&hosts, &["h1", "h2"]);
    hosts.crash(2);
    let output = run.wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("V48") && said.contains("ssh://h2"), "{said}");
    let record = record(&hosts);
    assert!(record.damage.is_empty() && record.ended.is_some(), "{:?}", record.damage);
    all_quiet(&hosts, 1);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_network_that_is_gone_for_five_seconds_ends_no_run() {
    let Some(hosts) = Hosts::up(2) else { return };
    let mut run = loading(&hosts, &["h1", "h2"]);
    hosts.cable(2, false);
    std::thread::sleep(Duration::from_secs(5));
    hosts.cable(2, true);
    let events = hosts.path("record/events.jsonl");
    let slices = || fs::read_to_string(&events).unwrap_or_default().matches("\"measured\"").count();
    let before = slices();
    let goes_on = within(BEGIN, || slices() >= before + 3);
    assert!(goes_on && run.try_wait().expect("a process").is_none(), "{before}, then {}", slices());
    run.kill().expect("it is there");
    run.wait().expect("it ends");
    all_quiet(&hosts, 2);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn whoever_cannot_be_had_is_named_before_anything_starts() {
    let Some(hosts) = Hosts::up(1) else { return };
    let output =
        started(&hosts, &["h1", "closed@h1", "no-such-host"], SHORT).wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(6), "{said}");
    for host in ["ssh://closed@h1", "ssh://no-such-host"] {
        assert!(said.contains(host), "{host}: {said}");
    }
    all_quiet(&hosts, 1);
}
