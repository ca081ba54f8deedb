//! `proofload compare`: compares services given by their command lines, without a file. Flags define the
//! file, and the experiment then runs like any other.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plan::{Cpus, DraftSource, DraftVariant, ExperimentDraft, FlagSetting, SERVICE};
use toml::Value;

use crate::exit::{self, CliError};
use crate::experiment::{self, AgainstArgs, Experiment};
use crate::flags::{
    BUDGET, OutFlag, RunFlags, explain_setting, header, one_or_many, seed_setting, setting,
    tls_file,
};
use crate::job::{self, ExperimentJob};
use crate::{gate, print, records};

/// Larger than a body in an experiment file may be.
const BODY_BYTES_MAX: u64 = 1 << 20;

const AFTER_HELP: &str = "\
Examples:
  Two settings of a service:
    proofload compare 'NODE_ENV=development node server.js' 'NODE_ENV=production node server.js'
  Two programs, with names and a request:
    proofload compare --name old=./bin/server-1.4 --name new=./bin/server-1.5 \\
      -H 'Accept: application/json' --path /orders -c 32 --budget 2m --margin 3%
  The code here against that of another commit:
    proofload compare --against main 'node server.js'
  Running services, and local images (docker or podman):
    proofload compare http://127.0.0.1:3000 http://127.0.0.1:4000
    proofload compare --container shop:1.4 'CACHE=off shop:1.5' --port 3000
  A limit, with its exit code:
    proofload compare --limit 'throughput > -3%' './old' './new'

All others are compared with the first. A command is split into words as in a shell, but no shell runs; NAME=value before the program sets a variable. PORT is set to a free port, and {port} stands for it; a service that listens elsewhere is found.
Two records are compared by `proofload history compare OLD NEW`.";

/// Flags of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("budget", |arg| arg.help("Time the whole run may take, for example 90s or 10m [default: 3m]")),
    mut_arg("seed", |arg| arg.help("Seed of every random choice [default: a new one]"))
)]
pub struct CompareArgs {
    /// Commands that start a service (one argument each), or URLs. The first is the baseline
    #[arg(value_name = "COMMAND")]
    pub what: Vec<String>,
    /// A command and its name in reports. Follows those without a name. May be repeated
    #[arg(long = "name", value_name = "NAME=COMMAND")]
    named: Vec<String>,
    /// Treat the arguments as images: `[NAME=value…] IMAGE [ARGUMENTS…]`
    #[arg(long, conflicts_with = "against")]
    container: bool,
    /// Port that the services listen on, inside the container if there is one [default: detected, or the
    /// exposed port of an image]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    #[command(flatten)]
    pub asked: CompareFlags,
    #[command(flatten)]
    pub flags: RunFlags,
    /// Write an equivalent experiment file. Never overwrites
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: gate::Flags,
    #[command(flatten, next_help_heading = "Against another commit")]
    pub against: AgainstArgs,
}

pub fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let settings = response_times(args).into_iter().collect();
    carry(
        args,
        &Aim {
            least: 2,
            settings,
            name: "compare",
            question: None,
        },
    )
}

impl CompareArgs {
    /// Rejects flags that conflict with an experiment file.
    pub fn check_file(&self, file: &Path) -> Result<(), CliError> {
        let given = exit::given(&[
            (!self.named.is_empty(), "--name"),
            (self.container, "--container"),
            (self.port.is_some(), "--port"),
            (self.save.is_some(), "--save"),
        ]);
        given.map_or_else(
            || self.asked.check_file(file),
            |flag| Err(said_by(file, flag)),
        )
    }
}

fn said_by(file: &Path, flag: &str) -> CliError {
    let message = format!(
        "{flag}: {} is an experiment file, and says that itself",
        file.display()
    );
    CliError::usage(message)
        .hint("change it in the file, or name the command that starts the service")
}

