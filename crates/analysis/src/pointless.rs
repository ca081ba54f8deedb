//! Whether going on with a run can still bring an answer: what no further slice or block can heal. Pure.
//!
//! A variant that never succeeds is an answer, and the others are compared all the same. But where every variant is one, it is rather the
//! experiment that is wrong than what it compares; and one that succeeds now and then not at all has no figure that could be judged.

use model::{Check, Finding};
use record::Record;

use crate::no_success::{NoSuccess, fruitless_slices, never_succeeded};
use crate::{Comparison, Conclusion, Outcome, checks};

/// Variants that are named before the others are only counted.
const NAMED_MAX: usize = 3;
/// Fewer responses than this may be those of a cache that is not filled yet.
const RESPONSES_MIN: u64 = 20;

/// Why a variant is another one than was asked for, and what to do: its responses lack what the experiment expects to be varied. `None` where
/// they do not, or it cannot be told yet. That needs no second trial: to go on would measure something else for as long as the budget lasts.
pub fn untreated(record: &Record, variant: usize) -> Option<String> {
    let trials = record.blocks.iter().flat_map(|block| &block.trials);
    let slices = trials.filter(|trial| trial.variant() == variant).flat_map(|trial| &trial.slices);
    if slices.map(|slice| slice.counts.responses).sum::<u64>() < RESPONSES_MIN {
        return None;
    }
    let mut findings = checks::only(Check::TreatmentNotApplied, record).into_iter();
    findings.find(|finding| finding.variants.contains(&variant)).map(|finding| in_words(&finding))
}

/// Why no comparison can have an answer that it does not have yet, after a slice in which nothing succeeded; `None` while one can.
pub fn fruitless(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let each = |of: fn(&Record, usize) -> Option<NoSuccess>| {
        (0..plan.variants.len()).map(|index| of(record, index)).collect::<Vec<_>>()
    };
    let (never, now_and_then) = (each(never_succeeded), each(fruitless_slices));
    if never.iter().all(Option::is_some) {
        return Some(format!("no request succeeded; {}", named(record, &never)));
    }
    let both = now_and_then.into_iter().zip(&never);
    let spoilt: Vec<Option<NoSuccess>> = both.map(|(some, never)| some.filter(|_| never.is_none())).collect();
    let is_undecided = |asked: &plan::Comparison| {
        let either = |of: &[Option<NoSuccess>]| of[asked.baseline].is_some() || of[asked.candidate].is_some();
        !either(&never) && !either(&spoilt)
    };
    let any = spoilt.iter().any(Option::is_some);
    (any && !plan.comparisons.iter().any(is_undecided)).then(|| {
        format!("of whole slices no request succeeded, though of others some did; {}", named(record, &spoilt))
    })
}

/// Why no comparison can have an answer that it does not have yet, whatever further blocks show; `None` while one can.
pub fn void_for_good(conclusion: &Conclusion) -> Option<String> {
    let found: Vec<&Finding> =
        conclusion.findings.iter().filter(|finding| finding.check.row().ends_run).collect();
    let voids = |finding: &Finding, asked: &Comparison| finding.voids(asked.baseline, asked.candidate);
    let is_undecided = |asked: &Comparison| {
        asked.outcome != Outcome::NoSuccess && !found.iter().any(|finding| voids(finding, asked))
    };
    if conclusion.comparisons.iter().any(is_undecided) {
        return None;
    }
    let first = found.iter().find(|finding| conclusion.comparisons.iter().any(|asked| voids(finding, asked)));
    first.map(|finding| in_words(finding))
}

fn in_words(finding: &Finding) -> String {
    format!("{}; {}", finding.evidence, finding.remedy)
}

fn named(record: &Record, failed: &[Option<NoSuccess>]) -> String {
    let names = record.header.plan.variants.iter().map(|variant| &variant.name);
    let failed: Vec<String> = names
        .zip(failed)
        .filter_map(|(name, failed)| Some(format!("{name}: {}", failed.as_ref()?.answer)))
        .collect();
    let more = failed.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{rest}", failed[..failed.len() - more].join("; "))
}
