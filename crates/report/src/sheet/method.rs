//! How it was measured, in words: blocks, interval, trials, load and machine.

use audit::Conclusion;
use plan::Arrivals;
use record::{EndReason, RateChosen, Record};

use crate::figure::{rate, seconds, share};

/// Each line a name and a text.
pub(super) fn method(record: &Record, conclusion: &Conclusion) -> Vec<(String, String)> {
    let mut lines = vec![("blocks".to_owned(), blocks_line(record, conclusion))];
    if let Some(text) = interval_line(conclusion) {
        lines.push(("interval".to_owned(), text));
    }
    if let Some(text) = trial_line(record) {
        lines.push(("trial".to_owned(), text));
    }
    if let Some(text) = load_line(record) {
        lines.push(("load".to_owned(), text));
    }
    lines.push(("machine".to_owned(), machine_line(record)));
    lines.push(("record".to_owned(), record.directory.display().to_string()));
    lines
}

fn blocks_line(record: &Record, conclusion: &Conclusion) -> String {
    let end = match record.ended.as_ref() {
        Some(ended) => format!("{} after {}", end_text(&ended.reason), seconds(ended.seconds)),
        None => "the run did not end by itself: it was killed, or is still going on".to_owned(),
    };
    format!("{} of fresh processes, order random from seed {}; {end}", conclusion.blocks, record.header.seed)
}

fn interval_line(conclusion: &Conclusion) -> Option<String> {
    let estimate = conclusion.comparisons.iter().find_map(|comparison| comparison.estimate.as_ref())?;
    Some(format!(
        "estimate ± {:.2} standard errors over blocks: 95 % for all looks and comparisons together",
        estimate.critical_t
    ))
}

fn end_text(reason: &EndReason) -> &'static str {
    match reason {
        EndReason::Decided => "every comparison was decided",
        EndReason::LastLook => "the last look was taken",
        EndReason::BudgetSpent => "no further block fitted the budget",
        EndReason::BudgetTooSmall { .. } => "stopped, because the budget holds too few blocks,",
        EndReason::Measured => "ended as planned",
        EndReason::Interrupted => "interrupted",
        EndReason::Void(_) => "stopped as void",
        EndReason::GeneratorFailed(_) => "stopped, because the load generator failed,",
        EndReason::ServiceFailed(_) => "stopped, because a service failed,",
    }
}

fn trial_line(record: &Record) -> Option<String> {
    let warm_up = record.warm_up.as_ref()?;
    let source = |measured, given| match (measured, given) {
        (true, _) => "measured",
        (false, true) => "as the file says",
        (false, false) => "assumed: the budget leaves no time to measure it",
    };
    let design = &record.header.plan.design;
    let allocation = record.allocation.as_ref();
    let slices = allocation.map(|a| {
        format!(
            ", {} slices of {:.1} s ({})",
            a.slices,
            a.slice_s,
            source(a.measured, design.slices.is_some())
        )
    });
    let spread = allocation.and_then(|a| Some((a.between_sd?, a.within_sd?)));
    let spread = spread.map(|(between, within)| {
        format!("; spread between processes {}, between slices {}", share(between), share(within))
    });
    Some(format!(
        "{:.1} s warm-up ({}){}{}",
        warm_up.seconds,
        source(warm_up.measured, design.warmup.is_some()),
        slices.unwrap_or_default(),
        spread.unwrap_or_default()
    ))
}

fn machine_line(record: &Record) -> String {
    let environment = &record.header.environment;
    let runtimes = environment.runtimes.iter().map(|(name, version)| format!("{name} {version}"));
    let mut parts = vec![format!(
        "{}, {} processors",
        environment.cpu_model.as_deref().unwrap_or("unknown processor"),
        environment.cpus
    )];
    parts.extend(environment.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    parts.extend(runtimes);
    parts.join(", ")
}

/// What was sent, of the first variant: levels may set it otherwise.
fn load_line(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let load = &plan.variants.first()?.load;
    let open = record.rate.as_ref().map(|chosen| open_loop(record, chosen));
    // A run that ended while capacity was measured has no rate yet.
    let pending = record.is_open_loop().then(|| "open loop".to_owned());
    Some(format!(
        "{}, {} connections, keep-alive, {} {}, time-out {}{}",
        open.or(pending).unwrap_or_else(|| "closed loop".to_owned()),
        load.connections,
        load.method,
        load.path,
        seconds(load.timeout.as_secs_f64()),
        if record.is_open_loop() { "; warm-up in closed loop" } else { "" }
    ))
}

fn open_loop(record: &Record, chosen: &RateChosen) -> String {
    let plan = &record.header.plan;
    let capacities = plan.variants.iter().zip(&chosen.capacities_per_s);
    let slowest = capacities.min_by(|(_, one), (_, other)| one.total_cmp(other));
    let of = chosen.share.zip(slowest).map(|(part, (variant, per_s))| {
        format!(" ({} of the slowest capacity: {} {})", share(part), variant.name, rate(*per_s))
    });
    let arrivals = match plan.design.arrivals {
        Arrivals::Poisson => "Poisson arrivals",
        Arrivals::Constant => "constant arrivals",
    };
    format!("open loop at {}{}, {arrivals}", rate(chosen.per_s), of.unwrap_or_default())
}
