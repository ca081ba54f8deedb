//! `proofload profile`: CPU time of a record, of an experiment or a command that it starts, of a profile's
//! file, and the difference of two files. This file contains the flags and their meaning. Reading, starting
//! and drawing follow below.

use std::env;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use ::explain::{Explanation, Naming, Tree, TreeUnit, flame};
use clap::{Args, Subcommand};
use model::quantity::micros;
use plan::{DraftSource, DraftVariant, ExperimentDraft, FlagSetting, Overrides, Plan, SERVICE};
use record::{EndReason, Repeat};

use self::form::{ProfileForm, ProfileFormArgs, exported};
use crate::execution::{self, LabJob};
use crate::exit::{self, CliError, SELF};
use crate::experiment::{self, Experiment};
use crate::explanation::{Files, PROFILE_BYTES_MAX};
use crate::flags::{SeedFlag, seed_setting, setting};
use crate::{explanation, failure, print, records};

mod form;

/// Flags of `profile`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct ProfileArgs {
    #[command(subcommand)]
    two: Option<Two>,
    /// An experiment (.toml), a record (its folder, `latest`, its name or its experiment's name), or a file
    /// with a profile
    #[arg(value_name = "FILE|RECORD")]
    what: Option<PathBuf>,
    /// A program that starts one service, and its arguments. It must listen on the port in the variable PORT,
    /// which is also {port}
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
    command: Vec<String>,
    #[command(flatten)]
    form: ProfileFormArgs,
    #[command(flatten)]
    start: StartArgs,
}

#[derive(Debug, Subcommand)]
enum Two {
    /// Compare two profiles: the additional time of the second
    Diff(DiffArgs),
}

const AFTER_HELP: &str = "\
Of a record that was made with --explain, or of profiles that you have:
  proofload profile latest                                each variant
  proofload profile latest --variant production --format html --out flame.html
  proofload profile CPU.20261121.cpuprofile               of node --cpu-prof, DevTools or `0x`
  proofload profile isolate0x5581-1234-v8.log             of node --prof
  proofload profile diff before.cpuprofile after.cpuprofile --html diff.html

Without a record, by starting services and loading them (three rounds, about 90 s for each variant):
  proofload profile experiment.toml                       the variants of an experiment
  proofload profile --path /orders -- node server.js      one command; it gets PORT

Profiling slows a service: profiles come from separate trials, and the report states the overhead (tax). `proofload run FILE --explain` measures first, then says how much of the measured difference the profiles account for. How to read them: docs/profiles.md.

Exit codes: 0 all well; 2 usage, or a file that cannot be read as what it should be; 3 a service failed; 4 no profile could be taken; 6 Proofload could not do its own part; 130 interrupted.";

pub fn run(args: &ProfileArgs) -> anyhow::Result<u8> {
    if let Some(Two::Diff(two)) = &args.two {
        return compared(two);
    }
    args.form.check()?;
    let Some(what) = &args.what else {
        if !args.command.is_empty() {
            return command(&args.command, &args.start, &args.form);
        }
        return Err(CliError::usage("nothing to profile is named")
            .hint("name an experiment, a record or a profile, or put a command behind `--`: proofload profile --help")
            .into());
    };
    if what
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
    {
        return experiment(what, &args.start, &args.form);
    }
    args.start.refused_for(what)?;
    if is_record(what) {
        return record(what, &args.form);
    }
    of_file(what, &args.form)
}

/// An existing path that is not a file is a record. A missing one may be a record's name, unless it is a path
/// or has a file extension.
fn is_record(what: &Path) -> bool {
    let word = what.components().count() == 1 && what.extension().is_none();
    // The header file in a record's folder stands for the record.
    let is_header = what.file_name().is_some_and(|name| name == "record.json");
    what.is_dir() || is_header || records::means_latest(what) || !what.exists() && word
}

fn record(path: &Path, form: &ProfileFormArgs) -> anyhow::Result<u8> {
    let record = records::opened(path)?;
    let explanation = explanation::kept_or_made(&record, form.again)?;
    let plan = &record.header.plan;
    form::print(
        form,
        &explanation,
        plan.question.as_ref().unwrap_or(&plan.name),
    )?;
    Ok(taken(&explanation))
}

