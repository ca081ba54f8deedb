//! Services on another machine, played by a program of our own at the other end of two pipes: what is known of them, how they end, and
//! what becomes of them when nobody is there any more.

extern crate services as proofload_services;

#[path = "../../services/tests/services/stage.rs"]
#[allow(dead_code)]
mod stage;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use plan::{Ready, Service};
use proofload_remote::generators::Fleet;
use proofload_remote::protocol::VERSION;
use proofload_remote::services::{First, RemoteHost, RemoteService, ServiceHandle};
use proofload_remote::{Channel, here};
use services::{Blame, Error, Exit, Listening};

use crate::stage::{LOOPBACK, PATIENCE, Stage, get, of, scratch_folders, signal, wait_until, with_env};

/// A program that is an agent or a warden.
const WARDEN: &str = env!("CARGO_BIN_EXE_proofload-remote-agent");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/tests/fixtures");
const HOST: &str = "ssh://there";
/// Services whose agent dies are gone in this time, on a busy machine too.
const SOON: Duration = Duration::from_secs(10);

fn agent(timeout_ms: u64) -> Command {
    let mut command = Command::new(WARDEN);
    command.args(["agent", &timeout_ms.to_string()]);
    command
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

fn opened(command: Command, services: &[&Service]) -> Result<(Arc<RemoteHost>, u32), Error> {
    let channel = here(HOST, command)?;
    let pid = channel.process().expect("it is a child");
    Ok((Arc::new(RemoteHost::open(channel, services)?), pid))
}

/// An agent for these services, and the number of its process.
fn there(services: &[&Service]) -> (Arc<RemoteHost>, u32) {
    opened(agent(60_000), services).unwrap()
}

fn start(stage: &Stage, host: &Arc<RemoteHost>, service: &Service) -> Result<RemoteService, Error> {
    // Tests run side by side: each searches from another port on.
    let folder = stage.folder.path().to_string_lossy().into_owned();
    let random = folder.bytes().fold(5, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte));
    let ports = host.choose(std::slice::from_ref(service), LOOPBACK, random)?;
    RemoteService::start(host, service, &ports, &stage.placement(), &|| false)
}

#[test]
fn a_service_elsewhere_tells_what_one_here_tells_and_its_log_comes_back() {
    let stage = Stage::new();
    let mut service = stage.shell("echo \"hello from $AT\"; exec node server.js");
    of(&mut service).env.insert("AT".to_owned(), "{api.address}:{port} {scratch}".to_owned());
    let (host, _) = there(&[&service]);
    assert_eq!((host.name(), host.begun.about.as_u64()), (HOST, Some(1)));
    let remote = start(&stage, &host, &service).unwrap();
    let (pid, address) = (remote.started.pid, remote.address);
    let mut handle = ServiceHandle::There(Box::new(remote));
    assert_eq!((handle.name(), handle.host(), handle.workers()), ("api", Some(HOST), None));

    // One that nobody waits for is not taken for the answer to the next question.
    drop(host.view(First::Services, false).unwrap());
    let before = host.view(First::Services, true).unwrap().finish().unwrap();
    for _ in 0..20 {
        get(address, "/burn/5");
    }
    let after = host.view(First::Machine, false).unwrap().finish().unwrap();
    let cpu_ns = after.services[0].sample.cpu_ns - before.services[0].sample.cpu_ns;
    assert!((90_000_000..5_000_000_000).contains(&cpu_ns), "20 requests of 5 ms took {cpu_ns} ns");
    assert!(before.spin_ns.is_some() && after.spin_ns.is_none());
    let opened = before.tcp.zip(after.tcp).map(|(before, after)| before.until(&after).opened);
    assert!(opened.is_some_and(|opened| opened >= 20), "{after:?}");
    let machine = before.machine.until(&after.machine, 0);
    assert!(machine.strangers_cpu_ns + 50_000_000 >= cpu_ns, "what nobody owns up to: {machine:?}");

    let sight = handle.sight(&["STAGE"]).unwrap();
    assert_eq!((sight.listening, sight.listeners.as_slice()), (Listening::Ours, [pid].as_slice()));
    assert!(sight.processes[0].marked && sight.processes[0].environ.contains_key("STAGE"));
    assert!(handle.threads().unwrap()[0].threads.len() > 1);
    assert!(handle.peak_memory().unwrap() > 10_000_000);
    assert_eq!((handle.workers_lost().unwrap(), handle.exited()), (0, None));
    assert!(handle.sample().unwrap().cpu_ns >= after.services[0].sample.cpu_ns);
    assert!(!stage.path("log").exists(), "its log is there and nowhere else");

    let stopped = handle.stop();
    assert_eq!((stopped.exit, stopped.killed), (Some(Exit::Signal(libc::SIGTERM)), 0));
    let log = fs::read_to_string(stage.path("log")).unwrap();
    assert!(log.starts_with(&format!("hello from {address} /")), "{log}");
    assert!(stage.alive().is_empty());
}

