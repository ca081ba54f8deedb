//! `proofload report --open`: the page in a browser that logs its arguments, or its path without a desktop.
//! Never a page from the record's folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::history::keep;
use crate::place::{Place, Run, wait_until};

/// `proofload report` with these words, with a separate state folder and without a desktop.
fn report(place: &Place, words: &[&str]) -> Command {
    let mut command = place.proofload(&[&["report"], words].concat());
    command
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("BROWSER");
    command.env("XDG_STATE_HOME", place.path("state"));
    command
}

/// The drawn page, after its path is printed.
fn page(place: &Place) -> PathBuf {
    let said = report(place, &["--open"]).said();
    let path = PathBuf::from(said.ends(0).tells(&["scp "]).out.trim_end());
    assert!(
        path.starts_with(place.path("state/proofload/pages")),
        "{said}"
    );
    path
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn the_page_opens_in_a_browser_without_a_shell_or_is_told() {
    let place = Place::new();
    // Characters with a meaning for a shell.
    keep(&place, "größe $(touch oops) 'x", 1);
    let page = page(&place).display().to_string();
    let drawn = fs::read_to_string(&page).expect("it was drawn");
    assert!(
        drawn.contains("level-1") && drawn.contains("</html>"),
        "{drawn}"
    );
    let note = place.path("started with");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" > 'NOTE.part'\nmv 'NOTE.part' 'NOTE'\n";
    let browser = place.write(
        "browser",
        script.replace("NOTE", &note.display().to_string()),
    );
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let browser = format!("{} --new %s:none", browser.display());
    let said = report(&place, &["--open"]).env("BROWSER", browser).said();
    assert_eq!(said.ends(0).out, "");
    wait_until("it was started", || note.exists());
    assert_eq!(place.read("started with"), format!("--new\n{page}\n"));
    assert!(!place.path("oops").exists());
    let said = report(&place, &["--open"])
        .env("BROWSER", "/nowhere/at/all")
        .said();
    assert_eq!(
        said.ends(0).tells(&["no browser could be started"]).out,
        format!("{page}\n")
    );
}

#[test]
fn a_page_that_a_record_brings_is_never_opened() {
    const STRANGE: &str = "<script>strange()</script>";
    let place = Place::new();
    let record = keep(&place, "strange", 1);
    let brought = place.write("brought.html", STRANGE);
    symlink(&brought, record.join("report.html")).expect("a link");
    let page = page(&place);
    assert!(
        fs::read_to_string(&page)
            .expect("it was drawn")
            .contains("level-1")
    );
    let folder = page.parent().expect("a folder").to_owned();
    assert_eq!(
        (
            mode(&page),
            mode(&folder),
            mode(&place.path("state/proofload"))
        ),
        (0o600, 0o700, 0o700)
    );
    // Nor is its path printed.
    let said = report(&place, &["latest"]).said();
    assert!(
        said.ends(0)
            .prints(&["to look at it: proofload report"])
            .out
            .find("report.html")
            .is_none(),
        "{said}"
    );

    // A file or link in the place of the page is neither followed nor kept, and old pages are removed.
    let old = place.path("state/proofload/pages/old-0123456789ab");
    fs::create_dir(&old).expect("a folder");
    Command::new("touch")
        .args(["-d", "9 days ago"])
        .arg(&old)
        .said()
        .ends(0);
    fs::remove_file(&page).expect("it was there");
    symlink(&brought, &page).expect("a link");
    assert_eq!(self::page(&place), page);
    assert!(mode(&page) == 0o600 && !page.is_symlink() && !old.exists());
    fs::rename(&folder, &old).expect("it is moved");
    symlink(place.mark(), &folder).expect("a link");
    report(&place, &["--open"])
        .said()
        .ends(6)
        .tells(&["cannot write the page"]);
    assert_eq!(place.read("brought.html"), STRANGE);
    assert!(!place.path("report.html").exists());
}
