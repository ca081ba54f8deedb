//! Effects of machine and network are found if they are planted in a sound record, and nowhere else.

use plan::{Protocol, Service};
use proofload_analysis::Grade::{self, Invalid, Warning};
use proofload_analysis::conclude;
use record::{Cause, ErrorCount, Phase, Record, Slice, SliceKind, TcpUse, Witness};

use crate::given::{
    Plant, all, each, each_is_found, evidence, found, service, slices, slices_of, sound, trials,
};

/// TCP counters of a slice, created if missing.
fn tcp(slice: &mut Slice) -> &mut TcpUse {
    let nothing = TcpUse {
        local_ports: 28_232,
        ..TcpUse::default()
    };
    slice.machine.tcp.get_or_insert(nothing)
}

/// Puts a proxy in front of the service of variant 1.
fn proxied(record: &mut Record) {
    let proxy = Service {
        needs: vec!["api".into()],
        ..service("proxy", &["node"], &[])
    };
    record.header.plan.variants[1].services = vec![service("api", &["node"], &[]), proxy];
}

/// Uses ten streams on each connection.
fn streams(record: &mut Record) {
    let variants = record.header.plan.variants.iter_mut();
    variants.for_each(|variant| variant.load.protocol = Protocol::Http2 { streams: 10 });
    all(record, |slice| {
        slice.counts.in_flight_ns = slice.counts.window_ns * 32 * 10
    });
}

/// Sets the duration of the arithmetic probe in each block, in µs, with longer ones now and then.
fn spin(record: &mut Record, us: impl Fn(u32) -> u64) {
    for (probe, slice) in (1..).zip(slices(record)) {
        let disturbed = if probe % 3 == 0 { 2 } else { 1 };
        slice.machine.spin_ns = Some(us(slice.block) * 1000 * disturbed + probe);
    }
}

#[test]
fn each_planted_fault_of_the_machine_is_found_and_nothing_else() {
    let faults: [(&str, Plant); 7] = [
        ("throttled", |record| {
            all(record, |slice| {
                slice.machine.throttled_ns = slice.counts.window_ns / 50
            })
        }),
        ("throttled", |record| {
            all(record, |slice| {
                slice.services[0].throttled_ns = slice.counts.window_ns / 50
            })
        }),
        ("other_processes", |record| {
            all(record, |slice| {
                slice.machine.strangers_cpu_ns = slice.counts.window_ns / 10
            })
        }),
        ("spin_varies", |record| {
            spin(record, |block| if block <= 4 { 266 } else { 300 })
        }),
        ("paging", |record| {
            all(record, |slice| slice.machine.swapped_in_pages = 20)
        }),
        ("paging", |record| {
            all(record, |slice| slice.services[0].major_faults = 20)
        }),
        ("disk_reads", |record| {
            let first = slices_of(record, 1).filter(|slice| slice.block == 1);
            first.for_each(|slice| slice.services[0].read_bytes = 50_000_000);
        }),
    ];
    each_is_found(sound, faults.map(|(check, plant)| (check, Warning, plant)));
}

#[test]
fn each_planted_fault_of_the_network_is_found_and_nothing_else() {
    let faults: [(&str, Grade, Plant); 8] = [
        ("upstream_connections", Warning, |record| {
            proxied(record);
            each(record, 1, |slice| {
                tcp(slice).opened =
                    slice.counts.responses * 6 / 10 + slice.counts.connections_opened
            });
        }),
        ("ports_exhausted", Invalid, |record| {
            let error = ErrorCount {
                phase: Phase::Connect,
                cause: Cause::AddressExhausted,
                count: 1,
            };
            slices_of(record, 1)
                .take(3)
                .for_each(|slice| slice.counts.errors.push(error));
        }),
        ("ports_exhausted", Warning, |record| {
            each(record, 1, |slice| tcp(slice).time_wait = 15_000)
        }),
        ("backlog_full", Invalid, |record| {
            each(record, 1, |slice| {
                tcp(slice).listen_drops = slice.counts.due() / 500
            });
        }),
        ("backlog_full", Warning, |record| {
            each(record, 1, |slice| {
                tcp(slice).listen_overflows = u64::from(slice.block == 9)
            });
        }),
        ("connection_churn", Warning, |record| {
            let opened = |slice: &Slice| slice.counts.responses / 20 + 32;
            each(record, 1, |slice| {
                slice.counts.connections_opened = opened(slice)
            });
        }),
        // In turns so short that connections stay open between them: one for every ten responses.
        ("connection_churn", Warning, |record| {
            slices(record).for_each(|slice| slice.turns = 20);
            each(record, 1, |slice| {
                slice.counts.connections_opened = slice.counts.responses / 10
            });
        }),
        ("connection_churn", Warning, |record| {
            streams(record);
            each(record, 1, |slice| {
                slice.counts.in_flight_ns = slice.counts.window_ns * 32 * 7
            });
        }),
    ];
    assert!(
        each_is_found(sound, faults)
            .iter()
            .all(|finding| finding.variants == [1])
    );
}

