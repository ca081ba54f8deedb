//! Services on other machines in a run, with this program as the agent behind two pipes: which data of a
//! trial is available, and the effect of a lost machine. Other tests cover SSH.

use std::collections::BTreeMap;
use std::path::Path;

use lab::{CaptureSpec, Environment, Failure, RealEnvironment, RemoteHosts, SliceSpec, Start};
use plan::Plan;
use record::{CaptureKind, SliceKind};

use crate::place::{Draft, Place, SERVICE, signal, wait_until};

const API: &str = "ssh://bench-1";
const DB: &str = "ssh://bench-2";

/// An api on one machine that needs a service on another.
fn experiment(place: &Place) {
    let directory = Path::new(SERVICE).parent().expect("it lies in a folder").display();
    let of = |host: &str| {
        format!(
            "directory = \"{directory}\"\nhost = \"{host}\"\n\
             env = {{ PORT = \"{{port}}\", HOST = \"{{address}}\", SPIN_MS = 1 }}"
        )
    };
    let (api, db) = (of(API), of(DB).replace(", SPIN_MS = 1", ""));
    let command = format!("[\"node\", \"{SERVICE}\"");
    place.experiment(&Draft {
        service: &format!(
            "{api}\ncommand = {command}, \"{{db.address}}:{{db.port}}\", \"{{{{{{db.port}}\"]\nneeds = [\"db\"]"
        ),
        more: &format!("[services.db]\n{db}\ncommand = {command}]\nready = \"/healthz\"\nready_timeout = \"20s\""),
        load: "timeout = \"5s\"",
        ..Draft::default()
    });
    let text = place.read("experiment.toml").replace("name = \"test\"", "name = \"test\"\nentry = \"api\"");
    place.write("experiment.toml", text);
}

/// An environment whose remote machines are programs on this one, and their numbers.
fn environment(place: &Place, plan: Plan) -> (RealEnvironment, BTreeMap<String, u32>) {
    let mut numbers = BTreeMap::new();
    let remote_hosts = RemoteHosts::open(&plan, &mut |host| {
        let channel = remote::here(host, place.proofload(&["remote-agent"]))?;
        numbers.insert(host.to_owned(), channel.process().expect("it is a child"));
        Ok((channel, Some("127.0.0.1".parse().expect("an address"))))
    });
    let remote_hosts = remote_hosts.expect("both are there");
    let environments = remote_hosts.environments();
    assert!(environments.values().all(|machine| machine.cpus > 0 && machine.runtimes.contains_key("node")));
    let mut environment = place.environment(plan);
    environment.remote_hosts = remote_hosts;
    (environment, numbers)
}

/// A complete environment, with both machines' numbers, after a trial has started.
fn started(
    place: &Place,
    capture: Option<u32>,
) -> (RealEnvironment, BTreeMap<String, u32>, record::TrialStarted) {
    experiment(place);
    let plan = plan::parse(&place.read("experiment.toml"), place.mark()).expect("a plan");
    let (mut environment, numbers) = environment(place, plan);
    let start = Start { block: 1, variant: 0, padding_bytes: 7, requests_seed: 1, capture, patience: None };
    let trial = environment.start(start).expect("it starts");
    (environment, numbers, trial)
}

