//! Experiment files: what they become, and what is said of bad ones.

mod against;
mod drafts;
mod mixes;
mod mutations;
mod plans;
mod problems;
mod schema;
mod templates;
