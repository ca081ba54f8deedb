//! Errors of estimates. Callers decide how to handle them. Nothing here panics or prints.

/// Reason why an estimate is impossible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer blocks than required.
    #[error("too few blocks")]
    TooFewBlocks,
    /// A log ratio is infinite or NaN, usually because a trial measured zero.
    #[error("block {index}: the log ratio is {value}, not a finite number")]
    NotFinite {
        /// Index in the slice, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Every block gave the same ratio, so the spread is unknown.
    #[error("all blocks gave the ratio {ratio}: without spread there is no interval")]
    NoSpread {
        /// The common ratio.
        ratio: f64,
    },
    /// The interval is too wide for a floating-point number.
    #[error("the interval around ratio {ratio} is too wide for a number")]
    TooWide {
        /// The point estimate.
        ratio: f64,
    },
}
