//! Texts from outside made harmless: names of an experiment file, what services answered, paths. On a terminal a control character
//! could do anything, and one that turns the direction of writing could make a name look like another.

use super::Sheet;
use crate::names::line;

/// The same sheet, each of its texts one line without such characters.
pub(super) fn cleaned(mut sheet: Sheet) -> Sheet {
    let tables = sheet.parts.iter_mut().flat_map(|part| &mut part.rows).chain(&mut sheet.rows);
    let answers = sheet.answers.iter_mut().flat_map(|answer| {
        let judged =
            answer.judged.iter_mut().flat_map(|one| one.estimate.iter_mut().chain([&mut one.detail]));
        judged.chain(&mut answer.also).chain([&mut answer.comparison])
    });
    let effects = sheet.effects.iter_mut().flat_map(|effects| &mut effects.lines).map(|line| &mut line.label);
    let findings = sheet.findings.iter_mut().flat_map(|of| [&mut of.evidence, &mut of.remedy]);
    let lines = sheet.method.iter_mut().chain(&mut sheet.place).map(|(_, text)| text);
    let assumptions = sheet.assumptions.iter_mut().map(|of| &mut of.evidence);
    [&mut sheet.title]
        .into_iter()
        .chain(answers)
        .chain(effects)
        .chain(tables.flat_map(|row| &mut row.cells))
        .chain(findings)
        .chain(lines)
        .chain(assumptions)
        .chain(&mut sheet.next)
        .for_each(|text| *text = line(text));
    sheet
}
