//! `proofload history trend`: which records are joined. Where levels change is `audit`'s work, how it looks `report`'s.

use std::process::ExitCode;

use analysis::{Asked, Dated, Essentials, Trend};
use clap::Args;
use model::Metric;
use report::history::{Listed, Trended};

use super::{gathered, known, marked};
use crate::exit::Failed;
use crate::{print, records};

/// Flags of `history trend`.
#[derive(Debug, Args)]
pub struct TrendArgs {
    /// Name of the experiment
    experiment: String,
    /// throughput, cpu_per_request, peak_memory, p50, p90, p99 or p99.9 [default: that of the newest record's verdict]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    metric: Option<Metric>,
    /// Only this variant, and the comparisons that it is in
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// The machine, by its letter in `proofload history` [default: that of the newest record]
    #[arg(long, value_name = "LETTER")]
    machine: Option<String>,
    /// At most so many records one below the other, the newest
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    /// For other programs
    #[arg(long)]
    json: bool,
    /// One row a point, for a spreadsheet
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// Joins the experiment's records of one machine, and prints them.
///
/// # Errors
/// If there is no such experiment, variant, machine or figure, or stdout cannot be written.
pub fn run(args: &TrendArgs) -> anyhow::Result<ExitCode> {
    let history = gathered()?;
    known(&history, &args.experiment)?;
    let all = marked(&history);
    let of_it: Vec<(&Listed<'_>, &Essentials)> = all
        .iter()
        .filter_map(|listed| Some((listed, listed.found.ok()?)))
        .filter(|(_, found)| found.experiment == args.experiment)
        .collect();
    let newest = of_it.last().and_then(|(listed, _)| listed.machine.clone());
    let machine = args.machine.clone().or(newest).unwrap_or_default();
    let on = |listed: &Listed<'_>| {
        listed.machine.as_deref().is_some_and(|mark| mark.eq_ignore_ascii_case(&machine))
    };
    let joined: Vec<(&Listed<'_>, &Essentials)> =
        of_it.iter().filter(|(listed, _)| on(listed)).copied().collect();
    let Some((last, newest)) = joined.last() else {
        let marks: Vec<&str> = of_it.iter().filter_map(|(listed, _)| listed.machine.as_deref()).collect();
        return Err(no_machine(&machine, &marks).into());
    };
    let dated: Vec<Dated<'_>> =
        joined.iter().map(|(listed, essentials)| Dated { name: listed.name, essentials }).collect();
    let asked = Asked { metric: args.metric, variant: args.variant.as_deref() };
    let trend = analysis::trend(&dated, asked);
    missing(&dated, asked, &trend)?;
    let trended = Trended {
        experiment: &args.experiment,
        trend: &trend,
        machine: (last.machine.as_deref().unwrap_or_default(), &newest.environment),
        elsewhere: of_it.len() - joined.len(),
        rows: args.limit,
    };
    let form = if args.csv { &report::CSV } else { print::form(args.json) };
    print::report(&trended, form, None)?;
    Ok(ExitCode::SUCCESS)
}

fn metric(text: &str) -> Result<Metric, String> {
    let names = || Metric::ALL.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
    Metric::named(text).ok_or_else(|| format!("the metrics are {}", names()))
}

fn no_machine(asked: &str, marks: &[&str]) -> Failed {
    let mut marks = marks.to_vec();
    marks.sort_unstable();
    marks.dedup();
    match marks.as_slice() {
        [] => Failed::usage("none of its records can be read")
            .hint("`proofload history` tells what is wrong with each"),
        marks => Failed::usage(format!("--machine: none of its records was made on `{asked}`")).hint(
            format!("they were made on {}; `proofload history` tells what these are", marks.join(", ")),
        ),
    }
}

/// Where nothing is left to show: because no record has what was asked for, and which there is. Where records are void or unfinished that
/// is told by what is printed.
fn missing(dated: &[Dated<'_>], asked: Asked<'_>, trend: &Trend) -> Result<(), Failed> {
    let figures = || dated.iter().flat_map(|dated| &dated.essentials.figures);
    let compared = || dated.iter().flat_map(|dated| &dated.essentials.compared);
    let variants = figures().map(|figure| figure.variant.as_str());
    let variants: Vec<&str> =
        distinct(variants.chain(compared().flat_map(|one| one.of.iter().map(String::as_str))));
    if let Some(variant) = asked.variant.filter(|variant| !variants.contains(variant)) {
        let near = records::alike(variant, variants.iter().copied());
        let told = if near.is_empty() { variants } else { near };
        return Err(Failed::usage(format!("--variant: none of its records has a variant `{variant}`"))
            .hint(format!("there is {}", told.join(", "))));
    }
    let there = distinct(figures().map(|figure| figure.metric.name()));
    if trend.lines.is_empty() && !there.is_empty() && !there.contains(&trend.metric.name()) {
        return Err(Failed::usage(format!(
            "--metric: none of its records has figures of {}",
            trend.metric.name()
        ))
        .hint(format!("there is {}", there.join(", "))));
    }
    Ok(())
}

fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}
