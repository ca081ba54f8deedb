//! `proofload gate`, and what `run --gate` does with a record once it is there: limits that pass, fail or are inconclusive, as an exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use analysis::{Conclusion, Gate, Ruling, Unfit};
use clap::Args;
use plan::{Bound, GateEntry, Limit, Plan};
use record::Record;
use report::{Form, Gated, Report};

use crate::exit::{self, BROKEN, Failed, INTERRUPTED, OPEN, VOID};
use crate::{live, print, records};

mod github;

/// Flags of `gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    #[arg(help = records::HELP)]
    record: PathBuf,
    #[command(flatten)]
    flags: Flags,
    /// Form of what is printed
    #[arg(long, value_parser = print::forms(), default_value = "text")]
    format: &'static Form,
    /// The same as --format json
    #[arg(long)]
    json: bool,
}

/// Flags that say which limits there are, and what becomes of the answer.
#[derive(Debug, Args)]
pub struct Flags {
    /// Largest change for the worse of each metric that gets a verdict, for example 3%
    #[arg(long, value_name = "PERCENT", value_parser = plan::percentage)]
    max_regression: Option<f64>,
    /// A limit besides those of the file, for example "p99 < 50ms" or "throughput > -3%"; may be given several times
    #[arg(long = "limit", value_name = "LIMIT", value_parser = plan::limit)]
    limits: Vec<Limit>,
    /// Let pass what is inconclusive: exit code 0 where the interval is too wide to tell. Nobody has shown then that the limit holds
    #[arg(long)]
    allow_open: bool,
    /// No step summary and no annotations where GitHub Actions runs it
    #[arg(long)]
    no_github: bool,
}

impl Flags {
    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        match self {
            Flags { max_regression: Some(_), .. } => Some("--max-regression"),
            Flags { limits, .. } if !limits.is_empty() => Some("--limit"),
            Flags { allow_open: true, .. } => Some("--allow-open"),
            Flags { no_github: true, .. } => Some("--no-github"),
            _ => None,
        }
    }

    /// The limits that they set for a plan.
    fn entries(&self, plan: &Plan) -> Vec<GateEntry> {
        let regression = self.max_regression.map(|share| plan::max_regression(&plan.design, share));
        let limits = self.limits.iter().map(|limit| GateEntry { limit: *limit, of: None, line: None });
        regression.into_iter().flatten().chain(limits).collect()
    }
}

/// Opens the record, holds the limits against it, and prints what they came to.
///
/// # Errors
/// If there is no such record, no limit, or one that this record cannot be held against.
pub fn run(args: &GateArgs) -> anyhow::Result<ExitCode> {
    let record = records::opened(&args.record)?;
    let mut plan = record.header.plan.clone();
    prepare(&mut plan, &args.flags)?;
    let conclusion = analysis::conclude(&record);
    let gate = analysis::gated(&record, &conclusion, &plan.gate);
    let gated = Gated { record: &record, gate: &gate, allow_open: args.flags.allow_open };
    let form = if args.json { &report::JSON } else { args.format };
    print::report(&gated, form, None)?;
    if !args.flags.no_github {
        github::tell(&gated, &conclusion, *form == report::TEXT)?;
    }
    Ok(code(&gated, &conclusion))
}

/// Prints the report of a run that has just ended, and below it what its limits came to.
///
/// # Errors
/// If stdout cannot be written.
pub fn after_run(record: &Record, flags: &Flags, json: bool) -> anyhow::Result<ExitCode> {
    let conclusion = analysis::conclude(record);
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated { record, gate: &gate, allow_open: flags.allow_open };
    if json {
        // The report was the last event of the run itself.
        print::data(&live::gate_event(record, gated.data()))?;
    } else {
        crate::report::print(record)?;
        print::data("\n")?;
        print::report(&gated, &report::TEXT, None)?;
    }
    if !flags.no_github {
        github::tell(&gated, &conclusion, !json)?;
    }
    Ok(code(&gated, &conclusion))
}

/// Adds the limits of the flags to the plan's, and makes sure that there are some, each about something that is measured.
///
/// # Errors
/// If there are none, or one is about nothing.
pub fn prepare(plan: &mut Plan, flags: &Flags) -> Result<(), Failed> {
    for entry in flags.entries(plan) {
        // A record has the limits of the flags that it was made with.
        if !plan.gate.iter().any(|known| known.limit == entry.limit && known.of.is_none()) {
            plan.gate.push(entry);
        }
    }
    if plan.gate.is_empty() {
        let failed = Failed::usage("there is no limit to judge by");
        return Err(failed.hint(
            "--max-regression 3%, --limit \"p99 < 50ms\", or a section [gate] in the experiment file: `throughput = \"> -3%\"`",
        ));
    }
    plan.gate.iter().try_for_each(|entry| check(plan, entry))
}

fn check(plan: &Plan, entry: &GateEntry) -> Result<(), Failed> {
    let limit = &entry.limit;
    if !plan.measures(limit.figure) {
        let failed =
            Failed::usage(format!("{limit}: this experiment never measures {}", limit.figure.name()));
        return Err(failed.hint(if plan.hides(limit.figure) {
            "its service runs already, and of such a one there are responses alone: bound throughput, a response time or `failed`"
        } else if limit.figure.wants_more() {
            "in open loop throughput is the rate that is given; bound a response time or cpu_per_request"
        } else {
            "response times are measured in open loop: set `design.rate`, or a metric such as \"p99\""
        }));
    }
    if !plan.gated(entry, &plan.gate).is_empty() {
        return Ok(());
    }
    let of = entry.of.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
    Err(match limit.bound {
        Bound::Change(_) if plan.comparisons.is_empty() => {
            Failed::usage(format!("{limit}{of} is about a comparison, and this experiment compares nothing"))
                .hint("compare with the state before the change: proofload run FILE --against REF; or bound an amount")
        }
        _ => Failed::usage(format!("{limit}{of} is about nothing in this experiment"))
            .hint("other limits for the same figure name all of its variants or comparisons, or the name is not one of them"),
    })
}

/// The exit code of a gate.
fn code(gated: &Gated<'_>, conclusion: &Conclusion) -> ExitCode {
    let Gate { unfit, .. } = gated.gate;
    let code = match (unfit, gated.gate.ruling()) {
        (Some((Unfit::Failed, _)), _) => return exit::of_record(gated.record, conclusion),
        (Some((Unfit::Interrupted, _)), _) => INTERRUPTED,
        (Some((Unfit::Void | Unfit::Unfinished, _)), _) | (None, None) => VOID,
        (None, Some(Ruling::Broken)) => BROKEN,
        (None, Some(Ruling::Open)) if !gated.allow_open => OPEN,
        (None, Some(Ruling::Open | Ruling::Kept)) => return ExitCode::SUCCESS,
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod ci_files;