/// Exit code: whether it contains a profile. Missing profiles are listed among the doubts, which are printed.
fn taken(explanation: &Explanation) -> u8 {
    if explanation
        .subjects
        .iter()
        .any(|subject| subject.requests > 0)
    {
        0
    } else {
        exit::VOID
    }
}

// Profiles of services that are started for this purpose: the variants of an experiment, or one command.
// Nothing is measured, so there is no verdict. The record contains the captures.

/// Flags for started services.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Path to request from a command
    #[arg(long, default_value = "/", conflicts_with = "what")]
    path: String,
    /// Connections to a command, each with one request at a time
    #[arg(long, default_value_t = 16, conflicts_with = "what")]
    connections: u32,
    /// Path that responds with a 2xx once a command is ready [default: ready with any status below 500]
    #[arg(long, value_name = "PATH", conflicts_with = "what")]
    ready: Option<String>,
    /// Passes over all variants. One pass gives no interval [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: Option<u32>,
    #[command(flatten)]
    seed: SeedFlag,
    /// New folder for the record of the started services [default: records/NAME-profile-TIME]
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

impl StartArgs {
    /// The settings of these flags and of the command.
    fn overrides(&self) -> Overrides {
        let explain = FlagSetting::new(&["design", "explain"], true, "proofload profile");
        let seed = self.seed.seed.map(seed_setting);
        Overrides {
            settings: std::iter::once(explain).chain(seed).collect(),
            ..Overrides::default()
        }
    }

    /// Rejects flags for started services if none is started.
    pub fn refused_for(&self, what: &Path) -> Result<(), CliError> {
        let given = exit::given(&[
            (self.rounds.is_some(), "--rounds"),
            (self.seed.seed.is_some(), "--seed"),
            (self.record.is_some(), "--record"),
        ]);
        let Some(flag) = given else { return Ok(()) };
        let message = format!("{flag}: nothing is started for {}", what.display());
        Err(CliError::usage(message).hint("it is for experiments (.toml) and commands"))
    }
}

/// Captures all variants of an experiment, without measuring them.
pub fn experiment(file: &Path, start: &StartArgs, form: &ProfileFormArgs) -> anyhow::Result<u8> {
    let file = Experiment::file(Some(file))?;
    let plan = file.plan(&start.overrides(), None)?;
    let repeat = Repeat::Command(vec!["run".to_owned(), file.name()]);
    capture(&file.name(), (file.text(), repeat), plan, start, form)
}

/// Starts one command as a service and captures it.
pub fn command(
    command: &[String],
    start: &StartArgs,
    form: &ProfileFormArgs,
) -> anyhow::Result<u8> {
    let line = plan::masked_words(command).join(" ");
    let env = vec![("PORT".to_owned(), "{port}".to_owned())];
    let source = DraftSource::Command {
        env,
        words: command.to_vec(),
    };
    let ready = |path: &String| setting(&["services", SERVICE, "ready"], "--ready", path.as_str());
    // The file is in the record, and may be run from any folder.
    let here = std::env::current_dir()
        .unwrap_or_default()
        .display()
        .to_string();
    let settings = [
        setting(&["services", SERVICE, "directory"], "", here.as_str()),
        setting(&["load", "path"], "--path", start.path.as_str()),
        setting(
            &["load", "connections"],
            "--connections",
            i64::from(start.connections),
        ),
    ];
    let draft = ExperimentDraft {
        made_by: print::shown_command(),
        again: "proofload profile experiment.toml".to_owned(),
        name: "command".to_owned(),
        question: Some(format!("Where does {line} spend its time?")),
        variants: vec![DraftVariant {
            name: None,
            source,
            from: line.clone(),
        }],
        settings: settings
            .into_iter()
            .chain(start.ready.as_ref().map(ready))
            .collect(),
    };
    let (written, plan) = experiment::drafted(&draft, Path::new("."), &start.overrides())?;
    capture(&line, (written.text, Repeat::SavedFile), plan, start, form)
}

