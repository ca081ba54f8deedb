//! Tests with services of a known limit.

use std::time::Duration;

use model::{
    ArrivalProcess, Ask, AskedOpen, Counts, GeneratorUse, OpenLoop, Rate, RateLevel, SliceRequest,
    Until,
};
use record::{MachineUse, Slice};
use stats::Latencies;

use super::*;

/// Counts of ten seconds without problems: 10,000 requests per second.
fn counts() -> Counts {
    let mut latency = Latencies::new();
    (0..100_000u64).for_each(|n| latency.record(500_000 + n * 10));
    Counts {
        started_ns: 1,
        window_ns: 10_000_000_000,
        drain_ns: 700_000,
        sent: 100_000,
        responses: 100_000,
        responses_in_window: 99_968,
        successful: 100_000,
        successful_in_window: 99_968,
        status: [(200, 100_000)].into(),
        first_byte: latency.clone(),
        latency,
        connections_alive_at_start: 32,
        connections_alive: 32,
        connections_opened: 32,
        generator: GeneratorUse {
            driver: "readiness".into(),
            cpu_ns: vec![4_000_000_000],
            wall_ns: vec![10_000_700_000],
            run_delay_ns: vec![100_000],
        },
        ..Counts::default()
    }
}

/// Creates a slice at a rate, in which `queued` requests found no free connection.
fn at_rate(mut counts: Counts, rate: Rate, process: ArrivalProcess, queued: u64) -> Slice {
    let (intended, response) = (counts.sent, counts.latency.clone());
    let mut open = OpenLoop {
        intended,
        sent_in_window: intended,
        queued,
        response,
        ..OpenLoop::default()
    };
    (0..intended - queued).for_each(|n| open.schedule_lag.record(60_000 + n % 100 * 100));
    counts.open = Some(Box::new(open));
    let open = AskedOpen {
        ask: Ask::At(RateLevel::PerSecond(rate.at(0.0))),
        rate,
        process,
        seed: 1,
    };
    Slice {
        block: 1,
        variant: 0,
        kind: SliceKind::Measured,
        turns: 1,
        connections: 32,
        waits: false,
        asked: Some(SliceRequest {
            until: Until::Elapsed(Duration::from_secs(10)),
            open: Some(open),
        }),
        counts,
        generators: Vec::new(),
        services: Vec::new(),
        machine: MachineUse::default(),
    }
}

/// Evaluates the rate of a slice without running checks.
fn kept(slice: &Slice) -> Option<RateKept> {
    MeasuredWindow::alone(slice).kept()
}

fn bend(slice: &Slice) -> Option<Bend> {
    MeasuredWindow::alone(slice).bend()
}

fn open(slice: &mut Slice) -> &mut OpenLoop {
    slice.counts.open.as_mut().expect("it is at a rate")
}

/// Simulates ten seconds of a ramp on a service with the given limit at each time, which queues further
/// requests.
fn ramp((from_per_s, to_per_s): (f64, f64), limit_per_s: impl Fn(f64) -> f64) -> Slice {
    let rate = Rate::Ramp {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(10),
    };
    let (mut served, mut shown) = (0.0f64, 0.0f64);
    let mut buckets = Vec::new();
    for bucket in 1..=100 {
        let now_s = f64::from(bucket) / 10.0;
        served = rate.due_by(now_s).min(served + limit_per_s(now_s) / 10.0);
        buckets.push((served.floor() - shown) as u32);
        shown = served.floor();
    }
    let (intended, ok) = (rate.due_by(10.0) as u64, shown as u64);
    let counts = Counts {
        sent: intended,
        responses: intended,
        successful: intended,
        successful_in_window: ok,
        successful_per_100_ms: buckets,
        ..counts()
    };
    let mut at = at_rate(counts, rate, ArrivalProcess::Constant, intended - ok);
    open(&mut at).sent_in_window = ok;
    at
}

/// 10,000 requests per second for ten seconds, evenly, with a success for each when due.
fn even() -> Slice {
    let counts = Counts {
        successful_per_100_ms: vec![1000; 100],
        ..counts()
    };
    at_rate(
        counts,
        Rate::Constant(10_000.0),
        ArrivalProcess::Constant,
        0,
    )
}

