//! Validates the tree of a file against its JSON Schema and reports all violations with their places.
//!
//! The permitted values come from the schema, the formats of strings from [`FORMS`]. The only key that is
//! named here is one that users [expect](HOST) and that does not exist. Invalid parts are dropped from the tree,
//! so that the rest can still be read and checked.
//!
//! serde cannot replace this check: it ends at the first error, knows no limits of numbers, and has no place
//! for errors in flattened tables and in tables of levels.

use ::model::text::nearest;
use serde_json::Value as Schema;

use crate::limit::{LimitText, SloText};
use crate::problem::{Problem, did_you_mean, listed};
use crate::rate::RateText;
use crate::secret::masked_words;
use crate::shown::{clipped, shown_key};
use crate::text_form::{
    Address, Bandwidth, ContentDigest, Delay, FieldText, Name, Percent, Period, RatesText,
    RequestPath, Space, TextForm, TextRendering, ThinkText,
};
use crate::tree::{TomlEntry, TomlNode, TomlTable, Value};
use crate::url::Url;

/// All forms, by their names in the schema.
static FORMS: [TextRendering; 16] = [
    Period::FORM,
    Percent::FORM,
    RateText::FORM,
    ContentDigest::FORM,
    Url::FORM,
    RequestPath::FORM,
    Name::FORM,
    Space::FORM,
    Bandwidth::FORM,
    Delay::FORM,
    LimitText::FORM,
    SloText::FORM,
    Address::FORM,
    RatesText::FORM,
    FieldText::FORM,
    ThinkText::FORM,
];

/// Reports everything in `tree` that `schema` does not permit, and drops it from the tree.
pub(crate) fn check(tree: &mut TomlNode, schema: &Schema) -> Vec<Problem> {
    let mut check = SchemaCheck {
        root: schema,
        problems: Vec::new(),
    };
    check.value(tree, schema, "");
    check.problems
}

struct SchemaCheck<'a> {
    root: &'a Schema,
    problems: Vec<Problem>,
}

impl<'a> SchemaCheck<'a> {
    /// Whether `node` may stay in the tree.
    fn value(&mut self, node: &mut TomlNode, wanted: &'a Schema, path: &str) -> bool {
        let (schema, form) = self.resolve(wanted);
        if let Some(branches) = schema["anyOf"].as_array() {
            return match branches
                .iter()
                .find(|branch| fits(node, self.resolve(branch).0))
            {
                Some(branch) => self.value(node, branch, path),
                None => self.wrong_type(node, wanted, path),
            };
        }
        if !fits(node, schema) {
            return self.wrong_type(node, wanted, path);
        }
        if let Some(choices) = choices(schema) {
            return self.choice(node, &choices, path);
        }
        self.count(node, schema, path);
        match &mut node.value {
            Value::Table(table) => self.table(table, schema, path),
            Value::Array(items) => self.items(items, schema, path),
            Value::Integer(..) | Value::Float(..) => return self.range(node, schema, path),
            Value::String(_) => return form.is_none_or(|form| self.form(node, form, path)),
            Value::Boolean(_) | Value::Unusable(_) => {}
        }
        true
    }

    /// Follows references. Also returns the text form that the last reference names.
    fn resolve(&self, mut schema: &'a Schema) -> (&'a Schema, Option<&'static TextRendering>) {
        let mut form = None;
        while let Some(reference) = schema["$ref"].as_str() {
            let name = reference.trim_start_matches("#/$defs/");
            form = FORMS.iter().find(|form| form.name == name);
            schema = &self.root["$defs"][name];
            debug_assert!(schema.is_object(), "the schema has no definition {name}");
        }
        (schema, form)
    }

    fn table(&mut self, table: &mut TomlTable, schema: &'a Schema, path: &str) {
        let properties = schema["properties"].as_object();
        let others = &schema["additionalProperties"];
        table.entries.retain_mut(|entry| {
            let known = properties.and_then(|properties| properties.get(&entry.key));
            match known.or_else(|| others.is_object().then_some(others)) {
                Some(schema) => self.value(
                    &mut entry.node,
                    schema,
                    &joined(path, &shown_key(&entry.key)),
                ),
                None if others == &Schema::Bool(false) => {
                    self.problems.push(unknown_key(entry, properties, path));
                    false
                }
                None => true,
            }
        });
    }

    fn items(&mut self, items: &mut Vec<TomlNode>, schema: &'a Schema, path: &str) {
        let mut index = 0;
        items.retain_mut(|item| {
            let keep = self.value(item, &schema["items"], &format!("{path}[{index}]"));
            index += 1;
            keep
        });
    }

