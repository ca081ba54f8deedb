//! `proofload open`: the page in a browser that notes what it was started with, or its path where nobody sits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::history::{command, keep};
use crate::place::{Place, stderr, stdout};

#[test]
fn the_page_opens_in_a_browser_without_a_shell_or_is_told() {
    let place = Place::new();
    // What a shell would make something of.
    let record = keep(&place, "größe $(touch oops) 'x", 1);
    let page = record.join("report.html");
    let page = fs::canonicalize(&record)
        .map(|record| record.join("report.html"))
        .unwrap_or(page)
        .display()
        .to_string();
    let bare = |words: &[&str]| {
        let mut command = command(&place, words);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("BROWSER");
        command
    };
    for words in [&["open"][..], &["open", "latest", "--print"]] {
        let output = bare(words).output().expect("proofload starts");
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(0), format!("{page}\n")),
            "{}",
            stderr(&output)
        );
        assert_eq!(stderr(&output).contains("scp "), words.len() == 1, "{}", stderr(&output));
    }
    let drawn = fs::read_to_string(&page).expect("it was missing, and was drawn");
    assert!(drawn.contains("level-1") && drawn.contains("</html>"), "{drawn}");
    let (browser, note) = (place.path("browser"), place.path("started with"));
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}.part'\nmv '{0}.part' '{0}'\n", note.display());
    fs::write(&browser, script).expect("a script");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let named = format!("{} --new %s:none", browser.display());
    let output = bare(&["open"]).env("BROWSER", named).output().expect("proofload starts");
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()), "{}", stderr(&output));
    let begun = Instant::now();
    while !note.exists() && begun.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(&note).expect("it was started"), format!("--new\n{page}\n"));
    assert!(!place.path("oops").exists());
    let output = bare(&["open"]).env("BROWSER", "/nowhere/at/all").output().expect("proofload starts");
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(0), format!("{page}\n")),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("no browser could be started"), "{}", stderr(&output));
}
