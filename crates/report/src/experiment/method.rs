//! How it was measured, in words: blocks, interval, trials, load and machine.

use std::collections::BTreeSet;

use analysis::{AaCheck, Conclusion, DroppedBlock};
use plan::{Load, Pacing, Request};
use record::{DeployedSeen, MachineFingerprint, PodSeen, Prepared, Record, Trial};
use stats::Way;

use model::quantity::{bytes, change, decimal, many, rate, share, span};

use model::document::NamedText;

/// Each line has a name and a text.
pub(crate) fn method(record: &Record, conclusion: &Conclusion) -> Vec<NamedText> {
    let lines = [
        ("blocks", Some(blocks_line(record, conclusion))),
        ("compared", against_line(record)),
        ("interval", interval_line(record, conclusion)),
        ("throughput", per_core_line(conclusion)),
        ("effects", effects_line(conclusion)),
        (
            "A/A",
            conclusion.aa.as_ref().map(|aa| aa_line(aa, conclusion)),
        ),
        ("trial", trial_line(record)),
        ("load", load_line(record)),
        ("generators", generators_line(record)),
        ("data", data_line(record)),
    ];
    lines
        .into_iter()
        .filter_map(|(name, text)| Some(NamedText::new(name, text?)))
        .collect()
}

/// The commit with which the working tree was compared, and its qualifications.
fn against_line(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let against = plan.against.as_ref()?;
    let built = plan.prepare.iter().filter(|step| step.mark.is_some());
    let mut commands: Vec<String> = built
        .map(|step| step.command.join(" ").replace("{{", "{"))
        .collect();
    commands.dedup();
    let built = match commands.as_slice() {
        [] => "nothing was built there".to_owned(),
        commands => format!("built there by {}", commands.join("; ")),
    };
    let parts = [against.describe(), built]
        .into_iter()
        .chain(against.notes.iter().cloned());
    Some(parts.collect::<Vec<_>>().join("; "))
}

/// On which machine, and where it is kept.
pub(super) fn place(record: &Record) -> Vec<NamedText> {
    let environment = &record.header.environment;
    let machine = [NamedText::new("machine", machine_line(environment))];
    let deployed = record
        .deployed()
        .into_iter()
        .map(|one| NamedText::new("service", deployed_line(one)));
    let kept = [NamedText::new(
        "record",
        record.directory.display().to_string(),
    )];
    machine.into_iter().chain(deployed).chain(kept).collect()
}

/// A running service in its state at the start: `kubernetes://prod/shop at 10.84.0.7:80: 2 pods ready on n1,
/// n2, of shop@sha256:12`.
fn deployed_line(deployed: &DeployedSeen) -> String {
    if deployed.pods.is_empty() {
        let all: Vec<String> = deployed.addresses.iter().map(ToString::to_string).collect();
        let of = if all.len() > 1 {
            format!(", one of {}", all.join(", "))
        } else {
            String::new()
        };
        return format!(
            "{} at {}{of}, which ran already",
            deployed.place, deployed.address
        );
    }
    let ready: Vec<&PodSeen> = deployed.pods.iter().filter(|pod| pod.ready).collect();
    let listed = |word: &str, of: BTreeSet<&str>| {
        let told = of.into_iter().collect::<Vec<_>>().join(", ");
        if told.is_empty() {
            told
        } else {
            format!("{word} {told}")
        }
    };
    let nodes = listed(
        " on",
        ready.iter().filter_map(|pod| pod.node.as_deref()).collect(),
    );
    let images = listed(
        ", of",
        ready
            .iter()
            .flat_map(|pod| &pod.images)
            .map(String::as_str)
            .collect(),
    );
    let (DeployedSeen { place, address, .. }, pods) = (deployed, many(ready.len() as u64, "pod"));
    format!("{place} at {address}, which ran already: {pods} ready{nodes}{images}")
}

fn blocks_line(record: &Record, conclusion: &Conclusion) -> String {
    let end = match record.ended.as_ref() {
        Some(ended) => format!("{} after {}", ended.reason.sentence(), span(ended.seconds)),
        None => "the run did not end by itself: it was killed, or is still going on".to_owned(),
    };
    let processes = match record.header.plan.loads_running() {
        true => "on processes that ran already",
        false => "of fresh processes",
    };
    let (blocks, seed) = (conclusion.blocks, record.header.seed);
    let (dropped, let_go) = (
        dropped_text(&conclusion.blocks_dropped),
        let_go_text(record, blocks),
    );
    format!("{blocks} {processes}{dropped}{let_go}, order random from seed {seed}; {end}")
}

