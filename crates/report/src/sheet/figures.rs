//! The table of variants: what each one did, for showing. Column by column, because a column has one unit.

use analysis::{Conclusion, Variant};
use model::{Metric, Unit};
use record::Record;

use super::Row;
use crate::figure::{column, count, share_below};

/// No failure among so many requests says enough by itself: with 95 % fewer than 0.13 % fail.
const REQUESTS_TELLING: u64 = 3_000;

/// Headings, and a row for each variant, its name first. Figures of a void one are what was seen, and say so: they compare with nothing.
pub(super) fn table(record: &Record, conclusion: &Conclusion) -> (Vec<String>, Vec<Row>) {
    let mut columns = vec![("variant", names(conclusion))];
    // In open loop throughput and cores are what the rate makes them, and have no column.
    if record.is_open_loop() {
        columns.extend(
            quantiles(record).map(|metric| (metric.row().heading, response_times(conclusion, metric))),
        );
    } else {
        columns.push(figures(conclusion, Metric::Throughput, |variant| variant.throughput_per_s));
    }
    columns.push(figures(conclusion, Metric::CpuPerRequest, |variant| variant.cpu_us_per_request));
    if !record.is_open_loop() {
        let cores = |variant: &Variant| variant.busy_cores.map(|cores| format!("{cores:.2}"));
        columns.push(("cores", each(conclusion, cores)));
    }
    let peak = |variant: &Variant| variant.peak_rss_bytes.map(|bytes| bytes as f64);
    columns.push(figures(conclusion, Metric::PeakMemory, peak));
    columns.push(("failed", each(conclusion, |variant| variant.failed_share.map(|_| failed(variant)))));
    if shows_size(conclusion) {
        let sizes: Vec<_> =
            conclusion.variants.iter().map(|variant| variant.body_bytes_per_response).collect();
        columns.push(("body", column(Unit::Bytes, &sizes)));
    }
    let row = |index: usize| Row { cells: columns.iter().map(|(_, cells)| cells[index].clone()).collect() };
    let rows = (0..conclusion.variants.len()).map(row).collect();
    (columns.iter().map(|(heading, _)| (*heading).to_owned()).collect(), rows)
}

fn names(conclusion: &Conclusion) -> Vec<String> {
    let name = |(index, variant): (usize, &Variant)| {
        let void = conclusion.findings.iter().any(|finding| finding.voids(index, index));
        let mark = match variant.no_success {
            Some(_) => " (no success)",
            None if void => " (void)",
            None => "",
        };
        format!("{}{mark}", variant.name)
    };
    conclusion.variants.iter().enumerate().map(name).collect()
}

fn figures(
    conclusion: &Conclusion,
    metric: Metric,
    of: impl Fn(&Variant) -> Option<f64>,
) -> (&'static str, Vec<String>) {
    let values: Vec<_> = conclusion.variants.iter().map(of).collect();
    (metric.row().heading, column(metric.unit(), &values))
}

/// A dash is "not measured"; a zero would be a figure.
fn each(conclusion: &Conclusion, of: impl Fn(&Variant) -> Option<String>) -> Vec<String> {
    conclusion.variants.iter().map(|variant| of(variant).unwrap_or_else(|| "–".to_owned())).collect()
}

/// The quantiles of the response time that have a column: the usual ones, and the one that is judged.
fn quantiles(record: &Record) -> impl Iterator<Item = Metric> {
    let judged = record.header.plan.design.metric;
    Metric::latencies().filter(move |of| *of != Metric::P999 || judged == Metric::P999)
}

fn response_times(conclusion: &Conclusion, metric: Metric) -> Vec<String> {
    let found =
        |variant: &Variant| variant.response_time.iter().find(|found| found.metric == metric).copied();
    let found: Vec<_> = conclusion.variants.iter().map(found).collect();
    let values: Vec<_> = found.iter().map(|found| Some(found.as_ref()?.us)).collect();
    let bounded = found.iter().map(|found| found.is_some_and(|found| found.at_least));
    let told = column(metric.unit(), &values).into_iter().zip(bounded);
    told.map(|(figure, bounded)| if bounded { format!("≥ {figure}") } else { figure }).collect()
}

/// Response sizes get a column only where they differ; else they are one line of the method.
fn shows_size(conclusion: &Conclusion) -> bool {
    let sizes =
        conclusion.variants.iter().filter_map(|variant| Some(variant.body_bytes_per_response? as u64));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.dedup();
    sizes.len() > 1
}

/// Beside a count that proves little, what the share may still be.
fn failed(variant: &Variant) -> String {
    let seen = format!("{} of {}", count(variant.failed), count(variant.requests));
    if variant.no_success.is_some() {
        return seen;
    }
    let little = variant.failed > 0 || variant.requests < REQUESTS_TELLING;
    match variant.failed_interval.as_ref().filter(|_| little) {
        Some(interval) => format!("{seen} ({})", share_below(interval.high)),
        None => seen,
    }
}
