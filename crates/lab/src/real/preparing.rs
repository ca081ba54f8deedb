//! Data that services need, made by `target` and told in the record's words.

use plan::Preparation;
use record::Prepared;
use services::{Blame, Cache, Error, Preparing};

use super::services::last_words;
use super::{LOGS, RealEnvironment, file_name, hinted};
use crate::environment::Failure;

impl RealEnvironment {
    /// Makes or finds it, and keeps its folder in mind for the services that will be started.
    pub(super) fn make_data(
        &mut self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Prepared, Failure> {
        // What is to be done is known to the plan that was not masked.
        let step = self.plan.prepare.iter().find(|real| real.name == step.name).unwrap_or(step);
        let values =
            self.plan.secrets.asked_by(step.command.iter().chain(step.env.values()).map(String::as_str));
        let log = self.record.join(LOGS).join(format!("prepare-{}.log", file_name(&step.name)));
        let cancelled = || self.stop.is_requested();
        let made = Cache::of_this_user()
            .and_then(|cache| cache.prepare((&self.warden, &values), step, &log, watch, &cancelled))
            .map_err(failed)?;
        self.values.extend(services::prepared_placeholders([(step.name.as_str(), made.path.as_path())]));
        let (name, key, seconds) = (step.name.clone(), made.key, made.took.as_secs_f64());
        Ok(Prepared { name, key, made: made.made, seconds, bytes: made.bytes })
    }
}

/// The error with the command's last words and a hint, as people need it.
fn failed(error: Error) -> Failure {
    if *error.blame() == Blame::Cancelled {
        return Failure::Interrupted;
    }
    let last_words = last_words(error.tail().unwrap_or_default());
    Failure::Preparation(format!("{error}{last_words}{}", hinted(error.hint())))
}
