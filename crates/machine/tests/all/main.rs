//! What is made of a machine's kernel files.

mod hazards;
mod watching;
