//! A machine's calibration (how much copies differed on it, and which differences can be found) and its
//! hazards for measurements, as a document and as JSON. Pure. `machine` and `analysis` do the judging.

use std::collections::BTreeMap;

use analysis::{Calibration, Conclusion, Copies, Noise, Sensitivity, SensitivitySource};
use machine::{Facts, Hazard};
use model::Grade;
use model::quantity::{count, decimal, interval_told, many, share, signed, span, with_sign};
use plan::Plan;
use record::Record;
use serde::Serialize;
use serde_json::{Value, json};

use crate::experiment::answer::forecast;
use crate::form::Report;
use crate::validity::explained_by;
use model::document::{
    Cell, Column, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Remark, Table, Tone,
};

/// Standard deviations of the correlation of independent blocks beyond which it counts as real.
const LAG1_SDS: f64 = 2.0;

/// A calibration, and the experiment it was made for.
#[derive(Debug)]
pub struct Calibrated<'a> {
    /// The record of the two copies.
    pub record: &'a Record,
    /// Conclusion from the record.
    pub conclusion: &'a Conclusion,
    /// Its figures. `None` if it is void or has too few blocks.
    pub calibration: Option<Calibration>,
    /// The experiment that is to be run on this machine.
    pub experiment: &'a Plan,
}

/// The run that finds the margin in the experiment's metric.
#[derive(Debug, Clone, Copy, Serialize)]
struct MarginFound {
    blocks: u32,
    run_s: f64,
    budget_s: f64,
}

impl Report for Calibrated<'_> {
    fn document(&self) -> Document {
        let findings = &self.conclusion.findings;
        let mut blocks = Vec::new();
        if let Some(calibration) = &self.calibration {
            blocks.extend([
                self.alike(calibration),
                DocumentPart::Table(table(calibration)),
            ]);
        }
        let remarks = findings.iter().map(Into::into).collect();
        blocks.push(DocumentPart::Findings(
            remarks,
            explained_by(findings.iter()),
        ));
        let mut lines = self.calibration.as_ref().map(lines).unwrap_or_default();
        lines.push(NamedText::new(
            "record",
            self.record.directory.display().to_string(),
        ));
        blocks.extend([
            DocumentPart::Lines(lines),
            DocumentPart::Steps(self.steps()),
        ]);
        let plan = &self.record.header.plan;
        Document::new(plan.question.as_ref().unwrap_or(&plan.name), blocks)
    }

    /// `calibration` is null if no figures may be shown.
    fn data(&self) -> Value {
        let header = &self.record.header;
        let variant = header
            .plan
            .variants
            .first()
            .map(|variant| variant.name.as_str());
        json!({
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
            "margin_found": self.margin_found(),
            "findings": self.conclusion.findings,
            "calibration": self.calibration,
        })
    }
}

impl Calibrated<'_> {
    /// Whether the two copies agreed in the metric of the experiment.
    fn alike(&self, calibration: &Calibration) -> DocumentPart {
        let metric = self.experiment.design.metric.row().title;
        let Some(noise) = calibration.noise(self.experiment.design.metric) else {
            let text = format!("no figure of {metric}: not every block has one that varies");
            return DocumentPart::Paragraph(Tone::Plain, text);
        };
        let (tone, word, meaning) = match noise.copies.differ {
            false => (Tone::Good, "alike", "no more than chance"),
            true => (
                Tone::Bad,
                "different",
                "more than chance, and they are the same; one calibration in twenty shows this without any reason",
            ),
        };
        let subject = format!(
            "the copies differ by {} {metric}: {meaning}",
            copies(&noise.copies)
        );
        DocumentPart::Answers(vec![QuestionAnswer::new(subject, tone, word, "")])
    }

    /// Next steps, each a sentence or a command with its reason.
    fn steps(&self) -> Vec<String> {
        let Some(calibration) = &self.calibration else {
            return Vec::new();
        };
        let design = &self.experiment.design;
        let file = &self.record.header.experiment;
        let Some(noise) = calibration.noise(design.metric) else {
            return Vec::new();
        };
        let mut steps = Vec::new();
        if noise.copies.differ {
            steps.push(format!(
                "calibrate again: if the copies differ again, this machine favours one of them, and no difference of that size \
                 may be believed; `aa = true` in the design then keeps watch: proofload doctor calibrate {file}"
            ));
        }
        let by_chance = LAG1_SDS / f64::from(calibration.blocks).sqrt();
        if let Some(lag1) = noise.blocks_lag1.filter(|lag1| *lag1 > by_chance) {
            steps.push(format!(
                "blocks resemble their neighbours ({}, by chance up to {}): something on this machine comes and goes over minutes, \
                 and intervals are narrower than they should be; end it, or measure at another time",
                with_sign(lag1, 2),
                decimal(by_chance, 2)
            ));
        }
        let asked = self.estimates();
        let of = if asked > 1 {
            format!(", where {asked} estimates share the 5 %")
        } else {
            String::new()
        };
        let margin = format!(
            "the margin ({}) in {}{of}",
            share(design.margin),
            design.metric.row().title
        );
        steps.push(if let Some(MarginFound { blocks, run_s, budget_s }) = self.margin_found() {
            let (forecast, budget) = (forecast(&margin, blocks, Some(run_s)), span(budget_s));
            format!("{forecast}: proofload run {file} --budget {budget}")
        } else {
            let forecast = forecast(&margin, stats::BLOCKS_MAX, None);
            let least = noise.least_difference(design, asked).map(share).unwrap_or_default();
            format!(
                "{forecast}; the longest finds {least}: quieten the machine, give trials more slices (design.slices), or ask \
                 for less (design.margin)"
            )
        });
        steps
    }

    /// `None` if no run finds the margin, or nothing is known.
    fn margin_found(&self) -> Option<MarginFound> {
        let (calibration, plan) = (self.calibration.as_ref()?, self.experiment);
        let noise = calibration.noise(plan.design.metric)?;
        let blocks = noise.blocks_to_find(plan.design.margin, &plan.design, self.estimates())?;
        let run_s = calibration.pace().run_s(blocks, plan.variants.len());
        Some(MarginFound {
            blocks,
            run_s,
            budget_s: analysis::budget_s(run_s),
        })
    }

    /// Number of the experiment's estimates that share the error probability. One if it compares nothing.
    fn estimates(&self) -> usize {
        let plan = self.experiment;
        (plan.comparisons.len() * plan.design.metrics().count()).max(1)
    }
}

