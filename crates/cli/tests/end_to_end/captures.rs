//! Windows that the real environment captures of real services, without a run: required contents of each kind
//! of window, for all launchers.

use std::fs;

use lab::{CaptureSpec, Environment, SliceSpec, Start};
use record::{AgentSeen, Capture, CaptureKind, CapturedService, SliceKind};

use crate::place::{Draft, Place, has_links};

const KINDS: [CaptureKind; 4] = [
    CaptureKind::Plain,
    CaptureKind::Counters,
    CaptureKind::Cpu,
    CaptureKind::Heap,
];

/// Captures of a trial of this service, one window of each kind.
fn captured(place: &Place, service: &str, load: &str) -> Vec<Capture> {
    let env = "env = { PORT = \"{port}\", HOST = \"{address}\", SPIN_MS = \"1\" }";
    let service = format!("{service}\n{env}");
    place.experiment(&Draft {
        service: &service,
        load,
        ..Draft::default()
    });
    let plan = plan::parse(&place.read("experiment.toml"), place.mark()).expect("a plan");
    let mut environment = place.environment(plan);
    let start = Start {
        block: 1,
        variant: 0,
        padding_bytes: 7,
        requests_seed: 1,
        capture: Some(1),
        patience: None,
    };
    environment.start(start).expect("it starts");
    let warm_up = SliceSpec {
        kind: SliceKind::WarmUp,
        until: lab::elapsed(0.3),
        open: None,
    };
    environment.load(0, warm_up).expect("it is warmed up");
    let spec = |kind| CaptureSpec {
        round: 1,
        kind,
        seconds: 0.6,
        open: None,
    };
    let mut captures: Vec<Capture> = KINDS
        .iter()
        .map(|kind| environment.capture(0, spec(*kind)).expect("it is captured"))
        .collect();
    match environment.capture(0, spec(CaptureKind::Native)) {
        Ok(capture) => captures.push(capture),
        // Not every kernel permits it.
        Err(why) => assert!(why.to_string().starts_with("no native stacks: "), "{why}"),
    }
    let ended = environment.stop(0).expect("it lived");
    assert_eq!(
        (ended.killed, ended.leftovers),
        (Vec::<String>::new(), Vec::<String>::new())
    );
    captures
}

fn is_agents(capture: &Capture) -> bool {
    !matches!(capture.kind, CaptureKind::Plain | CaptureKind::Native)
}

fn agents(service: &CapturedService) -> Vec<&AgentSeen> {
    service
        .processes
        .iter()
        .flat_map(|process| &process.agents)
        .collect()
}

/// Asserts the properties of a capture of Node.js processes, `serving` of which serve.
fn check(place: &Place, capture: &Capture, serving: usize) {
    let [service] = &capture.services[..] else {
        panic!("one service: {capture:?}")
    };
    assert!(
        // The kernel may report restrictions.
        (service.missing.is_empty() || capture.kind == CaptureKind::Native)
            && agents(service).iter().all(|agent| agent.failed.is_none()),
        "{service:?}"
    );
    assert!(
        capture.requests > 0
            && capture.errors == 0
            && capture.end_ns > capture.start_ns + 600_000_000
    );
    let threads_ns: u64 = service
        .processes
        .iter()
        .flat_map(|process| &process.threads)
        .map(|thread| thread.cpu_ns)
        .sum();
    let apart_ns = threads_ns.abs_diff(service.cpu_ns);
    assert!(
        apart_ns < service.cpu_ns / 10 + 25_000_000,
        "{threads_ns} ns by thread: {service:?}"
    );
    for process in service
        .processes
        .iter()
        .filter(|_| capture.kind == CaptureKind::Native)
    {
        let file = process
            .native
            .as_ref()
            .expect("each process has its stacks");
        let text = fs::read_to_string(place.record().join(&file.path)).expect("they are there");
        assert!(
            text.starts_with(&format!(r#"{{"version":1,"pid":{},"#, process.pid)),
            "{text:.200}"
        );
    }
    let workers: Vec<&AgentSeen> = agents(service)
        .into_iter()
        .filter(|agent| agent.role == "service" || agent.role == "worker")
        .collect();
    assert_eq!(workers.len(), serving, "{service:?}");
    let counted: Option<u64> = workers.iter().map(|agent| agent.requests).sum();
    let expected = is_agents(capture).then_some(capture.requests);
    assert_eq!(counted, expected, "every answer was counted by a worker");
    for agent in workers {
        assert!(
            agent.versions.contains_key("node") && agent.main.is_some(),
            "{agent:?}"
        );
        let is_counted = capture.kind == CaptureKind::Counters;
        assert_eq!(agent.counters.is_some(), is_counted, "{agent:?}");
        assert_eq!(
            agent.profile.is_some(),
            matches!(capture.kind, CaptureKind::Cpu | CaptureKind::Heap)
        );
        let Some(file) = &agent.profile else { continue };
        let bytes = fs::read(place.record().join(&file.path)).expect("the profile is there");
        assert_eq!(bytes.len() as u64, file.bytes);
        let profile: serde_json::Value = serde_json::from_slice(&bytes).expect("it is JSON");
        assert!(file.path.starts_with("profiles/round-1/"), "{file:?}");
        if capture.kind == CaptureKind::Cpu {
            // By one clock, so that it can be cut to the window.
            let at = |key: &str| profile[key].as_u64().expect("a time") * 1000;
            assert!(
                at("startTime") <= capture.start_ns && at("endTime") >= capture.end_ns,
                "{capture:?}"
            );
            assert!(
                profile["samples"]
                    .as_array()
                    .is_some_and(|samples| samples.len() > 10)
            );
        }
    }
}

#[test]
fn every_window_has_what_it_promises_of_one_process_and_of_a_cluster() {
    for (more, serving) in [("", 1), ("launcher = \"cluster\"\nworkers = 2", 2)] {
        let place = Place::new();
        for capture in captured(&place, more, "") {
            check(&place, &capture, serving);
        }
        let files = fs::read_dir(place.record().join("profiles/round-1"))
            .expect("a folder")
            .flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let own: Vec<String> = names
            .filter(|name| !name.ends_with(".native.json"))
            .collect();
        let expected = if serving == 1 { 2 } else { 6 };
        assert_eq!(
            own.len(),
            expected,
            "of each process one of each kind, and nothing beside them: {own:?}"
        );
    }
}

#[test]
fn what_lies_behind_a_link_is_captured_as_well() {
    if !has_links() {
        return;
    }
    let place = Place::new();
    for capture in captured(&place, "", "network = { rate = \"1gbit\" }") {
        check(&place, &capture, 1);
    }
}
