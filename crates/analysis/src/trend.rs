//! Trends: each comparison's ratio and each variant's figure over many records of one experiment on one
//! machine, and their changes of level.
//!
//! A ratio was measured side by side within its record, so it is comparable with older ones even on a noisy
//! machine. A variant's figure includes all other changes of the machine between the runs, which must be
//! stated wherever both are shown. Pure. All records must be of one machine.

use plan::Metric;
use serde::Serialize;
use stats::{CHANGE_POINTS_MAX, Estimate, MeasuredPoint, Resampling};

use crate::essentials::{Conditions, Essentials, MetricFigure};

/// Seed of the permutations for testing changes. It is fixed, so the same records always show the same
/// changes.
pub const TREND_SEED: u64 = 1;
/// Number of permutations. The smallest p-value is one in this number plus one.
const ORDERS: u32 = 9_999;

/// Selection of the trend.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrendQuery<'a> {
    /// The metric. `None` is the metric of the newest record's verdict.
    pub metric: Option<Metric>,
    /// Only this variant, and comparisons that include it.
    pub variant: Option<&'a str>,
}

/// A record with the name of its folder.
#[derive(Debug, Clone, Copy)]
pub struct Dated<'a> {
    /// Name of the folder.
    pub name: &'a str,
    /// Summary of the record.
    pub essentials: &'a Essentials,
}

/// An experiment over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentTrend {
    /// The selected metric.
    pub metric: Metric,
    /// The records with a point, oldest first.
    pub records: Vec<Stamp>,
    /// Consecutive records with the same plan, rate, warm-up, processors, and throughput per core or not.
    /// Lines are not connected across stretches.
    pub stretches: Vec<RecordRun>,
    /// Ratios of comparisons first, then figures of variants.
    pub lines: Vec<TrendLine>,
    /// Number of invalid records, which are left out.
    pub void: usize,
    /// Number of unfinished records, which are left out.
    pub unfinished: usize,
    /// Number of records without an estimate or a figure of this metric.
    pub without: usize,
    /// Conditions of the first record of the last stretch.
    #[serde(skip)]
    conditions: Option<Conditions>,
}

/// Name and time of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stamp {
    /// Name of the record's folder.
    pub name: String,
    /// When the record was made, RFC 3339 in UTC.
    pub created: String,
}

/// Consecutive records with the same plan and conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordRun {
    /// Index of the first record.
    pub first: usize,
    /// Mark of the plan.
    pub plan: String,
}

/// Kind of the values of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineOf {
    /// Candidate over baseline.
    Ratio,
    /// One variant's own figure, in the metric's unit: 1/s, µs or bytes.
    Figure,
}

/// One value over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendLine {
    /// Kind of the values.
    pub of: LineOf,
    /// Display name of the comparison or the variant.
    pub name: String,
    /// Names of the candidate and of the baseline. For a figure, the name of its variant.
    #[serde(skip)]
    pub variants: Vec<String>,
    /// The points, oldest first.
    pub points: Vec<TrendPoint>,
    /// Changes of level within stretches.
    pub changes: Vec<Shifted>,
}

/// One record's value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrendPoint {
    /// Index of the record.
    pub record: usize,
    /// The ratio or the figure.
    pub value: f64,
    /// Interval of the value. For a figure, 95 % based only on its blocks.
    pub interval: Option<(f64, f64)>,
    /// Standard error of the logarithm.
    pub standard_error: Option<f64>,
    /// Number of blocks.
    pub blocks: u32,
}

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shifted {
    /// Index of the first point at the new level.
    pub at: usize,
    /// Level before the change.
    pub before: f64,
    /// Level after the change.
    pub after: f64,
    /// p-value of the test that detected it.
    pub p: f64,
}

