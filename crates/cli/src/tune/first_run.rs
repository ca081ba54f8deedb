//! What the first run of a service tells: how long trials are to be, where it listens, whether it logs, and whether it compresses.

use std::fs;
use std::time::Duration;

use plan::Plan;
use record::Record;

/// Bounds of a trial's warm-up and of a slice in seconds, while settings are screened: many short trials tell more than few long ones.
const WARM_UP_S: (f64, f64) = (0.5, 3.0);
const SLICE_S: (f64, f64) = (0.5, 1.0);
/// From so many bytes of log a request on a service counts as one that logs.
const LOG_BYTES_MIN: f64 = 5.0;

/// How long trials are while settings are screened, by the first run.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub warm_up: Duration,
    pub slice: Duration,
}

impl Times {
    pub fn of(record: &Record) -> Times {
        let slices = record.blocks.iter().flat_map(|block| &block.trials).flat_map(record::Trial::measured);
        let slice_s = slices.map(|slice| slice.counts.window_ns as f64 / 1e9).fold(0.0, f64::max);
        let warm_up_s = record.warm_up.as_ref().map_or(WARM_UP_S.1, |warm_up| warm_up.seconds);
        Times {
            warm_up: Duration::from_secs_f64(warm_up_s.clamp(WARM_UP_S.0, WARM_UP_S.1)),
            slice: Duration::from_secs_f64(slice_s.clamp(SLICE_S.0, SLICE_S.1)),
        }
    }
}

/// Has services listen where they did before: to find that out takes a start of each variant, in every step anew.
pub fn listen_as(plan: &mut Plan, before: &Record) {
    let Some(trial) = before.blocks.iter().flat_map(|block| &block.trials).next() else { return };
    for variant in &mut plan.variants {
        variant.pin(&trial.started.services);
        for service in variant.services.iter_mut().filter(|service| service.chooses_port()) {
            // It heeds PORT, or it would have been found elsewhere.
            let env = service.command_mut().map(|command| &mut command.env);
            env.map(|env| env.entry("PORT".to_owned()).or_insert_with(|| "{port}".to_owned()));
        }
    }
}

/// Whether a service wrote a line of log for every few requests.
pub fn logs(record: &Record) -> bool {
    let files = fs::read_dir(record.directory.join("logs")).into_iter().flatten().flatten();
    let bytes: u64 = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let dropped: u64 =
        trials.clone().filter_map(|trial| Some(trial.ended.as_ref()?.output_dropped_bytes)).sum();
    let responses: u64 = trials.flat_map(|trial| &trial.slices).map(|slice| slice.counts.responses).sum();
    (bytes + dropped) as f64 >= LOG_BYTES_MIN * responses.max(1) as f64
}

/// Whether its responses have a content coding.
pub fn compresses(record: &Record) -> bool {
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let headers = trials.flat_map(|trial| &trial.started.witnesses).flat_map(|witness| &witness.headers);
    headers.into_iter().any(|(name, value)| name == "content-encoding" && value != "identity")
}
