//! Data that services need, from the experiment file to the record: made, found, failed, interrupted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::place::{Draft, Place, Run};

/// An experiment whose service reports the location of its data, which a script makes with the folder as
/// `$1`.
fn experiment(place: &Place, script: &str) -> PathBuf {
    let command = format!("[\"/bin/sh\", \"-c\", '{script}', \"sh\", \"{{output}}\"]");
    place.experiment(&Draft {
        service: "env = { PORT = \"{port}\", DATA = \"{prepare.zips}/data\" }",
        more: &format!("[prepare.zips]\ncommand = {command}"),
        load: "connections = 2\ntimeout = \"5s\"",
        design: "budget = \"30s\"\nwarmup = \"100ms\"\nslice = \"100ms\"",
    })
}

fn with_cache(place: &Place, mut command: Command) -> Command {
    command.env("XDG_CACHE_HOME", place.path("cache"));
    command
}

#[test]
fn data_is_made_for_the_first_run_and_found_by_the_next() {
    let place = Place::new();
    let file = experiment(&place, "echo 12345678 >$1/data");
    let check = || {
        with_cache(
            &place,
            place.proofload(&["run", "--dry-run", "experiment.toml"]),
        )
        .said()
    };
    check().prints(&["zips: to be made by /bin/sh"]);
    for made in [true, false] {
        let said = with_cache(&place, place.command(&file)).said();
        // If the machine stalls, a tenth of a second without a response voids it, which does not matter here.
        assert!(matches!(said.code, Some(0 | 4)), "{said}");
        assert_eq!(said.err.contains("built zips: 9 B"), made, "{said}");
        let record = place.opened();
        let prepared = &record.prepared[0];
        assert_eq!(
            (prepared.name.as_str(), prepared.made, prepared.bytes),
            ("zips", made, 9)
        );
        said.prints(&["data zips 9 B "]);
        let data = place.path("cache/proofload").join(&prepared.key);
        check().prints(&[&format!("zips: there, in {}", data.display())]);
        fs::remove_dir_all(place.record()).expect("the record is there");
    }
    place.is_quiet();
}
