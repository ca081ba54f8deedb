//! The invariants of every run, for any combination.

use analysis::Check;
use analysis::{Conclusion, Outcome, Ruling};
use model::Grade;
use record::Record;
use report::{
    CSV, FormOptions, Gated, HTML, JSON, JUNIT, MARKDOWN, MeasuredRecord, SVG, TEXT, render,
};
use serde_json::Value;

/// Texts that no report may contain.
const FORBIDDEN: [&str; 8] = [
    "NaN",
    " inf",
    "×0.0 ",
    "-0.0 ",
    " 1 requests",
    " 1 blocks",
    "Some(",
    "None",
];

/// Share of the budget for which the current block may continue.
const GRACE: f64 = 0.05;
/// A window that began within that time still ends.
const UNDER_WAY_S: f64 = 1.5;

/// The output of a record's report in every form.
#[derive(PartialEq)]
pub struct Printed {
    pub forms: Vec<(&'static str, String)>,
}

/// The output of a record and its gate.
pub fn printed(record: &Record, with_page: bool) -> Printed {
    let conclusion = analysis::conclude(record);
    let measured = MeasuredRecord::new(record, &conclusion, None);
    let look = FormOptions {
        width: 100,
        ground: report::plot::Ground::Light,
    };
    let mut forms = vec![&TEXT, &MARKDOWN, &JSON, &CSV, &SVG];
    if with_page {
        forms.push(&HTML);
    }
    let drawn = |form: &&'static report::Form| {
        (form.name, render(&measured, form, look).unwrap_or_default())
    };
    let mut forms: Vec<(&str, String)> = forms.iter().map(drawn).collect();
    let gate = analysis::gated(record, &conclusion, &record.header.plan.gate);
    let gated = Gated {
        record,
        gate: &gate,
        allow_open: false,
    };
    for form in [&TEXT, &JSON, &JUNIT] {
        forms.push((
            form.name,
            render(&gated, form, look).expect("a gate has this form"),
        ));
    }
    Printed { forms }
}

/// Panics if a rule is broken.
pub fn check(record: &Record, printed: &Printed) {
    let conclusion = analysis::conclude(record);
    ends_within_its_budget(record);
    verdicts_agree_with_findings(&conclusion);
    gate_agrees_with_report(record, &conclusion);
    failures_are_found(record, &conclusion);
    for slice in record
        .blocks
        .iter()
        .flat_map(|block| &block.trials)
        .flat_map(|trial| &trial.slices)
    {
        let counts = &slice.counts;
        let ended = counts.responses + counts.timed_out + counts.broken + counts.unfinished;
        assert_eq!(counts.sent, ended, "a request was lost: {slice:?}");
        assert_eq!(
            counts.status.values().sum::<u64>(),
            counts.responses,
            "a status was lost: {slice:?}"
        );
    }
    for (form, text) in &printed.forms {
        match *form {
            "json" => numbers_are_possible(&serde_json::from_str(text).expect("JSON"), "", record),
            "text" | "md" => {
                let found = FORBIDDEN
                    .into_iter()
                    .find(|forbidden| text.contains(forbidden));
                assert_eq!(found, None, "in the {form}:\n{text}");
            }
            _ => {}
        }
    }
}

fn ends_within_its_budget(record: &Record) {
    let plan = &record.header.plan;
    let ended = record.ended.as_ref().expect("the run has an end");
    if plan.measure.is_none() && !plan.design.explain {
        let budget_s = plan.design.budget.as_secs_f64();
        let limit_s = budget_s * (1.0 + GRACE) + UNDER_WAY_S;
        assert!(
            ended.seconds <= limit_s,
            "{} s of {budget_s} s: {:?}",
            ended.seconds,
            ended.reason
        );
    }
}

