//! The dispatcher over a simulated environment in open loop. The rate depends on the slowest variant and is
//! common to all, trials are long enough for the quantile, and a planted difference in latency is found with
//! the right sign.

use std::time::Duration;

use analysis::Outcome;
use plan::{JudgedEndpoint, Metric, Plan, PlannedRate};
use record::{EndReason, SliceKind};

use crate::environment::{Simulated, assert_in_budget, finished, plan, reason};

fn latency_plan(metric: Metric, rate: PlannedRate) -> Plan {
    let mut plan = plan(2);
    plan.design.metric = metric;
    plan.design.rate = Some(rate);
    plan
}

#[test]
fn a_planted_difference_in_latency_is_found_though_throughput_says_the_opposite() {
    let mut environment = Simulated::new(7, &[0.0, 0.30]);
    environment.slower = vec![0.0, 0.20];
    let record = finished(
        latency_plan(Metric::P99, PlannedRate::ShareOfCapacity(0.6)),
        7,
        &mut environment,
    );
    let conclusion = analysis::conclude(&record);
    assert_eq!(conclusion.findings, []);
    let comparison = &conclusion.comparisons[0];
    assert_eq!(comparison.outcome, Outcome::Worse);
    let estimate = comparison
        .estimate
        .as_ref()
        .expect("six blocks give an estimate");
    assert!(
        estimate.low < 0.20_f64.exp() && 0.20_f64.exp() < estimate.high,
        "{estimate:?}"
    );
    let others: Vec<Metric> = comparison
        .exploratory
        .iter()
        .map(|other| other.metric)
        .collect();
    assert!(
        others.contains(&Metric::P50) && others.contains(&Metric::P90),
        "{others:?}"
    );
    assert!(
        !others.contains(&Metric::Throughput),
        "it is given, and not found"
    );
    let shown = conclusion.variants[0]
        .response_time
        .iter()
        .find(|shown| shown.metric == Metric::P99);
    let p99_us = shown.expect("every trial has it").us;
    assert!((4500.0..7000.0).contains(&p99_us), "{p99_us}");
    assert!(environment.living.is_empty());
}

/// Processes vary by 5 % in either direction, so that the slowest responses mostly come from slow processes.
#[test]
fn the_quantile_of_all_responses_together_is_compared_where_that_is_asked() {
    let mut plan = latency_plan(Metric::P99, PlannedRate::ShareOfCapacity(0.6));
    plan.design.pooled = true;
    let record = finished(
        plan,
        7,
        &mut Simulated::new(7, &[0.0, 0.30]).with(|it| it.slower = vec![0.0, 0.20]),
    );
    let conclusion = analysis::conclude(&record);
    let estimate = conclusion.comparisons[0]
        .estimate
        .as_ref()
        .expect("it was decided");
    assert!(
        estimate.low < 0.20_f64.exp() && 0.20_f64.exp() < estimate.high,
        "{estimate:?}"
    );
    let p99_ns = |variant: usize| {
        let mut all = stats::Latencies::new();
        let trials = record
            .complete_blocks()
            .filter_map(|block| block.trial(variant));
        for slice in trials.flat_map(record::Trial::measured) {
            all.merge(&slice.counts.open.as_ref().expect("it has a rate").response);
        }
        all.quantile(0.99).expect("there are enough").ns() as f64
    };
    let ratio = p99_ns(1) / p99_ns(0);
    assert!(
        (estimate.ratio / ratio - 1.0).abs() < 0.001,
        "{} and {ratio}",
        estimate.ratio
    );
}

/// A quantile over all blocks of the baseline changes with each, and an earlier decision about a variant that
/// is no longer measured would be open again.
#[test]
fn where_quantiles_are_of_all_blocks_each_variant_is_in_all_of_them() {
    let mut pooled = plan(3);
    (pooled.design.metric, pooled.design.pooled) = (Metric::P99, true);
    pooled.design.rate = Some(PlannedRate::ShareOfCapacity(0.6));
    let mut environment = Simulated::new(7, &[0.0, 0.0, 0.0]);
    environment.slower = vec![0.0, 0.50, 0.0];
    let record = finished(pooled, 7, &mut environment);
    assert_eq!(
        analysis::conclude(&record).comparisons[0].outcome,
        Outcome::Worse
    );
    assert!(
        record.blocks_kept() > 4
            && record
                .complete_blocks()
                .all(|block| block.trials.len() == 3)
    );
}

