//! `proofload report`: the report of a record, from the record alone.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::explain::Explanation;
use analysis::Conclusion;
use clap::Args;
use machine::Facts;
use record::{Environment, Record};
use report::plot::Ground;
use report::{Form, Look, Measured, REPORT_PAGE};

use crate::exit::{self, Failed};
use crate::print::{self, AmountArgs, FormArgs};
use crate::{audit, explanation, open, records};

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    /// A record, or files with what other load generators printed; `-` is what is piped in
    ///
    /// A record is its folder, `latest`, `latest~1` for the one before, its name, or an experiment's name for its newest.
    #[arg(value_name = "RECORD|FILE", default_value = "latest")]
    what: Vec<PathBuf>,
    #[command(flatten)]
    form: FormArgs,
    /// The same as --format html: one page that needs nothing but itself, for a browser
    #[arg(long, conflicts_with_all = ["json", "format"])]
    html: bool,
    /// Open the record's page in a browser, or tell where it is where there is no desktop
    #[arg(long, conflicts_with_all = ["json", "format", "html", "out"])]
    open: bool,
    /// With --open: only print where the page is
    #[arg(long, requires = "open", hide = true)]
    print: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of svg and png: for a dark page
    #[arg(long)]
    dark: bool,
    /// Of files: set two labels against each other, by name, by a part of it that no other has, or by number
    #[arg(long, num_args = 2, value_names = ["BASELINE", "CANDIDATE"], conflicts_with = "open")]
    compare: Option<Vec<String>>,
}

const AFTER_HELP: &str = "\
For people:
  proofload report                                         the whole report of the newest record
  proofload report --open                                  its page, in a browser

For a pull request:
  proofload report latest --format md                      as text of a comment: never more than GitHub takes
  proofload report latest --format png --out verdict.png   the intervals against the margin, for pasting

For other programs:
  proofload report latest --json                           what is concluded; `proofload schema --of report` describes it
  proofload report latest --format csv --out blocks.csv    every block's figures, for a spreadsheet or a notebook

Of other tools (wrk, wrk2, ab, oha, autocannon, hey, h2load, k6, vegeta), as it is or pasted into notes:
  proofload report notes.md                                what they printed, and what may be concluded of it

What the fields are is in docs/formats.md. The exit code is that of the run: 0, or 4 where the measurement is invalid;
of files 4 where a finding makes a conclusion invalid.";

/// Opens the record and prints it.
///
/// # Errors
/// If there is no such record, or the report cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let form = if args.html { &report::HTML } else { args.form.form() };
    if args.what.iter().all(|path| audit::is_foreign(path)) && !args.open {
        return audit::run(&args.what, args.compare.as_deref(), form, args.out.as_deref());
    }
    let [what] = args.what.as_slice() else {
        let message = format!("{} records are named, and a report is of one", args.what.len());
        return Err(Failed::usage(message)
            .hint("two are compared by `proofload history compare OLD NEW`")
            .into());
    };
    if args.compare.is_some() {
        return Err(Failed::usage("--compare is about files of other tools, and this is a record")
            .hint("two records are compared by `proofload history compare OLD NEW`")
            .into());
    }
    if args.open {
        return open::run(what, args.print);
    }
    if args.dark && !form.has_ground {
        let message = "--dark: only the plot has a ground";
        return Err(Failed::usage(message).hint("add --format svg or --format png").into());
    }
    if form.is_binary && args.out.is_none() && io::stdout().is_terminal() {
        let failed = Failed::usage(format!("--format {}: a picture is no text for a terminal", form.name));
        return Err(failed.hint("name a file with --out, or send it on with `|` or `>`").into());
    }
    let record = records::opened(what)?;
    let conclusion = analysis::conclude(&record);
    let explanation = explanation::kept(&record.directory);
    let out = args.out.as_deref();
    let here = here();
    let measured =
        Measured { here: Some(&here), ..measured((&record, &conclusion, explanation.as_ref()), out) };
    let look =
        Look { width: print::width_of(out), ground: if args.dark { Ground::Dark } else { Ground::Light } };
    print::put(out, &print::drawn(&measured, form, look)?)?;
    Ok(exit::of_record(&record, &conclusion))
}

/// Prints the report of a record that was measured here and gives its exit code.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(record: &Record, form: &Form, amount: AmountArgs) -> anyhow::Result<ExitCode> {
    let conclusion = analysis::conclude(record);
    let explanation = explanation::kept(&record.directory);
    print::result(&measured((record, &conclusion, explanation.as_ref()), None), form, amount)?;
    Ok(exit::of_record(record, &conclusion))
}

/// A record with all that a report is drawn from.
pub type Drawn<'a> = (&'a Record, &'a Conclusion, Option<&'a Explanation>);

/// What is reported of a record, in a file or on stdout: a page links to the flame graphs where they lie beside it.
pub fn measured<'a>((record, conclusion, explanation): Drawn<'a>, path: Option<&Path>) -> Measured<'a> {
    let beside = path.is_some_and(|path| is_in(path, &record.directory));
    Measured {
        // Older records have none.
        has_page: record.directory.join(REPORT_PAGE).is_file(),
        has_flames: beside && record.directory.join(explanation::FLAME).is_file(),
        is_latest: records::is_latest(&record.directory),
        ..Measured::new(record, conclusion, explanation)
    }
}

/// Writes the report in one form to a file, without colours.
///
/// # Errors
/// If the system refuses.
pub fn write(of: Drawn<'_>, form: &Form, path: &Path) -> anyhow::Result<()> {
    print::write(&measured(of, Some(path)), form, path)
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
