//! The stored schema matches the code, and the JSON of every kind of record matches the schema.

use analysis::conclude;
use plan::Metric;
use proofload_report::page::page_schema;
use proofload_report::{MeasuredRecord, Report, load_schema, schema, with_format};
use record::Record;
use serde_json::Value;

use crate::records::{as_json, factorial, in_open_loop, kept, slices};

#[test]
fn the_kept_schemas_are_those_in_use() {
    let all = [
        ("docs/report.schema.json", schema()),
        ("docs/load.schema.json", load_schema()),
        ("web/src/page.schema.json", page_schema()),
    ];
    for (name, schema) in all {
        let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            let text = serde_json::to_string_pretty(&schema).expect("plain JSON");
            std::fs::write(&path, text + "\n").expect("it can be written");
        }
        let kept: Value =
            serde_json::from_slice(&std::fs::read(path).expect("it is kept")).expect("JSON");
        assert!(
            kept == schema,
            "{name} is out of date: run this test with UPDATE_SCHEMA=1"
        );
    }
}

#[test]
fn the_json_of_every_kind_of_record_is_what_the_schema_says() {
    let mut broken = Record {
        ended: None,
        ..kept()
    };
    broken.blocks.truncate(2);
    broken.blocks[0].dropped = Some("steal 12 %".into());
    let mut failing = kept();
    for slice in slices(&mut failing) {
        (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
    }
    let (two, drifting) = (factorial(3, 0.0), factorial(2, 0.02));
    let (latency, tail) = (in_open_loop(Metric::P90), in_open_loop(Metric::P999));
    let schema = schema();
    for (number, record) in [kept(), two, drifting, latency, tail, broken, failing]
        .iter()
        .enumerate()
    {
        let explanation = (number < 2).then(crate::explained::full);
        let conclusion = conclude(record);
        let measured = MeasuredRecord::new(record, &conclusion, explanation.as_ref());
        let json = with_format(measured.data());
        let faults = faults(&json, &schema, &schema, "report");
        assert!(faults.is_empty(), "record {number}: {}", faults.join("\n"));
    }
    // Violations of the schema are found.
    let mut spoiled = with_format(as_json(&kept()));
    (spoiled["new"], spoiled["seed"]) = (1.into(), "11".into());
    spoiled["comparisons"][0]["estimate"]["low"] = Value::Null;
    let found = faults(&spoiled, &schema, &schema, "report").join("; ");
    for fault in [
        ".new: the schema does not have it",
        ".seed: ",
        ".comparisons[0].estimate",
    ] {
        assert!(
            found.contains(&format!("report{fault}")),
            "{fault}: {found}"
        );
    }
}

/// Keywords that are satisfied, or restrict nothing, or are checked elsewhere.
const KNOWN: &str = "$schema $defs title description format default type enum const minimum maximum minItems \
    maxItems properties additionalProperties patternProperties";

/// Violations of a schema, by the keywords that schemars generates for our types, and stricter than a
/// validator: a field that is not in the schema is an error here, though readers must accept it. An unknown
/// keyword fails the test. (Validator crates have thirty dependencies.)
fn faults(value: &Value, rule: &Value, root: &Value, at: &str) -> Vec<String> {
    let Some(rule) = rule.as_object() else {
        return Vec::new();
    };
    let fault = |what: String| vec![format!("{at}{what}")];
    let inner = |value: &Value, rule: &Value, step: String| {
        faults(value, rule, root, &format!("{at}{step}"))
    };
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let of_keyword = |(keyword, of): (&String, &Value)| match keyword.as_str() {
        "$ref" => {
            let pointer = of
                .as_str()
                .and_then(|name| name.strip_prefix('#'))
                .expect("a reference within");
            inner(
                value,
                root.pointer(pointer).expect("a definition"),
                String::new(),
            )
        }
        "type" if !list(of).iter().chain([of]).any(|name| is_of(value, name)) => {
            fault(format!(": {value} is no {of}"))
        }
        "enum" if !list(of).contains(value) => fault(format!(": {value} is none of {of}")),
        "const" if of != value => fault(format!(": {value} is not {of}")),
        "anyOf" | "oneOf" => {
            let each: Vec<_> = list(of)
                .iter()
                .map(|rule| inner(value, rule, String::new()))
                .collect();
            let any = each.iter().any(Vec::is_empty);
            if any {
                Vec::new()
            } else {
                fault(format!(": is none of these: {}", each.concat().join(", ")))
            }
        }
        "items" => {
            let items = list(value);
            items
                .iter()
                .enumerate()
                .flat_map(|(at, item)| inner(item, of, format!("[{at}]")))
                .collect()
        }
        "prefixItems" => {
            let pairs = list(value).into_iter().zip(list(of)).enumerate();
            pairs
                .flat_map(|(at, (item, of))| inner(&item, &of, format!("[{at}]")))
                .collect()
        }
        "required" => {
            let missing = list(of)
                .into_iter()
                .filter(|name| value.get(name.as_str().unwrap_or("")).is_none());
            missing
                .map(|name| format!("{at}.{}: is missing", name.as_str().unwrap_or("")))
                .collect()
        }
        known if KNOWN.split(' ').any(|keyword| keyword == known) => Vec::new(),
        other => panic!("{at}: the keyword {other} is not known here"),
    };
    let of_field = |(name, field): (&String, &Value)| {
        // Numbers as keys, which schemars describes as a pattern.
        let numbered = || rule.get("patternProperties")?.as_object()?.values().next();
        let others = || {
            rule.get("additionalProperties")
                .filter(|rule| **rule != Value::Bool(false))
        };
        let own = rule.get("properties").and_then(|all| all.get(name));
        match own.or_else(numbered).or_else(others) {
            Some(rule) => inner(field, rule, format!(".{name}")),
            None => vec![format!("{at}.{name}: the schema does not have it")],
        }
    };
    let tells_fields = ["properties", "additionalProperties", "patternProperties"];
    let tells_fields = tells_fields
        .iter()
        .any(|keyword| rule.contains_key(*keyword));
    let fields = value
        .as_object()
        .filter(|_| tells_fields)
        .into_iter()
        .flatten()
        .flat_map(of_field);
    rule.iter().flat_map(of_keyword).chain(fields).collect()
}

fn is_of(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
