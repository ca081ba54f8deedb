//! The tables, as Markdown and as lines of JSON. Shares are in per cent with their standard errors.
//!
//! It must not round what it gives as JSON.

use std::io::{Result, Write};

use super::tally::{Share, Tally};

/// What one rule did, cell by cell.
pub struct Sheet {
    rule: String,
    lines: Vec<Line>,
}

/// One kind of noise with one number of variants.
pub struct Line {
    pub noise: String,
    pub variants: usize,
    /// Without any true difference.
    pub without: Tally,
    /// With planted ones.
    pub planted: Tally,
}

impl Sheet {
    pub fn new(rule: String) -> Sheet {
        Sheet { rule, lines: Vec::new() }
    }

    pub fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub fn write_markdown(&self, out: &mut impl Write) -> Result<()> {
        let runs = self.lines.first().map_or(0, |line| line.without.runs);
        writeln!(out, "**{}** ({runs} runs a cell):\n", self.rule)?;
        writeln!(
            out,
            "| noise | variants | all intervals hold | any false verdict | interval at the end holds | blocks \
             | planted: all hold | false verdict | wrong sign | at the end | blocks |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|")?;
        for Line { noise, variants, without, planted } in &self.lines {
            writeln!(
                out,
                "| {noise} | {variants} | {} | {} | {} | {:.1} | {} | {} | {} | {} | {:.1} |",
                text(without.all_hold()),
                text(without.false_verdict()),
                text(without.hold_at_end()),
                without.blocks(),
                text(planted.all_hold()),
                text(planted.false_verdict()),
                text(planted.wrong_sign()),
                text(planted.hold_at_end()),
                planted.blocks(),
            )?;
        }
        writeln!(out)
    }

    /// One object a line; shares are of 1.
    pub fn write_json(&self, out: &mut impl Write) -> Result<()> {
        for line in &self.lines {
            for (effects, tally) in [("none", &line.without), ("planted", &line.planted)] {
                write!(
                    out,
                    r#"{{"rule":{:?},"noise":{:?},"variants":{},"effects":{effects:?},"runs":{}"#,
                    self.rule,
                    line.noise.trim_matches('*'),
                    line.variants,
                    tally.runs
                )?;
                for (name, share) in [
                    ("all_hold", tally.all_hold()),
                    ("false_verdict", tally.false_verdict()),
                    ("wrong_sign", tally.wrong_sign()),
                    ("hold_at_end", tally.hold_at_end()),
                ] {
                    write!(out, r#","{name}":{},"{name}_se":{}"#, share.value, share.error)?;
                }
                writeln!(out, r#","blocks":{}}}"#, tally.blocks())?;
            }
        }
        Ok(())
    }
}

fn text(share: Share) -> String {
    format!("{:.1} ± {:.1} %", 100.0 * share.value, 100.0 * share.error)
}
