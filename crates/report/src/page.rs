//! The report as one self-contained HTML page: opened years later without a network, it shows everything in a
//! record.
//!
//! The page is built from `web/` into the template `page/page.html`. Its script draws it from one value,
//! [`PageData`], embedded as JSON. This module fills that value and assembles the page. Names come from
//! experiment files and services and may be arbitrary: none may become markup, style or script. The amount of
//! data is limited, so that a record with 200 variants or 10,000 blocks still opens at once: below 5 MB.
//! Nothing is concluded here, invalid results have no number, and everything left out is mentioned.

mod model;
mod times;

pub use model::*;

use ::explain::{Why, flame::source_of};
use ::model::document;
use ::model::quantity::{change_told, count};
use ::model::text::{cut_bytes, lines, markup, shown as shown_text};
use analysis::{Check, Conclusion, Effect, EffectKind, Series};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use plan::{Design, Factor, Plan};
use record::Record;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::experiment::headline::{headline, state};
use crate::experiment::method::method;
use crate::experiment::{MeasuredRecord, answer, capacity, repeat, tables};
use crate::measurement::LoadedRecord;
use crate::plot::{Ground, Plot};
use crate::validity::paragraphs;

/// Built from `web/`, and stored here so that the binary can be built without Node.js.
const TEMPLATE: &str = include_str!("page/page.html");

/// Assembles the page of a value. The template's marks, each of which appears once and in this order, are
/// replaced in one pass. Inserted text is not processed again.
pub fn page_of(data: &PageData) -> String {
    let title = markup(&shown_text(&data.title));
    let mut page = String::new();
    let mut rest = TEMPLATE;
    for (mark, value) in [
        ("{{policy}}", policy()),
        ("{{title}}", title),
        ("{{data}}", embedded(data)),
    ] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page += before;
        page += &value;
        rest = after;
    }
    page + rest
}

/// JSON Schema (draft 2020-12) of the data of a page. `web/` generates its types from it.
pub fn page_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<PageData>()
        .to_value()
}

/// Content security policy: only the page's own scripts and styles run, and nothing is loaded, sent or
/// framed. With Trusted Types, a supporting browser rejects every assignment of text as markup, also by the
/// page.
fn policy() -> String {
    // The build of the page ensures that there is one of each.
    let source = |begin: &str, end: &str| {
        let text = TEMPLATE
            .split_once(begin)
            .and_then(|(_, rest)| rest.split_once(end));
        text.map_or_else(
            || "'none'".to_owned(),
            |(text, _)| format!("'{}'", source_of(text)),
        )
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        source("<script type=\"module\">", "</script>"),
        source("<style>", "</style>")
    )
}

/// The value as JSON for a script element, in which names cannot be mistaken for others.
fn embedded(data: &PageData) -> String {
    // Plain structs with finite numbers always convert to JSON.
    let mut value = serde_json::to_value(data).unwrap_or(Value::Null);
    clean(&mut value);
    // `</script` and `<!--` would end or change the script. The last two characters end a line in older
    // JavaScript engines.
    ['<', '>', '&', '\u{2028}', '\u{2029}']
        .into_iter()
        .fold(value.to_string(), |json, c| {
            json.replace(c, &format!("\\u{:04x}", u32::from(c)))
        })
}

/// Replaces misleading characters by replacement characters. Line breaks are kept.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = lines(text),
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn capacity_picture(of: &MeasuredRecord<'_>) -> Option<CapacityPicture> {
    let plot = Plot::of_capacity(of)?;
    let address = |ground: Ground| {
        format!(
            "data:image/svg+xml;base64,{}",
            BASE64_STANDARD.encode(plot.svg(ground))
        )
    };
    let tables = capacity::curves(of.record, of.conclusion);
    Some(CapacityPicture {
        told: plot.told(),
        light: address(Ground::Light),
        dark: address(Ground::Dark),
        tables: tables.iter().map(Into::into).collect(),
    })
}

