//! `proofload report --open`: the page in a browser that notes what it was started with, or its path where nobody sits.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::history::keep;
use crate::place::{Place, Run, wait_until};

#[test]
fn the_page_opens_in_a_browser_without_a_shell_or_is_told() {
    let place = Place::new();
    // What a shell would make something of.
    let record = keep(&place, "größe $(touch oops) 'x", 1);
    let page = fs::canonicalize(&record).expect("it is there").join("report.html").display().to_string();
    let bare = |words: &[&str]| {
        let mut command = place.proofload(words);
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("BROWSER");
        command
    };
    let said = bare(&["report", "--open"]).said();
    assert_eq!(said.ends(0).tells(&["scp "]).out, format!("{page}\n"));
    let drawn = fs::read_to_string(&page).expect("it was missing, and was drawn");
    assert!(drawn.contains("level-1") && drawn.contains("</html>"), "{drawn}");
    let note = place.path("started with");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > 'NOTE.part'\nmv 'NOTE.part' 'NOTE'\n";
    let browser = place.write("browser", script.replace("NOTE", &note.display().to_string()));
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let said =
        bare(&["report", "--open"]).env("BROWSER", format!("{} --new %s:none", browser.display())).said();
    assert_eq!(said.ends(0).out, "");
    wait_until("it was started", || note.exists());
    assert_eq!(place.read("started with"), format!("--new\n{page}\n"));
    assert!(!place.path("oops").exists());
    let said = bare(&["report", "--open"]).env("BROWSER", "/nowhere/at/all").said();
    assert_eq!(said.ends(0).tells(&["no browser could be started"]).out, format!("{page}\n"));
}
