//! Checks of figures over time and order: each finds planted problems from a given size on, and almost
//! nothing in clean noisy runs. `examples/rates.rs` repeats this with more runs, as tables.

use crate::given;
use crate::made::{Maker, PLANTS, Plant, Run, slices, sound};
use model::{Metric, Protocol};
use proofload_analysis::Grade::{self, Invalid, Note, Warning};
use proofload_analysis::conclude;
use record::{Record, Slice};
use stats::Latencies;

const CHECKS: &str = "order_effect autocorrelated drift warm_up_inside leak service_not_saturated same_stall too_many_workers \
                      workers_uneven never_steady";

/// The findings of these checks.
fn found(record: &Record) -> Vec<&'static str> {
    let mut found = given::found(record);
    found.retain(|(check, _)| CHECKS.split(' ').any(|one| one == *check));
    let has_its_grade = |(check, grade): &(&str, Grade)| match *check {
        "same_stall" => *grade == Invalid,
        "service_not_saturated" => [Note, Warning].contains(grade),
        _ => *grade == Warning,
    };
    assert!(found.iter().all(has_its_grade), "{found:?}");
    found.into_iter().map(|(check, _)| check).collect()
}

fn evidence(record: &Record, check: &str) -> String {
    let told = given::said(record)
        .into_iter()
        .find(|(found, ..)| *found == check);
    told.map(|(.., evidence)| evidence).unwrap_or_default()
}

#[test]
fn clean_runs_are_accused_in_fewer_than_one_of_two_hundred() {
    let mut maker = Maker::new(1);
    let (mut runs, mut accused) = (0, Vec::new());
    for (blocks, each) in [(6, 300), (10, 300), (22, 150), (45, 50)] {
        for between in [0.01, 0.05] {
            for variants in [2, 4] {
                let run = Run {
                    variants,
                    ..Run::new(blocks, between)
                };
                for _ in 0..each / 2 {
                    runs += 1;
                    accused.extend(found(&maker.clean(run)));
                }
            }
        }
    }
    // Five tests of 1 in 1,000 each would give 8. The minimum sizes reduce that.
    assert!(
        accused.len() * 200 <= runs,
        "{} of {runs} runs: {accused:?}",
        accused.len()
    );
}

/// Number of ten planted runs in which a check finds the problem.
fn finds(check: &str, seed: u64, make: impl Fn(&mut Maker) -> Record) -> usize {
    let mut maker = Maker::new(seed);
    (0..10)
        .filter(|_| found(&make(&mut maker)).contains(&check))
        .count()
}

#[test]
fn what_changes_with_order_or_time_is_found_from_a_size_on_and_not_below() {
    let run = Run::new(15, 0.01);
    let drift: Plant = ("after block 9 slower by", "drift", |maker, run, size| {
        maker.planted(run, |at| if at.block > 9 { size } else { 0.0 })
    });
    let others = PLANTS.into_iter().filter(|(_, check, _)| *check != "drift");
    let plants: Vec<Plant> = [drift].into_iter().chain(others).collect();
    let sizes = [
        (-0.25, -0.05),
        (0.05, 0.005),
        (0.10, 0.005),
        (120.0, 20.0),
        (0.97, 0.1),
    ];
    assert_eq!(plants.len(), sizes.len());
    for ((name, check, make), (large, small)) in plants.into_iter().zip(sizes) {
        let run = if check == "autocorrelated" {
            Run { blocks: 60, ..run }
        } else {
            run
        };
        let finds_of = |size: f64| finds(check, 2, |maker| make(maker, run, size));
        assert!(
            finds_of(large) >= 9,
            "{name}: {} of 10 at {large}",
            finds_of(large)
        );
        assert!(
            finds_of(small) == 0,
            "{name}: {} of 10 at {small}",
            finds_of(small)
        );
    }
}

#[test]
fn a_ratio_that_drifts_is_told_though_ten_blocks_have_no_correlation_beyond_chance() {
    let drifting = |each: f64| {
        let mut maker = Maker::new(6);
        maker.planted(Run::new(10, 0.01), |at| {
            if at.variant == 1 {
                each * f64::from(at.block)
            } else {
                0.0
            }
        })
    };
    let told = evidence(&drifting(-0.02), "autocorrelated");
    assert!(
        told.contains("go one way, by −") && told.contains("from the first to the last of 10"),
        "{told}"
    );
    // A real trend that does not affect a verdict.
    assert!(!found(&drifting(-0.0005)).contains(&"autocorrelated"));
}

#[test]
fn a_slow_drift_is_a_trend_and_says_what_became_of_the_figures() {
    let mut maker = Maker::new(3);
    let quiet = Run {
        machine: 0.01,
        ..Run::new(12, 0.01)
    };
    let record = maker.planted(quiet, |at| -0.02 * f64::from(at.block));
    let told = evidence(&record, "drift");
    assert!(
        told.starts_with("level-0") && told.contains("throughput") && told.contains('−'),
        "{told}"
    );
}

