//! The section `[gate]` of the experiment file: its limits, each with its line, and what is wrong with them at its place.

use super::{Figure, GateEntry, Limit, LimitText, TextForm, is_measured};
use crate::check::clipped;
use crate::model::{Comparison, Design, Variant};
use crate::problem::{Problem, Span, did_you_mean};
use crate::site::Site;
use crate::tree::{Entry, Value};

/// What an entry may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub variants: &'a [Variant],
    pub comparisons: &'a [Comparison],
}

impl<'a> Known<'a> {
    /// Variants, their levels, and comparisons by their labels; levels that several variants have stand there as often.
    fn names(self) -> impl Iterator<Item = &'a str> + Clone {
        let variants = self.variants.iter().map(|variant| variant.name.as_str());
        let levels = self.variants.iter().flat_map(|variant| variant.levels.values().map(String::as_str));
        let labels = self.comparisons.iter().map(|comparison| comparison.label.as_str());
        variants.chain(levels).chain(labels)
    }
}

/// All limits of the file, in its order within each table.
pub(crate) fn entries(site: &mut Site<'_>, design: &Design, known: Known<'_>) -> Vec<GateEntry> {
    let tree = site.tree;
    let Some(gate) = tree.entry(&["gate"]).and_then(|entry| entry.node.table()) else { return Vec::new() };
    let mut found = Vec::new();
    let open_loop = design.rate.is_some();
    for entry in gate.entries.iter().filter(|entry| entry.key != "of") {
        found.extend(limits(site, entry, None, open_loop));
    }
    for named in gate.get("of").and_then(|of| of.node.table()).into_iter().flat_map(|of| &of.entries) {
        report_unknown_name(site, named, known);
        for entry in named.node.table().into_iter().flat_map(|table| &table.entries) {
            found.extend(limits(site, entry, Some(&named.key), open_loop));
        }
    }
    found
}

/// The limits of one key: one, or a list.
fn limits(site: &mut Site<'_>, entry: &Entry, of: Option<&str>, open_loop: bool) -> Vec<GateEntry> {
    // What is no figure was told as an unknown key.
    let Some(figure) = Figure::named(&entry.key) else { return Vec::new() };
    if !is_measured(figure, open_loop) && site.source.complete {
        report_never_measured(site, figure, entry.key_span.clone());
    }
    let texts: Vec<(&str, Span)> = match &entry.node.value {
        Value::String(text) => vec![(text, entry.node.span.clone())],
        Value::Array(items) => items
            .iter()
            .filter_map(|item| match &item.value {
                Value::String(text) => Some((text.as_str(), item.span.clone())),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() && site.source.complete {
        let message = format!("`gate.{}` names no limit", entry.key);
        site.report(Problem::new(entry.node.span.clone(), message, "expected at least one"));
    }
    let read =
        |(text, span): (&str, Span)| match LimitText::read(text).and_then(|text| Limit::new(figure, text)) {
            Ok(limit) => {
                let line = Some(line(site.source.text, &span));
                Some(GateEntry { limit, of: of.map(str::to_owned), line })
            }
            Err(error) => {
                let message = format!("`gate.{}`: `{}` {}", entry.key, clipped(text), error.reason);
                site.report(Problem::new(span, message, error.label).hint(error.hint));
                None
            }
        };
    texts.into_iter().filter_map(read).collect()
}

fn line(text: &str, span: &Span) -> u32 {
    let before = text.get(..span.start).unwrap_or(text);
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}

fn report_never_measured(site: &mut Site<'_>, figure: Figure, place: Span) {
    let (why, hint) = if figure.wants_more() {
        (
            "in open loop throughput is the rate that is given",
            "bound a response time, or leave out `design.rate`",
        )
    } else {
        (
            "in closed loop there are no response times worth a limit",
            "set `design.rate`, or a metric such as \"p99\", to have them measured in open loop",
        )
    };
    let message = format!("`gate.{}` is never measured: {why}", figure.name());
    site.report(Problem::new(place, message, "never measured").hint(hint));
}

fn report_unknown_name(site: &mut Site<'_>, named: &Entry, known: Known<'_>) {
    if !site.source.complete || known.names().any(|name| name == named.key) {
        return;
    }
    let message = format!("`gate.of`: there is no variant, level or comparison `{}`", clipped(&named.key));
    let variants = known.variants.iter().map(|variant| variant.name.as_str());
    let hint = match crate::problem::nearest(&named.key, known.names()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => did_you_mean(&named.key, "variants", variants),
    };
    site.report(Problem::new(named.key_span.clone(), message, "unknown name").hint(hint));
}
