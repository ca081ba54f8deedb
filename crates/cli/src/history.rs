//! `proofload history`: a list of records, a summary of one, a comparison of two, an experiment over time.
//! `analysis` detects changes of level, and `report` does the layout.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, panic, thread};

use analysis::{
    Conclusion, Dated, ESSENTIALS_VERSION, Essentials, ExperimentTrend, Grade, TrendQuery,
    machine_mark, machines,
};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use model::Metric;
use model::quantity::many;
use record::{Record, RecordFolder};
use report::history::{ListedRecord, RecordList, Short, Trended};
use report::{Advice, ComparedRecords, Form};

use crate::exit::{CliError, SELF, USAGE, VOID};
use crate::print::{self, AmountArgs, FormArgs};
use crate::{records, tunings};

/// Default number of records in a list.
const LIMIT: usize = 40;

/// Flags of `history`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct HistoryArgs {
    #[command(subcommand)]
    what: Option<HistoryCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// List the records, newest first (the default of `history`)
    List(ListArgs),
    /// Show a summary of one record: its result, its files, and what to do with it
    Show(ShowArgs),
    /// Compare the figures of two records of one machine
    ///
    /// Prints the ratio of each variant that both have, with an interval from the differences between other
    /// runs of the same plan. The runs were not interleaved, so changes of the machine between them count
    /// too. For records of two machines no figure is shown, and the exit code is 4.
    Compare(HistoryCompareArgs),
    /// Show each comparison and each variant of an experiment over time, and where their level changes
    Trend(TrendArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only records of this experiment
    experiment: Option<String>,
    /// Only records made since this time: 30d, 12h, 2026-11-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Maximum number of records, newest first. 0 for all [default: 40, and all in other formats than text]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[arg(help = records::HELP, default_value = "latest")]
    record: PathBuf,
    #[command(flatten)]
    form: FormArgs,
}

const AFTER_HELP: &str = "\
Examples:
  proofload history                              all records, the newest first
  proofload history keep-alive --since 30d       those of one experiment of the last 30 days
  proofload history show latest~1                the one before the last, in short
  proofload history compare latest~1 latest      the figures of two records side by side
  proofload history trend keep-alive             its ratios over time, and where they change
  proofload history trend keep-alive --metric cpu_per_request --variant keep --csv

Exit codes: 0 all well; 2 no such record or experiment; 4 records of two machines were to be compared; 6 the folder of records cannot be read.";

