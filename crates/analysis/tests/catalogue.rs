//! Whatever a check finds has a number, and no two have the same: what a report refers to is always there.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use proofload_analysis::catalogue::{self, ALL, Subject};

/// The crate's sources, without the catalogue itself.
fn sources() -> String {
    fn read(folder: &Path, into: &mut String) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                read(&path, into)?;
            } else if !path.ends_with("catalogue.rs") {
                into.push_str(&fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }
    let mut all = String::new();
    read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut all).expect("the sources are here");
    all
}

/// What stands before the name of a check where a finding is made: the field, or a function that makes findings.
const BEFORE: [&str; 4] = ["check: \"", "warning(\"", "void(\"", "finding(\""];

#[test]
fn every_finding_is_in_the_catalogue() {
    let sources = sources();
    let said = BEFORE.iter().flat_map(|before| sources.split(before).skip(1));
    let said: BTreeSet<&str> = said.filter_map(|rest| rest.split('"').next()).collect();
    assert!(said.len() > 15, "the sources are read: {said:?}");
    let known: BTreeSet<&str> = ALL.iter().map(|entry| entry.check).collect();
    let unknown: Vec<&&str> = said.difference(&known).collect();
    assert!(
        unknown.is_empty(),
        "give them a number in catalogue.rs, and a section in docs/validity.md: {unknown:?}"
    );
}

#[test]
fn every_check_of_the_catalogue_is_made() {
    let sources = sources();
    let made = |check: &str| sources.contains(&format!("\"{check}\""));
    let missing: Vec<&str> = ALL.iter().map(|entry| entry.check).filter(|check| !made(check)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn numbers_and_names_are_unique_and_in_the_order_of_subjects() {
    let numbers: BTreeSet<&str> = ALL.iter().map(|entry| entry.number).collect();
    let checks: BTreeSet<&str> = ALL.iter().map(|entry| entry.check).collect();
    assert_eq!((numbers.len(), checks.len()), (ALL.len(), ALL.len()));
    let subjects: Vec<Subject> = ALL.iter().map(|entry| entry.subject).collect();
    assert!(subjects.is_sorted(), "{subjects:?}");
}

#[test]
fn a_check_is_found_by_its_number_and_by_its_name() {
    let check = |word| catalogue::find(word).map(|entry| entry.check);
    for word in ["V8", "v8", "8", "errors"] {
        assert_eq!(check(word), Some("errors"), "{word}");
    }
    for word in ["", "V", "V0", "V08", "V999", "error", "VV8"] {
        assert_eq!(check(word), None, "{word}");
    }
}