#[test]
fn the_rate_is_a_share_of_the_slowest_and_variants_of_a_block_get_the_same_arrivals() {
    let mut environment = Simulated::new(3, &[0.0, -0.7]);
    let record = finished(
        latency_plan(Metric::P90, PlannedRate::ShareOfCapacity(0.5)),
        3,
        &mut environment,
    );
    let rate = record.rate.as_ref().expect("the rate was settled");
    let [first, second] = rate.capacities_per_s[..] else {
        panic!("two variants: {rate:?}")
    };
    assert!(
        first > 1.5 * second && (rate.per_s - second / 2.0).abs() < 1e-6,
        "{rate:?}"
    );
    let capacity = &record.blocks[0];
    assert_eq!(
        (capacity.number, capacity.seconds, capacity.trials.len()),
        (0, None, 2)
    );
    assert!(capacity.trials.iter().all(|trial| trial.ended.is_some()));
    assert!(record.complete_blocks().all(|block| block.number > 0));
    assert!(
        record
            .warm_up
            .as_ref()
            .is_some_and(|warm_up| warm_up.measured),
        "block 1 is the one watched"
    );
    for block in record.complete_blocks() {
        let arrivals = environment
            .arrivals
            .iter()
            .filter(|of| of.1 == block.number);
        let of = |variant| {
            arrivals
                .clone()
                .filter(move |of| of.0 == variant)
                .map(|of| of.2)
        };
        let common = of(0).all(|open| open.rate == model::Rate::Constant(rate.per_s));
        assert!(of(0).eq(of(1)) && common, "block {}", block.number);
        // Warm-up at the limit, then at the common rate, whose first slice does not count.
        for trial in &block.trials {
            let kinds: Vec<(SliceKind, bool)> = trial
                .slices
                .iter()
                .map(|slice| (slice.kind, slice.counts.open.is_some()))
                .collect();
            let expected = [
                (SliceKind::WarmUp, false),
                (SliceKind::WarmUp, true),
                (SliceKind::Measured, true),
            ];
            assert_eq!(kinds[..3], expected);
        }
    }
    let seeds: Vec<u64> = environment.arrivals.iter().map(|of| of.2.seed).collect();
    assert!(
        seeds.iter().any(|seed| *seed != seeds[0]),
        "each block draws arrivals anew"
    );
}

#[test]
fn trials_are_as_long_as_the_quantile_wants_also_of_a_rare_request() {
    let rare = || {
        Some(JudgedEndpoint {
            name: "auth".into(),
            share: 0.02,
        })
    };
    let ran = |metric, per_s, endpoint, budget_s| {
        let mut plan = latency_plan(metric, PlannedRate::PerSecond(per_s));
        (plan.design.endpoint, plan.design.budget) = (endpoint, Duration::from_secs(budget_s));
        finished(plan, 5, &mut Simulated::new(5, &[0.0, 0.0]))
    };
    // p90 needs 100 and some more of the two in a hundred.
    for (record, least) in [
        (ran(Metric::P99, 100.0, None, 300), 1000),
        (ran(Metric::P90, 400.0, rare(), 1200), 5000),
    ] {
        assert!(record.blocks_kept() >= 6, "{:?}", record.ended);
        for trial in record.complete_trials() {
            let due: u64 = trial.measured().map(|slice| slice.counts.due()).sum();
            assert!(due >= least, "{due}");
        }
        assert_in_budget(&record);
    }
    let short = ran(Metric::P90, 400.0, rare(), 60);
    assert!(matches!(reason(&short), EndReason::BudgetTooSmall { needed_s } if *needed_s > 200));
}

#[test]
fn what_the_budget_or_the_slices_cannot_hold_is_said_before_the_first_block() {
    let mut environment = Simulated::new(5, &[0.0, 0.0]);
    let plan = latency_plan(Metric::P999, PlannedRate::ShareOfCapacity(0.01));
    let record = finished(plan, 5, &mut environment);
    let needed_s = match reason(&record) {
        EndReason::BudgetTooSmall { needed_s } => *needed_s,
        other => panic!("{other:?}"),
    };
    // 8 trials of 10,510 requests at 20 per second take more than an hour.
    assert!((7_000..13_000).contains(&needed_s), "{needed_s}");
    assert_eq!(record.blocks_kept(), 0);
    let finding = &analysis::conclude(&record).findings[0];
    assert!(
        finding.remedy.contains("--budget") && finding.remedy.contains("design.rate"),
        "{finding:?}"
    );

    let mut plan = latency_plan(Metric::P99, PlannedRate::ShareOfCapacity(0.1));
    (plan.design.slices, plan.design.slice) = (Some(2), Some(Duration::from_millis(500)));
    let record = finished(plan, 5, &mut environment);
    assert!(
        matches!(reason(&record), EndReason::Void(why) if why.contains("p99 wants 1,169 requests"))
    );
}
