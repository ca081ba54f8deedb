//! `--dry-run` of `proofload run` and `compare`: describes an experiment without starting anything.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use ::load::{Address, LoadSpec};
use analysis::{BlockPace, POWER};
use lab::SecondsGuess;
use model::quantity::{decimal, many};
use model::{Metric, Until};
use plan::{
    ArrivalProcess, Design, Generators, LimitSubject, Load, LookRule, Measure, Pacing, Plan,
    PlannedRate, Preparation, Request, Secrets, Service, ServiceCommand, ServiceSource, Variant,
    Workers,
};
use report::{bytes, count, rate, seconds, share};
use services::Cache;

use crate::records::newest_named;
use crate::{elsewhere, preflight, print};

/// Maximum number of shares that are listed. For more generators, equal shares are counted.
const LISTED_MAX: usize = 8;
/// Assumed standard deviations of the blocks' log ratios if none is known: a quiet machine, a usual one, a
/// noisy one.
const ASSUMED: [f64; 3] = [0.01, 0.03, 0.10];

pub fn run(plan: &Plan, json: bool) -> anyhow::Result<u8> {
    let told = match json {
        true => model::text::json(serde_json::to_string_pretty(&plan.masked())?),
        false => {
            let masked = plan.masked();
            format!("{}{}", describe(&masked), power(&masked))
        }
    };
    print::data(&told)?;
    preflight::commands(plan)?;
    preflight::ports(plan)?;
    elsewhere::look_at_urls(plan)?;
    Ok(0)
}