#[test]
fn a_trial_on_two_other_machines_is_known_here_as_one_of_this_machine_is() {
    let place = Place::new();
    let (mut environment, _, trial) = started(&place, None);
    let hosts: Vec<Option<&str>> = trial.services.iter().map(|service| service.host.as_deref()).collect();
    assert_eq!(hosts, [Some(DB), Some(API)]);
    let api = &trial.services[1];
    assert!(api.processes[0].listens && api.processes[0].environment["SPIN_MS"] == "1", "{api:?}");
    let asked_for = format!("127.0.0.1:{} {{{}", trial.services[0].port, trial.services[0].port);
    assert!(api.processes[0].command.ends_with(&asked_for), "{api:?}");
    assert!(!api.cpus.is_empty() && !trial.cpus_shared && trial.witnesses[0].status == 200);

    let spec = SliceSpec { kind: SliceKind::Measured, until: lab::elapsed(0.3), open: None };
    let slice = environment.load(0, spec).expect("it is loaded");
    let cpu_ns = |name: &str| {
        let used = slice.services.iter().find(|used| used.service == name).expect("both are told");
        (used.cpu_ns, used.processes, used.run_delay_ns)
    };
    // A request spins for a millisecond of the clock: time taken by another process is time spent waiting for
    // a core.
    let (used, processes, waited) = cpu_ns("api");
    assert!(
        slice.counts.successful > 20 && used + waited > slice.counts.successful * 900_000 && processes == 1,
        "{slice:?}"
    );
    assert!(cpu_ns("db").0 < cpu_ns("api").0 / 4, "{slice:?}");
    let machines: Vec<&str> = slice.machine.hosts.keys().map(String::as_str).collect();
    assert_eq!(machines, [API, DB]);
    let there = &slice.machine.hosts[API];
    assert!(there.spin_ns.is_some() && there.tcp.is_none() && slice.machine.tcp.is_some(), "{there:?}");
    assert!(there.cpu_pressure_share.is_some() == slice.machine.cpu_pressure_share.is_some());

    let ended = environment.stop(0).expect("it lived");
    assert_eq!((ended.killed, ended.leftovers), (Vec::<String>::new(), Vec::<String>::new()));
    assert!(ended.peak_rss_bytes_by_service.values().all(|bytes| *bytes > 10_000_000));
    assert_eq!(ended.processes_by_service["api"].len(), 1);
    let logs = place.logs();
    let said = &logs["block-01-only-api.log"];
    let counted = said.lines().find_map(|line| line.strip_prefix("requests ")?.parse::<u64>().ok());
    assert_eq!(
        counted,
        Some(slice.counts.sent + 3),
        "two looks before the load, and one that accepts gzip: {said}"
    );
    assert!(logs["block-01-only-db.log"].starts_with("requests 0"), "{logs:?}");
    drop(environment);
    place.is_quiet();
}

#[test]
fn threads_of_services_elsewhere_are_captured_and_what_cannot_be_had_of_them_is_told() {
    let place = Place::new();
    let (mut environment, ..) = started(&place, Some(1));
    for (kind, said) in
        [(CaptureKind::Cpu, "no agent is loaded"), (CaptureKind::Native, "sampled here alone")]
    {
        let spec = CaptureSpec { round: 1, kind, seconds: 0.2, open: None };
        let capture = environment.capture(0, spec).expect("it is captured");
        assert!(capture.requests > 0 && capture.services.len() == 2, "{capture:?}");
        for service in &capture.services {
            assert!(service.missing.iter().any(|missing| missing.why.contains(said)), "{service:?}");
        }
        let api = &capture.services[1];
        let threads_ns: u64 = api.processes[0].threads.iter().map(|thread| thread.cpu_ns).sum();
        assert!(threads_ns.abs_diff(api.cpu_ns) < api.cpu_ns / 10 + 25_000_000, "{api:?}");
    }
    environment.stop(0).expect("it lived");
}

#[test]
fn a_machine_that_is_gone_is_named_with_its_services_and_nothing_stays() {
    let place = Place::new();
    let (mut environment, numbers, _) = started(&place, None);
    signal(numbers[API], "-KILL");
    let spec = SliceSpec { kind: SliceKind::Measured, until: lab::elapsed(0.1), open: None };
    let failure = environment.load(0, spec).expect_err("its machine is gone");
    let Failure::Service(said) = &failure else { panic!("{failure:?}") };
    assert!(said.starts_with("ssh://bench-1: the connection is lost"), "{said}");
    assert!(said.ends_with("service api, which ran there, ends by itself"), "{said}");
    let ended = environment.stop(0).expect("it lived");
    assert!(ended.leftovers.iter().any(|left| left.starts_with("it is unknown whether api has ended")));
    let logs: Vec<String> = place.logs().into_keys().collect();
    assert_eq!(logs, ["block-01-only-db.log"], "that of the machine that is still there");
    drop(environment);
    wait_until("nothing is left", || place.left_running().is_empty());
}

#[test]
fn a_plan_tells_where_services_run_and_other_commits_are_not_there() {
    let place = Place::new();
    experiment(&place);
    let check = ["run", "--dry-run", "experiment.toml", "--against", "main"];
    place.said(&check[..3]).ends(0).prints(&["starts db (on ssh://bench-2) → api (on ssh://bench-1)"]);
    place.said(&check).ends(2).tells(&["service db runs on ssh://bench-2", "a factor of `directory`"]);
}
