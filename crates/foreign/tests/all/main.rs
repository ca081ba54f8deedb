//! Other tools: parsing of real output, conclusions from it, and translation of their command lines.

mod checks;
mod compatibility;
mod corpus;
mod hostile;
mod labels;
mod pasted;
mod published;
mod studies;
mod traffic;

/// A file or a folder of real programs' output.
fn written(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(path)
}

/// The audit of a file with this name and these bytes.
fn audit(name: &str, bytes: &[u8]) -> proofload_foreign::Audit {
    let mut reader = proofload_foreign::Reader::new(name);
    reader.feed(bytes);
    proofload_foreign::Audit::of(vec![reader.finish()])
}

/// A run of wrk on another machine, of 30 s, under a heading, with the given failure lines.
fn wrk(label: &str, requests: u64, size: u64, failures: &str) -> String {
    let (rate, bytes) = (requests as f64 / 30.0, requests * size);
    format!(
        "## {label}\nRunning 30s test @ http://192.0.2.7/items\n  2 threads and 64 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
         Latency     9.02ms    2.10ms  31.00ms   88.00%\n  {requests} requests in 30.00s, {bytes}.00B read\n{failures}Requests/sec: {rate:.2}\nTransfer/sec: 1.00MB\n"
    )
}

/// Such a run without its heading.
fn unnamed(requests: u64) -> String {
    wrk("x", requests, 500, "").replace("## x\n", "")
}