#[test]
fn what_nearly_is_a_fault_is_none() {
    let mut record = sound();
    proxied(&mut record);
    spin(&mut record, |block| if block <= 4 { 266 } else { 286 });
    for slice in slices(&mut record) {
        slice.machine.throttled_ns = slice.counts.window_ns / 150;
        slice.machine.strangers_cpu_ns = slice.counts.window_ns / 25;
        slice.machine.swapped_in_pages = slice.counts.window_ns / 200_000_000;
        slice.machine.cpu_pressure_share = Some(0.6);
        slice.counts.connections_opened = slice.counts.responses / 100 + 32;
        // Equal amounts in each trial, and some kilobytes in one of them: neither depends on the order.
        slice.services[0].read_bytes = if slice.variant == 0 {
            50_000_000
        } else {
            u64::from(slice.block) * 1000
        };
        slice.services[0].major_faults = 1;
        let opened = slice.counts.connections_opened + slice.counts.responses / 3;
        let tcp = tcp(slice);
        (tcp.opened, tcp.time_wait, tcp.syn_retransmits) = (opened, 14_000, 50);
    }
    assert_eq!(found(&record), []);
}

/// Makes the measured slices of both variants look as if made in turns: both contain the machine's activity.
fn in_turns(record: &mut Record) {
    for slice in slices(record).filter(|slice| slice.kind == SliceKind::Measured) {
        slice.turns = 10;
        slice.machine.spin_ns = Some(u64::from(slice.block) + 266_000);
    }
}

#[test]
fn what_slices_in_turns_tell_together_counts_once_and_blames_nobody_for_another() {
    // Each of two slices in turns contains the activity of both: 8 % of one is 4 % of both.
    let mut record = sound();
    all(&mut record, |slice| {
        slice.machine.strangers_cpu_ns = 500_000_000 * 8 / 100
    });
    assert_eq!(found(&record), [("other_processes", Warning)]);
    in_turns(&mut record);
    assert_eq!(found(&record), []);

    // The proxy's connections are also in the other variant's slices. Those of its warm-up are only in its
    // own.
    let mut record = sound();
    proxied(&mut record);
    in_turns(&mut record);
    all(&mut record, |slice| tcp(slice).opened = 5000);
    let warm_ups = |slice: &&mut Slice| slice.kind == SliceKind::WarmUp;
    slices_of(&mut record, 1)
        .filter(warm_ups)
        .for_each(|slice| tcp(slice).opened = 0);
    assert_eq!(found(&record), []);
    let warm_ups = slices_of(&mut record, 1).filter(warm_ups);
    warm_ups.for_each(|slice| tcp(slice).opened = slice.counts.responses);
    assert_eq!(found(&record), [("upstream_connections", Warning)]);
    // From the second block on warm-ups take turns, too, perhaps of one turn each.
    for slice in
        slices(&mut record).filter(|slice| slice.kind == SliceKind::WarmUp && slice.block > 1)
    {
        slice.machine.spin_ns = Some(u64::from(slice.block) + 266_000);
        *tcp(slice) = TcpUse {
            opened: 5000,
            local_ports: 28_232,
            ..TcpUse::default()
        };
    }
    slices_of(&mut record, 1)
        .filter(|of| of.block == 1)
        .for_each(|slice| tcp(slice).opened = 0);
    assert_eq!(found(&record), []);

    // A full accept queue then delayed both variants.
    let mut record = sound();
    in_turns(&mut record);
    all(&mut record, |slice| tcp(slice).listen_drops = 50);
    assert_eq!(found(&record), [("backlog_full", Invalid)]);
    assert_eq!(conclude(&record).findings[0].variants, [0, 1]);
}

#[test]
fn a_proxy_on_a_link_is_told_by_what_is_counted_there_alone() {
    let mut record = sound();
    proxied(&mut record);
    in_turns(&mut record);
    let link = plan::Network {
        rate_bit_per_s: None,
        delay: None,
    };
    record.header.plan.variants[1].load.network = Some(link);
    all(&mut record, |slice| {
        tcp(slice).opened = slice.counts.responses * 6 / 10
    });
    assert_eq!(found(&record), [("upstream_connections", Warning)]);
    assert!(
        evidence(&record).contains("0.600 for each"),
        "{}",
        evidence(&record)
    );
}

#[test]
fn ports_that_wait_void_what_failed_meanwhile() {
    let mut record = sound();
    each(&mut record, 1, |slice| {
        tcp(slice).time_wait = 15_000;
        slice.counts.successful -= slice.counts.successful / 500;
    });
    assert!(
        found(&record).contains(&("ports_exhausted", Invalid)),
        "{:?}",
        found(&record)
    );
}

#[test]
fn connections_that_are_asked_to_be_closed_are_no_churn_and_a_service_that_closes_them_is_told() {
    let mut record = sound();
    each(&mut record, 1, |slice| {
        slice.counts.connections_opened = slice.counts.responses
    });
    let headers = vec![("connection".into(), "Close".into())];
    let witness = Witness {
        status: 200,
        headers,
        repeats: true,
        ..Witness::default()
    };
    trials(&mut record).for_each(|trial| trial.started.witnesses = vec![witness.clone()]);
    assert!(
        evidence(&record).ends_with("; it responds with `connection: close`"),
        "{}",
        evidence(&record)
    );
    let asked = vec![("Connection".into(), "keep-alive, close".into())];
    record.header.plan.variants[1].load.requests[0].headers = asked;
    assert_eq!(found(&record), []);
}