    /// Checks required keys and minimum numbers of entries. Nothing is dropped because something else is
    /// missing.
    fn count(&mut self, node: &TomlNode, schema: &Schema, path: &str) {
        let empty = match &node.value {
            Value::Array(items) => items.is_empty() && schema["minItems"].as_u64() > Some(0),
            Value::Table(table) => {
                table.entries.is_empty() && schema["minProperties"].as_u64() > Some(0)
            }
            _ => false,
        };
        if empty {
            let message = format!("`{path}` is empty");
            self.problems.push(Problem::new(
                node.span.clone(),
                message,
                "expected at least one",
            ));
        }
        let Some(table) = node.table() else { return };
        let required = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Schema::as_str);
        for key in required.filter(|key| table.get(key).is_none()) {
            let message = format!("the file has no `{}`", joined(path, key));
            let missing = Problem::new(
                node.span.clone(),
                message,
                format!("expected a key `{key}`"),
            );
            let about = schema["properties"][key]["description"].as_str();
            let hint = about.map(|about| format!("{key}: {}", first_sentence(about)));
            self.problems.push(Problem { hint, ..missing });
        }
    }

    fn choice(&mut self, node: &TomlNode, choices: &[&str], path: &str) -> bool {
        let Value::String(word) = &node.value else {
            return true;
        };
        if choices.contains(&word.as_str()) {
            return true;
        }
        let message = format!("`{path}` cannot be `{}`", clipped(word));
        let label = format!("expected one of {}", listed(choices.iter().copied()));
        let meant = nearest(word, choices.iter().copied());
        let hint = meant.map(|choice| format!("did you mean `{choice}`?"));
        self.problems.push(Problem {
            hint,
            ..Problem::new(node.span.clone(), message, label)
        });
        false
    }

    fn form(&mut self, node: &TomlNode, form: &TextRendering, path: &str) -> bool {
        let Value::String(text) = &node.value else {
            return true;
        };
        let Err(reason) = (form.check)(text) else {
            return true;
        };
        let shown = clipped(text);
        let message = format!("`{path}`: `{shown}` {reason}");
        let label = format!("expected {}", form.wanted);
        self.problems
            .push(Problem::new(node.span.clone(), message, label).with_hint(form.hint));
        false
    }

    fn range(&mut self, node: &TomlNode, schema: &Schema, path: &str) -> bool {
        let (number, written) = match &node.value {
            Value::Integer(number, text) => (*number as f64, text.clone()),
            Value::Float(number, text) => (*number, text.clone()),
            _ => return true,
        };
        let [least, most, below] =
            ["minimum", "maximum", "exclusiveMinimum"].map(|key| &schema[key]);
        // NaN is above nothing.
        let limit = if below
            .as_f64()
            .is_some_and(|below| number.is_nan() || number <= below)
        {
            format!("above {below}")
        } else if least.as_f64().is_some_and(|least| number < least) {
            format!("at least {least}")
        } else if most.as_f64().is_some_and(|most| number > most) {
            format!("at most {most}")
        } else {
            return true;
        };
        let message = format!("`{path}` is {written}, {limit}");
        self.problems.push(Problem::new(
            node.span.clone(),
            message,
            format!("expected {limit}"),
        ));
        false
    }

    fn wrong_type(&mut self, node: &mut TomlNode, schema: &'a Schema, path: &str) -> bool {
        let wanted = self.wanted(schema);
        let subject = if path.is_empty() {
            "the file".to_owned()
        } else {
            format!("`{path}`")
        };
        let kind = match node.value {
            Value::Unusable(what) => what,
            _ => kind_of_type(kinds(node)[0]),
        };
        let message = format!("{subject} is {kind}");
        let problem = Problem::new(
            node.span.clone(),
            message,
            format!("expected {}", wanted.text()),
        );
        let hint = type_hint(node, &wanted).or_else(|| wanted.table.clone());
        self.problems.push(Problem { hint, ..problem });
        // An empty table keeps the name, so that no later check reports a missing level or service of that
        // name.
        let is_table = wanted.kinds == [TABLE];
        if is_table {
            node.value = Value::Table(TomlTable::default());
        }
        is_table
    }

    fn wanted(&self, schema: &'a Schema) -> WantedShape {
        let (schema, form) = self.resolve(schema);
        if let Some(form) = form {
            return WantedShape {
                kinds: vec![form.wanted.to_owned()],
                form: Some(form),
                table: None,
            };
        }
        let branches = schema["anyOf"].as_array().into_iter().flatten();
        let mut kinds: Vec<String> = branches
            .flat_map(|branch| self.wanted(branch).kinds)
            .collect();
        kinds.extend(choices(schema).map(|_| "a string".to_owned()));
        kinds.extend(types(schema).map(|name| kind_of_type(name).to_owned()));
        kinds.dedup();
        let about = schema["description"]
            .as_str()
            .filter(|_| schema["type"] == "object");
        let table = about.map(|about| format!("it holds {}", first_sentence(about)));
        WantedShape {
            kinds,
            form: None,
            table,
        }
    }
}

/// A key that services do not have, and the hint for it.
const HOST: (&str, &str) = (
    "host",
    "services start on this machine: to measure one on another machine, run Proofload there, or give its `url`",
);

