//! The tenths of a ramp as a table, and in a sentence what it bends at. Pure; what was kept is judged in `kept`.

use std::fmt::Write;

use report::rate;

use super::{COLUMN, LABEL};
use crate::load::kept::{Bend, Kept, Stretch};
use crate::load::outcome::Outcome;

/// Nothing for a load that is no ramp, or had no good answer anywhere.
pub fn render(outcome: &Outcome) -> String {
    let stretches = outcome.stretches();
    if stretches.is_empty() || outcome.void().is_some() {
        return String::new();
    }
    let mut text = format!("{:<LABEL$}{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}\n", "Ramp", "at", "due", "good");
    for stretch in &stretches {
        let _ = writeln!(text, "{}", line(stretch));
    }
    if let Some(sentence) = outcome.bend().map(sentence) {
        let _ = writeln!(text, "{:LABEL$}{sentence}", "");
    }
    text
}

/// Rates are means over the stretch.
fn line(stretch: &Stretch) -> String {
    let kept = if stretch.kept { Kept::Up } else { Kept::Behind };
    let (at, due, good) =
        (format!("{:.1} s", stretch.from_s), rate(stretch.due_per_s()), rate(stretch.ok_per_s()));
    format!("{:LABEL$}{at:>COLUMN$}{due:>COLUMN$}{good:>COLUMN$}   {}", "", kept.words())
}

fn sentence(bend: Bend) -> String {
    match bend {
        Bend::At(per_s) => format!("Kept up to about {}.", rate(per_s)),
        Bend::Perhaps(per_s) => {
            format!("Fell behind beyond {} only: a ramp to more says whether it bends there.", rate(per_s))
        }
        Bend::NotUpTo(per_s) => format!("Did not bend up to {}.", rate(per_s)),
        Bend::AtLowest(per_s) => {
            format!("Fell behind from {} on: a ramp from less says what it keeps up with.", rate(per_s))
        }
        Bend::Uneven { kept, gave } => format!(
            "Fell behind beyond {}, but gave {} at another time: no bend to be seen.",
            rate(kept),
            rate(gave)
        ),
    }
}
