//! Some trials read from disk, others from memory
//!
//! **Seen.** `its services fetched 312 MB from storage in block 1`, its median trial 200 kB.
//!
//! **Why.** The first trial fills the page cache for later ones.
//!
//! **What to do.** Read all data before the run, or in warm-ups.
//!
//! **Threshold.** More than `DISK_RATIO_MAX = 10.0` times the median trial, and more than
//! `DISK_BYTES_PER_S_MIN = 1e6` bytes a second.

use model::{Quantity, evidence};
use record::Slice;

use super::finding::{CheckFinding, warning};
use super::input::{CheckedBlock, CheckedRun, CheckedVariant};
use super::row::{CheckRow, Maker, OFF, Subject, WARNING, row};
use crate::only_if;
use crate::sums::total;

pub(super) static ROW: CheckRow =
    row(Subject::Machine, WARNING, &[Maker::Each(disk_reads)]).alone(OFF);

/// Maximum ratio of storage reads between a trial and the median trial of a variant.
const DISK_RATIO_MAX: f64 = 10.0;
/// Minimum bytes per second for reporting storage reads. A slow disk delivers a hundred times as much.
const DISK_BYTES_PER_S_MIN: f64 = 1e6;

/// Reports a variant that read far more from storage in some trials than in others: the first trial fills the
/// cache for all.
fn disk_reads(run: &CheckedRun<'_>, variant: &CheckedVariant<'_>) -> Option<CheckFinding> {
    let fetched = run.complete_blocks().filter_map(|block| {
        let slices: Vec<&Slice> = block.trial(variant.index)?.measured().collect();
        let bytes = total(&slices, |slice| {
            slice
                .services
                .iter()
                .map(|service| service.read_bytes)
                .sum()
        });
        let wall_ns = total(&slices, |slice| slice.counts.wall_ns());
        (wall_ns > 0).then(|| (bytes as f64 * 1e9 / wall_ns as f64, bytes, block))
    });
    let trials: Vec<(f64, u64, &CheckedBlock<'_>)> = fetched.collect();
    let (usual_per_s, median, _) = stats::middle_by(trials.iter().copied(), |(per_s, ..)| *per_s)?;
    let (per_s, most, block) = trials
        .into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    only_if(per_s > DISK_BYTES_PER_S_MIN.max(DISK_RATIO_MAX * usual_per_s))?;
    let place = block
        .order
        .iter()
        .position(|index| *index == variant.index)
        .unwrap_or(0)
        + 1;
    let (block, of) = (block.number, block.order.len());
    let evidence = evidence!(
        "its services fetched {most} from storage in block {block}, where it started as number {place} of {of}, and {median} in its \
         median trial";
        most = Quantity::bytes(most as f64), median = Quantity::bytes(median as f64));
    let remedy = "some trials found in the page cache what others had to fetch; read the data before the run, or set a longer design.warmup";
    Some(warning(evidence, remedy))
}
