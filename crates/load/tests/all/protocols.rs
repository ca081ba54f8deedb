//! Servers that cannot be reached the way that was asked for, or say nothing: what is counted.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use model::{Cause, OsError, Phase};
use proofload_load::{Address, DriverChoice, LoadSpec, Protocol, Tls, Trust, Until};

use crate::{Load, only, server, spec};

#[test]
fn a_handshake_without_an_answer_is_given_up_each_time() {
    // The kernel accepts for whoever listens; nobody reads.
    let listener = server::listen();
    let limits = LoadSpec {
        timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(200),
        ..spec(listener.local_addr().unwrap(), 2, DriverChoice::Auto)
    };
    let tls = Some(Tls { server_name: "proofload.test".into(), trust: Trust::Anything, resumption: true });
    let secure = LoadSpec { tls, ..limits.clone() };
    for (spec, phase) in [
        (secure.clone(), Phase::Tls),
        (LoadSpec { protocol: Protocol::Http2 { streams: 4 }, ..limits }, Phase::Connect),
        (LoadSpec { keep_alive: false, ..secure }, Phase::Tls),
    ] {
        let fresh = !spec.keep_alive;
        let slice = Load::start(spec).generator.run(Until::Requests(4));
        let timeouts = only(&slice, phase, Cause::Timeout);
        assert!((2..=8).contains(&timeouts), "{phase} {timeouts}");
        assert_eq!((slice.sent, slice.timed_out), if fresh { (4, 4) } else { (0, 0) });
    }
}

#[test]
fn a_socket_that_is_none_is_counted() {
    const ENOENT: i32 = 2;
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join("left")).unwrap());
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (name, cause) in
        [("missing", Cause::OsError(OsError(ENOENT))), ("left", Cause::Refused), ("file", Cause::Refused)]
    {
        let address = Address::Unix(folder.path().join(name));
        let nowhere = spec(([127, 0, 0, 1], 1).into(), 2, DriverChoice::Auto);
        let spec = LoadSpec { address, connect_timeout: Duration::from_millis(200), ..nowhere };
        assert!(only(&Load::start(spec).run(Until::Requests(4)), Phase::Connect, cause) >= 2, "{name}");
    }
}
