//! What a limit is about: a change is about comparisons, an amount about variants.

use super::GateEntry;
use crate::model::{Comparison, Plan, Variant};

/// One of what a limit is about, as an index into the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Of [`Plan::comparisons`].
    Comparison(usize),
    /// Of [`Plan::variants`].
    Variant(usize),
}

impl Plan {
    /// All that `entry`, one of `entries`, is about, in the order of the plan.
    ///
    /// Without a name that is every comparison, or every variant but those that others are only compared with: they are what there was
    /// before the change. What another entry names for the same figure and kind of bound is left to that one. The copy is nobody's.
    pub fn gated(&self, entry: &GateEntry, entries: &[GateEntry]) -> Vec<Subject> {
        let all: Vec<Subject> = if entry.limit.bound.is_change() {
            (0..self.comparisons.len()).map(Subject::Comparison).collect()
        } else {
            (0..self.variants.len()).map(Subject::Variant).collect()
        };
        let is_about = |subject: &Subject| match &entry.of {
            _ if self.is_the_copy(*subject) => false,
            Some(name) => self.is_called(*subject, name),
            None => !self.is_only_a_baseline(*subject) && !self.is_named_by_another(*subject, entry, entries),
        };
        all.into_iter().filter(is_about).collect()
    }

    fn is_called(&self, subject: Subject, name: &str) -> bool {
        match subject {
            Subject::Comparison(index) => {
                let comparison = &self.comparisons[index];
                comparison.label == name || goes_by(&self.variants[comparison.candidate], name)
            }
            Subject::Variant(index) => goes_by(&self.variants[index], name),
        }
    }

    fn is_only_a_baseline(&self, subject: Subject) -> bool {
        let Subject::Variant(index) = subject else { return false };
        let is_candidate = |comparison: &Comparison| comparison.candidate == index;
        !self.comparisons.is_empty() && !self.comparisons.iter().any(is_candidate)
    }

    fn is_the_copy(&self, subject: Subject) -> bool {
        self.aa.as_ref().is_some_and(|copy| subject == Subject::Variant(copy.candidate))
    }

    fn is_named_by_another(&self, subject: Subject, entry: &GateEntry, entries: &[GateEntry]) -> bool {
        let (figure, change) = (entry.limit.figure, entry.limit.bound.is_change());
        let alike =
            |other: &&GateEntry| other.limit.figure == figure && other.limit.bound.is_change() == change;
        let mut named = entries.iter().filter(alike).filter_map(|other| other.of.as_deref());
        named.any(|name| self.is_called(subject, name))
    }
}

/// Whether a variant, or one of its levels, has this name.
fn goes_by(variant: &Variant, name: &str) -> bool {
    variant.name == name || variant.levels.values().any(|level| level == name)
}