/// Default metrics: the response times that a rate or a limit requires.
fn response_times(args: &CompareArgs) -> Option<FlagSetting> {
    if !args.asked.metric.is_empty() {
        return None;
    }
    let figures = args
        .limits
        .limits
        .iter()
        .filter_map(|limit| limit.figure.metric());
    let quantiles = figures.filter(|metric| metric.quantile().is_some());
    let quantiles = model::distinct(quantiles).into_iter();
    let mut quantiles: Vec<String> = quantiles.map(|metric| metric.name().to_owned()).collect();
    if quantiles.is_empty() && args.asked.rate.is_some() {
        quantiles.push(model::Metric::P99.name().to_owned());
    }
    metrics(&quantiles)
}

fn metrics(names: &[String]) -> Option<FlagSetting> {
    let from = format!("--metric {}", names.join(" --metric "));
    one_or_many(
        &["design", "metric"],
        names.iter().cloned().map(Value::String).collect(),
        from,
    )
}

/// The goal of an experiment with services from flags.
#[derive(Debug)]
pub struct Aim {
    /// Minimum number of services.
    pub least: usize,
    /// Additional keys of the file.
    pub settings: Vec<FlagSetting>,
    /// Prefix of experiment names.
    pub name: &'static str,
    /// The question. `None` asks how the later services compare with the first.
    pub question: Option<String>,
}

/// Runs the experiment that flags define.
pub fn carry(args: &CompareArgs, aim: &Aim) -> anyhow::Result<u8> {
    args.flags.amount.settle();
    let place = SavedFile::of(args, aim);
    let draft = draft(args, &place, aim)?;
    let names = draft.names();
    if let Some(name) =
        (1..names.len()).find_map(|at| names[..at].iter().find(|name| **name == names[at]))
    {
        let message = format!("--name: two services are called `{name}`");
        return Err(CliError::usage(message)
            .hint("give each a name of its own")
            .into());
    }
    for (one, other) in draft.alike() {
        print::tell!(
            "note: `{}` and `{}` are the same: this is an A/A test, and whatever they differ by is the machine's doing",
            names[one],
            names[other]
        );
    }
    args.save.as_deref().map_or(Ok(()), print::absent)?;
    let experiment = Experiment::made(place.file, draft.write(), args.save.clone());
    let flags = RunFlags {
        out: OutFlag {
            out: Some(place.record),
        },
        ..args.flags.clone()
    };
    ExperimentJob {
        experiment: &experiment,
        flags: &flags,
        limits: args.limits.asked(),
        against: &args.against,
        slo: &[],
    }
    .run()
}

/// Folder of the record, and the file for repeating the run: the saved one, or the one in the record.
struct SavedFile {
    record: PathBuf,
    file: PathBuf,
}

impl SavedFile {
    fn of(args: &CompareArgs, aim: &Aim) -> SavedFile {
        let record = args
            .flags
            .out
            .out
            .clone()
            .unwrap_or_else(|| records::claim(&name(aim.name)));
        let file = args
            .save
            .clone()
            .unwrap_or_else(|| records::typed(&record).join("experiment.toml"));
        SavedFile { record, file }
    }

    /// Whether directories in the file have to be absolute.
    fn is_elsewhere(&self) -> bool {
        fs::canonicalize(records::folder_of(&self.file)).ok()
            != env::current_dir().and_then(fs::canonicalize).ok()
    }
}

