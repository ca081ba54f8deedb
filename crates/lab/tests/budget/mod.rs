//! The budget covers a run from its first start to its end, and the remaining time is never understated.

use std::time::Duration;

use plan::{Plan, Ready, Service, ServiceCommand, ServiceSource};
use proofload_lab::Update;
use record::{EndReason, Record};

use crate::environment::{Simulated, finished, plan, reason, watched};

/// Two variants with unknown ports, so that each is started once more than there are blocks.
fn unknown_ports(budget_s: u64) -> Plan {
    let service = Service {
        name: "api".into(),
        source: ServiceSource::Command(ServiceCommand::default()),
        ready: Ready::Tcp,
        ready_timeout: Duration::from_secs(60),
        needs: Vec::new(),
    };
    let mut plan = plan(2);
    plan.design.budget = Duration::from_secs(budget_s);
    plan.variants
        .iter_mut()
        .for_each(|variant| variant.services.push(service.clone()));
    plan
}

fn ended_s(record: &Record) -> f64 {
    record.ended.as_ref().expect("the run ended").seconds
}

#[test]
fn budget_includes_starts_that_find_ports() {
    for start_s in [
        (|_| 12.0) as fn(u32) -> f64,
        |_| 7.0,
        |block| if block == 0 { 2.0 } else { 20.0 },
    ] {
        let run = |budget_s| {
            let mut environment = Simulated::new(3, &[0.0, 0.5]).with(|it| it.start_s = start_s);
            finished(unknown_ports(budget_s), 3, &mut environment)
        };
        let record = run(30);
        let EndReason::BudgetTooSmall { needed_s } = *reason(&record) else {
            panic!("{:?}", record.ended)
        };
        assert!(ended_s(&record) <= 30.0 * 1.06, "{:?}", record.ended);
        // A run with the reported budget has a verdict.
        let enough = run(needed_s);
        assert!(enough.blocks_kept() >= 4, "{needed_s}: {:?}", enough.ended);
        assert!(
            ended_s(&enough) <= needed_s as f64 * 1.06,
            "{:?}",
            enough.ended
        );
    }
}

#[test]
fn time_left_is_never_understated() {
    for start_s in [
        (|_| 0.4) as fn(u32) -> f64,
        |block| f64::from(block),
        |block| 12.0 / f64::from(block),
    ] {
        for blocks in [None, Some(7)] {
            let mut plan = plan(2);
            plan.design.blocks = blocks;
            let mut environment = Simulated::new(3, &[0.0, 0.0]).with(|it| it.start_s = start_s);
            let mut told: Vec<(f64, f64)> = Vec::new();
            let (record, result) =
                watched(plan, 3, &mut environment, &mut |update: &Update<'_>| {
                    told.push((update.elapsed_s, update.left_s));
                });
            result.expect("nothing went wrong");
            let ended_s = ended_s(&record);
            for (elapsed_s, left_s) in told {
                // The remaining ones of a fixed number of blocks are assumed to take as long as the longest
                // so far, and may get more slices.
                let tolerance = if blocks.is_some() { 1.4 } else { 1.06 };
                assert!(
                    ended_s <= (elapsed_s + left_s) * tolerance,
                    "{elapsed_s} + {left_s}: {ended_s}"
                );
            }
        }
    }
}
