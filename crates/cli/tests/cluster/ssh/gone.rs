//! Proofload is killed in the middle of a window: nothing of it stays, neither there nor here.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use load::Until;

use super::{generator, own};
use crate::hosts::{CONTROLLER, Hosts, command_line};
use crate::server::Server;
use crate::{begun, within};

/// Where the one that will be killed finds what to do.
const SERVER: &str = "PROOFLOAD_TEST_SERVER";

/// Not a test by itself: what the next one starts in a process of its own.
#[test]
#[ignore = "started by another test"]
fn loads_until_it_is_killed() {
    let Ok(address) = std::env::var(SERVER) else { return };
    let channel = generator("h1", &own()).expect("h1 is reached").0;
    let request = load::Request::new("GET", "/", &address);
    let address = load::Address::Tcp(address.parse().expect("an address"));
    let spec = load::LoadSpec { connections: 4, ..load::LoadSpec::new(address, vec![request]) };
    let mut fleet = begun(vec![channel], vec![spec]);
    let _ = writeln!(std::io::stdout(), "\nit loads");
    fleet.run(Until::Elapsed(Duration::from_secs(60)), &|| false);
}

#[test]
#[ignore = "wants hosts of its own: make test-cluster"]
fn nothing_stays_of_a_proofload_that_is_killed() {
    let Some(hosts) = Hosts::up(1) else { return };
    let mark = hosts.path("").display().to_string();
    let (server, mut killed) = hosts.within(|| {
        let server = Server::start(CONTROLLER);
        let killed = Command::new(std::env::current_exe().expect("this test"))
            .args(["ssh::gone::loads_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
            .env(SERVER, server.address.to_string())
            .env("PROOFLOAD_TEST_PLACE", &mark)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        (server, killed)
    });
    let said = BufReader::new(killed.stdout.take().expect("it has a stdout"));
    assert!(said.lines().map_while(Result::ok).any(|line| line == "it loads"), "it ended before it loaded");
    assert!(within(Duration::from_secs(5), || server.requests() > 100), "it does not load");
    killed.kill().expect("it is there");
    killed.wait().expect("it ends");
    hosts.is_quiet(1);
    let last = server.requests();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.requests(), last, "it still loads");
    assert!(within(Duration::from_secs(5), || marked(&mark).is_empty()), "here: {:?}", marked(&mark));
}

/// Processes here that carry this mark.
fn marked(mark: &str) -> Vec<String> {
    let mark = format!("PROOFLOAD_TEST_PLACE={mark}\0");
    let all = fs::read_dir("/proc").expect("/proc is there").flatten();
    let ours = all.filter(|entry| {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|window| window == mark.as_bytes())
    });
    ours.map(|entry| command_line(&entry.path().join("cmdline"))).collect()
}
