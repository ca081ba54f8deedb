//! Number of slices per trial: whether to spend the time on more slices or on more processes.
//!
//! A trial costs its start and warm-up, a slice only its own length. If slices of one process vary as much as
//! processes do, more slices are the cheap way to a more precise mean. If processes differ and their slices
//! agree, more slices only measure the same process more precisely. Kalibera & Jones, "Rigorous benchmarking
//! in reasonable time" (ISMM 2013).
//!
//! ```text
//! slices of trial 1   · ·· ·          within  = variance of the dots around their own trial
//! slices of trial 2            ·· · ·  between = variance of the trials around their variant
//! ```

/// Minimum number of slices in a trial. A single one would leave the variance within trials unknown.
pub const SLICES_MIN: u32 = 2;
/// Maximum number of slices in a trial. Beyond it drift over the trial matters more than the remaining gain.
pub const SLICES_MAX: u32 = 12;

/// Variance components of log values, in squared log units: 0.0001 is a standard deviation of 1 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Components {
    /// Variance between trials (processes) of one variant. 0 if the slices explain all variance.
    pub between: f64,
    /// Variance between slices of one trial.
    pub within: f64,
    /// Degrees of freedom of `between`: trials less variants.
    pub freedom: f64,
}

/// Assumed ratio of the variance between slices to the variance between processes, until trials show it.
const WITHIN_OVER_BETWEEN: f64 = 3.0;
/// Weight of the assumption, in degrees of freedom.
const PRIOR_FREEDOM: f64 = 8.0;

impl Components {
    /// Shrinks the variance between trials toward an assumed one: the mean of observed and assumed variance,
    /// weighted by degrees of freedom. Three blocks often show no variance at all, which would result in the
    /// maximum number of slices.
    #[must_use]
    pub fn shrunk(self) -> Components {
        let assumed = self.within / WITHIN_OVER_BETWEEN;
        let between = (self.freedom * self.between + PRIOR_FREEDOM * assumed)
            / (self.freedom + PRIOR_FREEDOM);
        Components { between, ..self }
    }
}

/// Variance components of log values, nested as variant → trial → slices and pooled over variants.
///
/// One-way analysis of variance with unequal groups (Searle, Casella & McCulloch 1992, section 3.6):
///
/// ```text
/// within  = Σ (y − its trial's mean)² / (slices − trials)
/// between = max(0, (Σ n_t (trial's mean − its variant's mean)² / (trials − variants) − within) / n0)
/// n0      = Σ_v (n_v − Σ n_t² / n_v) / (trials − variants)
/// ```
/// Means of variants are removed, so variants may differ. The common effect of a block on its variants is
/// *not* removed although it cancels in a ratio, so `between` tends to be too large, which errs on the side
/// of more processes. Subtracting each block's mean over V variants beforehand would remove it, but also 1/V
/// of the variance that trials do not share, so that `between` would be too small. Empty trials and variants
/// are omitted.
///
/// `None` if a variance cannot be computed (no variant with two trials, no trial with two slices) or a value
/// is not finite.
pub fn components(variants: &[Vec<Vec<f64>>]) -> Option<Components> {
    let (mut freedom_within, mut freedom_between, mut slices_effective) = (0.0, 0.0, 0.0);
    let (mut squares_within, mut squares_between) = (0.0, 0.0);
    for trials in variants {
        let trials: Vec<&Vec<f64>> = trials.iter().filter(|slices| !slices.is_empty()).collect();
        if trials.is_empty() {
            continue;
        }
        let slices: f64 = trials.iter().map(|trial| trial.len() as f64).sum();
        let variant_mean = trials.iter().flat_map(|trial| trial.iter()).sum::<f64>() / slices;
        let mut squared_sizes = 0.0;
        for trial in &trials {
            let size = trial.len() as f64;
            let trial_mean = trial.iter().sum::<f64>() / size;
            squares_within += trial.iter().map(|y| (y - trial_mean).powi(2)).sum::<f64>();
            squares_between += size * (trial_mean - variant_mean).powi(2);
            squared_sizes += size * size;
        }
        freedom_within += slices - trials.len() as f64;
        freedom_between += trials.len() as f64 - 1.0;
        slices_effective += slices - squared_sizes / slices;
    }
    if freedom_within < 1.0 || freedom_between < 1.0 {
        return None;
    }
    let within = squares_within / freedom_within;
    let slices_typical = slices_effective / freedom_between;
    let between = ((squares_between / freedom_between - within) / slices_typical).max(0.0);
    let is_finite = within.is_finite() && squares_between.is_finite();
    is_finite.then_some(Components {
        between,
        within,
        freedom: freedom_between,
    })
}

/// Number of slices per trial that gives the most precise estimate for the time, from [`SLICES_MIN`] to
/// [`SLICES_MAX`].
///
/// ⌈√((trial cost / slice cost) · (within / between))⌉, Kalibera & Jones 2013, section 6. `cost_trial_s` is
/// the cost of a trial without its slices (start, warm-up, stop), and `cost_slice_s` the cost of each slice,
/// both in seconds.
///
/// If the formula has no result: without variance between trials the maximum, also if a slice costs nothing;
/// without variance within trials, or with costs or variances that are not finite, the minimum.
pub fn slices(cost_trial_s: f64, cost_slice_s: f64, components: &Components) -> u32 {
    let gain = cost_trial_s * components.within;
    let price = cost_slice_s * components.between;
    if !(gain > 0.0 && price >= 0.0) {
        return SLICES_MIN;
    }
    // A price of 0 gives infinity, which is clamped to the maximum.
    (gain / price)
        .sqrt()
        .ceil()
        .clamp(f64::from(SLICES_MIN), f64::from(SLICES_MAX)) as u32
}
