//! The tables: results of each variant, effects of each factor, and a breakdown of variants and load. For
//! spreadsheets also figures block by block, from which the conclusion was drawn.

use analysis::{
    Conclusion, Effect, EffectKind, EndpointFigures, GeneratorShare, Outcome, ServiceCost,
    VariantFigures,
};
use model::document::{Cell, ColumnFit, Table, TableRow, Tone};
use model::quantity::{Quantity, Unit, count, decimal, intervals, many, share, share_below};
use model::{Finding, RequestOutcome};
use plan::{Factor, Metric, Pacing};
use record::{Block, Record};

use super::answer::{VOID, effect_word, judged_by};
use super::capacity;
use crate::csv::{self, CsvRows, unit_name};

/// From this number of requests, no failure is informative: with 95 % confidence fewer than 0.13 % fail.
const REQUESTS_TELLING: u64 = 3_000;
/// If there are more effects, inconclusive interactions are only counted.
const EFFECTS_MAX: usize = 8;
/// Maximum number of generators in a table.
const GENERATORS_MAX: usize = 40;

/// Results of each variant. Figures of an invalid variant are labelled as observations that must not be
/// compared.
pub(crate) fn variants(record: &Record, conclusion: &Conclusion) -> Table {
    let open = record.is_open_loop();
    // In open loop, throughput and cores depend on the rate and have no column. Columns of quantiles are the
    // usual ones and the judged ones.
    let judged = |of: &Metric| {
        record
            .header
            .plan
            .design
            .metrics()
            .any(|judged| judged == *of)
    };
    let shown = |of: &Metric| {
        judged(of) || (*of != Metric::P999 && analysis::metrics(record).any(|m| m == *of))
    };
    let at_one_rate = record.pacing() == Pacing::Open;
    let quantiles: Vec<Metric> = if at_one_rate {
        Metric::latencies().filter(shown).collect()
    } else {
        Vec::new()
    };
    // If all bodies have the same size the column is omitted.
    let sizes = conclusion
        .variants
        .iter()
        .filter_map(|of| Some(of.body_bytes_per_response? as u64));
    let several_sizes = model::distinct(sizes).len() > 1;
    let heading = |metric: Metric| metric.row().heading;
    type Figure = (bool, &'static str, fn(&VariantFigures) -> Cell);
    let others: [Figure; 6] = [
        (!open, heading(Metric::Throughput), |of| {
            Cell::figure(of.throughput_per_s.map(Quantity::per_s))
        }),
        (true, heading(Metric::CpuPerRequest), |of| {
            Cell::figure(of.cpu_us_per_request.map(Quantity::us))
        }),
        (!open, "cores", |of| {
            Cell::optional(of.busy_cores.map(|cores| decimal(cores, 2)))
        }),
        (true, heading(Metric::PeakMemory), |of| {
            peak(of.peak_rss_bytes)
        }),
        (true, "failed", |of| {
            Cell::optional(of.failed_share.map(|_| failed(of)))
        }),
        (several_sizes, "body", |of| {
            Cell::figure(of.body_bytes_per_response.map(Quantity::bytes))
        }),
    ];
    let others = || others.iter().filter(|(shown, ..)| *shown);
    let headings = quantiles
        .iter()
        .map(|of| heading(*of))
        .chain(others().map(|(_, heading, _)| *heading));
    let mut table = Table::of_figures("", [("variant", ColumnFit::Whole)], headings);
    for (index, variant) in conclusion.variants.iter().enumerate() {
        let name = name(conclusion, index, variant) + &blocks_of(record, index);
        let name = Cell::text(name);
        let times = quantiles
            .iter()
            .map(|metric| response_time(variant, *metric));
        let figures = times.chain(others().map(|(.., cell)| cell(variant)));
        table.push([name].into_iter().chain(figures).collect());
    }
    table
}

/// The blocks of a variant that was not measured in all of them: ` (4 blocks)`.
fn blocks_of(record: &Record, variant: usize) -> String {
    let (own, all) = (
        record
            .complete_blocks()
            .filter(|of| of.trial(variant).is_some())
            .count(),
        record.complete_blocks().count(),
    );
    if own < all {
        format!(" ({})", many(own as u64, "block"))
    } else {
        String::new()
    }
}

fn name(conclusion: &Conclusion, index: usize, variant: &VariantFigures) -> String {
    let mark = match variant.no_success {
        Some(_) => " (no success)",
        None if conclusion.voids(index) => " (invalid)",
        None => "",
    };
    format!("{}{mark}", variant.name)
}

fn response_time(variant: &VariantFigures, metric: Metric) -> Cell {
    match variant
        .response_time
        .iter()
        .find(|found| found.metric == metric)
    {
        Some(found) if found.at_least => Cell::AtLeast(Quantity::us(found.us)),
        Some(found) => Cell::Figure(Quantity::us(found.us)),
        None => Cell::Missing,
    }
}

fn peak(bytes: Option<u64>) -> Cell {
    Cell::figure(bytes.map(|bytes| Quantity::bytes(bytes as f64)))
}

/// The count of failures. If it proves little, also the possible share.
fn failed(variant: &VariantFigures) -> String {
    let seen = format!("{} of {}", count(variant.failed), count(variant.requests));
    let little = variant.failed > 0 || variant.requests < REQUESTS_TELLING;
    match variant
        .failed_interval
        .as_ref()
        .filter(|_| little && variant.no_success.is_none())
    {
        Some(interval) => format!("{seen} ({})", share_below(interval.high)),
        None => seen,
    }
}

/// The average effect of each factor over the others, and the interactions of two. `None` with fewer than two
/// factors.
pub(crate) fn effects(conclusion: &Conclusion) -> Option<Table> {
    let (shown, note) = shown_effects(conclusion);
    use ColumnFit::{Figure, Whole, Wrapped};
    let columns = [
        ("effect", Whole),
        ("change", Figure),
        ("95 % interval", Figure),
        ("factor", Wrapped),
    ];
    let mut table = Table::new(effects_heading(conclusion)?, columns);
    let estimates = shown.iter().filter_map(|effect| effect.estimate.as_ref());
    let estimates: Vec<_> = estimates.map(|of| (of.ratio, of.low, of.high)).collect();
    let mut told = intervals(&estimates).into_iter();
    for effect in shown {
        let tone = tone(effect);
        let (value, interval) = effect.estimate.as_ref().and_then(|_| told.next()).unzip();
        table.push(vec![
            Cell::Word(tone, effect_word(effect).to_uppercase()),
            Cell::optional(value),
            Cell::optional(interval),
            Cell::text(&effect.label),
        ]);
    }
    table
        .rows
        .extend(note.map(|note| TableRow::Note(Tone::Faint, note)));
    Some(table)
}

/// An interaction of two factors is neither good nor bad.
pub(super) fn tone(effect: &Effect) -> Tone {
    if effect.interacts() {
        Tone::Notable
    } else {
        effect.outcome.into()
    }
}

/// Heading of the effects, with the metric.
pub(crate) fn effects_heading(conclusion: &Conclusion) -> Option<String> {
    let judged = judged_by(conclusion, conclusion.effects.first()?);
    Some(format!(
        "Effects of factors on {judged}, each averaged over the other factors"
    ))
}

/// The effects that are shown, main effects first, and a note on why there are none or which are left out.
pub(crate) fn shown_effects(conclusion: &Conclusion) -> (Vec<&Effect>, Option<String>) {
    let all = &conclusion.effects;
    if all.iter().all(|effect| effect.outcome == Outcome::Invalid) {
        return (Vec::new(), Some(format!("invalid: {VOID}")));
    }
    if all.iter().all(|effect| effect.estimate.is_none()) {
        let lost = conclusion
            .variants
            .iter()
            .any(|variant| variant.no_success.is_some());
        let reason = match (conclusion.awaits_look, lost) {
            (true, _) => "no interval before the end of the run",
            (false, true) => {
                "no estimate: it takes a figure of every variant, and one had no success"
            }
            (false, false) => "no estimate",
        };
        return (Vec::new(), Some(reason.to_owned()));
    }
    let counted = |effect: &&Effect| {
        let inconclusive =
            effect.kind == EffectKind::Interaction && effect.outcome == Outcome::Inconclusive;
        all.len() > EFFECTS_MAX && inconclusive
    };
    let (hidden, shown): (Vec<&Effect>, Vec<&Effect>) = all.iter().partition(counted);
    let (dwarfed, shown): (Vec<&Effect>, Vec<&Effect>) = shown
        .into_iter()
        .partition(|effect| conclusion.is_dwarfed(effect));
    let note = |of: &[&Effect], noun: &str, what: &str| {
        let are = if of.len() == 1 { "is" } else { "are" };
        (!of.is_empty()).then(|| format!("{} {are} {what}", many(of.len() as u64, noun)))
    };
    let depends = "not shown: an interaction is as large, so there is none by itself";
    let depends = note(&dwarfed, "main effect", depends);
    let more = note(&hidden, "more interaction", "inconclusive; see the JSON");
    let notes: Vec<String> = depends.into_iter().chain(more).collect();
    (shown, (!notes.is_empty()).then(|| notes.join("; ")))
}

/// Tables of services, of requests and of generators, if there are several.
pub(crate) fn parts(conclusion: &Conclusion) -> Vec<Table> {
    let variants = &conclusion.variants;
    // A single process is already covered by the table of variants.
    let several = |variant: &VariantFigures| {
        variant.services.len() > 1 || variant.services.iter().any(|service| service.processes > 1)
    };
    let mut parts = Vec::new();
    parts.extend(variants.iter().any(several).then(|| services(variants)));
    parts.extend(
        variants
            .iter()
            .any(|variant| variant.endpoints.len() > 1)
            .then(|| endpoints(variants)),
    );
    parts.extend((!conclusion.generators.is_empty()).then(|| generators(&conclusion.generators)));
    parts
}

/// Adds rows of a variant, whose name is only in the first row.
fn rows(table: &mut Table, variant: &VariantFigures, rows: impl Iterator<Item = Vec<Cell>>) {
    for (index, cells) in rows.enumerate() {
        let name = if index == 0 {
            variant.name.clone()
        } else {
            String::new()
        };
        table.push([vec![Cell::Text(name)], cells].concat());
    }
}

fn named<const N: usize>(heading: &str, names: [&str; 2], figures: [&str; N]) -> Table {
    Table::of_figures(heading, names.map(|name| (name, ColumnFit::Whole)), figures)
}

fn services(variants: &[VariantFigures]) -> Table {
    let figures = ["CPU/request", "share", "peak memory", "processes serving"];
    let mut table = named("Cost by service", ["variant", "service"], figures);
    let cells = |cost: &ServiceCost| {
        vec![
            Cell::text(&cost.service),
            Cell::figure(cost.cpu_us_per_request.map(Quantity::us)),
            Cell::optional(cost.cpu_share.map(share)),
            peak(cost.peak_rss_bytes),
            Cell::Text(serving(cost)),
        ]
    };
    variants
        .iter()
        .for_each(|variant| rows(&mut table, variant, variant.services.iter().map(cells)));
    table
}

/// Workers are listed if their number differs from the processes. Most services have an additional process
/// that distributes connections.
fn serving(cost: &ServiceCost) -> String {
    let asked = cost
        .workers
        .map(|workers| format!(" ({})", many(workers.into(), "worker")));
    let serving = cost
        .serving
        .map_or_else(|| "–".to_owned(), |serving| serving.to_string());
    format!(
        "{serving} of {}{}",
        cost.processes,
        asked.unwrap_or_default()
    )
}

fn endpoints(variants: &[VariantFigures]) -> Table {
    let mut table = named(
        "By request",
        ["variant", "request"],
        ["sent", "successful", "failed"],
    );
    let cells = |endpoint: &EndpointFigures| {
        let part = endpoint.failed as f64 / endpoint.sent.max(1) as f64;
        let part = if endpoint.failed > 0 {
            format!(" ({})", share(part))
        } else {
            String::new()
        };
        vec![
            Cell::text(&endpoint.name),
            Cell::Text(count(endpoint.sent)),
            Cell::figure(endpoint.throughput_per_s.map(Quantity::per_s)),
            Cell::Text(format!("{}{part}", count(endpoint.failed))),
        ]
    };
    variants
        .iter()
        .for_each(|variant| rows(&mut table, variant, variant.endpoints.iter().map(cells)));
    table
}

fn generators(all: &[GeneratorShare]) -> Table {
    let heading = match all.len().saturating_sub(GENERATORS_MAX) {
        0 => "Load by generator".to_owned(),
        rest => format!("Load by generator (and {rest} more in the JSON)"),
    };
    let figures = [
        "requests",
        "share",
        "busiest thread",
        "began late",
        "clock",
        "steal",
        "lost",
    ];
    let mut table = named(&heading, ["generator", "machine"], figures);
    for one in all.iter().take(GENERATORS_MAX) {
        table.push(vec![
            Cell::text(&one.name),
            Cell::optional(one.host.clone()),
            Cell::Text(count(one.requests)),
            Cell::Text(share(one.share)),
            Cell::optional(one.busiest_share.map(share)),
            Cell::Figure(Quantity::us(one.late_us_max)),
            Cell::Text(format!("±{}", Quantity::us(one.clock_error_us_max))),
            Cell::optional(one.steal_share.map(share)),
            Cell::Text(count(one.lost.into())),
        ]);
    }
    table
}

/// Columns before and after the columns of factors.
const BEFORE: [&str; 2] = ["experiment", "variant"];
const AFTER: [&str; 7] = [
    "block", "dropped", "metric", "unit", "value", "requests", "failed",
];
/// Prefix of a factor's name in the heading, which prevents collisions with other columns and formulas.
const FACTOR: &str = "factor.";
/// The column after these, if capacity was measured.
const RATE: &str = "rate_per_s";
/// The last column: numbers of the findings that make the variant's figures invalid.
pub(crate) const INVALID: &str = "invalid";

/// One row for each variant, block and metric. For capacities one row for each point of the curve and figure,
/// without a block.
pub(super) fn figures(record: &Record, conclusion: &Conclusion) -> CsvRows {
    let plan = &record.header.plan;
    let is_capacity = !conclusion.capacities.is_empty();
    let factors: Vec<String> = plan
        .factors
        .iter()
        .map(|factor| format!("{FACTOR}{}", csv::name(&factor.name)))
        .collect();
    let rate: Vec<String> = is_capacity.then(|| RATE.to_owned()).into_iter().collect();
    let mut rows = vec![
        [
            BEFORE.map(str::to_owned).into(),
            factors,
            AFTER.map(str::to_owned).into(),
            rate,
            vec![INVALID.to_owned()],
        ]
        .concat(),
    ];
    let all = analysis::series(record);
    let ended: Vec<&Block> = record
        .blocks
        .iter()
        .filter(|block| block.seconds.is_some())
        .collect();
    for (index, variant) in plan.variants.iter().enumerate() {
        let level = |factor: &Factor| {
            variant
                .levels
                .get(&factor.name)
                .map(|level| csv::name(level))
        };
        let levels = plan
            .factors
            .iter()
            .map(|factor| level(factor).unwrap_or_default());
        let names: Vec<String> = [csv::name(&plan.name), csv::name(&variant.name)]
            .into_iter()
            .chain(levels)
            .collect();
        let invalid = Finding::voiding(&conclusion.findings, index);
        let mut put = |figures: [String; 7], rate: Option<f64>| {
            let rate = is_capacity.then(|| csv::figure(rate)).into_iter().collect();
            rows.push([names.clone(), figures.into(), rate, vec![invalid.clone()]].concat());
        };
        for (place, block) in ended.iter().enumerate() {
            let counts = counts(block, index);
            for series in &all {
                let figure = (
                    series.of.name(),
                    series.of.unit(),
                    series.values[index][place],
                );
                put(fields(Some(*block), figure, counts), None);
            }
        }
        for of in conclusion
            .capacities
            .get(index)
            .into_iter()
            .flat_map(|of| &of.curve)
        {
            let failed = (of.failed_share * of.requests as f64).round() as u64;
            let limited = capacity::other_quantiles(record).into_iter();
            let limited = limited.map(|(at, metric)| (metric.name(), Unit::Us, of.slo[at]));
            let figures = [
                ("p50", Unit::Us, of.p50_us),
                ("p90", Unit::Us, of.p90_us),
                ("p99", Unit::Us, of.p99_us),
                ("cores", Unit::Number, of.cores),
            ];
            for figure in figures.into_iter().chain(limited) {
                put(fields(None, figure, (of.requests, failed)), Some(of.per_s));
            }
        }
    }
    rows
}

/// Fields below [`AFTER`]: a figure of the block, if it has one, and its requests and failures.
fn fields(
    block: Option<&Block>,
    (metric, unit, value): (&str, Unit, Option<f64>),
    (requests, failed): (u64, u64),
) -> [String; 7] {
    let number = block
        .map(|block| block.number.to_string())
        .unwrap_or_default();
    let dropped = block
        .is_some_and(|block| block.dropped.is_some())
        .to_string();
    let (metric, unit) = (metric.to_owned(), unit_name(unit).to_owned());
    [
        number,
        dropped,
        metric,
        unit,
        csv::figure(value),
        requests.to_string(),
        failed.to_string(),
    ]
}

/// Requests of a variant in a block, and how many of them did not end in an expected response.
fn counts(block: &Block, variant: usize) -> (u64, u64) {
    let slices = block
        .trial(variant)
        .into_iter()
        .flat_map(|trial| trial.measured());
    let RequestOutcome { due, failed } = slices.map(|slice| slice.counts.outcome()).sum();
    (due, failed)
}
