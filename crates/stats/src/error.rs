//! Why a number could not be given. Callers decide what to do about it; nothing here panics or prints.

/// What made an estimate, a test, a plan of looks or a stored histogram impossible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer blocks than the question needs.
    #[error("{blocks} blocks are too few, at least {least}")]
    TooFewBlocks {
        /// Blocks there are.
        blocks: u32,
        /// Blocks it takes.
        least: u32,
    },
    /// The error rate cannot be shared among so many comparisons (or among none).
    #[error("{comparisons} comparisons, the tables of looks hold for 1 to {most}")]
    Comparisons {
        /// Comparisons asked for.
        comparisons: u32,
        /// Most comparisons the tables hold.
        most: u32,
    },
    /// A log ratio is infinite or not a number, mostly because a trial measured zero.
    #[error("block {index}: the log ratio is {value}, not a finite number")]
    NotFinite {
        /// Place in the slice, from 0.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// Every block gave the same ratio, so that nothing is known about its spread.
    #[error("all {blocks} blocks gave the ratio {ratio}: without spread there is no interval")]
    NoSpread {
        /// Blocks there are.
        blocks: u32,
        /// The ratio they all gave.
        ratio: f64,
    },
    /// The interval is wider than a floating-point number can say.
    #[error("the interval around ratio {ratio} is too wide for a number")]
    TooWide {
        /// The point estimate.
        ratio: f64,
    },
    /// A number outside of the range of its kind.
    #[error("{what} is {value}, not {range}")]
    Outside {
        /// Of which kind.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
    /// More points of a series than a search for changes goes through.
    #[error("{points} points are too many for a search for changes, at most {most}")]
    Points {
        /// Points there are.
        points: usize,
        /// Most that are gone through.
        most: usize,
    },
    /// A standard error that is no finite number of at least 0.
    #[error("point {index}: the standard error is {value}, not a finite number of at least 0")]
    StandardError {
        /// Place in the slice, from 0.
        index: usize,
        /// What was given.
        value: f64,
    },
    /// A number of resamples that is too coarse for an end of an interval, or does not fit into memory.
    #[error("{resamples} resamples, not {least} to {most}")]
    Resamples {
        /// Resamples asked for.
        resamples: u32,
        /// Fewest.
        least: u32,
        /// Most.
        most: u32,
    },
    /// A measured value without a logarithm, mostly because a trial measured zero.
    #[error(
        "block {block}, cell {cell}: the value is {value}; only positive finite numbers have a logarithm"
    )]
    Unmeasured {
        /// Place of the block, from 0.
        block: usize,
        /// Place in the block, from 0.
        cell: usize,
        /// What stands there.
        value: f64,
    },
    /// A block with another number of values than the design has.
    #[error("block {block} has {cells} values, the design has {expected}")]
    Cells {
        /// Place of the block, from 0.
        block: usize,
        /// Values it has.
        cells: usize,
        /// Values it should have.
        expected: usize,
    },
    /// A factor that does not vary.
    #[error("factor `{factor}` has {levels} levels, at least 2 are needed for an effect")]
    Levels {
        /// Its name.
        factor: String,
        /// Levels it has.
        levels: usize,
    },
    /// A full factorial that nobody can run.
    #[error("the factors make more than {most} combinations of levels")]
    Combinations {
        /// Most combinations.
        most: usize,
    },
    /// A block in which no request was recorded.
    #[error("block {block} has no latencies")]
    NoLatencies {
        /// Place in the slice, from 0.
        block: usize,
    },
    /// A stored histogram that cannot be read; the text says why.
    #[error("stored histogram: {0}")]
    Histogram(String),
}
