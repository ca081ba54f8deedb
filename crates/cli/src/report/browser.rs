//! `report --open`: opens a record's page in a browser, or prints its path.
//!
//! A record and the pages in its folder are untrusted, so none of these pages is opened. The opened page is
//! drawn from the record's data into a folder that only this user may access.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use std::{env, fs, io};

use model::Digest;
use record::Record;
use report::{MeasuredRecord, REPORT_PAGE};

use super::{DrawnRecord, drawn_from, measured};
use crate::exit::{self, CliError};
use crate::{explanation, print, tunings};

/// Subfolder for pages in the user's state folder.
const PAGES: &str = "pages";
/// Age at which pages are removed.
const PAGES_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Number of digits that distinguish records of the same name.
const KEY_DIGITS: usize = 12;

/// Draws the page of a record and opens it, or prints its path and how to view it.
pub fn open(record: &Record) -> anyhow::Result<u8> {
    show(&drawn_from(record, draw)?)
}

/// Draws the page of a tuning and opens it likewise.
pub fn open_tuning(folder: &Path) -> anyhow::Result<u8> {
    let advice = tunings::open(folder)?;
    let path = page_folder(folder)?.join(REPORT_PAGE);
    print::write(&advice, &report::HTML, &path).map_err(|error| failed(&path, &error))?;
    show(&path)
}

/// Opens a page, or prints its path.
fn show(page: &Path) -> anyhow::Result<u8> {
    let path = page.display().to_string();
    let line = format!("{path}\n");
    let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    // The first of several browsers, separated by colons.
    let named = set("BROWSER").and_then(|browsers| {
        browsers
            .split(':')
            .map(str::to_owned)
            .find(|one| !one.is_empty())
    });
    let shown = match named {
        Some(browser) => show_in(&browser, page),
        None if set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some() => {
            ::open::that_detached(page)
        }
        None => {
            print::data(&line)?;
            print::talk(
                "there is no desktop here (DISPLAY, WAYLAND_DISPLAY and BROWSER are not set); the page needs nothing beside it:",
            );
            // This machine's name, as other machines may know it.
            let uname = rustix::system::uname();
            let host = uname.nodename().to_string_lossy();
            print::tell!(
                "  on the machine that you sit at: scp {host}:{path} . && xdg-open {REPORT_PAGE}"
            );
            return Ok(0);
        }
    };
    match shown {
        Ok(()) => print::tell!("opening {path}"),
        Err(error) => {
            print::data(&line)?;
            print::tell!("no browser could be started ({error}); the page is there");
        }
    }
    Ok(0)
}

/// Draws the pages of a record, and returns the path of the report's.
fn draw(of: DrawnRecord<'_>) -> Result<PathBuf, CliError> {
    let (record, conclusion, explanation) = of;
    let folder = page_folder(&record.directory)?;
    let path = folder.join(REPORT_PAGE);
    let flames = folder.join(explanation::FLAME);
    if let Some(explanation) = explanation {
        let page = explanation::flames(record, explanation);
        record::write_whole(&flames, page.as_bytes()).map_err(|error| failed(&flames, &error))?;
    }
    let report = MeasuredRecord {
        has_flames: explanation.is_some(),
        ..measured((record, conclusion, explanation), None)
    };
    print::write(&report, &report::HTML, &path).map_err(|error| failed(&path, &error))?;
    Ok(path)
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> CliError {
    CliError::new(
        exit::SELF,
        format!("{}: cannot write the page: {why}", path.display()),
    )
    .hint("`proofload report RECORD --html --out FILE` writes it elsewhere")
}

/// Creates the folder for the pages of a record or tuning.
fn page_folder(directory: &Path) -> Result<PathBuf, CliError> {
    let state = state().ok_or_else(|| {
        let message =
            "no folder for the page: none of XDG_STATE_HOME, HOME and XDG_RUNTIME_DIR is an absolute path";
        CliError::new(exit::SELF, message)
            .hint("`proofload report RECORD --html --out FILE` writes it elsewhere")
    })?;
    let pages = state.join(PAGES);
    let folder = pages.join(name(directory));
    for private in [&state, &pages, &folder] {
        machine::private_folder(private).map_err(|error| failed(private, &error))?;
    }
    remove_old(&pages, &folder);
    Ok(folder)
}

/// `$XDG_STATE_HOME/proofload`, or `~/.local/state/proofload`. Without a home the session's runtime folder.
fn state() -> Option<PathBuf> {
    // The XDG Base Directory Specification requires relative paths to be ignored.
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || absolute("HOME").map(|home| home.join(".local/state"));
    let base = absolute("XDG_STATE_HOME")
        .or_else(home)
        .or_else(|| absolute("XDG_RUNTIME_DIR"));
    base.map(|base| base.join("proofload"))
}

/// One folder for each record: a page that is drawn again replaces the last.
fn name(directory: &Path) -> String {
    let whole = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    let key = Digest::of(whole.as_os_str().as_encoded_bytes()).to_string();
    let name = whole
        .file_name()
        .unwrap_or(OsStr::new("record"))
        .to_string_lossy();
    format!("{}-{}", model::text::slug(&name, 40), &key[..KEY_DIGITS])
}

/// Removes old pages of other records. Pages that cannot be removed only take space.
fn remove_old(pages: &Path, own: &Path) {
    let is_old = |path: &Path| {
        let drawn = fs::symlink_metadata(path)
            .ok()
            .filter(fs::Metadata::is_dir)?
            .modified()
            .ok()?;
        SystemTime::now()
            .duration_since(drawn)
            .ok()
            .filter(|age| *age > PAGES_KEPT)
    };
    let entries = fs::read_dir(pages)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    for path in entries.filter(|path| path != own && is_old(path).is_some()) {
        let _ = fs::remove_dir_all(&path);
    }
}

/// Starts the program in the variable BROWSER, split into words, with `%s` replaced by the page, without
/// waiting. No shell interprets the path.
fn show_in(browser: &str, page: &Path) -> io::Result<()> {
    let placed = browser.split_whitespace().any(|word| word == "%s");
    let line = format!("{browser}{}", if placed { "" } else { " %s" });
    let mut words = line.split_whitespace();
    let mut command = machine::command(words.next().unwrap_or_default());
    command.args(words.map(|word| {
        if word == "%s" {
            page.as_os_str()
        } else {
            word.as_ref()
        }
    }));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}
