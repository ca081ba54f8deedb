//! The cause of a difference in plain language, for clear cases only.
//!
//! **Method.** Each rule looks for one cause that is known, which has to account for at least half of the difference that the profiles
//! show; of several the one that accounts for most is told. Where none does, a single function that accounts for 60 % or more is
//! named. Else there is no story. A story needs profiles that explain the measured difference (see `reconcile`).
//!
//! One case is told otherwise: work that *moves*, from the main thread to the thread pool or back. Then costs may differ little while
//! everything else changes, so that profiles are held against the whole CPU time of both variants instead: they have to have seen 80 %
//! to 125 % of it, the moved work has to be at least half of all that changed places, the pool has to take (or give) at least half of
//! it, and the difference that is left has to be less than half of what moved.
//!
//! Rules read names and times. They see no source and no configuration, so a story says what was seen and what usually helps.

use crate::cost::of_kind;
use crate::figure::{amount, percent};
use crate::label::shown;
use crate::reconcile::{EXPLAINED_MAX, EXPLAINED_MIN};
use crate::{Change, Frame, Interval, Kind, Tree};

mod rules;
mod topic;

/// Part of the profiled difference that a rule's cause has to account for.
pub const CAUSE_SHARE_MIN: f64 = 0.5;
/// Part of it that a single function has to account for where no rule does.
pub const FUNCTION_SHARE_MIN: f64 = 0.6;
/// Part of what the main thread loses that the pool has to gain, or the other way round, for work to have moved.
pub const MOVED_SHARE_MIN: f64 = 0.5;

/// What a story is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case<'a> {
    /// Names of baseline and variant.
    pub names: (&'a str, &'a str),
    /// Costs per request of either.
    pub trees: (&'a Tree, &'a Tree),
    /// Profiled difference.
    pub total: &'a Interval,
    /// By kind.
    pub kinds: &'a [Change<Kind>],
    /// By function.
    pub functions: &'a [Change<Frame>],
    /// Seen ÷ counted by the kernel, of either.
    pub seen: (Option<f64>, Option<f64>),
    /// Content coding of the responses of either, such as `br`.
    pub codings: (Option<&'a str>, Option<&'a str>),
    /// Whether the profiles explain the measured difference.
    pub sound: bool,
}

/// A cause, and how much of the difference it accounts for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    pub share: f64,
    pub text: String,
}

/// The story; `None` where nothing is clear.
pub(crate) fn story(case: &Case<'_>) -> Option<String> {
    if let Some(text) = rules::moved_crypto(case) {
        return Some(text);
    }
    if !case.sound {
        return None;
    }
    let causes = rules::ALL.iter().filter_map(|rule| rule(case)).filter(|one| one.share >= CAUSE_SHARE_MIN);
    let cause = causes.reduce(|best, next| if next.share > best.share { next } else { best });
    cause.map(|cause| cause.text).or_else(|| largest_function(case))
}

impl Case<'_> {
    /// Part of the difference that a change of so much is.
    pub fn share(&self, before: f64, after: f64) -> f64 {
        let share = (after - before) / self.total.value;
        if share.is_finite() { share } else { 0.0 }
    }

    /// Sum of everything that became more expensive or cheaper, whichever is less: what may have moved.
    pub fn turned_over(&self) -> f64 {
        let changes = || self.functions.iter().map(|change| change.difference.value);
        let more: f64 = changes().filter(|change| *change > 0.0).sum();
        let less: f64 = -changes().filter(|change| *change < 0.0).sum::<f64>();
        more.min(less)
    }

    /// Whether profiles saw enough of both variants to be believed without a difference to hold them against.
    pub fn saw_all(&self) -> bool {
        let enough =
            |seen: Option<f64>| seen.is_some_and(|seen| (EXPLAINED_MIN..=EXPLAINED_MAX).contains(&seen));
        enough(self.seen.0) && enough(self.seen.1)
    }

    /// The tree of the variant in which something costs more.
    pub fn more_expensive(&self, before: f64, after: f64) -> &Tree {
        if after >= before { self.trees.1 } else { self.trees.0 }
    }

    /// `4800 µs/request in development, 3.0 µs in production: 94 % of the difference`.
    pub fn figures(&self, before: f64, after: f64) -> String {
        format!(
            "{}/request in {}, {} in {}: {} of the difference",
            amount(before),
            shown(self.names.0),
            amount(after),
            shown(self.names.1),
            percent(self.share(before, after)),
        )
    }
}

/// A single function that accounts for nearly all.
fn largest_function(case: &Case<'_>) -> Option<String> {
    let named = |change: &&Change<Frame>| {
        let javascript = change.what.kind.is_javascript();
        let compiled = change.what.kind == Kind::Native && !change.what.function.starts_with('(');
        (javascript || compiled) && case.share(change.baseline, change.variant) >= FUNCTION_SHARE_MIN
    };
    let change = case.functions.iter().find(named)?;
    let whose = match (&change.what.package, change.what.kind) {
        (Some(_), _) => format!(" of {}", change.what.package_name().unwrap_or_default()),
        (None, Kind::Application) => " of the service itself".into(),
        (None, kind) => format!(" ({})", kind.name()),
    };
    Some(format!(
        "One function makes most of the difference: {}{whose} takes {}.",
        change.what.in_sentence(),
        case.figures(change.baseline, change.variant)
    ))
}

/// Cost of a kind in either variant.
fn kind(case: &Case<'_>, kind: Kind) -> (f64, f64) {
    of_kind(case.kinds, kind)
}

#[cfg(test)]
mod tests;