pub fn run(args: &HistoryArgs) -> anyhow::Result<u8> {
    match &args.what {
        None => list(&args.list),
        Some(HistoryCommand::List(args)) => list(args),
        Some(HistoryCommand::Show(args)) => show(args),
        Some(HistoryCommand::Compare(args)) => compare(&args.before, &args.after, args.form.form()),
        Some(HistoryCommand::Trend(args)) => trend(args),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let since = args.since.as_deref().map(since).transpose()?;
    let history = gathered()?;
    let is_asked = |experiment: &str, created: &str| {
        args.experiment
            .as_deref()
            .is_none_or(|name| name == experiment)
            && since.as_deref().is_none_or(|since| created >= since)
    };
    let mut tunings = tunings::all();
    tunings.retain(|kept| is_asked(&kept.advice.experiment_name, &kept.advice.created));
    if let Some(experiment) = args.experiment.as_ref().filter(|_| tunings.is_empty()) {
        known(&history, experiment)?;
    }
    let all = marked(&history);
    let asked = all.iter().rev().filter(|listed| {
        let of_it = args
            .experiment
            .as_deref()
            .is_none_or(|name| is_of(listed, name));
        of_it && since.as_deref().is_none_or(|since| listed.created >= since)
    });
    let mut shown: Vec<ListedRecord<'_>> = asked.cloned().collect();
    let found = shown.len();
    let form = args.form.form();
    let is_text = *form == report::TEXT;
    let limit = args.limit.unwrap_or(if is_text { LIMIT } else { 0 });
    shown.truncate(if limit == 0 { found } else { limit });
    tunings.truncate(if limit == 0 { tunings.len() } else { limit });
    let tunings: Vec<(&str, &Advice)> = tunings
        .iter()
        .map(|kept| (kept.name.as_str(), &kept.advice))
        .collect();
    let is_empty = shown.is_empty() && tunings.is_empty();
    if is_empty {
        print::tell!("no record below {} fits", records::root().display());
    }
    if is_text && is_empty {
        return Ok(0);
    }
    print::report(
        &RecordList {
            records: &shown,
            tunings: &tunings,
            hidden: found - shown.len(),
        },
        form,
        None,
    )?;
    Ok(0)
}

/// A record that cannot be read is matched by its name.
fn is_of(listed: &ListedRecord<'_>, experiment: &str) -> bool {
    match listed.found {
        Ok(found) => found.experiment == experiment,
        Err(_) => records::is_folder_of(listed.name, experiment),
    }
}

fn show(args: &ShowArgs) -> anyhow::Result<u8> {
    if let Some(folder) = records::tuning(&args.record) {
        print::result(
            &tunings::open(&folder)?,
            args.form.form(),
            AmountArgs::default(),
        )?;
        return Ok(0);
    }
    let record = records::opened(&args.record)?;
    let short = Short {
        record: &record,
        conclusion: &analysis::conclude(&record),
        running: record.ended.is_none() && record::is_being_written(&record.directory),
        files: &files(&record.directory),
    };
    print::report(&short, args.form.form(), None)?;
    Ok(0)
}

/// All records. Problems with storing their summaries are printed.
fn gathered() -> anyhow::Result<Gathered> {
    let root = records::root();
    let gathered = gather(root).map_err(|error| {
        let (code, what) = match error.kind() {
            io::ErrorKind::NotFound => (USAGE, "there are no records yet"),
            _ => (SELF, "the folder of records cannot be read"),
        };
        CliError::new(code, format!("{}: {what}: {error}", root.display()))
            .hint("`proofload run` makes it; --records DIR or PROOFLOAD_RECORDS name another")
    })?;
    if let Some(why) = &gathered.unkept {
        print::tell!(
            "note: {why}: the summary cannot be kept; such records are read each time, which takes longer"
        );
    }
    Ok(gathered)
}

/// Records with the letters of their machines, assigned from the oldest record on, so that letters do not
/// change when records are added.
fn marked(history: &Gathered) -> Vec<ListedRecord<'_>> {
    let readable = history
        .entries
        .iter()
        .filter_map(|entry| entry.found.as_deref().ok());
    let mut numbers = machines(readable.map(|found| &found.environment)).into_iter();
    let mark = |entry: &HistoryEntry| {
        entry
            .found
            .as_ref()
            .ok()
            .and_then(|_| numbers.next())
            .map(machine_mark)
    };
    let marks: Vec<Option<String>> = history.entries.iter().map(mark).collect();
    history
        .entries
        .iter()
        .zip(marks)
        .map(|(entry, mark)| listed_of(entry, mark))
        .collect()
}

fn listed_of(entry: &HistoryEntry, machine: Option<String>) -> ListedRecord<'_> {
    let found = entry.found.as_deref().map_err(String::as_str);
    ListedRecord {
        name: &entry.name,
        created: &entry.created,
        found,
        running: entry.running,
        machine,
    }
}

/// Rejects an experiment without records.
fn known(history: &Gathered, experiment: &str) -> Result<(), CliError> {
    let names = history
        .entries
        .iter()
        .filter_map(|entry| entry.found.as_deref().ok());
    let names = distinct(names.map(|found| found.experiment.as_str()));
    let unreadable =
        |entry: &HistoryEntry| entry.found.is_err() && is_of(&listed_of(entry, None), experiment);
    if names.contains(&experiment) || history.entries.iter().any(unreadable) {
        return Ok(());
    }
    let (place, others) = (records::root().display(), many(names.len() as u64, "other"));
    let message =
        format!("no record below {place} is of an experiment `{experiment}`, but of {others}");
    let hint = match records::alike(experiment, names.iter().copied()).as_slice() {
        [] => "`proofload history` lists all records".to_owned(),
        near => format!("the nearest names are {}", near.join(", ")),
    };
    Err(CliError::usage(message).hint(hint))
}

/// Sorted names without duplicates.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Files in a record's folder with their sizes, by name. Folders have a slash after the name and the total
/// size. Links are not followed, because they lead out of the folder.
fn files(directory: &Path) -> Vec<(String, u64)> {
    let one = |entry: fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let stroke = if is_folder { "/" } else { "" };
        (
            entry.file_name().to_string_lossy().into_owned() + stroke,
            services::bytes_below(&entry.path()),
        )
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    BTreeSet::from_iter(entries.map(one)).into_iter().collect()
}