fn capture(
    name: &str,
    (text, repeat): (String, Repeat),
    plan: Plan,
    start: &StartArgs,
    form: &ProfileFormArgs,
) -> anyhow::Result<u8> {
    form.check_for(&plan)?;
    let directory = start
        .record
        .clone()
        .unwrap_or_else(|| records::claim(&format!("{}-profile", plan.name)));
    let title = plan.question.clone().unwrap_or_else(|| plan.name.clone());
    let captures_alone = Some(start.rounds.unwrap_or(lab::ROUNDS));
    let job = LabJob::new(name, text, plan, Some(&directory))?;
    let job = LabJob {
        repeat,
        captures_alone,
        ..job
    };
    let (record, result) = execution::execute(job)?;
    let interrupted = record.end() == Some(&EndReason::Interrupted);
    // An interrupted run has the captures up to then.
    let Some(explanation) = explanation::kept(&record.directory) else {
        result.map_err(failure::failed)?;
        if interrupted {
            return Ok(exit::INTERRUPTED);
        }
        let hint = format!(
            "what the services said is in {}",
            record.directory.join("logs").display()
        );
        return Err(CliError::new(exit::VOID, "nothing was captured")
            .hint(hint)
            .into());
    };
    form::print(form, &explanation, &title)?;
    let directory = record.directory.display();
    print::tell!("flame graphs: {directory}/{}", explanation::FLAME);
    let place = plan::command_line([directory.to_string()]);
    print::tell!("again, or in other forms: proofload profile {place}");
    execution::end(
        result,
        if interrupted {
            exit::INTERRUPTED
        } else {
            taken(&explanation)
        },
    )
}

// Profiles in files: detected, read within limits, and printed.

/// Supported formats, for an error message.
const KNOWN: &str = "known are .cpuprofile and .heapprofile of V8 (node --cpu-prof, --heap-prof, DevTools), .native.json of a \
                     record, and the isolate*.log of node --prof";
/// Hint if a profile is too large.
const SMALLER: &str = "profile a shorter time, or take fewer samples: node --cpu-prof --cpu-prof-interval 10000, in µs";

/// A parsed profile.
#[derive(Debug)]
pub struct OpenedProfile {
    /// Its path, as it was given.
    pub name: String,
    /// The call tree.
    pub tree: Tree,
    /// Unit of its values.
    pub unit: TreeUnit,
    /// Whether it contains stacks of compiled code and none of JavaScript.
    is_native: bool,
    /// Its duration, if it is recorded.
    lasted_ns: Option<f64>,
}

fn of_file(path: &Path, form: &ProfileFormArgs) -> anyhow::Result<u8> {
    if form.variant.is_some() || form.service.is_some() || form.again || form.heap {
        let message = format!(
            "{}: --variant, --service, --heap and --again are for records",
            path.display()
        );
        return Err(CliError::usage(message)
            .hint("this is read as a file with one profile")
            .into());
    }
    let OpenedProfile {
        name, tree, unit, ..
    } = read(path)?;
    let out = form.out.as_deref();
    let text = match form.format {
        ProfileForm::Text => report::text(
            &::explain::profile(&name, &tree, unit),
            print::width_of(out),
        ),
        ProfileForm::Json => model::text::json(report::with_format(explain::profile_json(
            &name, &tree, unit,
        ))),
        ProfileForm::Html => flame::page_of_trees(&[(&name, &tree)], unit, &name),
        other => exported(other, &[(name.clone(), &tree)], unit, &name)?,
    };
    print::put(out, &text)?;
    Ok(0)
}

