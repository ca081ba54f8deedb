//! Samples of processes by the kernel → native stacks with names: what compiled code, the kernel and threads that are not
//! JavaScript's spend their CPU time in. It samples processes that the caller started; it starts, stops and changes none.
//!
//! Every `period` of CPU time that a thread has used, the kernel looks where it is (`perf_event_open`, the software event
//! cpu-clock, which needs no counters of the processor). A sample so stands for one period of CPU time.
//!
//! **What the stacks are worth.** The function that ran is always right. Its callers are found by frame pointers: code compiled by
//! V8 and the kernel keep them, most compiled libraries do not. There a stack may end early or lack a caller. In the kernel a
//! sample may come late, where interrupts are allowed again.
//!
//! **What is not in them.** Processes that start later, the first period of a thread on each CPU, and where
//! [`crate::NativeProfile::notes`] says so, the kernel.

mod event;
mod opening;
mod records;
mod sampler;
mod space;
mod stacks;
mod symbols;

pub use opening::{PerfError, allowed};
pub use sampler::Sampler;
#[cfg(fuzzing)]
pub use symbols::names_anything;