fn copies(copies: &Copies) -> String {
    interval_told(copies.ratio, copies.low, copies.high)
}

/// The smallest difference that each budget finds.
fn table(calibration: &Calibration) -> Table {
    let found = calibration
        .metrics
        .first()
        .map(|first| first.found.as_slice())
        .unwrap_or_default();
    let budget = |found: &analysis::BudgetReach| {
        Column::figure(format!(
            "{}: {}",
            span(found.budget_s),
            many(found.blocks.into(), "block")
        ))
    };
    let mut columns = vec![Column::text("found in 8 of 10 runs", ColumnFit::Whole)];
    columns.extend(found.iter().map(budget));
    columns.push(Column::figure("the copies here"));
    let mut table = Table::new("", columns);
    for noise in &calibration.metrics {
        let mut cells = vec![Cell::text(noise.metric.row().title)];
        cells.extend(
            noise
                .found
                .iter()
                .map(|found| Cell::optional(found.difference.map(share))),
        );
        cells.push(Cell::Text(copies(&noise.copies)));
        table.push(cells);
    }
    table
}

/// Components of the noise, and the cost of the calibration.
fn lines(calibration: &Calibration) -> Vec<NamedText> {
    let noise = calibration
        .metrics
        .iter()
        .map(|noise| NamedText::new("noise", noise_line(noise)));
    let Calibration {
        blocks,
        block_s,
        first_block_s,
        steal,
        ..
    } = calibration;
    let (each, first) = (span(*block_s), span(*first_block_s));
    let cost = format!(
        "a block of both copies took {each}, the first one {first}; {}",
        many((*blocks).into(), "block")
    );
    let (mean, most) = (share(steal.mean_share), share(steal.max_share));
    let steal = format!(
        "other virtual machines took {mean} of the CPU time of slices, {most} of the worst one"
    );
    noise
        .chain([
            NamedText::new("cost", cost),
            NamedText::new("CPU steal", steal),
        ])
        .collect()
}

fn noise_line(noise: &Noise) -> String {
    let mut spread = vec![format!("{} between blocks' ratios", share(noise.sd_log))];
    spread.extend(
        noise
            .processes_sd
            .map(|sd| format!("{} between processes", share(sd))),
    );
    spread.extend(
        noise
            .slices_sd
            .map(|sd| format!("{} between slices of one", share(sd))),
    );
    let lags = [("blocks", noise.blocks_lag1), ("slices", noise.slices_lag1)];
    let lags = lags
        .iter()
        .filter_map(|(of, lag)| Some(format!("{of} {}", signed((*lag)? * 100.0, 0))));
    let lags = lags.collect::<Vec<_>>().join(", ");
    let lags = if lags.is_empty() {
        lags
    } else {
        format!("; neighbours correlate: {lags}")
    };
    format!(
        "{}: σ {}{lags}",
        noise.metric.row().title,
        spread.join(", ")
    )
}

/// Survey of a machine.
#[derive(Debug)]
pub struct Surveyed<'a> {
    /// Facts about the machine.
    pub facts: &'a Facts,
    /// Hazards, most severe first.
    pub hazards: &'a [Hazard],
    /// A calibration that was made on it.
    pub calibration: Option<(&'a Record, &'a Calibration)>,
    /// The difference that comparisons on it can show.
    pub sensitivity: Sensitivity,
}

