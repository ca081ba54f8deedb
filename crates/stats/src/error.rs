//! Why a number could not be given. Callers decide what to do about it; nothing here panics or prints.

/// What made an estimate impossible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer blocks than the question needs.
    #[error("too few blocks")]
    TooFewBlocks,
    /// A log ratio is infinite or not a number, mostly because a trial measured zero.
    #[error("block {index}: the log ratio is {value}, not a finite number")]
    NotFinite {
        /// Place in the slice, from 0.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// Every block gave the same ratio, so that nothing is known about its spread.
    #[error("all blocks gave the ratio {ratio}: without spread there is no interval")]
    NoSpread {
        /// The ratio they all gave.
        ratio: f64,
    },
    /// The interval is wider than a floating-point number can say.
    #[error("the interval around ratio {ratio} is too wide for a number")]
    TooWide {
        /// The point estimate.
        ratio: f64,
    },
}
