//! A calibration in the simulated environment, whose spreads are known: it reproduces them, and the values
//! that depend on them.

use std::time::Duration;

use analysis::Calibration;
use plan::Metric;

use crate::environment::{BETWEEN_SD, Simulated, WITHIN_SD, finished, plan};

/// Whether a value is within a share of the expected one.
fn near(found: f64, expected: f64, share: f64) -> bool {
    (found / expected - 1.0).abs() < share
}

#[test]
fn a_calibration_gives_back_the_spreads_of_the_world() {
    let mut experiment = plan(3);
    experiment.design.budget = Duration::from_secs(600);
    // The copies are of variant 0, whatever the others do.
    let mut calibration = experiment
        .calibration(0, experiment.design.budget, None)
        .expect("there is a variant 0");
    // Many short blocks: their number makes a spread certain.
    calibration.design.warmup = Some(Duration::from_secs(1));
    calibration.design.slice = Some(Duration::from_millis(200));
    calibration.design.slices = Some(6);
    let record = finished(calibration, 4, &mut Simulated::new(4, &[0.0, 0.0]));
    let blocks = record.complete_blocks().count();
    let found = Calibration::of(&record).expect("there are blocks enough");
    assert_eq!(found.blocks as usize, blocks);
    assert!(blocks > 60, "{blocks} blocks are too few for what follows");

    let noise = found.noise(Metric::Throughput).expect("throughput varies");
    // The standard error of a standard deviation from these blocks is below 9 %. The tolerance is above twice
    // that.
    let processes = noise.processes_sd.expect("there are processes");
    let slices = noise.slices_sd.expect("there are slices");
    assert!(near(processes, BETWEEN_SD, 0.2), "{processes}");
    assert!(near(slices, WITHIN_SD, 0.2), "{slices}");
    let per_trial = f64::from(
        record
            .allocation
            .as_ref()
            .expect("slices were settled")
            .slices,
    );
    let ratio_sd = (2.0 * (BETWEEN_SD.powi(2) + WITHIN_SD.powi(2) / per_trial)).sqrt();
    assert!(
        near(noise.sd_log, ratio_sd, 0.2),
        "{} for {ratio_sd}",
        noise.sd_log
    );
    assert!(
        noise.blocks_lag1.is_some_and(|lag1| lag1.abs() < 0.3),
        "{:?}",
        noise.blocks_lag1
    );
    assert!(
        noise.copies.low < 1.0 && noise.copies.high > 1.0 && !noise.copies.differ,
        "{:?}",
        noise.copies
    );

    // Detectable differences become smaller with time, and the margin's run is the first that finds the
    // margin.
    let least: Vec<f64> = noise
        .found
        .iter()
        .filter_map(|found| found.difference)
        .collect();
    assert!(
        least.len() == 3 && least[0] > least[1] && least[1] > least[2],
        "{:?}",
        noise.found
    );
    let fits = |found: &analysis::BudgetReach| {
        f64::from(found.blocks) * found_block_s(&record) <= found.budget_s * 1.05
    };
    assert!(noise.found.iter().all(fits), "{:?}", noise.found);
    let enough = noise.blocks_to_find(least[1] * 1.001, &experiment.design, 1);
    assert_eq!(enough, Some(noise.found[1].blocks));
    assert_eq!(noise.blocks_to_find(0.0001, &experiment.design, 1), None);
}

/// Mean seconds of a block after those that determine the settings.
fn found_block_s(record: &record::Record) -> f64 {
    let later = record
        .complete_blocks()
        .skip(3)
        .filter_map(|block| block.seconds);
    stats::mean(later).expect("there are more blocks than three")
}
