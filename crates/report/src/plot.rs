//! The verdict plot: each comparison's interval against the margin on one axis, as a picture that stands still, for pasting.
//!
//! SVG and PNG are the same drawing. It says what the other forms say, in their words, and is the same for the same record on every
//! machine: letters come from a typeface that is part of the program. Of an invalid comparison it shows no number.

use analysis::{Comparison, Grade, Outcome};
use model::quantity::{change, many};
use record::Record;

use crate::experiment::{Measured, answer, findings_of};

mod drawing;
mod font;
mod layout;
mod palette;
mod png;
mod svg;

/// What the plot stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Paper, and most pages.
    Light,
    /// A dark page.
    Dark,
}

/// What a plot says.
#[derive(Debug)]
pub struct Plot {
    title: String,
    /// The metric of all rows; `None` where each says its own.
    metric: Option<&'static str>,
    rows: Vec<Row>,
    margin: f64,
    /// Lines below all rows.
    foot: Vec<String>,
}

/// One line of the plot.
#[derive(Debug)]
struct Row {
    /// Candidate vs baseline, and where several metrics are judged, which one this is.
    name: String,
    outcome: Outcome,
    /// The verdict.
    word: String,
    /// `None` where no number may be shown, or there is none.
    span: Option<Span>,
    /// The estimate as the other forms print it, or why there is none.
    told: String,
}

/// An estimate with its interval, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    ratio: f64,
    low: f64,
    high: f64,
}

impl Plot {
    /// The plot of a record.
    pub(crate) fn of(of: &Measured<'_>) -> Plot {
        let comparisons = &of.conclusion.comparisons;
        let first = comparisons.first().map(|first| first.metric);
        let common = first.filter(|first| comparisons.iter().all(|of| of.metric == *first));
        let told = answer::groups(of.conclusion).flat_map(answer::told);
        Plot {
            title: of.title().to_owned(),
            metric: common.map(|metric| metric.row().title),
            rows: told.map(|comparison| row(of, comparison, common.is_none())).collect(),
            margin: of.record.header.plan.design.margin,
            foot: foot(of),
        }
    }

    /// As SVG, 700 wide, without script, link or image.
    pub fn svg(&self, ground: Ground) -> String {
        svg::written(&layout::laid_out(self, palette::of(ground)))
    }

    /// As PNG, twice as many pixels as the SVG is wide and high; `None` where memory does not suffice.
    pub fn png(&self, ground: Ground) -> Option<Vec<u8>> {
        png::painted(&layout::laid_out(self, palette::of(ground)))
    }
}

fn row(of: &Measured<'_>, comparison: &Comparison, several: bool) -> Row {
    let told = comparison.estimate.as_ref().map(|estimate| {
        let (value, interval) = change(estimate);
        format!("{value}  ({interval})")
    });
    let as_one = matches!(comparison.outcome, Outcome::Void | Outcome::NoSuccess);
    let metric =
        if several && !as_one { format!(", {}", comparison.metric.row().title) } else { String::new() };
    let detail = || answer::detail(comparison, of.conclusion, &of.record.header.plan.design);
    Row {
        name: format!("{}{metric}", comparison.label),
        outcome: comparison.outcome,
        word: answer::word(comparison.outcome, comparison.metric).to_uppercase(),
        span: comparison.estimate.as_ref().map(|of| Span { ratio: of.ratio, low: of.low, high: of.high }),
        told: told.unwrap_or_else(detail),
    }
}

/// What qualifies it, when and where it was measured, and how to repeat it.
fn foot(of: &Measured<'_>) -> Vec<String> {
    let Record { header, .. } = of.record;
    let environment = &header.environment;
    let date = header.created.split('T').next().unwrap_or_default();
    let cpu = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let mut machine = format!("{date}, {} blocks, {cpu}", of.conclusion.blocks);
    if environment.cpus > 0 {
        machine += &format!(", {} processors", environment.cpus);
    }
    machine.extend(environment.kernel.iter().map(|kernel| format!(", Linux {kernel}")));
    let repeat = format!("to repeat it: proofload run {} --seed {}", header.experiment, header.seed);
    let found = [(Grade::Void, "invalid finding"), (Grade::Warning, "warning")];
    let found = found.map(|(grade, noun)| (findings_of(of.conclusion, grade), noun));
    let found = found.iter().filter(|(count, _)| *count > 0);
    let found: Vec<String> = found.map(|(count, noun)| many(*count as u64, noun)).collect();
    let found = (!found.is_empty()).then(|| format!("{}: see the report", found.join(", ")));
    found.into_iter().chain([machine, repeat]).collect()
}
