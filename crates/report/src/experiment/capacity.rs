//! Capacities of variants: in words, as a chart, and as a table of response times over the rate. The wording is
//! the same in all places.

use analysis::{Capacity, Conclusion, Erratic, LimitedBy, RatePoint};
use model::document::{Cell, Chart, ChartPoint, ChartSeries, QuestionAnswer, Table, Tone};
use model::quantity::{Quantity, count, many, rate, share, small_share, span, three_digits};
use model::{Metric, Unit};
use plan::{Limit, LimitFigure};
use record::{EndReason, Record};

use super::answer::VOID;
use crate::chart::SERIES_MAX;

/// A rate in words, as users count.
fn requests(per_s: f64) -> String {
    format!("{} requests/s", rate(per_s).trim_end_matches("/s"))
}

/// The limits, as the user wrote them.
fn slo(record: &Record) -> String {
    let limits = record.header.plan.design.slo.iter().map(Limit::to_string);
    limits.collect::<Vec<_>>().join(" and ")
}

/// Tone and word of the verdict.
fn verdict(of: &Capacity) -> (Tone, &'static str) {
    match (of.capacity_per_s, of.erratic, of.bracket) {
        (Some(_), ..) => (Tone::Good, "holds"),
        (None, None, [None, Some(_)]) => (Tone::Bad, "nothing holds"),
        _ => (Tone::Doubtful, "inconclusive"),
    }
}

/// The capacity in words, or a bound of it.
fn holds(record: &Record, of: &Capacity) -> String {
    let slo = slo(record);
    let erratic = of
        .erratic
        .map(|of| [of.broke_per_s, of.met_per_s].map(rate));
    match (of.capacity_per_s, erratic, of.bracket) {
        (Some(per_s), ..) if of.at_least => {
            format!("at least {} keep {slo}", requests(per_s))
        }
        (Some(per_s), ..) => format!("up to {} keep {slo}", requests(per_s)),
        (_, Some([broke, met]), _) => {
            format!("{slo} broke at {broke}, yet held at higher rates, to about {met}")
        }
        (_, _, [Some(kept), Some(broken)]) => format!(
            "the highest rate that keeps {slo} is between {} and {}; a number takes more blocks",
            rate(kept).trim_end_matches("/s"),
            requests(broken)
        ),
        (_, _, [Some(kept), None]) => {
            format!(
                "at least {} keep {slo}: it broke at no rate",
                requests(kept)
            )
        }
        (_, _, [None, Some(broken)]) => {
            format!("{slo} broke at every rate, from {} on", rate(broken))
        }
        (_, _, [None, None]) => "nothing was measured".to_owned(),
    }
}

/// The rate at which the first limit is reached, with its interval. `None` if only a lower bound is known.
fn reached(of: &Capacity) -> Option<String> {
    let (per_s, interval) = of
        .reached_per_s
        .zip(of.reached_interval)
        .filter(|_| !of.at_least)?;
    let low = rate(interval.low);
    let (low, high) = (low.trim_end_matches("/s"), rate(interval.high));
    Some(format!("{} (95 % CI {low} to {high})", rate(per_s)))
}

/// The capacity as a sentence.
fn held(record: &Record, of: &Capacity) -> String {
    let word = if of.erratic.is_some() {
        "inconclusive: "
    } else {
        ""
    };
    let reached = reached(of).map(|reached| format!("; the limit is reached at about {reached}"));
    format!("{word}{}{}", holds(record, of), reached.unwrap_or_default())
}

/// The sentence with the variant's name.
fn told(record: &Record, of: &Capacity) -> String {
    format!("{}: {}", of.variant, held(record, of))
}

/// Lines above the plot of a variant.
pub(crate) fn lines(
    record: &Record,
    conclusion: &Conclusion,
    variant: usize,
    of: &Capacity,
) -> Vec<String> {
    if conclusion.voids(variant) {
        return vec![format!("{}: {VOID}", of.variant)];
    }
    [told(record, of)]
        .into_iter()
        .chain(notes(record, variant, of))
        .collect()
}

/// Capacity of each variant.
pub(super) fn answers(record: &Record, conclusion: &Conclusion) -> Vec<QuestionAnswer> {
    let answer = |(variant, of): (usize, &Capacity)| {
        let (tone, word) = verdict(of);
        let detail = holds(record, of);
        let alone = conclusion.capacities.len() == 1;
        let notes = too_short(record, of)
            .into_iter()
            .chain(notes(record, variant, of))
            .collect();
        QuestionAnswer {
            notes,
            ..QuestionAnswer::new(
                if alone {
                    "capacity"
                } else {
                    of.variant.as_str()
                },
                tone,
                word,
                detail,
            )
        }
    };
    // An invalid variant is only shown in its finding.
    let shown = conclusion
        .capacities
        .iter()
        .enumerate()
        .filter(|(variant, _)| !conclusion.voids(*variant));
    shown.map(answer).collect()
}