/// All data of a page.
pub(crate) fn data(of: &MeasuredRecord<'_>) -> PageData {
    let MeasuredRecord {
        record, conclusion, ..
    } = *of;
    let (header, design) = (&record.header, &record.header.plan.design);
    let series = analysis::series(record);
    let checks = conclusion.findings.iter().map(|finding| finding.check);
    let mut left_out = unfinished(record);
    if conclusion.variants.len() > DRAWN_MAX {
        let all = count(conclusion.variants.len() as u64);
        left_out.push(format!(
            "times and time lines: those of the first {DRAWN_MAX} of {all} variants are drawn"
        ));
    }
    let loaded = LoadedRecord::of(of);
    let title = loaded.as_ref().map(LoadedRecord::title);
    let loaded = loaded.filter(|_| record.is_open_loop());
    // Times of failures alone are no results.
    let has_success = conclusion.variants.iter().any(|of| of.no_success.is_none());
    PageData {
        title: title.unwrap_or_else(|| of.title().to_owned()),
        experiment: header.plan.name.clone(),
        created: header.created.clone(),
        proofload: header.proofload.clone(),
        answer: headline(record, conclusion),
        state: state(record, conclusion),
        verdicts: verdicts(conclusion, design, &series, &mut left_out),
        margin: design.margin,
        effects: effects(conclusion),
        capacity: capacity_picture(of),
        findings: findings(conclusion, &mut left_out),
        // The explanation by `proofload explain` of each of their checks.
        explanations: checks
            .map(|check| (check.number(), paragraphs(check)))
            .collect(),
        variants: variants(record, conclusion),
        figures: match &loaded {
            Some(loaded) => PageTable {
                heading: "Figures of the steps".to_owned(),
                ..(&loaded.steps()).into()
            },
            None => PageTable {
                heading: "Figures of the variants".to_owned(),
                ..(&tables::variants(record, conclusion)).into()
            },
        },
        // The total of all steps has no rate.
        parts: match &loaded {
            Some(loaded) if loaded.is_ladder() => Vec::new(),
            _ => tables::parts(conclusion).iter().map(Into::into).collect(),
        },
        series: by_block(&series, &mut left_out),
        latencies: if has_success {
            times::curves(record)
        } else {
            Vec::new()
        },
        interactions: interactions(record, conclusion, &series),
        time_lines: times::time_lines(record, &mut left_out),
        errors: errors(record, conclusion, &mut left_out),
        why: of
            .explanation
            .map(|explanation| why(Why::of(explanation), of.has_flames)),
        method: pairs(method(record, conclusion)),
        assumptions: of.assumptions().into_iter().cloned().collect(),
        place: pairs(of.place()),
        next: of.steps(),
        plan: plan_text(record, &mut left_out),
        command: plan::command_line(header.command.clone()),
        repeat: repeat(record),
        left_out,
    }
}

fn pairs(lines: Vec<document::NamedText>) -> Vec<(String, String)> {
    lines
        .into_iter()
        .map(|line| (line.name, line.text))
        .collect()
}

/// Aborted blocks, which are not in any figure.
fn unfinished(record: &Record) -> Vec<String> {
    let blocks = record
        .blocks
        .iter()
        .filter(|block| block.number > 0 && block.seconds.is_none());
    let sentence =
        |block: &record::Block| format!("block {} has no end: it is in no figure", block.number);
    blocks.map(sentence).take(DRAWN_MAX).collect()
}

/// The experiment file, truncated if it is very long.
fn plan_text(record: &Record, left_out: &mut Vec<String>) -> Option<String> {
    let text = record.experiment_text.as_ref()?;
    let mut shown = text.clone();
    cut_bytes(&mut shown, PLAN_BYTES_MAX);
    if shown.len() < text.len() {
        let (first, all) = (count(shown.len() as u64), count(text.len() as u64));
        left_out.push(format!(
            "the experiment file: its first {first} of {all} bytes are shown"
        ));
    }
    Some(shown)
}

/// Maximum number of values of one metric in all variants' series together, and of all block ratios together.
const NUMBERS_MAX: usize = 60_000;
/// Maximum number of variants with curves of their times, and of time lines.
const DRAWN_MAX: usize = 64;
/// Maximum number of rows of errors.
const ERROR_ROWS_MAX: usize = 500;
/// Maximum number of findings, most severe first.
const FINDINGS_MAX: usize = 300;
/// Maximum number of bytes of the experiment file's text.
const PLAN_BYTES_MAX: usize = 200_000;

/// At most `most` indices of `count` items, evenly spread, including the first and the last.
fn evenly(count: usize, most: usize) -> Vec<usize> {
    let most = most.max(2);
    if count <= most {
        return (0..count).collect();
    }
    (0..most)
        .map(|index| index * (count - 1) / (most - 1))
        .collect()
}

/// Rounds to five significant digits: more than a picture can show, in half the bytes.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The rounded value for a picture. `None` if it is not finite.
fn shown(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite()).map(rounded)
}

/// File name of the flame graphs' page in the record's folder.
pub const FLAME_PAGE: &str = "flame.html";