/// Reads a profile of any supported format. Files of the service are named relative to the current folder.
///
/// # Errors
/// If it is missing, empty, too large, truncated, or no profile.
pub fn read(path: &Path) -> Result<OpenedProfile, CliError> {
    let name = path.display().to_string();
    let failed = |what: String| CliError::usage(format!("{name}: {what}")).hint(KNOWN);
    let text = plan::read_given(path, PROFILE_BYTES_MAX).map_err(|error| {
        let helps = if error.kind() == ErrorKind::FileTooLarge {
            SMALLER
        } else {
            KNOWN
        };
        CliError::usage(format!("{name}: {error}")).hint(helps)
    })?;
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(failed(
            "is empty; a profiler that was killed leaves such a file".to_owned(),
        ));
    }
    // A log of V8 is read by the tool that belongs to the V8 that wrote it.
    let (text, told) = match is_one(path, &text) {
        true => (preprocessed(path)?, format!("{name}.json")),
        false => (text, name.clone()),
    };
    let profile = explain::read_any(&told, &text).map_err(|error| failed(error.to_string()))?;
    // The folder of a service in a third party's profile is unknown: it is derived from the named files.
    let naming = Naming {
        directory: "",
        source: &Files::of(Path::new(".")),
    };
    let cut = profile.cut(&naming);
    cut.notes
        .iter()
        .for_each(|note| print::tell!("{name}: {}", note.text));
    let lasted_ns = match &profile {
        explain::Profile::Cpu(_) => Some(cut.covered_ns + cut.capped_ns),
        explain::Profile::Heap(_) | explain::Profile::Native(_) => None,
    };
    let is_native = matches!(profile, explain::Profile::Native(_));
    Ok(OpenedProfile {
        name,
        tree: cut.tree,
        unit: profile.unit(),
        is_native,
        lasted_ns,
    })
}

// `proofload profile diff A B`: two profiles compared, as tables and as a page.

/// Flags of `profile diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_AFTER_HELP)]
pub struct DiffArgs {
    /// The profile compared with
    a: PathBuf,
    /// The profile in question
    b: PathBuf,
    /// Requests that were served while each was taken. Values are then per request
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    requests: Option<Vec<u64>>,
    /// Write a page with both flame graphs and their difference
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    form: print::FormArgs,
}

const DIFF_AFTER_HELP: &str = "\
.cpuprofile and .heapprofile of V8, the isolate*.log of node --prof, and .native.json of a record; both of one kind.

Two profiles are comparable if they saw the same work: as many requests, or the number of each with --requests. Without it, the one that ran longer looks more expensive.

  proofload profile diff before.cpuprofile after.cpuprofile --requests 20000 31000 --html diff.html

There is no interval, and two processes that do the same differ by several per cent. `proofload run FILE --explain` captures several of each, and has one.";

fn compared(args: &DiffArgs) -> anyhow::Result<u8> {
    let is_json = args.form.is_json()?;
    args.html.as_deref().map_or(Ok(()), print::check_writable)?;
    let (mut a, mut b) = (read(&args.a)?, read(&args.b)?);
    if a.unit != b.unit {
        let message = format!(
            "{} and {}: one is of memory, the other of CPU time",
            a.name, b.name
        );
        return Err(CliError::usage(message)
            .hint("compare two of one kind")
            .into());
    }
    if a.is_native != b.is_native {
        let (native, javascript) = if a.is_native {
            (&a.name, &b.name)
        } else {
            (&b.name, &a.name)
        };
        let message = format!(
            "{native} has compiled code of all threads, {javascript} JavaScript of one thread: no function is in both"
        );
        return Err(CliError::usage(message)
            .hint("compare two of one kind")
            .into());
    }
    if a.name == b.name {
        b.name.push_str(" (again)");
    }
    if let Some([of_a, of_b]) = args.requests.as_deref() {
        (a, b) = (per_request(a, *of_a)?, per_request(b, *of_b)?);
    } else {
        tell_unlike(&a, &b);
    }
    let comparison = explain::compare_trees((&a.name, &a.tree), (&b.name, &b.tree));
    if let Some(page) = &args.html {
        let trees = [(&*a.name, &a.tree), (&*b.name, &b.tree)];
        let title = format!("{} vs {}", b.name, a.name);
        print::put(Some(page), &flame::page_of_trees(&trees, a.unit, &title))?;
    }
    let text = match is_json {
        true => model::text::json(report::with_format(explain::difference_json(
            &comparison,
            a.unit,
        ))),
        false => report::text(&explain::difference(&comparison, a.unit), print::width()),
    };
    print::data(&text)?;
    Ok(0)
}

/// Profiles whose durations differ by more than this factor have hardly seen the same work.
const ALIKE_MAX: f64 = 1.1;