/// Why there is no interval, and what to do.
fn too_short(record: &Record, of: &Capacity) -> Option<String> {
    match record.end()? {
        EndReason::BudgetTooSmall { needed_s } => Some(format!(
            "an interval takes four blocks of fresh processes: --budget {needed_s}s or more"
        )),
        EndReason::BudgetSpent if of.curve.is_empty() => {
            Some("the budget was over before a rate was tried: allow a larger --budget".to_owned())
        }
        _ => None,
    }
}

/// The capacity in one sentence, if nothing is compared. `None` if capacity is not measured.
pub(super) fn sentence(record: &Record, conclusion: &Conclusion) -> Option<String> {
    match conclusion.capacities.as_slice() {
        [] => None,
        [one] => Some(held(record, one)),
        several => Some(
            several
                .iter()
                .map(|of| told(record, of))
                .collect::<Vec<_>>()
                .join("; "),
        ),
    }
}

fn notes(record: &Record, variant: usize, of: &Capacity) -> Vec<String> {
    let is_low_end = of
        .capacity_per_s
        .zip(of.reached_interval)
        .is_some_and(|(per_s, interval)| per_s == interval.low);
    let lower = if is_low_end {
        ", and the capacity is the lower end"
    } else {
        ""
    };
    let reached =
        reached(of).map(|reached| format!("the limit is reached at about {reached}{lower}"));
    let half = of
        .near(0.5)
        .and_then(|point| Some((point.per_s, point.p99_us?)));
    let half = half.map(|(per_s, us)| {
        format!(
            "at half of the capacity ({}) p99 is {}",
            rate(per_s),
            Quantity::us(us)
        )
    });
    let beside: Vec<String> = reached.into_iter().chain(half).collect();
    let beside = (!beside.is_empty()).then(|| beside.join("; "));
    let longer = of.seconds_for_five_percent.filter(|_| !of.at_least);
    let longer = longer.map(|s| format!("±5 % would take about {}", span(s)));
    let at_least = of.capacity_per_s.filter(|_| of.at_least);
    let more = at_least.map(|_| format!("it may hold more: {}", why_at_least(record, variant, of)));
    [
        more,
        nothing_held(record, of),
        of.erratic.map(|erratic| doubt(of, erratic)),
        saturation(of),
        beside,
        overload(of),
        longer,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The limiting resource, and what the service does at its limit.
fn saturation(of: &Capacity) -> Option<String> {
    let per_s = of.saturated_per_s?;
    let cores = of.saturated_cores.map(three_digits);
    let cores = cores.map(|cores| format!(", with {cores} cores of the service"));
    // A limit that breaks far below saturation has another cause.
    let is_near = of.erratic.is_none() && (of.capacity_per_s.is_some() || of.bracket[0].is_some());
    let limit = limit_of_service(of.limited_by).filter(|_| is_near);
    let limit = limit.map(|limit| format!("{limit}; "));
    Some(format!(
        "{}saturation (closed loop) {}{}",
        limit.unwrap_or_default(),
        rate(per_s),
        cores.unwrap_or_default()
    ))
}

/// Why only a lower bound of the rate is known, and what to change.
fn why_at_least(record: &Record, variant: usize, of: &Capacity) -> String {
    let plan = &record.header.plan;
    match of.limited_by {
        LimitedBy::Client => {
            "the load generator was the limit; give it processors of its own (--cpus separate), more threads (load.threads), or \
             another machine"
                .to_owned()
        }
        LimitedBy::Connections => {
            let used = analysis::capacity::connections(record, variant).unwrap_or_default();
            let wanted = of.saturated_per_s.and_then(|per_s| {
                analysis::capacity::connections_wanted(record, variant, per_s)
            });
            let wanted = wanted.map_or("more".to_owned(), |wanted| count(wanted.into()));
            let bound = record.connections.as_ref().and_then(|chosen| chosen.bound.as_deref());
            let change = match bound.filter(|_| !plan.variants[variant].load.connections_typed) {
                Some(bound) => format!("{bound}; {wanted} would be enough"),
                None => format!("allow {wanted} with -c (load.connections)"),
            };
            format!("all {} were in use; {change}", many(used.into(), "connection"))
        }
        LimitedBy::Cpu | LimitedBy::Waiting | LimitedBy::Unknown => {
            "no request failed at the rates measured; limit response times too, as in --slo 'p99 < 50ms'".to_owned()
        }
    }
}

/// Limiting resource of the service. `None` if the client is the limit.
fn limit_of_service(limit: LimitedBy) -> Option<&'static str> {
    match limit {
        LimitedBy::Cpu => Some("limited by the service's processors"),
        LimitedBy::Waiting => Some(
            "limited by one thread of the service, or by what it waits for (its processors have time)",
        ),
        LimitedBy::Unknown => Some("the limiting resource is not visible from here"),
        LimitedBy::Client | LimitedBy::Connections => None,
    }
}

/// Why no rate is given, and what to do.
fn doubt(of: &Capacity, erratic: Erratic) -> String {
    let Erratic {
        broke_per_s,
        met_per_s: _,
        held_per_s,
        by_client,
    } = erratic;
    let p99 = of
        .curve
        .iter()
        .find(|point| point.per_s == broke_per_s)
        .and_then(|point| point.p99_us);
    let p99 = p99
        .map(|us| format!(" (p99 {})", Quantity::us(us)))
        .unwrap_or_default();
    let held = held_per_s.map(|held| format!("; up to {} the limits held", rate(held)));
    let (what, why) = match by_client {
        true => (
            "repeat while the machine has nothing else to do",
            "the load generator fell behind, so this may be its own delay",
        ),
        false => (
            "repeat on a quiet machine or with a larger --budget; if it stays, raise the limit, or limit p90",
            "requests missed the limit for a reason that does not follow the rate, as with pauses of the service or of the machine",
        ),
    };
    format!(
        "{what}: at {}{p99} {why}{}",
        rate(broke_per_s),
        held.unwrap_or_default()
    )
}

/// The next step if no rate held.
fn nothing_held(record: &Record, of: &Capacity) -> Option<String> {
    let ([None, Some(_)], None) = (of.bracket, of.erratic) else {
        return None;
    };
    let limit = record.header.plan.design.slo.first()?;
    let lowest = of.curve.first()?;
    let seen = lowest.slo.first().copied().flatten();
    let seen = seen.map(|value| {
        let unit = limit.figure.unit();
        let figure = limit.figure.name();
        format!(
            "; at {} {figure} was {}",
            rate(lowest.per_s),
            Quantity { value, unit }
        )
    });
    Some(format!(
        "raise the limit, or make the service faster{}",
        seen.unwrap_or_default()
    ))
}

fn overload(of: &Capacity) -> Option<String> {
    let overload = of.overload.as_ref()?;
    let (due, falls) = (rate(overload.per_s), rate(overload.goodput_per_s));
    let collapsed = overload
        .collapsed
        .then(|| format!("in overload ({due} due) it falls to {falls}; "));
    let recovers = if overload.recovered {
        "recovers"
    } else {
        "does not recover"
    };
    let behind = rate(overload.behind_per_s);
    Some(format!(
        "{}{recovers} from overload at {behind}",
        collapsed.unwrap_or_default()
    ))
}

/// The limit in the chart: the one that all variants meet first, or else the first on a response time.
fn charted(record: &Record, conclusion: &Conclusion) -> usize {
    let slo = &record.header.plan.design.slo;
    let texts: Vec<Option<String>> = slo.iter().map(|limit| Some(limit.to_string())).collect();
    let met = conclusion.capacities.iter().map(|of| &of.met_first);
    let met = model::distinct(met.filter(|met| met.is_some()));
    let first = || {
        slo.iter()
            .position(|limit| limit.figure != LimitFigure::Failed)
    };
    match met.as_slice() {
        [only] => texts.iter().position(|text| text == *only),
        _ => first(),
    }
    .unwrap_or(0)
}

/// The figure that the first limit bounds over the rate, with all variants in one chart. `None` without a
/// measured rate, or with too many variants.
pub(super) fn chart(record: &Record, conclusion: &Conclusion) -> Option<Chart> {
    let all = &conclusion.capacities;
    let at = charted(record, conclusion);
    let limit = record.header.plan.design.slo.get(at)?;
    let series = |of: &Capacity| ChartSeries {
        name: if all.len() == 1 {
            String::new()
        } else {
            of.variant.clone()
        },
        points: of
            .curve
            .iter()
            .filter_map(|point| charted_point(point, at))
            .collect(),
        marked: of.capacity_per_s.map(|per_s| (per_s, rate(per_s))),
    };
    let series: Vec<ChartSeries> = all.iter().map(series).collect();
    let is_shown = series.len() <= SERIES_MAX && series.iter().any(|of| !of.points.is_empty());
    is_shown.then(|| Chart {
        heading: format!("{} over requests per second", limit.figure.name()),
        across: Unit::PerS,
        up: limit.figure.unit(),
        limit: (limit.bound.value(), limit.to_string()),
        series,
    })
}

/// `None` if it is not known whether the limits held. Without a value they broke.
fn charted_point(point: &RatePoint, at: usize) -> Option<ChartPoint> {
    let is_kept = point.held?;
    let up = *point.slo.get(at)?;
    Some(ChartPoint {
        across: point.per_s,
        up: if is_kept {
            up?
        } else {
            up.unwrap_or(f64::INFINITY)
        },
        is_kept,
    })
}

/// Response times over the rate, a table for each variant.
pub(crate) fn curves(record: &Record, conclusion: &Conclusion) -> Vec<Table> {
    let alone = conclusion.capacities.len() == 1;
    let columns = quantile_columns(record);
    let curve = |of: &Capacity| {
        let of_whom = if alone {
            String::new()
        } else {
            format!(" of {}", of.variant)
        };
        let names = columns.iter().map(|column| column.name);
        let figures = ["rate", "of capacity", "limits"].into_iter().chain(names);
        let figures = figures.chain(["failed", "cores", "requests"]);
        let mut table = Table::of_figures(
            format!("Response times{of_whom} over the rate"),
            [],
            figures,
        );
        let row = |point| row(of, point, &columns);
        of.curve.iter().for_each(|point| table.push(row(point)));
        table
    };
    // An invalid capacity has none.
    conclusion
        .capacities
        .iter()
        .filter(|of| !of.curve.is_empty())
        .map(curve)
        .collect()
}

/// Limited quantiles that the table does not have anyway, by their place in the SLO.
pub(super) fn other_quantiles(record: &Record) -> Vec<(usize, Metric)> {
    let slo = record.header.plan.design.slo.iter().enumerate();
    let name = |(at, limit): (usize, &Limit)| {
        let metric = limit.figure.metric()?;
        let is_other = !["p50", "p90", "p99"].contains(&metric.name());
        is_other.then_some((at, metric))
    };
    slo.filter_map(name).collect()
}

/// A quantile of the response times over the rate.
struct QuantileColumn {
    q: f64,
    name: &'static str,
    source: QuantileSource,
}

/// Field of a [`RatePoint`] with a quantile.
#[derive(Clone, Copy)]
enum QuantileSource {
    P50,
    P90,
    P99,
    /// The limit with this index.
    Limit(usize),
}

impl QuantileSource {
    fn us(self, point: &RatePoint) -> Option<f64> {
        match self {
            QuantileSource::P50 => point.p50_us,
            QuantileSource::P90 => point.p90_us,
            QuantileSource::P99 => point.p99_us,
            QuantileSource::Limit(at) => point.slo[at],
        }
    }
}

/// The quantiles of a curve, smallest first.
fn quantile_columns(record: &Record) -> Vec<QuantileColumn> {
    let fixed = [
        (0.5, "p50", QuantileSource::P50),
        (0.9, "p90", QuantileSource::P90),
        (0.99, "p99", QuantileSource::P99),
    ];
    let others = other_quantiles(record).into_iter().map(|(at, metric)| {
        let q = metric.quantile().unwrap_or(1.0);
        (q, metric.name(), QuantileSource::Limit(at))
    });
    let column = |(q, name, source)| QuantileColumn { q, name, source };
    let mut columns: Vec<QuantileColumn> = fixed.into_iter().chain(others).map(column).collect();
    columns.sort_by(|one, other| one.q.total_cmp(&other.q));
    columns
}

fn row(of: &Capacity, point: &RatePoint, columns: &[QuantileColumn]) -> Vec<Cell> {
    let failed = if point.failed_share > 0.0 {
        small_share(point.failed_share)
    } else {
        "0".to_owned()
    };
    let mut cells = vec![
        Cell::Figure(Quantity::per_s(point.per_s)),
        Cell::optional(
            of.capacity_per_s
                .map(|per_s| share((point.per_s / per_s * 100.0).round() / 100.0)),
        ),
        Cell::optional(
            point
                .held
                .map(|held| if held { "held" } else { "broken" }.to_owned()),
        ),
    ];
    let times = columns.iter().map(|column| column.source.us(point));
    cells.extend(times.map(|us| Cell::figure(us.map(Quantity::us))));
    cells.extend([
        Cell::text(failed),
        Cell::optional(point.cores.map(three_digits)),
        Cell::Figure(Quantity::count(point.requests)),
    ]);
    cells
}