/// The time in the format of records, RFC 3339 in UTC, so that texts compare like times.
fn since(text: &str) -> Result<String, CliError> {
    at(text, Timestamp::now())
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .ok_or_else(|| {
            CliError::usage(format!(
                "--since: `{text}` is neither a length of time nor a date"
            ))
            .hint("such as 30d, 2w, 12h, 2026-11-01 or 2026-11-01T12:00:00Z; dates are UTC")
        })
}

fn at(text: &str, now: Timestamp) -> Option<Timestamp> {
    let ago = |span: Span| {
        now.to_zoned(TimeZone::UTC)
            .checked_sub(span)
            .map(|then| then.timestamp())
    };
    let length = text.parse::<Span>().ok().filter(|span| !span.is_negative());
    // Earlier than the calendar permits: all records.
    let length = length.map(|span| ago(span).unwrap_or(Timestamp::UNIX_EPOCH));
    // The date parser would accept a time without a zone, and ignore it.
    let is_date = text.chars().all(|c| c.is_ascii_digit() || c == '-');
    let date = || {
        Some(
            text.parse::<Date>()
                .ok()
                .filter(|_| is_date)?
                .to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp(),
        )
    };
    length.or_else(|| text.parse().ok()).or_else(date)
}

/// Flags of `history compare`.
#[derive(Debug, Args)]
struct HistoryCompareArgs {
    /// The earlier record: its folder, `latest~1` for the one before the newest, its name, or an experiment's
    /// name for its newest
    before: PathBuf,
    /// The later record, likewise
    #[arg(default_value = "latest")]
    after: PathBuf,
    #[command(flatten)]
    form: FormArgs,
}

pub fn compare(before: &Path, after: &Path, form: &Form) -> anyhow::Result<u8> {
    let (before, after) = (records::opened(before)?, records::opened(after)?);
    if fs::canonicalize(&before.directory).ok() == fs::canonicalize(&after.directory).ok() {
        let problem = format!("{}: both are this record", before.directory.display());
        return Err(CliError::usage(problem)
            .hint("`latest~1` is the one before the newest")
            .into());
    }
    // Without a folder of records, the variation between runs is unknown.
    let history = gathered().ok();
    let known = history
        .iter()
        .flat_map(|history| &history.entries)
        .filter_map(|entry| entry.found.as_deref().ok());
    let across = analysis::across(&before, &after, known);
    let compared = ComparedRecords {
        before: &before,
        after: &after,
        across: &across,
    };
    print::report(&compared, form, None)?;
    let invalid = across
        .findings
        .iter()
        .any(|finding| finding.grade == Grade::Invalid);
    Ok(if invalid { VOID } else { 0 })
}

/// Flags of `history trend`.
#[derive(Debug, Args)]
struct TrendArgs {
    /// Name of the experiment
    experiment: String,
    /// throughput, cpu_per_request, peak_memory, capacity, p50, p90, p99 or p99.9 [default: the metric of the
    /// newest record's verdict]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    metric: Option<Metric>,
    /// Only this variant, and its comparisons
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// The machine, by its letter in `proofload history` [default: the machine of the newest record]
    #[arg(long, value_name = "LETTER")]
    machine: Option<String>,
    /// Maximum number of records that are listed, newest first. 0 for all
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    #[command(flatten)]
    form: FormArgs,
    /// The same as --format csv: one row for each point
    #[arg(long, conflicts_with_all = ["json", "format"])]
    csv: bool,
}

fn trend(args: &TrendArgs) -> anyhow::Result<u8> {
    let history = gathered()?;
    known(&history, &args.experiment)?;
    let all = marked(&history);
    let readable = all
        .iter()
        .filter_map(|listed| Some((listed, listed.found.ok()?)));
    let of_it: Vec<(&ListedRecord<'_>, &Essentials)> = readable
        .filter(|(_, found)| found.experiment == args.experiment)
        .collect();
    let newest = of_it.last().and_then(|(listed, _)| listed.machine.clone());
    let machine = args.machine.clone().or(newest).unwrap_or_default();
    let on = |listed: &ListedRecord<'_>| {
        listed
            .machine
            .as_deref()
            .is_some_and(|mark| mark.eq_ignore_ascii_case(&machine))
    };
    let joined: Vec<_> = of_it.iter().filter(|(listed, _)| on(listed)).collect();
    let Some((last, newest)) = joined.last() else {
        let marks = of_it
            .iter()
            .filter_map(|(listed, _)| listed.machine.as_deref());
        return Err(no_machine(&machine, &distinct(marks)).into());
    };
    let dated = joined.iter().map(|(listed, essentials)| Dated {
        name: listed.name,
        essentials,
    });
    let dated: Vec<Dated<'_>> = dated.collect();
    let asked = TrendQuery {
        metric: args.metric,
        variant: args.variant.as_deref(),
    };
    let trend = analysis::trend(&dated, asked);
    missing(&dated, asked, &trend)?;
    let trended = Trended {
        experiment: &args.experiment,
        trend: &trend,
        machine: (
            last.machine.as_deref().unwrap_or_default(),
            &newest.environment,
        ),
        elsewhere: of_it.len() - joined.len(),
        rows: if args.limit == 0 {
            usize::MAX
        } else {
            args.limit
        },
    };
    print::report(
        &trended,
        if args.csv {
            &report::CSV
        } else {
            args.form.form()
        },
        None,
    )?;
    Ok(0)
}

