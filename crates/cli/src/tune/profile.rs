//! A short profile of the service as it is: which advice may apply, and what to change in its code, which is never tried.

use std::path::Path;
use std::time::Instant;

use ::explain::Kind;
use analysis::tune::Facts;

use super::Work;
use super::first_run::{Times, listen_as};
use crate::experiment;
use crate::print;
use crate::run::{self, Course, Ready};

impl Work<'_> {
    /// Looks at what the service as it is spends its time on. Without a profile all is tried that may apply.
    pub fn profile(&mut self, times: Times, facts: &mut Facts) -> anyhow::Result<()> {
        print::tell!("a profile: what does it spend its time on?");
        let began = Instant::now();
        let mut plan = plan::parse(&self.base.text, &self.base.directory)
            .map_err(|problems| experiment::shown(Path::new(&self.base.name), &self.base.text, &problems))?;
        (plan.design.explain, plan.design.seed) = (true, Some(self.seed));
        if let Some(before) = &self.before {
            listen_as(&mut plan, before);
        }
        plan.design.warmup.get_or_insert(times.warm_up);
        let directory = self.claim("profile");
        let course =
            Course { yes: true, ..Course::new(&self.base.name, self.base.text.clone(), plan, &directory) };
        let Ready { writer, mut environment } = run::ready(course, self.stop.clone())?;
        let (record, result) =
            lab::capture_only(writer, &mut environment, 1, &lab::TRIALS_BRIEF, &mut |_| {});
        let explanation = crate::explanation::keep(&record).filter(|_| result.is_ok());
        match explanation.as_ref().and_then(|found| found.subjects.iter().find(|of| of.requests > 0)) {
            Some(subject) => {
                facts.gc_share = Some(subject.share_of(|kind| kind == Kind::Gc).1);
                facts.pool_share = Some(subject.share_of(|kind| kind == Kind::ThreadPool).1);
                self.proposals = explain::proposals(subject);
            }
            None => print::tell!("there is no profile of it: see {}", directory.display()),
        }
        self.profiled_s = began.elapsed().as_secs_f64();
        Ok(())
    }
}
