//! Plan of the captures that explain a run: the variants, the windows, and the duration. Pure.
//!
//! Windows and captures are the same for all variants, so that differences come from the variants.

use model::{Capture, CaptureKind, CapturedService, Missing, Slice};
use plan::{Plan, Service, Variant};
use record::{Record, Trial};

/// Passes over all explained variants: the minimum for a spread.
pub const ROUNDS: u32 = 3;

/// Maximum number of explained variants: each takes about 25 s in a round.
pub const VARIANTS_MAX: usize = 8;

/// The trials of a variant in a round, and the windows of each. Native stacks are last, because the kernel
/// may not permit them, and a failure ends a trial. The heap has a separate trial: tracking allocations slows
/// it down, and its result covers the whole trial.
pub const TRIALS: [&[CaptureKind]; 2] = [
    &[
        CaptureKind::Plain,
        CaptureKind::Counters,
        CaptureKind::Cpu,
        CaptureKind::Native,
    ],
    &[CaptureKind::Heap],
];

/// The trials if a brief look is enough: where the time goes, and in which functions.
pub const TRIALS_BRIEF: [&[CaptureKind]; 1] = [&[CaptureKind::Plain, CaptureKind::Cpu]];

/// The windows of each trial of a round.
pub type Trials = &'static [&'static [CaptureKind]];

/// Warm-up in seconds if the run determined none.
const WARM_UP_S: f64 = 3.0;
/// Maximum length of a window, also with slow responses.
const WINDOW_MAX_S: f64 = 30.0;
/// Minimum number of responses in a window, and in sequence on a connection. With fewer, a capture mostly
/// shows the beginning and the end of the load.
const RESPONSES_MIN: f64 = 20.0;
const IN_A_ROW_MIN: f64 = 3.0;
/// Time of a window beside its load, in seconds: to arm, to drain, to write a profile.
const WINDOW_GAP_S: f64 = 1.0;
/// Assumed time of a trial beside its windows, in seconds, if there is no block.
const TRIAL_S: f64 = 1.5;

/// Length of a window in seconds, if responses are fast. With one sample per millisecond it gives 4000 stacks
/// of each busy thread, so that a function with a hundredth of the time has forty. Counters need less time.
fn window_least_s(kind: CaptureKind) -> f64 {
    match kind {
        CaptureKind::Plain | CaptureKind::Counters => 2.0,
        CaptureKind::Native => 3.0,
        CaptureKind::Cpu | CaptureKind::Heap => 4.0,
    }
}

/// Indices of the explained variants: all except a copy of the baseline. If there are more than
/// [`VARIANTS_MAX`], those that are compared, in the order of the comparisons, each baseline before its
/// candidate.
pub fn explained(plan: &Plan) -> Vec<usize> {
    let copy = plan.aa.as_ref().map(|aa| aa.candidate);
    let mut variants: Vec<usize> = (0..plan.variants.len())
        .filter(|index| Some(*index) != copy)
        .collect();
    if variants.len() > VARIANTS_MAX && !plan.comparisons.is_empty() {
        let compared = plan
            .comparisons
            .iter()
            .flat_map(|asked| [asked.baseline, asked.candidate]);
        variants = model::distinct(compared.filter(|index| Some(*index) != copy));
    }
    variants.truncate(VARIANTS_MAX);
    variants
}

/// Parameters of a run's captures.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturePlan {
    /// Indices of the variants.
    pub variants: Vec<usize>,
    /// The trials of each variant in a round.
    pub trials: Trials,
    /// Length of the warm-up in seconds. 0 for none.
    pub warm_up_s: f64,
    /// Minimum length of a window in seconds, as the responses require.
    window_min_s: f64,
    /// Time of a trial beside its windows, in seconds.
    trial_s: f64,
    /// Whether nothing was measured before, so that a failure affects no result.
    pub alone: bool,
}

impl CapturePlan {
    /// Parameters for a finished run. `trial_s` is the time of its trials beside load.
    pub fn of(record: &Record, trials: Trials, trial_s: Option<f64>) -> CapturePlan {
        let variants = explained(&record.header.plan);
        let settled = record.warm_up.as_ref().map(|warm_up| warm_up.seconds);
        let asked = record
            .header
            .plan
            .design
            .warmup
            .map(|warm_up| warm_up.as_secs_f64());
        let warm_up_s = settled.or(asked).unwrap_or(WARM_UP_S);
        let window_min_s = variants
            .iter()
            .map(|variant| responses_s(record, *variant))
            .fold(0.0, f64::max);
        let trial_s = trial_s.unwrap_or(TRIAL_S) + warm_up_s;
        let alone = record.complete_blocks().next().is_none();
        CapturePlan {
            variants,
            trials,
            warm_up_s,
            window_min_s,
            trial_s,
            alone,
        }
    }

    /// Length of a window of load in seconds.
    pub fn window_s(&self, kind: CaptureKind) -> f64 {
        window_least_s(kind)
            .max(self.window_min_s)
            .min(WINDOW_MAX_S)
    }

    /// Estimated duration of a trial, in seconds.
    pub fn trial_s(&self, kinds: &[CaptureKind]) -> f64 {
        self.trial_s
            + kinds
                .iter()
                .map(|kind| self.window_s(*kind) + WINDOW_GAP_S)
                .sum::<f64>()
    }

    /// Estimated duration of this number of rounds, in seconds.
    pub fn seconds(&self, rounds: u32) -> f64 {
        let round_s: f64 = self.trials.iter().map(|kinds| self.trial_s(kinds)).sum();
        f64::from(rounds) * self.variants.len() as f64 * round_s
    }
}

/// Time that a variant needs for the required responses of a window, in seconds, from its measured slices.
fn responses_s(record: &Record, variant: usize) -> f64 {
    let trials = record
        .complete_trials()
        .filter(|trial| trial.variant() == variant);
    let slices: Vec<&Slice> = trials.flat_map(Trial::measured).collect();
    let answered: u64 = slices.iter().map(|slice| slice.counts.responses).sum();
    let loaded_s = slices
        .iter()
        .map(|slice| slice.counts.wall_ns())
        .sum::<u64>() as f64
        / 1e9;
    if slices.is_empty() {
        // Nothing was measured, as with captures only.
        return 0.0;
    }
    if answered == 0 {
        return WINDOW_MAX_S;
    }
    let medians = slices
        .iter()
        .filter_map(|slice| slice.counts.latency.quantile(0.5));
    let slowest_s = medians
        .map(|median| median.ns() as f64 / 1e9)
        .fold(0.0, f64::max);
    (RESPONSES_MIN * loaded_s / answered as f64).max(IN_A_ROW_MIN * slowest_s)
}

/// The directory of a variant's service. Empty if unknown.
pub(crate) fn directory(of: &Variant, service: &str) -> String {
    let command = of
        .services
        .iter()
        .find(|one| one.name == service)
        .and_then(Service::command);
    command
        .map(|command| command.directory.display().to_string())
        .unwrap_or_default()
}

/// A failed capture of a round, a variant and a kind.
pub(crate) fn without(
    plan: &Plan,
    (round, variant, kind): (u32, usize, CaptureKind),
    missing: Missing,
) -> Capture {
    let of = &plan.variants[variant];
    let service = CapturedService {
        service: of.entry.clone(),
        directory: directory(of, &of.entry),
        cpu_ns: 0,
        processes: Vec::new(),
        missing: vec![missing],
    };
    Capture {
        round,
        variant,
        kind,
        start_ns: 0,
        end_ns: 0,
        requests: 0,
        errors: 0,
        services: vec![service],
    }
}
