//! The stored JSON Schema and the reference of the file match the code.

use std::path::{Path, PathBuf};

use serde_json::Value;

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

fn reference() -> String {
    std::fs::read_to_string(docs("experiment-file.md")).unwrap()
}

#[test]
fn the_kept_schema_is_the_one_in_use() {
    let path = docs("experiment.schema.json");
    let schema = proofload_plan::schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(
        kept == schema,
        "docs/experiment.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

/// The row of `key` must contain the key's default and its limits.
fn assert_row_tells(section: &str, key: &str, rule: &Value) {
    let row = section
        .lines()
        .find(|line| line.starts_with(&format!("| `{key}` |")));
    let row = row.unwrap_or_else(|| panic!("no row for `{key}`"));
    let number = if rule["anyOf"].is_array() {
        &rule["anyOf"][0]
    } else {
        rule
    };
    for limit in [&number["minimum"], &number["maximum"]]
        .into_iter()
        .filter(|limit| !limit.is_null())
    {
        assert!(
            row.contains(&limit.to_string()),
            "{row}: the limit is {limit}"
        );
    }
    if let Some(default) = rule.get("default").filter(|default| !default.is_null()) {
        assert!(
            row.contains(&format!("`{default}`")),
            "{row}: the default is {default}"
        );
    }
}

#[test]
fn the_reference_has_a_row_for_every_key_with_its_default_and_limits() {
    let (schema, reference) = (proofload_plan::schema(), reference());
    let of = |definition: &str| &schema["$defs"][definition];
    let sections = [
        ("Services", "ServiceTable Deployed ContainerTable Compose"),
        ("Factors", "LevelTable"),
        ("Load", "LoadTable RequestTable NetworkTable Tls"),
        ("Generators", "Generators Kubernetes"),
    ];
    let alone = [
        ("Prepare", "Prepare"),
        ("Against", "AgainstTable"),
        ("Expect", "ExpectTable"),
        ("Design", "DesignTable"),
        ("Measure", "MeasureTable"),
    ];
    let tables = sections.into_iter().chain(alone);
    let tables =
        tables.flat_map(|(title, names)| names.split(' ').map(move |name| (title, of(name))));
    for (title, table) in tables.chain([
        ("The file", &schema),
        ("Gate", &schema["properties"]["gate"]),
    ]) {
        let (_, section) = reference
            .split_once(&format!("\n## {title}\n"))
            .expect(title);
        let section = section.split("\n## ").next().unwrap();
        for (key, rule) in table["properties"].as_object().unwrap() {
            assert_row_tells(section, key, rule);
        }
    }
}

#[test]
fn every_reference_of_the_schema_leads_somewhere() {
    let schema = proofload_plan::schema();
    let text = schema.to_string();
    for part in text.split("\"#/$defs/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
}

#[test]
fn the_example_of_the_reference_is_what_it_says() {
    let reference = reference();
    let example = reference
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let plan = proofload_plan::parse(example, &docs("")).unwrap();
    assert_eq!(plan.comparisons.len(), 1);
    assert!(reference.contains(&format!("`{}`", plan.comparisons[0].label)));
}
