//! Each check finds its fault if it is planted in a sound record, and no check reports anything in the sound
//! record itself.

use plan::{Factor, LookRule, Metric, PlannedRate};
use proofload_analysis::Check;
use proofload_analysis::Grade::{self, Invalid, Note, Warning};
use proofload_analysis::{Calibration, Outcome, Standing, Unit, conclude};
use record::{
    Cause, ContractFailure, EndReason, Ended, EndpointCounts, ErrorCount, Event, FailureKind,
    OpenLoop, Phase, Record, Slice, TrialEnded, WorkersLost,
};
use stats::Latencies;

use crate::given::{
    Plant, each, each_is_found, evidence, found, open_loop, said, saturate, slices, slices_of,
    sound, trials_of,
};
use crate::made::service_of;

fn ends(record: &mut Record) -> impl Iterator<Item = &mut TrialEnded> {
    trials_of(record, 0).filter_map(|trial| trial.ended.as_mut())
}

#[test]
fn a_sound_record_has_an_answer_and_no_finding() {
    let conclusion = conclude(&sound());
    assert_eq!(conclusion.findings, []);
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Better);
    assert!(conclusion.is_decided() && !conclusion.is_void());
}

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    let faults: [(&str, Grade, Plant); 12] = [
        ("errors", Invalid, |record| {
            each(record, 1, |slice| {
                slice.counts.successful -= slice.counts.successful / 500
            });
        }),
        ("unasked", Invalid, |record| {
            let error = ErrorCount {
                phase: Phase::Idle,
                cause: Cause::Malformed,
                count: 1,
            };
            each(record, 1, |slice| slice.counts.errors.push(error));
        }),
        ("generator_saturated", Invalid, |record| {
            each(record, 1, |slice| {
                saturate(slice);
                slice.services[0].cpu_ns /= 2;
            });
        }),
        ("generator_saturated", Invalid, |record| {
            trials_of(record, 1)
                .for_each(|trial| trial.started.services = vec![service_of(7, None)]);
            each(record, 1, |slice| {
                saturate(slice);
                let two_and_a_half_ns = slice.counts.wall_ns() * 5 / 2;
                (slice.services[0].cpu_ns, slice.services[0].run_delay_ns) = (two_and_a_half_ns, 0);
                slice.services[0].cpu_by_process_ns = vec![two_and_a_half_ns];
            });
        }),
        ("generator_saturated", Warning, |record| {
            each(record, 1, saturate)
        }),
        ("cores_shared", Warning, |record| {
            trials_of(record, 0).for_each(|trial| trial.started.cpus_shared = true);
        }),
        ("different_bodies", Warning, |record| {
            each(record, 1, |slice| slice.counts.body_bytes /= 2)
        }),
        ("steal", Warning, |record| {
            each(record, 0, |slice| slice.machine.steal_share = 0.03)
        }),
        ("idle_not_idle", Warning, |record| {
            let idle_ns = |slice: &Slice| slice.counts.window_ns / 20;
            each(record, 0, |slice| {
                slice.machine.idle_trials_cpu_ns = idle_ns(slice)
            });
        }),
        ("left_over", Invalid, |record| {
            ends(record).for_each(|end| end.leftovers.push("node server.js (pid 9)".into()));
        }),
        ("workers_lost", Invalid, |record| {
            let lost = WorkersLost {
                service: "api".into(),
                lost: 1,
            };
            ends(record)
                .take(1)
                .for_each(|end| end.workers_lost.push(lost.clone()));
        }),
        ("killed", Note, |record| {
            ends(record).for_each(|end| end.killed.push("api".into()))
        }),
    ];
    each_is_found(sound, faults);
}

/// Adds a limit, as `--limit` does.
fn limit(record: &mut Record, text: &str) {
    let limit = plan::limit(text).expect("a limit");
    record.header.plan.gate.push(plan::GateEntry {
        limit,
        of: None,
        line: None,
    });
}

