//! Exit codes of the program. `docs/architecture.md` lists them.

/// A limit of a gate is broken.
pub const BROKEN: u8 = 1;
/// Usage, or an experiment file with problems.
pub const USAGE: u8 = 2;
/// A service did not start or died, or its data could not be made, or it could not be built.
pub const SERVICE: u8 = 3;
/// The measurement is invalid, or a gate could judge nothing.
pub const VOID: u8 = 4;
/// No limit of a gate fails, and one is inconclusive.
pub const OPEN: u8 = 5;
/// An error of Proofload itself.
pub const SELF: u8 = 6;
/// The user stopped the run.
pub const INTERRUPTED: u8 = 130;
