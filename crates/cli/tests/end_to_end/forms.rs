//! Every form of a report, for complete, truncated and damaged records, and for unwritable destinations.
//! Without any service.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Stdio;

use crate::place::{KEPT, Place, Run, Said, proofload};

const FORMS: [&str; 5] = ["text", "md", "json", "csv", "svg"];

fn report(record: impl AsRef<Path>, words: &[&str]) -> Said {
    proofload()
        .arg("report")
        .arg(record.as_ref())
        .args(words)
        .said()
}

/// A copy of the stored record with other events.
fn with_events(place: &Place, name: &str, events: &[u8]) -> std::path::PathBuf {
    place.write(
        &format!("{name}/record.json"),
        fs::read(Path::new(KEPT).join("record.json")).expect("a header"),
    );
    place.write(&format!("{name}/events.jsonl"), events);
    place.path(name)
}

#[test]
fn a_record_has_every_form_on_stdout_and_in_a_file() {
    let place = Place::new();
    for form in FORMS {
        let printed = report(KEPT, &["--format", form]);
        assert_eq!(printed.ends(0).err, "", "{form}");
        let file = place.path(form);
        let written = report(
            KEPT,
            &["--format", form, "--out", &file.display().to_string()],
        );
        assert_eq!(written.ends(0).out, "", "{form}");
        assert!(
            fs::read_to_string(&file).is_ok_and(|text| text == printed.out),
            "{form}: not what was printed"
        );
    }
    for (form, begin) in [
        ("md", &b"### level-1 has a higher throughput than level-0: +"[..]),
        (
            "csv",
            b"experiment,variant,factor.setting,block,dropped,metric,unit,value,requests,failed,invalid\n",
        ),
        ("svg", b"<svg "),
    ] {
        assert!(fs::read(place.path(form)).expect("it is there").starts_with(begin), "{form}");
    }
    report(KEPT, &["--format", "svg", "--dark"]).prints(&["fill=\"#14171b\""]);
    let notes = place.path("md").display().to_string();
    for words in [
        &[KEPT, "--dark"][..],
        &[KEPT, "--dark", "--open"],
        &[notes.as_str(), "--dark"],
    ] {
        proofload()
            .arg("report")
            .args(words)
            .said()
            .ends(2)
            .tells(&["--dark"]);
    }
}

#[test]
fn a_record_that_breaks_off_anywhere_has_every_form() {
    let place = Place::new();
    let events = fs::read(Path::new(KEPT).join("events.jsonl")).expect("they are kept");
    for (number, share) in [0.0, 0.013, 0.31, 0.7, 0.999].into_iter().enumerate() {
        let length = (events.len() as f64 * share) as usize;
        let record = with_events(&place, &format!("cut-{number}"), &events[..length]);
        for form in FORMS {
            let said = report(&record, &["--format", form]);
            // A record with too little for a verdict is void.
            assert!(
                matches!(said.code, Some(0 | 4)),
                "{form} of {length} bytes: {said}"
            );
            assert!(
                !said.out.is_empty() && said.err.is_empty(),
                "{form}: {said}"
            );
        }
    }
    let record = with_events(&place, "header", &events);
    let header = fs::read(record.join("record.json")).expect("a header");
    place.write("header/record.json", &header[..header.len() / 2]);
    report(&record, &[])
        .ends(2)
        .tells(&["record.json: not a record's header: EOF"]);
}

#[test]
fn a_form_that_there_is_not_is_refused_before_anything_starts() {
    let place = Place::new();
    place.two("api.env.A = \"1\"", "api.env.A = \"2\"", "");
    for words in [
        &["run", "experiment.toml", "--format", "junit"][..],
        &["run", "experiment.toml", "--dry-run", "--format", "md"],
        &["run", "experiment.toml", "--dry-run", "--events"],
        &["load", "http://127.0.0.1:1/", "--format", "junit"],
        &["tune", "node x.js", "--format", "csv"],
        &["tune", "node x.js", "--list", "--json"],
        &["doctor", "calibrate", "experiment.toml", "--format", "svg"],
        // There is room for one profile, and two variants would be captured.
        &["profile", "experiment.toml", "--format", "svg"],
    ] {
        assert_eq!(place.said(words).ends(2).out, "", "{words:?}");
    }
    let dry = place.said(&["run", "experiment.toml", "--dry-run", "--format", "junit"]);
    dry.ends(2).tells(&["there are text and json"]);
    assert!(!place.path("records").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    for form in FORMS {
        // A pipe whose other end is already closed, as at the end of `| head`.
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let to = |stdout: Stdio| {
            let mut command = proofload();
            command
                .args(["report", KEPT, "--format", form])
                .stdout(stdout)
                .said()
        };
        assert_eq!(to(writer.into()).ends(0).err, "", "{form}");
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        to(full.into())
            .ends(6)
            .tells(&["stdout: cannot be written: No space left"]);
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
        let error = format!("{out}: cannot be written: {said}");
        report(KEPT, &["--format", "csv", "--out", out])
            .ends(6)
            .tells(&[&error, hint]);
    }
}

#[test]
fn the_schema_of_the_report_is_printed() {
    for (words, title) in [(&["--of", "report"][..], "report"), (&[], "experiment")] {
        proofload()
            .arg("schema")
            .args(words)
            .said()
            .prints(&[&format!("\"title\": \"Proofload {title}\"")]);
    }
}