impl Report for Surveyed<'_> {
    fn document(&self) -> Document {
        let hazards = DocumentPart::Findings(self.hazards.iter().map(Into::into).collect(), None);
        Document::new(self.title(), [self.basis(), hazards, self.expected()])
    }

    /// Findings that can be improved.
    fn brief(&self) -> Document {
        let improvable = |hazard: &&Hazard| match hazard.grade {
            Grade::Invalid | Grade::Warning => true,
            Grade::Note => hazard.remedy.command.is_some(),
            Grade::Fine => false,
        };
        let shown: Vec<Remark> = self
            .hazards
            .iter()
            .filter(improvable)
            .map(Into::into)
            .collect();
        let nothing = shown.is_empty().then(|| {
            DocumentPart::Paragraph(Tone::Good, "There is nothing to improve here.".to_owned())
        });
        let rest = DocumentPart::Paragraph(Tone::Faint, self.rest(shown.len()));
        let findings = DocumentPart::Findings(shown, None);
        let blocks = [self.basis(), findings];
        let blocks = blocks.into_iter().chain(nothing);
        Document::new(self.title(), blocks.chain([rest, self.expected()]))
    }

    fn data(&self) -> Value {
        json!({
            "sensitivity": self.sensitivity,
            "hazards": self.hazards.iter().map(hazard_json).collect::<Vec<_>>(),
            "facts": self.facts,
            "calibration": self.calibration.map(|(record, calibration)| json!({
                "record": record.directory.display().to_string(),
                "calibration": calibration,
            })),
        })
    }
}

impl Surveyed<'_> {
    fn title(&self) -> String {
        let found = self.sensitivity.found.iter();
        let found = found.filter_map(|of| Some((of.budget_s, of.difference?)));
        let each: Vec<String> = found
            .enumerate()
            .map(|(at, (budget_s, difference))| {
                let unit = if at == 0 { " minutes" } else { "" };
                let minutes = (budget_s / 60.0).round() as u64;
                format!("{} in {}{unit}", about(difference), count(minutes))
            })
            .collect();
        match each.as_slice() {
            [] => "This machine can show no difference within 8 minutes".to_owned(),
            each => format!("This machine can show about {}", each.join(", ")),
        }
    }

    /// The basis of the first line.
    fn basis(&self) -> DocumentPart {
        let is_disturbed = self.count(Grade::Warning) > 0;
        let worse = if is_disturbed {
            "; while the warnings below last, only larger ones"
        } else {
            ""
        };
        let what = "smallest difference in throughput that 8 of 10 runs of two variants find";
        let basis = match self.sensitivity.source {
            SensitivitySource::Calibration => {
                format!("measured with two copies of a service{worse}")
            }
            SensitivitySource::Records(records) => format!(
                "from the variance of {} of this machine{worse}",
                many(records as u64, "earlier record")
            ),
            SensitivitySource::Counters => {
                "estimated from two seconds of its counters, without a service".to_owned()
            }
        };
        DocumentPart::Paragraph(Tone::Plain, format!("({what}; {basis})"))
    }

    fn count(&self, grade: Grade) -> u64 {
        let of_grade = self.hazards.iter().filter(|hazard| hazard.grade == grade);
        of_grade.count() as u64
    }

    /// Counts of the checks that are not shown.
    fn rest(&self, shown: usize) -> String {
        let fine = self.count(Grade::Fine);
        let notes = (self.hazards.len() - shown) as u64 - fine;
        let notes = if notes == 0 {
            String::new()
        } else {
            format!(", {} without a remedy", many(notes, "note"))
        };
        format!("{} fine{notes}: proofload doctor -v", many(fine, "check"))
    }

    /// How much equal services differed here, if it was measured.
    fn expected(&self) -> DocumentPart {
        let Some((
            record,
            Calibration {
                metrics, blocks, ..
            },
        )) = self.calibration
        else {
            let how = "to measure it with your service: proofload doctor calibrate experiment.toml";
            return DocumentPart::Steps(vec![how.to_owned()]);
        };
        let noise = metrics
            .iter()
            .map(|of| format!("{} in {}", share(of.sd_log), of.metric.row().title));
        let (noise, record) = (
            noise.collect::<Vec<_>>().join(", "),
            record.directory.display(),
        );
        let copies = "two equal copies of a service differed from block to block by σ";
        DocumentPart::Lines(vec![NamedText::new(
            "expect",
            format!(
                "{copies} {noise}, over {}: {record}",
                many((*blocks).into(), "block")
            ),
        )])
    }
}

/// A difference to one digit: an estimate has no more.
fn about(difference: f64) -> String {
    let percent = difference * 100.0;
    format!("{} %", decimal(percent, usize::from(percent < 0.95)))
}

/// A hazard in version 1 of the format.
fn hazard_json(hazard: &Hazard) -> Value {
    json!({
        "check": hazard.check,
        "grade": hazard.grade,
        "evidence": hazard.evidence.as_str(),
        "figures": hazard.evidence.figures().collect::<BTreeMap<_, _>>(),
        "remedy": hazard.remedy.text,
        "command": hazard.remedy.command,
    })
}