fn draft(args: &CompareArgs, place: &SavedFile, aim: &Aim) -> Result<ExperimentDraft, CliError> {
    let unnamed = args
        .what
        .iter()
        .map(|text| variant(args, None, text, text.clone()));
    let mut variants = unnamed.collect::<Result<Vec<_>, _>>()?;
    for text in &args.named {
        let (name, command) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| {
                CliError::usage(format!(
                    "--name {}: expected NAME=COMMAND",
                    plan::quotable(text)
                ))
                .hint("--name old='./bin/server-1.4 --threads 2'")
            })?;
        variants.push(variant(
            args,
            Some(name),
            command,
            format!("--name {text}"),
        )?);
    }
    let against = args.against.against.as_deref();
    let refused = |what: &str, hint: &str| Err(CliError::usage(what).hint(hint));
    match (variants.len(), against) {
        (0, _) if aim.least < 2 => {
            let hint = "name the command that starts one, or its URL; --help has more";
            return refused("no service is named", hint);
        }
        (0, _) => {
            let hint = "proofload compare 'node old.js' 'node new.js'; --help has more";
            return refused("nothing to compare is named", hint);
        }
        (1, None) if aim.least > 1 => {
            let hint = "name a second one, or --against REF for the code of another commit; one URL alone: proofload load URL";
            return refused("one command is named, and nothing to compare it with", hint);
        }
        _ => {}
    }
    let running = variants
        .iter()
        .filter(|variant| matches!(variant.source, DraftSource::Url(_)))
        .count();
    if running > 0 && running < variants.len() {
        let what = "a URL and a command do not compare: what runs already is not started anew for each block";
        return refused(what, "let Proofload start both, or name the URLs of both");
    }
    let of = against.filter(|_| variants.len() == 1);
    let asked = || {
        Some(format!(
            "How does the code here compare with that of {}?",
            of?
        ))
    };
    let question = aim.question.clone().or_else(asked);
    let draft = ExperimentDraft {
        made_by: print::shown_command(),
        again: again(args, place),
        name: name(aim.name),
        question,
        settings: [settings(args, place, &variants)?, aim.settings.clone()].concat(),
        variants,
    };
    Ok(if place.is_elsewhere() {
        draft.anchored(&env::current_dir().unwrap_or_default())
    } else {
        draft
    })
}

fn variant(
    args: &CompareArgs,
    name: Option<&str>,
    text: &str,
    from: String,
) -> Result<DraftVariant, CliError> {
    if experiment::is_named(text) {
        // A missing file could not be run either.
        Experiment::file(Some(Path::new(text)))?;
        let message = format!("`{text}` is an experiment file, which says itself what is compared");
        return Err(CliError::usage(message).hint(format!("proofload run {text}")));
    }
    let source = if args.container {
        DraftSource::image(text)
    } else if text.starts_with("http://") || text.starts_with("https://") {
        Ok(DraftSource::Url(text.to_owned()))
    } else {
        DraftSource::command(text)
    };
    let shown = plan::quotable(text);
    let source =
        source.map_err(|error| CliError::usage(format!("`{shown}`: {error}")).hint(error.hint))?;
    Ok(DraftVariant {
        name: name.map(str::to_owned),
        source,
        from,
    })
}

fn settings(
    args: &CompareArgs,
    place: &SavedFile,
    variants: &[DraftVariant],
) -> Result<Vec<FlagSetting>, CliError> {
    let mut settings = args.asked.settings()?;
    let flags = &args.flags;
    let count = variants.len() * if args.against.against.is_some() { 2 } else { 1 };
    let quick = flags.quick.then(|| {
        job::quick_budget(
            count,
            args.asked.is_open() || response_times(args).is_some(),
        )
    });
    let budget = plan::duration_text(flags.budget.or(quick).unwrap_or(BUDGET));
    settings.push(setting(&["design", "budget"], "--budget", budget));
    if let Some(seed) = flags.seed.seed {
        settings.push(seed_setting(seed));
    }
    if flags.explain {
        settings.push(explain_setting());
    }
    settings.extend(args.limits.settings());
    if let Some(port) = args.port {
        let path = ["services", SERVICE, "container", "port"];
        let path = if args.container {
            path.to_vec()
        } else {
            [&path[..2], &path[3..]].concat()
        };
        settings.push(setting(&path, "--port", i64::from(port)));
    }
    if place.is_elsewhere() && variants.iter().any(|variant| variant.source.has_folder()) {
        let here = env::current_dir().unwrap_or_default().display().to_string();
        settings.push(FlagSetting::new(
            &["services", SERVICE, "directory"],
            here.as_str(),
            "",
        ));
    }
    Ok(settings)
}

/// The command that runs the saved file in the same way.
fn again(args: &CompareArgs, place: &SavedFile) -> String {
    let mut words = vec![
        "proofload".to_owned(),
        "run".to_owned(),
        place.file.display().to_string(),
    ];
    words.extend(args.limits.again());
    words.extend(args.against.again());
    plan::command_line(words)
}

/// The experiment's name. It contains the folder's name, so that comparisons of one project are found
/// together.
fn name(of: &str) -> String {
    experiment::folder_slug(Path::new(".")).map_or(of.to_owned(), |folder| format!("{of}-{folder}"))
}

