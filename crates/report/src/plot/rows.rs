//! What the plot says: the comparisons in the words of the other forms, and the lines at its foot.

use analysis::{Comparison, Conclusion, Grade, Outcome};
use record::Record;

use super::axis::Span;
use crate::figure::change;
use crate::sheet::{Judged, Sheet, comparisons_of_answers, metric_name};

/// One line of the plot.
#[derive(Debug)]
pub(super) struct Row {
    /// Candidate against baseline.
    pub comparison: String,
    /// Where several metrics are judged, which one this is.
    pub metric: Option<&'static str>,
    pub outcome: Outcome,
    /// The verdict.
    pub word: String,
    /// `None` where no number may be shown, or there is none.
    pub span: Option<Span>,
    /// The estimate as the other forms print it, or why there is none.
    pub told: String,
}

/// The metric that all verdicts are about, where it is one.
pub(super) fn common_metric(conclusion: &Conclusion) -> Option<&'static str> {
    let first = conclusion.comparisons.first()?.metric;
    conclusion.comparisons.iter().all(|of| of.metric == first).then(|| metric_name(first))
}

/// A row for each verdict.
pub(super) fn rows(sheet: &Sheet, conclusion: &Conclusion) -> Vec<Row> {
    let several = common_metric(conclusion).is_none();
    let groups = sheet.answers.iter().zip(comparisons_of_answers(conclusion));
    let row = |(label, judged, comparison): (&str, &Judged, &Comparison)| {
        let told = comparison.estimate.as_ref().map(|estimate| {
            let (value, interval) = change(estimate);
            format!("{value}  ({interval})")
        });
        let as_one = matches!(comparison.outcome, Outcome::Void | Outcome::NoSuccess);
        Row {
            comparison: label.to_owned(),
            metric: (several && !as_one).then(|| metric_name(comparison.metric)),
            outcome: comparison.outcome,
            word: judged.verdict.to_uppercase(),
            span: comparison.estimate.as_ref().map(|of| Span { ratio: of.ratio, low: of.low, high: of.high }),
            told: told.unwrap_or_else(|| judged.detail.clone()),
        }
    };
    let of_answer = groups.flat_map(|(answer, group)| {
        answer
            .judged
            .iter()
            .zip(group)
            .map(|(judged, comparison)| (answer.comparison.as_str(), judged, comparison))
    });
    of_answer.map(row).collect()
}

/// When and where it was measured, what qualifies it, and how to repeat it.
pub(super) fn foot(record: &Record, conclusion: &Conclusion) -> Vec<String> {
    let header = &record.header;
    let environment = &header.environment;
    let date = header.created.split('T').next().unwrap_or_default();
    let cpu = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let mut machine = format!("{date}, {} blocks, {cpu}", conclusion.blocks);
    if environment.cpus > 0 {
        machine += &format!(", {} processors", environment.cpus);
    }
    machine.extend(environment.kernel.iter().map(|kernel| format!(", Linux {kernel}")));
    let repeat = format!("to repeat it: proofload run {} --seed {}", header.experiment, header.seed);
    let found = |grade: Grade| conclusion.findings.iter().filter(|of| of.grade == grade).count();
    let many = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let found = [many(found(Grade::Void), "void finding"), many(found(Grade::Warning), "warning")];
    let found: Vec<String> = found.into_iter().flatten().collect();
    let found = (!found.is_empty()).then(|| format!("{}: see the report", found.join(", ")));
    found.into_iter().chain([machine, repeat]).collect()
}
