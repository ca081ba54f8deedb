//! Whether generators that load together began together: a slice for whose first part some were not there yet is none of all of them. Pure.
//!
//! Must not: look at anything that a service did. When a generator begins is settled before the first request is sent, so that what is
//! dropped for it is dropped for all variants alike.

use analysis::checks::late_begin;
use record::{Block, Trial};

/// Why a block counts for nothing, in words with figures: the latest begin in it; `None` where all began together.
pub fn why(block: &Block) -> Option<String> {
    let slices = block.trials.iter().flat_map(Trial::measured);
    let late = slices.filter_map(late_begin).max_by_key(|late| late.by_ns)?;
    Some(format!(
        "{} began {:.0} ms after the others, in a window of {:.0} ms",
        late.part.name,
        late.by_ns as f64 / 1e6,
        late.window_ns as f64 / 1e6
    ))
}