/// Variants that were measured in fewer blocks, because their comparisons were decided. Empty if there are
/// none.
fn let_go_text(record: &Record, blocks: u32) -> String {
    let measured = |index: &usize| {
        record
            .complete_blocks()
            .filter(|of| of.order.contains(index))
            .count()
    };
    let variants = record.header.plan.variants.iter().enumerate();
    let fewer = variants.map(|(index, variant)| (&variant.name, measured(&index) as u32));
    let told = fewer
        .filter(|(_, count)| *count < blocks)
        .map(|(name, count)| format!("{name} in {count}"));
    let told = told.collect::<Vec<_>>().join(", ");
    if told.is_empty() {
        told
    } else {
        format!(" ({told}, whose comparisons were decided then)")
    }
}

/// Disturbances in the dropped blocks. Empty if there are none.
fn dropped_text(dropped: &[DroppedBlock]) -> String {
    let Some(first) = dropped.first() else {
        return String::new();
    };
    let so_on = if dropped.len() > 1 { ", and so on" } else { "" };
    format!(", {} more dropped ({}{so_on})", dropped.len(), first.why)
}

fn interval_line(record: &Record, conclusion: &Conclusion) -> Option<String> {
    let estimates = conclusion
        .comparisons
        .iter()
        .filter_map(|comparison| comparison.estimate.as_ref());
    let estimate = estimates.max_by_key(|estimate| estimate.blocks)?;
    let rule = analysis::rule(record)?;
    // There is not always a joint critical t. Without it each comparison has its share of the 5 %.
    let shared = rule.critical_t(estimate.blocks) == Some(estimate.critical_t);
    let confidence = match (rule.way, conclusion.comparisons.len()) {
        (Way::EachBlock { .. }, _) => "95 % for all looks and comparisons together".to_owned(),
        (Way::Once, 1) => "95 %, looked at once".to_owned(),
        (Way::Once, several) => {
            let how = if shared {
                "each with its share of the 5 %"
            } else {
                "sign flips"
            };
            format!(
                "95 %, looked at once; {} judged together ({how})",
                many(several as u64, "comparison")
            )
        }
    };
    let errors = decimal(estimate.critical_t, 2);
    Some(format!(
        "estimate ± {errors} standard errors over blocks: {confidence}"
    ))
}

fn per_core_line(conclusion: &Conclusion) -> Option<String> {
    let judged = conclusion
        .comparisons
        .iter()
        .any(|comparison| comparison.per_second.is_some());
    judged.then(|| {
        "per core-second (responses per second of the services' CPU time), because the services had all of their cores busy".to_owned()
    })
}

fn effects_line(conclusion: &Conclusion) -> Option<String> {
    let any = conclusion
        .effects
        .iter()
        .any(|effect| effect.estimate.is_some());
    any.then(|| {
        format!(
            "95 % for all {} together, apart from the comparisons; they do not end the run. A\u{a0}×\u{a0}B: how much more A does \
             where B is changed",
            conclusion.effects.len()
        )
    })
}

fn aa_line(aa: &AaCheck, conclusion: &Conclusion) -> String {
    let metric = aa.metric.row().title;
    let found = match &aa.estimate {
        Some(estimate) => {
            let (value, interval) = change(estimate);
            let word = if aa.differs {
                "differs, which it must not"
            } else {
                "no difference"
            };
            format!("{value} {metric} ({interval}, at 99 %): {word}")
        }
        None if conclusion.awaits_look => "no interval before the end of the run".to_owned(),
        None => format!(
            "no estimate of {metric} from {}",
            many(conclusion.blocks.into(), "block")
        ),
    };
    format!("{}: {found}", aa.label)
}

/// Seconds to a tenth. Shorter times are not rounded to zero.
fn tenths(length_s: f64) -> String {
    if (0.001..0.095).contains(&length_s) {
        span(length_s)
    } else {
        format!("{} s", decimal(length_s, 1))
    }
}

fn trial_line(record: &Record) -> Option<String> {
    let (warm_up, design) = (record.warm_up.as_ref()?, &record.header.plan.design);
    let source = |measured, given| match (measured, given) {
        (true, _) => "measured",
        (false, true) => "as the file says",
        (false, false) => "assumed: the budget leaves no time to measure it",
    };
    let length = tenths(warm_up.seconds);
    let mut line = format!(
        "{length} warm-up ({})",
        source(warm_up.measured, design.warmup.is_some())
    );
    if let Some(a) = &record.allocation {
        let (slices, source) = (
            many(a.slices.into(), "slice"),
            source(a.measured, design.slices.is_some()),
        );
        line += &format!(", {slices} of {} ({source})", tenths(a.slice_s));
        if let Some((between, within)) = a.between_sd.zip(a.within_sd) {
            let (between, within) = (share(between), share(within));
            line += &format!("; spread between processes {between}, between slices {within}");
        }
    }
    Some(line)
}

