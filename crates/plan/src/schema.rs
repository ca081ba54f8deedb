//! The JSON Schema of the experiment file, generated from the types that read it.

use std::sync::LazyLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value};

use crate::file::ExperimentFile;

/// [`schema`], generated once.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// JSON Schema (draft 2020-12) of the experiment file, for editors. [`crate::parse`] itself validates against
/// it.
///
/// It describes the permitted values of each key. Only [`crate::parse`] checks relations between keys, such
/// as references to a level or a service.
pub fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.transforms = vec![Box::new(Tidy)]);
    settings
        .into_generator()
        .into_root_schema_for::<ExperimentFile>()
        .to_value()
}

/// Removes details of the Rust types that do not apply to the file.
#[derive(Debug, Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        // "uint32" adds nothing to the limits for an editor.
        object.remove("format");
        if let Some(Value::String(description)) = object.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        remove_null(object);
        remove_empty_defaults(object);
    }
}

/// TOML has no null: an optional key may be absent, but not null.
fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else {
        return;
    };
    branches.retain(|branch| branch["type"] != "null");
    if let [Value::Object(only)] = branches.as_mut_slice() {
        let only = std::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}

/// A required key has no default, and the default of a table follows from its keys.
fn remove_empty_defaults(schema: &mut Map<String, Value>) {
    let is_empty =
        |value: &Value| value.is_null() || value.is_object() || value == &Value::Array(Vec::new());
    if schema.get("default").is_some_and(is_empty) {
        schema.remove("default");
    }
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for key in required.iter().filter_map(Value::as_str) {
        if let Some(Value::Object(property)) = properties.get_mut(key) {
            property.remove("default");
        }
    }
}