fn unknown_key(
    entry: &TomlEntry,
    known: Option<&serde_json::Map<String, Schema>>,
    path: &str,
) -> Problem {
    let mut known: Vec<&str> = known
        .into_iter()
        .flat_map(|keys| keys.keys())
        .map(String::as_str)
        .collect();
    known.sort_unstable();
    let place = if path.is_empty() {
        String::new()
    } else {
        format!(" in `{path}`")
    };
    let message = format!("unknown key `{}`{place}", shown_key(&entry.key));
    let is_of_service = path
        .rsplit_once('.')
        .is_some_and(|(table, _)| table.ends_with("services"));
    let hint = match HOST {
        (host, hint) if is_of_service && entry.key == host => hint.to_owned(),
        _ => did_you_mean(&entry.key, "known keys", known.iter().copied()),
    };
    Problem::new(entry.key_span.clone(), message, "unknown key").with_hint(hint)
}

/// Values that a place in the file accepts.
struct WantedShape {
    /// Accepted kinds, for messages: "an integer", "a list".
    kinds: Vec<String>,
    form: Option<&'static TextRendering>,
    /// Description of the table, if it is one.
    table: Option<String>,
}

impl WantedShape {
    /// "an integer or a list".
    fn text(&self) -> String {
        match self.kinds.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            only => only.concat(),
        }
    }
}

/// Words of a schema that is a choice among words: an `enum`, a `const`, or several of them with
/// descriptions.
fn choices(schema: &Schema) -> Option<Vec<&str>> {
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Schema::as_str).collect();
    }
    let branches = schema["oneOf"]
        .as_array()?
        .iter()
        .map(choices)
        .collect::<Option<Vec<_>>>()?;
    Some(branches.into_iter().flatten().collect())
}

/// The `type` of a schema, a word or a list of words.
fn types(schema: &Schema) -> impl Iterator<Item = &str> {
    let one = schema["type"].as_str();
    one.into_iter().chain(
        schema["type"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Schema::as_str),
    )
}

fn fits(node: &TomlNode, schema: &Schema) -> bool {
    // A schema for a choice among words has no `type`.
    if choices(schema).is_some() {
        return matches!(node.value, Value::String(_));
    }
    let kinds = kinds(node);
    types(schema).next().is_none() || types(schema).any(|name| kinds.contains(&name))
}

/// Names of a value's types in a schema.
fn kinds(node: &TomlNode) -> &'static [&'static str] {
    match node.value {
        Value::String(_) => &["string"],
        Value::Integer(..) => &["integer", "number"],
        Value::Float(..) => &["number"],
        Value::Boolean(_) => &["boolean"],
        Value::Unusable(_) => &[],
        Value::Array(_) => &["array"],
        Value::Table(_) => &["object"],
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Likely unit of a plain number, by the expected form.
const UNITS: [(&str, &str); 5] = [
    ("Duration", "s"),
    ("Percent", "%"),
    ("Space", "MB"),
    ("Bandwidth", "mbit"),
    ("Delay", "ms"),
];
const TABLE: &str = "a table";
const LIMIT: &str = LimitText::FORM.wanted;
/// The first sentence of a description, in lower case and without full stop, to follow a colon.
fn first_sentence(description: &str) -> String {
    let sentence = description
        .split(". ")
        .next()
        .unwrap_or_default()
        .trim_end_matches('.');
    let mut letters = sentence.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

fn kind_of_type(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "a list",
        _ => TABLE,
    }
}

/// The correct notation of the value, if it can be derived.
fn type_hint(node: &TomlNode, wanted: &WantedShape) -> Option<String> {
    let wants = |kind: &str| wanted.kinds.iter().any(|one| one == kind);
    let unit = wanted
        .form
        .and_then(|form| UNITS.iter().find(|(name, _)| *name == form.name));
    Some(match (&node.value, unit) {
        (Value::String(text), _) if wants("an integer") && text.parse::<i64>().is_ok() => {
            format!("without quotes: {text}")
        }
        (Value::String(text), _) if wants("a list") => {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let words: Vec<String> = masked_words(&words)
                .iter()
                .map(|word| clipped(word))
                .collect();
            format!("a list stands in brackets: {words:?}")
        }
        (Value::Integer(_, number), Some((_, unit))) => {
            format!("with its unit, in quotes: \"{number}{unit}\"")
        }
        (Value::Integer(..), None) if wants(LIMIT) => {
            "with its relation and its unit, in quotes: \"< 50ms\" or \"> -3%\"".to_owned()
        }
        (Value::Integer(_, number), None) if wants("a string") => {
            format!("in quotes: \"{number}\"")
        }
        // `p99.9 = …` without quotes is a table `p99`.
        (Value::Table(table), _) if wants(LIMIT) && table.get("9").is_some() => {
            "a key with a dot in it stands in quotes: \"p99.9\" = \"< 80ms\"".to_owned()
        }
        _ => return None,
    })
}
