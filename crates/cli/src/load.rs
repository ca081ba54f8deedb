//! `proofload load`: loads one URL like wrk, or several requests of a host, and prints the results.
//!
//! Its flags define a plan with one variant and no comparison. The lab runs it, `analysis` judges it and
//! `report` presents it, as with every plan.

use std::io::{self, IsTerminal};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use analysis::MeasuredWindow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, FromArgMatches};
use foreign::{Came, Tool, ToolDifference};
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Doing, LabError, Progress, Stop, Update, UpdateNews};
use model::quantity::many;
use model::{Counts, Event, Slice, SliceKind, Until};
use plan::{
    CommandRequests, DraftSource, DraftVariant, ExperimentDraft, Load, Measure, Overrides, Plan,
    Url, Variant,
};
use record::{EndReason, Record, Repeat};
use report::{Form, Gated, MeasuredRecord, Report, rate, seconds};

use crate::execution::{self, LabJob};
use crate::exit::{self, CliError};
use crate::flags::YesFlag;
use crate::prometheus::{self, Exporter};
use crate::{elsewhere, experiment, gate, preflight, print, records, signals, surface};

mod flags;

/// Message when a signal requests a stop.
const STOPPING: &str = "stopping; once more to leave at once";

/// Names of tools whose command lines are supported.
fn compatible() -> impl TypedValueParser<Value = Tool> {
    PossibleValuesParser::new(Tool::compatible().map(Tool::name)).try_map(|name| {
        Tool::compatible()
            .find(|tool| tool.name() == name)
            .ok_or("not a tool whose command lines are known")
    })
}

/// Flags of `load`.
#[derive(Debug, Args)]
#[command(after_help = flags::EXAMPLES)]
pub struct LoadArgs {
    /// URL to request: http://HOST:PORT/PATH or https://HOST:PORT/PATH
    #[arg(required_unless_present_any = ["tool", "theirs"])]
    url: Option<String>,
    #[command(flatten)]
    pace: flags::PaceFlags,
    #[command(flatten)]
    asking: flags::Asking,
    #[command(flatten)]
    expect: flags::ExpectFlags,
    #[command(flatten)]
    connection: flags::ConnectionFlags,
    #[command(flatten)]
    output: flags::OutputFlags,
    #[command(flatten)]
    yes: YesFlag,
    /// Take another tool's command line, and print the differences: --as wrk -- -t2 -c64 URL
    #[arg(long = "as", value_parser = compatible(), value_name = "TOOL", help_heading = "Other tools")]
    tool: Option<Tool>,
    /// With --as: that tool's command line, unchanged
    #[arg(last = true, value_name = "ARGUMENTS", help_heading = "Other tools")]
    theirs: Vec<String>,
}

impl LoadArgs {
    /// The URL, which may follow `--`, where it is no flag whatever it begins with.
    fn url(&self) -> Result<&str, CliError> {
        match (&self.url, self.theirs.as_slice()) {
            (Some(url), []) | (None, [url]) => Ok(url),
            _ => Err(CliError::usage(
                "what follows -- is no URL alone, and no --as names a tool whose command line it is",
            )
            .hint("proofload load URL; or proofload load --as wrk -- -t2 -c64 URL")),
        }
    }
}

pub fn run(args: &LoadArgs) -> anyhow::Result<u8> {
    args.output.amount.settle();
    let Some(tool) = args.tool else {
        return carry_out(args, &[]);
    };
    let (args, differences) = retype(args, tool)?;
    carry_out(&args, &differences)
}

