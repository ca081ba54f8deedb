//! Services as a user has them: real processes, started through the public interface, some of them badly behaved.
//!
//! Each test has a [`stage::Stage`], which fails the test if anything that it started is alive at its end.

mod deaths;
mod endings;
mod samples;
mod stage;
mod starts;
