//! What about a machine bears on a measurement, as people read it, and as JSON. Pure; nothing is judged here, that is
//! `machine`'s work.

use analysis::Calibration;
use machine::{Facts, Grade, Hazard};
use model::quantity::share;
use record::Record;
use serde_json::{Value, json};

use crate::document::{Block, Document, Line, Tone};
use crate::form::Report;

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
        let mut blocks = Vec::new();
        for grade in [Grade::Bad, Grade::Know, Grade::Fine] {
            let (tone, heading) = look(grade);
            let hazards = self.hazards.iter().filter(|hazard| hazard.grade == grade);
            let lines: Vec<Line> = hazards.map(|hazard| line(hazard, tone)).collect();
            if !lines.is_empty() {
                blocks.extend([Block::Heading(tone, heading.to_owned()), Block::Lines(lines)]);
            }
        }
        blocks.push(self.expected());
        Document { title: self.title(), headline: None, blocks }
    }

    fn data(&self) -> Value {
        json!({
            "env_version": VERSION,
            "hazards": self.hazards,
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
        let of = |grade| self.hazards.iter().filter(|hazard| hazard.grade == grade).count();
        let bad = match of(Grade::Bad) {
            0 => "nothing that is sure to hurt a measurement".to_owned(),
            1 => "1 thing will hurt a measurement".to_owned(),
            some => format!("{some} things will hurt a measurement"),
        };
        let know = match of(Grade::Know) {
            1 => "1 is worth knowing".to_owned(),
            some => format!("{some} are worth knowing"),
        };
        let model = self.facts.processors.model.as_deref();
        let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
        format!("This machine{model}: {bad}, {know}, {} fine", of(Grade::Fine))
    }

    /// How far equal services came out apart here, if that was ever measured.
    fn expected(&self) -> Block {
        let Some((record, calibration)) = self.calibration else {
            return Block::Steps(vec![
                "proofload calibrate experiment.toml tells how small a difference can be found here; no record below ./records \
                 does so for this machine"
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

fn line(hazard: &Hazard, tone: Tone) -> Line {
    Line {
        tone,
        detail: hazard.remedy.clone(),
        command: hazard.command.clone(),
        ..Line::new(hazard.name, &hazard.evidence)
    }
}

fn look(grade: Grade) -> (Tone, &'static str) {
    match grade {
        Grade::Bad => (Tone::Bad, "Will hurt a measurement"),
        Grade::Know => (Tone::Doubtful, "Worth knowing"),
        Grade::Fine => (Tone::Good, "Fine"),
    }
}