fn verdicts_agree_with_findings(conclusion: &Conclusion) {
    for comparison in &conclusion.comparisons {
        let is_void = conclusion
            .findings
            .iter()
            .any(|finding| finding.voids(comparison.baseline, comparison.candidate));
        match comparison.outcome {
            Outcome::Better | Outcome::Worse | Outcome::Equivalent => {
                assert!(!is_void, "a verdict beside {:?}", conclusion.findings);
            }
            Outcome::Inconclusive | Outcome::NoSuccess | Outcome::Invalid => {}
        }
        if let Some(estimate) = comparison.estimate {
            let (low, ratio, high) = (estimate.low, estimate.ratio, estimate.high);
            assert!(
                0.0 < low && low <= ratio && ratio <= high,
                "{low} {ratio} {high}"
            );
            match comparison.outcome {
                Outcome::Better | Outcome::Worse => {
                    assert!(low > 1.0 || high < 1.0, "{comparison:?}")
                }
                Outcome::Equivalent
                | Outcome::Inconclusive
                | Outcome::NoSuccess
                | Outcome::Invalid => {}
            }
        }
    }
}

fn gate_agrees_with_report(record: &Record, conclusion: &Conclusion) {
    let gate = analysis::gated(record, conclusion, &record.header.plan.gate);
    let is_invalid = conclusion
        .findings
        .iter()
        .any(|finding| finding.grade == Grade::Invalid);
    if is_invalid
        || record
            .ended
            .as_ref()
            .is_some_and(|ended| ended.reason.failure().is_some())
    {
        assert_ne!(
            gate.ruling(),
            Some(Ruling::Pass),
            "the gate passes an invalid run: {:?}",
            conclusion.findings
        );
    }
    for judgement in gate.judgements {
        let Some(measured) = judgement.measured else {
            assert_ne!(
                judgement.ruling,
                Ruling::Pass,
                "{}: passes without a figure",
                judgement.limit
            );
            continue;
        };
        assert!(
            measured.high.is_none_or(|high| measured.low <= high),
            "{}: {measured:?}",
            judgement.limit
        );
    }
}

/// More than one failed request in a thousand, with those that were never sent, forbids a comparison.
fn failures_are_found(record: &Record, conclusion: &Conclusion) {
    let plan = &record.header.plan;
    if plan.measure.is_some() || !plan.design.slo.is_empty() {
        return;
    }
    for index in 0..plan.variants.len() {
        let trials = record.complete_trials();
        let slices: Vec<_> = trials
            .flat_map(|trial| trial.measured())
            .filter(|slice| slice.variant == index)
            .collect();
        let unsent = |counts: &model::Counts| counts.open.as_ref().map_or(0, |open| open.unsent);
        let due: u64 = slices
            .iter()
            .map(|slice| slice.counts.sent + unsent(&slice.counts))
            .sum();
        let good: u64 = slices.iter().map(|slice| slice.counts.successful).sum();
        let is_found = conclusion.findings.iter().any(|finding| {
            // Without any success there is no verdict in any case.
            finding.check == Check::NoSuccess
                || finding.check == Check::Errors && finding.grade == Grade::Invalid
        });
        assert!(
            (due - good) * 1000 <= due || is_found,
            "{} of {due} failed: {:?}",
            due - good,
            conclusion.findings
        );
    }
}

/// Shares are at most 1, cores at most the machine's, and the parts of a sum add up.
fn numbers_are_possible(value: &Value, path: &str, record: &Record) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                numbers_are_possible(value, &format!("{path}.{key}"), record);
            }
            let number = |name: &str| fields.get(name).and_then(Value::as_u64);
            if let (Some(sent), Some(responses)) = (number("sent"), number("responses")) {
                let rest =
                    ["timed_out", "broken", "unfinished"].map(|name| number(name).unwrap_or(0));
                assert_eq!(sent, responses + rest.iter().sum::<u64>(), "{path}");
                assert!(number("successful").unwrap_or(0) <= responses, "{path}");
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| {
                numbers_are_possible(item, &format!("{path}[{index}]"), record)
            });
        }
        Value::Number(number) => {
            let number = number.as_f64().expect("a number");
            let key = path.rsplit('.').next().unwrap_or_default();
            if key == "share" || key.ends_with("_share") {
                assert!((0.0..=1.0 + 1e-9).contains(&number), "{path} is {number}");
            }
            if key == "cores" || key.ends_with("_cores") {
                let cpus = record.header.environment.cpus as f64;
                assert!(number <= cpus, "{path} is {number} of {cpus}");
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
