//! `proofload gate`, and `run --gate` after the run: limits that pass, fail or are inconclusive, as an exit
//! code.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use analysis::Ruling;
use clap::Args;
use plan::{FlagSetting, GateEntry, Limit, Metric, Plan};
use record::{EndReason, Record};
use report::{Form, Gated, Report, markdown};

use crate::exit::{self, BROKEN, CliError, OPEN, VOID};
use crate::print::{self, AmountArgs, FormArgs};
use crate::{live, records, report as reports};

/// GitHub Actions discards a step summary larger than a mebibyte.
const SUMMARY_BYTES_MAX: u64 = 1_000_000;

/// Flags of `gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    #[arg(help = records::HELP)]
    record: PathBuf,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    form: FormArgs,
}

/// Flags that define limits and the output of the result.
#[derive(Debug, Args)]
pub struct Flags {
    /// Largest permitted change for the worse of each metric that gets a verdict, for example 3%
    #[arg(long, value_name = "PERCENT", value_parser = plan::percentage)]
    max_regression: Option<f64>,
    /// An additional limit, for example "p99 < 50ms" or "throughput > -3%". May be repeated
    #[arg(long = "limit", value_name = "LIMIT", value_parser = plan::limit)]
    pub limits: Vec<Limit>,
    /// Exit 0 instead of 5 if a limit is inconclusive, although it is not proven
    #[arg(long)]
    allow_open: bool,
    /// In GitHub Actions, write no step summary and no annotations
    #[arg(long)]
    no_github: bool,
}

impl Flags {
    pub fn of(limits: &[Limit]) -> Flags {
        Flags {
            max_regression: None,
            limits: limits.to_vec(),
            allow_open: false,
            no_github: true,
        }
    }

    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let Flags {
            max_regression,
            limits,
            allow_open,
            no_github,
        } = self;
        exit::given(&[
            (max_regression.is_some(), "--max-regression"),
            (!limits.is_empty(), "--limit"),
            (*allow_open, "--allow-open"),
            (*no_github, "--no-github"),
        ])
    }

    /// These flags, if they request a gate. `--no-github` alone does not.
    pub fn asked(&self) -> Option<&Flags> {
        let Flags {
            max_regression,
            limits,
            allow_open,
            no_github: _,
        } = self;
        (max_regression.is_some() || !limits.is_empty() || *allow_open).then_some(self)
    }

    /// The flags with which `run` applies the saved file's limits in the same way. Empty if none was given.
    pub fn again(&self) -> Vec<String> {
        // Limits are in the file, and the output is not part of the check.
        let Flags {
            max_regression,
            limits: _,
            allow_open,
            no_github: _,
        } = self;
        let mut words = Vec::from_iter(self.asked().map(|_| "--gate".to_owned()));
        if let Some(share) = max_regression {
            words.extend(["--max-regression".to_owned(), percent(*share)]);
        }
        words.extend(allow_open.then(|| "--allow-open".to_owned()));
        words
    }

    /// The limits as keys of the experiment file's `[gate]`. A maximum regression depends on the plan and is
    /// not included.
    pub fn settings(&self) -> Vec<FlagSetting> {
        let mut settings: Vec<FlagSetting> = Vec::new();
        for limit in &self.limits {
            let figure = limit.figure.name();
            let value = toml::Value::String(limit.value());
            let from = format!("--limit '{limit}'");
            match settings
                .iter_mut()
                .find(|setting| setting.path[1] == figure)
            {
                Some(FlagSetting {
                    value: toml::Value::Array(values),
                    ..
                }) => values.push(value),
                _ => settings.push(FlagSetting::new(&["gate", figure], vec![value], from)),
            }
        }
        settings
    }
}

pub fn run(args: &GateArgs) -> anyhow::Result<u8> {
    let mut record = records::opened(&args.record)?;
    // Limits decide what is judged, and so what makes a record invalid.
    let plan = &mut record.header.plan;
    let added = KnownLimits::of(plan).added_by(&args.flags)?.into_iter();
    plan.gate.extend(added.map(|(limit, _)| GateEntry {
        limit,
        of: None,
        line: None,
    }));
    check(plan)?;
    let conclusion = analysis::conclude(&record);
    let gate = analysis::gated(&record, &conclusion, &record.header.plan.gate);
    let gated = Gated {
        record: &record,
        gate: &gate,
        allow_open: args.flags.allow_open,
    };
    let form = args.form.form();
    print::report(&gated, form, None)?;
    if !args.flags.no_github {
        tell_github(&gated, *form == report::TEXT)?;
    }
    Ok(code(&gated))
}

