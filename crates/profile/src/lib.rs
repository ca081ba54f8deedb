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