/// Limits judge metrics without a verdict, too: the same fault must not pass there.
#[test]
fn a_limit_makes_its_metric_a_judged_one() {
    let idle_services = |limits: &[&str]| {
        let mut record = sound();
        record.header.plan.design.metric = Metric::CpuPerRequest;
        each(&mut record, 1, |slice| {
            saturate(slice);
            slice.services[0].cpu_ns /= 2;
        });
        limits.iter().for_each(|text| limit(&mut record, text));
        found(&record)
            .into_iter()
            .filter(|(check, _)| *check == "generator_saturated")
            .collect::<Vec<_>>()
    };
    assert_eq!(
        idle_services(&["failed < 1%"]),
        [("generator_saturated", Warning)]
    );
    assert_eq!(
        idle_services(&["throughput > -3%"]),
        [("generator_saturated", Invalid)]
    );
    let mut record = open(Metric::CpuPerRequest);
    late(&mut record, 5_000_000);
    assert!(found(&record).contains(&("client_late", Warning)));
    limit(&mut record, "p99 < +5%");
    assert!(found(&record).contains(&("client_late", Invalid)));
}

/// A capacity is a rate that was asked for: requests that the client did not send, or sent late, are no capacity.
#[test]
fn a_client_that_is_late_voids_a_capacity() {
    let capacity = |plant: Plant| {
        let mut record = open(Metric::P99);
        record.header.plan.design.slo = vec![plan::limit("p99 < 50ms").expect("a limit")];
        plant(&mut record);
        found(&record)
    };
    assert!(capacity(|record| late(record, 5_000_000)).contains(&("client_late", Invalid)));
    let unsent: Plant = |record| opens(record, 1).for_each(|open| open.sent_in_window = 1800);
    assert!(capacity(unsent).contains(&("rate_not_kept", Invalid)));
    // Too few connections make it a bound.
    let queued: Plant = |record| opens(record, 1).for_each(|open| open.queued = 30);
    assert!(!capacity(queued).contains(&("rate_not_kept", Invalid)));
}

/// Whatever the order of the metrics, each of them is compared with the copy.
#[test]
fn a_copy_is_compared_in_each_judged_metric() {
    let differs = |metric: Metric, other: Option<Metric>| {
        let mut record = sound();
        record.header.plan.design.metric = metric;
        record.header.plan.design.co_primary = other.into_iter().collect();
        record.header.plan.design.per_core = false;
        record.header.plan.aa = Some(record.header.plan.comparisons[0].clone());
        // Variants differ in both; here in throughput alone.
        for variant in [0, 1] {
            each(&mut record, variant, |slice| {
                slice.counts.successful_in_window /= 1 + 2 * variant as u64;
                let each_ns = 100_000 + 100 * u64::from(slice.block);
                slice.services[0].cpu_ns = slice.counts.successful * each_ns;
            });
        }
        conclude(&record).aa.expect("it was asked for").differs
    };
    let (cpu, throughput) = (Metric::CpuPerRequest, Metric::Throughput);
    assert!(!differs(cpu, None));
    assert!(differs(throughput, Some(cpu)) && differs(cpu, Some(throughput)));
}

/// Others' successes say nothing of a request that is judged alone.
#[test]
fn failures_of_the_judged_endpoint_void_it() {
    let judged = |name: &str| {
        let mut record = sound();
        record.header.plan.design.endpoint = Some(plan::JudgedEndpoint {
            name: name.to_owned(),
            share: 0.1,
        });
        each(&mut record, 1, |slice| {
            let (few, sent) = (slice.counts.sent / 10, slice.counts.sent);
            slice.counts.endpoints = [("cart", sent - few, 0), ("order", few, few / 2)]
                .map(|(name, sent, failed)| EndpointCounts {
                    sent,
                    successful: sent - failed,
                    ..EndpointCounts::new(name)
                })
                .into();
            // Fewer than a thousandth of all.
            slice.counts.successful -= u64::from(slice.block == 1);
        });
        said(&record)
    };
    assert_eq!(judged("cart"), []);
    let found = judged("order");
    let [("errors", Invalid, evidence)] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(evidence.contains(" of `order` ("), "{evidence}");
}

