//! What about a machine bears on a measurement, as people read it, and as JSON. Pure; nothing is judged here, that is
//! `machine`'s work.

use std::collections::BTreeMap;

use analysis::Calibration;
use machine::{Facts, Hazard};
use model::Grade;
use model::quantity::{many, share};
use record::Record;
use serde_json::{Value, json};

use crate::form::Report;
use model::document::{Block, Document, Line};

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// A machine as it was looked at.
#[derive(Debug)]
pub struct Surveyed<'a> {
    /// What is known of it.
    pub facts: &'a Facts,
    /// What follows, the worst first.
    pub hazards: &'a [Hazard],
    /// A calibration that was made on it. What may be expected of a machine nothing else can tell.
    pub calibration: Option<(&'a Record, &'a Calibration)>,
}

impl Report for Surveyed<'_> {
    fn document(&self) -> Document {
        let hazards = Block::Findings(self.hazards.iter().map(Into::into).collect(), None);
        Document::new(self.title(), [hazards, self.expected()])
    }

    fn data(&self) -> Value {
        json!({
            "env_version": VERSION,
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
        let of = |grade| self.hazards.iter().filter(|hazard| hazard.grade == grade).count() as u64;
        let bad = match of(Grade::Warning) {
            0 => "no warnings".to_owned(),
            some => many(some, "warning"),
        };
        let know = many(of(Grade::Note), "note");
        let model = self.facts.processors.model.as_deref();
        let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
        format!("This machine{model}: {bad}, {know}, {} fine", of(Grade::Fine))
    }

    /// How far equal services came out apart here, if that was ever measured.
    fn expected(&self) -> Block {
        let Some((record, calibration)) = self.calibration else {
            return Block::Steps(vec![
                "To measure the smallest detectable difference: proofload doctor calibrate experiment.toml"
                    .to_owned(),
            ]);
        };
        let noise = calibration.metrics.iter();
        let noise = noise.map(|noise| format!("{} in {}", share(noise.sd_log), noise.metric.row().title));
        let text = format!(
            "two equal copies of a service differed from block to block by σ {}, over {} blocks: {}",
            noise.collect::<Vec<_>>().join(", "),
            calibration.blocks,
            record.directory.display()
        );
        Block::Lines(vec![Line::new("expect", text)])
    }
}

/// A hazard as version 1 has it.
fn hazard_json(hazard: &Hazard) -> Value {
    let grade = match hazard.grade {
        Grade::Invalid | Grade::Warning => "bad",
        Grade::Note => "know",
        Grade::Fine => "fine",
    };
    json!({
        "name": hazard.check,
        "grade": grade,
        "evidence": hazard.evidence.as_str(),
        "figures": hazard.evidence.figures().collect::<BTreeMap<_, _>>(),
        "remedy": hazard.remedy.text,
        "command": hazard.remedy.command,
    })
}
