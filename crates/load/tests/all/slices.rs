//! Slices against a server that counts: in fault-free runs it has read as many requests as the engine reports
//! as sent. Invalid specs are rejected.

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use model::{Cause, Phase};
use proofload_load::{
    Address, ArrivalProcess, Arrivals, DriverChoice, Generator, LoadError, LoadSpec, Protocol,
    Rate, RequestSpec, TlsSpec, Trust, Until, grants_completion,
};

use crate::server::{Response, Server, listen, read_request, response};
use crate::{Load, errors, for_both_drivers, only, spec};

#[test]
fn one_hung_request_is_the_tail_and_not_forgotten() {
    for_both_drivers(|driver| {
        let server = Server::start(|n| match n {
            50 => Response::Hang(b"HTTP/1.1 200 OK\r\n".into()),
            _ => Response::Keep(response(200, "")),
        });
        let timeout = Duration::from_secs(1);
        let slice = Load::start(LoadSpec {
            timeout,
            ..spec(server.address, 1, driver)
        })
        .run(Until::Requests(100));
        assert_eq!(
            (slice.successful, only(&slice, Phase::Head, Cause::Timeout)),
            (99, 1)
        );
        assert!(slice.latency.quantile(0.9).unwrap().is_exact());
        assert!(!slice.latency.quantile(1.0).unwrap().is_exact());
        assert_eq!((slice.connections_opened, slice.reconnects), (2, 1));
        // An armed receive holds its socket. Closing must end it too, otherwise the service keeps unused
        // connections.
        server.wait_for_closed(1);
    });
}

#[test]
fn an_interrupt_ends_the_slice_and_leaves_nothing_out() {
    let open = Arrivals::Open {
        rate: Rate::Constant(1000.0),
        process: ArrivalProcess::Constant,
        seed: 1,
    };
    for_both_drivers(|driver| {
        for arrivals in [Arrivals::Closed, open] {
            let server = Server::start(|_| Response::Hang(vec![]));
            let mut load = Load::start(LoadSpec {
                arrivals,
                ..spec(server.address, 3, driver)
            });
            let interrupt = load.generator.handle();
            let stopper = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                interrupt.stop();
            });
            let slice = load.run(Until::Elapsed(Duration::from_secs(3600)));
            stopper.join().unwrap();
            assert_eq!(
                (slice.sent, slice.unfinished, slice.latency.censored()),
                (3, 3, 3)
            );
            // In open loop, requests due until then are counted: one per millisecond, and none after the end.
            let due = if slice.open.is_some() {
                slice.window_ns.div_ceil(1_000_000)
            } else {
                3
            };
            assert_eq!(slice.due(), due);
            let later = load.run(Until::Elapsed(Duration::from_secs(3600)));
            assert!(later.sent <= 1, "later slices end at once: {later:?}");
        }
    });
}

/// The second response arrives while the next one is expected, and is mistaken for it, except after the last
/// request.
#[test]
fn a_second_response_to_each_request_is_seen_at_the_end_of_the_slice() {
    for_both_drivers(|driver| {
        for (pipeline, until) in [
            (1, Until::Requests(8)),
            (4, Until::Requests(8)),
            (1, Until::Elapsed(Duration::from_millis(120))),
        ] {
            let server = Server::faulty(listen(), |mut stream| {
                while read_request(&mut stream) {
                    stream.write_all(&response(200, "ok")).unwrap();
                    std::thread::sleep(Duration::from_millis(5));
                    if stream.write_all(&response(200, "ok")).is_err() {
                        return;
                    }
                }
            });
            let protocol = Protocol::Http1 { pipeline };
            let slice = Load::start(LoadSpec {
                protocol,
                ..spec(server.address, 1, driver)
            })
            .run(until);
            assert_eq!(slice.successful, slice.sent);
            assert_eq!(
                errors(&slice),
                [(Phase::Idle, Cause::Malformed, 1)],
                "{pipeline} {until:?}"
            );
        }
    });
}

/// As Apache and HAProxy do.
#[test]
fn a_farewell_to_an_idle_connection_is_its_end() {
    for_both_drivers(|driver| {
        let server = Server::faulty(listen(), |mut stream| {
            read_request(&mut stream);
            stream.write_all(&response(200, "ok")).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            stream.write_all(&response(408, "late")).unwrap();
        });
        let slice = Load::start(spec(server.address, 1, driver)).run(Until::Requests(1));
        assert_eq!(
            (slice.successful, errors(&slice)),
            (1, vec![(Phase::Idle, Cause::Closed, 1)])
        );
    });
}

/// At a rate, with several threads, constant, Poisson and on a ramp that restarts with every slice: all due
/// requests are sent.
#[test]
fn every_arrival_of_every_thread_is_sent_and_answered() {
    let over = Duration::from_millis(250);
    let ramp = Rate::Ramp {
        from_per_s: 0.0,
        to_per_s: 4000.0,
        over,
    };
    for_both_drivers(|driver| {
        let server = Server::start(|_| Response::Keep(response(200, "hello")));
        for (process, rate, threads) in [
            (ArrivalProcess::Constant, Rate::Constant(2000.0), 3),
            (ArrivalProcess::Poisson, Rate::Constant(2000.0), 2),
            (ArrivalProcess::Constant, ramp, 2),
        ] {
            let before = server.requests();
            let arrivals = Arrivals::Open {
                rate,
                process,
                seed: 1,
            };
            let mut load = Load::start(LoadSpec {
                arrivals,
                threads,
                ..spec(server.address, 7, driver)
            });
            let counted = load.run(Until::Requests(301));
            assert_eq!(
                (counted.sent, counted.successful_in_window, counted.due()),
                (301, 301, 301)
            );
            // The last one is due at (301 − 1) / 2000 s, and later on the ramp.
            assert!(process == ArrivalProcess::Poisson || counted.window_ns >= 150_000_000);
            let timed = load.run(Until::Elapsed(over));
            let is_completion = driver == DriverChoice::Completion && grants_completion().is_ok();
            assert_eq!(
                timed.generator.driver,
                if is_completion {
                    "completion"
                } else {
                    "readiness"
                }
            );
            assert_eq!(timed.successful, timed.due());
            assert!(
                process == ArrivalProcess::Poisson || timed.due() == 500,
                "{} were due",
                timed.due()
            );
            assert_eq!(server.requests() - before, counted.sent + timed.sent);
        }
    });
}

