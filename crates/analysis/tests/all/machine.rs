//! What machine and network did to a run is found where it is planted in a sound record, and nowhere else.

use plan::Service;
use proofload_analysis::{Grade, conclude};
use record::{Cause, ErrorCount, Phase, Record, Slice, SliceKind, TcpUse, Witness};

use crate::given::{Plant, each_is_found, evidence, found, service, slices, slices_of, sound, trials};

/// TCP's counters of a slice, made where there were none.
fn tcp(slice: &mut Slice) -> &mut TcpUse {
    let nothing = TcpUse { local_ports: 28_232, ..TcpUse::default() };
    slice.machine.tcp.get_or_insert(nothing)
}

/// Puts a proxy before the service of variant 1.
fn proxied(record: &mut Record) {
    let proxy = Service { needs: vec!["api".into()], ..service("proxy", &["node"], &[]) };
    record.header.plan.variants[1].services = vec![service("api", &["node"], &[]), proxy];
}

/// Has the same arithmetic take this long in each block, in µs, and longer now and then.
fn spin(record: &mut Record, us: impl Fn(u32) -> u64) {
    let mut probe = 0;
    for slice in slices(record) {
        probe += 1;
        let disturbed = if probe % 3 == 0 { 2 } else { 1 };
        slice.machine.spin_ns = Some(us(slice.block) * 1000 * disturbed + probe);
    }
}

#[test]
fn each_planted_fault_of_the_machine_is_found_and_nothing_else() {
    let faults: [(&str, Plant); 6] = [
        ("throttled", |record| {
            slices(record).for_each(|slice| slice.machine.throttled_ns = slice.counts.window_ns / 50)
        }),
        ("other_processes", |record| {
            slices(record).for_each(|slice| slice.machine.strangers_cpu_ns = slice.counts.window_ns / 10)
        }),
        ("spin_varies", |record| spin(record, |block| if block <= 4 { 266 } else { 300 })),
        ("paging", |record| slices(record).for_each(|slice| slice.machine.swapped_in_pages = 20)),
        ("paging", |record| slices(record).for_each(|slice| slice.services[0].major_faults = 20)),
        ("disk_reads", |record| {
            slices_of(record, 1)
                .filter(|slice| slice.block == 1)
                .for_each(|slice| slice.services[0].read_bytes = 50_000_000);
        }),
    ];
    each_is_found(sound, faults.map(|(check, plant)| (check, Grade::Warning, plant)));
}

#[test]
fn each_planted_fault_of_the_network_is_found_and_nothing_else() {
    let faults: [(&str, Grade, Plant); 6] = [
        ("upstream_connections", Grade::Warning, |record| {
            proxied(record);
            slices_of(record, 1).for_each(|slice| {
                tcp(slice).opened = slice.counts.responses * 6 / 10 + slice.counts.connections_opened
            });
        }),
        ("ports_exhausted", Grade::Invalid, |record| {
            let error = ErrorCount { phase: Phase::Connect, cause: Cause::AddressExhausted, count: 1 };
            slices_of(record, 1).take(3).for_each(|slice| slice.counts.errors.push(error));
        }),
        ("ports_exhausted", Grade::Warning, |record| {
            slices_of(record, 1).for_each(|slice| tcp(slice).time_wait = 15_000);
        }),
        ("backlog_full", Grade::Invalid, |record| {
            slices_of(record, 1).for_each(|slice| tcp(slice).listen_drops = slice.counts.due() / 500);
        }),
        ("backlog_full", Grade::Warning, |record| {
            slices_of(record, 1).for_each(|slice| tcp(slice).listen_overflows = u64::from(slice.block == 9));
        }),
        ("connection_churn", Grade::Warning, |record| {
            slices_of(record, 1)
                .for_each(|slice| slice.counts.connections_opened = slice.counts.responses / 20 + 32);
        }),
    ];
    assert!(each_is_found(sound, faults).iter().all(|finding| finding.variants == [1]));
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
        // As much from trial to trial, and in one of them some kilobytes: neither is a matter of order.
        slice.services[0].read_bytes =
            if slice.variant == 0 { 50_000_000 } else { u64::from(slice.block) * 1000 };
        slice.services[0].major_faults = 1;
        let opened = slice.counts.connections_opened + slice.counts.responses / 3;
        *tcp(slice) = TcpUse {
            opened,
            time_wait: 14_000,
            syn_retransmits: 50,
            local_ports: 28_232,
            ..TcpUse::default()
        };
    }
    assert_eq!(found(&record), []);
}

