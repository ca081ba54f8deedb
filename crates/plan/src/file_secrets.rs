//! Secrets in the text of an experiment file: masks them in problems and in records, and reports marks of
//! secrets that a record does not contain.

use crate::problem::{Problem, TextSpan};
use crate::secret::{Field, Secrets, has_mark, masked, secret_flags, secret_parts};
use crate::tree::{TomlNode, Value};

/// Keys of texts that are sent.
const SENT: [&str; 4] = ["path", "url", "ready", "body"];

/// Reports marks in a file, which come from a record without the secrets.
pub(crate) fn lost(tree: &TomlNode) -> Vec<Problem> {
    // The question of a comparison contains the names of variants, which may be made from their commands.
    let question = tree.entry(&["question"]).map(|entry| &entry.node.span);
    let lost = leaves(tree)
        .into_iter()
        .filter(|leaf| has_mark(&leaf.text) && Some(&leaf.span) != question);
    let message = "a secret stood here, which the record does not have";
    let hint = "write {env.NAME} or {file.PATH}, and set the variable or make the file";
    let problem =
        |leaf: Leaf| Problem::new(leaf.span, message, "its value was not kept").with_hint(hint);
    lost.map(problem).collect()
}

/// Whether the text of an experiment file contains typed secrets.
pub fn has_secrets(text: &str) -> bool {
    leaves_of(text)
        .iter()
        .any(|leaf| !secret_parts(leaf.field(), &leaf.text).is_empty())
}

/// Masks the text of an experiment file or a flag for printing with problems. Each byte that looks like a
/// secret is replaced by a star.
pub fn veiled(text: &str) -> String {
    let mut veiled = text.as_bytes().to_vec();
    let leaves = leaves_of(text);
    let of_file = leaves
        .iter()
        .filter(|leaf| !secret_parts(leaf.field(), &leaf.text).is_empty());
    let of_file = of_file.map(|leaf| leaf.span.clone());
    // Comments, flags, and text that is not TOML because of the problem.
    for span in of_file.chain(secret_parts(Field::Text, text)) {
        veiled[span]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b'*');
    }
    String::from_utf8(veiled).unwrap_or_default()
}

impl Secrets {
    /// The text of an experiment file without secrets, also in comments.
    pub fn hide_in_file(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut from = 0;
        let mut leaves = leaves_of(text);
        leaves.sort_by_key(|leaf| leaf.span.start);
        let between = |text: &str| comments_masked(&self.hide_whole(text));
        for leaf in leaves {
            let masked = self.mask_field(leaf.field(), &leaf.text);
            if masked != leaf.text && leaf.span.start >= from {
                hidden += &between(&text[from..leaf.span.start]);
                hidden += &toml::Value::String(masked).to_string();
                from = leaf.span.end;
            }
        }
        hidden + &between(&text[from..])
    }
}

/// Masks the comments in a part of a file. A comment may contain a command line.
fn comments_masked(text: &str) -> String {
    let line = |line: &str| match line.find('#') {
        Some(at) => format!("{}{}", &line[..at], masked(None, &line[at..])),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// A string of a file, or a number that is the value of a variable or a header field.
struct Leaf {
    span: TextSpan,
    text: String,
    place: TextPlace,
}

/// Position of a text in the file.
#[derive(Clone)]
enum TextPlace {
    /// The value of a variable, field or flag with this name.
    Named(String),
    Listed,
    Sent,
    Elsewhere,
}

impl Leaf {
    fn field(&self) -> Field<'_> {
        match &self.place {
            TextPlace::Named(name) => Field::Of(name),
            TextPlace::Listed => Field::Word,
            TextPlace::Sent => Field::Sent,
            TextPlace::Elsewhere => Field::Text,
        }
    }
}

/// The leaves of a text. Empty if it is not TOML.
fn leaves_of(text: &str) -> Vec<Leaf> {
    TomlNode::parse(text)
        .map(|tree| leaves(&tree))
        .unwrap_or_default()
}

fn leaves(tree: &TomlNode) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(tree, &TextPlace::Elsewhere, "", &mut found);
    found
}

fn walk(node: &TomlNode, place: &TextPlace, within: &str, found: &mut Vec<Leaf>) {
    let leaf = |text: &String| Leaf {
        span: node.span.clone(),
        text: text.clone(),
        place: place.clone(),
    };
    match &node.value {
        Value::String(text) => found.push(leaf(text)),
        Value::Integer(_, text) | Value::Float(_, text) if matches!(place, TextPlace::Named(_)) => {
            found.push(leaf(text));
        }
        Value::Integer(..) | Value::Float(..) | Value::Boolean(_) | Value::Unusable(_) => {}
        Value::Array(items) => {
            let word = |item: &TomlNode| {
                if let Value::String(word) = &item.value {
                    word.clone()
                } else {
                    String::new()
                }
            };
            let words: Vec<String> = items.iter().map(word).collect();
            for (item, flag) in items.iter().zip(secret_flags(&words)) {
                let listed = flag.map_or(TextPlace::Listed, TextPlace::Named);
                let is_named = matches!(place, TextPlace::Named(_));
                walk(item, if is_named { place } else { &listed }, within, found);
            }
        }
        Value::Table(table) => {
            for entry in &table.entries {
                let place = match within {
                    "env" | "headers" => TextPlace::Named(entry.key.clone()),
                    _ if SENT.contains(&entry.key.as_str()) => TextPlace::Sent,
                    _ => TextPlace::Elsewhere,
                };
                walk(&entry.node, &place, &entry.key, found);
            }
        }
    }
}