#[test]
fn a_warm_up_that_is_inside_is_told_once_for_each_variant() {
    let mut maker = Maker::new(4);
    let mut record = maker.planted(Run::new(10, 0.01), |at| {
        if at.variant == 1 { 0.15 * at.time } else { 0.0 }
    });
    if let Some(warm_up) = &mut record.warm_up {
        warm_up.steady_after_s = vec![None, None];
    }
    let findings = conclude(&record).findings;
    let of = |check: &str| {
        let finding = findings
            .iter()
            .find(|finding| finding.check.name() == check);
        finding.map(|finding| finding.variants.clone())
    };
    assert_eq!(
        (of("warm_up_inside"), of("never_steady")),
        (Some(vec![1]), Some(vec![0]))
    );
}

#[test]
fn of_trials_of_one_slice_the_counts_of_100_ms_tell() {
    let made = |last: u32| {
        let mut maker = Maker::new(5);
        let mut record = maker.clean(Run {
            slices: 1,
            ..Run::new(8, 0.01)
        });
        for (number, slice) in slices(&mut record, 1).enumerate() {
            slice.counts.window_ns = 3_000_000_000;
            uses(slice, 2_900_000_000);
            let count = |at| if at < 10 { 200 } else { last } + (number as u32 + at) % 3;
            slice.counts.successful_per_100_ms = (0..30).map(count).collect();
        }
        record
    };
    assert_eq!(
        (found(&made(200)), found(&made(220))),
        (vec![], vec!["warm_up_inside"])
    );
}

/// Makes the service a single process with this CPU time.
fn uses(slice: &mut Slice, cpu_ns: u64) {
    (
        slice.services[0].cpu_ns,
        slice.services[0].cpu_by_process_ns,
    ) = (cpu_ns, vec![cpu_ns]);
}

/// A run in which variants wait: with a share of a core, a median response time in ms, and throughput by
/// Little's law.
fn waiting(cores: f64, ms: [f64; 2]) -> Record {
    let mut maker = Maker::new(6);
    let mut record = maker.clean(Run::new(8, 0.001));
    for (variant, ms) in ms.into_iter().enumerate() {
        for slice in slices(&mut record, variant) {
            let mut latency = Latencies::new();
            (0..100)
                .for_each(|index| latency.record(((ms + 0.002 * f64::from(index)) * 1e6) as u64));
            crate::made::give(slice, (32.0 / ms * 500.0) as u64);
            (slice.counts.latency, slice.counts.first_byte) = (latency.clone(), latency);
            uses(slice, (slice.counts.wall_ns() as f64 * cores) as u64);
        }
    }
    record
}

/// The same requests over a quarter of the connections.
fn over_streams(mut record: Record) -> Record {
    for variant in &mut record.header.plan.variants {
        variant.load.protocol = Protocol::Http2 { streams: 4 };
    }
    given::slices(&mut record).for_each(|slice| slice.connections /= 4);
    record
}

#[test]
fn throughput_of_waiting_is_told_from_throughput_of_work() {
    let unsaturated = "service_not_saturated";
    assert_eq!(
        found(&waiting(0.3, [20.0, 12.0])),
        [unsaturated, unsaturated]
    );
    let told = evidence(&waiting(0.3, [20.0, 12.0]), unsaturated);
    assert!(
        told.contains("0.300 of 1 core busy") && told.contains("each took 20.0 ms"),
        "{told}"
    );
    assert_eq!(
        found(&waiting(0.75, [20.0, 12.0])),
        [""; 0],
        "what the host takes looks alike"
    );
    // Two processes on one processor are at its limit, though neither is at its own.
    let mut shared = waiting(0.45, [20.0, 12.0]);
    for slice in given::slices(&mut shared) {
        let other = slice.services[0].clone();
        slice.services.push(record::ServiceUse {
            service: "proxy".into(),
            ..other
        });
    }
    assert_eq!(found(&shared), [""; 0]);
    // A worker with one thread is at its limit, even with idle processors.
    let mut wide = waiting(0.95, [20.0, 12.0]);
    given::trials(&mut wide).for_each(|trial| trial.started.services[0].cpus = vec![0, 1, 2, 3]);
    assert_eq!(found(&wide), [""; 0]);
    // A quota is a limit, too, and so is a client.
    let mut held = waiting(0.3, [20.0, 12.0]);
    given::slices(&mut held)
        .for_each(|slice| slice.machine.throttled_ns = slice.counts.window_ns / 10);
    assert_eq!(found(&held), [""; 0]);
    let mut client = waiting(0.3, [20.0, 12.0]);
    given::slices(&mut client).for_each(given::saturate);
    assert_eq!(found(&client), [""; 0]);
    // Each stream of a connection has a request.
    let streams = over_streams(waiting(0.3, [20.0, 12.0]));
    assert!(evidence(&streams, unsaturated).contains("each took 20.0 ms"));
}