#[test]
fn advice_fits_the_most_frequent_failure() {
    type Plant = fn(&mut Slice, u64);
    fn status(slice: &mut Slice, status: u16, failed: u64) {
        slice.counts.status = [
            (200, slice.counts.successful),
            (status, failed - failed / 3),
        ]
        .into();
        slice.counts.timed_out = failed / 3;
    }
    let cases: [(&str, Plant); 6] = [
        ("the service limits the rate", |slice, failed| {
            status(slice, 429, failed)
        }),
        ("the service rejects the requests", |slice, failed| {
            status(slice, 404, failed)
        }),
        ("the service fails", |slice, failed| {
            status(slice, 503, failed)
        }),
        ("connections broke", |slice, failed| {
            slice.counts.broken = failed
        }),
        ("responses did not come in time", |slice, failed| {
            slice.counts.timed_out = failed
        }),
        ("responses are not as expected", |_, _| ()),
    ];
    for (advice, plant) in cases {
        let mut record = sound();
        each(&mut record, 1, |slice| {
            let failed = slice.counts.successful / 10;
            slice.counts.successful -= failed;
            plant(slice, failed);
        });
        let conclusion = conclude(&record);
        let remedy = &conclusion
            .finding(Check::Errors)
            .expect("too many failed")
            .remedy;
        assert!(
            remedy.contains(&format!("do not compare; {advice}")),
            "{advice}: {remedy}"
        );
    }
}

#[test]
fn what_nearly_is_a_fault_is_none() {
    let mut record = sound();
    each(&mut record, 1, |slice| {
        let wall_ns = slice.counts.generator.wall_ns.iter();
        slice.counts.generator.cpu_ns = wall_ns.map(|wall| wall * 84 / 100).collect();
        slice.machine.steal_share = 0.019;
        slice.machine.idle_trials_cpu_ns = slice.counts.window_ns / 200;
        slice.counts.body_bytes -= slice.counts.body_bytes / 200;
    });
    assert_eq!(found(&record), []);
}

#[test]
fn fewer_than_four_blocks_give_no_verdict() {
    let mut record = sound();
    record.blocks.truncate(3);
    assert_eq!(found(&record), [("too_few_blocks", Warning)]);
    assert_eq!(
        conclude(&record).comparisons[0].outcome,
        Outcome::Inconclusive
    );
    let mut one = record.clone();
    one.blocks.truncate(1);
    assert!(
        evidence(&one).starts_with("1 complete block; "),
        "{}",
        evidence(&one)
    );
    // While the run is in progress there is no finding, but also no verdict.
    record.ended = None;
    assert_eq!(found(&record), []);
    assert_eq!(
        conclude(&record).comparisons[0].outcome,
        Outcome::Inconclusive
    );
    assert!(
        conclude(&record).comparisons[0]
            .ratio_so_far
            .is_some_and(|ratio| ratio > 1.1)
    );
}

#[test]
fn no_rule_gives_a_verdict_from_too_few_blocks_nor_to_more_comparisons_than_share_its_error() {
    assert_eq!(plan::VERDICTS_MAX, stats::COMPARISONS_MAX as usize);
    for looks in [LookRule::EachBlock, LookRule::Once] {
        for blocks in 0..=6 {
            let mut record = sound();
            record.header.plan.design.looks = looks;
            (record.header.plan.design.blocks, record.blocks_planned) = (Some(6), Some(6));
            record.header.plan.aa = Some(record.header.plan.comparisons[0].clone());
            record.blocks.truncate(blocks);
            let enough = blocks >= 4;
            let aa = conclude(&record).aa.expect("it was asked for");
            assert!(
                enough || !aa.differs && aa.estimate.is_none(),
                "{looks:?}, {blocks}"
            );
            record.header.plan.aa = None;
            let comparison = &conclude(&record).comparisons[0];
            assert_eq!(comparison.estimate.is_some(), enough, "{looks:?}, {blocks}");
            assert!(
                enough || comparison.outcome == Outcome::Inconclusive,
                "{looks:?}, {blocks}"
            );
        }
        let mut record = sound();
        record.header.plan.design.looks = looks;
        // No file produces such a plan, but records can be edited.
        record.header.plan.design.co_primary = vec![Metric::CpuPerRequest; plan::VERDICTS_MAX];
        let conclusion = conclude(&record);
        assert!(
            conclusion
                .comparisons
                .iter()
                .all(|one| one.estimate.is_none()),
            "{looks:?}"
        );
        assert!(!conclusion.is_decided());
    }
}