#[test]
fn why_a_service_does_not_start_there_is_told_with_all_that_it_said() {
    let stage = Stage::new();
    let service = stage.shell("echo no such table; printf '\\377'; exit 3");
    let (host, _) = there(&[&service]);
    let error = start(&stage, &host, &service).unwrap_err();
    let why = "on ssh://there: service api ended with status 3 after ";
    assert!(error.to_string().starts_with(why), "{error}");
    assert!(error.tail().unwrap().starts_with("no such table"), "{error:?}");
    assert_eq!(fs::read(stage.path("log")).unwrap(), b"no such table\n\xff");
    let error = start(&stage, &host, &stage.service(&["no-such-program"])).unwrap_err();
    assert!(error.to_string().ends_with("service api: command not found: no-such-program"), "{error}");
    assert!(error.hint().unwrap().contains("env.PATH"), "{error:?}");
    // The agent is still there.
    start(&stage, &host, &stage.service(&["node", "server.js"])).unwrap();
}

#[test]
fn what_cannot_be_there_is_told_before_anything_starts() {
    let stage = Stage::new();
    let service = |directory: &str, address: Option<&str>| {
        let mut service = stage.service(&["true"]);
        of(&mut service).directory = directory.into();
        of(&mut service).address = address.map(|address| address.parse().unwrap());
        service
    };
    let refused = |service: Service| opened(agent(60_000), &[&service]).unwrap_err();
    let error = refused(service("/no/such/folder", None));
    assert_eq!(error.to_string(), "on ssh://there: service api: no such directory: /no/such/folder");
    assert!(error.hint().unwrap().contains("that host"), "{error:?}");
    // An address for documentation (RFC 5737) is no machine's.
    let error = refused(service("/", Some("192.0.2.7")));
    assert!(error.to_string().ends_with("192.0.2.7 is no address of the machine that it runs on"), "{error}");
    let home = service("~", None);
    opened(agent(60_000), &[&home]).unwrap();
}

#[test]
fn ports_are_chosen_where_they_are_needed() {
    let stage = Stage::new();
    let service = stage.service(&["node", "server.js"]);
    let (host, _) = there(&[&service]);
    let first = start(&stage, &host, &service).unwrap();
    let second = start(&stage, &host, &service).unwrap();
    assert_ne!(first.address.port(), second.address.port(), "the same search, and one is taken");
    let mut fixed = service.clone();
    of(&mut fixed).port = Some(first.address.port());
    let error = host.choose(&[fixed], LOOPBACK, 0).unwrap_err();
    let owner = format!("is taken by node server.js (pid {})", first.started.pid);
    assert!(error.to_string().starts_with("on ssh://there: service api: port "), "{error}");
    assert!(error.to_string().ends_with(&owner), "{error}");
}

#[test]
fn a_service_that_ended_there_is_seen_at_the_next_look() {
    let stage = Stage::new();
    let service = stage.shell("echo out of luck; exec node server.js");
    let (host, _) = there(&[&service]);
    let mut remote = start(&stage, &host, &service).unwrap();
    signal(remote.started.pid, libc::SIGKILL);
    let ended = || {
        let view = host.view(First::Machine, false).unwrap().finish().unwrap();
        view.services.into_iter().find(|seen| seen.exited.is_some())
    };
    assert!(wait_until(PATIENCE, || ended().is_some()));
    remote.update(&ended().unwrap());
    let (exit, tail) = remote.exited.clone().unwrap();
    assert_eq!((exit, tail.as_str()), (Exit::Signal(libc::SIGKILL), "out of luck"));
}

#[test]
fn a_start_there_can_be_cancelled() {
    let stage = Stage::new();
    let mut service = with_env(stage.service(&["node", "server.js"]), &[("SILENT", "1")]);
    service.ready = Ready::Http("/".to_owned());
    let (host, _) = there(&[&service]);
    let ports = host.choose(std::slice::from_ref(&service), LOOPBACK, 777_777).unwrap();
    let is_up = || !stage.alive().is_empty();
    let error = RemoteService::start(&host, &service, &ports, &stage.placement(), &is_up).unwrap_err();
    assert_eq!(*error.blame(), Blame::Cancelled, "{error}");
    assert!(stage.alive().is_empty());
    // The wish was for that start alone.
    of(&mut service).env.remove("SILENT");
    start(&stage, &host, &service).unwrap();
}

/// A service with a daemon and a folder of its own.
fn family(stage: &Stage) -> Service {
    with_env(stage.shell("(setsid sleep 600 &); exec node server.js"), &[("OWN_FOLDER", "{scratch}")])
}

