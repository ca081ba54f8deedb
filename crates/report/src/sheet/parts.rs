//! Variants taken apart: what each service cost, and what came of each of several requests. And the load: what each generator had to do
//! with it. Tables of their own, where there is something to tell apart.

use analysis::{Conclusion, Endpoint, GeneratorShare, ServiceCost, Variant};

use model::Unit;

use super::Row;
use crate::figure::{column, count, share};

/// A table below that of the variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it tells, without a full stop.
    pub heading: String,
    /// Headings of its columns; the first two are names, the others figures.
    pub columns: Vec<String>,
    /// Where it is of variants, the name of each stands in the first of its rows only.
    pub rows: Vec<Row>,
}

/// The tables that the record has something for.
pub(super) fn parts(conclusion: &Conclusion) -> Vec<Part> {
    let variants = &conclusion.variants;
    // One process is no more than what the table of variants tells.
    let several = |variant: &Variant| {
        variant.services.len() > 1 || variant.services.iter().any(|service| service.processes > 1)
    };
    let mixed = |variant: &Variant| variant.endpoints.len() > 1;
    let mut parts = Vec::new();
    if variants.iter().any(several) {
        parts.push(services(variants));
    }
    if variants.iter().any(mixed) {
        parts.push(endpoints(variants));
    }
    if !conclusion.generators.is_empty() {
        parts.push(generators(&conclusion.generators));
    }
    parts
}

/// Generators that a table has room for.
const GENERATORS_MAX: usize = 40;

fn generators(all: &[GeneratorShare]) -> Part {
    let columns = [
        "generator",
        "machine",
        "requests",
        "share",
        "busiest thread",
        "began late",
        "clock",
        "steal",
        "lost",
    ];
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let ms = |us: f64| format!("{:.2} ms", us / 1e3);
    let row = |one: &GeneratorShare| Row {
        cells: vec![
            one.name.clone(),
            or_dash(one.host.clone()),
            count(one.requests),
            format!("{:.1} %", one.share * 100.0),
            or_dash(one.busiest_share.map(percent)),
            ms(one.late_us_max),
            format!("±{}", ms(one.clock_error_us_max)),
            or_dash(one.steal_share.map(percent)),
            count(one.lost.into()),
        ],
    };
    let rest = all.len().saturating_sub(GENERATORS_MAX);
    let heading = match rest {
        0 => "Load by generator".to_owned(),
        rest => format!("Load by generator (and {rest} more in the JSON)"),
    };
    let rows = all.iter().take(GENERATORS_MAX).map(row).collect();
    Part { heading, columns: columns.map(str::to_owned).into(), rows }
}

fn services(variants: &[Variant]) -> Part {
    let columns = ["variant", "service", "CPU/request", "share", "peak memory", "processes serving"];
    let costs = || variants.iter().flat_map(|variant| &variant.services);
    let mut cpu = of_all(Unit::Us, costs().map(|cost| cost.cpu_us_per_request));
    let mut peak = of_all(Unit::Bytes, costs().map(|cost| cost.peak_rss_bytes.map(|peak| peak as f64)));
    let mut row = |cost: &ServiceCost| {
        vec![
            cost.service.clone(),
            or_dash(cpu.next()),
            or_dash(cost.cpu_share.map(|part| format!("{:.0} %", part * 100.0))),
            or_dash(peak.next()),
            serving(cost),
        ]
    };
    let rows = rows(variants, |variant| variant.services.iter().map(&mut row).collect());
    Part { heading: "Cost by service".to_owned(), columns: columns.map(str::to_owned).into(), rows }
}

/// The cells of a column, to be taken one after the other.
fn of_all(unit: Unit, values: impl Iterator<Item = Option<f64>>) -> impl Iterator<Item = String> {
    column(unit, &values.collect::<Vec<_>>()).into_iter()
}

/// Workers are named where they are not what the processes are: most have one more that deals them their connections.
fn serving(cost: &ServiceCost) -> String {
    let asked = match cost.workers {
        Some(1) => " (1 worker)".to_owned(),
        Some(workers) => format!(" ({workers} workers)"),
        None => String::new(),
    };
    match cost.serving {
        Some(serving) => format!("{serving} of {}{asked}", cost.processes),
        None => format!("– of {}{asked}", cost.processes),
    }
}

fn endpoints(variants: &[Variant]) -> Part {
    let columns = ["variant", "request", "sent", "successes", "failed"];
    let endpoints = variants.iter().flat_map(|variant| &variant.endpoints);
    let mut successes = of_all(Unit::PerS, endpoints.map(|endpoint| endpoint.ok_per_s));
    let mut row = |endpoint: &Endpoint| {
        let part = if endpoint.failed > 0 {
            format!(" ({})", share(endpoint.failed as f64 / endpoint.sent.max(1) as f64))
        } else {
            String::new()
        };
        vec![
            endpoint.name.clone(),
            count(endpoint.sent),
            or_dash(successes.next()),
            format!("{}{part}", count(endpoint.failed)),
        ]
    };
    let rows = rows(variants, |variant| variant.endpoints.iter().map(&mut row).collect());
    Part { heading: "By request".to_owned(), columns: columns.map(str::to_owned).into(), rows }
}

fn rows(variants: &[Variant], mut of: impl FnMut(&Variant) -> Vec<Vec<String>>) -> Vec<Row> {
    let mut named = |variant: &Variant| {
        let name = |index: usize| if index == 0 { variant.name.clone() } else { String::new() };
        let rows = of(variant).into_iter().enumerate();
        rows.map(|(index, cells)| Row { cells: [vec![name(index)], cells].concat() }).collect::<Vec<Row>>()
    };
    variants.iter().flat_map(&mut named).collect()
}

/// A dash is "not measured"; a zero would be a figure.
fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}
