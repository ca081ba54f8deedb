//! Capacities of variants, in words and as a table of response times over the rate. The wording is the same
//! in all places.

use analysis::{Capacity, Conclusion, Erratic, LimitedBy, RatePoint};
use model::document::{Cell, QuestionAnswer, Table, Tone};
use model::quantity::{Quantity, count, many, rate, share, small_share, span, three_digits};
use plan::Limit;
use record::{EndReason, Record};

use super::answer::VOID;

/// The rate that holds, in words, and whether there is one.
fn holds(record: &Record, of: &Capacity) -> (bool, String) {
    let limits: Vec<String> = record
        .header
        .plan
        .design
        .slo
        .iter()
        .map(Limit::to_string)
        .collect();
    let slo = limits.join(" and ");
    match (of.holds_per_s(), of.erratic, of.bracket) {
        (Some(per_s), ..) if of.at_least => (true, format!("at least {} with {slo}", rate(per_s))),
        (Some(per_s), ..) => (true, format!("{} with {slo}", rate(per_s))),
        (
            _,
            Some(Erratic {
                broke_per_s,
                met_per_s,
                ..
            }),
            _,
        ) => (
            false,
            format!(
                "{slo} broke at {}, yet held up to about {}",
                rate(broke_per_s),
                rate(met_per_s)
            ),
        ),
        (_, _, [Some(kept), Some(broken)]) => (
            false,
            format!(
                "between {} and {} with {slo}: without an interval",
                rate(kept),
                rate(broken)
            ),
        ),
        (_, _, [Some(kept), None]) => (false, format!("at least {} with {slo}", rate(kept))),
        (_, _, [None, Some(broken)]) => (false, format!("less than {} with {slo}", rate(broken))),
        (_, _, [None, None]) => (false, "nothing was measured".to_owned()),
    }
}

/// The rate at which the first limit is reached, with its interval. `None` if only a lower bound is known.
fn reached(of: &Capacity) -> Option<String> {
    let (per_s, interval) = of.per_s.zip(of.interval).filter(|_| !of.at_least)?;
    let low = rate(interval.low);
    let (low, high) = (low.trim_end_matches("/s"), rate(interval.high));
    Some(format!("{} (95 % CI {low} to {high})", rate(per_s)))
}

/// The capacity as a sentence.
fn held(record: &Record, of: &Capacity) -> String {
    let (is_known, detail) = holds(record, of);
    let reached = reached(of).map(|reached| format!("; the limit is reached at about {reached}"));
    let word = match of.erratic {
        _ if is_known => "holds ",
        Some(_) => "inconclusive: ",
        None => "",
    };
    format!("{word}{detail}{}", reached.unwrap_or_default())
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
        let (is_known, detail) = holds(record, of);
        let (tone, word) = if is_known {
            (Tone::Good, "holds")
        } else {
            (Tone::Doubtful, "inconclusive")
        };
        let alone = conclusion.capacities.len() == 1;
        let notes = notes(record, variant, of)
            .into_iter()
            .chain(too_short(record))
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
fn too_short(record: &Record) -> Option<String> {
    let EndReason::BudgetTooSmall { needed_s } = record.end()? else {
        return None;
    };
    Some(format!(
        "an interval takes four processes: --budget {needed_s}s or more"
    ))
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
    let half = of
        .near(0.5)
        .and_then(|point| Some((point.per_s, point.p99_us?)));
    let half = half.map(|(per_s, us)| {
        format!(
            "at half of that ({}) p99 is {}",
            rate(per_s),
            Quantity::us(us)
        )
    });
    let saturated = of.saturated_per_s.map(|per_s| {
        let cores = of
            .saturated_cores
            .map(|cores| format!(", using {} cores", three_digits(cores)));
        let limit = limit_of_service(of.limited_by).map(|limit| format!(", {limit}"));
        format!(
            "it saturates at {}{}{}",
            rate(per_s),
            cores.unwrap_or_default(),
            limit.unwrap_or_default()
        )
    });
    let first: Vec<String> = half.into_iter().chain(saturated).collect();
    let first = (!first.is_empty()).then(|| first.join("; "));
    let longer = of.seconds_for_five_percent.filter(|_| !of.at_least);
    let longer = longer.map(|s| format!("±5 % would take about {}", span(s)));
    let explained = [
        meaning(record, variant, of),
        of.erratic.map(|erratic| doubt(of, erratic)),
    ];
    explained
        .into_iter()
        .chain([first, overload(of), longer])
        .flatten()
        .collect()
}

/// Meaning of the rate that holds, and why it may be higher.
fn meaning(record: &Record, variant: usize, of: &Capacity) -> Option<String> {
    of.holds_per_s()?;
    let rest = match reached(of) {
        Some(reached) => format!("the limit is reached at about {reached}"),
        None => format!(
            "the service may hold more: {}",
            why_at_least(record, variant, of)
        ),
    };
    Some(format!(
        "at every rate measured up to that the limits held; {rest}"
    ))
}

/// Why only a lower bound of the rate is known, and what to change.
fn why_at_least(record: &Record, variant: usize, of: &Capacity) -> String {
    let plan = &record.header.plan;
    match of.limited_by {
        LimitedBy::Client => {
            "the load generator was at its limit; give it processors of its own (--cpus separate), more threads (load.threads), or \
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
            "limited by one thread of the service, or by what it waits for: its processors have time",
        ),
        LimitedBy::Unknown => Some("what limits it nobody sees from here"),
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
    let held = held_per_s.map(|held| {
        format!(
            "at every rate measured up to {} the limits held; ",
            rate(held)
        )
    });
    let why = match by_client {
        true => {
            "the load generator fell behind there, so this may be its own delay; repeat while the machine has nothing else to do"
        }
        false => {
            "what misses the limit there does not follow the rate, as with pauses of the service or of the machine; repeat on a quiet \
             machine or with a larger --budget, and if it stays allow more: a longer time, or p90"
        }
    };
    format!(
        "{}at {}{p99} {why}",
        held.unwrap_or_default(),
        rate(broke_per_s)
    )
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

/// Response times over the rate, a table for each variant.
pub(crate) fn curves(conclusion: &Conclusion) -> Vec<Table> {
    let alone = conclusion.capacities.len() == 1;
    let curve = |of: &Capacity| {
        let of_whom = if alone {
            String::new()
        } else {
            format!(" of {}", of.variant)
        };
        let figures = [
            "rate",
            "of what holds",
            "limits",
            "p50",
            "p90",
            "p99",
            "failed",
            "cores",
            "requests",
        ];
        let mut table = Table::of_figures(
            format!("Response times{of_whom} over the rate"),
            [],
            figures,
        );
        of.curve.iter().for_each(|point| table.push(row(of, point)));
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

fn row(of: &Capacity, point: &RatePoint) -> Vec<Cell> {
    let time = |us: Option<f64>| Cell::figure(us.map(Quantity::us));
    let failed = if point.failed_share > 0.0 {
        small_share(point.failed_share)
    } else {
        "0".to_owned()
    };
    vec![
        Cell::Figure(Quantity::per_s(point.per_s)),
        Cell::optional(
            of.holds_per_s()
                .map(|per_s| share((point.per_s / per_s * 100.0).round() / 100.0)),
        ),
        Cell::optional(
            point
                .held
                .map(|held| if held { "held" } else { "broken" }.to_owned()),
        ),
        time(point.p50_us),
        time(point.p90_us),
        time(point.p99_us),
        Cell::text(failed),
        Cell::optional(point.cores.map(three_digits)),
        Cell::Figure(Quantity::count(point.requests)),
    ]
}
