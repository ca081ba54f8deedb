//! A calibration as people read it, and as JSON: how far apart copies came out, and what that lets one find. Pure.

use analysis::{Calibration, Conclusion, Copies, Noise};
use anstyle::AnsiColor;
use comfy_table::{CellAlignment, Table, TableStyle};
use plan::Plan;
use record::Record;
use serde_json::{Value, json};
use stats::Estimate;

use crate::drawing::{BOLD, FAINT, RULE, explained, named, remark, wrapped};
use crate::figure::{change, seconds, share};
use crate::sheet::metric_name;
use crate::validity::explained_by;

mod advice;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// A calibration with what it was made for.
#[derive(Debug)]
pub struct Calibrated<'a> {
    /// The record of the two copies.
    pub record: &'a Record,
    /// What may be concluded from it.
    pub conclusion: &'a Conclusion,
    /// Its figures; `None` where it is void or has too few blocks.
    pub calibration: Option<Calibration>,
    /// The experiment that is to be run on this machine.
    pub experiment: &'a Plan,
}

impl Calibrated<'_> {
    /// The whole result, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let plan = &self.record.header.plan;
        let mut out = format!("{BOLD}{}{BOLD:#}\n\n", plan.question.as_deref().unwrap_or(&plan.name));
        if let Some(calibration) = &self.calibration {
            out += &self.alike(calibration, width);
            out += &format!("\n{}\n\n", table(calibration));
        }
        for finding in &self.conclusion.findings {
            out += &remark(
                finding.grade,
                Some(finding.check.number()),
                finding.evidence.as_str(),
                &finding.remedy.text,
                width,
            );
        }
        let numbers = self.conclusion.findings.iter().map(|finding| Some(finding.check.number()));
        out += &explained(explained_by(numbers).as_deref(), width);
        if !self.conclusion.findings.is_empty() {
            out.push('\n');
        }
        if let Some(calibration) = &self.calibration {
            calibration
                .metrics
                .iter()
                .for_each(|noise| out += &named(FAINT, "noise", &noise_line(noise), width));
            out += &named(FAINT, "cost", &cost_line(calibration), width);
            out += &named(FAINT, "steal", &steal_line(calibration), width);
        }
        out += &named(FAINT, "record", &self.record.directory.display().to_string(), width);
        for step in advice::steps(self) {
            out += &named(FAINT, "next", &step, width);
        }
        out
    }

    /// The same for other programs; `calibration` is null where there may be no figures.
    pub fn json(&self) -> Value {
        let header = &self.record.header;
        let variant = header.plan.variants.first().map(|variant| variant.name.as_str());
        json!({
            "calibration_version": VERSION,
            "experiment": header.plan.name,
            "variant": variant,
            "record": self.record.directory.display().to_string(),
            "created": header.created,
            "proofload": header.proofload,
            "seed": header.seed,
            "ended": self.record.ended,
            "environment": header.environment,
            "metric": self.experiment.design.metric,
            "margin": self.experiment.design.margin,
            "margin_found": advice::margin_found(self),
            "findings": self.conclusion.findings,
            "calibration": self.calibration,
        })
    }

    /// Whether the two came out alike, in the metric of the experiment.
    fn alike(&self, calibration: &Calibration, width: usize) -> String {
        let Some(noise) = calibration.noise(self.experiment.design.metric) else {
            let name = metric_name(self.experiment.design.metric);
            return wrapped(
                &format!("no figure of {name}: not every block has one that varies"),
                "",
                "",
                width,
            );
        };
        let (style, word, meaning) = match noise.copies.differ {
            false => (AnsiColor::Green.on_default().bold(), "ALIKE", "no more than chance"),
            true => (
                AnsiColor::Red.on_default().bold(),
                "DIFFERENT",
                "more than chance, and they are the same; one calibration in twenty shows this without any reason",
            ),
        };
        let text = format!(
            "{word}  the copies differ by {} {}: {meaning}",
            copies(&noise.copies),
            metric_name(noise.metric)
        );
        wrapped(&text, "", "    ", width).replacen(word, &format!("{style}{word}{style:#}"), 1)
    }
}

fn copies(copies: &Copies) -> String {
    let Copies { ratio, low, high, .. } = *copies;
    // Digits depend on the interval alone.
    let (value, interval) = change(&Estimate { blocks: 0, ratio, low, high, sd_log: 0.0, critical_t: 0.0 });
    format!("{value} ({interval})")
}

/// What each budget finds.
fn table(calibration: &Calibration) -> String {
    let mut table = Table::new();
    let mut columns = vec!["found in 8 of 10 runs".to_owned()];
    if let Some(first) = calibration.metrics.first() {
        let column =
            |found: &analysis::Found| format!("{}: {} blocks", seconds(found.budget_s), found.blocks);
        columns.extend(first.found.iter().map(column));
    }
    columns.push("the copies here".to_owned());
    table.load_style(TableStyle::new().header_separator(RULE)).set_header(&columns);
    for noise in &calibration.metrics {
        let mut cells = vec![metric_name(noise.metric).to_owned()];
        cells.extend(noise.found.iter().map(|found| found.difference.map_or("–".to_owned(), difference)));
        cells.push(copies(&noise.copies));
        table.add_row(&cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn difference(share: f64) -> String {
    match share * 100.0 {
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

fn noise_line(noise: &Noise) -> String {
    let mut spread = vec![format!("{} between blocks' ratios", share(noise.sd_log))];
    spread.extend(noise.processes_sd.map(|sd| format!("{} between processes", share(sd))));
    spread.extend(noise.slices_sd.map(|sd| format!("{} between slices of one", share(sd))));
    let lags = [("blocks", noise.blocks_lag1), ("slices", noise.slices_lag1)];
    let lags = lags.iter().filter_map(|(of, lag)| Some(format!("{of} {:+.2}", (*lag)?)));
    let lags: Vec<String> = lags.collect();
    let lags = match lags.is_empty() {
        true => String::new(),
        false => format!("; neighbours correlate: {}", lags.join(", ")).replace('-', "−"),
    };
    format!("{}: σ {}{lags}", metric_name(noise.metric), spread.join(", "))
}

fn cost_line(calibration: &Calibration) -> String {
    format!(
        "a block of both copies took {}, the first one {}; {} blocks",
        seconds(calibration.block_s),
        seconds(calibration.first_block_s),
        calibration.blocks
    )
}

fn steal_line(calibration: &Calibration) -> String {
    let steal = calibration.steal;
    format!(
        "other virtual machines took {} of the CPU time of slices, {} of the worst one",
        share(steal.mean_share),
        share(steal.max_share)
    )
}