#[test]
fn a_pause_that_both_make_is_told_instead() {
    assert_eq!(found(&waiting(0.1, [40.5, 41.5])), ["same_stall"]);
    assert_eq!(
        found(&waiting(0.1, [100.5, 100.4])),
        ["same_stall"],
        "a timer"
    );
    assert_eq!(
        found(&over_streams(waiting(0.1, [40.5, 41.5]))),
        ["same_stall"]
    );
    let mut by_cpu = waiting(0.1, [40.5, 41.5]);
    by_cpu.header.plan.design.metric = Metric::CpuPerRequest;
    assert_eq!(found(&by_cpu), [""; 0], "it changes no CPU time");
    let unsaturated = "service_not_saturated";
    assert_eq!(
        found(&waiting(0.1, [40.5, 30.0])),
        [unsaturated, unsaturated]
    );
    assert_eq!(
        found(&waiting(0.1, [73.0, 73.1])),
        [unsaturated, unsaturated],
        "a pause, and nobody's timer"
    );
    assert_eq!(
        found(&waiting(0.95, [40.5, 41.5])),
        [""; 0],
        "a queue at a service that works takes as long"
    );
    let mut churning = waiting(0.1, [40.5, 41.5]);
    given::slices(&mut churning)
        .for_each(|slice| slice.counts.connections_opened = slice.counts.sent);
    let why = "without connections that are kept there is no such pause";
    assert_eq!(found(&churning), [unsaturated, unsaturated], "{why}");
}

#[test]
fn responses_that_are_counted_in_lockstep_are_told() {
    let steps = |record: &Record| {
        let findings = conclude(record).findings;
        findings
            .iter()
            .filter(|finding| finding.check.name() == "throughput_in_steps")
            .count()
    };
    // Five responses of 100 ms in half a second, or four.
    assert_eq!(steps(&waiting(0.1, [100.5, 101.5])), 2);
    assert_eq!(steps(&over_streams(waiting(0.1, [100.5, 101.5]))), 2);
    assert!(
        evidence(&waiting(0.1, [100.5, 101.5]), "throughput_in_steps").contains("steps of 20 %")
    );
    assert_eq!(
        steps(&waiting(0.1, [10.0, 11.0])),
        0,
        "fifty of them are steps below the margin"
    );
    assert_eq!(
        steps(&waiting(0.95, [100.5, 101.5])),
        0,
        "what works hands them out one after the other"
    );
    let mut spread = waiting(0.1, [100.5, 101.5]);
    for slice in given::slices(&mut spread) {
        (0..300).for_each(|index| slice.counts.latency.record(1_000_000 * index));
    }
    assert_eq!(steps(&spread), 0, "cut anywhere");
}

/// A run whose variant 1 has the given workers, processors and shares of work.
fn cluster(workers: Option<u32>, cpus: usize, shares: &[u64]) -> Record {
    let mut record = Maker::new(7).clean(Run::new(8, 0.01));
    for trial in given::trials_of(&mut record, 1) {
        let started = &mut trial.started.services[0];
        (started.workers, started.cpus) = (workers, (0..cpus).collect());
        for slice in &mut trial.slices {
            let used = &mut slice.services[0];
            used.cpu_ns *= cpus.max(1) as u64;
            let unit = used.cpu_ns / shares.iter().sum::<u64>();
            used.cpu_by_process_ns = shares.iter().map(|share| unit * share).collect();
        }
    }
    record
}

#[test]
fn workers_are_held_against_processors_and_against_each_other() {
    let many = "too_many_workers";
    assert_eq!(found(&cluster(Some(4), 2, &[25, 25, 25, 24])), [many]);
    let primary = cluster(Some(2), 2, &[50, 48, 10]);
    assert_eq!(
        found(&primary),
        [""; 0],
        "the first process of a cluster is no worker"
    );
    assert_eq!(found(&cluster(None, 1, &[50, 48])), [many]);
    assert_eq!(
        found(&cluster(None, 1, &[90, 20])),
        [""; 0],
        "a helper is none either"
    );
    assert_eq!(
        found(&cluster(Some(4), 0, &[25, 25, 25, 24])),
        [""; 0],
        "not pinned, so nobody knows"
    );
    let uneven = cluster(Some(4), 4, &[70, 10, 10, 10]);
    assert_eq!(found(&uneven), ["workers_uneven"]);
    assert!(evidence(&uneven, "workers_uneven").contains("70 %, 10 %, 10 %, 10 %"));
    assert_eq!(found(&cluster(Some(4), 4, &[40, 30, 20, 10])), [""; 0]);
    assert_eq!(found(&cluster(Some(2), 2, &[74, 26])), [""; 0]);
}

#[test]
fn old_records_and_short_ones_are_silent() {
    assert_eq!(found(&sound()), [""; 0]);
    let mut short = Maker::new(8).planted(Run::new(6, 0.01), |at| 0.5 * at.time);
    short.blocks.truncate(3);
    assert_eq!(found(&short), [""; 0]);
    let mut empty = sound();
    empty.blocks.clear();
    assert_eq!(found(&empty), [""; 0]);
}
