//! Secrets in texts: values of placeholders, which come from the environment or a file, and typed values that
//! look like secrets. Finds them, and replaces them by marks.
//!
//! ```text
//! {env.TOKEN}, {file.token.txt}   ─► resolved when a service starts or a request is sent, stored as written
//! Authorization: Bearer abc       ─► used as typed, stored as `Authorization: Bearer [secret-3f9a1b2c4d5e]`
//! ```
//! A mark is a hash under a key of this machine's user. Equal values have equal marks on this machine, and a
//! record does not permit guessing by trial. This module reads environment variables, files that placeholders
//! name, and the key. It does not know the types of a plan.

mod escapes;
mod forms;
mod key;
mod names;
mod parts;
mod sought;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::forms::forms;
use self::parts::loose_parts;
use self::sought::{Hidden, SOUGHT_BYTES_MIN, Sought};
use crate::outside::read_text;
use crate::placeholder::{Placeholder, placeholders, spliced, template_placeholders};

pub use self::names::is_secret_name;
pub(crate) use self::parts::secret_parts;
pub(crate) use self::words::{secret_flags, visit_words};

/// A name whose value is a secret after an optional authorization scheme.
const ANY_SECRET: &str = "AUTHORIZATION";
/// A unique value that is inserted to find out whether a place is in a secret.
const PROBE: &str = "Pr0bedPr0bedPr0bed";
/// Prefixes of placeholders for secrets.
const ENV: &str = "env.";
const FILE: &str = "file.";
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Prefix of a mark.
const MARK: &str = "[secret-";

/// Kind of a text, which determines how it is scanned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field<'a> {
    /// The value of a variable, a flag or a header field of this name.
    Of(&'a str),
    /// A word of a command, which may be a shell command line.
    Word,
    /// A path or a body, which no shell interprets.
    Sent,
    /// A configuration file, whose placeholders have double braces.
    Template,
    Text,
}

