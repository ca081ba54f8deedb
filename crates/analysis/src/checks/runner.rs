//! Runs the checks on a record, or on a slice of a run without a comparison.
//!
//! A check uses only measured slices of complete blocks, and reports the figures it is based on. Without a
//! comparison the checks apply to each slice alone, as [`Alone`] declares.

use model::{Finding, FindingCode};
use record::{Record, Trial};

use super::Check;
use super::finding::{CheckFinding, labelled, named};
use super::input::{CheckedRun, CheckedVariant};
use super::row::{Alone, CheckRow, Maker};
use crate::metric::BlockFigures;
use crate::window::MeasuredWindow;
use crate::{ComparisonResult, Conclusion, Outcome, only_if};

/// Defines the row of each check.
macro_rules! rows {
    ($($number:ident = $check:ident in $file:ident;)+) => {
        impl Check {
            /// The properties of the check.
            pub fn row(self) -> &'static CheckRow {
                match self { $(Check::$check => &super::$file::ROW,)+ }
            }
        }
    };
}

each_check!(rows);

impl FindingCode for Check {
    const OF_VARIANTS: bool = true;

    fn code(&self) -> &str {
        self.name()
    }

    fn section(&self) -> Option<&'static str> {
        Some(self.number())
    }

    fn is_of_pairs(&self) -> bool {
        self.row().of_pairs
    }
}

/// Runs every check, in the order of the table.
pub(crate) fn all(record: &Record, blocks: &[BlockFigures]) -> Vec<Finding<Check>> {
    let run = CheckedRun::of(record, blocks);
    without_repeats(
        Check::ALL
            .iter()
            .flat_map(|check| run.findings(*check))
            .collect(),
    )
}

/// Runs one check that needs no figures of blocks.
pub(crate) fn only(check: Check, record: &Record) -> Vec<Finding<Check>> {
    CheckedRun::of(record, &[]).findings(check)
}

/// Runs the checks on a slice of a run without a comparison. Returns the findings, most severe first.
pub(crate) fn of_window(
    record: &Record,
    trial: &Trial,
    window: &MeasuredWindow<'_>,
) -> Vec<Finding<Check>> {
    let run = CheckedRun::of_slice(record, trial, window);
    let found = Check::ALL.iter().flat_map(|check| alone(&run, *check));
    let mut findings = without_repeats(found.collect());
    findings.extend(of_slice_alone(window));
    findings.sort_by_key(|finding| (finding.grade, finding.check));
    findings
}

/// Runs a check as it applies without a comparison.
fn alone(run: &CheckedRun<'_>, check: Check) -> Vec<Finding<Check>> {
    let (grade, remedy) = match check.row().alone {
        Alone::Same => return run.findings(check),
        Alone::Off => return Vec::new(),
        Alone::As(grade, remedy) => (grade, remedy),
    };
    let adapted = |finding| Finding {
        grade,
        remedy: remedy.into(),
        ..finding
    };
    run.findings(check).into_iter().map(adapted).collect()
}

/// Findings that only single slices have.
pub(crate) fn of_slice_alone(window: &MeasuredWindow<'_>) -> Vec<Finding<Check>> {
    let seen = |check: &Check| {
        let found = check.row().makers.iter().filter_map(|maker| match maker {
            Maker::Slice(make) => make(window),
            Maker::Whole(_)
            | Maker::Several(_)
            | Maker::Each(_)
            | Maker::Succeeding(_)
            | Maker::Service(_)
            | Maker::Pair(_) => None,
        });
        let named = found.map(|seen| named(&window.name, seen, &[0]));
        named.map(|seen| numbered(*check, seen)).collect::<Vec<_>>()
    };
    Check::ALL.iter().flat_map(seen).collect()
}

fn numbered(check: Check, seen: CheckFinding) -> Finding<Check> {
    Finding::new(check, seen.grade, seen.evidence, seen.remedy).about(seen.variants)
}

/// Removes findings that only repeat a more severe finding about the same variants.
fn without_repeats(mut findings: Vec<Finding<Check>>) -> Vec<Finding<Check>> {
    let about = |check: Check| -> Vec<usize> {
        let of = findings.iter().filter(|finding| finding.check == check);
        of.flat_map(|finding| &finding.variants).copied().collect()
    };
    let (untreated, lost) = (
        about(Check::TreatmentNotApplied),
        about(Check::EnvironmentLost),
    );
    findings.retain(
        |Finding {
             check, variants, ..
         }| {
            if matches!(check, Check::Errors | Check::NoSuccess) {
                return variants.is_empty()
                    || variants.iter().any(|variant| !untreated.contains(variant));
            }
            let is_told = |variant| untreated.contains(variant) || lost.contains(variant);
            *check != Check::NothingObservable || !variants.iter().any(is_told)
        },
    );
    findings
}

impl CheckedRun<'_> {
    /// Findings of a check. Those that only single slices have are made by [`of_slice_alone`].
    fn findings(&self, check: Check) -> Vec<Finding<Check>> {
        let seen = check.row().makers.iter().flat_map(|maker| self.made(maker));
        seen.map(|seen| numbered(check, seen)).collect()
    }

    fn made(&self, maker: &Maker) -> Vec<CheckFinding> {
        let each = |make: fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>| {
            move |variant: &CheckedVariant<'_>| Some(variant.told(make(self, variant)?))
        };
        match *maker {
            Maker::Whole(make) => make(self).into_iter().collect(),
            Maker::Several(make) => make(self),
            Maker::Each(make) => self.variants.iter().filter_map(each(make)).collect(),
            Maker::Succeeding(make) => self.succeeding().filter_map(each(make)).collect(),
            Maker::Service(make) => {
                let services = self
                    .succeeding()
                    .flat_map(|of| of.services().map(move |name| (of, name)));
                services
                    .filter_map(|(of, name)| Some(of.told(make(of, name)?)))
                    .collect()
            }
            Maker::Pair(make) => {
                let comparisons = self.plan.comparisons.iter();
                comparisons
                    .filter_map(|asked| Some(labelled(asked, make(self, asked)?)))
                    .collect()
            }
            Maker::Slice(_) => Vec::new(),
        }
    }
}

/// Explains why no undecided comparison can get a result from further blocks. `None` while one can.
pub fn void_for_good(conclusion: &Conclusion) -> Option<String> {
    let ending = conclusion
        .findings
        .iter()
        .filter(|finding| finding.check.row().ends_run);
    let found: Vec<&Finding<Check>> = ending.collect();
    let voids = |finding: &Finding<Check>, asked: &ComparisonResult| {
        finding.voids(asked.baseline, asked.candidate)
    };
    let is_undecided = |asked: &ComparisonResult| {
        asked.outcome != Outcome::NoSuccess && !found.iter().any(|finding| voids(finding, asked))
    };
    only_if(!conclusion.comparisons.iter().any(is_undecided))?;
    let first = found.iter().find(|finding| {
        conclusion
            .comparisons
            .iter()
            .any(|asked| voids(finding, asked))
    });
    first.map(|finding| in_words(finding))
}

/// The finding with its remedy, as one sentence.
pub(crate) fn in_words(finding: &Finding<Check>) -> String {
    format!("{}; {}", finding.evidence, finding.remedy)
}
