//! What about a machine bears on a measurement, as people read it, and as JSON. Pure; nothing is judged here, that is
//! `machine`'s work.

use analysis::Calibration;
use anstyle::{AnsiColor, Style};
use machine::{Facts, Grade, Hazard};
use record::Record;
use serde_json::{Value, json};

use crate::drawing::{BOLD, FAINT, named, wrapped};
use crate::figure::share;
use crate::sheet::metric_name;

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;
/// Columns of the names.
const NAME: usize = 14;
/// Columns before the evidence: names, and two on either side of them.
const MARGIN: usize = NAME + 4;

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

impl Surveyed<'_> {
    /// All of it, in lines of at most `width` columns where that can be.
    pub fn text(&self, width: usize) -> String {
        let mut out = wrapped(&self.title(), "", "", width);
        out = out.replacen("This machine", &format!("{BOLD}This machine{BOLD:#}"), 1);
        for grade in [Grade::Bad, Grade::Know, Grade::Fine] {
            let mut of_grade = self.hazards.iter().filter(|hazard| hazard.grade == grade).peekable();
            if of_grade.peek().is_some() {
                let (style, heading) = look(grade);
                out += &format!("\n{style}{heading}{style:#}\n");
                of_grade.for_each(|hazard| out += &hazard_text(hazard, style, width));
            }
        }
        out.push('\n');
        out + &self.expected(width)
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
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
    fn expected(&self, width: usize) -> String {
        let Some((record, calibration)) = self.calibration else {
            let line = "proofload calibrate experiment.toml tells how small a difference can be found here; no record below \
                        ./records does so for this machine";
            return named(FAINT, "next", line, width);
        };
        let noise = calibration.metrics.iter();
        let noise = noise.map(|noise| format!("{} in {}", share(noise.sd_log), metric_name(noise.metric)));
        let line = format!(
            "two equal copies of a service differed from block to block by σ {}, over {} blocks: {}",
            noise.collect::<Vec<_>>().join(", "),
            calibration.blocks,
            record.directory.display()
        );
        named(FAINT, "expect", &line, width)
    }
}

fn hazard_text(hazard: &Hazard, style: Style, width: usize) -> String {
    let margin = " ".repeat(MARGIN);
    let name = hazard.name;
    let evidence = wrapped(&hazard.evidence, &margin, &margin, width);
    let mut out = format!("  {style}{name:<NAME$}{style:#}  {}", evidence.trim_start());
    if !hazard.remedy.is_empty() {
        out += &format!("{FAINT}{}{FAINT:#}", wrapped(&hazard.remedy, &margin, &margin, width));
    }
    if let Some(command) = &hazard.command {
        // However long it is, it stays on one line, so that it can be copied.
        out += &format!("{margin}{BOLD}{command}{BOLD:#}\n");
    }
    out
}

fn look(grade: Grade) -> (Style, &'static str) {
    match grade {
        Grade::Bad => (AnsiColor::Red.on_default().bold(), "Will hurt a measurement"),
        Grade::Know => (AnsiColor::Yellow.on_default().bold(), "Worth knowing"),
        Grade::Fine => (AnsiColor::Green.on_default(), "Fine"),
    }
}
