//! Workers that were asked for and did nothing: counted by the CPU time of processes, and not believed.

use record::{Record, Trial};

use super::percent;
use crate::no_success;
use crate::service::{Work, workers};
use model::{Check, Finding, Grade};

/// Of the trials of a variant, the part with one serving process from which on the variant is another than was asked for.
const ALONE_SHARE_VOID: f64 = 0.5;

/// A finding for each service of each variant of which fewer workers served than were asked for.
pub(super) fn workers_idle(record: &Record) -> Vec<Finding> {
    let variants = record.header.plan.variants.iter().enumerate();
    // Where nothing succeeds nobody serves.
    let variants = variants.filter(|(index, _)| no_success::measured(record, *index).is_none());
    variants.flat_map(|(index, variant)| of_variant(record, index, variant)).collect()
}

fn of_variant(record: &Record, index: usize, variant: &plan::Variant) -> Vec<Finding> {
    let trials: Vec<&Trial> = super::trials(record).filter(|trial| trial.variant() == index).collect();
    let started = trials.first().map(|trial| trial.started.services.as_slice()).unwrap_or_default();
    let asked = started.iter().filter_map(|service| Some((service.service.as_str(), service.workers?)));
    asked.filter_map(|(service, _)| of_service(&trials, service, (index, variant))).collect()
}

/// What a trial asked for and how its work was shared.
struct Seen {
    wanted: u32,
    work: Work,
}

fn of_service(
    trials: &[&Trial],
    service: &str,
    (index, variant): (usize, &plan::Variant),
) -> Option<Finding> {
    let seen =
        |trial: &&Trial| Some(Seen { wanted: workers(trial, service)?, work: Work::of(trial, service)? });
    let seen: Vec<Seen> = trials.iter().filter_map(seen).collect();
    let fewer: Vec<&Seen> = seen.iter().filter(|seen| seen.work.serving() < seen.wanted).collect();
    let least = fewer.iter().map(|seen| seen.work.serving()).min()?;
    let worst: Vec<&&Seen> = fewer.iter().filter(|seen| seen.work.serving() == least).collect();
    let (done, all) = worst
        .iter()
        .map(|seen| seen.work.of_busiest(least))
        .fold((0, 0), |(done, all), (some, of)| (done + some, all + of));
    let void = least == 1 && worst.len() as f64 >= ALONE_SHARE_VOID * seen.len() as f64;
    let others = match fewer.len() - worst.len() {
        0 => String::new(),
        more => format!(", and fewer than asked for in {more} more"),
    };
    Some(Finding {
        check: Check::WorkersIdle,
        grade: if void { Grade::Void } else { Grade::Warning },
        evidence: format!(
            "{}: {least} of {} workers of {service} did {} of its work in {} of {} trials{others}",
            variant.name,
            worst[0].wanted,
            percent(done as f64 / all.max(1) as f64),
            worst.len(),
            seen.len(),
        ).into(),
        remedy: if void {
            "one process did what several were asked to do, so this is not what it is called; see in the record's logs whether the \
             workers started and share the port, and whether load.connections reaches them all"
        } else {
            "connections are dealt to workers, not requests: with few of them some workers get none; more load.connections \
             spread the work"
        }
        .into(),
        variants: vec![index],
    })
}
