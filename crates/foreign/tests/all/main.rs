//! Other tools: what real output is read as, what follows from it, and what their command lines mean here.

mod checks;
mod compatibility;
mod corpus;
mod hostile;
mod studies;
mod traffic;