impl<'a> Field<'a> {
    fn named(name: Option<&'a str>) -> Field<'a> {
        name.map_or(Field::Text, Field::Of)
    }
}

/// Called with each text that may contain secrets, and its field.
pub(crate) type TextVisit<'v> = &'v mut dyn FnMut(Field<'_>, &mut String);

/// Ranges of a text with their replacements.
type TextChanges = Vec<(Range<usize>, String)>;

/// Secrets of an experiment. They are not stored, and `Debug` prints only names.
#[derive(Clone, Default, PartialEq)]
pub struct Secrets {
    /// Values of placeholders by name: `env.TOKEN`.
    values: BTreeMap<String, String>,
    /// All secrets, for searching.
    sought: Sought,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Secrets {
    /// Collects the secrets of the texts that `visit_texts` visits. Files are relative to `folder`.
    ///
    /// `structure` is the text that is stored beside these texts. A secret of letters that is also a word of
    /// it is only masked after its name.
    ///
    /// # Errors
    /// The reason for each secret that is not available, each once.
    pub(crate) fn collect(
        visit_texts: impl Fn(TextVisit<'_>),
        structure: &str,
        folder: &Path,
    ) -> Result<Secrets, Vec<String>> {
        let (mut values, mut found, mut problems) = (
            BTreeMap::new(),
            SecretCollection::default(),
            BTreeSet::new(),
        );
        let mut behind_names = BTreeSet::new();
        visit_texts(&mut |field, text| {
            found.typed(field, text);
            for Placeholder { name, range } in named(text) {
                match value(name, folder) {
                    Some(Ok(value)) => _ = values.insert(name.to_owned(), value),
                    Some(Err(reason)) => _ = problems.insert(reason),
                    None => {}
                }
                if !behind_names.contains(name) && is_in_secret(field, text, &range) {
                    behind_names.insert(name.to_owned());
                }
            }
        });
        if !problems.is_empty() {
            return Err(problems.into_iter().collect());
        }
        values
            .iter()
            .for_each(|(name, value)| found.placed(name, value, behind_names.contains(name)));
        found.leave_out(&open_words(visit_texts));
        Ok(Secrets {
            values,
            sought: Sought::new(found.hidden(&words_of(structure))),
        })
    }

    /// Adds the secrets of another plan.
    pub fn join(&mut self, other: &Secrets) {
        self.values.extend(other.values.clone());
        self.sought.join(&other.sought);
    }

    /// Values of the placeholders in these texts, by name.
    pub(crate) fn values_of<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> BTreeMap<String, String> {
        let names = texts
            .into_iter()
            .flat_map(named)
            .map(|found| found.name.to_owned());
        names
            .filter_map(|name| Some((name.clone(), self.values.get(&name)?.clone())))
            .collect()
    }

    /// Fills the placeholders of a request's text. With `doubled`, braces in values are doubled, because the
    /// text is parsed once more.
    pub fn fill_request(&self, text: &str, doubled: bool) -> String {
        let value = |found: Placeholder<'_>| {
            let value = self.values.get(found.name)?;
            let double = || value.replace('{', "{{").replace('}', "}}");
            Some((found.range, if doubled { double() } else { value.clone() }))
        };
        spliced(text, placeholders(text).into_iter().filter_map(value))
    }

    /// The text without known secrets.
    pub fn hide(&self, text: &str) -> String {
        let whole = self.sought.whole(text).map(str::to_owned);
        whole
            .or_else(|| self.sought.without(text))
            .unwrap_or_else(|| text.to_owned())
    }

    /// A complete text, of which nothing was cut off, without known secrets.
    pub(crate) fn hide_whole(&self, text: &str) -> String {
        self.sought
            .without_whole(text)
            .unwrap_or_else(|| text.to_owned())
    }

    /// The value without known secrets in its strings, for storing.
    pub fn hidden<T: Serialize + DeserializeOwned>(&self, kept: T) -> T {
        if self.sought.is_empty() {
            return kept;
        }
        let Ok(text) = serde_json::to_string(&kept) else {
            return kept;
        };
        let changes = self.changes(&text);
        if changes.is_empty() {
            return kept;
        }
        let with = |changes: &[&TextChanges]| {
            let mut all: TextChanges = changes.iter().copied().flatten().cloned().collect();
            all.sort_by_key(|(range, _)| range.start);
            serde_json::from_str(&spliced(&text, all.into_iter()))
        };
        let mut taken: Vec<&TextChanges> = changes.values().collect();
        if let Ok(hidden) = with(&taken) {
            return hidden;
        }
        // A secret that is also a word of the format cannot be replaced. All others are.
        let mut hidden = kept;
        taken.clear();
        for change in changes.values() {
            taken.push(change);
            match with(&taken) {
                Ok(without) => hidden = without,
                Err(_) => _ = taken.pop(),
            }
        }
        hidden
    }

    /// Changes of the strings in a JSON text, by string.
    fn changes<'t>(&self, text: &'t str) -> BTreeMap<&'t str, TextChanges> {
        let mut changes: BTreeMap<&str, TextChanges> = BTreeMap::new();
        for range in strings_of(text) {
            let written = &text[range.clone()];
            let plain = &written[1..written.len() - 1];
            let without = match plain.contains('\\') {
                false => self.sought.without(plain),
                true => serde_json::from_str::<String>(written)
                    .ok()
                    .and_then(|it| self.sought.without(&it)),
            };
            if let Some(without) = without {
                let instead = serde_json::Value::from(without).to_string();
                changes.entry(written).or_default().push((range, instead));
            }
        }
        changes
    }

    /// The value of this variable, field or flag without known secrets and without parts that look like
    /// secrets, see [`masked`]. Known secrets are replaced first: otherwise masking a part of one by its name
    /// would leave the rest.
    pub fn mask(&self, name: Option<&str>, text: &str) -> String {
        self.mask_field(Field::named(name), text)
    }

    pub(crate) fn mask_field(&self, field: Field<'_>, text: &str) -> String {
        mask_parts(field, &self.hide(text))
    }

    /// Masks the words of a command line.
    pub fn mask_words(&self, words: &[String]) -> Vec<String> {
        masked_words(&words.iter().map(|word| self.hide(word)).collect::<Vec<_>>())
    }
}

/// Collected secrets: the replacement, the value, and whether the value is searched for in other texts.
#[derive(Default)]
struct SecretCollection(Vec<(String, String, bool)>);

impl SecretCollection {
    /// Adds secrets that were typed in a text.
    fn typed(&mut self, field: Field<'_>, text: &str) {
        for range in secret_parts(field, text) {
            let typed = &text[range];
            // In a configuration file, words after a name may not be its value.
            let is_word = !typed.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
            let is_sought = !(is_word && matches!(field, Field::Template));
            let values = forms::values(typed)
                .into_iter()
                .chain(encoded_values(typed));
            self.0
                .extend(values.map(|value| (key::mark(&value), value, is_sought)));
        }
    }

