//! Load generators that did not begin together
//!
//! **Seen.** `ssh://bench-1 began 41.0 ms after the others in a window of 2.00 s`.
//!
//! **Why.** Missing time lowers throughput. Such blocks are dropped while there is time.
//!
//! **What to do.** Omit that machine, or lengthen `design.slice`.
//!
//! **Threshold.** `LATE_MIN_NS = 5_000_000` (5 ms) *and* `LATE_SHARE = 0.01` of the window. Invalid if more
//! than `LATE_SHARE` of the load is missing.

use model::quantity::many;
use model::{Quantity, evidence};
use record::{GeneratorPart, Slice};

use super::finding::{CheckFinding, either, warning};
use super::input::{CheckedRun, CheckedTrial};
use super::row::{CheckRow, EITHER, Maker, Subject, row};
use crate::sums::mean;

pub(super) static ROW: CheckRow = row(Subject::Client, EITHER, &[Maker::Several(generators_apart)]);

/// Minimum tolerated delay of a generator after the first one, in nanoseconds, for any window. Shorter delays
/// also occur when threads wait for a processor on a machine that is not quite idle.
const LATE_MIN_NS: u64 = 5_000_000;
/// Tolerated delay as a share of the window. The missing load is at most the same share.
const LATE_SHARE: f64 = 0.01;

/// A generator that did not begin with the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateBegin<'a> {
    /// The generator.
    pub part: &'a GeneratorPart,
    /// Delay after the first generator, minus the clock error, in nanoseconds.
    pub by_ns: u64,
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
}

/// Returns the generator of a slice that certainly began too late, the latest of several. `None` if all began
/// together.
pub fn late_begin(slice: &Slice) -> Option<LateBegin<'_>> {
    let window_ns = slice.counts.window_ns;
    let by_ns =
        |part: &GeneratorPart| after_first_ns(slice, part).saturating_sub(part.clock_error_ns);
    let late = slice.generators.iter().map(|part| LateBegin {
        part,
        by_ns: by_ns(part),
        window_ns,
    });
    late.max_by_key(|late| late.by_ns)
        .filter(|late| late.by_ns > late_max_ns(window_ns))
}

fn after_first_ns(slice: &Slice, part: &GeneratorPart) -> u64 {
    let first_ns = slice
        .generators
        .iter()
        .map(|part| part.late_ns)
        .min()
        .unwrap_or(0);
    part.late_ns.saturating_sub(first_ns)
}

fn late_max_ns(window_ns: u64) -> u64 {
    LATE_MIN_NS.max((window_ns as f64 * LATE_SHARE) as u64)
}

/// Reports that generators did not begin together, or that it is unknown whether they did.
fn generators_apart(run: &CheckedRun<'_>) -> Vec<CheckFinding> {
    began_late(run)
        .into_iter()
        .chain(clocks_unknown(run))
        .collect()
}

/// Measured slices with several generators in finished blocks. Includes dropped blocks, because the reason is
/// reported here.
fn shared_slices<'a>(run: &CheckedRun<'a>) -> Vec<&'a Slice> {
    let ended = run.blocks.iter().filter(|block| block.seconds.is_some());
    let slices = ended
        .flat_map(|block| &block.trials)
        .flat_map(CheckedTrial::measured);
    slices.filter(|slice| slice.generators.len() > 1).collect()
}

fn began_late(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices = shared_slices(run);
    let late: Vec<LateBegin<'_>> = slices
        .iter()
        .filter_map(|slice| late_begin(slice))
        .collect();
    let worst = late.iter().max_by_key(|late| late.by_ns)?;
    let counted = run
        .complete_trials()
        .flat_map(CheckedTrial::measured)
        .filter(|of| of.generators.len() > 1);
    let missing = mean(counted.map(missing_share)).unwrap_or(0.0);
    let (name, of) = (&worst.part.name, many(slices.len() as u64, "slice"));
    let evidence = evidence!(
        "{name} began {late} after the others in a window of {window}, and in {hit} of {of} some generator was late; of the load \
         that counts {missing_part} is missing for it";
        hit = Quantity::count(late.len() as u64), late = Quantity::ns(worst.by_ns), window = Quantity::ns(worst.window_ns),
        missing_part = Quantity::share(missing));
    let remedy = if missing > LATE_SHARE {
        "what was measured is for too long not the load that was asked for; end what else runs on that machine, or leave it out"
    } else {
        "blocks with such slices are dropped while there is time for others; end what else runs there, or set longer slices (design.slice)"
    };
    Some(either(missing > LATE_SHARE, evidence, remedy))
}

/// Share of a slice's load that is missing because generators were late. All generators have about the same
/// load.
fn missing_share(slice: &Slice) -> f64 {
    let missing_ns: u64 = slice
        .generators
        .iter()
        .map(|part| after_first_ns(slice, part))
        .sum();
    missing_ns as f64
        / (slice.generators.len().max(1) as f64 * slice.counts.window_ns.max(1) as f64)
}

fn clocks_unknown(run: &CheckedRun<'_>) -> Option<CheckFinding> {
    let slices = shared_slices(run);
    let worst = slices.iter().filter_map(|slice| {
        let worst = slice
            .generators
            .iter()
            .max_by_key(|part| part.clock_error_ns)?;
        Some((worst, slice.counts.window_ns))
    });
    let hit: Vec<(&GeneratorPart, u64)> = worst
        .filter(|(part, window_ns)| part.clock_error_ns > late_max_ns(*window_ns))
        .collect();
    let (worst, window_ns) = *hit.iter().max_by_key(|(part, _)| part.clock_error_ns)?;
    let (name, of) = (&worst.name, slices.len());
    Some(warning(
        evidence!("the clock of {name} could be compared with ours to ±{error} only, in windows of {window}; so it went in {hit} of {of} \
                   slices";
            error = Quantity::ns(worst.clock_error_ns), window = Quantity::ns(window_ns), hit = Quantity::count(hit.len() as u64)),
        "whether it began with the others is not known: the network to it is slow, or its machine is busy; use a nearer machine, or longer \
         slices (design.slice)",
    ))
}
