//! `proofload report`: the report of a record, printed or opened in a browser, and the output of other load
//! generators, which `foreign` judges.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ::explain::Explanation;
use analysis::Conclusion;
use clap::Args;
use foreign::{Audit, Reader, Tool, ToolRun, Transcript};
use machine::Facts;
use model::quantity::many;
use record::{MachineFingerprint, Record};
use report::plot::Ground;
use report::{Audited, Form, FormOptions, MeasuredRecord, REPORT_PAGE};

use crate::exit::{self, CliError};
use crate::print::{self, AmountArgs, FormArgs};
use crate::{explanation, records, tunings};

mod browser;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// Hint for two records, or labels of one.
const TWO: &str = "two records are compared by `proofload history compare OLD NEW`";

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    /// A record, or files with the output of other load generators. `-` is stdin
    ///
    /// A record is its folder, `latest`, `latest~1` for the one before, its name, or an experiment's name for
    /// its newest. A tuning is named likewise.
    #[arg(value_name = "RECORD|FILE", default_value = "latest")]
    what: Vec<PathBuf>,
    #[command(flatten)]
    form: FormArgs,
    /// The same as --format html: one self-contained page for a browser
    #[arg(long, conflicts_with_all = ["json", "format"])]
    html: bool,
    /// Open the record's page in a browser, or print its path without a desktop
    #[arg(long, conflicts_with_all = ["json", "format", "html", "out", "dark"])]
    open: bool,
    /// With files: explain each finding, and list all of its cases
    #[arg(short, long, conflicts_with = "open")]
    verbose: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With svg: for a dark page
    #[arg(long)]
    dark: bool,
    /// With files: compare two labels, each given by name, by a unique part of it, or by number
    #[arg(long, num_args = 2, value_names = ["BASELINE", "CANDIDATE"], conflicts_with = "open")]
    compare: Option<Vec<String>>,
}

const AFTER_HELP: &str = "\
For people:
  proofload report                                         the whole report of the newest record
  proofload report --open                                  its page, in a browser

For a pull request:
  proofload report latest --format md                      a comment that GitHub takes
  proofload report latest --format svg --out verdict.svg   the verdict plot

For other programs:
  proofload report latest --json                           what is concluded
  proofload report latest --format csv --out blocks.csv    every block's figures

Output of wrk, wrk2, ab, oha, autocannon, hey, h2load, k6, vegeta, bombardier, siege and rewrk, alone or within notes:
  proofload report notes.md                                what may be concluded of it

Fields: docs/formats.md; `proofload schema --of report` describes the JSON. Exit code: 0, or 4 where the measurement, or a conclusion from files, is invalid.";

pub fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let form = if args.html {
        &report::HTML
    } else {
        args.form.form()
    };
    if args.dark && *form != report::SVG {
        let message = "--dark: only the plot has a ground";
        return Err(CliError::usage(message).hint("add --format svg").into());
    }
    if let Some(out) = &args.out {
        print::check_writable(out)?;
    }
    if args.what.iter().all(|path| is_foreign(path)) && !args.open {
        return audit(args, form);
    }
    let [what] = args.what.as_slice() else {
        let message = format!(
            "{} records are named, and a report is of one",
            args.what.len()
        );
        return Err(CliError::usage(message).hint(TWO).into());
    };
    if args.compare.is_some() {
        let message = "--compare is about files of other tools, and this is a record";
        return Err(CliError::usage(message).hint(TWO).into());
    }
    let tuning = records::tuning(what);
    if args.open {
        return match tuning {
            Some(folder) => browser::open_tuning(&folder),
            None => browser::open(&records::opened(what)?),
        };
    }
    let out = args.out.as_deref();
    let ground = if args.dark {
        Ground::Dark
    } else {
        Ground::Light
    };
    let look = FormOptions {
        width: print::width_of(out),
        ground,
    };
    if let Some(folder) = tuning {
        return tunings::print(&folder, form, out, look);
    }
    let (record, here) = (records::opened(what)?, here());
    drawn_from(&record, |of| {
        let measured = MeasuredRecord {
            here: Some(&here),
            ..measured(of, out)
        };
        print::put(out, &print::drawn(&measured, form, look)?)?;
        Ok(exit::of_record(&record, of.1))
    })
}

/// Prints the report of a record that was measured on this machine and returns its exit code.
pub fn print(record: &Record, form: &Form, amount: AmountArgs) -> anyhow::Result<u8> {
    drawn_from(record, |of| {
        print::result(&measured(of, None), form, amount)?;
        Ok(exit::of_record(record, of.1))
    })
}

/// A record with all inputs of a report.
pub type DrawnRecord<'a> = (&'a Record, &'a Conclusion, Option<&'a Explanation>);

/// Calls `draw` with a record, its conclusion, and its explanation.
pub fn drawn_from<T>(record: &Record, draw: impl FnOnce(DrawnRecord<'_>) -> T) -> T {
    draw((
        record,
        &analysis::conclude(record),
        explanation::kept(&record.directory).as_ref(),
    ))
}

/// The report of a record, for a file or stdout. A page links to the flame graphs if they are beside it. It
/// does not link to a page of another program.
pub fn measured<'a>(
    (record, conclusion, explanation): DrawnRecord<'a>,
    path: Option<&Path>,
) -> MeasuredRecord<'a> {
    let beside = path.is_some_and(|path| is_in(path, &record.directory));
    MeasuredRecord {
        has_page: record.directory.join(REPORT_PAGE).is_file(),
        has_flames: beside
            && explanation.is_some_and(|explanation| explanation::has_flames(record, explanation)),
        is_latest: records::is_latest(&record.directory),
        ..MeasuredRecord::new(record, conclusion, explanation)
    }
}