/// Warns if one of two profiles lasted longer, and the amount of work is unknown.
fn tell_unlike(a: &OpenedProfile, b: &OpenedProfile) {
    let Some((of_a, of_b)) = a.lasted_ns.zip(b.lasted_ns) else {
        return;
    };
    if of_a.max(of_b) > ALIKE_MAX * of_a.min(of_b) {
        let [of_a, of_b] = [of_a, of_b].map(|ns| micros(ns / 1e3));
        let (a, b) = (&a.name, &b.name);
        print::tell!(
            "{a} lasts {of_a} and {b} {of_b}: what ran longer looks more expensive; with --requests A B values are per request"
        );
    }
}

/// Converts values to values per request: nanoseconds become microseconds, as in the profiles of records.
fn per_request(of: OpenedProfile, requests: u64) -> Result<OpenedProfile, CliError> {
    if requests == 0 {
        return Err(CliError::usage(format!(
            "--requests: 0 for {}, at least 1",
            of.name
        )));
    }
    let (unit, of_one) = match of.unit {
        TreeUnit::Bytes | TreeUnit::BytesPerRequest => (TreeUnit::BytesPerRequest, 1.0),
        TreeUnit::Nanoseconds | TreeUnit::MicrosPerRequest => (TreeUnit::MicrosPerRequest, 1e-3),
    };
    Ok(OpenedProfile {
        tree: explain::merge(&[(&of.tree, of_one / requests as f64)]),
        unit,
        ..of
    })
}

// V8's own log, which `node --prof` writes, converted by the installed `node`. This module starts nothing
// else.

/// The beginning of every such log.
const BEGIN: &[u8] = b"v8-version,";
/// Timeout of node for reading a log.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Whether a file is such a log, by its beginning or by V8's naming scheme.
pub fn is_one(path: &Path, text: &[u8]) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    text.starts_with(BEGIN) || name.starts_with("isolate") && name.ends_with(".log")
}

/// The installed `node`.
fn node() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let found = env::split_paths(&folders)
        .map(|folder| folder.join("node"))
        .find(|path| path.is_file())?;
    found.canonicalize().ok()
}

fn without_node(name: &str, why: &str) -> CliError {
    CliError::new(SELF, format!("{name}: a log of V8, which takes `node` to read, {why}")).hint(format!(
        "install Node.js; or where there is one: node --prof-process --preprocess {name} > v8.json, and give v8.json here"
    ))
}

/// Returns the JSON that `node --prof-process --preprocess` prints.
pub fn preprocessed(path: &Path) -> Result<Vec<u8>, CliError> {
    let name = path.display();
    // Absolute, so that a name with a leading dash is not taken for a flag of node.
    let absolute = path
        .canonicalize()
        .map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    print::tell!("{name}: a log of V8; node --prof-process reads it");
    let node = node().ok_or_else(|| without_node(&name.to_string(), "and there is none"))?;
    let mut command = machine::command(node);
    command
        .args(["--prof-process", "--preprocess"])
        .arg(absolute);
    // Node would run `nm` with file names that the log chooses, and `nm` loads a plugin that its arguments
    // name. Without a PATH there is no `nm`, and native functions have no names.
    command.env("PATH", "/dev/null").current_dir("/");
    // Modules that the user preloads into Node.js are not wanted here.
    command.env_remove("NODE_OPTIONS");
    let ran = machine::run_keeping(&mut command, PATIENCE, PROFILE_BYTES_MAX as usize + 1);
    let ran = ran.map_err(|error| {
        without_node(
            &name.to_string(),
            &format!("which cannot be started: {error}"),
        )
    })?;
    let late = || {
        format!(
            "{name}: node --prof-process took over {} min",
            PATIENCE.as_secs() / 60
        )
    };
    let Output {
        status,
        stdout: text,
        ..
    } = ran.ok_or_else(|| CliError::usage(late()))?;
    if text.len() as u64 > PROFILE_BYTES_MAX {
        let limit = report::bytes(PROFILE_BYTES_MAX as f64);
        return Err(CliError::usage(format!(
            "{name}: node makes more than {limit} of it, the most that is read"
        )));
    }
    if !status.success() || text.is_empty() {
        return Err(CliError::usage(format!("{name}: node --prof-process cannot read it ({status})")).hint(
            "the log must be whole, and of the same Node.js as the one that is installed: node --version",
        ));
    }
    Ok(text)
}