/// Makes the measured slices of both variants look as if made in turns: what the machine did is told by both.
fn in_turns(record: &mut Record) {
    for slice in slices(record).filter(|slice| slice.kind == SliceKind::Measured) {
        slice.turns = 10;
        slice.machine.spin_ns = Some(u64::from(slice.block) + 266_000);
    }
}

#[test]
fn what_slices_in_turns_tell_together_counts_once_and_blames_nobody_for_another() {
    // Of two slices in turns each tells what happened in the time of both: 8 % of one is 4 % of both.
    let mut record = sound();
    slices(&mut record).for_each(|slice| slice.machine.strangers_cpu_ns = 500_000_000 * 8 / 100);
    assert_eq!(found(&record), [("other_processes", Grade::Warning)]);
    in_turns(&mut record);
    assert_eq!(found(&record), []);

    // The proxy's connections are in the other variant's slices as well, and those of its warm-up are its own.
    let mut record = sound();
    proxied(&mut record);
    in_turns(&mut record);
    slices(&mut record).for_each(|slice| tcp(slice).opened = 5000);
    slices_of(&mut record, 1)
        .filter(|slice| slice.kind == SliceKind::WarmUp)
        .for_each(|slice| tcp(slice).opened = 0);
    assert_eq!(found(&record), []);
    slices_of(&mut record, 1).filter(|slice| slice.kind == SliceKind::WarmUp).for_each(|slice| {
        tcp(slice).opened = slice.counts.responses;
    });
    assert_eq!(found(&record), [("upstream_connections", Grade::Warning)]);

    // A line that was full then held up either.
    let mut record = sound();
    in_turns(&mut record);
    slices(&mut record).for_each(|slice| tcp(slice).listen_drops = 50);
    assert_eq!(found(&record), [("backlog_full", Grade::Invalid)]);
    assert_eq!(conclude(&record).findings[0].variants, [0, 1]);
}

#[test]
fn a_proxy_on_a_link_is_told_by_what_is_counted_there_alone() {
    let mut record = sound();
    proxied(&mut record);
    in_turns(&mut record);
    let link = plan::Network { rate_bit_per_s: None, delay: None };
    record.header.plan.variants[1].load.network = Some(link);
    slices(&mut record).for_each(|slice| tcp(slice).opened = slice.counts.responses * 6 / 10);
    assert_eq!(found(&record), [("upstream_connections", Grade::Warning)]);
    assert!(evidence(&record).contains("0.600 for each"), "{}", evidence(&record));
}

#[test]
fn ports_that_wait_void_what_failed_meanwhile() {
    let mut record = sound();
    slices_of(&mut record, 1).for_each(|slice| {
        tcp(slice).time_wait = 15_000;
        slice.counts.successful -= slice.counts.successful / 500;
    });
    assert!(found(&record).contains(&("ports_exhausted", Grade::Invalid)), "{:?}", found(&record));
}

#[test]
fn connections_that_are_asked_to_be_closed_are_no_churn_and_a_service_that_closes_them_is_told() {
    let mut record = sound();
    slices_of(&mut record, 1).for_each(|slice| slice.counts.connections_opened = slice.counts.responses);
    let headers = vec![("connection".into(), "Close".into())];
    let witness = Witness { status: 200, headers, repeats: true, ..Witness::default() };
    trials(&mut record).for_each(|trial| trial.started.witnesses = vec![witness.clone()]);
    assert!(evidence(&record).ends_with("; it responds with `connection: close`"), "{}", evidence(&record));
    record.header.plan.variants[1].load.requests[0].headers =
        vec![("Connection".into(), "keep-alive, close".into())];
    assert_eq!(found(&record), []);
}
