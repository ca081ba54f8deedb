//! Other tools: what real output is read as, what follows from it, and what their command lines mean here.

mod checks;
mod compatibility;
mod corpus;
mod hostile;
mod studies;
mod traffic;

/// What a file of this name and these bytes is read as.
fn audit(name: &str, bytes: &[u8]) -> proofload_foreign::Audit {
    let mut reader = proofload_foreign::Reader::new(name);
    reader.feed(bytes);
    proofload_foreign::Audit::of(vec![reader.finish()])
}
