//! One variant measured without a comparison: a slice for each rate in one trial, each judged separately.

use std::time::Duration;

use analysis::Check;
use model::{ArrivalProcess, Grade, Rate, Until};
use plan::{Limit, Measure, Plan};
use record::{EndReason, SliceKind};

use crate::environment::{Fault, Simulated, finished, plan, reason};

fn alone(rates: &str) -> Plan {
    let measure = Measure {
        until: Until::Elapsed(Duration::from_secs(2)),
        rates: Some(rates.parse().expect("rates")),
        arrivals: ArrivalProcess::Constant,
        warmup: Duration::ZERO,
    };
    Plan {
        factors: Vec::new(),
        measure: Some(measure),
        ..plan(1)
    }
}

#[test]
fn a_share_is_of_the_capacity_and_each_rate_has_a_slice_that_limits_are_compared_with() {
    let mut plan = alone("50%,100");
    let limits = ["p50 < 1s", "throughput > 1000000/s", "failed < 0.001%"]
        .map(|text| plan::limit(text).expect("a limit"));
    plan.gate.extend(limits.map(|limit: Limit| plan::GateEntry {
        limit,
        of: None,
        line: None,
    }));
    let mut environment = Simulated::new(7, &[0.0]);
    let record = finished(plan, 7, &mut environment);
    assert!(reason(&record) == &EndReason::Measured && environment.living.is_empty());
    let [block] = &record.blocks[..] else {
        panic!("{} blocks", record.blocks.len())
    };
    let kinds: Vec<SliceKind> = block.trials[0]
        .slices
        .iter()
        .map(|slice| slice.kind)
        .collect();
    use SliceKind::{Capacity, Measured, WarmUp};
    assert_eq!(kinds, [WarmUp, Capacity, Measured, Measured]);

    let measured = analysis::measurement(&record).expect("it is a measurement");
    let capacity_per_s = measured
        .capacity
        .as_ref()
        .and_then(analysis::MeasuredWindow::throughput_per_s)
        .expect("a capacity");
    let rates: Vec<Rate> = measured
        .windows
        .iter()
        .filter_map(|window| Some(window.asked.open?.rate))
        .collect();
    assert_eq!(
        rates,
        [Rate::Constant(capacity_per_s * 0.5), Rate::Constant(100.0)]
    );
    let names: Vec<&str> = measured
        .windows
        .iter()
        .map(|window| window.name.as_str())
        .collect();
    assert_eq!(names, ["50 %", "100/s"]);
    let seeds: Vec<u64> = environment.arrivals.iter().map(|of| of.2.seed).collect();
    assert!(
        matches!(seeds[..], [one, other] if one != other),
        "each rate draws its own arrivals: {seeds:?}"
    );

    let conclusion = analysis::conclude(&record);
    assert!(!conclusion.is_void(), "{:?}", conclusion.findings);
    let gate = analysis::gated(&record, &conclusion, &record.header.plan.gate);
    let rulings: Vec<analysis::Ruling> = gate
        .judgements
        .iter()
        .map(|judgement| judgement.ruling)
        .collect();
    use analysis::Ruling::{Fail, Inconclusive, Pass};
    // No failure among some thousands does not prove fewer than one in a hundred thousand.
    assert_eq!(
        rulings,
        [Pass, Pass, Fail, Fail, Inconclusive, Inconclusive]
    );
}

#[test]
fn without_a_success_there_is_no_capacity_and_no_share_of_it() {
    let record = finished(
        alone("50%"),
        7,
        &mut Simulated::new(7, &[0.0]).failing(Fault::AllFail),
    );
    let measured = analysis::measurement(&record).expect("it is a measurement");
    assert!(measured.windows.is_empty() && measured.void().is_some());
    let found = analysis::conclude(&record).findings;
    let mut graded = found.iter().map(|found| (found.check, found.grade));
    assert!(
        graded.any(|graded| graded == (Check::NoSuccess, Grade::Invalid)),
        "{found:?}"
    );
}

#[test]
fn of_responses_that_come_after_the_capacity_was_measured_there_is_no_share() {
    let mut slow = Simulated::new(7, &[0.0]).with(|it| it.response_s = 3.5);
    let record = finished(alone("50%"), 7, &mut slow);
    assert!(matches!(reason(&record), EndReason::Void(why) if why.contains("requests per second")));
    assert!(analysis::conclude(&record).is_void() && slow.living.is_empty());
}

#[test]
fn who_stops_it_keeps_what_there_is() {
    let record = finished(
        alone("50,60"),
        7,
        &mut Simulated::new(7, &[0.0]).failing(Fault::Interrupt(1)),
    );
    assert_eq!(
        (reason(&record), record.blocks_kept()),
        (&EndReason::Interrupted, 1)
    );
    let measured = analysis::measurement(&record).expect("it is a measurement");
    assert!(measured.interrupted && measured.windows.is_empty() && measured.planned == 2);
}
