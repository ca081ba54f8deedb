//! Services that become faster while they are measured: their figures give no verdict, and the report
//! recommends a longer warm-up.

use std::time::Duration;

use analysis::Check;
use analysis::{Conclusion, Grade, Outcome};
use plan::Plan;
use record::Record;

use crate::environment::{Simulated, finished, plan};

fn budget(seconds: u64) -> Plan {
    let mut plan = plan(2);
    plan.design.budget = Duration::from_secs(seconds);
    plan
}

/// A run in which variant 1 doubles its speed when its process has this age.
fn growing(plan: Plan, after_s: f64) -> (Record, Conclusion) {
    let mut environment = Simulated::new(5, &[0.0, -0.4]);
    environment.grows_up = Some((1, after_s, std::f64::consts::LN_2));
    let record = finished(plan, 5, &mut environment);
    let conclusion = analysis::conclude(&record);
    (record, conclusion)
}

#[test]
fn variant_that_still_changes_gets_no_verdict() {
    let (record, conclusion) = growing(budget(40), 4.9);
    assert!(record.blocks_kept() >= 4, "{:?}", record.ended);
    let finding = conclusion.finding(Check::WarmUpInside).expect("it is told");
    assert_eq!(
        (finding.grade, &finding.variants[..]),
        (Grade::Invalid, &[1][..]),
        "{finding:?}"
    );
    let (evidence, remedy) = (finding.evidence.to_string(), finding.remedy.to_string());
    assert!(
        evidence.contains("its slices within a trial go from "),
        "{evidence}"
    );
    assert!(
        remedy.contains("--warmup 10s") && remedy.contains("--budget "),
        "{remedy}"
    );
    assert_eq!(conclusion.comparisons[0].outcome, Outcome::Invalid);
}

#[test]
fn warm_up_lasts_longer_if_first_block_still_changes() {
    let (record, conclusion) = growing(budget(600), 7.5);
    let warm_up = record.warm_up.as_ref().expect("it was settled");
    assert!(warm_up.seconds > 3.2, "{warm_up:?}");
    assert_eq!(
        conclusion.comparisons[0].outcome,
        Outcome::Better,
        "{:?}",
        conclusion.findings
    );
}

#[test]
fn warm_up_as_asked_makes_the_verdict_right() {
    let mut plan = budget(300);
    plan.design.warmup = Some(Duration::from_secs(12));
    let (_, conclusion) = growing(plan, 11.0);
    assert_eq!(
        conclusion.comparisons[0].outcome,
        Outcome::Better,
        "{:?}",
        conclusion.findings
    );
}