fn carry_out(args: &LoadArgs, differences: &[ToolDifference]) -> anyhow::Result<u8> {
    let (form, limits) = (args.output.form.form(), &args.output.limits);
    print::fits(
        form,
        if limits.is_empty() {
            &print::UNLIMITED
        } else {
            &[]
        },
    )?;
    args.output
        .out
        .out
        .as_deref()
        .map_or(Ok(()), preflight::record)?;
    let prometheus = args
        .output
        .prometheus
        .prometheus
        .map(prometheus::listen)
        .transpose()?;
    let plan = plan(args)?;
    // Before files exist, which Ctrl-C would leave behind.
    let agreed = elsewhere::agree(&plan, args.yes.yes)?;
    let (record, result) = measured((plan, agreed), args, prometheus)?;
    if matches!(record.end(), Some(EndReason::LoadRefused(_))) {
        // Nothing was sent, so there is nothing to report.
        return execution::end(result, exit::USAGE);
    }
    let code = shown(&record, args, form, differences)?;
    execution::end(result, code)
}

/// Runs the plan. If requested, stores its record in a new folder, with reports.
fn measured(
    (plan, agreed): (Plan, elsewhere::Agreed),
    args: &LoadArgs,
    prometheus: Option<TcpListener>,
) -> anyhow::Result<(Record, Result<(), LabError>)> {
    let text = format!("# Made by: {}\n", print::shown_command());
    let stop = Stop::default();
    let folder = args.output.out.out.as_deref();
    let job = LabJob::new("proofload load", text, plan, folder)?;
    let job = LabJob {
        repeat: Repeat::AsTyped,
        agreed: Some(agreed),
        ..job
    };
    let (writer, mut environment) = execution::prepare(job, stop.clone())?;
    environment.driver = args.pace.driver;
    signals::stop_on_first(stop.clone(), STOPPING)?;
    let plan = writer.record().header.plan.clone();
    let exporter = prometheus
        .map(|at| Exporter::begin(at, &plan, stop.clone()))
        .transpose()?;
    let mut watch = LoadView::begin(plan, stop);
    let (record, result) = lab::run(writer, &mut environment, &mut |update| {
        watch.show(update);
        exporter
            .iter()
            .for_each(|exporter| exporter.take_in(update));
    });
    watch.end();
    if folder.is_some() {
        execution::keep_reports(&record, None);
        print::tell!("record: {}", records::typed(&record.directory).display());
    }
    Ok((record, result))
}

/// Prints the report, followed by the results of its limits.
fn shown(
    record: &Record,
    args: &LoadArgs,
    form: &Form,
    differences: &[ToolDifference],
) -> anyhow::Result<u8> {
    let conclusion = analysis::conclude(record);
    let windows = analysis::measurement(record)
        .map(|measured| measured.windows)
        .unwrap_or_default();
    let differences = mattering(differences, &windows);
    let loaded = MeasuredRecord {
        distribution: args.output.latency,
        differences: &differences,
        ..MeasuredRecord::new(record, &conclusion, None)
    };
    if record.header.plan.gate.is_empty() {
        print::result(&loaded, form, args.output.amount)?;
        return Ok(exit::of_record(record, &conclusion));
    }
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated {
        record,
        gate: &gate,
        allow_open: false,
    };
    if *form == report::JSON {
        let mut document = loaded.data();
        document["gate"] = gated.data();
        print::data(&model::text::json(report::with_format(document)))?;
    } else if *form == report::JUNIT {
        print::report(&gated, form, None)?;
    } else {
        print::result(&loaded, form, args.output.amount)?;
        if *form == report::TEXT || *form == report::MARKDOWN {
            print::data("\n")?;
            print::report(&gated, form, None)?;
        } else {
            gate::tell(&gated);
        }
    }
    Ok(gate::code(&gated))
}

// Converts flags to a plan with one variant: a running service, its load, and a measurement. Checks of plans
// are not repeated.

