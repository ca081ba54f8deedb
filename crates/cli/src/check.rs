//! `proofload check`: what an experiment would do, without starting anything.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use model::Metric;
use plan::{
    Arrivals, Design, Launcher, Load, LookRule, Plan, Rate, Request, Service, Subject, Variant, Workers,
};
use report::{rate, seconds, share};
use stats::Rule;

use crate::against::{self, AgainstArgs};
use crate::{print, problems};

mod generators;
mod place;
mod power;

/// Flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The experiment file
    file: PathBuf,
    #[command(flatten)]
    against: AgainstArgs,
    /// Print the checked plan as JSON
    #[arg(long)]
    json: bool,
}

/// Reads the file and prints the plan.
///
/// # Errors
/// If the file has problems.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let plan = against::planned(problems::read_plan(&args.file)?, &args.against)?;
    if args.json {
        print::data(&format!("{}\n", serde_json::to_string_pretty(&plan)?))?;
    } else {
        print::data(&format!("{}{}", describe(&plan), power::lines(&plan)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan in words.
pub fn describe(plan: &Plan) -> String {
    let mut out = format!("{}\n\n", plan.question.as_deref().unwrap_or(&plan.name));
    if let Some(against) = &plan.against {
        let _ = writeln!(out, "against {}", against.describe());
        against.notes.iter().for_each(|note| _ = writeln!(out, "  note: {note}"));
        out.push('\n');
    }
    let _ = writeln!(out, "{} variants:", plan.variants.len());
    for variant in &plan.variants {
        let _ = writeln!(
            out,
            "  {}: {}, {} connections, {}{}",
            variant.name,
            stage(variant),
            variant.load.connections,
            sent(&variant.load),
            variant.load.network.as_ref().map(|link| format!(", over a link of {link}")).unwrap_or_default()
        );
    }
    out.push_str(&generators::lines(plan));
    out.push_str(&place::lines(plan));
    let _ = writeln!(out, "\n{} comparisons:", plan.comparisons.len());
    for comparison in &plan.comparisons {
        let _ = writeln!(out, "  {}", comparison.label);
    }
    if let Some(copy) = &plan.aa {
        let _ =
            writeln!(out, "and one that must show no difference, or the result is void:\n  {}", copy.label);
    }
    out.push_str(&gate(plan));
    let _ = writeln!(out, "\n{}", schedule(plan));
    out
}

/// What is started and what gets the load.
fn stage(variant: &Variant) -> String {
    match variant.deployed() {
        Some(deployed) => format!("starts nothing, load on {} (Kubernetes {deployed})", variant.entry),
        None => {
            let services: Vec<String> = variant.services.iter().map(started).collect();
            format!("starts {}, load on {}", services.join(" → "), variant.entry)
        }
    }
}

/// The limits of the gate, each with what it is about; nothing where there are none.
fn gate(plan: &Plan) -> String {
    let mut out = String::new();
    if !plan.gate.is_empty() {
        let _ = writeln!(out, "\n{} limits, for `proofload run --gate`:", plan.gate.len());
    }
    for entry in &plan.gate {
        let name = |subject: Subject| match subject {
            Subject::Comparison(index) => plan.comparisons[index].label.as_str(),
            Subject::Variant(index) => plan.variants[index].name.as_str(),
        };
        let about: Vec<&str> = plan.gated(entry, &plan.gate).into_iter().map(name).collect();
        let about = if about.is_empty() { "nothing in this experiment".to_owned() } else { about.join(", ") };
        let _ = writeln!(out, "  {}: {about}", entry.limit);
    }
    out
}

/// A service, how it is started where that is not simply its command, and where: `api (pm2-cluster, 4 workers, on ssh://bench-1)`.
fn started(service: &Service) -> String {
    let launcher = (service.launcher != Launcher::Exec).then(|| service.launcher.name().to_owned());
    let workers = service.workers.map(|workers| match workers {
        Workers::Cores => "a worker for each processor".to_owned(),
        Workers::Number(1) => "1 worker".to_owned(),
        Workers::Number(number) => format!("{number} workers"),
    });
    let place = service.host.as_ref().map(|host| format!("on {host}"));
    let how: Vec<String> = launcher.into_iter().chain(workers).chain(place).collect();
    if how.is_empty() { service.name.clone() } else { format!("{} ({})", service.name, how.join(", ")) }
}

fn schedule(plan: &Plan) -> String {
    let design = &plan.design;
    let (first_s, block_s) = lab::block_seconds_guess(plan);
    let capacity_s = lab::capacity_seconds_guess(design, plan.variants.len());
    let processes = if plan.loads_deployed() {
        "the same processes in all blocks"
    } else {
        "fresh processes in each block"
    };
    let how = if lab::take_turns(plan) {
        "all variants live together in a block and take turns of 20 ms or more"
    } else if lab::live_together(plan) {
        "all variants live together in a block and take turns, slice by slice"
    } else {
        "the variants of a block are started, measured and stopped one after the other"
    };
    let end = match design.looks {
        LookRule::Once => "",
        LookRule::Planned | LookRule::Always => ", less where all comparisons are decided earlier",
    };
    format!(
        "judged by {}, margin {}\n{}{how}; {processes}, order drawn from {}\n\
         the first block takes about {}, to watch the warm-up, the others about {}; {}\n\
         at most {} in all (the budget){}",
        judged_by(design),
        share(design.margin),
        open_loop(design, capacity_s),
        design.seed.map_or("a new seed".to_owned(), |seed| format!("seed {seed}")),
        seconds(first_s),
        seconds(block_s),
        looks(plan),
        seconds(design.budget.as_secs_f64()),
        if plan.comparisons.is_empty() { "" } else { end },
    )
}

/// What a variant sends: the request, or the several with their shares.
fn sent(load: &Load) -> String {
    if load.requests.is_empty() {
        return format!("{} {}", load.method, load.path);
    }
    let part = |request: &Request| load.share_of(&request.name).map(share).unwrap_or_default();
    let shared = load.requests.iter().map(|request| format!("{} {}", part(request), request.name));
    shared.collect::<Vec<_>>().join(", ")
}

/// Every metric that gets a verdict.
fn judged_by(design: &Design) -> String {
    let metric = |metric: Metric| {
        let row = metric.row();
        let of = design.endpoint.as_ref().filter(|_| metric.quantile().is_some());
        let of = of.map(|endpoint| format!(" of {}", endpoint.name)).unwrap_or_default();
        let better = if metric.wants_more() { "more" } else { "less" };
        format!("{}{of} ({}, {better} is better)", row.title, row.meaning)
    };
    let metrics: Vec<String> = design.metrics().map(metric).collect();
    metrics.join(", and by ")
}

/// A line on the rate, with what it takes to find it; none in closed loop.
fn open_loop(design: &Design, capacity_s: f64) -> String {
    let arrivals = match design.arrivals {
        Arrivals::Poisson => "Poisson",
        Arrivals::Constant => "constant",
    };
    let asked = match design.rate {
        None => return String::new(),
        Some(Rate::PerSecond(per_s)) => rate(per_s),
        Some(Rate::ShareOfCapacity(part)) => format!(
            "{} of what the slowest variant can do, measured before the first block in about {},",
            share(part),
            seconds(capacity_s)
        ),
    };
    let wanted = match design.most_wanting().1 {
        0.0 => String::new(),
        requests => {
            format!("; each trial is as long as {requests} requests take, if its slices are not longer")
        }
    };
    format!("open loop: {asked} with {arrivals} arrivals, the same for all variants{wanted}\n")
}

/// Blocks that fit into the budget, as guessed before anything is measured, and as the file allows.
fn blocks_guess(plan: &Plan) -> u32 {
    let design = &plan.design;
    let (first_s, block_s) = lab::block_seconds_guess(plan);
    let capacity_s = lab::capacity_seconds_guess(design, plan.variants.len());
    let budget_s = design.budget.as_secs_f64();
    let fit = 1 + ((budget_s - capacity_s - first_s) / block_s).max(0.0) as u32;
    design.blocks.map_or(fit, |blocks| blocks.min(fit))
}

/// The stop rule with so many blocks; `None` where they are too few for a verdict.
fn rule(plan: &Plan, blocks: u32) -> Option<Rule> {
    analysis::rule_of(&plan.design, blocks, plan.comparisons.len() * plan.design.metrics().count())
}

fn looks(plan: &Plan) -> String {
    let most = blocks_guess(plan);
    if plan.comparisons.is_empty() {
        let blocks = plan.design.blocks.unwrap_or(stats::BLOCKS_MIN).min(most);
        return format!("there are {blocks}, for nothing is compared");
    }
    match rule(plan, most).filter(|_| most >= stats::BLOCKS_MIN) {
        Some(Rule::Planned(looks)) => {
            let at: Vec<String> = looks.looks().iter().map(u32::to_string).collect();
            format!("about {} fit the budget, looked at after {} of them", looks.last(), at.join(", "))
        }
        Some(Rule::Always { .. }) => {
            format!(
                "about {most} fit the budget, looked at after each of them from the {}th on",
                stats::BLOCKS_MIN
            )
        }
        Some(Rule::Once { .. }) => format!("about {most} fit the budget, looked at once, after the last"),
        None => format!("about {most} fit the budget, too few for a verdict: raise design.budget"),
    }
}
