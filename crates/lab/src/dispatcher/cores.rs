//! The processors of the services: all of them, unless no variant wants more than it would have beside the generator's.
//!
//! A service that is confined to one core gains nothing from a second thread, worker or process, and a comparison would call that setting
//! useless. A service that uses one core anyway is measured more precisely if the generator never takes that core.

use analysis::checks::cores_wanted;
use record::{CoresChosen, Event};

use super::Dispatcher;
use crate::environment::Result;

/// Cores above those that services would keep which the helper threads of a one-threaded program may want.
const HELPERS_MAX: f64 = 0.2;

impl Dispatcher<'_> {
    /// Chooses the processors once every variant has been loaded in closed loop with all of them. Trials that run one after the other are
    /// measured before the last variant was loaded, so their services keep all processors.
    pub(super) fn choose_cores(&mut self, loaded: &[usize]) -> Result<()> {
        let apart = self.environment.cores_apart();
        if apart == 0 || self.writer.record().cores.is_some() {
            return Ok(());
        }
        let variants = 0..self.plan.variants.len();
        let wanted: Vec<Option<f64>> =
            variants.map(|variant| cores_wanted(self.writer.record(), variant)).collect();
        let fits = |wanted: &Option<f64>| wanted.is_some_and(|wanted| wanted <= apart as f64 + HELPERS_MAX);
        let all_fit = loaded.len() == wanted.len() && wanted.iter().all(fits);
        let services = if all_fit { self.environment.confine()? } else { Vec::new() };
        self.keep(Event::CoresChosen(CoresChosen {
            block: self.block,
            services,
            apart: apart as u32,
            wanted,
        }))
    }
}
