//! Processors of the services: separate from the generator's, or shared with it.

use plan::Metric;
use record::Record;

use super::environment::{Simulated, plan, run};

/// A finished run of two variants on four processors, three of which are for confined services.
fn ran(cores: [f64; 2], change: impl FnOnce(&mut plan::Plan)) -> (Record, Simulated) {
    let mut plan = plan(2);
    change(&mut plan);
    let mut environment = Simulated::new(1, &[0.0, 0.0]).with(|it| it.cores = cores.to_vec());
    let (record, result) = run(plan, 1, &mut environment);
    result.expect("it is no error");
    (record, environment)
}

fn shared(record: &Record) -> Vec<bool> {
    record
        .complete_trials()
        .map(|trial| trial.started.cpus_shared)
        .collect()
}

fn rounded(wanted: &[Option<f64>]) -> Vec<f64> {
    wanted
        .iter()
        .flatten()
        .map(|cores| (cores * 10.0).round() / 10.0)
        .collect()
}

#[test]
fn confines_services_that_fit_beside_the_generator() {
    let (record, environment) = ran([0.9, 3.05], |_| {});
    let chosen = record.cores.as_ref().expect("they are chosen");
    assert_eq!(
        (chosen.block, chosen.services.as_slice(), chosen.apart),
        (1, &[0, 1, 2][..], 3)
    );
    assert_eq!(rounded(&chosen.wanted), [0.9, 3.0]);
    assert_eq!(environment.confined, [2], "once, both alive");
    assert!(
        shared(&record).iter().all(|shared| !shared),
        "the first block was confined before it was measured"
    );
    let services = record
        .complete_trials()
        .flat_map(|trial| &trial.started.services);
    assert!(
        services
            .into_iter()
            .all(|service| service.cpus == [0, 1, 2])
    );
}

#[test]
fn leaves_all_processors_to_variants_that_use_more() {
    let (record, environment) = ran([0.9, 3.4], |_| {});
    let chosen = record.cores.as_ref().expect("they are chosen");
    assert_eq!(
        (chosen.services.as_slice(), rounded(&chosen.wanted)),
        (&[][..], vec![0.9, 3.4])
    );
    assert!(environment.confined.is_empty() && shared(&record).iter().all(|shared| *shared));
}

#[test]
fn chooses_before_the_first_block_if_saturation_is_measured() {
    let (record, environment) = ran([0.9, 1.0], |plan| {
        plan.design.metric = Metric::P99;
        plan.design.rate = Some(plan::PlannedRate::ShareOfCapacity(0.6));
    });
    assert_eq!(
        (
            record.cores.as_ref().map(|chosen| chosen.block),
            environment.confined
        ),
        (Some(0), vec![0])
    );
    assert!(shared(&record).iter().all(|shared| !shared));
}
