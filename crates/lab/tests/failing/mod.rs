//! Variants that never succeed, or only at times. The first is a result that leaves the others theirs. The
//! second is none, and ends a run as soon as no other result is possible.

use std::time::Duration;

use analysis::{Conclusion, Outcome, conclude};
use plan::{LookRule, Metric, Plan, PlannedRate};
use record::{EndReason, Record};

use crate::environment::{Fault, Simulated, found, outcomes, plan, reason, run};

fn failing(plan: Plan, fault: Fault, effects: &[f64]) -> (Record, Conclusion) {
    let (record, result) = run(plan, 7, &mut Simulated::new(7, effects).failing(fault));
    result.expect("it is no error");
    let conclusion = conclude(&record);
    (record, conclusion)
}

fn long(variants: usize) -> Plan {
    let mut plan = plan(variants);
    plan.design.budget = Duration::from_secs(1200);
    plan
}

#[test]
fn a_variant_that_never_answers_is_told_so_and_the_others_are_judged() {
    for looks in [LookRule::EachBlock, LookRule::Once] {
        let mut plan = long(4);
        plan.design.looks = looks;
        (plan.design.warmup, plan.design.slices) = (Some(Duration::from_secs(1)), Some(2));
        let (record, conclusion) = failing(plan, Fault::TimesOut(2), &[0.0, 0.4, 0.0, -0.4]);
        assert_eq!(
            outcomes(&conclusion),
            [Outcome::Better, Outcome::NoSuccess, Outcome::Worse],
            "{looks:?}"
        );
        let requests = conclusion.variants[2].requests;
        let comparison = &conclusion.comparisons[1];
        let answer = format!(
            "level-2: no response within 5s (0 of {})",
            model::quantity::count(requests)
        );
        assert_eq!(comparison.no_success.as_deref(), Some(answer.as_str()));
        assert!(comparison.estimate.is_none() && comparison.ratio_so_far.is_none() && requests > 0);
        assert!(comparison.exploratory.is_empty());
        // Consequences of it are not reported as well.
        assert_eq!(found(&conclusion), ["no_success"], "{looks:?}");
        assert!(!conclusion.is_void());
        let ended = if looks == LookRule::Once {
            &EndReason::LastLook
        } else {
            &EndReason::Decided
        };
        assert!(
            reason(&record) == ended || looks == LookRule::Once,
            "{:?}",
            record.ended
        );
    }
}

#[test]
fn slices_are_still_settled_from_the_spread_of_those_that_succeed() {
    let (record, _) = failing(long(3), Fault::TimesOut(1), &[0.0, 0.0, 0.0]);
    let allocation = record.allocation.expect("it was settled");
    assert!(
        allocation.measured && allocation.within_sd.is_some_and(|sd| sd > 0.005),
        "{allocation:?}"
    );
    let warm_up = record.warm_up.expect("it was settled");
    assert!(warm_up.measured && warm_up.seconds < 5.0, "{warm_up:?}");
}

#[test]
fn a_baseline_that_never_answers_leaves_no_comparison_and_no_void() {
    let (record, conclusion) = failing(long(3), Fault::TimesOut(0), &[0.0, 0.4, 0.0]);
    assert!(
        conclusion
            .comparisons
            .iter()
            .all(|comparison| comparison.outcome == Outcome::NoSuccess)
    );
    let mut why = conclusion
        .comparisons
        .iter()
        .map(|comparison| &comparison.no_success);
    assert!(why.all(|why| why.as_ref().is_some_and(|of| of.starts_with("level-0:"))));
    assert_eq!(
        (reason(&record), conclusion.is_void(), conclusion.blocks),
        (&EndReason::Decided, false, 4)
    );
}

