//! Services on other machines by SSH: measured from here, with what they said; and what stays of them when a machine, a cable or
//! Proofload itself fails in the middle of a run, which is nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use record::Record;

use crate::hosts::{Hosts, program, within};

const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/service.js");
/// Everything that a run does here before it loads, on a busy machine.
const BEGIN: Duration = Duration::from_secs(60);
/// What ends there with a connection ends in this time.
const SOON: Duration = Duration::from_secs(15);

/// An experiment whose api runs on h1 and needs what runs on `db_host`.
fn experiment(hosts: &Hosts, db_host: &str, design: &str) -> PathBuf {
    for host in ["h1", "h2"] {
        let home = hosts.path(host).join("root");
        if home.is_dir() {
            fs::create_dir_all(home.join("shop")).expect("a folder there");
            fs::copy(SERVICE, home.join("shop/service.js")).expect("the service is there");
        }
    }
    let text = format!(
        r#"name = "elsewhere"
entry = "api"
[services.db]
command = ["node", "service.js"]
directory = "~/shop"
host = "ssh://{db_host}"
ready = "/healthz"
env = {{ PORT = "{{port}}", HOST = "{{address}}" }}
[services.api]
command = ["node", "service.js", "{{db.address}}:{{db.port}}"]
directory = "~/shop"
host = "ssh://h1"
needs = ["db"]
ready = "/healthz"
env = {{ PORT = "{{port}}", HOST = "{{address}}" }}
[factors.spin]
one = {{ api.env.SPIN_MS = 1 }}
three = {{ api.env.SPIN_MS = 3 }}
[load]
connections = 4
[design]
# All hosts are this machine, which is never one's own.
drop_disturbed = false
{design}
"#
    );
    let file = hosts.path("experiment.toml");
    fs::write(&file, text).expect("the experiment is written");
    file
}

const SHORT: &str = "budget = \"90s\"\nwarmup = \"200ms\"\nslice = \"200ms\"\nslices = 1\nblocks = 6";
/// Long enough for whatever is to happen meanwhile.
const LONG: &str = "budget = \"10m\"\nwarmup = \"200ms\"\nslice = \"500ms\"\nslices = 20";