    /// Adds the value of a placeholder and the secrets within it. If the placeholder follows the name of a
    /// secret, these are the same as for a typed value.
    fn placed(&mut self, name: &str, value: &str, is_behind_name: bool) {
        let mut parts = secret_parts(Field::Text, value);
        if is_behind_name {
            parts.extend(secret_parts(Field::Of(ANY_SECRET), value));
        }
        let parts = parts
            .into_iter()
            .flat_map(|part| forms::values(&value[part]));
        let all = forms::decoded(value).into_iter().chain(parts);
        self.0
            .extend(all.map(|value| (format!("{{{name}}}"), value, true)));
    }

    /// Removes typed words that also occur where they are not secrets. After their names they are masked
    /// nevertheless.
    fn leave_out(&mut self, words: &BTreeSet<String>) {
        self.0
            .retain(|(instead, value, _)| !(instead.starts_with(MARK) && words.contains(value)));
    }

    /// All secrets in all forms. Words of `structure` are not secrets elsewhere.
    fn hidden(self, structure: &BTreeSet<String>) -> Vec<Hidden> {
        let hidden = |(instead, value, is_sought): (String, String, bool)| {
            let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic());
            let is_sought =
                is_sought && !(MARK.contains(&value) || is_word && structure.contains(&value));
            forms(&value).into_iter().map(move |value| {
                let is_sought = is_sought && value.len() >= SOUGHT_BYTES_MIN;
                Hidden {
                    value,
                    instead: instead.clone(),
                    is_sought,
                }
            })
        };
        self.0.into_iter().flat_map(hidden).collect()
    }
}

/// Values whose names are encoded with them.
fn encoded_values(typed: &str) -> impl Iterator<Item = String> {
    let decoded = if typed.contains('%') {
        forms::decoded(typed)
    } else {
        BTreeSet::new()
    };
    decoded.into_iter().flat_map(|text| {
        let parts = secret_parts(Field::Sent, &text).into_iter();
        parts
            .flat_map(|part| forms::values(&text[part]))
            .collect::<Vec<_>>()
    })
}

/// Words of letters and digits.
fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .map(str::to_owned)
        .collect()
}

/// Lowercase words that are values of variables, header fields and flags without a secret's name:
/// `NODE_ENV=development`.
fn open_words(visit_texts: impl Fn(TextVisit<'_>)) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut add = |name: &str, value: &str| {
        let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_word && !is_secret_name(name) {
            words.insert(value.to_owned());
        }
    };
    visit_texts(&mut |field, text| match field {
        Field::Of(name) => add(name, text),
        Field::Word => {
            let set = text
                .split_whitespace()
                .filter_map(|word| word.split_once('='));
            set.for_each(|(name, value)| add(name, value.trim_matches(['"', '\''])));
        }
        Field::Sent | Field::Template | Field::Text => {}
    });
    words
}

