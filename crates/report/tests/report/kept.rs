//! Stored records: each opens completely, with the same contents as when it was made.

use std::path::Path;
use std::process::Command;

use analysis::{Outcome, Ruling, conclude, gated};
use plan::GateEntry;
use proofload_report::MeasuredRecord;
use record::Record;

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Ruling of a gate's limit. `None` if nothing may be judged.
fn ruling(record: &Record, limit: &str) -> Option<Ruling> {
    let entry = GateEntry {
        limit: plan::limit(limit).expect(limit),
        of: None,
        line: None,
    };
    gated(record, &conclude(record), &[entry]).ruling()
}

#[test]
fn verdict_and_gate_of_the_kept_record_are_what_they_were() {
    let record = crate::records::kept();
    assert_eq!(record.damage, Vec::<String>::new());
    assert_eq!(conclude(&record).comparisons[0].outcome, Outcome::Better);
    let rulings = ["throughput > -3%", "throughput > +200%"].map(|limit| ruling(&record, limit));
    assert_eq!(rulings, [Some(Ruling::Pass), Some(Ruling::Fail)]);
    let text = crate::records::as_text(&record);
    assert!(text.contains("FASTER  level-1 vs level-0"), "{text}");
}

/// The records behind the page's tests: of real services.
#[test]
fn the_kept_runs_of_shipped_experiments_open_whole_and_say_what_they_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = format!("{CRATES}/../web/tests/records.tar.gz");
    let status = Command::new("tar")
        .args(["-xzf", &archive, "-C"])
        .arg(folder.path())
        .status();
    assert!(status.expect("tar").success());
    let entries = folder.path().read_dir().expect("records");
    let mut told: Vec<String> = entries
        .map(|entry| line(&entry.expect("a record").path()))
        .collect();
    told.sort_unstable();
    insta::assert_snapshot!(told.join("\n"));
}

fn line(path: &Path) -> String {
    let record = record::open(path).expect("it opens");
    let (name, conclusion) = (path.file_name().expect("its name"), conclude(&record));
    assert_eq!(record.damage, Vec::<String>::new());
    let report = MeasuredRecord::new(&record, &conclusion, None);
    assert!(crate::plain(&report, 100).contains(&record.header.plan.name));
    let outcomes: Vec<String> = conclusion
        .comparisons
        .iter()
        .map(|of| format!("{:?}", of.outcome))
        .collect();
    let (gate, blocks) = (ruling(&record, "throughput > -90%"), conclusion.blocks);
    format!(
        "{}: {blocks} blocks, {}, gate {gate:?}",
        name.display(),
        outcomes.join(" ")
    )
}
