//! Commands that the file starts, for services and for data: names, arguments, variables, placeholders and
//! directories.
//!
//! It accesses the file system only to check whether directories exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::outside::found;
use crate::placeholder::{Placeholder, placeholders};
use crate::problem::TextSpan;
use crate::secret::{Field, is_in_secret, secret_flags};
use crate::shown::{clipped, is_bare};
use crate::site::Site;
use ::model::text::nearest;

/// Maximum length of a name used in placeholders.
const NAME_BYTES_MAX: usize = 40;

/// Known placeholders, and the hint for an unknown one. `None` suppresses the report.
#[derive(Clone, Copy)]
pub(crate) struct KnownPlaceholders<'k> {
    pub names: &'k [String],
    pub hint: &'k dyn Fn(&Site<'_>, &str) -> Option<String>,
}

/// Checks the name of a service or a piece of data. Returns whether it is valid.
pub(crate) fn judge_name(site: &mut Site<'_>, path: &[&str], name: &str, what: &str) -> bool {
    let can_be = name.len() <= NAME_BYTES_MAX && is_bare(name);
    if !can_be {
        let message = format!("`{}` is not a name for {what}", clipped(name));
        site.at_key(
            path,
            message,
            "expected 1 to 40 letters, digits, `-` and `_`",
        );
    }
    can_be
}

/// Checks that a command begins with a program.
pub(crate) fn judge_command(
    site: &mut Site<'_>,
    path: &[&str],
    command: &[String],
    known: Option<KnownPlaceholders<'_>>,
) {
    if command.first().is_some_and(String::is_empty) {
        let message = format!("`{}` has no program", path.join("."));
        site.report(
            site.tree.item_place(path, 0),
            message,
            "expected the name of a program",
        );
    }
    judge_words(site, path, command, known);
}

/// Checks a program's arguments. Without `known` their braces are literal.
pub(crate) fn judge_words(
    site: &mut Site<'_>,
    path: &[&str],
    words: &[String],
    known: Option<KnownPlaceholders<'_>>,
) {
    for (index, (text, flag)) in words.iter().zip(secret_flags(words)).enumerate() {
        let field = flag.as_deref().map_or(Field::Word, Field::Of);
        judge_text(
            site,
            (field, text),
            site.tree.item_place(path, index),
            known,
        );
    }
}

/// Checks a program's variables.
pub(crate) fn judge_env(
    site: &mut Site<'_>,
    path: &[&str],
    env: &BTreeMap<String, String>,
    known: Option<KnownPlaceholders<'_>>,
) {
    for (variable, value) in env {
        let at = [path, &[variable]].concat();
        if variable.is_empty() || variable.contains(['=', '\0']) {
            let message = format!("`{}` is not a name for a variable", clipped(variable));
            site.at_key(&at, message, "expected no `=`");
        }
        judge_text(
            site,
            (Field::Of(variable), value),
            site.tree.place(&at),
            known,
        );
    }
}

/// Checks an argument or a variable's value: a C string for the process, with our placeholders.
fn judge_text(
    site: &mut Site<'_>,
    (field, text): (Field<'_>, &str),
    span: TextSpan,
    known: Option<KnownPlaceholders<'_>>,
) {
    if text.contains('\0') {
        site.report(
            span.clone(),
            "a NUL character cannot be handed to a process",
            "contains NUL",
        );
    }
    let Some(known) = known else { return };
    for placeholder in placeholders(text) {
        if site.is_secret(placeholder.name, span.clone()) {
            continue;
        }
        let is_known = known.names.iter().any(|known| known == placeholder.name);
        let Some(hint) = (known.hint)(site, placeholder.name).filter(|_| !is_known) else {
            continue;
        };
        let written = &text[placeholder.range.clone()];
        let place = site.part_place(span.clone(), written);
        let message = unknown(field, text, &placeholder);
        site.report(place, message, "unknown placeholder")
            .hint(hint);
    }
}

/// Message for an unknown placeholder. Inside a secret, the name of the placeholder is part of the secret.
pub(crate) fn unknown(field: Field<'_>, text: &str, found: &Placeholder<'_>) -> String {
    match is_in_secret(field, text, &found.range) {
        true => "unknown placeholder in a secret".to_owned(),
        false => format!(
            "unknown placeholder `{}`",
            clipped(&text[found.range.clone()])
        ),
    }
}

/// Suggests the nearest known placeholder, or lists all. `open` and `close` are the delimiters.
pub(crate) fn known_hint(word: &str, known: &[String], (open, close): (&str, &str)) -> String {
    let plain = match open {
        "{" => "a plain brace is written `{{`",
        _ => "two plain braces need a blank between them",
    };
    if word.contains(|c: char| !c.is_ascii_alphanumeric() && !"._-{".contains(c)) {
        return plain.to_owned();
    }
    match nearest(word, known.iter().map(String::as_str)) {
        Some(known) => format!("did you mean `{open}{known}{close}`? ({plain})"),
        None => {
            let known: Vec<String> = known
                .iter()
                .map(|known| format!("`{open}{known}{close}`"))
                .collect();
            format!("known here: {}; {plain}", known.join(", "))
        }
    }
}

/// The absolute path of the working directory at `path`. Reports a missing directory.
pub(crate) fn directory(site: &mut Site<'_>, path: &[&str], written: &str) -> PathBuf {
    let wanted = site.source.directory.join(written);
    let found = match (
        found(&wanted, Path::is_dir, "it is a file"),
        site.source.against,
    ) {
        (Ok(here), Some(against)) => match against.moved(&here) {
            there if there.is_dir() => Ok(there),
            _ => Err(format!("it does not exist at {}", against.baseline())),
        },
        (found, _) => found,
    };
    found.unwrap_or_else(|reason| {
        let message = format!(
            "`{}`: `{}` is not a directory: {reason}",
            path.join("."),
            clipped(written)
        );
        site.at(path, message, "expected a directory")
            .hint(format!("looked for {}", wanted.display()));
        wanted
    })
}
