//! The report as one HTML page that needs nothing but itself: opened years later, without a network, it shows all that a record tells.
//!
//! The page is built from `web/` into the template `page/page.html`, whose script draws it from one value, [`PageData`], embedded as JSON.
//! Here that value is filled and the page put together. Names come from experiment files and from services, and may be anything: none may
//! become markup, style or script. Nothing is concluded here.

mod bounds;
mod command;
mod latency;
mod model;
mod series;
mod time_line;
mod variants;
mod verdict;

pub use model::*;
pub use variants::FLAME_PAGE;

use ::model::quantity::count;
use record::Record;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::document;
use crate::experiment::{Measured, headline, standing_word, state, tables};
use crate::html::{elements, filled, in_script, markup, source_of};
use crate::names;
use crate::why::Why;

/// Built from `web/`, and kept here so that the binary can be built without Node.js.
const TEMPLATE: &str = include_str!("page/page.html");

/// The page of a value.
pub fn page_of(data: &PageData) -> String {
    let text = embedded(data);
    let title = markup(&names::shown(&data.title));
    filled(TEMPLATE, &[("title", title.as_str()), ("policy", &policy()), ("data", &text)])
}

/// JSON Schema (draft 2020-12) of the value that a page is drawn from: `web/` makes its own types of it.
pub fn page_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<PageData>().to_value()
}

/// The page's own scripts and styles run, and nothing else: nothing is loaded, sent or framed. Trusted Types make a browser that knows them
/// refuse every assignment of text as markup, the page's own included.
fn policy() -> String {
    let data = |attributes: &str| attributes.contains("application/json");
    let sources = |name: &str| {
        let texts = elements(TEMPLATE, name).into_iter().filter(|(attributes, _)| !data(attributes));
        let sources: Vec<String> = texts.map(|(_, text)| format!("'{}'", source_of(text))).collect();
        if sources.is_empty() { "'none'".to_owned() } else { sources.join(" ") }
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        sources("script"),
        sources("style")
    )
}

/// The value as JSON that can stand inside a script element, in which no name can look like another.
fn embedded(data: &PageData) -> String {
    // Plain structs with finite numbers cannot fail to become JSON.
    let mut value = serde_json::to_value(data).unwrap_or(Value::Null);
    clean(&mut value);
    in_script(&value.to_string())
}

/// Shows characters that mislead as replacement characters; lines stay lines.
fn clean(value: &mut Value) {
    let one = |c: char| if matches!(c, '\n' | '\t') { c } else { names::harmless(c) };
    match value {
        Value::String(text) if text.chars().any(|c| one(c) != c) => *text = text.chars().map(one).collect(),
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// All that a page shows.
pub(crate) fn data(of: &Measured<'_>) -> PageData {
    let Measured { record, conclusion, .. } = *of;
    let (header, design) = (&record.header, &record.header.plan.design);
    let series = analysis::series(record);
    let mut left_out = unfinished(record);
    left_out.extend(undrawn(conclusion.variants.len()));
    let why = of.explanation.map(|explanation| variants::why(&Why::new(explanation)));
    let data = PageData {
        page_version: PAGE_VERSION,
        title: of.title().to_owned(),
        experiment: header.plan.name.clone(),
        created: header.created.clone(),
        proofload: header.proofload.clone(),
        answer: headline(record, conclusion),
        state: state(record, conclusion),
        verdicts: verdict::verdicts(conclusion, design, &series, &mut left_out),
        margin: design.margin,
        effects: verdict::effects(conclusion),
        findings: verdict::findings(conclusion, &mut left_out),
        explained_by: of.explained_by(),
        variants: variants::variants(record, conclusion),
        figures: Table {
            heading: "Figures of the variants".to_owned(),
            ..(&tables::variants(record, conclusion)).into()
        },
        parts: tables::parts(conclusion).iter().map(Into::into).collect(),
        series: series::by_block(&series, &mut left_out),
        latencies: latency::curves(record),
        interactions: series::interactions(record, conclusion, &series),
        time_lines: time_line::time_lines(record, &mut left_out),
        errors: variants::errors(record, conclusion, &mut left_out),
        why: why.map(|why| WhySection { flame_page: of.has_flames.then(|| FLAME_PAGE.to_owned()), ..why }),
        method: pairs(of.method()),
        assumptions: of.assumptions().into_iter().map(assumption).collect(),
        place: pairs(of.place()),
        next: of.steps(),
        plan: plan_text(record, &mut left_out),
        command: command::given(header),
        repeat: command::again(header),
        left_out: Vec::new(),
    };
    PageData { left_out, ..data }
}

fn pairs(lines: Vec<document::Line>) -> Vec<(String, String)> {
    lines.into_iter().map(|line| (line.name, line.text)).collect()
}

fn assumption(of: &analysis::Assumption) -> Assumption {
    Assumption {
        standing: standing_word(of.standing).to_owned(),
        text: of.statement.clone(),
        evidence: of.evidence.clone(),
    }
}

/// Blocks that broke off: they are in no figure.
fn unfinished(record: &Record) -> Vec<String> {
    let blocks = record.blocks.iter().filter(|block| block.number > 0 && block.seconds.is_none());
    let sentence = |block: &record::Block| format!("block {} has no end: it is in no figure", block.number);
    blocks.map(sentence).take(bounds::DRAWN_MAX).collect()
}

/// Variants without curves and time lines.
fn undrawn(variants: usize) -> Option<String> {
    (variants > bounds::DRAWN_MAX).then(|| {
        let (drawn, all) = (bounds::DRAWN_MAX, count(variants as u64));
        format!("times and time lines: those of the first {drawn} of {all} variants are drawn")
    })
}

/// The experiment file, cut where it is endless.
fn plan_text(record: &Record, left_out: &mut Vec<String>) -> Option<String> {
    let text = record.experiment_text.as_ref()?;
    let shown = bounds::cut(text, bounds::PLAN_BYTES_MAX);
    if shown.len() < text.len() {
        left_out.push(format!(
            "the experiment file: its first {} of {} bytes are shown",
            count(shown.len() as u64),
            count(text.len() as u64)
        ));
    }
    Some(shown.to_owned())
}
