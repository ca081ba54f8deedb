//! Generator and services on the same processors: what the client burns there is taken from the service.

use record::{Record, Slice, Trial};

use super::{measured, percent, total, trials};
use model::{Check, Finding, Grade};

/// One finding for all variants, with what the client took at the most.
pub(super) fn cores_shared(record: &Record) -> Vec<Finding> {
    let Some(trial) = trials(record).find(|trial| trial.started.cpus_shared) else { return vec![] };
    let services = service_cpus(trial);
    // The processors that are fought for: the service has them all, the client never more than its own.
    let count = services.len().max(trial.started.generator_cpus.len()).max(1);
    let taken = record.header.plan.variants.iter().enumerate().map(|(index, variant)| {
        let slices = measured(record, index);
        (taken_share(&slices, count), variant.name.as_str())
    });
    let most = taken.max_by(|(one, _), (other, _)| one.total_cmp(other)).filter(|(share, _)| *share > 0.0);
    let most = most
        .map(|(share, name)| format!(": the client took up to {} of their time ({name})", percent(share)));
    vec![Finding {
        check: Check::CoresShared,
        grade: Grade::Warning,
        evidence: format!(
            "generator and services shared processors{}{}",
            where_to(&services, &trial.started.generator_cpus),
            most.unwrap_or_default()
        ).into(),
        remedy: match record.header.plan.design.cpus {
            plan::Cpus::Shared => {
                "that much less was left for the service at the most, and a variant that is easier on the client gains by it; \
                 differences of that size need `cpus = \"separate\"`, or a client with a processor of its own"
            }
            plan::Cpus::Separate => {
                "that much less was left for the service at the most; use a machine with two cores or more"
            }
        }
        .into(),
        variants: vec![],
    }]
}

/// The share of so many processors' time that the generator's threads used, window and drain together.
fn taken_share(slices: &[&Slice], processors: usize) -> f64 {
    let used_ns = total(slices, Slice::client_cpu_here_ns);
    let wall_ns = total(slices, |slice| slice.counts.window_ns + slice.counts.drain_ns);
    used_ns as f64 / (wall_ns.max(1) as f64 * processors as f64)
}

fn service_cpus(trial: &Trial) -> Vec<usize> {
    let here = trial.started.services.iter().filter(|service| service.host.is_none());
    let mut cpus: Vec<usize> = here.flat_map(|service| &service.cpus).copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn where_to(services: &[usize], generator: &[usize]) -> String {
    let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    if services.is_empty() {
        return String::new();
    }
    format!(" (services on {}, generator on {})", list(services), list(generator))
}