/// Returns the standing of an assumption.
fn standing(record: &Record, name: &str) -> Standing {
    let assumptions = conclude(record).assumptions;
    assumptions
        .iter()
        .find(|one| one.name == name)
        .expect("there is a comparison")
        .standing
}

#[test]
fn what_nobody_saw_end_is_not_said_to_have_ended_by_its_rule() {
    let kept = |record: &Record| standing(record, "looks_kept");
    let mut record = sound();
    record.header.plan.design.looks = LookRule::Once;
    assert_eq!(kept(&record), Standing::Supported);
    record.ended = Some(Ended {
        reason: EndReason::Interrupted,
        seconds: 1.0,
    });
    assert_eq!(kept(&record), Standing::Doubtful);
    record.ended = None;
    assert_eq!(kept(&record), Standing::Unchecked);
    record.header.plan.design.looks = LookRule::EachBlock;
    assert_eq!(kept(&record), Standing::Supported);
}

#[test]
fn failures_that_a_capacity_counts_as_never_answered_do_not_void_it() {
    let mut record = sound();
    each(&mut record, 1, |slice| {
        slice.counts.successful -= slice.counts.successful / 500
    });
    record.header.plan.design.slo = vec![plan::limit("failed < 1%").expect("a limit")];
    assert!(
        found(&record).iter().all(|(check, _)| *check != "errors"),
        "{:?}",
        found(&record)
    );
}

#[test]
fn noise_is_not_said_to_be_even_where_no_bootstrap_tells() {
    let even = |blocks| {
        let mut record = sound();
        record.header.plan.design.looks = LookRule::EachBlock;
        record.blocks.truncate(blocks);
        standing(&record, "noise_even")
    };
    let unchecked = Standing::Unchecked;
    assert_eq!(
        [3, 4, 5, 10].map(even),
        [unchecked, unchecked, unchecked, Standing::Supported]
    );
}

#[test]
fn a_warm_up_that_never_ended_and_a_pointless_run_are_said() {
    let mut record = sound();
    if let Some(warm_up) = &mut record.warm_up {
        warm_up.steady_after_s[1] = None;
    }
    assert_eq!(found(&record), [("never_steady", Warning)]);

    let mut record = sound();
    record.ended = Some(Ended {
        reason: EndReason::Void("nothing answers".into()),
        seconds: 1.0,
    });
    assert_eq!(found(&record), [("pointless", Invalid)]);
}

/// The sound record as if its measured slices had been in open loop, with 2,000 requests each of 1 to 5 ms.
/// Variant 1 takes half as long again.
fn open(metric: Metric) -> Record {
    let mut record = sound();
    record.header.plan.design.metric = metric;
    record.header.plan.design.rate = Some(PlannedRate::PerSecond(4000.0));
    for slice in slices(&mut record) {
        // Equal blocks would leave no interval.
        let unit_ns = 1_000_000 + 5_000 * u64::from(slice.block) * (1 + slice.variant as u64);
        let factor = if slice.variant == 1 { 1.5 } else { 1.0 };
        let mut response = Latencies::new();
        (0..2000)
            .for_each(|index| response.record((factor * (unit_ns + 2000 * index) as f64) as u64));
        (
            slice.counts.sent,
            slice.counts.successful,
            slice.counts.successful_in_window,
        ) = (2000, 2000, 2000);
        slice.counts.open = Some(open_loop(4000.0, 2000, response));
    }
    record
}

fn opens(record: &mut Record, variant: usize) -> impl Iterator<Item = &mut OpenLoop> {
    slices_of(record, variant).filter_map(|slice| slice.counts.open.as_deref_mut())
}