/// How the result of a run with a gate is printed.
#[derive(Debug, Clone, Copy)]
pub enum GateOutput {
    /// As the last events, after the report.
    Events,
    /// As a report in this form.
    Report(&'static Form, AmountArgs),
}

/// Prints the report of a run that has just ended, followed by the results of its limits.
pub fn after_run(record: &Record, flags: &Flags, output: GateOutput) -> anyhow::Result<u8> {
    let conclusion = analysis::conclude(record);
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated {
        record,
        gate: &gate,
        allow_open: flags.allow_open,
    };
    let mut is_text = false;
    match output {
        GateOutput::Events => {
            print::data(&live::gate_event(record, report::with_format(gated.data())))?
        }
        GateOutput::Report(form, _) if *form == report::JUNIT => print::report(&gated, form, None)?,
        GateOutput::Report(form, amount) => {
            reports::print(record, form, amount)?;
            is_text = *form == report::TEXT;
            if is_text {
                print::data("\n")?;
                print::report(&gated, &report::TEXT, None)?;
            } else {
                tell(&gated);
            }
        }
    }
    if !flags.no_github {
        tell_github(&gated, is_text)?;
    }
    Ok(code(&gated))
}

/// Prints the results of the limits. With output for programs this is only a message, because the exit code
/// has the result.
pub fn tell(gated: &Gated<'_>) {
    if !print::is_quiet() {
        print::coloured(report::text(&gated.document(), print::WIDTH).trim_end());
    }
}

/// Limits of a plan before those of flags, and the metrics that a maximum regression is about.
#[derive(Debug)]
pub struct KnownLimits<'a> {
    pub entries: Vec<&'a GateEntry>,
    pub metrics: Vec<Metric>,
    pub margin: f64,
    pub is_compared: bool,
}

impl KnownLimits<'_> {
    pub fn of(plan: &Plan) -> KnownLimits<'_> {
        KnownLimits {
            entries: plan.gate.iter().collect(),
            metrics: plan.design.metrics().collect(),
            margin: plan.design.margin,
            is_compared: !plan.comparisons.is_empty(),
        }
    }

    /// Limits that flags add, each with its flag. Without any limits, the margin is the limit for a change
    /// for the worse.
    fn added_by(&self, flags: &Flags) -> Result<Vec<(Limit, String)>, CliError> {
        let given = flags
            .max_regression
            .map(|share| (share, format!("--max-regression {}", percent(share))));
        let is_bare = self.entries.is_empty() && flags.limits.is_empty();
        let margin = || (is_bare && self.is_compared).then(|| (self.margin, "--gate".to_owned()));
        let mut added = Vec::new();
        if let Some((share, flag)) = given.or_else(margin) {
            let limits = plan::max_regression(self.metrics.iter().copied(), share);
            added.extend(limits.map(|limit| (limit, flag.clone())));
        }
        let limits = flags.limits.iter();
        added.extend(limits.map(|limit| (*limit, format!("--limit '{limit}'"))));
        if is_bare && added.is_empty() {
            return Err(CliError::usage("there is no limit to judge by").hint(
                "nothing is compared: name another commit by --against REF, or bound an amount, such as --limit \"throughput > 900/s\"",
            ));
        }
        // A record already contains the limits from its flags.
        let is_known = |limit: &Limit| {
            let mut entries = self.entries.iter();
            entries.any(|known| known.limit == *limit && known.of.is_none())
        };
        let mut distinct: Vec<(Limit, String)> = Vec::new();
        for (limit, flag) in added {
            if !is_known(&limit) && distinct.iter().all(|(other, _)| *other != limit) {
                distinct.push((limit, flag));
            }
        }
        Ok(distinct)
    }

    /// The limits that flags add, as settings of the experiment.
    pub fn settings(&self, flags: &Flags) -> Result<Vec<FlagSetting>, CliError> {
        let setting = |(limit, flag): (Limit, String)| {
            FlagSetting::new(&["gate", limit.figure.name()], limit.value(), flag).added()
        };
        Ok(self.added_by(flags)?.into_iter().map(setting).collect())
    }
}