/// A machine's processors.
pub(crate) fn processor(environment: &MachineFingerprint) -> String {
    let model = environment
        .cpu_model
        .as_deref()
        .unwrap_or("unknown processor");
    match environment.cpus {
        0 => model.to_owned(),
        cpus => format!("{model}, {}", many(cpus as u64, "processor")),
    }
}

pub(crate) fn machine_line(environment: &MachineFingerprint) -> String {
    let kernel = environment
        .kernel
        .as_ref()
        .map(|kernel| format!("Linux {kernel}"));
    let runtimes = environment
        .runtimes
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    [processor(environment)]
        .into_iter()
        .chain(kernel)
        .chain(runtimes)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The processors that services ran on: `services on 1 of 2 cores`. `None` if they were not started here, or
/// are not pinned.
pub(super) fn cores_short(record: &Record) -> Option<String> {
    let trial = record.complete_trials().next()?;
    let cpus = trial
        .started
        .services
        .iter()
        .flat_map(|service| service.cpus.iter().copied());
    let cpus = model::distinct(cpus).len();
    let machine = many(record.header.environment.cpus as u64, "core");
    match cpus {
        0 => None,
        _ if trial.started.cpus_shared => Some(format!(
            "services on {cpus} of {machine}, shared with the load generator"
        )),
        _ => Some(format!("services on {cpus} of {machine}")),
    }
}

/// How long processes were under load: `each process in its first 7.1s of load`. Warm-up effects that take
/// longer are not visible. `None` for processes that were already running, and if a search determines how
/// long each is loaded.
pub(super) fn seen_for(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    if plan.loads_running() || plan.design.pacing() == Pacing::Search {
        return None;
    }
    let loaded_s = |trial: &Trial| {
        let windows = trial
            .slices
            .iter()
            .map(|slice| slice.counts.window_ns as f64 / 1e9);
        windows.sum::<f64>()
    };
    let seconds = stats::median(record.complete_trials().map(loaded_s))?;
    // Without a space, so that the line does not break there.
    let length = if seconds < 10.0 {
        format!("{}s", decimal(seconds, 1))
    } else {
        span(seconds)
    };
    (seconds > 0.0).then(|| format!("each process in its first {length} of load"))
}

/// The loop and the connections: `closed loop, 16 connections`.
pub(super) fn load_short(record: &Record) -> String {
    let variants = record.header.plan.variants.iter();
    let chosen = record.connections.as_ref().map(|chosen| chosen.connections);
    let all = model::distinct(
        variants.map(|variant| chosen.unwrap_or(variant.load.settings.connections)),
    );
    let told: Vec<String> = all.iter().map(u32::to_string).collect();
    let noun = if all == [1] {
        "connection"
    } else {
        "connections"
    };
    format!("{}, {} {noun}", loop_text(record, ""), told.join(" or "))
}

/// Maximum number of steps of a ladder of rates that are listed.
const STEPS_MAX: usize = 8;

/// `open loop at 1,200/s`. A run that ended while capacity was measured has no rate yet.
fn loop_text(record: &Record, over: &str) -> String {
    if let Some(rates) = record
        .header
        .plan
        .measure
        .as_ref()
        .and_then(|measure| measure.rates.as_ref())
    {
        let asks: Vec<String> = rates
            .asks()
            .iter()
            .take(STEPS_MAX)
            .map(ToString::to_string)
            .collect();
        let more = if rates.asks().len() > STEPS_MAX {
            ", …"
        } else {
            ""
        };
        return format!("open loop at {}{more}", asks.join(", "));
    }
    let Some(chosen) = &record.rate else {
        return if record.is_open_loop() {
            "open loop"
        } else {
            "closed loop"
        }
        .to_owned();
    };
    if let Some((from, to)) = chosen.ramp_per_s {
        return format!("open loop from {} to {}{over}", rate(from), rate(to));
    }
    // The common rate, or each variant's own.
    let variants = record.header.plan.variants.iter();
    let own = variants.map(|variant| rate(variant.load.rate_per_s.unwrap_or(chosen.per_s)));
    format!("open loop at {}", model::distinct(own).join(" or "))
}

/// The load of the first variant. Levels may change it.
fn load_line(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let load = &plan.variants.first()?.load;
    let mut line = loop_text(record, " over each slice");
    if let Some(chosen) = &record.rate {
        // A variant that never succeeded has no capacity, and did not count.
        let capacities = plan
            .variants
            .iter()
            .zip(&chosen.capacities_per_s)
            .filter(|(_, of)| **of > 0.0);
        let slowest = capacities.min_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((part, (variant, per_s))) = chosen.share.zip(slowest) {
            let (part, name, per_s) = (share(part), &variant.name, rate(*per_s));
            line += &format!(" ({part} of the slowest in closed loop: {name} {per_s})");
        }
    }
    let measure = plan.measure.as_ref();
    if record.is_open_loop() {
        let arrivals = measure.map_or(plan.design.arrivals, |measure| measure.arrivals);
        line += &format!(", {}", arrivals.words());
    }
    let (sent, timeout) = (sent(load), span(load.timeout.as_secs_f64()));
    let kept = if load.settings.keep_alive {
        "keep-alive"
    } else {
        "a connection for each request"
    };
    let chosen = record.connections.as_ref();
    let connections = chosen.map_or(load.settings.connections, |chosen| chosen.connections);
    let why = chosen
        .map(|_| " (chosen: twice what the time limit has use for)")
        .unwrap_or_default();
    let connections = format!("{}{why}", many(connections.into(), "connection"));
    line += &format!(", {connections}, {kept}, {sent}, timeout {timeout}");
    line.extend(
        load.network
            .iter()
            .map(|link| format!(", over a link of {link}")),
    );
    line.extend(
        plan.design
            .endpoint
            .iter()
            .map(|of| format!("; response times of {}", of.name)),
    );
    let warms = measure.is_none_or(|measure| !measure.warmup.is_zero());
    Some(
        line + if record.is_open_loop() && warms {
            "; warm-up in closed loop"
        } else {
            ""
        },
    )
}

/// Maximum number of generators that are named. The others are only counted.
const GENERATORS_NAMED_MAX: usize = 4;

/// The generators, unless the load came from the run's own process, and how the load was divided in the first
/// variant.
fn generators_line(record: &Record) -> Option<String> {
    let plan = &record.header.plan;
    let mut names: Vec<&str> = record
        .generators
        .iter()
        .map(|generator| generator.name.as_str())
        .collect();
    let count = names.len();
    let connections = plan
        .variants
        .first()
        .map_or(0, |variant| variant.load.settings.connections as usize);
    let (each, more) = (connections.checked_div(count)?, connections % count);
    let each = match more {
        0 => many(each as u64, "connection"),
        _ => format!("{each} or {}", many(each as u64 + 1, "connection")),
    };
    let rest = format!("and {} more", count.saturating_sub(GENERATORS_NAMED_MAX));
    if count > GENERATORS_NAMED_MAX {
        names.splice(GENERATORS_NAMED_MAX.., [rest.as_str()]);
    }
    let reached = plan
        .generators
        .address
        .map(|address| format!("; the entry listened on {address}"));
    let (names, reached) = (names.join(", "), reached.unwrap_or_default());
    Some(format!(
        "{count} ({names}) with {each} each, all begun at one agreed instant{reached}"
    ))
}

/// The request, or several requests with their shares.
fn sent(load: &Load) -> String {
    if let ([only], false) = (load.requests.as_slice(), load.is_mix()) {
        return format!("{} {}", only.method, only.path);
    }
    let part = |request: &Request| {
        load.share_of(&request.name).map_or_else(
            || format!("once {}", request.name),
            |part| format!("{} of {}", share(part), request.name),
        )
    };
    let shared: Vec<String> = load.requests.iter().map(part).collect();
    format!(
        "{} at random ({})",
        many(load.requests.len() as u64, "request"),
        shared.join(", ")
    )
}

/// Number of characters shown of the key of prepared data.
const KEY_LETTERS: usize = 12;

/// The prepared data of services, so that a reader can compare two records.
fn data_line(record: &Record) -> Option<String> {
    let of_one = |Prepared {
                      name,
                      key,
                      made,
                      seconds,
                      bytes: size,
                  }: &Prepared| {
        let how = if *made {
            format!("made in {}", span(*seconds))
        } else {
            "found".to_owned()
        };
        let key: String = key.chars().take(KEY_LETTERS).collect();
        format!("{name} {} {how} (key {key}…)", bytes(*size as f64))
    };
    let all: Vec<String> = record.prepared.iter().map(of_one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
