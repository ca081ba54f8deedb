//! A table of words and the records that they refer to.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder with headers: name, experiment, created.
fn shelf(of: &[(&str, &str, &str)]) -> (tempfile::TempDir, Shelf) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, experiment, created) in of {
        write(
            &folder,
            name,
            &format!(
                r#"{{"version":1,"created":"{created}","plan":{{"name":"{experiment}","more":[]}}}}"#
            ),
        );
    }
    fs::create_dir(folder.path().join("no-record")).expect("a folder");
    let shelf = Shelf::of(folder.path());
    (folder, shelf)
}

fn write(folder: &tempfile::TempDir, name: &str, header: &str) {
    fs::create_dir(folder.path().join(name)).expect("a folder");
    fs::write(folder.path().join(name).join("record.json"), header).expect("a file");
}

const RECORDS: [(&str, &str, &str); 6] = [
    (
        "keep-alive-20260101-000000",
        "keep-alive",
        "2026-01-01T00:00:00Z",
    ),
    (
        "keep-alive-20260103-000000",
        "keep-alive",
        "2026-01-03T00:00:00Z",
    ),
    (
        "keep-alive-calibration-20260102-000000",
        "keep-alive",
        "2026-01-02T00:00:00Z",
    ),
    ("größe-20260101-120000", "größe", "2026-01-01T12:00:00Z"),
    ("baseline", "keep-alive", "2025-12-24T00:00:00Z"),
    ("größe", "another", "2025-01-01T00:00:00Z"),
];

#[test]
fn a_word_means_the_newest_a_name_or_an_experiment() {
    let (_folder, shelf) = shelf(&RECORDS);
    for (word, name) in [
        ("latest", "keep-alive-20260103-000000"),
        ("latest~0", "keep-alive-20260103-000000"),
        ("latest~1", "keep-alive-calibration-20260102-000000"),
        ("latest~5", "größe"),
        ("keep-alive", "keep-alive-20260103-000000"),
        ("keep-alive~2", "keep-alive-20260101-000000"),
        ("baseline", "baseline"),
        ("base", "baseline"),
        ("keep-alive-c", "keep-alive-calibration-20260102-000000"),
        ("größe~0", "größe-20260101-120000"),
        ("größe-2", "größe-20260101-120000"),
        ("another", "größe"),
    ] {
        let found = shelf
            .find(word)
            .unwrap_or_else(|error| panic!("{word}: {error}"));
        assert_eq!(found.file_name(), Some(name.as_ref()), "{word}");
    }
}

#[test]
fn after_a_clock_was_set_back_the_newest_is_still_the_one_that_was_made_last() {
    let (folder, _) = shelf(&RECORDS);
    for (name, created) in [
        ("one", "2026-01-02T10:00:00Z"),
        ("another", "2026-01-02T09:00:00Z"),
    ] {
        let order =
            serde_json::to_string(&order(&folder.path().join(name), created)).expect("it is JSON");
        write(
            &folder,
            name,
            &format!(r#"{{"created":"{created}","order":{order},"plan":{{"name":"x"}}}}"#),
        );
        let newest = Shelf::of(folder.path())
            .find(LATEST)
            .expect("there are some");
        assert_eq!(newest.file_name(), Some(name.as_ref()));
    }
    // When the clock is ahead again, the time is sufficient.
    assert_eq!(
        order(&folder.path().join("next"), "2026-01-03T00:00:01Z"),
        None
    );
}

#[test]
fn what_is_missed_or_ambiguous_is_answered_with_names_and_their_number() {
    let (_folder, shelf) = shelf(&RECORDS);
    for (word, said) in [
        (
            "keep-alvie",
            "no file or folder, and no record or experiment below",
        ),
        ("keep-alvie", "nearest names are keep-alive"),
        ("grösse", "größe"),
        ("keep-alive-", "begins the names of 3 records"),
        (
            "keep-alive~9",
            "only 4 records of the experiment `keep-alive`",
        ),
        ("latest~6", "only 6 records"),
        ("latest~6", "the oldest is latest~5"),
        // A folder may have the name of another record's experiment.
        ("größe", "größe` may be the folder"),
        ("größe", "größe-20260101-120000"),
        (
            "latest~x",
            "no file or folder, and no record or experiment below",
        ),
        ("zzz", "`proofload history` lists them"),
    ] {
        let failed = shelf.find(word).expect_err(word);
        let all = format!("{} {}", failed.message, failed.hint.unwrap_or_default());
        assert!(all.contains(said), "{word}: {all}");
    }
    let (_folder, empty) = self::shelf(&[]);
    assert!(
        empty
            .find("latest")
            .expect_err("none")
            .message
            .starts_with("there is no record below ")
    );
}

#[test]
fn a_newest_record_that_cannot_be_read_is_still_the_newest() {
    let (folder, _) = shelf(&RECORDS);
    write(&folder, "broken", "{\"version\":1,");
    assert_eq!(
        Shelf::of(folder.path()).find("latest").expect("one"),
        folder.path().join("broken")
    );
    // Also the newest of its experiment, which is derived from the folder's name.
    write(&folder, "keep-alive-20260104-000000", "{\"version\":1,");
    let newest = Shelf::of(folder.path()).find("keep-alive").expect("one");
    assert_eq!(
        newest.file_name(),
        Some("keep-alive-20260104-000000".as_ref())
    );
    // Another experiment's name may have the same beginning.
    write(&folder, "keep-alive-off-20260105-000000", "{\"version\":1,");
    let newest = Shelf::of(folder.path()).find("keep-alive").expect("one");
    assert_eq!(
        newest.file_name(),
        Some("keep-alive-20260104-000000".as_ref())
    );
    assert!(is_folder_of(
        "keep-alive-calibration-20260104-000000-2",
        "keep-alive"
    ));
}

#[test]
fn runs_that_begin_in_one_second_get_folders_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("records");
    let paths: BTreeSet<PathBuf> = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| claim_below(&root, "api-1")))
            .collect();
        claims
            .into_iter()
            .map(|claim| claim.join().unwrap())
            .collect()
    });
    assert_eq!(paths.len(), 8, "{paths:?}");
    assert!(paths.contains(&root.join("api-1")) && paths.contains(&root.join("api-1-8")));
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert!(
        paths.iter().all(|path| mode(path) == 0o700),
        "nobody else may look into them"
    );
}