/// Joins records of one experiment and one machine, oldest first.
pub fn trend(records: &[Dated<'_>], asked: TrendQuery<'_>) -> ExperimentTrend {
    let judged = records
        .last()
        .map_or(Metric::Throughput, |newest| newest.essentials.metric);
    let metric = asked.metric.unwrap_or(judged);
    let asked = TrendQuery {
        metric: Some(metric),
        ..asked
    };
    let mut trend = ExperimentTrend {
        metric,
        records: Vec::new(),
        stretches: Vec::new(),
        lines: Vec::new(),
        void: 0,
        unfinished: 0,
        without: 0,
        conditions: None,
    };
    // In the order of the newest record, which users expect.
    for line in records
        .iter()
        .rev()
        .flat_map(|dated| asked.lines(0, dated.essentials))
    {
        if !trend
            .lines
            .iter()
            .any(|known| known.variants == line.variants)
        {
            trend.lines.push(TrendLine {
                points: Vec::new(),
                ..line
            });
        }
    }
    trend.lines.sort_by_key(|line| line.of == LineOf::Figure);
    for dated in records {
        trend.take(dated, asked);
    }
    trend.lines.retain(|line| !line.points.is_empty());
    let starts: Vec<usize> = trend
        .stretches
        .iter()
        .map(|stretch| stretch.first)
        .collect();
    for line in &mut trend.lines {
        line.changes = changes(&line.points, &starts);
    }
    trend
}

impl ExperimentTrend {
    fn take(&mut self, dated: &Dated<'_>, asked: TrendQuery<'_>) {
        let essentials = dated.essentials;
        if !essentials.is_whole() {
            self.unfinished += 1;
            return;
        }
        let index = self.records.len();
        let mut any = false;
        for TrendLine {
            variants, points, ..
        } in asked.lines(index, essentials)
        {
            any |= !points.is_empty();
            if let Some(known) = self
                .lines
                .iter_mut()
                .find(|known| known.variants == variants)
            {
                known.points.extend(points);
            }
        }
        match any {
            false if !essentials.void.is_empty() => self.void += 1,
            false => self.without += 1,
            true => {
                let stamp = Stamp {
                    name: dated.name.to_owned(),
                    created: essentials.created.clone(),
                };
                self.records.push(stamp);
                let same_plan = self
                    .stretches
                    .last()
                    .is_some_and(|of| of.plan == essentials.plan);
                let (now, by_throughput) =
                    (&essentials.conditions, self.metric == Metric::Throughput);
                let alike = |before: &Conditions| {
                    before.differences(now).is_empty()
                        && !(by_throughput && before.per_core != now.per_core)
                };
                if !same_plan || !self.conditions.as_ref().is_some_and(alike) {
                    self.stretches.push(RecordRun {
                        first: index,
                        plan: essentials.plan.clone(),
                    });
                    self.conditions = Some(essentials.conditions.clone());
                }
            }
        }
    }
}

impl TrendQuery<'_> {
    /// The lines that a record contributes to, each with its point if it has one.
    fn lines(self, record: usize, essentials: &Essentials) -> Vec<TrendLine> {
        let is_asked = |metric: Metric, names: &[String]| {
            self.metric == Some(metric)
                && self
                    .variant
                    .is_none_or(|name| names.iter().any(|of| of == name))
        };
        let line = |of, name: &str, variants: &[String], point: Option<TrendPoint>| TrendLine {
            of,
            name: name.to_owned(),
            variants: variants.to_vec(),
            points: point.into_iter().collect(),
            changes: Vec::new(),
        };
        let mut lines = Vec::new();
        for one in essentials
            .compared
            .iter()
            .filter(|one| is_asked(one.metric, &one.of))
        {
            let point = one.estimate.map(
                |Estimate {
                     blocks,
                     ratio,
                     low,
                     high,
                     sd_log,
                     ..
                 }| TrendPoint {
                    record,
                    value: ratio,
                    interval: Some((low, high)),
                    standard_error: Some(sd_log / f64::from(blocks).sqrt()),
                    blocks,
                },
            );
            lines.push(line(LineOf::Ratio, &one.label, &one.of, point));
        }
        for one in &essentials.figures {
            let variant = std::slice::from_ref(&one.variant);
            let MetricFigure {
                value,
                interval,
                standard_error,
                blocks,
                ..
            } = *one;
            let point = TrendPoint {
                record,
                value,
                interval,
                standard_error,
                blocks,
            };
            if is_asked(one.metric, variant) {
                lines.push(line(LineOf::Figure, &one.variant, variant, Some(point)));
            }
        }
        lines
    }
}

/// Changes within each stretch, for points with known precision. If there are too many points, the newest.
fn changes(points: &[TrendPoint], starts: &[usize]) -> Vec<Shifted> {
    let stretch_of = |point: &TrendPoint| starts.partition_point(|start| *start <= point.record);
    let measured = |(at, point): (usize, &TrendPoint)| {
        let standard_error = point.standard_error?;
        Some((
            at,
            stretch_of(point),
            MeasuredPoint {
                value: point.value.ln(),
                standard_error,
            },
        ))
    };
    let known: Vec<(usize, usize, MeasuredPoint)> =
        points.iter().enumerate().filter_map(measured).collect();
    let mut all = Vec::new();
    for stretch in known.chunk_by(|(_, one, _), (_, other, _)| one == other) {
        let stretch = &stretch[stretch.len().saturating_sub(CHANGE_POINTS_MAX)..];
        let measured: Vec<MeasuredPoint> = stretch.iter().map(|(.., measured)| *measured).collect();
        let resampling = Resampling {
            resamples: ORDERS,
            seed: TREND_SEED,
        };
        // Figures and ratios are positive and finite. An invalid index shows no change.
        for change in stats::changes(&measured, resampling).unwrap_or_default() {
            let (before, after) = (change.before.exp(), change.after.exp());
            all.push(Shifted {
                at: stretch[change.at].0,
                before,
                after,
                p: change.p,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests;
