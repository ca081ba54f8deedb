//! The first screen, as people see it, for runs that went well and runs that did not.

use std::time::Duration;

use load::{Cause, ContractFailure, ErrorCount, FailureKind, Phase, Slice};

use super::*;

fn slice() -> Slice {
    let mut latency = Latencies::new();
    (0..100_000u64).for_each(|n| latency.record(500_000 + n * 10));
    Slice {
        driver: "readiness",
        started_ns: 1,
        window_ns: 10_000_000_000,
        drain_ns: 700_000,
        sent: 100_000,
        answered: 100_000,
        answered_in_window: 99_968,
        ok: 100_000,
        ok_in_window: 99_968,
        timed_out: 0,
        broken: 0,
        unfinished: 0,
        status: [(200, 100_000)].into(),
        errors: vec![],
        contract_failures: vec![],
        bytes_wire: 24_500_000,
        bytes_body: 1_200_000,
        first_byte: latency.clone(),
        latency,
        buckets: vec![],
        connections_alive_start: 32,
        connections_alive_end: 32,
        opened: 32,
        reconnects: 0,
        thread_cpu_ns: vec![4_000_000_000],
        thread_wall_ns: vec![10_000_700_000],
        thread_run_delay_ns: vec![Some(100_000)],
    }
}

fn outcome(slice: Slice) -> Outcome {
    Outcome {
        url: "http://127.0.0.1:3000/".into(),
        method: "GET".into(),
        address: "127.0.0.1:3000".parse().unwrap(),
        connections: 32,
        threads: 1,
        timeout: Duration::from_secs(2),
        until: Until::Elapsed(Duration::from_secs(10)),
        interrupted: false,
        slice,
    }
}

#[test]
fn a_run_that_went_well() {
    insta::assert_snapshot!(render(&outcome(slice())), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, closed loop

    Requests     100,000 sent, 100,000 answered, 100,000 good
    Throughput   10,000/s, good answers
    Transfer     2.45 MB/s, 245 B an answer
    Latency             p50       p75       p90       p99     p99.9       max
      complete      1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
      first byte    1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
    Status       200 × 100,000
    Errors       none

    - Closed loop: each connection asks again only when it has its answer. Once the
      service is saturated, latency is connections ÷ throughput and says nothing
      more.
    "#);
}

#[test]
fn a_run_in_which_much_went_wrong() {
    let mut slice = slice();
    (0..2000).for_each(|_| slice.latency.censor(2_000_000_000));
    (0..500).for_each(|_| slice.latency.censor(40_000_000));
    slice.sent += 2500;
    (slice.timed_out, slice.broken) = (2000, 500);
    (slice.ok, slice.ok_in_window) = (90_000, 89_000);
    slice.status = [(200, 90_000), (503, 10_000)].into();
    slice.errors = vec![
        ErrorCount { phase: Phase::Connect, cause: Cause::Refused, count: 12 },
        ErrorCount { phase: Phase::Head, cause: Cause::Timeout, count: 2000 },
        ErrorCount { phase: Phase::Body, cause: Cause::ClosedEarly, count: 500 },
    ];
    let example = "503".into();
    slice.contract_failures = vec![ContractFailure { kind: FailureKind::Status, count: 10_000, example }];
    (slice.connections_alive_start, slice.reconnects) = (30, 2500);
    slice.thread_cpu_ns = vec![9_700_000_000];
    slice.thread_run_delay_ns = vec![Some(900_000_000)];
    insta::assert_snapshot!(render(&outcome(slice)), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, closed loop

    Requests     102,500 sent, 100,000 answered, 90,000 good, 2,000 timed out, 500 broken
    Throughput   8,900/s, good answers
    Transfer     2.45 MB/s, 245 B an answer
    Latency             p50       p75       p90       p99     p99.9       max
      complete      1.01 ms   1.27 ms   1.42 ms  ≥ 2.00 s  ≥ 2.00 s  ≥ 2.00 s
      first byte    1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
    Status       200 × 90,000   503 × 10,000
    Not good     status × 10,000, for example 503
    Errors       connect refused × 12
                 head timeout × 2,000
                 body closed-early × 500

    - The client was the bottleneck: a thread of it used 97 % of a core. The service
      can do more than this; try more --threads, or another machine.
    - The client waited for a core 9.00 % of the time: something else ran on it,
      perhaps the service. Latencies contain that wait.
    - 2,500 of 102,500 requests got no complete answer. They are in the percentiles
      as "at least as long as they were waited for" (≥).
    - 10,000 answers were not good: throughput leaves them out, latency does not.
    - Only 30 of 32 connections were open when the window began.
    - The service ended connections: 2,500 had to be reopened, which costs both
      sides more than a request.
    - Closed loop: each connection asks again only when it has its answer. Once the
      service is saturated, latency is connections ÷ throughput and says nothing
      more.
    "#);
}

#[test]
fn a_run_without_an_answer() {
    let slice = Slice {
        sent: 0,
        answered: 0,
        answered_in_window: 0,
        ok: 0,
        ok_in_window: 0,
        status: [].into(),
        errors: vec![ErrorCount { phase: Phase::Connect, cause: Cause::Refused, count: 480 }],
        bytes_wire: 0,
        bytes_body: 0,
        latency: Latencies::new(),
        first_byte: Latencies::new(),
        connections_alive_start: 0,
        opened: 0,
        ..slice()
    };
    insta::assert_snapshot!(render(&outcome(slice)), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, closed loop

    No request was answered: no connection to 127.0.0.1:3000 could be opened.

    Requests     0 sent, 0 answered, 0 good
    Throughput   -
    Transfer     -
    Latency             p50       p75       p90       p99     p99.9       max
      complete            -         -         -         -         -         -
      first byte          -         -         -         -         -         -
    Status       -
    Errors       connect refused × 480

    - Only 0 of 32 connections were open when the window began.
    "#);
}

#[test]
fn a_duration_has_three_digits() {
    let shown = [1, 704_000, 999_600, 1_020_000, 99_960_000, 999_499_999, 2_000_000_000, 3_600_000_000_000];
    let expected = ["0.00 µs", "704 µs", "1.00 ms", "1.02 ms", "100 ms", "999 ms", "2.00 s", "3600 s"];
    assert_eq!(shown.map(duration), expected);
}