fn variants(record: &Record, conclusion: &Conclusion) -> Vec<PageVariant> {
    let trials = || record.complete_blocks().flat_map(|block| &block.trials);
    let one = |(index, of): (usize, &analysis::VariantFigures)| PageVariant {
        name: of.name.clone(),
        invalid: conclusion.voids(index),
        trials: trials().filter(|trial| trial.variant() == index).count(),
        requests: of.requests,
    };
    conclusion.variants.iter().enumerate().map(one).collect()
}

/// By variant, the most frequent first.
fn errors(record: &Record, conclusion: &Conclusion, left_out: &mut Vec<String>) -> Vec<ErrorRow> {
    let of_variant = |(variant, of): (usize, &analysis::VariantFigures)| {
        let requests = of.requests;
        let failures = analysis::failures(record, variant).into_iter();
        failures.map(move |failure| ErrorRow {
            variant,
            requests,
            failure,
        })
    };
    let mut rows: Vec<ErrorRow> = conclusion
        .variants
        .iter()
        .enumerate()
        .flat_map(of_variant)
        .collect();
    if rows.len() > ERROR_ROWS_MAX {
        let all = count(rows.len() as u64);
        left_out.push(format!(
            "errors: the first {ERROR_ROWS_MAX} of {all} kinds are shown"
        ));
        rows.truncate(ERROR_ROWS_MAX);
    }
    rows
}

/// Explanation from captures, with a link to the flame graphs if they exist.
fn why(of: Why, has_flames: bool) -> WhySection {
    WhySection {
        reasons: of.reasons,
        tables: of.tables.iter().map(Into::into).collect(),
        method: pairs(of.method),
        doubts: of
            .doubts
            .into_iter()
            .map(|doubt| (doubt.statement, doubt.remedy))
            .collect(),
        flame_page: has_flames.then(|| FLAME_PAGE.to_owned()),
    }
}

/// All verdicts, in the order of the plan.
fn verdicts(
    conclusion: &Conclusion,
    design: &Design,
    series: &[Series],
    left_out: &mut Vec<String>,
) -> Vec<PageVerdict> {
    let variants = conclusion.variants.len();
    let ratios_max = NUMBERS_MAX / conclusion.comparisons.len().max(1);
    let mut verdicts = Vec::new();
    let mut thinned = false;
    for group in answer::groups(conclusion) {
        let mut also = answer::also(group, design);
        for comparison in answer::told(group) {
            if comparison.baseline.max(comparison.candidate) >= variants {
                left_out.push(format!(
                    "{}: the plan has no such variants",
                    comparison.label
                ));
                continue;
            }
            let ratios = analysis::ratios_by_block(series, comparison);
            thinned |= ratios.len() > ratios_max;
            verdicts.push(PageVerdict {
                comparison: comparison.label.clone(),
                baseline: comparison.baseline,
                candidate: comparison.candidate,
                metric: comparison.metric.row().heading.to_owned(),
                more_is_better: comparison.metric.wants_more(),
                outcome: comparison.outcome,
                word: answer::word_of(comparison),
                detail: answer::detail(comparison, conclusion, design),
                ratio: comparison.estimate.as_ref().map(Into::into),
                blocks: evenly(ratios.len(), ratios_max)
                    .into_iter()
                    .map(|at| rounded(ratios[at]))
                    .collect(),
                also: std::mem::take(&mut also),
            });
        }
    }
    if thinned {
        let number = count(ratios_max as u64);
        left_out.push(format!(
            "the ratio of each block: of each comparison {number} are drawn, evenly spread"
        ));
    }
    verdicts
}

/// Main effects and interactions.
fn effects(conclusion: &Conclusion) -> Option<Effects> {
    let heading = tables::effects_heading(conclusion)?;
    let (shown, note) = tables::shown_effects(conclusion);
    let line = |effect: &Effect| EffectLine {
        label: effect.label.clone(),
        interaction: effect.kind == EffectKind::Interaction,
        outcome: effect.outcome,
        word: answer::effect_word(effect).to_owned(),
        detail: effect
            .estimate
            .as_ref()
            .map_or_else(|| "no estimate".to_owned(), change_told),
        ratio: effect.estimate.as_ref().map(Into::into),
    };
    Some(Effects {
        heading,
        lines: shown.into_iter().map(line).collect(),
        note,
    })
}

