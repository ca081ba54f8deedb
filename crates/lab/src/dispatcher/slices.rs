//! What is kept of a slice, and when it shows that going on is pointless.
//!
//! A variant that never succeeds is an answer, and its slices are kept like others; what other variants are compared in goes on. But
//! where every variant is one, it is rather the experiment that is wrong than what it compares. And one that succeeds now and then
//! not at all has no figure that could be judged. One whose answers lack what the experiment expects to be varied is measured for nothing.

use analysis::NoSuccess;
use record::{Event, Slice};

use super::{Dispatcher, treatment};
use crate::environment::Failure;

/// Variants that are named before the others are only counted.
const NAMED_MAX: usize = 3;

impl Dispatcher<'_> {
    /// Keeps a slice, and judges what is left to find out if nothing in it succeeded.
    pub(super) fn keep_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        let (variant, fruitless, failing) =
            (slice.variant, slice.counts.successful == 0, slice.counts.successful < slice.counts.responses);
        self.keep(Event::Slice(Box::new(slice)))?;
        // The first says more than that nothing succeeded.
        let untreated = if failing { treatment::not_applied(self.writer.record(), variant) } else { None };
        match untreated.or_else(|| if fruitless { self.pointless() } else { None }) {
            Some(why) => Err(Failure::Pointless(why)),
            None => Ok(()),
        }
    }

    /// Why no comparison can have an answer that it does not have yet; `None` while one can.
    fn pointless(&self) -> Option<String> {
        let record = self.writer.record();
        let each = |of: fn(&record::Record, usize) -> Option<NoSuccess>| {
            (0..self.plan.variants.len()).map(|index| of(record, index)).collect::<Vec<_>>()
        };
        let (never, now_and_then) = (each(analysis::never_succeeded), each(analysis::fruitless_slices));
        if never.iter().all(Option::is_some) {
            return Some(format!("no request succeeded; {}", self.named(&never)));
        }
        let spoilt: Vec<Option<NoSuccess>> = now_and_then
            .into_iter()
            .zip(&never)
            .map(|(some, never)| some.filter(|_| never.is_none()))
            .collect();
        let is_open = |asked: &plan::Comparison| {
            let either =
                |of: &[Option<NoSuccess>]| of[asked.baseline].is_some() || of[asked.candidate].is_some();
            !either(&never) && !either(&spoilt)
        };
        let any = spoilt.iter().any(Option::is_some);
        (any && !self.plan.comparisons.iter().any(is_open)).then(|| {
            format!(
                "of whole slices no request succeeded, though of others some did; {}",
                self.named(&spoilt)
            )
        })
    }

    fn named(&self, failed: &[Option<NoSuccess>]) -> String {
        let names = self.plan.variants.iter().map(|variant| &variant.name);
        let failed: Vec<String> = names
            .zip(failed)
            .filter_map(|(name, failed)| Some(format!("{name}: {}", failed.as_ref()?.answer)))
            .collect();
        let more = failed.len().saturating_sub(NAMED_MAX);
        let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{}{rest}", failed[..failed.len() - more].join("; "))
    }
}
