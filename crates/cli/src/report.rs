//! `proofload report`: the report of a record, from the record alone.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::explain::Explanation;
use analysis::Conclusion;
use anyhow::Context;
use clap::{Args, ValueEnum};
use machine::Facts;
use record::{Environment, Record};
use report::plot::{self, Ground};
use report::{REPORT_PAGE, Sheet};

use crate::exit::{self, Failed};
use crate::{explain, print, records};

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    #[arg(help = records::HELP)]
    record: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The same as --format html: one page that needs nothing but itself, for a browser
    #[arg(long, conflicts_with_all = ["json", "format"])]
    html: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of svg and png: for a dark page
    #[arg(long)]
    dark: bool,
}

const AFTER_HELP: &str = "\
For a pull request:
  proofload report latest --format md                      as text of a comment: never more than GitHub takes
  proofload report latest --format png --out verdict.png   the intervals against the margin, for pasting

For other programs:
  proofload report latest --json                           what is concluded; `proofload schema --of report` describes it
  proofload report latest --format csv --out blocks.csv    every block's figures, for a spreadsheet or a notebook

What the fields are is in docs/formats.md. The exit code is that of the run: 0, or 4 where the measurement is void.";

/// A report's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Text,
    /// For a pull request
    #[value(name = "md", alias = "markdown")]
    Markdown,
    /// For other programs
    Json,
    /// For a browser: one page that needs nothing but itself
    Html,
    /// Figures of every block, for spreadsheets
    Csv,
    /// The verdict plot, for pages
    Svg,
    /// The verdict plot, for pasting
    Png,
}

/// Opens the record and prints it.
///
/// # Errors
/// If there is no such record, or the report cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let format = match (args.json, args.html) {
        (true, _) => Format::Json,
        (_, true) => Format::Html,
        _ => args.format,
    };
    if args.dark && !matches!(format, Format::Svg | Format::Png) {
        let message = "--dark: only the plot has a ground";
        return Err(Failed::usage(message).hint("add --format svg or --format png").into());
    }
    if format == Format::Png && args.out.is_none() && io::stdout().is_terminal() {
        let message = "--format png: a picture is no text for a terminal";
        return Err(Failed::usage(message)
            .hint("name a file with --out, or send it on with `|` or `>`")
            .into());
    }
    let record = records::opened(&args.record)?;
    let conclusion = analysis::conclude(&record);
    let explanation = explain::kept(&record.directory);
    let out = args.out.as_deref();
    let look = Look {
        width: if out.is_some() { print::WIDTH } else { print::width() },
        ground: if args.dark { Ground::Dark } else { Ground::Light },
        here: Some(here()),
        path: args.out.clone(),
    };
    print::put(out, &drawn((&record, &conclusion, explanation.as_ref()), format, &look)?)?;
    Ok(exit::of_record(&record, &conclusion))
}

/// Prints a record in one form and gives its exit code.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(record: &Record, format: Format) -> anyhow::Result<ExitCode> {
    let conclusion = analysis::conclude(record);
    let explanation = explain::kept(&record.directory);
    let look = Look { width: print::width(), ..Look::default() };
    print::put(None, &drawn((record, &conclusion, explanation.as_ref()), format, &look)?)?;
    Ok(exit::of_record(record, &conclusion))
}

/// How a report is to look.
#[derive(Debug)]
pub struct Look {
    /// Columns of text.
    pub width: usize,
    /// What the plot stands on.
    pub ground: Ground,
    /// The machine that it is read on; `None` where that is the one that it was measured on.
    pub here: Option<Environment>,
    /// The file that it becomes; `None` for stdout. A page links to the flame graphs where they lie beside it.
    pub path: Option<PathBuf>,
}

impl Default for Look {
    fn default() -> Look {
        Look { width: print::WIDTH, ground: Ground::Light, here: None, path: None }
    }
}

/// A record with all that a report is drawn from.
pub type Drawn<'a> = (&'a Record, &'a Conclusion, Option<&'a Explanation>);

/// Writes the report in one form to a file, without colours.
///
/// # Errors
/// If the system refuses.
pub fn write(of: Drawn<'_>, format: Format, path: &Path) -> anyhow::Result<()> {
    let look = Look { path: Some(path.to_owned()), ..Look::default() };
    Ok(fs::write(path, print::plain(&drawn(of, format, &look)?))?)
}

/// The report in one form, with what its captures explain. Text has its colours.
///
/// # Errors
/// If there is no memory for a picture.
pub fn drawn(of: Drawn<'_>, format: Format, look: &Look) -> anyhow::Result<Vec<u8>> {
    let (record, conclusion, explanation) = of;
    Ok(match format {
        Format::Text => report::text(&sheet(of, look), look.width).into_bytes(),
        Format::Markdown => report::markdown(&sheet(of, look)).into_bytes(),
        Format::Json => format!("{:#}\n", report::json(record, conclusion, explanation)).into_bytes(),
        Format::Html => page(of, look.path.as_deref()).into_bytes(),
        Format::Csv => report::csv(record).into_bytes(),
        Format::Svg => plot::svg(record, conclusion, look.ground).into_bytes(),
        Format::Png => {
            plot::png(record, conclusion, look.ground).context("--format png: no memory for the picture")?
        }
    })
}

fn sheet((record, conclusion, explanation): Drawn<'_>, look: &Look) -> Sheet {
    let mut sheet = Sheet::new(record, conclusion);
    if let Some(here) = &look.here {
        sheet = sheet.read_on(record, here);
    }
    if let Some(explanation) = explanation {
        sheet = sheet.explained(record, explanation);
    }
    // Older records have none.
    if record.directory.join(REPORT_PAGE).is_file() { sheet.with_page(record) } else { sheet }
}

/// The page as it will lie at a path, or wherever stdout leads.
fn page((record, conclusion, explanation): Drawn<'_>, path: Option<&Path>) -> String {
    let mut data = report::page_data(record, conclusion, explanation);
    let beside = path.is_some_and(|path| is_in(path, &record.directory));
    let linked = beside && record.directory.join(explain::FLAME).is_file();
    if let Some(why) = data.why.as_mut().filter(|_| !linked) {
        why.flame_page = None;
    }
    report::page::page_of(&data)
}

fn is_in(path: &Path, directory: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let same = fs::canonicalize(folder).and_then(|folder| Ok(folder == fs::canonicalize(directory)?));
    same.unwrap_or(false)
}

/// What tells this machine from others. Processors are left out: how many there are depends on who asks.
fn here() -> Environment {
    let facts = Facts::look();
    Environment {
        kernel: facts.host.kernel,
        cpu_model: facts.processors.model,
        memory_bytes: facts.memory.total_bytes,
        ..Environment::default()
    }
}