/// Creates the plan, without checking whether anything listens at the target.
fn plan(args: &LoadArgs) -> anyhow::Result<Plan> {
    let text = args.url()?;
    let refused = |problem| CliError::usage(format!("{}: {problem}", plan::quotable(text)));
    let url: Url = text.parse().map_err(refused)?;
    let asked = args.asking.load(&url)?;
    check_users(&asked, args)?;
    let limits = gate::Flags::of(&args.output.limits);
    let mut settings = args.pace.settings();
    settings.push(args.expect.setting());
    settings.extend(args.connection.settings(&url)?);
    settings.extend(limits.settings());
    let overrides = Overrides {
        requests: Some(CommandRequests {
            requests: asked.requests,
            cookies: asked.settings.cookies,
            think: asked.think,
            expect: args.expect.contract()?,
        }),
        ..Overrides::default()
    };
    let target = Url {
        place: args.connection.place(&url),
        path: "/".to_owned(),
        secure: url.secure,
    };
    let draft = ExperimentDraft {
        name: "load".to_owned(),
        variants: vec![DraftVariant {
            name: None,
            source: DraftSource::Url(target.origin()),
            from: target.origin(),
        }],
        settings,
        ..ExperimentDraft::default()
    };
    let (_, plan) = experiment::drafted(&draft, Path::new("."), &overrides)?;
    gate::check(&plan)?;
    Ok(plan)
}

/// Rejects flags with which a connection cannot be a user.
fn check_users(asked: &Load, args: &LoadArgs) -> Result<(), CliError> {
    let refused = |problem: &str, hint: &str| Err(CliError::usage(problem).hint(hint));
    let connection = &args.connection;
    match asked.think {
        _ if asked.has_users() && connection.no_keep_alive => refused(
            "--no-keepalive: in the mix each connection is a user who logs in or has cookies, and is to be kept",
            "leave it out",
        ),
        Some(_) if args.pace.rate.is_some() => refused(
            "--rate: at a rate requests are due whatever users do, so that their think times are in it already",
            "leave out --rate, or `think` in the mix",
        ),
        Some(_) if connection.lanes() > 1 || connection.no_keep_alive => refused(
            "a user who thinks has one connection, and one request under way on it",
            "leave out --pipeline and --no-keepalive; with --http2 say --streams 1",
        ),
        Some(_) | None => Ok(()),
    }
}

// `load --as TOOL`: converts the other tool's command line to ours. `foreign` knows its meaning. This module
// reads the arguments, prints the conversion, and reports which differences mattered in a run.

/// Converts the command line after `--` to our flags. Also returns how the figures differ from the other
/// tool's.
fn retype(args: &LoadArgs, tool: Tool) -> anyhow::Result<(LoadArgs, Vec<ToolDifference>)> {
    if args.theirs.is_empty() || args.url.is_some() {
        let name = tool.name();
        let problem =
            format!("--as {name}: all of {name}'s command line goes after --, the URL too");
        let hint = format!(
            "proofload load --as {name} -- {}",
            tool.example().unwrap_or_default()
        );
        return Err(CliError::usage(problem).hint(hint).into());
    }
    let refused_by = |refusal: foreign::ToolRefusal| {
        CliError::usage(plan::quotable(&refusal.problem)).hinted(refusal.hint)
    };
    let mut translation = tool.translate(&args.theirs).map_err(refused_by)?;
    let at = surface::command_at(&std::env::args_os().collect::<Vec<_>>());
    let typed = print::typed_command().into_iter().skip(at + 1);
    let url = translation.arguments.pop();
    let mut arguments = translation.arguments;
    arguments.extend(given_before(typed));
    arguments.extend(url);
    print::tell!(
        "proofload load {}",
        plan::command_line(plan::masked_words(&arguments))
    );
    let matches = parser().try_get_matches_from(arguments);
    let args = matches.and_then(|matches| LoadArgs::from_arg_matches(&matches));
    let has_open_field = std::env::args_os().any(surface::is_open_field);
    let args =
        args.map_err(|error| refused(&surface::without_secrets(error, has_open_field), tool))?;
    Ok((args, translation.differences))
}

/// The command `load` alone. If a flag occurs twice, the last one counts, so that flags before `--` win.
fn parser() -> Command {
    let command = Command::new("proofload load")
        .no_binary_name(true)
        .args_override_self(true);
    LoadArgs::augment_args(command)
        .mut_arg("duration", |duration| duration.overrides_with("requests"))
        .mut_arg("requests", |requests| requests.overrides_with("duration"))
}