/// Flags about the load and the verdict. Each sets a key of the file.
#[derive(Debug, Args)]
pub struct CompareFlags {
    /// Path of the request, with its query [default: /]
    #[arg(long, help_heading = "Load")]
    path: Option<String>,
    /// Method of the request [default: GET, or POST with a body]
    #[arg(short = 'X', long, help_heading = "Load")]
    method: Option<String>,
    /// A header field of the request. May be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header, help_heading = "Load")]
    headers: Vec<(String, String)>,
    /// Body of the request: its text, or @FILE for the content of a file
    #[arg(short, long, value_name = "TEXT|@FILE", help_heading = "Load")]
    body: Option<String>,
    /// Connections, each with one request at a time [default: 64]
    #[arg(short, long, value_name = "N", value_parser = crate::flags::counted::<u32>, help_heading = "Load")]
    pub connections: Option<u32>,
    /// Open loop: requests per second, or a share of the slowest service's capacity, such as 60% [default:
    /// 60% for response times, else closed loop]
    #[arg(short, long, help_heading = "Load")]
    rate: Option<String>,
    /// Time limit for a response [default: 5s]
    #[arg(long, value_parser = plan::duration, help_heading = "Load")]
    timeout: Option<Duration>,
    /// How long each service is loaded before it is measured, in each block [default: measured]
    #[arg(long, value_parser = plan::duration, help_heading = "Load")]
    warmup: Option<Duration>,
    /// Status codes of a success, separated by commas [default: 200]
    #[arg(
        long,
        value_name = "CODES",
        value_delimiter = ',',
        help_heading = "Load"
    )]
    expect_status: Vec<u16>,
    /// Whether services leave the load generator's processors to it, or may use all. auto decides by their
    /// use [default: auto]
    #[arg(long, value_parser = cpus(), help_heading = "Load")]
    pub cpus: Option<Cpus>,
    /// Trust only the authorities in this file (PEM) [default: those that this system trusts]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Load"
    )]
    cacert: Option<PathBuf>,
    /// Accept any certificate, without checking the server's identity
    #[arg(long, help_heading = "Load")]
    insecure: bool,
    /// Client certificate in this file (PEM), for a server that requests one
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    cert: Option<PathBuf>,
    /// Private key of --cert in this file (PEM) [default: in the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Load")]
    key: Option<PathBuf>,
    /// Path that responds with a 2xx once the service is ready [default: ready with any status below 500]
    #[arg(long, value_name = "PATH", help_heading = "Load")]
    ready: Option<String>,
    /// Metric of the verdict, such as p99 or cpu_per_request. May be repeated [default: the response times
    /// that --limit bounds, p99 with --rate, else throughput]
    #[arg(long, value_name = "METRIC", help_heading = "Verdict")]
    metric: Vec<String>,
    /// The smallest difference that matters [default: 3%]
    #[arg(long, value_name = "PERCENT", help_heading = "Verdict")]
    margin: Option<String>,
}

fn cpus() -> impl TypedValueParser<Value = Cpus> {
    PossibleValuesParser::new(Cpus::ALL.map(Cpus::name))
        .try_map(|name: String| name.parse::<Cpus>())
}

