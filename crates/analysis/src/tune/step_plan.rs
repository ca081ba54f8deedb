//! The plan of a step's experiment: that of its file, with the number of blocks, the budget and the lengths
//! that the tuning chose.

use std::time::Duration;

use model::Metric;
use plan::{Cpus, Design, LookRule, Plan, PlannedRate, Variant};
use record::{Record, Trial};

use super::step::TuneStep;

/// Slices of a trial while settings are screened. Processes vary more than slices.
const SLICES: u32 = 2;
/// Limits of a trial's warm-up and of a slice in seconds, while settings are screened: many short trials are
/// more informative than few long ones.
const WARM_UP_S: (f64, f64) = (0.5, 3.0);
const SLICE_S: (f64, f64) = (0.5, 1.0);
/// Connections at a rate: twice the number in flight at 2,500 requests per second and a limit of 50 ms. There
/// must only be enough: while the machine stalls, each due request needs its own connection, or the wait for
/// one is measured (V12).
const CONNECTIONS_AT_RATE: u32 = 256;

/// Lengths of a trial's parts while settings are screened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// Warm-up of a trial.
    pub warm_up: Duration,
    /// Length of a slice.
    pub slice: Duration,
}

impl StepTimes {
    /// Derives the lengths from the run of the unchanged service.
    pub fn of(record: &Record) -> StepTimes {
        let slices = record.trials().flat_map(Trial::measured);
        let slice_s = slices
            .map(|slice| slice.counts.window_ns as f64 / 1e9)
            .fold(0.0, f64::max);
        let warm_up_s = record
            .warm_up
            .as_ref()
            .map_or(WARM_UP_S.1, |warm_up| warm_up.seconds);
        StepTimes {
            warm_up: Duration::from_secs_f64(warm_up_s.clamp(WARM_UP_S.0, WARM_UP_S.1)),
            slice: Duration::from_secs_f64(slice_s.clamp(SLICE_S.0, SLICE_S.1)),
        }
    }
}

/// Conditions of a step, known from the run of the unchanged service and earlier steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepConditions {
    /// Lengths of a trial's parts.
    pub times: StepTimes,
    /// Whether services may use the load generator's processors.
    pub shares_cores: bool,
    /// Whether throughput is judged per core-second.
    pub per_core: bool,
    /// The response time that is measured at a rate.
    pub latency: Option<Metric>,
}

/// Returns the plan of a step. `file` is the plan of its experiment file. `names` are those of its rows. The
/// run of the unchanged service has no conditions.
pub fn step_plan(
    file: Plan,
    step: &TuneStep,
    (seed, names): (u64, &[String]),
    conditions: Option<&StepConditions>,
) -> Plan {
    let mut variants = file.variants;
    // A file with a single row has a second level, because a factor needs two.
    if let ([name], [_, _, ..]) = (names, variants.as_slice()) {
        variants.retain(|variant| variant.name == *name);
    }
    if step.rate_per_s.is_some() {
        for Variant { load, .. } in &mut variants {
            load.settings.connections = load.settings.connections.max(CONNECTIONS_AT_RATE);
        }
    }
    let design = Design {
        blocks: Some(step.blocks),
        budget: Duration::from_secs_f64(step.most_s),
        seed: Some(seed),
        co_primary: Vec::new(),
        explain: false,
        ..file.design
    };
    Plan {
        comparisons: if step.confirms() {
            file.comparisons
        } else {
            Vec::new()
        },
        variants,
        design: match conditions {
            Some(conditions) => screened(design, step, conditions),
            None => Design {
                drop_disturbed: false,
                ..design
            },
        },
        gate: Vec::new(),
        ..file
    }
}

fn screened(mut design: Design, step: &TuneStep, conditions: &StepConditions) -> Design {
    let StepConditions {
        times,
        shares_cores,
        per_core,
        latency,
    } = conditions;
    if *shares_cores {
        design.cpus = Cpus::Shared;
    }
    if step.confirms() {
        (design.looks, design.per_core) = (LookRule::Once, *per_core);
    }
    design.slices = Some(SLICES);
    // Rows are mirrored and blocks are few, so a disturbed block is kept.
    design.drop_disturbed &= step.confirms();
    design.warmup.get_or_insert(times.warm_up);
    match step.rate_per_s.zip(*latency) {
        // Slices are then as long as the quantile requires.
        Some((rate, metric)) => {
            (design.metric, design.rate) = (metric, Some(PlannedRate::PerSecond(rate)));
        }
        None => {
            design.slice.get_or_insert(times.slice);
        }
    }
    design
}

/// Returns the plan with services on the ports of an earlier run. Otherwise each step would start each variant
/// once to detect its ports.
pub fn on_ports_of(mut plan: Plan, before: &Record) -> Plan {
    let Some(trial) = before.trials().next() else {
        return plan;
    };
    for variant in &mut plan.variants {
        variant.pin(&trial.started.services);
        let services = variant.services.iter_mut();
        for service in services.filter(|service| service.chooses_port()) {
            // It uses PORT, otherwise another port would have been detected.
            if let Some(command) = service.command_mut() {
                let port = command.env.entry("PORT".to_owned());
                port.or_insert_with(|| "{port}".to_owned());
            }
        }
    }
    plan
}
