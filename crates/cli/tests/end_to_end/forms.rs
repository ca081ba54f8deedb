//! Every form of a report, of records that are whole, broken off or spoiled, and where it cannot be written. Without any service.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::place::{Place, proofload, stderr, stdout};

/// A record of an older version that is kept in the repository.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records/v1");
const FORMS: [&str; 6] = ["text", "md", "json", "csv", "svg", "png"];

fn report(record: &Path, words: &[&str]) -> Output {
    proofload().arg("report").arg(record).args(words).output().expect("proofload starts")
}

/// A copy of the kept record with other events.
fn with_events(place: &Place, name: &str, events: &[u8]) -> PathBuf {
    let folder = place.path(name);
    fs::create_dir(&folder).expect("a folder");
    fs::copy(Path::new(KEPT).join("record.json"), folder.join("record.json")).expect("a header");
    fs::write(folder.join("events.jsonl"), events).expect("events");
    folder
}

#[test]
fn an_older_record_has_every_form_on_stdout_and_in_a_file() {
    let place = Place::new();
    for form in FORMS {
        let printed = report(Path::new(KEPT), &["--format", form]);
        assert_eq!((printed.status.code(), stderr(&printed).as_str()), (Some(0), ""), "{form}");
        let file = place.path(form);
        let out = file.display().to_string();
        let written = report(Path::new(KEPT), &["--format", form, "--out", &out]);
        assert_eq!((written.status.code(), stdout(&written).as_str()), (Some(0), ""), "{form}");
        assert!(
            fs::read(&file).expect("it is there") == printed.stdout,
            "{form}: the file is not what was printed"
        );
    }
    let begin = |form: &str| fs::read(place.path(form)).expect("it is there");
    assert!(begin("md").starts_with(b"### level-1 has a higher throughput than level-0: +"));
    assert!(
        begin("csv").starts_with(
            b"experiment,variant,factor.setting,block,dropped,metric,unit,value,requests,failed\n"
        )
    );
    assert!(begin("svg").starts_with(b"<svg ") && begin("png").starts_with(b"\x89PNG\r\n"));
    let dark = report(Path::new(KEPT), &["--format", "svg", "--dark"]);
    assert!(stdout(&dark).contains("fill=\"#14171b\""));
    let refused = report(Path::new(KEPT), &["--dark"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn a_record_that_breaks_off_anywhere_has_every_form() {
    let place = Place::new();
    let events = fs::read(Path::new(KEPT).join("events.jsonl")).expect("they are kept");
    for (number, share) in [0.0, 0.013, 0.31, 0.7, 0.999].into_iter().enumerate() {
        let length = (events.len() as f64 * share) as usize;
        let record = with_events(&place, &format!("cut-{number}"), &events[..length]);
        for form in FORMS {
            let output = report(&record, &["--format", form]);
            // What is too little for a verdict is void.
            assert!(
                matches!(output.status.code(), Some(0 | 4)),
                "{form} of {length} bytes: {}",
                stderr(&output)
            );
            assert!(!output.stdout.is_empty() && stderr(&output).is_empty(), "{form}: {}", stderr(&output));
        }
    }
    let record = with_events(&place, "header", &events);
    let header = fs::read(record.join("record.json")).expect("a header");
    fs::write(record.join("record.json"), &header[..header.len() / 2]).expect("half of it");
    let output = report(&record, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("record.json: not a record's header: EOF"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    let record = Path::new(KEPT);
    for form in FORMS {
        // A pipe whose other end is closed already: `| head` is so at its end.
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut gone = proofload();
        gone.arg("report").arg(record).args(["--format", form]).stdout(writer).stderr(Stdio::piped());
        let gone = gone.output().expect("proofload starts");
        assert_eq!((gone.status.code(), stderr(&gone).as_str()), (Some(0), ""), "{form}");
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let full = proofload().arg("report").arg(record).args(["--format", form]).stdout(full).output();
        let full = full.expect("proofload starts");
        assert_eq!(full.status.code(), Some(6), "{form}");
        assert!(stderr(&full).contains("stdout: cannot be written: No space left"), "{}", stderr(&full));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_what_helps() {
    let place = Place::new();
    let folder = place.path("").display().to_string();
    let missing = place.path("no/such/folder/report.md").display().to_string();
    for (out, said, hint) in [
        ("/dev/full", "No space left", "make room on that disk"),
        (missing.as_str(), "No such file", "make its folder first"),
        (folder.as_str(), "Is a directory", "name a file in it"),
    ] {
        let output = report(Path::new(KEPT), &["--format", "csv", "--out", out]);
        assert_eq!(output.status.code(), Some(6), "{out}");
        let error = stderr(&output);
        assert!(error.contains(&format!("{out}: cannot be written: {said}")), "{error}");
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn the_schema_of_the_report_is_printed() {
    let output = proofload().args(["schema", "--of", "report"]).output().expect("proofload starts");
    assert!(stdout(&output).contains("\"title\": \"Proofload report\""), "{}", stderr(&output));
    let output = proofload().arg("schema").output().expect("proofload starts");
    assert!(stdout(&output).contains("\"title\": \"Proofload experiment\""), "{}", stderr(&output));
}