fn metric(text: &str) -> Result<Metric, String> {
    let names = || {
        Metric::ALL
            .iter()
            .map(|metric| metric.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    Metric::named(text).ok_or_else(|| format!("the metrics are {}", names()))
}

fn no_machine(asked: &str, marks: &[&str]) -> CliError {
    if marks.is_empty() {
        let hint = "`proofload history` tells what is wrong with each";
        return CliError::usage("none of its records can be read").hint(hint);
    }
    CliError::usage(format!(
        "--machine: none of its records was made on `{asked}`"
    ))
    .hint(format!(
        "they were made on {}; `proofload history` tells what these are",
        marks.join(", ")
    ))
}

/// Reports an empty trend if no record has the requested metric or variant, with the available ones. Void and
/// unfinished records are reported in the output.
fn missing(
    dated: &[Dated<'_>],
    asked: TrendQuery<'_>,
    trend: &ExperimentTrend,
) -> Result<(), CliError> {
    let figures = || dated.iter().flat_map(|dated| &dated.essentials.figures);
    let compared = || dated.iter().flat_map(|dated| &dated.essentials.compared);
    let variants = figures().map(|figure| figure.variant.as_str());
    let variants: Vec<&str> =
        distinct(variants.chain(compared().flat_map(|one| one.of.iter().map(String::as_str))));
    if let Some(variant) = asked.variant.filter(|variant| !variants.contains(variant)) {
        return Err(CliError::usage(format!(
            "--variant: none of its records has a variant `{variant}`"
        ))
        .hint(plan::did_you_mean(variant, "variants", variants)));
    }
    let (there, metric) = (
        distinct(figures().map(|figure| figure.metric.name())),
        trend.metric.name(),
    );
    if trend.lines.is_empty() && !there.is_empty() && !there.contains(&metric) {
        return Err(CliError::usage(format!(
            "--metric: none of its records has figures of {metric}"
        ))
        .hint(format!("there is {}", there.join(", "))));
    }
    Ok(())
}

// All records below a folder with their essentials: from their summaries, or read again if a summary is
// missing or outdated.

/// After this time the progress of reading is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// All records below a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    /// Each record, the oldest first.
    pub entries: Vec<HistoryEntry>,
    /// Number of records that were read because they were new or changed.
    pub read: usize,
    /// Why some of these will be read again, if they will.
    pub unkept: Option<String>,
}

/// A record, or a folder that looks like one.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// Name of its folder.
    pub name: String,
    /// When it was made, RFC 3339 in UTC. If it cannot be read, when its header was last changed.
    pub created: String,
    /// Its essentials, or the error.
    pub found: EssentialsResult,
    /// Whether a run is writing it at the moment.
    pub running: bool,
}

impl HistoryEntry {
    /// Its position in time, also if a clock was set back. `latest` uses the same order.
    fn order(&self) -> (String, u32) {
        let told = self
            .found
            .as_ref()
            .ok()
            .and_then(|found| found.order.clone());
        told.unwrap_or_else(|| (self.created.clone(), 0))
    }
}

/// Essentials, or why there are none.
type EssentialsResult = Result<Box<Essentials>, String>;

/// Collects all records. Summaries are only used if they match the current files.
pub fn gather(root: &Path) -> io::Result<Gathered> {
    let summarised = |folder: RecordFolder| {
        let found: Option<EssentialsResult> = folder.summary(&made_by());
        (folder, found)
    };
    let summaries = on_all_processors(RecordFolder::all(root)?, &summarised, &mut |_| ());
    let (known, stale): (Vec<_>, Vec<_>) = summaries
        .into_iter()
        .partition(|(_, found)| found.is_some());
    let stale: Vec<RecordFolder> = stale.into_iter().map(|(folder, _)| folder).collect();
    let mut waiting = waiting(stale.len());
    let new = on_all_processors(stale, &read_and_kept, &mut waiting);
    let (read, mut unkept) = (new.len(), None);
    let known = known
        .into_iter()
        .filter_map(|(folder, found)| Some(entry(folder, found?)));
    let mut entries: Vec<HistoryEntry> = known.collect();
    for (folder, found, kept) in new {
        if let Err(error) = kept {
            unkept = unkept.or_else(|| Some(format!("{}: {error}", folder.directory.display())));
        }
        entries.push(entry(folder, found));
    }
    entries.sort_by_cached_key(|entry| (entry.order(), entry.name.clone()));
    Ok(Gathered {
        entries,
        read,
        unkept,
    })
}

/// Writes the summary of a run that has ended. Otherwise the first list creates it.
pub fn keep(record: &Record, conclusion: &Conclusion) {
    let Some(folder) = RecordFolder::at(record.directory.clone()) else {
        return;
    };
    let found: EssentialsResult = Ok(Box::new(Essentials::of(record, conclusion)));
    let _ = folder.keep_summary(&made_by(), &found);
}

/// Another version of Proofload may conclude differently.
fn made_by() -> String {
    format!(
        "{} essentials {ESSENTIALS_VERSION}",
        env!("CARGO_PKG_VERSION")
    )
}

fn entry(folder: RecordFolder, found: EssentialsResult) -> HistoryEntry {
    let created = found.as_ref().map(|essentials| essentials.created.clone());
    let unfinished = found
        .as_ref()
        .is_ok_and(|essentials| essentials.ended.is_none());
    HistoryEntry {
        running: unfinished && record::is_being_written(&folder.directory),
        created: created.unwrap_or_else(|_| folder.changed_utc()),
        name: folder.name,
        found,
    }
}

/// Reads a record and stores its summary. Nothing is written to a folder that does not open, because it may
/// not be a record.
fn read_and_kept(folder: RecordFolder) -> (RecordFolder, EssentialsResult, io::Result<()>) {
    match record::open(&folder.directory) {
        Err(error) => (folder, Err(error.to_string()), Ok(())),
        Ok(record) => {
            let found = concluded(&record);
            let kept = folder.keep_summary(&made_by(), &found);
            (folder, found, kept)
        }
    }
}

/// A record that was edited by hand may be inconsistent in unforeseen ways, and must not prevent the others
/// from being listed.
fn concluded(record: &Record) -> EssentialsResult {
    let essentials = || Box::new(Essentials::of(record, &analysis::conclude(record)));
    panic::catch_unwind(panic::AssertUnwindSafe(essentials)).map_err(|_| {
        let path = record.directory.display();
        format!("{path}: its parts contradict each other, and nothing could be concluded")
    })
}

/// Runs `work` for each item on all processors, in any order. `seen` receives the number of finished items.
fn on_all_processors<T: Send, R: Send>(
    all: Vec<T>,
    work: &(impl Fn(T) -> R + Sync),
    seen: &mut (dyn FnMut(usize) + Send),
) -> Vec<R> {
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(all.len());
    let (queue, done) = (Mutex::new(all.into_iter()), Mutex::new((Vec::new(), seen)));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_on = || {
        while let Some(one) = next() {
            let made = work(one);
            let (all, seen) = &mut *done.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(made);
            seen(all.len());
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work_on))));
    done.into_inner().unwrap_or_else(PoisonError::into_inner).0
}

/// Shows the number of records read, if it takes long enough.
fn waiting(of: usize) -> impl FnMut(usize) {
    let (begun, mut told, mut bar) = (Instant::now(), false, ProgressBar::hidden());
    move |done| {
        if !told && begun.elapsed() >= PATIENCE && done < of {
            told = true;
            if io::stderr().is_terminal() {
                let style = ProgressStyle::with_template("reading records {pos} of {len} {bar:30}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                bar = ProgressBar::new(of as u64).with_style(style);
            } else {
                print::tell!("reading records: {done} of {of} so far");
            }
        }
        bar.set_position(done as u64);
        if done == of {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests;