#[test]
fn a_rate_is_kept_where_successes_come_as_requests_are_due() {
    assert_eq!(kept(&even()), Some(RateKept::Up));

    // Delayed by the service time, only at the start.
    let mut slow = even();
    slow.counts.successful_per_100_ms[..5].fill(0);
    assert_eq!(kept(&slow), Some(RateKept::Up));

    let mut unsent = even();
    (open(&mut unsent).sent_in_window, open(&mut unsent).queued) = (98_000, 90_000);
    assert_eq!(kept(&unsent), Some(RateKept::Behind));

    // With a connection for every waiting request nothing is queued, but the service still falls behind.
    let mut waiting = even();
    waiting.connections = 100_000;
    waiting.counts.successful_per_100_ms.fill(950);
    assert_eq!(kept(&waiting), Some(RateKept::Behind));

    let mut bad = even();
    bad.counts.successful = 98_000;
    assert_eq!(kept(&bad), Some(RateKept::Failing));

    let mut late = even();
    (0..5000).for_each(|_| open(&mut late).schedule_lag.record(50_000_000));
    assert_eq!(kept(&late), Some(RateKept::ClientLate));
    // A failure counts however late the request was sent.
    late.counts.successful = 98_000;
    assert_eq!(kept(&late), Some(RateKept::Failing));

    // A client at its limit that kept the rate has still measured it.
    let mut busy = even();
    busy.counts.generator.cpu_ns = vec![9_900_000_000];
    assert_eq!(kept(&busy), Some(RateKept::Up));
    busy.counts.successful_per_100_ms.fill(900);
    assert_eq!(kept(&busy), Some(RateKept::ClientLate));

    let mut silent = even();
    silent.counts.successful = 0;
    silent.counts.responses = 0;
    assert_eq!(kept(&silent), Some(RateKept::NoSuccess));
}

/// Of 500 due requests of a Poisson process in the second half, 450 is possible by chance and 400 is not. If
/// the number of due requests is known, a deficit of one in twenty is a backlog and not chance.
#[test]
fn chance_is_no_falling_behind_and_counted_arrivals_leave_less_to_it() {
    let of = |sent: u64, ok: u32, due: Vec<u32>| {
        let successful_per_100_ms = vec![ok; 100];
        let counts = Counts {
            sent,
            responses: sent,
            successful: sent,
            successful_per_100_ms,
            ..counts()
        };
        let mut at = at_rate(
            counts,
            Rate::Constant(sent as f64 / 10.0),
            ArrivalProcess::Poisson,
            0,
        );
        open(&mut at).due_per_100_ms = due;
        kept(&at)
    };
    assert_eq!(
        [of(1000, 9, vec![]), of(1000, 8, vec![])],
        [Some(RateKept::Up), Some(RateKept::Behind)]
    );
    let counted = |due: u32| of(20_000, 190, vec![due; 100]);
    assert_eq!(
        [counted(190), counted(200)],
        [Some(RateKept::Up), Some(RateKept::Behind)]
    );
}

/// The reported limit is below the actual one, by no more than a tenth of the ramp.
#[test]
fn a_ramp_bends_at_the_limit_of_the_service() {
    for limit in (1500..4400).step_by(100).map(f64::from) {
        for ends in [(1000.0, 5000.0), (5000.0, 1000.0)] {
            let Some(Bend::At(per_s)) = bend(&ramp(ends, |_| limit)) else {
                panic!("{limit}: no bend")
            };
            assert!(
                per_s > limit - 410.0 && per_s < limit + 1.0,
                "{limit}: {per_s} for {ends:?}"
            );
        }
    }
    assert_eq!(
        bend(&ramp((1000.0, 5000.0), |_| 6000.0)),
        Some(Bend::NotUpTo(5000.0))
    );
    assert_eq!(
        bend(&ramp((0.0, 5000.0), |_| 6000.0)),
        Some(Bend::NotUpTo(5000.0))
    );
    assert_eq!(
        bend(&ramp((5000.0, 0.0), |_| 6000.0)),
        Some(Bend::NotUpTo(5000.0))
    );
    assert_eq!(
        bend(&ramp((1000.0, 5000.0), |_| 900.0)),
        Some(Bend::AtLowest(1000.0))
    );
    assert_eq!(
        bend(&ramp((1000.0, 5000.0), |_| 4700.0)),
        Some(Bend::Perhaps(4600.0))
    );
}

