//! Data that services need, from the experiment file to the record: made, found, failed, interrupted.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, SERVICE, proofload, signal, stderr, stdout};

/// An experiment whose service says where its data is, and whose data is made by a script with the folder as `$1`.
fn experiment(place: &Place, script: &str) -> PathBuf {
    let text = format!(
        r#"name = "prepared"
[prepare.zips]
command = ["/bin/sh", "-c", '{script}', "sh", "{{output}}"]
[services.api]
command = ["node", "{SERVICE}"]
ready = "/healthz"
env = {{ PORT = "{{port}}", DATA = "{{prepare.zips}}/data" }}
[load]
connections = 2
[design]
drop_disturbed = false
budget = "30s"
warmup = "100ms"
slice = "100ms"
slices = 1
"#
    );
    let path = place.path("prepared.toml");
    fs::write(&path, text).expect("the experiment is written");
    path
}

fn with_cache(place: &Place, mut command: Command) -> Command {
    command.env("XDG_CACHE_HOME", place.path("cache"));
    command
}

fn kept(place: &Place) -> usize {
    fs::read_dir(place.path("cache/proofload")).map_or(0, Iterator::count)
}

#[test]
fn data_is_made_for_the_first_run_and_found_by_the_next() {
    let place = Place::new();
    let file = experiment(&place, "echo 12345678 >$1/data");
    let check = || {
        let mut check = with_cache(&place, proofload());
        stdout(&check.arg("check").arg(&file).output().expect("proofload starts"))
    };
    assert!(check().contains("zips: to be made by /bin/sh"), "{}", check());
    for made in [true, false] {
        let output = with_cache(&place, place.command(&file)).output().expect("proofload starts");
        // A tenth of a second without an answer voids it where the machine stood still, which is not what is looked for here.
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}{}", stdout(&output), stderr(&output));
        assert_eq!(stderr(&output).contains("made zips: 9 B"), made, "{}", stderr(&output));
        let record = record::open(&place.record()).expect("the record opens");
        let prepared = &record.prepared[0];
        assert_eq!((prepared.name.as_str(), prepared.made, prepared.bytes), ("zips", made, 9));
        let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
        assert!(words.join(" ").contains("data zips 9 B "), "{}", stdout(&output));
        let data = place.path("cache/proofload").join(&prepared.key);
        assert!(check().contains(&format!("zips: there, in {}", data.display())), "{}", check());
        fs::remove_dir_all(place.record()).expect("the record is there");
    }
    assert_eq!(place.left_running(), Vec::<String>::new());
}

#[test]
fn data_that_cannot_be_made_ends_the_run_before_any_service() {
    let place = Place::new();
    let file = experiment(&place, "echo half >$1/data; echo no such table; exit 3");
    let output = with_cache(&place, place.command(&file)).output().expect("proofload starts");
    assert_eq!(output.status.code(), Some(3), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("prepare.zips ended with status 3"), "{}", stderr(&output));
    assert!(stderr(&output).contains("no such table"), "{}", stderr(&output));
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    assert!(
        words.join(" ").contains("stopped, because what it needs could not be made"),
        "{}",
        stdout(&output)
    );
    let logs: Vec<String> = place.logs().into_iter().map(|(name, _)| name).collect();
    assert_eq!((logs, kept(&place)), (vec!["prepare-zips.log".to_owned()], 0));
}

#[test]
fn an_interrupt_ends_the_command_and_leaves_nothing_half_made() {
    let place = Place::new();
    let file = experiment(&place, "echo half >$1/data; while :; do sleep 600; done");
    let mut command = with_cache(&place, place.command(&file));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("proofload starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    // The folder, its lock, and what runs: proofload, a warden, a shell.
    while kept(&place) < 2 || place.left_running().len() < 4 {
        assert!(Instant::now() < deadline, "the command never ran");
        thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("proofload ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!((kept(&place), place.left_running()), (0, Vec::new()));
}
