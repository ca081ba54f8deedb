//! The lab: runs a plan block by block, decides when to stop, and writes the record.
//!
//! One dispatcher owns all state. What touches the outside (services, load, the clock) stands behind
//! [`Environment`], so a seeded simulation runs the same dispatcher as a real experiment. The lab draws no
//! conclusion of its own: after each block it asks `analysis`, as every later report does.

mod deployed;
mod destinations;
mod dispatcher;
mod disturbance;
mod environment;
mod explaining;
mod real;
mod schedule;
mod stop;
mod timing;
mod url;

pub use deployed::DeployedServices;
pub use destinations::{Destinations, LookUp};
pub use dispatcher::{
    Doing, LabError, Progress, Update, UpdateNews, UpdateWatch, capture_only, run,
};
pub use disturbance::StolenShares;
pub use environment::{
    CaptureSpec, Connected, Connecting, Environment, Failure, LostGenerator, SliceSpec, Start,
    Turn, elapsed,
};
pub use explaining::{ROUNDS, TRIALS, TRIALS_BRIEF, Trials, VARIANTS_MAX, explained};
pub use real::{RealEnvironment, check_load};
pub use schedule::{BlockSchedule, draw_seed, live_together, shared_port, take_turns};
pub use stop::Stop;
pub use timing::{
    BLOCKS_AIM, BlockTiming, BudgetLeft, FirstBlockTimes, MeasuredTimes, ResponseTimes,
    SecondsGuess, TrialCosts, next,
};
pub use url::{reach, unseen};
