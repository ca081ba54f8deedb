//! Variants taken apart: what each service cost, and what came of each of several requests. Tables of their own, where there is
//! something to tell apart.

use audit::{Conclusion, Endpoint, ServiceCost, Variant};

use super::Row;
use crate::figure::{bytes, count, micros, rate, share};

/// A table below that of the variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it tells, without a full stop.
    pub heading: String,
    /// Headings of its columns; the first two are names, the others figures.
    pub columns: Vec<String>,
    /// The variant's name stands in the first of its rows only.
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
    parts
}

fn services(variants: &[Variant]) -> Part {
    let columns = ["variant", "service", "CPU/request", "share", "peak memory", "processes serving"];
    let row = |cost: &ServiceCost| {
        vec![
            cost.service.clone(),
            or_dash(cost.cpu_us_per_request.map(micros)),
            or_dash(cost.cpu_share.map(|part| format!("{:.0} %", part * 100.0))),
            or_dash(cost.peak_rss_bytes.map(|peak| bytes(peak as f64))),
            serving(cost),
        ]
    };
    let rows = rows(variants, |variant| variant.services.iter().map(row).collect());
    Part { heading: "Cost by service".to_owned(), columns: columns.map(str::to_owned).into(), rows }
}

/// Workers are named where they are not what the processes are: most have one more that deals them their connections.
fn serving(cost: &ServiceCost) -> String {
    let asked = cost.workers.map(|workers| format!(" ({workers} asked for)")).unwrap_or_default();
    match cost.serving {
        Some(serving) => format!("{serving} of {}{asked}", cost.processes),
        None => format!("– of {}{asked}", cost.processes),
    }
}

fn endpoints(variants: &[Variant]) -> Part {
    let columns = ["variant", "request", "sent", "successes", "failed"];
    let row = |endpoint: &Endpoint| {
        let part = if endpoint.failed > 0 {
            format!(" ({})", share(endpoint.failed as f64 / endpoint.sent.max(1) as f64))
        } else {
            String::new()
        };
        vec![
            endpoint.name.clone(),
            count(endpoint.sent),
            or_dash(endpoint.ok_per_s.map(rate)),
            format!("{}{part}", count(endpoint.failed)),
        ]
    };
    let rows = rows(variants, |variant| variant.endpoints.iter().map(row).collect());
    Part { heading: "By request".to_owned(), columns: columns.map(str::to_owned).into(), rows }
}

fn rows(variants: &[Variant], of: impl Fn(&Variant) -> Vec<Vec<String>>) -> Vec<Row> {
    let named = |variant: &Variant| {
        let name = |index: usize| if index == 0 { variant.name.clone() } else { String::new() };
        let rows = of(variant).into_iter().enumerate();
        rows.map(|(index, cells)| Row { cells: [vec![name(index)], cells].concat() }).collect::<Vec<Row>>()
    };
    variants.iter().flat_map(named).collect()
}

/// A dash is "not measured"; a zero would be a figure.
fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}