#[test]
fn a_longer_response_time_is_worse_and_throughput_is_not_compared() {
    let conclusion = conclude(&open(Metric::P99));
    // The body bytes of the fixture belong to its original counts.
    assert!(
        conclusion
            .findings
            .iter()
            .all(|finding| finding.check.name() == "different_bodies")
    );
    let comparison = &conclusion.comparisons[0];
    assert_eq!(comparison.outcome, Outcome::Worse);
    let ratio = comparison.estimate.as_ref().expect("an estimate").ratio;
    assert!((1.45..1.55).contains(&ratio), "{ratio}");
    assert!(
        comparison
            .exploratory
            .iter()
            .all(|other| other.metric != Metric::Throughput)
    );
}

#[test]
fn an_open_loop_that_was_not_what_was_asked_for_is_found() {
    let faults: [(&str, Metric, Grade, Plant); 7] = [
        ("rate_not_kept", Metric::P99, Invalid, |record| {
            opens(record, 1).for_each(|open| open.sent_in_window = 1970);
        }),
        ("rate_not_kept", Metric::P99, Invalid, |record| {
            opens(record, 1).for_each(|open| open.queued = 30)
        }),
        ("rate_not_kept", Metric::CpuPerRequest, Warning, |record| {
            opens(record, 1).for_each(|open| open.queued = 30);
        }),
        ("client_late", Metric::P99, Warning, |record| {
            late(record, 1_000_000)
        }),
        ("client_late", Metric::P99, Invalid, |record| {
            late(record, 5_000_000)
        }),
        ("quantile_unresolved", Metric::P999, Invalid, |_| {}),
        ("quantile_unresolved", Metric::P99, Invalid, |record| {
            opens(record, 1).for_each(|open| (0..30).for_each(|_| open.response.censor(1000)));
        }),
    ];
    for (check, metric, grade, plant) in faults {
        let mut record = open(metric);
        plant(&mut record);
        let found = found(&record);
        assert!(found.contains(&(check, grade)), "{check}: {found:?}");
        let void = conclude(&record).comparisons[0].outcome == Outcome::Invalid;
        assert_eq!(void, grade == Invalid, "{check}");
    }
    let mut record = open(Metric::P99);
    late(&mut record, 190_000);
    opens(&mut record, 1).for_each(|open| open.response.censor(1000));
    opens(&mut record, 1).for_each(|open| (open.sent_in_window, open.queued) = (1985, 15));
    let checks = ["rate_not_kept", "client_late", "quantile_unresolved"];
    assert!(
        !found(&record)
            .iter()
            .any(|(check, _)| checks.contains(check))
    );
}

fn late(record: &mut Record, lag_ns: u64) {
    opens(record, 1).for_each(|open| (0..100).for_each(|_| open.schedule_lag.record(lag_ns)));
}

/// Configures four workers in each trial of variant 1, with the given CPU time of processes.
fn cluster(record: &mut Record, cpu_by_process_ns: &[u64]) {
    for trial in trials_of(record, 1) {
        trial.started.services = vec![service_of(0, Some(4))];
        for used in trial
            .slices
            .iter_mut()
            .flat_map(|slice| &mut slice.services)
        {
            used.processes = cpu_by_process_ns.len() as u32;
            used.cpu_by_process_ns = cpu_by_process_ns.to_vec();
        }
    }
}

#[test]
fn workers_that_do_nothing_are_counted_by_what_they_did() {
    let said = |cpu: &[u64]| {
        let mut record = sound();
        cluster(&mut record, cpu);
        let conclusion = conclude(&record);
        let serving = conclusion.variants[1].services[0].serving;
        let finding = conclusion
            .findings
            .into_iter()
            .find(|finding| finding.check.name() == "workers_idle");
        (
            serving,
            finding.map(|finding| (finding.grade, finding.evidence.to_string())),
        )
    };
    // A primary that only distributes connections is not a worker.
    assert_eq!(said(&[100, 95, 90, 80, 4]), (Some(4), None));
    let (serving, told) = said(&[97, 1, 1, 1]);
    let evidence = "level-1: 1 of 4 workers of api did 97 % of its work in 10 of 10 trials";
    assert_eq!((serving, told), (Some(1), Some((Invalid, evidence.into()))));
    let (serving, told) = said(&[50, 45, 5]);
    assert_eq!((serving, told.map(|told| told.0)), (Some(3), Some(Warning)));
    assert_eq!(
        said(&[]),
        (None, None),
        "a record that does not say accuses nobody"
    );
}

