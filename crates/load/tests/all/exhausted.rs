//! Exhausted resources: local ports and open files.

use std::process::Command;
use std::time::Duration;

use model::{Cause, OsError, Phase};
use proofload_load::{DriverChoice, Generator, Until};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::network::{Host, with_hosts};
use crate::server::{self, Server};
use crate::{Load, LoadSpec, attempts_max, only, spec};

#[test]
fn local_ports_that_run_out_leave_the_rest_running() {
    const PORTS: u32 = 16;
    with_hosts(
        "local_ports_that_run_out_leave_the_rest_running",
        |driver| {
            let host = Host::new();
            host.set_ipv4("ip_local_port_range", "40000 40015");
            let listener = host
                .run(|| std::net::TcpListener::bind("127.0.0.1:80"))
                .unwrap();
            let peer = Server::well(listener);
            let connect_timeout = Duration::from_millis(150);
            host.run(|| {
                let mut load = Load::start(LoadSpec {
                    connect_timeout,
                    ..spec(peer.address, 20, driver)
                });
                let few = load.run(Until::Elapsed(Duration::from_millis(150)));
                assert_eq!(
                    (few.connections_alive_at_start, few.connections_alive),
                    (PORTS, PORTS),
                    "{few:?}"
                );
                let missing = only(&few, Phase::Connect, Cause::AddressExhausted);
                let most = 4 * attempts_max(load.took);
                assert!(
                    (8..=most).contains(&missing),
                    "{missing} attempts, at most {most}"
                );
                assert_eq!(
                    (few.sent, few.connections_opened),
                    (few.successful, PORTS.into())
                );
                assert!(few.successful >= PORTS.into(), "{few:?}");

                host.set_ipv4("ip_local_port_range", "40000 40099");
                let well = load.well(100);
                assert_eq!(
                    (well.connections_alive_at_start, well.connections_opened),
                    (20, 4)
                );
                assert_eq!(peer.requests(), few.successful + 100);
            });
        },
    );
}

/// The limit of open files applies to the whole process, which also runs other tests.
#[test]
fn open_files_that_run_out_leave_the_rest_running() {
    let peer = Server::well(server::listen());
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "exhausted::with_few_files",
            "--ignored",
            "--test-threads=1",
        ])
        .env("PROOFLOAD_TEST_PEER", peer.address.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
#[ignore = "it is run by open_files_that_run_out_leave_the_rest_running, in a process of its own"]
fn with_few_files() {
    let Ok(address) = std::env::var("PROOFLOAD_TEST_PEER") else {
        return;
    };
    let address = address.parse().unwrap();
    let connect_timeout = Duration::from_millis(100);
    for driver in [DriverChoice::Readiness, DriverChoice::Completion] {
        let limits = LoadSpec {
            connect_timeout,
            ..spec(address, 8, driver)
        };
        let mut load = Load::start(limits.clone());
        let Rlimit {
            current: soft,
            maximum: hard,
        } = getrlimit(Resource::Nofile);
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(open + 4),
                maximum: hard,
            },
        )
        .unwrap();
        let few = load.run(Until::Elapsed(Duration::from_millis(100)));
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: soft,
                maximum: hard,
            },
        )
        .unwrap();
        let missing = only(
            &few,
            Phase::Connect,
            Cause::OsError(OsError(Errno::MFILE.raw_os_error())),
        );
        assert!((1..8).contains(&few.connections_alive_at_start), "{few:?}");
        assert!(few.successful > 0 && few.sent == few.successful, "{few:?}");
        assert!(
            (2..=7 * attempts_max(load.took)).contains(&missing),
            "{missing} attempts"
        );

        assert_eq!(load.well(40).connections_alive_at_start, 8);
    }
    // At the start everything is known in advance. The soft limit is raised if that is enough, otherwise an
    // error results.
    let files = |current, maximum| {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(current),
                maximum: Some(maximum),
            },
        )
    };
    files(40, 100).unwrap();
    let mut load = Load::start(spec(address, 20, DriverChoice::Auto));
    let _ = load.well(40);
    drop(load);
    let refused = Generator::start(spec(address, 200, DriverChoice::Auto))
        .unwrap_err()
        .to_string();
    let needed = refused
        .strip_suffix(" open files are needed, the limit of this process is 100 (ulimit -n)");
    assert!(
        needed.is_some_and(|needed| needed.parse::<u64>().unwrap() > 200),
        "{refused}"
    );
}
