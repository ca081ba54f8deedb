//! From profiles to what a request costs, where, and why one variant costs more than another. Pure: bytes in, values out.
//!
//! Profiles of every format become one [`Tree`]; trees of workers and repeated captures become an [`Explanation`]. It reads no
//! file, starts nothing and draws nothing.

mod explanation;
mod model;
mod source;

pub use explanation::{
    Change, Comparison, Cost, Doubt, Explanation, Interval, LineCost, Row, Subject, Tax, Waiting, WorkerShare,
};
pub use model::{Frame, Kind, Node, Package, Tree};
pub use source::Source;

// From captures to an explanation.
mod book;
mod cause;
mod cost;
mod difference;
mod doubt;
mod explain;
mod interval;
mod native_side;
mod observed;
mod opened;
mod reconcile;
mod sums;
mod thread;
mod waiting;
mod words;

pub use cause::{CAUSE_SHARE_MIN, FUNCTION_SHARE_MIN};
pub use explain::{Measured, SAMPLES_MIN, compare_trees, explain};
pub use reconcile::{EXPLAINED_MAX, EXPLAINED_MIN, TAX_DOUBTED, TAX_TOLD};
