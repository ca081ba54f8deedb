//! Measures what a list of many records costs: reading so many summaries, on one thread.
//!
//! ```text
//! cargo run --release -p proofload-analysis --example summaries [-- 1000]
//! ```

use std::path::Path;
use std::time::Instant;
use std::{env, fs, io};

use proofload_analysis::{ESSENTIALS_VERSION, Essentials, conclude};
use record::{Folder, SUMMARY};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");

fn main() -> io::Result<()> {
    let many = env::args().nth(1).map_or(Ok(1000), |many| many.parse()).map_err(io::Error::other)?;
    let root = tempfile::tempdir()?;
    let record = record::open(Path::new(KEPT)).map_err(io::Error::other)?;
    let made_by = format!("example {ESSENTIALS_VERSION}");
    let essentials = Essentials::of(&record, &conclude(&record));
    for number in 0..many {
        let directory = root.path().join(format!("record-{number}"));
        fs::create_dir(&directory)?;
        for file in ["record.json", "events.jsonl"] {
            fs::copy(Path::new(KEPT).join(file), directory.join(file))?;
        }
        let folder = Folder::at(directory).ok_or_else(|| io::Error::other("it has a header"))?;
        folder.keep_summary(&made_by, &Ok::<_, String>(&essentials))?;
    }
    let bytes = fs::metadata(root.path().join("record-0").join(SUMMARY))?.len();
    for _ in 0..5 {
        let begun = Instant::now();
        let folders = Folder::all(root.path())?;
        let read = folders.iter().filter_map(|folder| folder.summary(&made_by));
        let read: Vec<Result<Box<Essentials>, String>> = read.collect();
        let took_ms = begun.elapsed().as_secs_f64() * 1e3;
        println!("{} of {many} summaries of {bytes} bytes read in {took_ms:.1} ms", read.len());
    }
    Ok(())
}
