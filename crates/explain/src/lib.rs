//! From a process's samples to a sentence: the cost of a request, its places, and why one variant costs more
//! than another.
//!
//! ```text
//! perf: the kernel's samples ─┐
//! read: profiles of V8 ───────┼─► cut ─► Tree ─► observed ─► cost ─► difference ─► cause ─► Explanation ─► flame, write
//! naming: whose code ─────────┘
//! ```
//!
//! All modules but [`perf`] are pure: bytes in, values out. This crate reads no file, starts nothing and
//! prints nothing.

mod capture_files;
mod captures;
mod cause;
mod comparison;
mod cost;
mod cut;
mod document;
mod doubt;
mod explain;
mod explanation;
pub mod flame;
mod label;
mod naming;
mod observed;
pub mod perf;
mod read;
mod thread;
mod tree;
mod unit;
mod views;
mod waiting;
mod write;

pub use capture_files::CaptureFiles;
pub use captures::loop_delay_us;
pub use cause::proposals;
pub use comparison::compare_trees;
pub use cut::{Cut, TimeWindow, cpu_tree, heap_tree, native_tree};
pub use document::{Why, all_of, difference, difference_json, profile, profile_json};
pub use doubt::{Doubt, DoubtKind, Note};
pub use explain::{MeasuredDifference, explain};
pub use explanation::{
    Cost, CostChange, CostComparison, CostInterval, ExplainedService, Explanation, FunctionCost,
    LineCost, Tax, WaitingTimes, WorkerShare,
};
pub use naming::Naming;
pub use read::{
    CpuProfile, HeapProfile, NativeFrame, NativeProfile, NativeStack, Profile, ProfileReadError,
    read_any,
};
pub use tree::{CodeKind, Frame, FunctionValue, Package, Tree, TreePlace, merge};
pub use unit::TreeUnit;
pub use write::{cpuprofile, folded, speedscope};
