//! The tests of `sockets.rs` with the completion driver, where the kernel has one for us.

#[path = "sockets.rs"]
mod sockets;

use std::time::Duration;

use io_uring::IoUring;
use proofload_load::{Address, DriverChoice, Generator, LoadSpec, Request, Until};
use sockets::server::{Answer, Server, response};

fn spec(server: &Server, driver: DriverChoice) -> LoadSpec {
    let requests = vec![Request::new("GET", "/", &server.address.to_string())];
    LoadSpec {
        connections: 2,
        threads: 2,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        driver,
        ..LoadSpec::new(Address::Tcp(server.address), requests)
    }
}

fn driver_of_slice(choice: DriverChoice) -> String {
    let server = Server::start(|_| Answer::Keep(response(200, "hello")));
    let slice = Generator::start(spec(&server, choice)).unwrap().run(Until::Requests(10));
    assert_eq!((slice.successful, server.requests()), (10, 10));
    slice.generator.driver
}

#[test]
fn the_slice_names_the_driver_that_ran() {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun();
    let granted = builder.build(2).is_ok_and(|ring: IoUring| ring.params().is_feature_min_timeout());
    let expected = if granted { "completion" } else { "readiness" };
    assert_eq!(driver_of_slice(DriverChoice::Readiness), "readiness");
    assert_eq!(driver_of_slice(DriverChoice::Completion), expected);
    assert_eq!(driver_of_slice(DriverChoice::Auto), expected);
}

/// An armed receive holds its socket: giving up on it must end that too, or the service keeps connections nobody uses.
#[test]
fn what_is_given_up_is_closed_for_the_server_too() {
    let server = Server::start(|_| Answer::Hang(vec![]));
    let timeout = Duration::from_millis(50);
    let mut generator =
        Generator::start(LoadSpec { timeout, ..spec(&server, DriverChoice::Completion) }).unwrap();
    assert_eq!(generator.run(Until::Requests(2)).timed_out, 2);
    server.wait_for_closed(2);
    drop(generator);
}
