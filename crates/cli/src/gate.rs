//! `proofload gate`, and `run --gate` after the run: limits that pass, fail or are inconclusive, as an exit
//! code.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

use analysis::{Conclusion, Ruling, Unfit};
use clap::Args;
use plan::{DraftSetting, GateEntry, Limit, Plan};
use record::Record;
use report::{Gated, Report, markdown};

use crate::exit::{self, BROKEN, CliError, INTERRUPTED, OPEN, VOID};
use crate::print::{self, FormArgs};
use crate::{live, records, report as reports, run};

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
            words.extend([
                "--max-regression".to_owned(),
                format!("{}%", (share * 1e8).round() / 1e6),
            ]);
        }
        words.extend(allow_open.then(|| "--allow-open".to_owned()));
        words
    }

    /// The limits as keys of the experiment file's `[gate]`. A maximum regression depends on the plan and is
    /// not included.
    pub fn settings(&self) -> Vec<DraftSetting> {
        let mut settings: Vec<DraftSetting> = Vec::new();
        for limit in &self.limits {
            let figure = limit.figure.name();
            let value = toml::Value::String(limit.value());
            let from = format!("--limit '{limit}'");
            match settings
                .iter_mut()
                .find(|setting| setting.path[1] == figure)
            {
                Some(DraftSetting {
                    value: toml::Value::Array(values),
                    ..
                }) => values.push(value),
                _ => settings.push(DraftSetting::new(&["gate", figure], vec![value], from)),
            }
        }
        settings
    }
}

pub fn run(args: &GateArgs) -> anyhow::Result<u8> {
    let mut record = records::opened(&args.record)?;
    // Limits decide what is judged, and so what makes a record invalid.
    prepare(&mut record.header.plan, &args.flags)?;
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
    Ok(code(&gated, &conclusion))
}

/// Prints the report of a run that has just ended, followed by the results of its limits.
pub fn after_run(record: &Record, flags: &Flags, run: &run::RunFlags) -> anyhow::Result<u8> {
    let conclusion = analysis::conclude(record);
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated {
        record,
        gate: &gate,
        allow_open: flags.allow_open,
    };
    let form = run.form.form();
    let is_text = !run.events && *form == report::TEXT;
    if run.events {
        // The report was the last event of the run.
        print::data(&live::gate_event(record, report::with_format(gated.data())))?;
    } else if *form == report::JUNIT {
        print::report(&gated, form, None)?;
    } else {
        reports::print(record, form, run.amount)?;
        if is_text {
            print::data("\n")?;
            print::report(&gated, &report::TEXT, None)?;
        } else {
            tell(&gated);
        }
    }
    if !flags.no_github {
        tell_github(&gated, is_text)?;
    }
    Ok(code(&gated, &conclusion))
}

/// Prints the results of the limits. With output for programs this is only a message, because the exit code
/// has the result.
pub fn tell(gated: &Gated<'_>) {
    if !print::is_quiet() {
        print::coloured(report::text(&gated.document(), print::WIDTH).trim_end());
    }
}

/// Adds the limits of the flags to the plan's, and checks that each is measured. Without any limits, the
/// margin is the limit for a change for the worse.
pub fn prepare(plan: &mut Plan, flags: &Flags) -> Result<(), CliError> {
    let regression = flags
        .max_regression
        .map(|share| plan::max_regression(&plan.design, share));
    let limits = flags.limits.iter().map(|limit| GateEntry {
        limit: *limit,
        of: None,
        line: None,
    });
    for entry in regression.into_iter().flatten().chain(limits) {
        // A record already contains the limits from its flags.
        if !plan
            .gate
            .iter()
            .any(|known| known.limit == entry.limit && known.of.is_none())
        {
            plan.gate.push(entry);
        }
    }
    if plan.gate.is_empty() && !plan.comparisons.is_empty() {
        plan.gate = plan::max_regression(&plan.design, plan.design.margin);
    }
    if plan.gate.is_empty() {
        return Err(CliError::usage("there is no limit to judge by").hint(
            "nothing is compared: name another commit by --against REF, or bound an amount, such as --limit \"throughput > 900/s\"",
        ));
    }
    plan.gate.iter().try_for_each(|entry| check(plan, entry))
}

fn check(plan: &Plan, entry: &GateEntry) -> Result<(), CliError> {
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

pub fn code(gated: &Gated<'_>, conclusion: &Conclusion) -> u8 {
    match (&gated.gate.unfit, gated.gate.ruling()) {
        (Some((Unfit::Failed, _)), _) => exit::of_record(gated.record, conclusion),
        (Some((Unfit::Interrupted, _)), _) => INTERRUPTED,
        (Some((Unfit::Invalid | Unfit::Unfinished, _)), _) | (None, None) => VOID,
        (Some((Unfit::TooFewBlocks, _)), _) => OPEN,
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
