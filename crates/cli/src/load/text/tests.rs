//! The first screen, as people see it, for runs that went well and runs that did not.

use std::time::Duration;

use load::{Arrivals, Cause, ContractFailure, ErrorCount, FailureKind, Phase, Process, Slice};

use super::*;

fn slice() -> Slice {
    let mut latency = Latencies::new();
    (0..100_000u64).for_each(|n| latency.record(500_000 + n * 10));
    Slice {
        driver: "readiness",
        started_ns: 1,
        window_ns: 10_000_000_000,
        drain_ns: 700_000,
        intended: 100_000,
        sent: 100_000,
        sent_in_window: 100_000,
        unsent: 0,
        queued: 0,
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
        response: Latencies::new(),
        schedule_lag: Latencies::new(),
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
        arrivals: Arrivals::Closed,
        connections: 32,
        threads: 1,
        timeout: Duration::from_secs(2),
        until: Until::Elapsed(Duration::from_secs(10)),
        interrupted: false,
        distribution: false,
        differences: vec![],
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
    slice.intended += 2500;
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
        intended: 0,
        sent: 0,
        sent_in_window: 0,
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

/// In open loop: at 10,000/s, with a connection free for all but so many.
fn at_a_rate(mut slice: Slice, queued: u64) -> Outcome {
    slice.response = slice.latency.clone();
    (0..slice.intended - queued).for_each(|n| slice.schedule_lag.record(60_000 + n % 100 * 100));
    slice.queued = queued;
    let arrivals = Arrivals::Open { rate_per_s: 10_000.0, process: Process::Poisson, seed: 1 };
    Outcome { arrivals, ..outcome(slice) }
}

#[test]
fn a_rate_that_was_kept() {
    insta::assert_snapshot!(render(&at_a_rate(slice(), 12)), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, open loop at 10,000/s, poisson

    Requests     100,000 due, 100,000 sent, 100,000 answered, 100,000 good
    Throughput   10,000/s, good answers
    Transfer     2.45 MB/s, 245 B an answer
    Rate         10,000/s sent, 10,000/s asked for
    Queue        12 of 100,000 found no connection free
    Client       69.8 µs late at p99, where one was free
    Latency             p50       p75       p90       p99     p99.9       max
      response      1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
      service       1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
      first byte    1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
    Status       200 × 100,000
    Errors       none
    "#);
}

#[test]
fn a_rate_that_was_too_much_for_the_service() {
    let mut slice = slice();
    (slice.intended, slice.sent, slice.sent_in_window) = (120_000, 110_000, 100_000);
    (slice.timed_out, slice.unfinished, slice.unsent) = (9_000, 1_000, 10_000);
    let mut outcome = at_a_rate(slice, 90_000);
    outcome.arrivals = Arrivals::Open { rate_per_s: 12_000.0, process: Process::Constant, seed: 1 };
    (0..20_000u64).for_each(|n| outcome.slice.response.censor(1_000_000_000 + n * 50_000));
    (0..10_000u64).for_each(|_| outcome.slice.latency.censor(2_000_000_000));
    insta::assert_snapshot!(render(&outcome), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, open loop at 12,000/s, constant

    Requests     120,000 due, 110,000 sent, 100,000 answered, 100,000 good, 9,000 timed out, 1,000 unfinished, 10,000 never sent
    Throughput   10,000/s, good answers
    Transfer     2.45 MB/s, 245 B an answer
    Rate         10,000/s sent, 12,000/s asked for
    Queue        90,000 of 120,000 found no connection free
    Client       69.8 µs late at p99, where one was free
    Latency             p50       p75       p90       p99     p99.9       max
      response      1.10 ms   1.40 ms  ≥ 1.40 s  ≥ 1.94 s  ≥ 1.99 s  ≥ 2.00 s
      service       1.05 ms   1.32 ms   1.49 ms  ≥ 2.00 s  ≥ 2.00 s  ≥ 2.00 s
      first byte    1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
    Status       200 × 100,000
    Errors       none

    - All connections were busy for 75 % of arrivals, which waited, and the response
      time contains the wait: more connections (-c), or the service is overloaded.
      12,000/s were due, 10,000/s were sent.
    - 20,000 of 120,000 requests got no complete answer, 10,000 of them because they
      could not even be sent. They are in the percentiles as "at least as long as
      they were waited for" (≥).
    "#);
}

#[test]
fn a_longer_distribution_and_what_another_tool_would_have_done() {
    let mut outcome = at_a_rate(slice(), 12);
    outcome.distribution = true;
    outcome.slice.first_byte = Latencies::new();
    outcome.slice.latency.censor(2_000_000_000);
    outcome.differences = vec!["wrk opens 30.".into(), "It prints 32.".into()];
    insta::assert_snapshot!(render(&outcome), @r"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, open loop at 10,000/s, poisson

    Requests     100,000 due, 100,000 sent, 100,000 answered, 100,000 good
    Throughput   10,000/s, good answers
    Transfer     2.45 MB/s, 245 B an answer
    Rate         10,000/s sent, 10,000/s asked for
    Queue        12 of 100,000 found no connection free
    Client       69.8 µs late at p99, where one was free
    Latency          response     service  first byte
      p50             1.00 ms     1.00 ms           -
      p75             1.25 ms     1.25 ms           -
      p90             1.40 ms     1.40 ms           -
      p95             1.45 ms     1.45 ms           -
      p99             1.49 ms     1.49 ms           -
      p99.9           1.50 ms     1.50 ms           -
      p99.99          1.50 ms     1.50 ms           -
      max             1.50 ms    ≥ 2.00 s           -
    Status       200 × 100,000
    Errors       none

    - wrk opens 30.
    - It prints 32.
    ");
}

#[test]
fn a_client_that_was_late_says_so() {
    let of = |outcome: &Outcome| {
        let caveats = outcome.caveats();
        caveats
            .into_iter()
            .filter(|caveat| caveat.starts_with("The client was the bottleneck"))
            .collect::<Vec<_>>()
    };
    let mut late = at_a_rate(slice(), 0);
    assert_eq!(of(&late), [""; 0]);
    (0..2000).for_each(|_| late.slice.schedule_lag.record(800_000));
    assert!(of(&late)[0].contains("sent up to 800 µs late (p99)"), "{:?}", of(&late));
    // Late, but next to what the service took it is nothing.
    (0..2000).for_each(|_| late.slice.response.record(2_000_000_000));
    assert_eq!(of(&late), [""; 0]);

    let mut behind = at_a_rate(slice(), 0);
    behind.slice.sent_in_window = 98_000;
    assert!(of(&behind)[0].contains("it sent 98 % of what was due"), "{:?}", of(&behind));
}

#[test]
fn a_rate_without_an_answer_shows_no_figure_that_is_none() {
    let nothing =
        Slice { answered: 0, ok: 0, answered_in_window: 0, ok_in_window: 0, window_ns: 0, ..slice() };
    let nothing = Slice { intended: 0, sent: 0, sent_in_window: 0, bytes_wire: 0, ..nothing };
    let nothing = Slice { latency: Latencies::new(), first_byte: Latencies::new(), ..nothing };
    let text = render(&at_a_rate(nothing, 0));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(text.contains("Rate         - sent, 10,000/s asked for"), "{text}");
}

#[test]
fn a_duration_has_three_digits() {
    let shown = [1, 704_000, 999_600, 1_020_000, 99_960_000, 999_499_999, 2_000_000_000, 3_600_000_000_000];
    let expected = ["0.00 µs", "704 µs", "1.00 ms", "1.02 ms", "100 ms", "999 ms", "2.00 s", "3600 s"];
    assert_eq!(shown.map(duration), expected);
}
