//! The processors of the services: all of them, unless no variant needs more than it has beside the
//! generator's.
//!
//! A service that is confined to one core gains nothing from a second thread, worker or process, and a
//! comparison would call that setting useless. A service that uses one core anyway is measured more precisely
//! if the generator never takes that core.

use analysis::usage::cores_wanted;
use record::{CoresChosen, Event, SliceKind};

use super::Dispatcher;
use crate::environment::Result;

/// Length in seconds of the load that shows how many cores a warm service needs.
const PILOT_S: f64 = 0.5;
/// Additional cores beyond the confined ones that never matter: the small use of a program's helper threads.
const HELPERS_MAX: f64 = 0.1;
/// The same for variants with similar needs: threads for garbage collection or compilation.
const HELPERS_ALIKE_MAX: f64 = 0.4;
/// Maximum difference in cores of variants with similar needs.
const ALIKE_MAX: f64 = 0.2;

impl Dispatcher<'_> {
    /// Loads each variant of the first block once more when it is warm, and chooses the processors.
    pub(super) fn choose_cores(&mut self, variants: &[usize]) -> Result<()> {
        if self.environment.cores_apart() == 0 || self.writer.record().cores.is_some() {
            return Ok(());
        }
        for &variant in variants {
            self.load(variant, SliceKind::WarmUp, PILOT_S, None)?;
        }
        self.choose_cores_by(variants)
    }

    /// Chooses the processors by the last closed loop of these variants. Trials that run in sequence are
    /// measured before the last variant was loaded, so their services keep all processors.
    pub(super) fn choose_cores_by(&mut self, loaded: &[usize]) -> Result<()> {
        let apart = self.environment.cores_apart();
        if apart == 0 || self.writer.record().cores.is_some() {
            return Ok(());
        }
        let variants = 0..self.plan.variants.len();
        let wanted: Vec<Option<f64>> = variants
            .map(|variant| cores_wanted(self.writer.record(), variant))
            .collect();
        let is_complete = loaded.len() == wanted.len();
        let services = match wanted.iter().copied().collect::<Option<Vec<f64>>>() {
            Some(cores) if is_complete && fit(&cores, apart as f64) => {
                self.environment.confine()?
            }
            _ => Vec::new(),
        };
        self.record(Event::CoresChosen(CoresChosen {
            block: self.block,
            services,
            apart: apart as u32,
            wanted,
        }))
    }
}

/// Whether variants with these needs lose nothing that one of them gains, if they are confined to `apart`
/// cores.
fn fit(wanted: &[f64], apart: f64) -> bool {
    let most = wanted.iter().copied().fold(0.0, f64::max);
    let least = wanted.iter().copied().fold(f64::INFINITY, f64::min);
    most <= apart + HELPERS_MAX || most <= apart + HELPERS_ALIKE_MAX && most - least <= ALIKE_MAX
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn helper_threads_fit_if_variants_have_them_alike() {
        for (wanted, apart, fits) in [
            (vec![1.0, 0.2], 1.0, true),
            (vec![1.34, 1.21], 1.0, true),
            (vec![1.05, 1.34], 1.0, false),
            (vec![1.07, 2.1], 1.0, false),
            (vec![1.67, 1.7], 1.0, false),
            (vec![1.0, 2.0, 3.05], 3.0, true),
        ] {
            assert_eq!(fit(&wanted, apart), fits, "{wanted:?} of {apart}");
        }
    }
}
