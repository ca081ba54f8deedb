//! Snapshots of first screens, at 80 and at 120 columns: what a user sees first must be understood at once.

use std::time::Duration;

use analysis::conclude;
use model::{
    ArrivalProcess, Ask, AskedOpen, ContractFailure, Counts, EndpointCounts, EndpointOutcome,
    FailureKind, OpenLoop, RAMP_PARTS, RampPart, Rate, SliceRequest, Until,
};
use plan::{Measure, Request};
use proofload_report::{MeasuredRecord, Report};
use record::{EndReason, Ended, Record, SliceKind};
use stats::Latencies;

use crate::explained::full;
use crate::records::{failing, kept};
use crate::{drawn, fits};

/// Times of `count` requests around a median in microseconds.
fn times(count: u64, median_us: u64) -> Latencies {
    let mut times = Latencies::new();
    (0..count).for_each(|n| times.record((median_us / 2 + median_us * n / count.max(1)) * 1000));
    times
}

/// A measurement of ten seconds, with these counts.
fn load(open: Option<AskedOpen>, counts: Counts) -> Record {
    let mut record = kept();
    let until = Until::Elapsed(Duration::from_secs(10));
    let plan = &mut record.header.plan;
    plan.variants.truncate(1);
    plan.comparisons.clear();
    plan.factors.clear();
    plan.measure = Some(Measure {
        until,
        rates: None,
        arrivals: ArrivalProcess::Poisson,
        warmup: Duration::ZERO,
    });
    record.blocks.truncate(1);
    let block = &mut record.blocks[0];
    block.trials.truncate(1);
    block.order = vec![0];
    let slices = &mut block.trials[0].slices;
    slices.retain(|slice| slice.kind == SliceKind::Measured);
    slices.truncate(1);
    let slice = &mut slices[0];
    slice.asked = Some(SliceRequest { until, open });
    slice.counts = Counts {
        window_ns: 10_000_000_000,
        drain_ns: 5_000_000,
        generator: slice.counts.generator.clone(),
        ..counts
    };
    record.ended = Some(Ended {
        reason: EndReason::Measured,
        seconds: 10.2,
    });
    record
}

/// Counts of requests in closed loop of which some failed with this status.
fn closed(sent: u64, failed: u64, status: u16) -> Counts {
    let ok = sent - failed;
    let failure = ContractFailure {
        kind: FailureKind::Status,
        count: failed,
        example: status.to_string(),
    };
    let all = [(200, ok), (status, failed)].into_iter();
    Counts {
        sent,
        responses: sent,
        responses_in_window: sent,
        successful: ok,
        successful_in_window: ok,
        status: all.filter(|(_, count)| *count > 0).collect(),
        contract_failures: (failed > 0).then_some(failure).into_iter().collect(),
        latency: times(sent, 9_000),
        ..Counts::default()
    }
}

/// Two requests, of which only the second fails.
fn mix() -> Record {
    let (sent, failed) = (8_000, 600);
    let mut record = load(None, closed(sent, failed, 503));
    let plan = &mut record.header.plan;
    let requests = &mut plan.variants[0].load.requests;
    let named = |name: &str| Request {
        name: name.to_owned(),
        ..requests[0].clone()
    };
    *requests = vec![named("GET /"), named("POST /orders")];
    let outcome = |status, count| EndpointOutcome {
        status: Some(status),
        response: Latencies::none(),
        latency: times(count, 9_000),
    };
    let endpoint = |name: &str, ok: u64, outcomes: Vec<EndpointOutcome>| EndpointCounts {
        sent: outcomes.iter().map(|of| of.latency.count()).sum(),
        successful: ok,
        successful_in_window: ok,
        outcomes,
        ..EndpointCounts::new(name)
    };
    record.blocks[0].trials[0].slices[0].counts.endpoints = vec![
        endpoint("GET /", 7_200, vec![outcome(200, 7_200)]),
        endpoint(
            "POST /orders",
            200,
            vec![outcome(200, 200), outcome(503, failed)],
        ),
    ];
    record
}

/// A ramp from 100/s to 2,100/s on a service that responds to 1,300/s, and then queues.
fn ramp() -> Record {
    let (limit, over) = (1_300, Duration::from_secs(10));
    let rate = Rate::Ramp {
        from_per_s: 100.0,
        to_per_s: 2_100.0,
        over,
    };
    let due: Vec<u64> = (0..RAMP_PARTS as u64)
        .map(|part| 200 + 200 * part)
        .collect();
    let part = |due: &u64| RampPart {
        successful: *due,
        response: times(*due, if *due <= limit { 2_000 } else { due * 400 }),
    };
    let ok_per_100_ms = due
        .iter()
        .flat_map(|due| [(*due.min(&limit) / 10) as u32; 10]);
    let due_per_100_ms = due.iter().flat_map(|due| [(*due / 10) as u32; 10]);
    let sum: u64 = due.iter().sum();
    let open = OpenLoop {
        rate_per_s: 1_100.0,
        intended: sum,
        due_per_100_ms: due_per_100_ms.collect(),
        sent_in_window: sum,
        response: times(sum, 50_000),
        schedule_lag: times(sum, 60),
        ramp_parts: due.iter().map(part).collect(),
        ..OpenLoop::default()
    };
    let counts = Counts {
        successful_per_100_ms: ok_per_100_ms.collect(),
        open: Some(Box::new(open)),
        ..closed(sum, 0, 500)
    };
    let asked = AskedOpen {
        ask: Ask::At(model::RateLevel::PerSecond(100.0)),
        rate,
        process: ArrivalProcess::Constant,
        seed: 1,
    };
    load(Some(asked), counts)
}

fn both_widths(record: &Record, explained: bool) -> String {
    let (conclusion, explanation) = (conclude(record), full());
    let measured = MeasuredRecord {
        is_latest: true,
        ..MeasuredRecord::new(record, &conclusion, explained.then_some(&explanation))
    };
    let [narrow, wide] = [80, 120].map(|width| {
        let screen = drawn(&measured.brief(), width);
        fits(&screen, width);
        screen
    });
    format!("{narrow}\n{}\n{wide}", "=".repeat(120))
}

#[test]
fn first_screens_are_as_they_were() {
    for (name, record, explained) in [
        ("compare_explained", kept(), true),
        ("compare_invalid", failing(), false),
        ("load", load(None, closed(800, 0, 500)), false),
        ("load_mix_with_failures", mix(), false),
        ("load_ramp", ramp(), false),
    ] {
        insta::assert_snapshot!(name, both_widths(&record, explained));
    }
}
