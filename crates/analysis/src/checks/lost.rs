//! Services that lost workers while they were measured.
//!
//! What is left of them serves with fewer processes, or with new ones that got none of the connections: neither is what
//! was to be measured, however good its figures.

use record::{Record, Trial, WorkersLost};

use super::trials;
use model::{Check, Finding, Grade};

/// A finding for each variant that lost workers in a measured trial.
pub(super) fn workers(record: &Record) -> Vec<Finding> {
    let variants = record.header.plan.variants.iter().enumerate();
    variants.filter_map(|(index, variant)| lost_by(record, index, &variant.name)).collect()
}

fn lost_by(record: &Record, index: usize, name: &str) -> Option<Finding> {
    let measured =
        trials(record).filter(|trial| trial.variant() == index && trial.measured().next().is_some());
    let hit: Vec<(&Trial, &WorkersLost)> =
        measured.filter_map(|trial| Some((trial, trial.ended.as_ref()?.workers_lost.first()?))).collect();
    let (trial, WorkersLost { service, lost }) = hit.first()?;
    let had = trial.started.services.iter().find(|started| started.service == *service);
    let of =
        had.and_then(|started| started.workers).map_or(String::new(), |workers| format!(" of {workers}"));
    Some(Finding {
        check: Check::WorkersLost,
        grade: Grade::Void,
        evidence: format!(
            "{name}: {service} lost {lost}{of} workers in block {}; so it went in {} of its trials",
            trial.started.block,
            hit.len()
        )
        .into(),
        remedy: "find out in the service's log why its workers end, and run again".into(),
        variants: vec![index],
    })
}