#[test]
fn what_cannot_be_is_refused_before_it_starts() {
    let v4: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let base = spec(v4, 2, DriverChoice::Auto);
    let from = |source: &str| LoadSpec {
        sources: vec![source.parse().unwrap()],
        ..base.clone()
    };
    let path = |bytes: usize| {
        let path = PathBuf::from("/".to_string() + &"x".repeat(bytes - 1));
        LoadSpec {
            address: Address::Unix(path),
            ..base.clone()
        }
    };
    let speaking = |protocol| LoadSpec {
        protocol,
        ..base.clone()
    };
    let http2 = Protocol::Http2 { streams: 4 };
    let at = |rate| {
        let arrivals = Arrivals::Open {
            rate,
            process: ArrivalProcess::Constant,
            seed: 1,
        };
        LoadSpec {
            arrivals,
            ..base.clone()
        }
    };
    let ramp = |from_per_s, to_per_s, over_s| {
        let over = Duration::from_secs(over_s);
        Rate::Ramp {
            from_per_s,
            to_per_s,
            over,
        }
    };
    let v6 = vec![IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let nameless = vec![RequestSpec::new("GET", "/", "")];
    let trust = Trust::Authorities(b"nothing".to_vec());
    let nonsense = TlsSpec {
        server_name: "a".into(),
        trust,
        resumption: true,
        client: None,
    };
    for spec in [
        from("127.0.0.9"),
        path(107),
        speaking(Protocol::Http1 { pipeline: 1000 }),
    ] {
        assert!(Generator::start(spec).is_ok());
    }
    for (spec, field, said) in [
        // RFC 5737: reserved for documentation.
        (from("192.0.2.1"), "load.sources", "192.0.2.1"),
        (
            LoadSpec {
                sources: v6,
                ..base.clone()
            },
            "load.sources",
            "IPv6",
        ),
        (path(108), "load.address", "108 bytes, at most 107"),
        (
            LoadSpec {
                threads: 3,
                ..base.clone()
            },
            "load.threads",
            "3 threads for 2 connections",
        ),
        (
            speaking(Protocol::Http1 { pipeline: 0 }),
            "load.pipeline",
            "0 requests",
        ),
        (
            speaking(Protocol::Http2 { streams: 1001 }),
            "load.streams",
            "1001 streams",
        ),
        (
            LoadSpec {
                requests: nameless,
                ..speaking(http2)
            },
            "load.requests",
            "needs a host",
        ),
        (
            LoadSpec {
                tls: Some(nonsense),
                ..base.clone()
            },
            "load.tls.trust",
            "PEM",
        ),
        (at(Rate::Constant(0.0)), "load.rate", "0 requests"),
        (at(Rate::Constant(f64::NAN)), "load.rate", "NaN requests"),
        (at(Rate::Constant(1e8)), "load.rate", "100000000 requests"),
        (at(ramp(0.0, 0.0, 1)), "load.rate", "a ramp from 0 to 0"),
        (at(ramp(-1.0, 5.0, 1)), "load.rate", "-1 requests"),
        (at(ramp(5.0, f64::INFINITY, 1)), "load.rate", "inf requests"),
        (at(ramp(1.0, 5.0, 0)), "load.rate", "over no time"),
    ] {
        match Generator::start(spec) {
            Err(LoadError::Spec {
                field: refused,
                problem,
            }) => {
                assert!(
                    refused == field && problem.contains(said),
                    "{refused}: {problem}"
                );
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    let many = Generator::start(LoadSpec {
        connections: u32::MAX,
        ..base.clone()
    })
    .unwrap_err();
    assert!(many.to_string().contains("open files are needed"), "{many}");
    let pin = Generator::start(LoadSpec {
        cpus: vec![1000],
        ..base
    })
    .unwrap_err();
    assert!(
        pin.to_string()
            .starts_with("cannot pin a load thread to CPU 1000"),
        "{pin}"
    );
}

/// If a service still has to accept a thousand connections, its first responses are late, which is not its
/// fault.
#[test]
fn a_schedule_begins_when_a_service_has_had_time_to_accept_its_connections() {
    for_both_drivers(|driver| {
        let server = Server::start(|_| Response::Keep(response(200, "")));
        let rate = Rate::Constant(1000.0);
        let arrivals = Arrivals::Open {
            rate,
            process: ArrivalProcess::Constant,
            seed: 1,
        };
        let mut load = Load::start(LoadSpec {
            arrivals,
            ..spec(server.address, 200, driver)
        });
        let [first, second] = [(); 2].map(|()| {
            let _ = load.run(Until::Requests(1));
            load.took
        });
        assert!(
            first >= Duration::from_millis(50) && second < first,
            "{first:?}, then {second:?}"
        );
    });
}
