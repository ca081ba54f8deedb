//! `proofload report --open`: the report page of a record in the browser; where there is no desktop, where it lies and how to see it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io};

use ::report::REPORT_PAGE;

use crate::exit::{self, Failed};
use crate::report;
use crate::{explanation, print, records};

/// Opens the page, or tells where it is; with `only_print` that alone.
///
/// # Errors
/// If there is no such record, or its page is not there and cannot be made.
pub fn run(record: &Path, only_print: bool) -> anyhow::Result<ExitCode> {
    let page = page(record)?;
    let path = page.display().to_string();
    if only_print {
        print::data(&format!("{path}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    // Of several, apart by colons, the first is the one that is wanted.
    let named = set("BROWSER")
        .and_then(|browsers| browsers.split(':').map(str::to_owned).find(|one| !one.is_empty()));
    let shown = match named {
        Some(browser) => show_in(&browser, &page),
        None if set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some() => open::that_detached(&page),
        None => {
            print::data(&format!("{path}\n"))?;
            print::talk(
                "there is no desktop here (DISPLAY, WAYLAND_DISPLAY and BROWSER are not set); the page needs nothing beside it:",
            );
            // This machine's name, as others may know it.
            let uname = rustix::system::uname();
            let host = uname.nodename().to_string_lossy();
            print::tell!("  on the machine that you sit at: scp {host}:{path} . && xdg-open {REPORT_PAGE}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    match shown {
        Ok(()) => print::tell!("opening {path}"),
        Err(error) => {
            print::data(&format!("{path}\n"))?;
            print::tell!("no browser could be started ({error}); the page is there");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The whole path of a record's page, which is drawn where it is missing, and anew where the record went on since.
fn page(asked: &Path) -> anyhow::Result<PathBuf> {
    let record = records::opened(asked)?;
    let path = record.directory.join(REPORT_PAGE);
    if !path.is_file() || is_older(&path, &record.directory.join("events.jsonl")) && record.ended.is_none() {
        let conclusion = analysis::conclude(&record);
        let explanation = explanation::kept(&record.directory);
        let drawn = report::write((&record, &conclusion, explanation.as_ref()), &::report::HTML, &path);
        drawn.map_err(|error| {
            Failed::new(exit::SELF, format!("{}: cannot write the page: {error}", path.display()))
                .hint("`proofload report RECORD --html --out FILE` writes it elsewhere")
        })?;
    }
    Ok(fs::canonicalize(&path).unwrap_or(path))
}

fn is_older(page: &Path, events: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    written(page) < written(events)
}

/// Starts the program that the variable BROWSER names, word by word, with `%s` for the page, and does not wait. No shell reads the path.
fn show_in(browser: &str, page: &Path) -> io::Result<()> {
    let mut words = browser.split_whitespace();
    let Some(program) = words.next() else { return Ok(()) };
    let mut command = Command::new(program);
    let mut placed = false;
    for word in words {
        placed |= word == "%s";
        command.arg(if word == "%s" { page.as_os_str() } else { word.as_ref() });
    }
    if !placed {
        command.arg(page);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}