impl CompareFlags {
    /// Keys of the flags that were given, each with its flag.
    pub fn settings(&self) -> Result<Vec<FlagSetting>, CliError> {
        let text = |path: &[&str], flag: &str, text: &Option<String>| {
            text.as_ref().map(|text| setting(path, flag, text.as_str()))
        };
        let method = self
            .method
            .clone()
            .or_else(|| self.body.as_ref().map(|_| "POST".to_owned()));
        let of_body = |typed: &String| -> Result<FlagSetting, CliError> {
            Ok(FlagSetting::new(
                &["load", "body"],
                body(typed)?,
                format!("--body {typed}"),
            ))
        };
        let of_rate = |typed: &String| {
            FlagSetting::new(
                &["design", "rate"],
                number(typed),
                format!("--rate {typed}"),
            )
        };
        let connections = self.connections.map(i64::from);
        let file = |flag: &str, path: &Option<PathBuf>| {
            let path = path
                .as_deref()
                .map(|path| tls_file(flag, path))
                .transpose()?;
            Ok::<_, CliError>(path.map(|path| path.display().to_string()))
        };
        let (ca, cert, key) = (
            file("--cacert", &self.cacert)?,
            file("--cert", &self.cert)?,
            file("--key", &self.key)?,
        );
        let codes = self
            .expect_status
            .iter()
            .map(|code| i64::from(*code).into())
            .collect();
        let typed: Vec<String> = self.expect_status.iter().map(u16::to_string).collect();
        let typed = format!("--expect-status {}", typed.join(","));
        let settings = [
            text(&["services", SERVICE, "ready"], "--ready", &self.ready),
            text(&["load", "path"], "--path", &self.path),
            text(&["load", "method"], "--method", &method),
            self.body.as_ref().map(of_body).transpose()?,
            connections.map(|many| setting(&["load", "connections"], "--connections", many)),
            text(
                &["load", "timeout"],
                "--timeout",
                &self.timeout.map(plan::duration_text),
            ),
            self.cpus
                .map(|cpus| setting(&["design", "cpus"], "--cpus", cpus.name())),
            text(&["load", "tls", "ca"], "--cacert", &ca),
            text(
                &["design", "warmup"],
                "--warmup",
                &self.warmup.map(plan::duration_text),
            ),
            text(&["load", "tls", "cert"], "--cert", &cert),
            text(&["load", "tls", "key"], "--key", &key),
            self.insecure
                .then(|| setting(&["load", "tls", "insecure"], "--insecure", true)),
            one_or_many(&["expect", "status"], codes, typed),
            metrics(&self.metric),
            text(&["design", "margin"], "--margin", &self.margin),
            self.rate.as_ref().map(of_rate),
        ];
        Ok(settings
            .into_iter()
            .flatten()
            .chain(fields(&self.headers))
            .collect())
    }

    /// Rejects all of these flags if an experiment file is named.
    pub fn check_file(&self, file: &Path) -> Result<(), CliError> {
        // The last one, because a body also sets the method.
        match self.settings()?.last() {
            Some(setting) => Err(said_by(
                file,
                setting.from.split(' ').next().unwrap_or_default(),
            )),
            None => Ok(()),
        }
    }

    /// Whether the load has a rate, because one was requested or a metric requires it.
    fn is_open(&self) -> bool {
        let needs_rate = |name: &String| {
            model::Metric::named(name).is_some_and(|metric| metric.quantile().is_some())
        };
        self.rate.is_some() || self.metric.iter().any(needs_rate)
    }
}

/// Each header field once, with all of its values. It is sent once for each value.
fn fields(headers: &[(String, String)]) -> Vec<FlagSetting> {
    let fields = headers
        .iter()
        .map(|(name, value)| (model::header::key(name), (name, value)));
    let field = |(_, same): (String, Vec<(&String, &String)>)| {
        let (name, _) = same.first()?;
        let typed: Vec<String> = same
            .iter()
            .map(|(name, value)| format!("-H '{name}: {value}'"))
            .collect();
        let values = same
            .iter()
            .map(|(_, value)| Value::from(value.as_str()))
            .collect();
        one_or_many(&["load", "headers", name.as_str()], values, typed.join(" "))
    };
    model::grouped(fields)
        .into_iter()
        .filter_map(field)
        .collect()
}

/// A number if the text is one. Anything else is checked like the file's value.
fn number(text: &str) -> Value {
    let whole = text.parse().map(Value::Integer).ok();
    whole
        .or_else(|| text.parse().map(Value::Float).ok())
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn body(text: &str) -> Result<String, CliError> {
    let Some(path) = text.strip_prefix('@') else {
        return Ok(text.to_owned());
    };
    plan::read_text(Path::new(path), BODY_BYTES_MAX).map_err(|error| {
        // Probably meant as text that begins with `@`.
        CliError::usage(format!(
            "--body: cannot read {}: {error}",
            plan::quotable(path)
        ))
        .hint("a body in an experiment is text in UTF-8")
    })
}