/// Findings, most severe first.
fn findings(conclusion: &Conclusion, left_out: &mut Vec<String>) -> Vec<Finding<Check>> {
    let all = &conclusion.findings;
    if all.len() > FINDINGS_MAX {
        let number = count(all.len() as u64);
        left_out.push(format!(
            "findings: the gravest {FINDINGS_MAX} of {number} are shown"
        ));
    }
    all.iter().take(FINDINGS_MAX).cloned().collect()
}

/// Each metric block by block, limited so that the total over all variants stays within bounds.
fn by_block(all: &[Series], left_out: &mut Vec<String>) -> Vec<BlockSeries> {
    let variants = all.first().map_or(0, |series| series.values.len());
    let blocks_max = NUMBERS_MAX / variants.max(1);
    let blocks = all.first().map_or(0, |series| series.blocks.len());
    let kept = evenly(blocks, blocks_max);
    if kept.len() < blocks {
        let (kept, all) = (count(kept.len() as u64), count(blocks as u64));
        left_out.push(format!(
            "figures by block: {kept} of {all} blocks are drawn, evenly spread"
        ));
    }
    all.iter().map(|series| thinned(series, &kept)).collect()
}

fn thinned(series: &Series, kept: &[usize]) -> BlockSeries {
    let blocks: Vec<u32> = kept.iter().map(|at| series.blocks[*at]).collect();
    let values = |of: &Vec<Option<f64>>| kept.iter().map(|at| of[*at].map(rounded)).collect();
    BlockSeries {
        metric: series.of.row().heading.to_owned(),
        unit: series.of.unit(),
        dropped: series
            .dropped
            .iter()
            .filter(|of| blocks.contains(&of.block))
            .cloned()
            .collect(),
        blocks,
        values: series.values.iter().map(values).collect(),
    }
}

/// Every metric over each pair of factors. Empty if effects are void, or wait for the only look.
fn interactions(record: &Record, conclusion: &Conclusion, all: &[Series]) -> Vec<Interaction> {
    let void = conclusion
        .effects
        .iter()
        .any(|effect| effect.outcome == Outcome::Invalid);
    if conclusion.effects.is_empty() || void || conclusion.awaits_look {
        return Vec::new();
    }
    let plan = &record.header.plan;
    let factors = || plan.factors.iter().enumerate();
    let pairs = || {
        factors().flat_map(|(at, one)| plan.factors[at + 1..].iter().map(move |other| (one, other)))
    };
    let of = |series| {
        pairs().filter_map(move |(across, lines)| interaction(plan, series, across, lines))
    };
    all.iter().flat_map(of).collect()
}

/// Each cell averages the variants with both levels, without the copy of the baseline, which would count
/// twice.
fn interaction(
    plan: &Plan,
    series: &Series,
    across: &Factor,
    lines: &Factor,
) -> Option<Interaction> {
    let copy = plan.aa.as_ref().map(|aa| aa.candidate);
    let cell = |level: &String, line: &String| {
        let has = |variant: &plan::Variant, factor: &Factor, level| {
            variant.levels.get(&factor.name) == Some(level)
        };
        let variants = plan.variants.iter().enumerate().filter(|(index, variant)| {
            copy != Some(*index) && has(variant, across, level) && has(variant, lines, line)
        });
        shown(series.mean(variants.map(|(index, _)| index)))
    };
    let row = |line| {
        across
            .levels
            .iter()
            .map(|level| cell(level, line))
            .collect()
    };
    let values: Vec<Vec<Option<f64>>> = lines.levels.iter().map(row).collect();
    let named = |factor: &Factor| (factor.name.clone(), factor.levels.clone());
    values
        .iter()
        .flatten()
        .any(Option::is_some)
        .then(|| Interaction {
            metric: series.of.row().heading.to_owned(),
            unit: series.of.unit(),
            across: named(across),
            lines: named(lines),
            values,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_thinned_keeps_its_ends_and_its_order() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 3, 6, 9]);
        assert_eq!(evenly(10, 0), [0, 9]);
        let many = evenly(10_000, 301);
        assert!(
            many.len() == 301 && many.is_sorted_by(|one, other| one < other),
            "{many:?}"
        );
        assert_eq!((many[0], many[300]), (0, 9_999));
    }

    #[test]
    fn numbers_keep_five_digits() {
        let told = [1234.5678, -0.000_123_456_7, 98_765_432.1, 0.0].map(rounded);
        assert_eq!(
            serde_json::json!(told).to_string(),
            "[1234.6,-0.00012346,98765000.0,0.0]"
        );
        assert_eq!(shown(Some(f64::NAN)), None);
    }
}
