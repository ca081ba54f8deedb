//! The variants, what failed in them, and why one costs more: words and counts of which no picture is drawn.

use analysis::{Conclusion, Failure};
use record::Record;

use super::bounds::ERROR_ROWS_MAX;
use super::model::{ErrorRow, Table, Variant, WhySection};
use model::quantity::count;

use crate::why::{self, Why};

/// The flame graphs' page, in the record's folder.
pub const FLAME_PAGE: &str = "flame.html";

pub(super) fn variants(record: &Record, conclusion: &Conclusion) -> Vec<Variant> {
    let plan = &record.header.plan;
    let trials = |index: usize| {
        let trials = record.complete_blocks().flat_map(|block| &block.trials);
        u32::try_from(trials.filter(|trial| trial.variant() == index).count()).unwrap_or(u32::MAX)
    };
    let levels = |index: usize| {
        let level = |factor: &plan::Factor| {
            let level = plan.variants.get(index)?.levels.get(&factor.name)?;
            Some((factor.name.clone(), level.clone()))
        };
        plan.factors.iter().filter_map(level).collect()
    };
    let one = |(index, of): (usize, &analysis::Variant)| Variant {
        name: of.name.clone(),
        levels: levels(index),
        void: conclusion.findings.iter().any(|finding| finding.voids(index, index)),
        trials: trials(index),
        requests: of.requests,
    };
    conclusion.variants.iter().enumerate().map(one).collect()
}

/// By variant, the most frequent first.
pub(super) fn errors(record: &Record, conclusion: &Conclusion, left_out: &mut Vec<String>) -> Vec<ErrorRow> {
    let of_variant = |(index, of): (usize, &analysis::Variant)| {
        let row = |failure: Failure| ErrorRow {
            variant: index,
            phase: failure.phase,
            cause: failure.cause,
            count: failure.count,
            requests: of.requests,
            example: failure.example,
        };
        analysis::failures(record, index).into_iter().map(row).collect::<Vec<ErrorRow>>()
    };
    let mut rows: Vec<ErrorRow> = conclusion.variants.iter().enumerate().flat_map(of_variant).collect();
    if rows.len() > ERROR_ROWS_MAX {
        left_out.push(format!(
            "errors: the first {ERROR_ROWS_MAX} of {} kinds are shown",
            count(rows.len() as u64)
        ));
        rows.truncate(ERROR_ROWS_MAX);
    }
    rows
}

/// What captures tell, with a link to the flame graphs that are made together with it.
pub(super) fn why(of: &Why) -> WhySection {
    let of_why = |table: &why::Table| Table {
        heading: table.heading.clone(),
        columns: table.columns.clone(),
        names: table.names,
        rows: table.rows.clone(),
    };
    let titled = |reason: &why::Reason| {
        let title = |table: &why::Table| Table {
            heading: format!("{}: {}", reason.heading, table.heading),
            ..of_why(table)
        };
        reason.tables.iter().map(title).collect::<Vec<Table>>()
    };
    let reason = |reason: &why::Reason| {
        let more = reason.story.iter().chain(&reason.waiting).cloned();
        (reason.heading.clone(), std::iter::once(reason.reconciliation.clone()).chain(more).collect())
    };
    WhySection {
        reasons: of.reasons.iter().map(reason).collect(),
        tables: of
            .reasons
            .iter()
            .flat_map(titled)
            .chain(of.spent.iter().chain(&of.waiting).map(of_why))
            .collect(),
        method: of.method.clone(),
        doubts: of.doubts.clone(),
        flame_page: Some(FLAME_PAGE.to_owned()),
    }
}
