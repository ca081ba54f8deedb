//! `proofload open`: the report page of a record in the browser; where there is no desktop, where it lies and how to see it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use ::report::REPORT_PAGE;
use clap::Args;

use crate::exit::{self, Failed};
use crate::report;
use crate::{explain, print, records};

/// Flags of `open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    #[arg(help = records::HELP, default_value = "latest")]
    record: PathBuf,
    /// Only print the page's path
    #[arg(long)]
    print: bool,
}

/// Opens the page, or tells where it is.
///
/// # Errors
/// If there is no such record, or its page is not there and cannot be made.
pub fn run(args: &OpenArgs) -> anyhow::Result<ExitCode> {
    let page = page(&args.record)?;
    let path = page.display().to_string();
    if args.print {
        print::data(&format!("{path}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    match browser() {
        Browser::None => {
            print::data(&format!("{path}\n"))?;
            print::talk(
                "there is no desktop here (DISPLAY, WAYLAND_DISPLAY and BROWSER are not set); the page needs nothing beside it:",
            );
            print::talk(&format!(
                "  on the machine that you sit at: scp {}:{path} . && xdg-open {REPORT_PAGE}",
                host()
            ));
        }
        browser => match browser.show(&page) {
            Ok(()) => print::talk(&format!("opening {path}")),
            Err(error) => {
                print::data(&format!("{path}\n"))?;
                print::talk(&format!("no browser could be started ({error}); the page is there"));
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// The whole path of a record's page, which is drawn where it is missing, and anew where the record went on since.
fn page(asked: &Path) -> anyhow::Result<PathBuf> {
    let record = records::opened(asked)?;
    let path = record.directory.join(REPORT_PAGE);
    if !path.is_file() || is_older(&path, &record.directory.join("events.jsonl")) && record.ended.is_none() {
        let conclusion = analysis::conclude(&record);
        let explanation = explain::kept(&record.directory);
        let drawn = report::write((&record, &conclusion, explanation.as_ref()), &::report::HTML, &path);
        drawn.map_err(|error| Failed {
            message: format!("{}: cannot write the page: {error}", path.display()),
            hint: Some("`proofload report RECORD --html --out FILE` writes it elsewhere".to_owned()),
            code: exit::SELF,
        })?;
    }
    Ok(fs::canonicalize(&path).unwrap_or(path))
}

fn is_older(page: &Path, events: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    written(page) < written(events)
}

/// What would show a page here.
enum Browser {
    /// Nothing: nobody sits at this machine.
    None,
    /// What the variable BROWSER names, word by word, with `%s` for the page.
    Named(Vec<String>),
    /// Whatever the desktop has for pages.
    Desktop,
}

fn browser() -> Browser {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    // Of several, apart by colons, the first is the one that is wanted.
    let named = set("BROWSER")
        .and_then(|browsers| browsers.split(':').map(str::to_owned).find(|one| !one.is_empty()));
    match named {
        Some(named) => Browser::Named(named.split_whitespace().map(str::to_owned).collect()),
        None if set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some() => Browser::Desktop,
        None => Browser::None,
    }
}

impl Browser {
    /// Starts it and does not wait. No shell reads the path.
    fn show(&self, page: &Path) -> std::io::Result<()> {
        match self {
            Browser::None => Ok(()),
            Browser::Desktop => open::that_detached(page),
            Browser::Named(words) => {
                let Some((program, arguments)) = words.split_first() else { return Ok(()) };
                let mut command = Command::new(program);
                let mut placed = false;
                for argument in arguments {
                    placed |= argument == "%s";
                    if argument == "%s" {
                        command.arg(page)
                    } else {
                        command.arg(argument)
                    };
                }
                if !placed {
                    command.arg(page);
                }
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
            }
        }
    }
}

/// This machine's name, as others may know it.
fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
