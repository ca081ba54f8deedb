//! What variants bear, in words and as a table of response times over the rate. The sentence is the same wherever it stands.

use analysis::{Capacity, Conclusion, LimitedBy, RatePoint};
use model::document::{Answer, Cell, Table, Tone};
use model::quantity::{Quantity, rate, share, small_share, span, three_digits};
use plan::Limit;
use record::{EndReason, Record};

use super::answer::VOID;

/// What one variant bears; and whether there is a figure at all.
fn holds(record: &Record, of: &Capacity) -> (bool, String) {
    let limits: Vec<String> = record.header.plan.design.slo.iter().map(Limit::to_string).collect();
    let slo = limits.join(" and ");
    match (of.per_s, &of.interval, of.bracket) {
        // Of what is known from below alone the upper end means nothing.
        (Some(_), Some(interval), _) if of.at_least => {
            (true, format!("at least {} with {slo}", rate(interval.low)))
        }
        (Some(per_s), Some(interval), _) => {
            let low = rate(interval.low);
            let (low, high) = (low.trim_end_matches("/s"), rate(interval.high));
            (true, format!("{} (95 % CI {low} to {high}) with {slo}", rate(per_s)))
        }
        (_, _, [Some(kept), Some(broken)]) => (
            false,
            format!("between {} and {} with {slo}: a search on one process", rate(kept), rate(broken)),
        ),
        (_, _, [Some(kept), None]) => (false, format!("at least {} with {slo}", rate(kept))),
        (_, _, [None, Some(broken)]) => (false, format!("less than {} with {slo}", rate(broken))),
        (_, _, [None, None]) => (false, "nothing was measured".to_owned()),
    }
}

/// The same as a sentence.
fn held(record: &Record, of: &Capacity) -> String {
    let (is_known, detail) = holds(record, of);
    format!("{}{detail}", if is_known { "holds " } else { "" })
}

/// The same with the variant's name.
fn told(record: &Record, of: &Capacity) -> String {
    format!("{}: {}", of.variant, held(record, of))
}

/// What stands above a picture of one.
pub(crate) fn lines(record: &Record, conclusion: &Conclusion, variant: usize, of: &Capacity) -> Vec<String> {
    if conclusion.voids(variant) {
        return vec![format!("{}: {VOID}", of.variant)];
    }
    [told(record, of)].into_iter().chain(notes(of)).collect()
}

/// What each variant bears.
pub(super) fn answers(record: &Record, conclusion: &Conclusion) -> Vec<Answer> {
    let answer = |of: &Capacity| {
        let (is_known, detail) = holds(record, of);
        let (tone, word) = if is_known { (Tone::Good, "holds") } else { (Tone::Doubtful, "inconclusive") };
        let alone = conclusion.capacities.len() == 1;
        let notes = notes(of).into_iter().chain(too_short(record)).collect();
        Answer {
            notes,
            ..Answer::new(if alone { "capacity" } else { of.variant.as_str() }, tone, word, detail)
        }
    };
    // One that is invalid says so in its finding alone.
    let shown = conclusion.capacities.iter().enumerate().filter(|(variant, _)| !conclusion.voids(*variant));
    shown.map(|(_, of)| answer(of)).collect()
}

/// Why there is no interval, and what to do.
fn too_short(record: &Record) -> Option<String> {
    let EndReason::BudgetTooSmall { needed_s } = record.end()? else { return None };
    Some(format!("an interval takes four processes: --budget {needed_s}s or more"))
}

/// The same in one sentence, where nothing is compared; `None` where capacity is not measured.
pub(super) fn sentence(record: &Record, conclusion: &Conclusion) -> Option<String> {
    match conclusion.capacities.as_slice() {
        [] => None,
        [one] => Some(held(record, one)),
        several => Some(several.iter().map(|of| told(record, of)).collect::<Vec<_>>().join("; ")),
    }
}

fn notes(of: &Capacity) -> Vec<String> {
    let limit = match of.limited_by {
        LimitedBy::Cpu => "limited by the service's processors",
        LimitedBy::Waiting => {
            "limited by one thread of the service, or by what it waits for: its processors have time"
        }
        LimitedBy::Client => "limited by the load generator, not the service: give it more threads and cores",
        LimitedBy::Connections => "limited by the connections, not the service: give it more of them (-c)",
        LimitedBy::Unknown => "what limits it nobody sees from here",
    };
    let unfailed = (of.at_least && !of.limited_by.is_of_client())
        .then(|| "no request failed at the rates measured".to_owned());
    let half = of.near(0.5).and_then(|point| point.p99_us);
    let half = half.map(|us| format!("at half of that p99 is {}", Quantity::us(us)));
    let saturated = of.saturated_per_s.map(|per_s| {
        let cores = of.saturated_cores.map(|cores| format!(", using {} cores", three_digits(cores)));
        format!("it saturates at {}{}, {limit}", rate(per_s), cores.unwrap_or_default())
    });
    let first: Vec<String> = half.into_iter().chain(saturated).collect();
    let overload = of.overload.as_ref().map(|overload| {
        let (due, falls) = (rate(overload.per_s), rate(overload.goodput_per_s));
        let collapsed = overload.collapsed.then(|| format!("in overload ({due} due) it falls to {falls}; "));
        let recovers = if overload.recovered { "recovers" } else { "does not recover" };
        let behind = rate(overload.behind_per_s);
        format!("{}{recovers} from overload at {behind}", collapsed.unwrap_or_default())
    });
    let longer = of.seconds_for_five_percent.filter(|_| !of.at_least);
    let longer = longer.map(|s| format!("±5 % would take about {}", span(s)));
    let first = (!first.is_empty()).then(|| first.join("; "));
    [unfailed, first, overload, longer].into_iter().flatten().collect()
}

/// Response times over the rate, a table for each variant.
pub(crate) fn curves(conclusion: &Conclusion) -> Vec<Table> {
    let alone = conclusion.capacities.len() == 1;
    let curve = |of: &Capacity| {
        let of_whom = if alone { String::new() } else { format!(" of {}", of.variant) };
        let figures = ["rate", "of capacity", "p50", "p90", "p99", "failed", "cores", "requests"];
        let mut table = Table::of_figures(format!("Response times{of_whom} over the rate"), [], figures);
        of.curve.iter().for_each(|point| table.push(row(of, point)));
        table
    };
    conclusion.capacities.iter().map(curve).collect()
}

fn row(of: &Capacity, point: &RatePoint) -> Vec<Cell> {
    let time = |us: Option<f64>| Cell::figure(us.map(Quantity::us));
    let failed = if point.failed_share > 0.0 { small_share(point.failed_share) } else { "0".to_owned() };
    vec![
        Cell::Figure(Quantity::per_s(point.per_s)),
        Cell::optional(of.per_s.map(|per_s| share((point.per_s / per_s * 100.0).round() / 100.0))),
        time(point.p50_us),
        time(point.p90_us),
        time(point.p99_us),
        Cell::text(failed),
        Cell::optional(point.cores.map(three_digits)),
        Cell::Figure(Quantity::count(point.requests)),
    ]
}
