//! The tenths of a ramp, and the rate at which the service falls behind.

use analysis::MeasuredWindow;
use analysis::measurement::{Bend, RateKept, WindowPart};
use model::RampPart;
use model::document::{Cell, ColumnFit, DocumentPart, Table, Tone};
use model::quantity::{Quantity, count, rate};

use super::{at, tone};

/// The tenths of a ramp, and a sentence on where the service falls behind. Empty for another load.
pub(super) fn ramp(window: &MeasuredWindow<'_>) -> Vec<DocumentPart> {
    let stretches = window.stretches();
    if stretches.is_empty() || !window.has_success() {
        return Vec::new();
    }
    use ColumnFit::{Figure, Whole};
    let columns = [
        ("ramp at", Figure),
        ("due", Figure),
        ("throughput", Figure),
        ("p50", Figure),
        ("p99", Figure),
        ("failed", Figure),
        ("", Whole),
    ];
    let mut table = Table::new("", columns);
    let parts = window.ramp_parts().iter().map(Some);
    let parts = parts.chain(std::iter::repeat(None));
    let rows = stretches.iter().zip(parts);
    rows.for_each(|(stretch, part)| table.push(tenth(stretch, part)));
    let sentence = window
        .bend()
        .map(|bend| DocumentPart::Paragraph(Tone::Strong, bend_text(bend)));
    [DocumentPart::Table(table)]
        .into_iter()
        .chain(sentence)
        .collect()
}

fn tenth(stretch: &WindowPart, part: Option<&RampPart>) -> Vec<Cell> {
    let kept = if stretch.kept {
        RateKept::Up
    } else {
        RateKept::Behind
    };
    let time = |q| part.map_or(Cell::Missing, |part| at(&part.response, q));
    vec![
        Cell::figure(Some(Quantity::seconds(stretch.from_s))),
        Cell::figure(Some(Quantity::per_s(stretch.due_per_s()))),
        Cell::figure(Some(Quantity::per_s(stretch.ok_per_s()))),
        time(0.5),
        time(0.99),
        Cell::optional(part.map(|part| count(failed_of(part)))),
        Cell::Word(tone(kept), kept.words().to_owned()),
    ]
}

/// Requests due in a part of a ramp without an expected response.
pub(super) fn failed_of(part: &RampPart) -> u64 {
    part.response.count().saturating_sub(part.successful)
}

fn bend_text(bend: Bend) -> String {
    match bend {
        Bend::At(per_s) => format!(
            "It bends at about {}: the service kept up below.",
            rate(per_s)
        ),
        Bend::Perhaps(per_s) => {
            format!(
                "Fell behind beyond {} only: a ramp to more says whether it bends there.",
                rate(per_s)
            )
        }
        Bend::NotUpTo(per_s) => format!(
            "No bend: the service kept up to {}, the highest rate of the ramp.",
            rate(per_s)
        ),
        Bend::AtLowest(per_s) => {
            format!(
                "Fell behind from {} on: a ramp from less says what it keeps up with.",
                rate(per_s)
            )
        }
        Bend::Uneven { kept, gave } => {
            let (kept, gave) = (rate(kept), rate(gave));
            format!(
                "Fell behind beyond {kept}, but gave {gave} at another time: no bend to be seen."
            )
        }
    }
}
