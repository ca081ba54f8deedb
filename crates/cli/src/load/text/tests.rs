//! The first screen, as people see it, for runs that went well and runs that did not.

use std::time::Duration;

use load::Arrivals;
use model::{Cause, ContractFailure, Counts, ErrorCount, FailureKind, Phase};

use super::*;
use crate::load::rate::Level;
use crate::load::sample::{alone, at_a_rate, open, outcome, ramp, slice};

#[test]
fn a_run_that_went_well() {
    insta::assert_snapshot!(render(&alone(outcome(slice()))), @r#"
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
    (slice.successful, slice.successful_in_window) = (90_000, 89_000);
    slice.status = [(200, 90_000), (503, 10_000)].into();
    slice.errors = vec![
        ErrorCount { phase: Phase::Connect, cause: Cause::Refused, count: 12 },
        ErrorCount { phase: Phase::Head, cause: Cause::Timeout, count: 2000 },
        ErrorCount { phase: Phase::Body, cause: Cause::ClosedEarly, count: 500 },
    ];
    let example = "503".into();
    slice.contract_failures = vec![ContractFailure { kind: FailureKind::Status, count: 10_000, example }];
    (slice.connections_alive_at_start, slice.reconnects) = (30, 2500);
    slice.generator.cpu_ns = vec![9_700_000_000];
    slice.generator.run_delay_ns = vec![900_000_000];
    insta::assert_snapshot!(render(&alone(outcome(slice))), @r#"
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
    let slice = Counts {
        sent: 0,
        responses: 0,
        responses_in_window: 0,
        successful: 0,
        successful_in_window: 0,
        status: [].into(),
        errors: vec![ErrorCount { phase: Phase::Connect, cause: Cause::Refused, count: 480 }],
        wire_bytes: 0,
        body_bytes: 0,
        latency: Latencies::new(),
        first_byte: Latencies::new(),
        connections_alive_at_start: 0,
        connections_opened: 0,
        ..slice()
    };
    insta::assert_snapshot!(render(&alone(outcome(slice))), @r#"
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
fn a_rate_that_was_kept() {
    insta::assert_snapshot!(render(&alone(at_a_rate(slice(), 12))), @r#"
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
    (slice.sent, slice.timed_out, slice.unfinished) = (110_000, 9_000, 1_000);
    let mut outcome = at_a_rate(slice, 90_000);
    (open(&mut outcome).intended, open(&mut outcome).unsent) = (120_000, 10_000);
    open(&mut outcome).sent_in_window = 100_000;
    outcome.arrivals = Arrivals::Open { rate: Rate::Constant(12_000.0), process: Process::Constant, seed: 1 };
    (0..20_000u64).for_each(|n| open(&mut outcome).response.censor(1_000_000_000 + n * 50_000));
    (0..10_000u64).for_each(|_| outcome.slice.latency.censor(2_000_000_000));
    insta::assert_snapshot!(render(&alone(outcome)), @r#"
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
    insta::assert_snapshot!(render(&alone(outcome)), @r"
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
    (0..2000).for_each(|_| open(&mut late).schedule_lag.record(800_000));
    assert!(of(&late)[0].contains("sent up to 800 µs late (p99)"), "{:?}", of(&late));
    // Late, but next to what the service took it is nothing.
    (0..2000).for_each(|_| open(&mut late).response.record(2_000_000_000));
    assert_eq!(of(&late), [""; 0]);

    let mut behind = at_a_rate(slice(), 0);
    open(&mut behind).sent_in_window = 98_000;
    assert!(of(&behind)[0].contains("it sent 98 % of what was due"), "{:?}", of(&behind));
}

#[test]
fn a_rate_without_an_answer_shows_no_figure_that_is_none() {
    let nothing =
        Counts { responses: 0, successful: 0, responses_in_window: 0, successful_in_window: 0, ..slice() };
    let nothing = Counts { window_ns: 0, sent: 0, wire_bytes: 0, ..nothing };
    let nothing = Counts { latency: Latencies::new(), first_byte: Latencies::new(), ..nothing };
    let text = render(&alone(at_a_rate(nothing, 0)));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(text.contains("Rate         - sent, 10,000/s asked for"), "{text}");
}

#[test]
fn a_duration_has_three_digits() {
    let shown = [1, 704_000, 999_600, 1_020_000, 99_960_000, 999_499_999, 2_000_000_000, 3_600_000_000_000];
    let expected = ["0.00 µs", "704 µs", "1.00 ms", "1.02 ms", "100 ms", "999 ms", "2.00 s", "3600 s"];
    assert_eq!(shown.map(duration), expected);
}

#[test]
fn a_ramp_shows_where_it_bends() {
    insta::assert_snapshot!(render(&alone(ramp((1000.0, 5000.0), |_| 3200.0))), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 10.0 s, time-out 2s, open loop from 1,000/s to 5,000/s, evenly spread

    Requests     30,000 due, 30,000 sent, 30,000 answered, 30,000 good
    Throughput   2,600/s, good answers
    Transfer     8.16 MB/s, 817 B an answer
    Rate         2,600/s sent of 3,000/s due on average, 1,000/s to 5,000/s asked for
    Queue        4,050 of 30,000 found no connection free
    Client       69.8 µs late at p99, where one was free
    Latency             p50       p75       p90       p99     p99.9       max
      response      1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
      service       1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
      first byte    1.00 ms   1.25 ms   1.40 ms   1.49 ms   1.50 ms   1.50 ms
    Status       200 × 100,000
    Errors       none
    Ramp                 at       due      good
                      0.0 s   1,200/s   1,200/s   kept up
                      1.0 s   1,600/s   1,600/s   kept up
                      2.0 s   2,000/s   2,000/s   kept up
                      3.0 s   2,400/s   2,400/s   kept up
                      4.0 s   2,800/s   2,800/s   kept up
                      5.0 s   3,200/s   3,150/s   kept up
                      6.0 s   3,600/s   3,200/s   fell behind
                      7.0 s   4,000/s   3,200/s   fell behind
                      8.0 s   4,400/s   3,200/s   fell behind
                      9.0 s   4,800/s   3,200/s   fell behind
                 Kept up to about 3,200/s.

    - All connections were busy for 14 % of arrivals, which waited, and the response
      time contains the wait: more connections (-c), or the service is overloaded.
      3,000/s were due, 2,600/s were sent.
    "#);
}

/// At so many a second for ten seconds, of a service that can do 9,000.
fn step(level: Level, per_s: f64) -> Outcome {
    let due = per_s as u64 * 10;
    let sent = due.min(90_000);
    let slice = Counts { sent: due, responses: due, successful: due, successful_in_window: sent, ..slice() };
    let queued = if per_s > 9000.0 { due / 2 } else { 0 };
    let arrivals = Arrivals::Open { rate: Rate::Constant(per_s), process: Process::Constant, seed: 1 };
    let mut outcome = Outcome { arrivals, ask: Some(Ask::At(level)), ..at_a_rate(slice, queued) };
    open(&mut outcome).sent_in_window = sent;
    outcome
}

#[test]
fn steps_are_a_line_each_and_caveats_are_told_once() {
    let shares = [(50.0, 4000.0), (100.0, 8000.0), (150.0, 12_000.0), (200.0, 16_000.0)];
    let steps = shares.map(|(percent, per_s)| step(Level::Percent(percent), per_s));
    let mut measured = outcome(slice());
    (measured.slice.window_ns, measured.slice.successful_in_window) = (3_000_000_000, 24_000);
    measured.slice.reconnects = 40_000;
    let capacity = Some(Capacity { warmup: Duration::from_secs(1), outcome: measured });
    let series = Series { capacity, steps: steps.into(), planned: 5, interrupted: true };
    insta::assert_snapshot!(render(&series), @r#"
    GET http://127.0.0.1:3000/
    32 connections, 1 thread, 5 steps of 10.0 s, time-out 2s, open loop, constant

    Capacity     8,000/s, good answers in closed loop for 3.0 s after 1.0 s of warm-up

    asked       due     sent     good      p50      p99    p99.9  queued     late   verdict
     50 %   4,000/s  4,000/s  4,000/s  1.00 ms  1.49 ms  1.50 ms     0 %  69.8 µs   kept up
    100 %   8,000/s  8,000/s  8,000/s  1.00 ms  1.49 ms  1.50 ms     0 %  69.8 µs   kept up
    150 %  12,000/s  9,000/s  9,000/s  1.00 ms  1.49 ms  1.50 ms    50 %  69.8 µs   fell behind
    200 %  16,000/s  9,000/s  9,000/s  1.00 ms  1.49 ms  1.50 ms    50 %  69.8 µs   fell behind

    p50 to p99.9: response time, from when a request was due. late: how late the client
    sent at p99 where a connection was free.

    - At 150 %, similarly at 200 %: All connections were busy for 50 % of arrivals,
      which waited, and the response time contains the wait: more connections (-c),
      or the service is overloaded. 12,000/s were due, 9,000/s were sent.
    - Stopped early: 1 of 5 steps did not begin.
    - Capacity was underestimated: at a rate the service gave 9,000/s, more than the
      8,000/s of closed loop. It was not warm then, or needs more connections (-c)
      to be busy.
    - While capacity was measured: The service ended connections: 40,000 had to be
      reopened, which costs both sides more than a request.
    "#);
}

#[test]
fn a_capacity_that_could_not_be_measured_is_all_there_is() {
    let failed =
        Counts { successful: 0, successful_in_window: 0, status: [(500, 100_000)].into(), ..slice() };
    let capacity = Some(Capacity { warmup: Duration::from_secs(1), outcome: outcome(failed) });
    let series = Series { capacity, steps: vec![], planned: 1, interrupted: false };
    let text = render(&series);
    for part in ["No answer was good", "500 × 100,000", "the load at a share of it did not begin"] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {text}");
    }
    assert!(series.void().is_some());
}