/// The differences that mattered in this run.
fn mattering(differences: &[ToolDifference], windows: &[MeasuredWindow<'_>]) -> Vec<String> {
    let sum = |of: fn(&Counts) -> u64| {
        windows
            .iter()
            .map(|window| of(&window.slice.counts))
            .sum::<u64>()
    };
    let came = Came {
        timed_out: sum(|counts| counts.timed_out),
        not_good: sum(Counts::unexpected),
        lost: sum(|counts| counts.broken),
        answered: sum(|counts| counts.responses),
        processors: thread::available_parallelism().map_or(u64::MAX, |number| number.get() as u64),
    };
    let mattering = differences
        .iter()
        .filter(|difference| difference.when.met(&came));
    mattering
        .map(|difference| difference.text.clone())
        .collect()
}

/// Clap's message without its usage: the command line that it is about has just been printed.
fn refused(error: &clap::Error, tool: Tool) -> CliError {
    let text = error.to_string();
    let problem = text.split("\n\nUsage:").next().unwrap_or(&text);
    let problem = problem
        .strip_prefix("error: ")
        .unwrap_or(problem)
        .trim_end();
    CliError::usage(problem).hint(format!(
        "above stands what {}'s command line became",
        tool.name()
    ))
}

/// The flags before `--` except `--as` and `--records`, which is already in effect. `typed` is everything
/// after `load`.
fn given_before(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut given = Vec::new();
    let mut typed = typed.take_while(|argument| argument != "--");
    while let Some(argument) = typed.next() {
        if ["--as", "--records"].contains(&argument.as_str()) {
            typed.next();
        } else if !["--as=", "--records="]
            .iter()
            .any(|flag| argument.starts_with(flag))
        {
            given.push(argument);
        }
    }
    given
}

// Display of a measurement in progress: the current wait, a bar on a terminal, and a line for each of several
// steps.

/// Shorter runs do not show a bar.
const SHOWN_FROM: Duration = Duration::from_secs(2);
/// A longer wait for readiness is reported.
const PATIENCE: Duration = Duration::from_secs(2);
const RENEWED_EVERY: Duration = Duration::from_millis(100);
const BY_TIME: &str = "{wide_bar} {msg}";
const BY_COUNT: &str = "{wide_bar} {human_pos} of {human_len} responses, {eta} left";

/// The display of a measurement.
struct LoadView {
    plan: Plan,
    /// Number of finished slices.
    done: usize,
    /// Dropped when something happens.
    waiting: Option<Sender<()>>,
    /// The bar, which ends when the sender is dropped.
    bar: Option<(Sender<()>, JoinHandle<()>)>,
}

impl LoadView {
    /// Starts the display of a plan's measurement, whose slices report their progress to `stop`.
    fn begin(plan: Plan, stop: Stop) -> LoadView {
        let shown = plan
            .measure
            .as_ref()
            .filter(|_| io::stderr().is_terminal() && !print::is_quiet());
        let bar = shown.and_then(|measure| bar(measure, stop));
        LoadView {
            plan,
            done: 0,
            waiting: None,
            bar,
        }
    }

    fn show(&mut self, update: &Update<'_>) {
        self.waiting = None;
        match update.news {
            UpdateNews::Progress(Progress::Trial {
                doing: Doing::Starting,
                variant,
            }) => {
                self.waiting = self.plan.variants.get(variant).and_then(awaited);
            }
            UpdateNews::Progress(Progress::Trial {
                doing: Doing::MeasuringCapacity,
                variant,
            }) => {
                let (warm_up, window) = self
                    .plan
                    .measure
                    .as_ref()
                    .and_then(Measure::capacity)
                    .unwrap_or_default();
                print::tell!(
                    "measuring saturation: closed loop, {}, for {} after {} of warm-up",
                    many(
                        self.plan.variants[variant].load.settings.connections.into(),
                        "connection"
                    ),
                    seconds(window.as_secs_f64()),
                    seconds(warm_up.as_secs_f64())
                );
            }
            UpdateNews::Event(Event::Slice(slice)) => self.over(slice),
            UpdateNews::Event(_) | UpdateNews::Progress(_) => {}
        }
    }

    /// Removes the bar, so that only the report remains.
    fn end(self) {
        if let Some((until, thread)) = self.bar {
            drop(until);
            // The thread returns nothing.
            let _ = thread.join();
        }
    }

    /// Reports a finished slice, for users who wait for the others.
    fn over(&mut self, slice: &Slice) {
        let counts = &slice.counts;
        let slices = self.plan.measure.as_ref().map_or(1, Measure::slices);
        match (slice.kind, slice.asked.and_then(|asked| asked.open)) {
            (SliceKind::Capacity, _) => {
                let per_s =
                    counts.successful_in_window as f64 * 1e9 / counts.window_ns.max(1) as f64;
                print::tell!("saturation: {}", rate(per_s));
            }
            (SliceKind::Measured, Some(open)) if slices > 1 => {
                self.done += 1;
                let window = MeasuredWindow::alone(slice);
                let kept = window
                    .kept()
                    .map_or(String::new(), |kept| format!(": {}", kept.words()));
                let response = counts.open.as_ref().map(|open| &open.response);
                let p99 = response
                    .filter(|of| of.resolves(0.99))
                    .and_then(|of| of.quantile(0.99));
                let p99 = p99.map_or(String::new(), |p99| {
                    let sign = if p99.is_exact() { "" } else { "≥ " };
                    format!(", p99 {sign}{}", model::Quantity::ns(p99.ns()))
                });
                print::tell!("step {} of {slices}, {}{kept}{p99}", self.done, open.ask);
            }
            (
                SliceKind::Measured | SliceKind::WarmUp | SliceKind::Probe | SliceKind::Overload,
                _,
            ) => {}
        }
    }
}

/// A bar that a thread updates until the returned sender is dropped.
fn bar(measure: &Measure, stop: Stop) -> Option<(Sender<()>, JoinHandle<()>)> {
    let until = measure.until;
    let (length, template) = match until {
        Until::Elapsed(_) if measure.total() <= SHOWN_FROM => return None,
        Until::Elapsed(_) => (milliseconds(measure.total()), BY_TIME),
        Until::Requests(total) => (total, BY_COUNT),
    };
    let bar = ProgressBar::new(length).with_style(ProgressStyle::with_template(template).ok()?);
    let (sender, over) = mpsc::channel();
    let renew = move || {
        let began = Instant::now();
        while over.recv_timeout(RENEWED_EVERY) == Err(RecvTimeoutError::Timeout) {
            let elapsed = began.elapsed();
            match until {
                // The count of a possibly short run is shown after a while.
                Until::Requests(_) if elapsed < SHOWN_FROM => {}
                Until::Requests(_) => bar.set_position(stop.responses()),
                Until::Elapsed(_) => {
                    let left = Duration::from_millis(length).saturating_sub(elapsed);
                    let (left, responses) = (
                        seconds(left.as_secs_f64().ceil()),
                        many(stop.responses(), "response"),
                    );
                    bar.set_position(milliseconds(elapsed).min(length));
                    bar.set_message(format!("{left} left, {responses}"));
                }
            }
        }
        bar.finish_and_clear();
    };
    Some((
        sender,
        thread::Builder::new()
            .name("bar".into())
            .spawn(renew)
            .ok()?,
    ))
}

/// Reports what a variant waits for after [`PATIENCE`], unless the returned sender was dropped before.
fn awaited(variant: &Variant) -> Option<Sender<()>> {
    let entry = variant.entry_service()?;
    let (origin, limit) = (
        entry.url()?.origin(),
        seconds(entry.ready_timeout.as_secs_f64()),
    );
    let (waiting, over) = mpsc::channel();
    let tell = move || {
        if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            print::tell!("waiting for {origin} to be ready, for up to {limit}");
        }
    };
    // Without a thread nothing is reported.
    let _ = thread::Builder::new().name("patience".into()).spawn(tell);
    Some(waiting)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