pub fn describe(plan: &Plan) -> String {
    let mut out = format!("{}\n\n", plan.question.as_deref().unwrap_or(&plan.name));
    if let Some(against) = &plan.against {
        let _ = writeln!(out, "against {}", against.describe());
        against
            .notes
            .iter()
            .for_each(|note| _ = writeln!(out, "  note: {note}"));
        for (title, files) in [
            ("copied", &against.copied),
            ("not copied", &against.only_here),
        ] {
            files
                .iter()
                .for_each(|file| _ = writeln!(out, "  {title}: {}", file.display()));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{}:", many(plan.variants.len() as u64, "variant"));
    for variant in &plan.variants {
        let Variant { name, load, .. } = variant;
        let link = load
            .network
            .as_ref()
            .map(|link| format!(", over a link of {link}"))
            .unwrap_or_default();
        let is_chosen = !plan.design.slo.is_empty() && !load.connections_typed;
        let connections = match is_chosen {
            true => "a chosen number of connections".to_owned(),
            false => many(load.settings.connections.into(), "connection"),
        };
        let (stage, sent) = (stage(variant), sent(load));
        let _ = writeln!(out, "  {name}: {stage}, {connections}, {sent}{link}");
    }
    generators(plan, &mut out);
    needs(plan, &mut out);
    if plan.measure.is_none() {
        let _ = writeln!(
            out,
            "\n{}:",
            many(plan.comparisons.len() as u64, "comparison")
        );
    }
    plan.comparisons
        .iter()
        .for_each(|comparison| _ = writeln!(out, "  {}", comparison.label));
    if let Some(copy) = &plan.aa {
        let copy = &copy.label;
        let _ = writeln!(
            out,
            "and one that must show no difference, or the result is invalid:\n  {copy}"
        );
    }
    gate(plan, &mut out);
    let _ = writeln!(
        out,
        "\n{}",
        plan.measure
            .as_ref()
            .map_or_else(|| schedule(plan), measured)
    );
    // Control characters from the file are removed.
    model::text::lines(&out)
}

/// The measurement, if nothing is compared.
fn measured(measure: &Measure) -> String {
    let paced = measure
        .rates
        .as_ref()
        .map_or("closed loop".to_owned(), |rates| {
            format!(
                "open loop at {} with {} arrivals",
                rates.written(),
                spread(measure.arrivals)
            )
        });
    let each = if measure.slices() > 1 { "each " } else { "" };
    let (length, all) = match measure.until {
        Until::Requests(requests) => (many(requests, "request"), String::new()),
        Until::Elapsed(length) => {
            let all = seconds(measure.total().as_secs_f64());
            (
                format!("for {}", seconds(length.as_secs_f64())),
                format!("; {all} in all"),
            )
        }
    };
    let first = if measure.capacity().is_some() {
        "; saturation is measured first"
    } else {
        ""
    };
    format!("nothing is compared: {paced}, {each}{length}{first}{all}")
}

/// The started services, and the target of the load.
fn stage(variant: &Variant) -> String {
    let source = variant.entry_service().map(|entry| &entry.source);
    match source {
        Some(ServiceSource::Deployed { kubernetes }) => {
            format!(
                "starts nothing, load on {} (Kubernetes {kubernetes})",
                variant.entry
            )
        }
        Some(ServiceSource::Url { url }) => {
            format!(
                "starts nothing, load on {} ({})",
                variant.entry,
                url.origin()
            )
        }
        Some(ServiceSource::Command(_)) | None => {
            let services: Vec<String> = variant.services.iter().map(started).collect();
            format!("starts {}, load on {}", services.join(" → "), variant.entry)
        }
    }
}

/// The limits of the gate, each with its subject. Nothing without limits.
fn gate(plan: &Plan, out: &mut String) {
    if !plan.gate.is_empty() {
        let _ = writeln!(
            out,
            "\n{}, for `proofload run --gate`:",
            many(plan.gate.len() as u64, "limit")
        );
    }
    for entry in &plan.gate {
        let name = |subject: LimitSubject| match subject {
            LimitSubject::Comparison(index) => plan.comparisons[index].label.as_str(),
            LimitSubject::Variant(index) => plan.variants[index].name.as_str(),
        };
        let about: Vec<&str> = plan
            .gated(entry, &plan.gate)
            .into_iter()
            .map(name)
            .collect();
        let about = if about.is_empty() {
            "nothing in this experiment".to_owned()
        } else {
            about.join(", ")
        };
        let _ = writeln!(out, "  {}: {about}", entry.limit);
    }
}

/// A service with its launcher, if it has one: `api (pm2-cluster, 4 workers)`.
fn started(service: &Service) -> String {
    let Some(command) = service.command() else {
        return service.name.clone();
    };
    let launcher = command
        .launcher
        .makes_workers()
        .then(|| command.launcher.name().to_owned());
    let workers = command.workers.map(|workers| match workers {
        Workers::Cores => "a worker for each processor".to_owned(),
        Workers::Number(number) => many(number.into(), "worker"),
    });
    let how: Vec<String> = launcher.into_iter().chain(workers).collect();
    if how.is_empty() {
        service.name.clone()
    } else {
        format!("{} ({})", service.name, how.join(", "))
    }
}

fn schedule(plan: &Plan) -> String {
    let design = &plan.design;
    let guess = SecondsGuess::of(plan);
    let processes = if plan.loads_running() {
        "the same processes in all blocks"
    } else {
        "fresh processes in each block"
    };
    let is_search = design.pacing() == Pacing::Search;
    let how = if is_search && lab::live_together(plan) {
        "all variants of a block run at once, one loaded after the other"
    } else if lab::take_turns(plan) {
        "all variants of a block run at once, in turns of 20 ms or more"
    } else if lab::live_together(plan) {
        "all variants of a block run at once, in turns of a slice"
    } else {
        "the variants of a block are started, measured and stopped one after the other"
    };
    let (first, others) = if is_search {
        (
            format!(
                "the search for rates takes about {}",
                seconds(guess.before_s)
            ),
            "each block",
        )
    } else {
        let first = seconds(guess.first_s);
        (
            format!("the first block takes about {first}, to watch the warm-up"),
            "the others",
        )
    };
    let ends_early = !design.looks.waits_for_end() && !plan.comparisons.is_empty();
    format!(
        "judged by {}, margin {}\n{}{how}; {processes}, order drawn from {}\n\
         {first}, {others} about {}; {}\n\
         at most {} in all (the budget){}",
        judged_by(design),
        share(design.margin),
        open_loop(plan),
        design
            .seed
            .map_or("a new seed".to_owned(), |seed| format!("seed {seed}")),
        seconds(guess.block_s),
        looks(plan),
        seconds(design.budget.as_secs_f64()),
        if ends_early {
            ", less where all comparisons are decided earlier"
        } else {
            ""
        },
    )
}

/// The requests of a variant: the only one, or several with their shares.
fn sent(load: &Load) -> String {
    if let ([only], false) = (load.requests.as_slice(), load.is_mix()) {
        return format!("{} {}", only.method, only.path);
    }
    let part = |request: &Request| {
        load.share_of(&request.name)
            .map_or("once".to_owned(), share)
    };
    let shared = load
        .requests
        .iter()
        .map(|request| format!("{} {}", part(request), request.name));
    shared.collect::<Vec<_>>().join(", ")
}

fn judged_by(design: &Design) -> String {
    let metric = |metric: Metric| {
        let row = metric.row();
        let of = design
            .endpoint
            .as_ref()
            .filter(|_| metric.quantile().is_some());
        let of = of
            .map(|endpoint| format!(" of {}", endpoint.name))
            .unwrap_or_default();
        let better = if metric.wants_more() { "more" } else { "less" };
        format!("{}{of} ({}, {better} is better)", row.title, row.meaning)
    };
    let metrics: Vec<String> = design.metrics().map(metric).collect();
    metrics.join(", and by ")
}

/// The rate, and the effort to determine it. Empty in closed loop.
fn open_loop(plan: &Plan) -> String {
    let design = &plan.design;
    let (to, over) = match design.ramp_to {
        None => (String::new(), ""),
        Some(PlannedRate::PerSecond(per_s)) => (format!(" to {}", rate(per_s)), " over each slice"),
        Some(PlannedRate::ShareOfCapacity(part)) => {
            (format!(" to {}", share(part)), " over each slice")
        }
    };
    let asked = match design.rate {
        None => return String::new(),
        Some(PlannedRate::PerSecond(per_s)) => {
            let own = plan
                .variants
                .iter()
                .map(|variant| variant.load.rate_per_s.unwrap_or(per_s));
            format!("{}{to}{over}", model::distinct(own.map(rate)).join(" or "))
        }
        Some(PlannedRate::ShareOfCapacity(part)) => {
            let (part, capacity) = (share(part), seconds(SecondsGuess::of(plan).before_s));
            format!(
                "{part}{to} of what the slowest variant can do{over}, measured before the first block in about {capacity},"
            )
        }
    };
    let wanted = match design.most_wanting().1 {
        0.0 => String::new(),
        requests => {
            format!(
                "; each trial is as long as {} take, if its slices are not longer",
                many(requests as u64, "request")
            )
        }
    };
    let has_own = plan
        .variants
        .iter()
        .any(|variant| variant.load.rate_per_s.is_some());
    let whose = if has_own {
        "each variant its own"
    } else {
        "the same for all variants"
    };
    let arrivals = spread(design.arrivals);
    format!("open loop: {asked} with {arrivals} arrivals, {whose}{wanted}\n")
}

fn spread(arrivals: ArrivalProcess) -> &'static str {
    match arrivals {
        ArrivalProcess::Poisson => "Poisson",
        ArrivalProcess::Constant => "constant",
    }
}

/// Warns of a budget that seems too small for a verdict. This is an estimate, so the run continues.
pub fn warn_of_budget(plan: &Plan) {
    let budget_s = plan.design.budget.as_secs_f64();
    let needed_s = SecondsGuess::of(plan).until(stats::BLOCKS_MIN);
    if !plan.comparisons.is_empty() && needed_s > budget_s {
        let (budget, least, needed) = (seconds(budget_s), stats::BLOCKS_MIN, seconds(needed_s));
        print::tell!(
            "note: the budget of {budget} may be too small: a verdict takes {least} blocks, which need about {needed}"
        );
    }
}

fn looks(plan: &Plan) -> String {
    // Number of blocks that fit into the budget, estimated before any measurement, and the file's maximum.
    let guess = SecondsGuess::of(plan);
    let rest_s = plan.design.budget.as_secs_f64() - guess.until(1);
    let fit = 1 + (rest_s / guess.block_s).max(0.0) as u32;
    let most = plan.design.blocks.map_or(fit, |blocks| blocks.min(fit));
    if plan.comparisons.is_empty() {
        let blocks = plan.design.blocks.unwrap_or(lab::BLOCKS_AIM).min(most);
        return format!("there are {blocks}, for nothing is compared");
    }
    match plan.design.looks {
        _ if most < stats::BLOCKS_MIN => {
            format!("about {most} fit the budget, too few for a verdict: raise the budget")
        }
        LookRule::Once => format!("about {most} fit the budget, looked at once, after the last"),
        LookRule::EachBlock => {
            let first = stats::BLOCKS_MIN;
            format!(
                "about {most} fit the budget, looked at after each of them from the {first}th on"
            )
        }
    }
}

/// The generators and their shares of the load, without connecting to any. Nothing if the load comes from
/// this process.
fn generators(plan: &Plan, out: &mut String) {
    let generators = &plan.generators;
    if generators.is_here() {
        return;
    }
    let reached = generators
        .address
        .map(|address| format!(", which reach this machine by {address}"));
    let (all, names) = (
        many(generators.count().into(), "generator"),
        names(generators),
    );
    let _ = writeln!(
        out,
        "\nload from {all}: {names}{}",
        reached.unwrap_or_default()
    );
    let numbers: BTreeSet<u32> = plan
        .variants
        .iter()
        .map(|variant| variant.load.settings.connections)
        .collect();
    for connections in numbers {
        let divided = divided(connections, generators.count());
        let _ = writeln!(
            out,
            "  {}: {divided}",
            many(connections.into(), "connection")
        );
    }
    if plan.design.rate.is_some() {
        let _ = writeln!(
            out,
            "  requests that are due are dealt to all their threads in turn"
        );
    }
}

fn names(generators: &Generators) -> String {
    let local = (generators.local > 0).then(|| format!("{} on this machine", generators.local));
    let cluster = generators.kubernetes.as_ref().map(|cluster| {
        let context = cluster
            .context
            .as_ref()
            .map(|context| format!(" in {context}"));
        format!(
            "{} of {}{}",
            many(cluster.pods.into(), "pod"),
            cluster.image,
            context.unwrap_or_default()
        )
    });
    let all = local
        .into_iter()
        .chain(generators.ssh.iter().cloned())
        .chain(cluster);
    all.collect::<Vec<_>>().join(", ")
}

/// The division as the engine makes it: `334 + 333 + 333`, or `4 × 101 + 96 × 100`.
fn divided(connections: u32, generators: u32) -> String {
    // There is no target yet.
    let nowhere = Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let all = LoadSpec {
        connections,
        ..LoadSpec::new(nowhere, Vec::new())
    };
    let parts: Vec<u32> = all
        .divided(generators, 1)
        .iter()
        .map(|part| part.connections)
        .collect();
    let told = |run: &[u32]| match parts.len() {
        0..=LISTED_MAX => vec![count(run[0].into()); run.len()],
        _ => vec![format!("{} × {}", run.len(), count(run[0].into()))],
    };
    parts
        .chunk_by(|one, other| one == other)
        .flat_map(told)
        .collect::<Vec<_>>()
        .join(" + ")
}

/// Requirements of the plan on this machine and whether they are fulfilled: prepared data, and the permission
/// to create a link. Changes nothing.
fn needs(plan: &Plan, out: &mut String) {
    if plan
        .variants
        .iter()
        .any(|variant| variant.load.network.is_some())
        && let Err(error) = services::networks_can_be_made()
    {
        let _ = writeln!(out, "cannot be run here: {error}");
    }
    let services = plan.variants.iter().flat_map(|variant| &variant.services);
    let unknown = services
        .filter(|service| service.chooses_port())
        .map(|service| service.name.as_str());
    let unknown: Vec<&str> = unknown.collect::<BTreeSet<_>>().into_iter().collect();
    if !unknown.is_empty() {
        let _ = writeln!(
            out,
            "\nwhere {} listens is found by starting it once: PORT is set to a free port, and nothing says that it is used",
            unknown.join(", ")
        );
    }
    if let Some(port) = lab::shared_port(plan) {
        let _ = writeln!(
            out,
            "\nvariants share port {port}, so they run one after the other"
        );
    }
    if !plan.prepare.is_empty() {
        let _ = writeln!(out, "\nmade before the first block, outside of the budget:");
    }
    for step in &plan.prepare {
        let _ = writeln!(out, "  {}: {}", step.name, state(step, &plan.secrets));
    }
}

fn state(step: &Preparation, secrets: &Secrets) -> String {
    let values = secrets.values_of_step(step);
    let place = match Cache::of_this_user().and_then(|cache| cache.place(step, &values)) {
        Ok(place) => place,
        Err(error) => return format!("cannot be made: {error}"),
    };
    if place.there {
        return format!("there, in {}", place.path.display());
    }
    let space = step
        .space_bytes
        .map(|space| format!(", takes {}", bytes(space as f64)))
        .unwrap_or_default();
    format!(
        "to be made by {}{space}",
        secrets.mask_words(&step.command).join(" ")
    )
}

/// Time to detect a true difference of the margin, from the spread of an earlier record, or for assumed ones.
/// Empty if nothing is compared.
fn power(plan: &Plan) -> String {
    if plan.comparisons.is_empty() {
        return String::new();
    }
    let (margin, metric, runs) = (
        share(plan.design.margin),
        plan.design.metric.name(),
        decimal(POWER * 10.0, 0),
    );
    let of = format!(
        "\na true difference of the margin ({margin}) in {metric} is found in {runs} of 10 runs:"
    );
    if let Some((sd_log, pace, record)) = known(plan) {
        let run_s = |blocks| pace.run_s(blocks, plan.variants.len());
        let (time, spread, record) = (time(plan, sd_log, run_s), share(sd_log), record.display());
        return format!(
            "{of}\n  {time}, if the spread between blocks is {spread}, as in {record}\n"
        );
    }
    let time = |sd| time(plan, sd, |blocks| SecondsGuess::of(plan).until(blocks));
    let line = |sd: f64| {
        format!(
            "  {}, if the spread between blocks is {}\n",
            time(sd),
            share(sd)
        )
    };
    let lines: String = ASSUMED.map(line).concat();
    format!("{of}\n{lines}measure the spread: proofload doctor calibrate\n")
}

/// Number of blocks that find the margin, with the time they take.
fn time(plan: &Plan, sd_log: f64, run_s: impl Fn(u32) -> f64) -> String {
    // There is no rule for too many comparisons.
    let rule = analysis::rule_of(
        plan.design.looks,
        plan.comparisons.len() * plan.design.metrics().count(),
    );
    let blocks = rule.and_then(|rule| analysis::blocks_to_find(plan.design.margin, sd_log, &rule));
    let blocks = blocks.filter(|blocks| *blocks <= stats::BLOCKS_MAX);
    let Some(blocks) = blocks else {
        return "not within the longest run".to_owned();
    };
    let run_s = run_s(blocks);
    let beyond = if run_s > plan.design.budget.as_secs_f64() {
        ", more than the budget"
    } else {
        ""
    };
    format!(
        "about {}, {}{beyond}",
        many(blocks.into(), "block"),
        seconds(run_s)
    )
}

/// The spread and the pace from the newest record of this experiment with an estimate of its metric, a
/// calibration or a run: the largest spread among its comparisons, and the duration of its blocks.
fn known(plan: &Plan) -> Option<(f64, BlockPace, PathBuf)> {
    let begins = format!("{}-", plan.name);
    // Another experiment's name may have the same beginning.
    let ours = newest_named(move |name| name.starts_with(&begins));
    ours.filter(|(_, record)| is_of_same_services(&record.header.plan, plan))
        .find_map(|(path, record)| {
            let conclusion = analysis::conclude(&record);
            let of_metric = conclusion
                .comparisons
                .iter()
                .filter(|found| found.metric == plan.design.metric);
            let sd_log = of_metric
                .filter_map(|found| Some(found.estimate.as_ref()?.sd_log))
                .reduce(f64::max)?;
            Some((sd_log, BlockPace::of(&record)?, path))
        })
}

/// Whether an earlier experiment of this name loaded only services of this one, in the same way. `compare`
/// uses one name for all its experiments in a folder.
fn is_of_same_services(earlier: &Plan, plan: &Plan) -> bool {
    let plan = plan.masked();
    let entries = |of: &Plan| {
        let pacing = of.design.pacing();
        let loaded = |variant: &Variant| {
            Some((
                entry(variant.entry_service()?),
                variant.load.comparable(pacing),
            ))
        };
        model::distinct(of.variants.iter().filter_map(loaded))
    };
    let (own, theirs) = (entries(&plan), entries(earlier));
    earlier.name == plan.name
        && !theirs.is_empty()
        && theirs.iter().all(|entry| own.contains(entry))
}

/// A service without details found out by a run, and without the folder, which differs between commits.
fn entry(service: &Service) -> Service {
    let mut service = service.clone();
    if let ServiceSource::Command(ServiceCommand {
        command: _,
        directory,
        address,
        container: _,
        env: _,
        port: _,
        listens_on,
        other_ports,
        stop_timeout: _,
        launcher: _,
        workers: _,
        pmx: _,
        templates: _,
    }) = &mut service.source
    {
        (*directory, *address, *listens_on) = (PathBuf::new(), None, None);
        other_ports.clear();
    }
    service
}

#[cfg(test)]
mod tests {
    use super::{divided, is_of_same_services};

    #[test]
    fn records_of_other_services_are_not_quoted() {
        let plan = |program: &str, load: &str| {
            let text = format!(
                "name = \"x\"\n[services.app]\ncommand = [\"node\", \"{program}\"]\n[load]\n{load}\n\
                 [factors.v]\na = {{ app.env.A = \"1\" }}\nb = {{ app.env.A = \"2\" }}\n"
            );
            plan::parse(&text, std::path::Path::new("/")).expect("a plan")
        };
        let own = plan("a.js", "path = '/'");
        assert!(is_of_same_services(&own, &own));
        let calibration = own
            .calibration(0, own.design.budget, None)
            .expect("one variant");
        assert!(is_of_same_services(
            &plan::Plan {
                name: own.name.clone(),
                ..calibration
            },
            &own
        ));
        assert!(!is_of_same_services(&plan("b.js", "path = '/'"), &own));
        assert!(!is_of_same_services(&plan("a.js", "path = '/other'"), &own));
        assert!(!is_of_same_services(&plan("a.js", "connections = 7"), &own));
    }

    #[test]
    fn shares_add_up_however_they_are_written() {
        assert_eq!(divided(1000, 3), "334 + 333 + 333");
        assert_eq!(divided(10_004, 100), "4 × 101 + 96 × 100");
        assert_eq!(divided(64_000, 64), "64 × 1,000");
    }
}