#[test]
fn what_shared_processors_cost_is_bounded_by_what_the_client_used() {
    let mut record = sound();
    trials_of(&mut record, 0).for_each(|trial| trial.started.cpus_shared = true);
    let wall: u64 = slices_of(&mut record, 1)
        .map(|slice| slice.counts.wall_ns())
        .sum();
    let used: u64 = slices_of(&mut record, 1)
        .flat_map(|slice| &slice.counts.generator.cpu_ns)
        .sum();
    trials_of(&mut record, 0).for_each(|trial| trial.started.services = vec![service_of(2, None)]);
    let expected = used as f64 / wall as f64 / 2.0;
    let finding = conclude(&record).findings.remove(0);
    assert_eq!(
        (finding.check.name(), finding.grade),
        ("cores_shared", Warning)
    );
    assert!(
        finding
            .evidence
            .contains("services on 0, 1, generator on 0"),
        "{finding:?}"
    );
    let told = finding
        .evidence
        .split("up to ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let told: f64 = told.and_then(|told| told.parse().ok()).expect("a share");
    assert!(
        (told / 100.0 - expected).abs() < 0.01,
        "{finding:?}, expected {expected}"
    );
}

#[test]
fn a_difference_comes_in_the_metrics_own_unit_with_the_sign_of_the_ratio() {
    let mut record = sound();
    record.header.plan.design.metric = Metric::CpuPerRequest;
    let conclusion = conclude(&record);
    let (comparison, variants) = (&conclusion.comparisons[0], &conclusion.variants);
    let us = |index: usize| variants[index].cpu_us_per_request.expect("it was measured");
    let difference = comparison.difference.expect("there is an estimate");
    assert_eq!(difference.unit, Unit::Us);
    assert!(
        (difference.value - (us(1) - us(0))).abs() < 5.0,
        "{difference:?}"
    );
    assert!(
        difference.low < difference.value
            && difference.value < difference.high
            && difference.high < 0.0
    );
    let mut others = comparison.exploratory.iter();
    assert!(others.all(|other| other.metric != Metric::Throughput || other.difference.is_none()));
}

#[test]
fn what_became_of_requests_of_which_none_succeeded_is_told_in_one_line() {
    type Plant = fn(&mut Slice);
    let cases: [(&str, Plant); 5] = [
        ("level-1: 0 of 42,369 succeeded: status 503", |slice| {
            slice.counts.status = [(503, slice.counts.sent)].into()
        }),
        ("level-1: no response within 5s (0 of 42,369)", |slice| {
            (slice.counts.timed_out, slice.counts.responses) = (slice.counts.sent, 0);
            slice.counts.status.clear();
        }),
        (
            "level-1: 0 of 42,369 succeeded: header content-encoding (absent)",
            |slice| {
                let (kind, count) = (
                    FailureKind::Header("content-encoding".into()),
                    slice.counts.sent,
                );
                slice.counts.contract_failures = vec![ContractFailure {
                    kind,
                    count,
                    example: "absent".into(),
                }];
            },
        ),
        (
            "level-1: 0 of 42,369 succeeded: log-in POST /login (status 401)",
            |slice| {
                let (kind, count) = (FailureKind::LogIn("POST /login".into()), slice.counts.sent);
                slice.counts.contract_failures = vec![ContractFailure {
                    kind,
                    count,
                    example: "status 401".into(),
                }];
                slice.counts.status = [(401, slice.counts.sent)].into();
            },
        ),
        (
            "level-1: no request could be sent: connect refused (1,024 times)",
            |slice| {
                (slice.counts.sent, slice.counts.responses) = (0, 0);
                slice.counts.status.clear();
                let error = ErrorCount {
                    phase: Phase::Connect,
                    cause: Cause::Refused,
                    count: 32,
                };
                slice.counts.errors = vec![error];
            },
        ),
    ];
    for (answer, plant) in cases {
        let mut record = sound();
        each(&mut record, 1, |slice| {
            (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
            plant(slice);
        });
        let conclusion = conclude(&record);
        let comparison = &conclusion.comparisons[0];
        let told = (comparison.outcome, comparison.no_success.as_deref());
        assert_eq!(told, (Outcome::NoSuccess, Some(answer)));
        assert_eq!(found(&record), [("no_success", Warning)]);
        assert!(conclusion.is_decided() && conclusion.variants[1].throughput_per_s.is_none());
        // Two blocks are enough without an estimate.
        record.blocks.truncate(2);
        assert_eq!(
            conclude(&record).comparisons[0].outcome,
            Outcome::NoSuccess,
            "{answer}"
        );
    }
}

/// The sound record with these blocks dropped, in which everything failed.
fn dropped(blocks: &[u32]) -> Record {
    let mut record = sound();
    for &block in blocks {
        let why = format!("the host gave {block}0 % of the CPU time to others");
        record.apply(Event::BlockDropped { block, why });
    }
    for slice in slices(&mut record).filter(|slice| blocks.contains(&slice.block)) {
        (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
        slice.counts.timed_out = slice.counts.sent;
        slice.machine.steal_share = 0.5;
    }
    record
}

#[test]
fn a_dropped_block_is_told_with_its_figures_and_has_no_part_in_anything_else() {
    let conclusion = conclude(&dropped(&[3]));
    let [finding] = &conclusion.findings[..] else {
        panic!("{:?}", conclusion.findings)
    };
    assert_eq!(
        (finding.check.name(), finding.grade),
        ("blocks_dropped", Warning)
    );
    let told =
        "1 of 10 blocks were dropped: in block 3 the host gave 30 % of the CPU time to others";
    assert_eq!(finding.evidence.as_str(), told);
    let comparison = &conclusion.comparisons[0];
    let estimate = comparison.estimate.as_ref().expect("nine blocks give one");
    assert_eq!(
        (comparison.outcome, estimate.blocks, conclusion.blocks),
        (Outcome::Better, 9, 9)
    );
    assert!(
        conclusion
            .variants
            .iter()
            .all(|variant| variant.failed == 0 && variant.no_success.is_none())
    );
    assert_eq!(conclusion.blocks_dropped[0].block, 3);
    assert!(conclude(&sound()).blocks_dropped.is_empty());
}

#[test]
fn where_too_few_are_left_there_is_no_verdict_and_it_is_the_machine_that_is_named() {
    let record = dropped(&[1, 2, 3, 4, 5, 6, 7]);
    let said = |record: &Record, check: &str| {
        let findings = conclude(record).findings;
        findings
            .into_iter()
            .find(|finding| finding.check.name() == check)
            .expect("it is found")
    };
    assert!(
        said(&record, "blocks_dropped")
            .evidence
            .ends_with("; 4 more")
    );
    assert!(
        said(&record, "too_few_blocks")
            .evidence
            .starts_with("3 complete blocks")
    );
    assert_eq!(
        conclude(&record).comparisons[0].outcome,
        Outcome::Inconclusive
    );
}

#[test]
fn a_calibration_is_of_the_blocks_that_count_and_tells_what_the_host_took_in_all() {
    let all = Calibration::of(&sound()).expect("there are ten blocks");
    let fewer = Calibration::of(&dropped(&[1, 7])).expect("there are eight blocks");
    assert_eq!(
        (
            all.blocks,
            fewer.blocks,
            all.steal.max_share,
            fewer.steal.max_share
        ),
        (10, 8, 0.0, 0.5)
    );
    // The first block observed the warm-up, even if dropped.
    assert_eq!(all.first_block_s, fewer.first_block_s);
    assert_eq!(
        Calibration::of(&dropped(&[1, 2, 3, 4, 5, 6, 7])),
        None,
        "three blocks give none"
    );
}

/// A record may contain anything: this one names more combinations of levels than memory would hold.
#[test]
fn factors_of_more_combinations_than_a_plan_may_have_show_no_effects() {
    let mut record = sound();
    let levels = vec!["a".to_owned(), "b".to_owned()];
    record.header.plan.factors = (0..70)
        .map(|number| Factor {
            name: format!("f{number}"),
            levels: levels.clone(),
        })
        .collect();
    assert_eq!(conclude(&record).effects, []);
}
