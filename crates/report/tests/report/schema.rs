//! The kept schema is what the code says, and the JSON of every kind of record is what the schema says.

use std::path::Path;

use analysis::conclude;
use plan::Metric;
use proofload_report::{Measured, Report, schema};
use serde_json::{Map, Value};

use crate::records::{as_json, factorial, in_open_loop, kept};

#[test]
fn the_kept_schema_is_the_one_in_use() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).expect("plain JSON");
        std::fs::write(&path, text + "\n").expect("docs can be written");
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(path).expect("it is kept")).expect("it is JSON");
    assert!(kept == schema, "docs/report.schema.json is out of date: run this test with UPDATE_SCHEMA=1");
}

#[test]
fn the_json_of_every_kind_of_record_is_what_the_schema_says() {
    let mut broken = kept();
    broken.blocks.truncate(2);
    broken.ended = None;
    broken.blocks[0].dropped = Some("steal 12 %".into());
    let mut failing = kept();
    for slice in failing.blocks.iter_mut().flat_map(|b| &mut b.trials).flat_map(|t| &mut t.slices) {
        (slice.counts.successful, slice.counts.successful_in_window) = (0, 0);
    }
    let schema = schema();
    let records = [
        kept(),
        factorial(3, 0.0),
        factorial(2, 0.02),
        in_open_loop(Metric::P90),
        in_open_loop(Metric::P999),
        broken,
        failing,
    ];
    for (number, record) in records.iter().enumerate() {
        let explanation = (number < 2).then(crate::explained::full);
        let json = Measured::new(record, &conclude(record), explanation.as_ref()).data();
        let mut faults = Vec::new();
        check(&json, &schema, &schema, "report", &mut faults);
        assert!(faults.is_empty(), "record {number}: {}", faults.join("\n"));
    }
}

/// Makes a report wrong.
type Spoil = fn(&mut Value);

#[test]
fn what_is_not_as_the_schema_says_is_found() {
    let record = kept();
    let schema = schema();
    let spoiled = |spoil: Spoil| {
        let mut json = as_json(&record);
        spoil(&mut json);
        let mut faults = Vec::new();
        check(&json, &schema, &schema, "report", &mut faults);
        faults.join("; ")
    };
    let cases: [(Spoil, &str); 5] = [
        (|json| json["new"] = 1.into(), "report.new: the schema does not have it"),
        (|json| json["seed"] = "11".into(), "report.seed: "),
        (|json| json["comparisons"][0]["outcome"] = "won".into(), "report.comparisons[0].outcome: "),
        (|json| json["comparisons"][0]["estimate"]["low"] = Value::Null, "report.comparisons[0].estimate"),
        (|json| drop(json.as_object_mut().and_then(|all| all.remove("blocks"))), "report.blocks: is missing"),
    ];
    for (spoil, fault) in cases {
        let found = spoiled(spoil);
        assert!(found.contains(fault), "{fault}: {found}");
    }
}

/// Checks a value, of the keywords that schemars writes for our types, and stricter than a validator: a field that the schema does not
/// have is a fault here, though readers must bear it. A keyword that this does not know ends the test. (The crates that validate come
/// with thirty others.)
fn check(value: &Value, rule: &Value, root: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(rule) = rule.as_object() else {
        assert_eq!(rule, &Value::Bool(true), "{at}");
        return;
    };
    for (keyword, of) in rule {
        let mut fault = |what: String| faults.push(format!("{at}: {what}"));
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" | "required" => {}
            "$ref" => {
                let pointer =
                    of.as_str().and_then(|name| name.strip_prefix('#')).expect("a reference within");
                check(value, root.pointer(pointer).expect("a definition"), root, at, faults);
            }
            "type" if !is_of(value, of) => fault(format!("{value} is no {of}")),
            "enum" if !of.as_array().is_some_and(|all| all.contains(value)) => {
                fault(format!("{value} is none of {of}"))
            }
            "const" if of != value => fault(format!("{value} is not {of}")),
            "minimum" if value.is_number() && value.as_f64() < of.as_f64() => {
                fault(format!("{value} < {of}"))
            }
            "maximum" if value.is_number() && value.as_f64() > of.as_f64() => {
                fault(format!("{value} > {of}"))
            }
            "minItems"
                if value.as_array().is_some_and(|all| (all.len() as u64) < of.as_u64().unwrap_or(0)) =>
            {
                fault(format!("fewer than {of}"));
            }
            "maxItems" if value.as_array().is_some_and(|all| all.len() as u64 > of.as_u64().unwrap_or(0)) => {
                fault(format!("more than {of}"));
            }
            "type" | "enum" | "const" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
            "anyOf" | "oneOf" => any_of(value, of, root, at, faults),
            "items" | "prefixItems" => items(value, (keyword, of), root, at, faults),
            "properties" | "additionalProperties" | "patternProperties" => {}
            other => panic!("{at}: the keyword {other} is not known here"),
        }
    }
    if let Some(fields) = value.as_object() {
        fields_of(fields, rule, root, at, faults);
    }
}

fn is_of(value: &Value, types: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("a type's name") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    };
    types.as_array().map_or_else(|| is(types), |all| all.iter().any(is))
}

fn any_of(value: &Value, rules: &Value, root: &Value, at: &str, faults: &mut Vec<String>) {
    let mut all = Vec::new();
    for rule in rules.as_array().expect("a list") {
        let mut own = Vec::new();
        check(value, rule, root, at, &mut own);
        if own.is_empty() {
            return;
        }
        all.extend(own);
    }
    faults.push(format!("{at}: is none of these: {}", all.join(", ")));
}

fn items(value: &Value, (keyword, of): (&str, &Value), root: &Value, at: &str, faults: &mut Vec<String>) {
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let rule = if keyword == "items" { Some(of) } else { of.get(index) };
        if let Some(rule) = rule {
            check(item, rule, root, &format!("{at}[{index}]"), faults);
        }
    }
}

fn fields_of(
    fields: &Map<String, Value>,
    rule: &Map<String, Value>,
    root: &Value,
    at: &str,
    faults: &mut Vec<String>,
) {
    for name in rule.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            faults.push(format!("{at}.{name}: is missing"));
        }
    }
    let one_of_two = ["properties", "additionalProperties", "patternProperties"];
    if !one_of_two.iter().any(|keyword| rule.contains_key(*keyword)) {
        return;
    }
    for (name, field) in fields {
        let own = rule.get("properties").and_then(|all| all.get(name));
        // Numbers as keys, which schemars tells as a pattern.
        let numbered = || {
            let patterns = rule.get("patternProperties")?.as_object()?;
            let number = !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
            patterns.iter().find(|(pattern, _)| number && pattern.contains(r"\d")).map(|(_, rule)| rule)
        };
        let others = || rule.get("additionalProperties").filter(|rule| **rule != Value::Bool(false));
        match own.or_else(numbered).or_else(others) {
            Some(rule) => check(field, rule, root, &format!("{at}.{name}"), faults),
            None => faults.push(format!("{at}.{name}: the schema does not have it")),
        }
    }
}