/// Ranges of the strings in a JSON text, with their quotes.
fn strings_of(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut begin, mut is_escaped) = (Vec::new(), None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (byte, begin) {
            (b'"', Some(_)) if is_escaped => {}
            (b'"', Some(from)) => {
                found.push(from..at + 1);
                begin = None;
            }
            (b'"', None) => begin = Some(at),
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    found
}

/// Placeholders for secrets in a text.
fn named(text: &str) -> impl Iterator<Item = Placeholder<'_>> {
    let all = placeholders(text)
        .into_iter()
        .chain(template_placeholders(text));
    all.filter(|found| is_placeholder(found.name))
}

/// Whether a placeholder with this name is for a secret.
pub(crate) fn is_placeholder(name: &str) -> bool {
    name.starts_with(ENV) || name.starts_with(FILE)
}

/// Makes the paths of files in placeholders absolute, so that they are found from any folder.
pub(crate) fn anchored(text: &str, folder: &Path) -> String {
    let absolute = |found: Placeholder<'_>| {
        // Joining an absolute path drops the folder.
        let path = folder.join(found.name.strip_prefix(FILE)?);
        Some((found.range, format!("{{{FILE}{}}}", path.display())))
    };
    spliced(text, placeholders(text).into_iter().filter_map(absolute))
}

/// The value of a placeholder, or the reason why it is not available. `None` if the placeholder is not for a
/// secret. Files are relative to `folder`.
pub(crate) fn value(name: &str, folder: &Path) -> Option<Result<String, String>> {
    if let Some(variable) = name.strip_prefix(ENV) {
        return Some(match std::env::var(variable) {
            Ok(value) if value.is_empty() => Err(format!("the variable {variable} is empty")),
            Ok(value) => Ok(value),
            Err(std::env::VarError::NotPresent) => {
                Err(format!("the variable {variable} is not set"))
            }
            Err(error) => Err(format!("the variable {variable}: {error}")),
        });
    }
    let path = folder.join(name.strip_prefix(FILE)?);
    Some(read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display())))
}

/// The content of a file without the final line break.
fn read(path: &Path) -> io::Result<String> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| {
        line.strip_suffix('\r').unwrap_or(line)
    });
    match line {
        "" => Err(io::Error::other("it is empty")),
        line if line.contains('\0') => Err(io::Error::other("it contains NUL")),
        line => Ok(line.to_owned()),
    }
}

/// Masks the words of a command line.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    visit_words(&mut words, &mut |field, text| {
        *text = mask_parts(field, text)
    });
    words
}

/// Masks the value of this variable, field or flag. `None` is any text, which may contain variables, fields
/// and URLs.
pub fn masked(name: Option<&str>, text: &str) -> String {
    mask_parts(Field::named(name), text)
}

/// Masks typed text for quoting in a message. Secrets are recognized even with wrong syntax, as in
/// `Authorization Bearer abc123`.
pub fn quotable(text: &str) -> String {
    let masked = masked(None, text);
    let mark = |range: Range<usize>| (range.clone(), key::mark(&masked[range]));
    spliced(&masked, loose_parts(&masked).into_iter().map(mark))
}

/// Whether a text contains a mark, whose secret is unknown.
pub(crate) fn has_mark(text: &str) -> bool {
    text.split(MARK)
        .skip(1)
        .any(|rest| rest.split(']').next().is_some_and(key::is_hash))
}

/// Whether this range of a text overlaps a secret.
pub(crate) fn is_in_secret(field: Field<'_>, text: &str, place: &Range<usize>) -> bool {
    let probed = spliced(text, [(place.clone(), PROBE.to_owned())].into_iter());
    let probe = place.start..place.start + PROBE.len();
    secret_parts(field, &probed)
        .iter()
        .any(|part| part.start < probe.end && probe.start < part.end)
}

/// The text with a mark in place of each part that looks like a secret.
pub(crate) fn mask_parts(field: Field<'_>, text: &str) -> String {
    let mark = |range: Range<usize>| (range.clone(), key::mark(&text[range].replace("{{", "{")));
    spliced(text, secret_parts(field, text).into_iter().map(mark))
}

#[cfg(test)]
mod tests;