#[test]
fn a_ramp_says_no_more_than_it_shows() {
    // A stall with recovery is not a bend.
    let stalled = ramp((1000.0, 5000.0), |t| {
        if (3.5..4.5).contains(&t) { 0.0 } else { 8000.0 }
    });
    assert!(
        MeasuredWindow::alone(&stalled)
            .stretches()
            .iter()
            .any(|stretch| !stretch.kept)
    );
    assert_eq!(bend(&stalled), Some(Bend::NotUpTo(5000.0)));

    // A service that becomes faster over time was not limited by the rate.
    let warming = ramp((1000.0, 5000.0), |t| if t < 6.0 { 1500.0 } else { 3000.0 });
    let uneven = bend(&warming);
    assert!(
        matches!(uneven, Some(Bend::Uneven { gave, .. }) if gave > 2900.0),
        "{uneven:?}"
    );

    // Responses that take 300 ms are not lost: they arrive 300 ms later.
    let mut slow = ramp((0.0, 5000.0), |_| 6000.0);
    slow.counts.successful_per_100_ms.rotate_right(3);
    slow.counts.successful_per_100_ms[..3].fill(0);
    assert_ne!(bend(&slow), Some(Bend::NotUpTo(5000.0)));
    slow.counts.latency = Latencies::new();
    (0..10_000).for_each(|_| slow.counts.latency.record(300_000_000));
    assert_eq!(bend(&slow), Some(Bend::NotUpTo(5000.0)));

    // The available half of an interrupted ramp.
    let mut stopped = ramp((1000.0, 5000.0), |_| 4500.0);
    stopped.counts.successful_per_100_ms.truncate(50);
    stopped.counts.window_ns = 5_000_000_000;
    assert_eq!(
        (
            MeasuredWindow::alone(&stopped).stretches().len(),
            bend(&stopped)
        ),
        (5, Some(Bend::NotUpTo(3000.0)))
    );

    // A bend caused by the client is not reported for the service.
    let mut busy = ramp((1000.0, 5000.0), |_| 3000.0);
    busy.counts.generator.cpu_ns = vec![9_900_000_000];
    assert_eq!(bend(&busy), None);
}

#[test]
fn a_load_that_stood_still_is_no_measurement() {
    let mut at = even();
    assert!(
        runner::of_slice_alone(&MeasuredWindow::alone(&at))
            .iter()
            .all(|finding| finding.check != Check::BlocksDropped)
    );
    at.counts.halted_ns = 2_000_000_000;
    let mut window = MeasuredWindow::alone(&at);
    window.findings = runner::of_slice_alone(&window);
    let void = window.void().expect("it is invalid");
    assert_eq!(
        (void.check, void.grade),
        (Check::BlocksDropped, Grade::Invalid)
    );
    assert!(
        void.evidence.contains("stood still for 2.00 s"),
        "{}",
        void.evidence
    );
}

/// Requests that were never sent are in no other figure: all sent ones succeeded.
#[test]
fn requests_that_were_never_sent_make_a_number_of_requests_invalid() {
    let found = |total: u64, interrupted: bool| {
        let mut slice = even();
        slice.counts.open = None;
        slice.asked = Some(SliceRequest {
            until: Until::Requests(total),
            open: None,
        });
        let mut window = MeasuredWindow::alone(&slice);
        window.interrupted = interrupted;
        runner::of_slice_alone(&window)
            .into_iter()
            .find(|finding| finding.check == Check::Errors)
    };
    assert_eq!([found(100_000, false), found(120_000, true)], [None, None]);
    let lost = found(120_000, false).expect("20,000 were not sent");
    assert_eq!(lost.grade, Grade::Invalid);
    assert!(
        lost.evidence
            .contains("100,000 of 120,000 requests were sent"),
        "{}",
        lost.evidence
    );
}

#[test]
fn a_short_window_is_made_longer_by_its_flag() {
    let remedies = |until: Until, window_ns: u64| {
        let mut slice = even();
        (
            slice.counts.open,
            slice.counts.window_ns,
            slice.counts.successful_in_window,
        ) = (None, window_ns, 0);
        slice.asked = Some(SliceRequest { until, open: None });
        let found = runner::of_slice_alone(&MeasuredWindow::alone(&slice))
            .into_iter()
            .map(|finding| finding.remedy.text.into_owned());
        found.collect::<Vec<_>>().join("; ")
    };
    for window_ns in [1_000, 400_000_000] {
        let by_time = remedies(Until::Elapsed(Duration::from_secs(10)), window_ns);
        let by_count = remedies(Until::Requests(100_000), window_ns);
        assert!(
            by_time.contains("--duration") && !by_time.contains("--requests"),
            "{by_time}"
        );
        assert!(
            by_count.contains("--requests") && !by_count.contains("--duration"),
            "{by_count}"
        );
    }
}
