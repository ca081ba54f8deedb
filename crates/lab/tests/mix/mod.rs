//! Several requests with weights: the same sequence for all variants of a block, and trials long enough for a rare one.

use std::collections::BTreeSet;

use plan::{Endpoint, Metric, Rate};
use record::{EndReason, Trial};

use crate::environment::{Simulated, finished, plan, reason};

#[test]
fn variants_of_a_block_draw_the_same_requests_and_blocks_others() {
    let mut environment = Simulated::new(3, &[0.0, 0.2, 0.1]);
    let record = finished(plan(3), 3, &mut environment);
    let blocks = record.complete_blocks().count();
    let seeds: BTreeSet<(u32, u64)> =
        environment.starts.iter().map(|start| (start.block, start.requests_seed)).collect();
    assert_eq!(seeds.len(), blocks, "one seed a block: {seeds:?}");
    let alone: BTreeSet<u64> = seeds.iter().map(|(_, seed)| *seed).collect();
    assert_eq!(alone.len(), blocks, "each block has a seed of its own");
}

#[test]
fn a_trial_has_requests_enough_of_the_endpoint_that_is_judged() {
    let mut plan = plan(2);
    (plan.design.metric, plan.design.rate) = (Metric::P90, Some(Rate::PerSecond(400.0)));
    plan.design.endpoint = Some(Endpoint { name: "auth".into(), share: 0.02 });
    plan.design.budget = std::time::Duration::from_secs(1200);
    let record = finished(plan.clone(), 5, &mut Simulated::new(5, &[0.0, 0.0]));
    assert!(record.blocks_kept() >= 6, "{:?}", record.ended);
    for trial in record.complete_trials() {
        let due: u64 = Trial::measured(trial).map(|slice| slice.counts.due()).sum();
        // p90 wants 100 and some more of the two in a hundred.
        assert!(due as f64 * 0.02 >= 100.0, "{due}");
    }

    plan.design.budget = std::time::Duration::from_secs(60);
    let record = finished(plan, 5, &mut Simulated::new(5, &[0.0, 0.0]));
    assert!(matches!(reason(&record), EndReason::BudgetTooSmall { needed_s } if *needed_s > 200));
}
