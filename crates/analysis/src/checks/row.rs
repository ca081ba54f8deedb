//! Properties of a check: its subject, the grades of its findings, and the functions that make them.

use model::Grade::{self, Invalid, Note, Warning};
use plan::Comparison;
use serde::Serialize;

use super::finding::CheckFinding;
use super::input::{CheckedRun, CheckedVariant};
use crate::window::MeasuredWindow;

/// Subject of a check, in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Whether the variants have the configuration that their names claim.
    Treatment,
    /// Whether the variants did the requested work, and the same work.
    Work,
    /// Whether the load generator measured the service and not itself.
    Client,
    /// Whether the service was in a measurable state.
    Service,
    /// Effects of the network between generator and service, and between services.
    Network,
    /// Activity of the machine during the measurement.
    Machine,
    /// Whether there are enough measurements, and whether they are consistent.
    Design,
    /// Problems of the run itself.
    Lab,
}

impl Subject {
    /// The heading of the subject: `The treatment`.
    pub fn heading(self) -> &'static str {
        match self {
            Subject::Treatment => "The treatment",
            Subject::Work => "The work",
            Subject::Client => "The client",
            Subject::Service => "The service",
            Subject::Network => "The network",
            Subject::Machine => "The machine",
            Subject::Design => "The design",
            Subject::Lab => "The run itself",
        }
    }
}

/// How a check applies without a comparison, where each slice is judged alone, as in `load`. Findings that
/// only single slices have do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    /// The check chooses grade and remedy.
    Same,
    /// The check is about compared variants or several blocks, or about facts that the user knows.
    Off,
    /// The findings have this grade and remedy.
    As(Grade, &'static str),
}

/// Function that makes the findings of a check, and its scope.
pub(super) enum Maker {
    /// One finding for the whole run.
    Whole(fn(&CheckedRun<'_>) -> Option<CheckFinding>),
    /// Several findings for the whole run.
    Several(fn(&CheckedRun<'_>) -> Vec<CheckFinding>),
    /// One finding per variant. The variant's name is prepended.
    Each(fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>),
    /// One finding per variant with any success. A variant without success is reported separately, without
    /// findings that only follow from that.
    Succeeding(fn(&CheckedRun<'_>, &CheckedVariant<'_>) -> Option<CheckFinding>),
    /// One finding per service of variants with any success.
    Service(fn(&CheckedVariant<'_>, &str) -> Option<CheckFinding>),
    /// One finding per comparison. The comparison's label is prepended.
    Pair(fn(&CheckedRun<'_>, &Comparison) -> Option<CheckFinding>),
    /// One finding for a slice of a run without a comparison. The slice's name is prepended.
    Slice(fn(&MeasuredWindow<'_>) -> Option<CheckFinding>),
}

/// Properties of a check.
pub struct CheckRow {
    /// Subject of the check.
    pub subject: Subject,
    /// Possible grades of the findings, most severe first.
    pub grades: &'static [Grade],
    /// Whether the findings are about variants relative to each other. Each of two named variants may still
    /// be compared with a third.
    pub(super) of_pairs: bool,
    /// Whether the run ends if the check makes every comparison invalid. Such a check judges single trials,
    /// and further trials cannot outweigh an invalid one. Checks of shares and means may still pass later.
    pub(crate) ends_run: bool,
    /// How the check applies without a comparison.
    pub(super) alone: Alone,
    /// Its functions. Empty if the findings are made with the conclusion that they are about.
    pub(super) makers: &'static [Maker],
}

impl CheckRow {
    pub(super) const fn of_pairs(self) -> CheckRow {
        CheckRow {
            of_pairs: true,
            ..self
        }
    }

    pub(super) const fn ending_run(self) -> CheckRow {
        CheckRow {
            ends_run: true,
            ..self
        }
    }

    pub(super) const fn alone(self, alone: Alone) -> CheckRow {
        CheckRow { alone, ..self }
    }
}

/// Creates the row of a check that applies without a comparison, too.
pub(super) const fn row(
    subject: Subject,
    grades: &'static [Grade],
    makers: &'static [Maker],
) -> CheckRow {
    CheckRow {
        subject,
        grades,
        of_pairs: false,
        ends_run: false,
        alone: Alone::Same,
        makers,
    }
}

pub(super) const OFF: Alone = Alone::Off;
/// For checks of the machine.
pub(super) const DISTURBED: Alone = Alone::As(
    Warning,
    "it is part of these figures, and a quieter machine would show others",
);

pub(super) const VOID: &[Grade] = &[Invalid];
pub(super) const WARNING: &[Grade] = &[Warning];
pub(super) const EITHER: &[Grade] = &[Invalid, Warning];
pub(super) const NOTE: &[Grade] = &[Note];
pub(super) const WARNING_OR_NOTE: &[Grade] = &[Warning, Note];
