//! Memory was read back from disk
//!
//! **Seen.** `in 36.0 s 5,200 pages were read back from swap`.
//!
//! **Why.** Reading a page costs as much as many requests.
//!
//! **What to do.** Free memory, raise the container's limit, or compare fewer variants.
//!
//! **Threshold.** `PAGING_PER_S_MAX = 10.0` pages, or major page faults of services, a second.

use model::{Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::CheckedRun;
use super::row::{CheckRow, DISTURBED, Maker, Subject, WARNING, row};
use super::watched_span::{loaded_ns, stretches};

pub(super) static ROW: CheckRow =
    row(Subject::Machine, WARNING, &[Maker::Whole(paging)]).alone(DISTURBED);

/// Maximum number of pages per second read back from swap, or waited for by services. At 0.1 ms each this is
/// a thousandth of the time, at the 10 ms of a hard disk a tenth.
const PAGING_PER_S_MAX: f64 = 10.0;

/// Reports memory shortage: pages read back from swap, or services that waited for pages of their files.
fn paging(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let stretches = stretches(run);
    let seconds = loaded_ns(&stretches) / 1e9;
    let swapped: u64 = stretches
        .iter()
        .map(|stretch| stretch.machine.swapped_in_pages)
        .sum();
    let faults_of = |slice: &Slice| {
        slice
            .services
            .iter()
            .map(|service| service.major_faults)
            .sum::<u64>()
    };
    let faults: u64 = stretches.iter().map(|stretch| stretch.sum(faults_of)).sum();
    let evidence = evidence!("in {time} {swapped} pages were read back from swap, and services waited for storage at {faults} page faults";
        time = Quantity::seconds(seconds), swapped = Quantity::count(swapped), faults = Quantity::count(faults));
    let remedy = "memory is short, and each such page costs as much as many requests, for whoever happens to need it; end what else holds \
                  memory, raise the container's limit, or compare fewer variants at once";
    (swapped.max(faults) as f64 / seconds > PAGING_PER_S_MAX).then(|| warning(evidence, remedy))
}
