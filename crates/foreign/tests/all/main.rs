//! Other tools: what real output is read as, what follows from it, and what their command lines mean here.

mod checks;
mod compatibility;
mod corpus;
mod hostile;
mod studies;
mod traffic;

/// A file or a folder of what real programs wrote.
fn written(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(path)
}

/// What a file of this name and these bytes is read as.
fn audit(name: &str, bytes: &[u8]) -> proofload_foreign::Audit {
    let mut reader = proofload_foreign::Reader::new(name);
    reader.feed(bytes);
    proofload_foreign::Audit::of(vec![reader.finish()])
}