/// Writes the report in one form to a file, without colours.
pub fn write(of: DrawnRecord<'_>, form: &Form, path: &Path) -> anyhow::Result<()> {
    print::write(&measured(of, Some(path)), form, path)
}

fn is_in(path: &Path, directory: &Path) -> bool {
    fs::canonicalize(records::folder_of(path))
        .is_ok_and(|folder| fs::canonicalize(directory).is_ok_and(|of| of == folder))
}

/// Properties that identify this machine. The number of processors is left out, because it depends on the
/// caller's limits.
fn here() -> MachineFingerprint {
    let facts = Facts::look();
    MachineFingerprint {
        kernel: facts.host.kernel,
        cpu_model: facts.processors.model,
        memory_bytes: facts.memory.total_bytes,
        ..MachineFingerprint::default()
    }
}

/// Whether a file is the output of another tool: neither the folder of a record or tuning nor a file in one.
fn is_foreign(path: &Path) -> bool {
    path == Path::new("-")
        || path.exists()
            && !path.is_dir()
            && !["record.json", records::ADVICE]
                .iter()
                .any(|file| path.with_file_name(file).is_file())
}

/// Reads files of other tools, and prints the audit of all, or a comparison of two labels.
fn audit(args: &ReportArgs, form: &Form) -> anyhow::Result<u8> {
    let files = args
        .what
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    if files.iter().all(|(_, runs)| runs.is_empty()) {
        return Err(unknown(&files).into());
    }
    for (file, _) in files.iter().filter(|(_, runs)| runs.is_empty()) {
        print::tell!("{}: nothing that a known load generator prints", file.file);
    }
    let audit = Audit::of(files.into_iter().map(without_secrets).collect());
    let comparison = match args.compare.as_deref() {
        Some([baseline, candidate]) => {
            foreign::compare(&audit, pick(&audit, baseline)?, pick(&audit, candidate)?)
        }
        _ => None,
    };
    let void = comparison
        .as_ref()
        .map_or_else(|| audit.is_void(), |comparison| comparison.answer.is_void());
    let audited = Audited {
        audit: &audit,
        comparison,
    };
    if *form == report::TEXT && args.out.is_none() && !args.verbose {
        print::brief(&audited)?;
    } else {
        print::report(&audited, form, args.out.as_deref())?;
    }
    Ok(if void { exit::VOID } else { 0 })
}

/// Masks apparent secrets in the names of runs, before labels are made of these and truncated.
fn without_secrets((file, runs): (Transcript, Vec<ToolRun>)) -> (Transcript, Vec<ToolRun>) {
    let masked = |mut run: ToolRun| {
        let texts = run
            .url
            .iter_mut()
            .chain(&mut run.command)
            .chain(&mut run.headings)
            .chain(run.unread.iter_mut().map(|unread| &mut unread.text));
        texts.for_each(|text| *text = plan::masked(None, text));
        run
    };
    (file, runs.into_iter().map(masked).collect())
}

fn read(path: &Path) -> Result<(Transcript, Vec<ToolRun>), CliError> {
    let name = path.display().to_string();
    let failed = |error: io::Error| CliError::usage(format!("{name}: {error}"));
    let mut source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    let mut reader = Reader::new(&name);
    let mut piece = vec![0; PIECE];
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(reader.finish()),
            Ok(read) => reader.feed(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn unknown(files: &[(Transcript, Vec<ToolRun>)]) -> CliError {
    let said = files.iter().map(|(of, _)| {
        let (file, lines) = (&of.file, of.lines);
        match (of.bytes, of.binary) {
            (0, _) => format!("{file}: empty"),
            _ if !of.unread.is_empty() => format!("{file}: {}", of.not_read()),
            (bytes, true) => format!("{file}: {}, and not text", many(bytes, "byte")),
            _ => format!(
                "{file}: {}, none of a load generator that is known",
                many(lines, "line")
            ),
        }
    });
    let known: Vec<&str> = Tool::all().map(Tool::name).collect();
    CliError::usage(said.collect::<Vec<_>>().join("\n"))
        .hint(format!("known are {}", known.join(", ")))
}

fn pick(audit: &Audit, name: &str) -> Result<usize, CliError> {
    let meant = foreign::pick(&audit.groups, name);
    let (places, what, hint) = match meant.as_slice() {
        [at] => return Ok(*at),
        [] => (
            (0..audit.groups.len()).collect(),
            format!("no label is called `{name}`"),
            "there are",
        ),
        _ => (
            meant,
            format!("`{name}` is in several labels"),
            "name one of",
        ),
    };
    let named = places
        .iter()
        .take(20)
        .map(|at| format!("#{} {}", at + 1, audit.groups[*at].label));
    let named: Vec<String> = named.collect();
    Err(CliError::usage(format!("--compare: {what}")).hint(format!("{hint} {}", named.join("; "))))
}
