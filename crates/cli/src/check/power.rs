//! How long a true difference of the margin takes to be found: from the spread of an earlier record, or for assumed ones.

use std::path::{Path, PathBuf};

use analysis::POWER;
use plan::Plan;
use report::{seconds, share};
use stats::Rule;

use super::{blocks_guess, rule};
use crate::records::newest_first;

/// Spreads of the blocks' log-ratios that are assumed where none is known: a quiet machine, a usual one, a noisy one.
const ASSUMED: [f64; 3] = [0.01, 0.03, 0.10];
/// Records that are opened in search of one that tells the spread.
const OPENED_MAX: usize = 8;

const NEVER: &str = "no time that a run can have";

/// A spread of blocks, and the record that showed it.
struct Known {
    sd_log: f64,
    record: PathBuf,
}

/// What is said below the schedule; nothing where nothing is compared.
pub fn lines(plan: &Plan) -> String {
    if plan.comparisons.is_empty() {
        return String::new();
    }
    let of = format!(
        "\na true difference of the margin ({}) in {} is found in {:.0} of 10 runs within",
        share(plan.design.margin),
        plan.design.metric.name(),
        POWER * 10.0
    );
    match known(plan) {
        Some(Known { sd_log, record }) => format!(
            "{of} {},\nif ratios of blocks spread by {} as in {}\n",
            time(plan, sd_log),
            share(sd_log),
            record.display()
        ),
        None => {
            let line =
                |sd: &f64| format!("  {} if ratios of blocks spread by {}\n", time(plan, *sd), share(*sd));
            let lines: String = ASSUMED.iter().map(line).collect();
            format!("{of}\n{lines}how much they spread here is measured by `proofload calibrate`\n")
        }
    }
}

/// Blocks that find the margin, in words, with the time they take by the same guess as the schedule's.
fn time(plan: &Plan, sd_log: f64) -> String {
    let most = blocks_guess(plan);
    // Where the budget is too small for a verdict, the smallest run's rule.
    let Some(rule) = rule(plan, most.max(stats::BLOCKS_MIN)) else { return NEVER.to_owned() };
    let Some(blocks) = blocks_needed(plan, &rule, sd_log) else { return NEVER.to_owned() };
    let (first_s, block_s) = lab::block_seconds_guess(plan);
    let capacity_s = lab::capacity_seconds_guess(&plan.design, plan.variants.len());
    let time_s = capacity_s + first_s + f64::from(blocks.saturating_sub(1)) * block_s;
    let beyond = if blocks > rule.last().unwrap_or(most).min(most) { ", more than the budget" } else { "" };
    format!("about {blocks} blocks, {}{beyond}", seconds(time_s))
}

/// Blocks after which it is found, which is at a look.
fn blocks_needed(plan: &Plan, rule: &Rule, sd_log: f64) -> Option<u32> {
    let blocks = stats::blocks_for(plan.design.margin.ln_1p(), sd_log, POWER, rule)?;
    let look = match rule {
        Rule::Planned(looks) => looks.looks().iter().copied().find(|look| *look >= blocks),
        Rule::Once { blocks: last, .. } => Some(*last).filter(|last| *last >= blocks),
        Rule::Always { .. } => None,
    };
    look.or(Some(blocks))
}

/// The spread in the newest record of this experiment, be it a calibration or a run, that has an estimate of its metric.
fn known(plan: &Plan) -> Option<Known> {
    let begins = format!("{}-", plan.name);
    let named =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins));
    let ours = newest_first().into_iter().filter(|path| named(path));
    ours.take(OPENED_MAX).find_map(|record| Some(Known { sd_log: sd_log(plan, &record)?, record }))
}

/// The largest spread among a record's comparisons; `None` where it has no estimate, is void, or belongs to another experiment.
fn sd_log(plan: &Plan, directory: &Path) -> Option<f64> {
    // A name may begin like another.
    let record = record::open(directory).ok().filter(|record| record.header.plan.name == plan.name)?;
    let conclusion = analysis::conclude(&record);
    let of_metric = conclusion.comparisons.iter().filter(|found| found.metric == plan.design.metric);
    of_metric.filter_map(|found| Some(found.estimate.as_ref()?.sd_log)).reduce(f64::max)
}
