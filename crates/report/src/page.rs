//! The report as one HTML page that needs nothing but itself: opened years later, without a network, it shows all that a record tells.
//!
//! The page is built from `web/` into the template `page/page.html`, whose script draws it from one value, [`PageData`], embedded as JSON.
//! Here that value is filled and the page put together. Names come from experiment files and from services, and may be anything: none may
//! become markup, style or script. Nothing is concluded here.

mod answer;
mod bounds;
mod clause;
mod command;
mod latency;
mod model;
mod series;
mod time_line;
mod variants;
mod verdict;

pub use model::*;
pub use variants::FLAME_PAGE;

use analysis::Conclusion;
use explain::Explanation;
use record::Record;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::figure::count;
use crate::html::{elements, filled, in_script, markup, source_of};
use crate::names;
use crate::sheet::Sheet;

/// Built from `web/`, and kept here so that the binary can be built without Node.js.
const TEMPLATE: &str = include_str!("page/page.html");

/// The report of a record as a page, with what its captures explain.
pub fn page(record: &Record, conclusion: &Conclusion, explanation: Option<&Explanation>) -> String {
    page_of(&page_data(record, conclusion, explanation))
}

/// The page of a value that is filled already.
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

/// The value as JSON that can stand inside a script element. Characters that turn the direction of what follows, and controls, are shown as
/// replacement characters: with them a name could look like another.
fn embedded(data: &PageData) -> String {
    let misleads = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    // Plain structs with finite numbers cannot fail to become JSON.
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    let json: String = json.chars().map(|c| if misleads(c) { '\u{fffd}' } else { c }).collect();
    in_script(&json)
}

/// All that a page shows, from the record, its conclusion, and what its captures explain.
pub fn page_data(record: &Record, conclusion: &Conclusion, explanation: Option<&Explanation>) -> PageData {
    let sheet = Sheet::new(record, conclusion);
    let sheet = match explanation {
        Some(explanation) => sheet.explained(record, explanation),
        None => sheet,
    };
    let (header, design) = (&record.header, &record.header.plan.design);
    let series = analysis::series(record);
    let mut left_out = unfinished(record);
    left_out.extend(undrawn(conclusion));
    let parts = sheet.parts.iter();
    PageData {
        page_version: PAGE_VERSION,
        title: sheet.title.clone(),
        experiment: header.plan.name.clone(),
        created: header.created.clone(),
        proofload: header.proofload.clone(),
        answer: answer::sentence(record, conclusion, &sheet),
        state: answer::state(record, conclusion),
        verdicts: verdict::verdicts(conclusion, &sheet, &series, &mut left_out),
        margin: design.margin,
        effects: verdict::effects(conclusion, &sheet),
        findings: verdict::findings(conclusion, &sheet, &mut left_out),
        explained_by: sheet.explained_by.clone(),
        variants: variants::variants(record, conclusion),
        figures: variants::table("Figures of the variants", &sheet.columns, 1, &sheet.rows),
        parts: parts.map(|part| variants::table(&part.heading, &part.columns, 2, &part.rows)).collect(),
        series: series::by_block(&series, &mut left_out),
        latencies: latency::curves(record),
        interactions: series::interactions(record, conclusion, &series),
        time_lines: time_line::time_lines(record, &mut left_out),
        errors: variants::errors(record, conclusion, &mut left_out),
        why: sheet.why.as_ref().map(variants::why),
        method: sheet.method.clone(),
        assumptions: sheet.assumptions.iter().map(assumption).collect(),
        place: sheet.place.clone(),
        next: sheet.next.clone(),
        plan: plan_text(record, &mut left_out),
        command: command::given(header),
        repeat: command::again(header),
        left_out,
    }
}

fn assumption(of: &analysis::Assumption) -> Assumption {
    let standing = match of.standing {
        analysis::Standing::Doubtful => "doubtful",
        analysis::Standing::Unchecked => "unchecked",
        analysis::Standing::Supported => "supported",
    };
    Assumption { standing: standing.to_owned(), text: of.statement.clone(), evidence: of.evidence.clone() }
}

/// Blocks that broke off: they are in no figure.
fn unfinished(record: &Record) -> Vec<String> {
    let blocks = record.blocks.iter().filter(|block| block.number > 0 && block.seconds.is_none());
    let sentence = |block: &record::Block| format!("block {} has no end: it is in no figure", block.number);
    blocks.map(sentence).take(bounds::DRAWN_MAX).collect()
}

/// Variants without curves and time lines.
fn undrawn(conclusion: &Conclusion) -> Option<String> {
    let variants = conclusion.variants.len();
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