fn started(hosts: &Hosts, file: &Path) -> Child {
    hosts.within(|| {
        Command::new(program())
            .arg("run")
            .arg(file)
            .args(["--seed", "1", "--out"])
            .arg(hosts.path("record"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("proofload starts")
    })
}

/// A run of which slices are being measured.
fn loading(hosts: &Hosts, file: &Path) -> Child {
    let run = started(hosts, file);
    let events = hosts.path("record/events.jsonl");
    let slices = || fs::read_to_string(&events).unwrap_or_default().matches("\"measured\"").count();
    assert!(within(BEGIN, || slices() >= 2), "nothing is measured");
    run
}

fn record(hosts: &Hosts) -> Record {
    record::open(&hosts.path("record")).expect("the record opens")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Processes of a host that are services or look after them.
fn ours(hosts: &Hosts, host: u32) -> Vec<String> {
    let is_ours = |process: &String| process.contains("service.js") || process.contains("proofload");
    hosts.processes(host).into_iter().filter(is_ours).collect()
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn services_on_two_hosts_are_measured_from_here_and_gone_afterwards() {
    let Some(hosts) = Hosts::up(2) else { return };
    let file = experiment(&hosts, "h2", SHORT);
    let output = started(&hosts, &file).wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("SLOWER") && said.contains("machine  ssh://h1, for services: "), "{said}");
    let record = record(&hosts);
    let machines: Vec<&str> = record.header.environment.hosts.keys().map(String::as_str).collect();
    assert_eq!(machines, ["ssh://h1", "ssh://h2"]);
    let mut trials = 0;
    for block in record.complete_blocks() {
        for trial in &block.trials {
            let [db, api] = &trial.started.services[..] else { panic!("two services") };
            assert_eq!((db.host.as_deref(), api.host.as_deref()), (Some("ssh://h2"), Some("ssh://h1")));
            assert!(api.processes[0].command.ends_with(&format!("10.77.0.12:{}", db.port)), "{api:?}");
            let variant = &record.header.plan.variants[trial.variant()].name;
            let log = hosts.path(&format!("record/logs/block-{:02}-{variant}-api.log", block.number));
            let log = fs::read_to_string(log).expect("its log came back");
            let sent: u64 = trial.slices.iter().map(|slice| slice.counts.sent).sum();
            let counted = log.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
            assert!(counted.is_some_and(|counted| (sent..=sent + 2).contains(&counted)), "{sent}: {log}");
            assert!(trial.slices.iter().all(|slice| slice.machine.hosts.len() == 2));
            trials += 1;
        }
    }
    assert_eq!(trials, 12);
    for host in [1, 2] {
        assert!(hosts.is_quiet_within(host, SOON), "on h{host}: {:?}", hosts.processes(host));
    }
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_service_on_one_host_is_loaded_from_another() {
    let Some(hosts) = Hosts::up(2) else { return };
    let file = experiment(&hosts, "h1", SHORT);
    let text = fs::read_to_string(&file).expect("the file");
    fs::write(&file, format!("{text}[generators]\nlocal = 0\nssh = [\"h2\"]\n")).expect("the file");
    let output = started(&hosts, &file).wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("SLOWER"), "{said}");
    let record = record(&hosts);
    let trials = || record.complete_blocks().flat_map(|block| &block.trials);
    assert!(trials().flat_map(|trial| &trial.slices).all(|slice| slice.counts.successful > 0), "{said}");
    assert!(
        trials().all(|trial| trial.started.services.iter().all(|of| of.host.as_deref() == Some("ssh://h1")))
    );
    for host in [1, 2] {
        assert!(hosts.is_quiet_within(host, SOON), "on h{host}: {:?}", hosts.processes(host));
    }
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_host_that_crashes_in_the_middle_ends_the_run_with_its_name_and_the_record_is_whole() {
    let Some(hosts) = Hosts::up(2) else { return };
    let file = experiment(&hosts, "h2", LONG);
    let run = loading(&hosts, &file);
    hosts.crash(1);
    let output = run.wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("ssh://h1: the connection is lost"), "{said}");
    assert!(said.contains("service api, which ran there, ends by itself"), "{said}");
    let record = record(&hosts);
    assert!(record.damage.is_empty() && record.ended.is_some(), "{:?}", record.damage);
    assert!(hosts.is_quiet_within(2, SOON), "on h2: {:?}", hosts.processes(2));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn a_cable_that_is_pulled_ends_the_run_here_and_the_services_there() {
    let Some(hosts) = Hosts::up(1) else { return };
    let file = experiment(&hosts, "h1", LONG);
    let run = loading(&hosts, &file);
    assert!(!ours(&hosts, 1).is_empty());
    hosts.cable(1, false);
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    // Nobody tells them: that nothing was heard for a minute does.
    let gone = || ours(&hosts, 1).is_empty();
    assert!(within(Duration::from_secs(100), gone), "on h1: {:?}", hosts.processes(1));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn nothing_stays_on_a_host_when_proofload_is_killed() {
    let Some(hosts) = Hosts::up(1) else { return };
    let file = experiment(&hosts, "h1", LONG);
    let mut run = loading(&hosts, &file);
    assert!(ours(&hosts, 1).iter().any(|process| process.contains("service.js")));
    run.kill().expect("it is there");
    run.wait().expect("it ends");
    assert!(hosts.is_quiet_within(1, SOON), "on h1: {:?}", hosts.processes(1));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn an_interrupt_stops_services_there_in_good_order_and_fetches_what_they_said() {
    let Some(hosts) = Hosts::up(1) else { return };
    let file = experiment(&hosts, "h1", LONG);
    let run = loading(&hosts, &file);
    let status = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(status.expect("kill starts").success());
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let logs: Vec<_> = fs::read_dir(hosts.path("record/logs")).expect("logs").flatten().collect();
    let last = |log: &fs::DirEntry| fs::read_to_string(log.path()).expect("a log").contains("requests ");
    assert!(!logs.is_empty() && logs.iter().all(last), "{logs:?}");
    assert!(hosts.is_quiet_within(1, SOON), "on h1: {:?}", hosts.processes(1));
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn what_is_not_there_is_told_before_anything_is_measured() {
    let Some(hosts) = Hosts::up(1) else { return };
    let file = experiment(&hosts, "h1", SHORT);
    let missing = fs::read_to_string(&file).expect("the file").replace("~/shop", "~/no-such-shop");
    fs::write(&file, missing).expect("the file");
    let output = started(&hosts, &file).wait_with_output().expect("it ends");
    let told = said(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("on ssh://h1: service db: no such directory: /root/no-such-shop"), "{told}");
    assert!(!hosts.path("record").exists(), "{told}");
    assert!(hosts.is_quiet_within(1, SOON), "on h1: {:?}", hosts.processes(1));
}
