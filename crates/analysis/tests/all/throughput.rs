//! Throughput: for services that wait it is unbiased for any distribution of response times, and for services
//! at their limit it is judged per core-second.

use model::Metric;
use proofload_analysis::Check;
use proofload_analysis::{
    Grade, Outcome, conclude, per_core, ratios_by_block, series, throughput_per_s, waiting_variants,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use record::{Record, Slice, SliceKind};

use crate::given::{sound, trials};

const CONNECTIONS: u32 = 16;

/// A distribution of response times, in seconds.
type Draw = fn(&mut Pcg64) -> f64;

/// Simulates windows of a service that waits, as counted by the engine: all connections begin a window
/// together, and responses in flight at its end are awaited.
fn slice(turns: u32, window_s: f64, draw: Draw, random: &mut Pcg64) -> Slice {
    let mut slice = sound().blocks[0].trials[0].slices[0].clone();
    (slice.connections, slice.waits, slice.turns) = (CONNECTIONS, true, turns);
    let (mut done, mut in_window, mut busy_s) = (0, 0, 0.0);
    for _ in 0..turns * CONNECTIONS {
        let mut at_s = 0.0;
        while at_s < window_s {
            at_s += draw(random);
            done += 1;
            in_window += u64::from(at_s <= window_s);
        }
        busy_s += at_s;
    }
    (slice.counts.successful, slice.counts.successful_in_window) = (done, in_window);
    slice.counts.in_flight_ns = (busy_s * 1e9) as u64;
    slice.counts.window_ns = (f64::from(turns) * window_s * 1e9) as u64;
    slice
}

fn per_s(slice: &Slice) -> f64 {
    throughput_per_s(slice).expect("it has a window")
}

fn uniform(random: &mut Pcg64) -> f64 {
    1.0 - random.random::<f64>()
}

#[test]
fn windows_of_few_responses_give_the_rate_of_long_ones() {
    let draws: [(&str, Draw); 4] = [
        ("constant", |_| 0.005),
        ("exponential", |random| -0.005 * uniform(random).ln()),
        ("log-normal", |random| {
            let angle = std::f64::consts::TAU * uniform(random);
            0.005 * ((-2.0 * uniform(random).ln()).sqrt() * angle.cos() - 0.5).exp()
        }),
        ("one of two", |random| {
            if random.random_bool(0.1) {
                0.041
            } else {
                0.001
            }
        }),
    ];
    let mut random = Pcg64::seed_from_u64(5);
    for (name, draw) in draws {
        // Four responses per connection in a window, and windows that cut responses at any point.
        for window_s in [0.020, 0.0237] {
            let slice = slice(20_000, window_s, draw, &mut random);
            let found = per_s(&slice);
            assert!(
                (found / 3200.0 - 1.0).abs() < 0.01,
                "{name}, {window_s} s: {found} a second"
            );
        }
    }
    // Counted by windows, a varying service looks faster: its first responses come early, and cut-off
    // responses cost less.
    let counted = Slice {
        waits: false,
        ..slice(20_000, 0.020, draws[2].1, &mut random)
    };
    assert!(per_s(&counted) / 3200.0 > 1.05);
}

/// The stored record with services that used these shares of their one core: in warm-ups, and for each
/// variant in measured slices.
fn busy(warm_up: f64, measured: [f64; 2]) -> Record {
    let mut record = sound();
    (
        record.header.plan.design.looks,
        record.header.plan.design.per_core,
    ) = (plan::LookRule::EachBlock, true);
    for (number, trial) in trials(&mut record).enumerate() {
        trial.started.cpus_shared = false;
        let share = measured[trial.variant()];
        trial
            .started
            .services
            .iter_mut()
            .for_each(|service| service.cpus.truncate(1));
        for slice in &mut trial.slices {
            let share = if slice.kind == SliceKind::WarmUp {
                warm_up
            } else {
                share
            };
            let wall_ns = slice.counts.wall_ns() as f64;
            slice.machine.steal_share = 0.0;
            let used = &mut slice.services[0];
            (used.cpu_ns, used.run_delay_ns) =
                (((share - 0.001 * (number % 3) as f64) * wall_ns) as u64, 0);
            used.cpu_by_process_ns = vec![used.cpu_ns];
        }
    }
    record
}

#[test]
fn services_at_their_limit_are_judged_per_core_second() {
    let record = busy(0.97, [0.97, 0.96]);
    let conclusion = conclude(&record);
    let found = &conclusion.comparisons[0];
    let mut others = found.exploratory.iter();
    let cpu = others
        .find(|other| other.metric == Metric::CpuPerRequest)
        .expect("it is measured");
    let estimate = found.estimate.as_ref().expect("it is judged");
    assert!(per_core(&record) && (estimate.ratio * cpu.estimate.ratio - 1.0).abs() < 1e-9);
    let plain = found.per_second.as_ref().expect("it is shown").ratio;
    assert!(
        (estimate.ratio / plain - 0.97 / 0.96).abs() < 0.002 && found.outcome == Outcome::Better
    );
    let by_block = ratios_by_block(&series(&record), found);
    let mean = by_block.iter().map(|ratio| ratio.ln()).sum::<f64>() / by_block.len() as f64;
    assert!(
        (mean - estimate.ratio.ln()).abs() < 1e-9,
        "the dots of a page are those of its interval"
    );
    let said = |record: &Record| {
        conclude(record)
            .findings
            .iter()
            .any(|one| one.check == Check::CoresDiffer)
    };
    assert!(!said(&record), "one part in a hundred is no difference");
    // Before the first block services are started to find their ports.
    let mut looked = record.clone();
    let mut before = looked.blocks[0].clone();
    (before.number, before.seconds) = (0, None);
    before
        .trials
        .iter_mut()
        .for_each(|trial| trial.slices.clear());
    looked.blocks.insert(0, before);
    assert!(per_core(&looked));
    assert!(said(&busy(0.97, [0.97, 0.85])));
}

#[test]
fn services_with_time_to_spare_are_judged_by_the_clock() {
    let both = busy(0.97, [0.97, 0.97]);
    let mut records = [
        busy(0.8, [0.97, 0.97]),
        both.clone(),
        both,
        busy(0.97, [0.97, 0.7]),
    ];
    records[1].header.plan.design.per_core = false;
    records[2].blocks[0].trials[1].started.cpus_shared = true;
    for record in records {
        assert!(!per_core(&record) && conclude(&record).comparisons[0].per_second.is_none());
    }
}

/// The record of services confined to one core, whose threads wanted these numbers of cores.
fn confined(wanted: [f64; 2]) -> Record {
    let mut record = busy(0.97, [0.97, 0.97]);
    (
        record.header.plan.design.cpus,
        record.header.environment.cpus,
    ) = (plan::Cpus::Separate, 2);
    for trial in trials(&mut record) {
        let waited = wanted[trial.variant()] - 0.97;
        trial.started.services = vec![record::ServiceStarted {
            service: "api".into(),
            cpus: vec![0],
            ..Default::default()
        }];
        for slice in &mut trial.slices {
            slice.services[0].run_delay_ns = (waited * slice.counts.wall_ns() as f64) as u64;
            (
                slice.machine.strangers_cpu_ns,
                slice.machine.idle_trials_cpu_ns,
            ) = (0, 0);
        }
    }
    record
}

#[test]
fn confined_services_that_lack_cores_are_reported() {
    let found = |record: &Record| -> Vec<Grade> {
        let findings = conclude(record).findings.into_iter();
        findings
            .filter(|one| one.check == Check::CoresDiffer)
            .map(|one| one.grade)
            .collect()
    };
    assert_eq!(found(&confined([1.7, 1.4])), [], "helper threads");
    assert_eq!(found(&confined([2.1, 2.2])), [Grade::Warning]);
    assert_eq!(found(&confined([1.0, 2.1])), [Grade::Invalid]);
    let mut records = [confined([1.0, 2.1]), confined([1.0, 2.1])];
    // All processors of the machine, and a core used by others.
    records[0].header.environment.cpus = 1;
    trials(&mut records[1])
        .flat_map(|trial| &mut trial.slices)
        .for_each(|slice| {
            slice.machine.strangers_cpu_ns = slice.counts.wall_ns();
        });
    records
        .iter()
        .for_each(|record| assert_eq!(found(record), []));
}

/// The variants that wait, given the shares of one core used in warm-ups of the first block, and the time
/// threads waited for each other.
fn waiting(shares: [f64; 2], delay: f64) -> Vec<usize> {
    let mut record = busy(0.97, [0.97, 0.97]);
    for trial in &mut record.blocks[0].trials {
        let share = shares[trial.variant()];
        trial.slices.retain(|slice| slice.kind == SliceKind::WarmUp);
        let mut early = trial.slices[0].clone();
        // Compilation.
        early.counts.generator.cpu_ns.clear();
        trial.slices.insert(0, early);
        for slice in trial.slices.iter_mut().skip(1) {
            let wall_ns = slice.counts.wall_ns() as f64;
            slice.counts.generator.cpu_ns.clear();
            (
                slice.machine.strangers_cpu_ns,
                slice.machine.idle_trials_cpu_ns,
            ) = (0, 0);
            let used = &mut slice.services[0];
            (used.cpu_ns, used.run_delay_ns) = ((share * wall_ns) as u64, (delay * wall_ns) as u64);
            used.cpu_by_process_ns = vec![used.cpu_ns];
        }
    }
    let mut found = waiting_variants(&record, 1);
    found.sort_unstable();
    found
}

#[test]
fn variants_about_alike_are_measured_alike() {
    assert_eq!(waiting([0.3, 0.3], 0.0), [0, 1]);
    // Just above and below the bound: two estimates of the same throughput differ by a few per cent.
    assert_eq!(waiting([0.68, 0.72], 0.0), [0, 1]);
    assert_eq!(waiting([0.72, 0.75], 0.0), [0_usize; 0]);
    assert_eq!(waiting([0.3, 0.97], 0.0), [0]);
    // Threads of a service that wait for each other do not show that it is at its limit.
    assert_eq!(waiting([0.6, 0.6], 0.35), [0, 1]);
}
