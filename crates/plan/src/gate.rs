//! The limits of the table `gate`: whether each can be measured, and whether its name refers to one variant,
//! level or comparison.

use std::collections::BTreeSet;
use std::slice;

use ::model::Pacing;
use ::model::text::nearest;

use crate::limit::{Limit, LimitFigure, expected};
use crate::model::{
    Comparison, GateEntry, Variant, is_level, is_measured, is_name_of, level_name, why_never,
};
use crate::problem::did_you_mean;
use crate::shown::clipped;
use crate::site::Site;
use crate::tree::{TomlEntry, TomlNode, Value};

/// All limits of the file, in its order within each table. `pacing` is as in [`Plan::measures`].
pub(crate) fn entries(
    site: &mut Site<'_>,
    pacing: Option<Pacing>,
    (variants, comparisons): (&[Variant], &[Comparison]),
) -> Vec<GateEntry> {
    let tree = site.tree;
    let mut keys: Vec<(Option<&str>, &TomlEntry)> = Vec::new();
    keys.extend(
        tree.entries(&["gate"])
            .iter()
            .filter(|entry| entry.key != "of")
            .map(|entry| (None, entry)),
    );
    for named in tree.entries(&["gate", "of"]) {
        report_unknown_name(site, named, variants, comparisons);
        let limits = tree.entries(&["gate", "of", &named.key]).iter();
        keys.extend(limits.map(|entry| (Some(named.key.as_str()), entry)));
    }
    let mut found = Vec::new();
    for (
        of,
        TomlEntry {
            key,
            key_span,
            node,
        },
    ) in keys
    {
        // A name that is no figure was reported as an unknown key.
        let Some(figure) = LimitFigure::named(key) else {
            continue;
        };
        if !is_measured(figure, pacing) && site.source.complete {
            let (why, hint) = why_never(figure, pacing);
            let message = format!("`gate.{key}` is never measured: {why}");
            site.report(key_span.clone(), message, "never measured")
                .hint(hint);
        }
        let items = if let Value::Array(items) = &node.value {
            items
        } else {
            slice::from_ref(node)
        };
        if items.is_empty() && site.source.complete {
            let message = format!("`gate.{key}` names no limit");
            site.report(node.span.clone(), message, "expected at least one");
        }
        for TomlNode { span, value } in items {
            let Value::String(text) = value else { continue };
            match Limit::read(figure, text) {
                Ok(limit) => {
                    found.push(GateEntry {
                        limit,
                        of: of.map(str::to_owned),
                        line: site.source.line(span),
                    });
                }
                Err((reason, hint)) => {
                    let message = format!("`gate.{key}`: `{}` {reason}", clipped(text));
                    let label = format!("expected {}", expected(figure).0);
                    site.report(span.clone(), message, &label).hint(hint);
                }
            }
        }
    }
    found
}

/// Reports names that are no variant, level or comparison.
fn report_unknown_name(
    site: &mut Site<'_>,
    named: &TomlEntry,
    known: &[Variant],
    comparisons: &[Comparison],
) {
    let variants = known.iter().map(|variant| variant.name.as_str());
    let levels = known
        .iter()
        .flat_map(|variant| variant.levels.values().map(String::as_str));
    let labels = comparisons
        .iter()
        .map(|comparison| comparison.label.as_str());
    let names = variants.clone().chain(levels).chain(labels);
    let is_level = known.iter().any(|variant| is_level(variant, &named.key));
    if !site.source.complete || is_level || names.clone().any(|name| name == named.key) {
        report_ambiguous_name(site, named, known);
        return;
    }
    let message = format!(
        "`gate.of`: there is no variant, level or comparison `{}`",
        clipped(&named.key)
    );
    let hint = match nearest(&named.key, names) {
        Some(name) => format!("did you mean `{name}`?"),
        None => did_you_mean(&named.key, "variants", variants),
    };
    site.report(named.key_span.clone(), message, "unknown name")
        .hint(hint);
}

/// Reports a name that refers to several things. It must refer to one variant, or the level of one factor.
fn report_ambiguous_name(site: &mut Site<'_>, named: &TomlEntry, known: &[Variant]) {
    let name = named.key.as_str();
    let levels: BTreeSet<(&str, &str)> = known
        .iter()
        .flat_map(|variant| {
            variant
                .levels
                .iter()
                .filter(|(factor, level)| is_name_of(factor, level, name))
        })
        .map(|(factor, level)| (factor.as_str(), level.as_str()))
        .collect();
    let has_level = |variant: &Variant| variant.levels.values().any(|level| level == name);
    let is_variant = known.iter().any(|variant| variant.name == name);
    // With one factor, the level is the variant.
    let is_both = is_variant
        && known
            .iter()
            .any(|variant| variant.name != name && has_level(variant));
    if !site.source.complete || levels.len() < 2 && !is_both {
        return;
    }
    let of: Vec<String> = levels
        .iter()
        .map(|(factor, _)| format!("`{factor}`"))
        .collect();
    let message = format!(
        "`gate.of`: `{}` is a level of {}",
        clipped(name),
        of.join(" and of ")
    );
    let spelled = levels
        .iter()
        .map(|(factor, level)| format!("[gate.of.\"{}\"]", level_name(factor, level)));
    let hint = format!("write {}", spelled.collect::<Vec<_>>().join(" or "));
    site.report(named.key_span.clone(), message, "which of them?")
        .hint(hint);
}

#[cfg(test)]
mod tests;
