//! From profiles to what a request costs, where, and why one variant costs more than another. Pure: bytes in, values out.
//!
//! Profiles of every format become one [`Tree`]; trees of workers and repeated captures become an [`Explanation`]. It reads no
//! file, starts nothing and draws nothing.

mod explanation;
mod model;
mod source;

mod cut;
mod key;
mod merge;
mod read;
mod tree;
mod write;

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
mod loop_delay;
mod moved;
mod native_side;
mod observed;
mod opened;
pub mod perf;
mod reconcile;
mod sums;
mod thread;
mod waiting;
mod words;

pub use cause::{CAUSE_SHARE_MIN, FUNCTION_SHARE_MIN};
pub use explain::{Measured, SAMPLES_MIN, compare_trees, explain};
pub use loop_delay::loop_delay_us;
pub use moved::moved;
pub use reconcile::{EXPLAINED_MAX, EXPLAINED_MIN, TAX_DOUBTED, TAX_TOLD};

pub use cut::{Cut, GAP_INTERVALS, GAP_US_MIN, LINES_SHARE_MIN, Window, cpu_tree, heap_tree, native_tree};
pub use key::Naming;
pub use merge::merge;
pub use read::{
    CpuProfile, HeapProfile, NativeFrame, NativeProfile, NativeStack, PROFILE_BYTES_MAX, Profile, ReadError,
    read_any, read_prof_process,
};
pub use tree::FunctionValue;
pub use write::{PROCESSED_VERSION, Values, cpuprofile, firefox, folded};
