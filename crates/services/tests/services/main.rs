//! Services as a user has them: real processes, started through the public interface, some of them badly behaved.
//!
//! Each test has a [`stage::Stage`], which fails the test if anything that it started is alive at its end.

mod agents;
mod deaths;
mod elsewhere;
mod endings;
mod launchers;
mod pm2;
mod samples;
mod scratch;
mod stage;
mod starts;