/// A share in the notation of flags: `3%`.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

/// Checks that each limit of a plan is about something that the plan measures.
pub fn check(plan: &Plan) -> Result<(), CliError> {
    plan.gate
        .iter()
        .try_for_each(|entry| check_entry(plan, entry))
}

fn check_entry(plan: &Plan, entry: &GateEntry) -> Result<(), CliError> {
    let limit = &entry.limit;
    let of = entry
        .of
        .as_ref()
        .map(|name| format!(" of {name}"))
        .unwrap_or_default();
    let (what, hint) = if !plan.measures(limit.figure) {
        let (why, hint) = if plan.hides(limit.figure) {
            (
                "its service runs already, and of such a one there are responses alone",
                "bound throughput, a response time or `failed`",
            )
        } else {
            plan.why_never(limit.figure)
        };
        (
            format!(
                ": this experiment never measures {}: {why}",
                limit.figure.name()
            ),
            hint,
        )
    } else if !plan.gated(entry, &plan.gate).is_empty() {
        return Ok(());
    } else if plan.comparisons.is_empty() && limit.bound.is_change() {
        (
            format!("{of} is about a comparison, and this experiment compares nothing"),
            "compare with the state before the change: proofload run FILE --against REF; or bound an amount",
        )
    } else {
        (
            format!("{of} is about nothing in this experiment"),
            "other limits for the same figure name all of its variants or comparisons, or the name is not one of them",
        )
    };
    Err(CliError::usage(format!("{limit}{what}")).hint(hint))
}

pub fn code(gated: &Gated<'_>) -> u8 {
    if let Some(code) = gated.record.end().and_then(EndReason::exit_code) {
        return code;
    }
    match (&gated.gate.unfit, gated.gate.ruling()) {
        (Some((unfit, _)), _) => unfit.exit_code(),
        (None, None) => VOID,
        (None, Some(Ruling::Fail)) => BROKEN,
        (None, Some(Ruling::Inconclusive)) if !gated.lets_pass() => OPEN,
        (None, Some(Ruling::Inconclusive | Ruling::Pass)) => 0,
    }
}

/// Reports to GitHub Actions if it runs this program: appends the report to the step's summary, and prints
/// annotations for the runner, on stdout if that contains no other data.
fn tell_github(gated: &Gated<'_>, stdout_is_free: bool) -> Result<(), CliError> {
    if let Some(path) = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty())
        && let Err(error) = append(Path::new(&path), gated)
    {
        print::tell!(
            "{}: the step's summary was not written: {error}",
            path.display()
        );
    }
    if print::is_read_by_runner() {
        let annotations = gated.annotations(file_of(&gated.record.header.experiment).as_deref());
        // The runner reads both streams, while programs that read our JSON only read stdout.
        print::annotations(&annotations, stdout_is_free)?;
    }
    Ok(())
}

fn append(path: &Path, gated: &Gated<'_>) -> io::Result<()> {
    let report = reports::drawn_from(gated.record, |of| {
        markdown(&reports::measured(of, None).document())
    });
    let gate = markdown(&gated.document());
    let there = fs::metadata(path).map_or(0, |file| file.len());
    let mut text = format!("{report}\n{gate}\n");
    if there + text.len() as u64 > SUMMARY_BYTES_MAX {
        text = format!("{gate}\n");
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// The experiment file as a path in the repository. `None` if it is outside, or stands for a command.
fn file_of(experiment: &str) -> Option<String> {
    let path = Path::new(experiment);
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_relative() {
        return path.extension().map(|_| path.display().to_string());
    }
    Some(
        path.strip_prefix(env::var_os("GITHUB_WORKSPACE")?)
            .ok()?
            .display()
            .to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn to_tell_nobody_asks_for_no_gate() {
        let flags = Flags::of(&[]);
        assert!(flags.asked().is_none() && flags.again().is_empty());
        assert!(
            Flags {
                max_regression: Some(0.03),
                ..flags
            }
            .asked()
            .is_some()
        );
    }
}

#[cfg(test)]
mod ci_files;