#[test]
fn the_rate_is_that_of_the_slowest_that_succeeds() {
    let mut plan = long(3);
    (plan.design.metric, plan.design.rate) = (Metric::P90, Some(PlannedRate::ShareOfCapacity(0.5)));
    let (record, conclusion) = failing(plan, Fault::TimesOut(2), &[0.0, -0.3, 0.0]);
    let rate = record.rate.expect("it was settled");
    assert!(
        (rate.per_s - rate.capacities_per_s[1] / 2.0).abs() < 1e-6
            && rate.capacities_per_s[2] == 0.0
    );
    assert_eq!(conclusion.comparisons[1].outcome, Outcome::NoSuccess);
    let judged = conclusion.comparisons[0].estimate.is_some() && !conclusion.is_void();
    assert!(judged, "{:?}", conclusion.findings);
}

#[test]
fn one_that_fails_in_a_block_ends_the_run_only_where_nothing_else_is_compared() {
    let (record, conclusion) = failing(long(2), Fault::Breaks(3), &[0.0, 0.4]);
    let void = matches!(reason(&record), EndReason::Void(why) if why.ends_with("level-1: 0 of 100 succeeded: status 500"));
    assert!(
        void && record.complete_blocks().count() == 2,
        "{:?}",
        record.ended
    );
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Invalid);

    let (_, conclusion) = failing(long(3), Fault::Breaks(3), &[0.0, 0.4, 0.4]);
    assert_eq!(outcomes(&conclusion), [Outcome::Invalid, Outcome::Better]);
}

#[test]
fn without_comparisons_it_ends_at_once() {
    let (record, _) = failing(long(1), Fault::TimesOut(0), &[0.0]);
    let EndReason::Void(why) = reason(&record) else {
        panic!("{:?}", record.ended)
    };
    assert!(why.contains("no response within 5s (0 of 100)"), "{why}");
    assert_eq!(record.blocks[0].trials[0].slices.len(), 1);
}

#[test]
fn a_treatment_that_is_not_applied_ends_the_run_after_the_first_warm_up() {
    let mut compressed = long(3);
    compressed.variants[1].expect.headers =
        [("content-encoding".to_owned(), vec!["gzip".to_owned()])]
            .into_iter()
            .collect();
    for (sent, cause) in [
        (
            None,
            "the requests said no accept-encoding, and bodies have 1,000 bytes",
        ),
        (
            Some("br"),
            "load.headers.accept-encoding does not name that coding: add it",
        ),
        (
            Some("br, gzip;q=0.5"),
            "compression usually begins at 1024 bytes",
        ),
    ] {
        let mut plan = compressed.clone();
        plan.variants[1].load.requests[0].headers = sent
            .map(|value| ("Accept-Encoding".to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let (record, conclusion) = failing(plan, Fault::Plain(1), &[0.0, 0.0, 0.4]);
        let EndReason::Void(why) = reason(&record) else {
            panic!("{:?}", record.ended)
        };
        let said = "level-1: level level-1 of setting declares content-encoding gzip, and 100 of 100 responses had none instead";
        assert!(why.starts_with(said) && why.contains(cause), "{why}");
        // The remaining comparison does not save the run, because the experiment is not the requested one.
        let warm_ups = record.blocks[0]
            .trials
            .iter()
            .map(|trial| trial.slices.len())
            .sum::<usize>();
        assert!(record.blocks.len() == 1 && warm_ups <= 3, "{warm_ups}");
        assert!(
            conclusion.is_void()
                && conclusion
                    .comparisons
                    .iter()
                    .all(|c| c.outcome == Outcome::Invalid)
        );
    }
}

#[test]
fn a_worker_that_is_lost_ends_the_run_only_where_nothing_else_is_compared() {
    let (record, conclusion) = failing(long(2), Fault::LosesWorker(1), &[0.0, 0.4]);
    let EndReason::Void(why) = reason(&record) else {
        panic!("{:?}", record.ended)
    };
    assert!(
        why.starts_with("level-1: api lost 1 process in block 1"),
        "{why}"
    );
    assert!(record.blocks.len() == 1 && conclusion.comparisons[0].outcome == Outcome::Invalid);

    let (record, conclusion) = failing(long(3), Fault::LosesWorker(1), &[0.0, 0.4, 0.4]);
    assert_eq!(
        outcomes(&conclusion),
        [Outcome::Invalid, Outcome::Better],
        "{:?}",
        record.ended
    );
}
