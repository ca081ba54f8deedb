//! Two records are compared where that means something, and what forbids it is said instead of a figure.

use proofload_analysis::{Grade, across};

use crate::given::sound;

#[test]
fn a_record_beside_itself_has_not_moved() {
    let seen = across(&sound(), &sound());
    assert_eq!((seen.findings.len(), seen.left_out.len()), (0, 0), "{seen:?}");
    assert!(!seen.shifts.is_empty());
    for shift in seen.shifts {
        let ratio = shift.ratio.expect("six blocks have an interval");
        assert!((ratio.ratio - 1.0).abs() < 1e-12 && ratio.low < 1.0 && ratio.high > 1.0, "{ratio:?}");
    }
}

#[test]
fn a_service_that_became_slower_shows_by_how_much() {
    let mut after = sound();
    let trials = after.blocks.iter_mut().flat_map(|block| &mut block.trials);
    for slice in trials.flat_map(|trial| &mut trial.slices) {
        slice.counts.window_ns *= 2;
    }
    let seen = across(&sound(), &after);
    let slower = seen.shifts.iter().filter(|shift| shift.metric == plan::Metric::Throughput);
    let ratios: Vec<f64> = slower.map(|shift| shift.ratio.expect("an interval").ratio).collect();
    assert!(!ratios.is_empty() && ratios.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9), "{ratios:?}");
}

#[test]
fn another_machine_voids_every_absolute_figure() {
    let mut after = sound();
    after.header.environment.cpu_model = Some("another processor".into());
    after.header.environment.cpus += 2;
    let mut before = sound();
    before.header.environment.cpu_model = Some("a processor".into());
    let seen = across(&before, &after);
    assert!(seen.shifts.is_empty(), "a number that is printed gets quoted");
    let finding = seen.findings.first().expect("a finding");
    assert_eq!(
        (finding.check.name(), finding.grade, finding.check.number()),
        ("other_machine", Grade::Void, "V47")
    );
    assert!(finding.evidence.contains("a processor and another processor"), "{}", finding.evidence);
}

#[test]
fn what_one_record_does_not_tell_is_no_difference() {
    let mut after = sound();
    after.header.environment.kernel = None;
    after.header.environment.libc = Some("glibc 2.41".into());
    after.header.environment.memory_bytes =
        after.header.environment.memory_bytes.map(|bytes| bytes + bytes / 100);
    assert!(across(&sound(), &after).findings.is_empty());
}

#[test]
fn another_load_is_left_out_and_named() {
    let mut after = sound();
    after.header.plan.variants[0].load.connections += 1;
    after.header.plan.variants[1].name = "renamed".into();
    let seen = across(&sound(), &after);
    assert!(seen.shifts.is_empty(), "{seen:?}");
    let said = seen.left_out.join("\n");
    for part in ["another load was asked for", "renamed: only in the second", "only in the first"] {
        assert!(said.contains(part), "{said}");
    }
}