#[test]
fn the_agent_may_be_killed_and_nothing_stays() {
    let stage = Stage::new();
    let service = family(&stage);
    let (host, pid) = there(&[&service]);
    let remote = start(&stage, &host, &service).unwrap();
    assert!(wait_until(PATIENCE, || stage.alive().len() == 2));
    signal(pid, libc::SIGKILL);
    assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
    assert!(wait_until(SOON, || scratch_folders(pid).is_empty()), "{:?}", scratch_folders(pid));
    let handle = ServiceHandle::There(Box::new(remote));
    let error = handle.sight(&[]).unwrap_err();
    assert!(error.to_string().starts_with("ssh://there: the connection is lost"), "{error}");
    let Err(error) = host.view(First::Machine, false).and_then(|viewing| viewing.finish()) else {
        panic!("nobody can have seen anything")
    };
    assert_eq!(*error.blame(), Blame::Lost(HOST.to_owned()), "{error}");
    // Nobody can know, so nobody says that all is well.
    let stopped = handle.stop();
    assert!(stopped.exit.is_none(), "{stopped:?}");
    assert!(stopped.leftovers[0].description.contains("ssh://there"), "{stopped:?}");
}

#[test]
fn a_connection_that_closes_or_says_nothing_any_more_ends_everything_there() {
    for timeout_ms in [60_000, 700] {
        let stage = Stage::new();
        let service = family(&stage);
        let Channel { mut input, output, keeper, .. } = here(HOST, agent(timeout_ms)).unwrap();
        let mut output = BufReader::new(output);
        let mut answer = |order: &serde_json::Value| {
            writeln!(input, "{order}").unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            serde_json::from_str::<serde_json::Value>(&line).unwrap()
        };
        let service = serde_json::to_value(&service).unwrap();
        // Whoever comes with another version learns which one is spoken here.
        let ready = answer(&serde_json::json!({ "hello": { "version": VERSION + 1, "more": [1] } }));
        assert_eq!(ready["ready"]["version"], VERSION, "{ready}");
        let begun = answer(&serde_json::json!({ "services": { "begin": { "services": [service] } } }));
        assert_eq!(begun["services"]["begun"]["about"], 1, "{begun}");
        let chosen = answer(&serde_json::json!({ "services": {
            "choose": { "services": [service], "address": "127.0.0.1", "random": 9000 + timeout_ms }
        } }));
        let mut order = serde_json::json!({ "services": { "start": {
            "number": 1, "service": service, "address": "127.0.0.1", "addresses": {}, "padding_bytes": 0, "group": true, "values": {}
        } } });
        order["services"]["start"]["ready_response"] =
            serde_json::to_value(plan::ReadyResponse::default()).unwrap();
        order["services"]["start"]["ports"] = chosen["services"]["chosen"]["ports"].clone();
        if timeout_ms == 700 {
            // The start itself may take longer than the silence that is allowed.
            let told = answer(&order);
            let started = told["services"]["started"].is_object();
            assert!(started || told["failed"]["blame"] == "cancelled", "{told}");
            assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
        } else {
            let started = answer(&order);
            assert!(started["services"]["started"]["pid"].is_u64(), "{started}");
            assert!(wait_until(PATIENCE, || stage.alive().len() == 2));
        }
        drop(input);
        assert!(stage.wait_until_empty(SOON), "{:?}", stage.alive());
        drop(keeper);
    }
}

#[test]
fn dropping_all_that_is_held_of_a_machine_ends_what_runs_there() {
    let stage = Stage::new();
    let service = family(&stage);
    let (host, pid) = there(&[&service]);
    let remote = start(&stage, &host, &service).unwrap();
    drop(host);
    drop(remote);
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    assert_eq!(scratch_folders(pid), [] as [&str; 0]);
}

#[test]
fn another_program_or_another_version_at_the_other_end_is_told() {
    let lost = |script: &str| opened(shell(script), &[]).unwrap_err().to_string();
    let banner = lost("echo 'Welcome to bench-1!'; cat >/dev/null");
    assert!(banner.contains("\"Welcome to bench-1!\""), "{banner}");
    assert!(lost("exit 1").starts_with("ssh://there: the connection is lost"));
    // A real agent, whose version is another one on its way.
    let other = VERSION + 1;
    let script = format!(
        r#"{WARDEN} agent | sed -u 's/"version":{VERSION},"proofload":"[^"]*/"version":{other},"proofload":"9.9/'"#
    );
    let fleet = Fleet::connect(vec![here(HOST, shell(&script)).unwrap()]);
    for said in [lost(&script), fleet.unwrap_err()[0].to_string()] {
        let versions = format!(
            "{HOST}: it speaks version {other} of the protocol (Proofload 9.9), and this is version {VERSION} ("
        );
        assert!(said.contains(&versions) && said.contains("have the same Proofload at both ends"), "{said}");
    }
}
