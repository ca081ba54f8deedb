//! Subjects of limits, and names that refer to several things.

use std::path::Path;

use crate::limit::max_regression;
use crate::model::{GateEntry, LimitSubject};

/// Two factors, all compared with the first level of the first, and a copy.
const FILE: &str = r#"
name = "subjects"
[services.api]
command = ["node", "server.js"]
[factors.app]
json = {}
views = { load.path = "/views" }
[factors.mode]
old = {}
new = { api.env.MODE = "new" }
[design]
compare = "mode"
aa = true
[gate]
throughput = "> -3%"
cpu_per_request = ["< +5%", "< 900us"]
failed = "< 0.05%"
[gate.of.views]
throughput = "> -10%"
cpu_per_request = "< 2ms"
[gate.of."json · old"]
peak_memory = "< 90MB"
[gate.of."new vs old (json)"]
peak_memory = "< +1%"
"#;

#[test]
fn limits_are_about_candidates_unless_they_name_something_and_names_take_the_place_of_the_rest() {
    let plan = crate::parse(FILE, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let line = |entry: &GateEntry| {
        FILE.lines()
            .nth(entry.line.unwrap() as usize - 1)
            .unwrap()
            .to_owned()
    };
    let name = |subject| match subject {
        LimitSubject::Comparison(index) => plan.comparisons[index].label.clone(),
        LimitSubject::Variant(index) => plan.variants[index].name.clone(),
    };
    let told = |entry: &GateEntry| {
        assert!(
            line(entry).contains(&entry.limit.bound.to_string()),
            "{entry:?}: {}",
            line(entry)
        );
        let names: Vec<String> = plan
            .gated(entry, &plan.gate)
            .into_iter()
            .map(name)
            .collect();
        format!("{}: {}", entry.limit, names.join(", "))
    };
    let told: Vec<String> = plan.gate.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "throughput > -3%: new vs old (json)",
            "cpu_per_request < +5%: new vs old (json), new vs old (views)",
            "cpu_per_request < 900us: json · new",
            "failed < 0.05%: json · new, views · new",
            "throughput > -10%: new vs old (views)",
            "cpu_per_request < 2ms: views · old, views · new",
            "peak_memory < 90MB: json · old",
            "peak_memory < +1%: new vs old (json)",
        ]
    );
    let kept = serde_json::to_value(&plan.gate[4]).unwrap();
    assert_eq!(
        kept,
        serde_json::json!({ "limit": "throughput > -10%", "of": "views", "line": 19 })
    );
    assert_eq!(
        serde_json::from_value::<GateEntry>(kept).unwrap(),
        plan.gate[4]
    );
}

#[test]
fn a_maximal_regression_is_a_limit_for_each_metric_with_a_verdict() {
    let text = FILE.replace(
        "compare =",
        "metric = [\"throughput\", \"peak_memory\"]\ncompare =",
    );
    let plan = crate::parse(&text, Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let limits: Vec<String> = max_regression(plan.design.metrics(), 0.025)
        .map(|limit| limit.to_string())
        .collect();
    assert_eq!(limits, ["throughput > -2.5%", "peak_memory < +2.5%"]);
}

#[test]
fn names_of_several_levels_are_ambiguous() {
    let file = |name: &str| {
        format!(
            "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[factors.cache]\noff = {{ api.env.C = 0 }}\non = {{ api.env.C = 1 }}\n\
             [factors.gzip]\noff = {{ api.env.G = 0 }}\non = {{ api.env.G = 1 }}\n[gate.of.\"{name}\"]\nthroughput = \"> -20%\"\n"
        )
    };
    let problems = crate::parse(&file("on"), Path::new("/")).unwrap_err();
    assert_eq!(
        problems[0].message,
        "`gate.of`: `on` is a level of `cache` and of `gzip`"
    );
    let hint = "write [gate.of.\"cache=on\"] or [gate.of.\"gzip=on\"]";
    assert_eq!(problems[0].hint.as_deref(), Some(hint));
    let plan = crate::parse(&file("gzip=on"), Path::new("/")).unwrap();
    let about = plan.gated(&plan.gate[0], &plan.gate);
    let candidates = about.iter().map(|subject| match subject {
        LimitSubject::Comparison(index) => plan.comparisons[*index].candidate,
        LimitSubject::Variant(index) => *index,
    });
    assert!(!about.is_empty());
    assert!(
        candidates
            .into_iter()
            .all(|index| plan.variants[index].levels["gzip"] == "on")
    );
}

#[test]
fn ramps_have_one_kind_of_rate() {
    let file = |rate: &str| {
        format!(
            "name = \"x\"\n[services.api]\ncommand = [\"x\"]\n[design]\nmetric = \"p50\"\nrate = \"{rate}\"\n"
        )
    };
    for rate in ["100..60%", "60%..100"] {
        let text = file(rate);
        let problems = crate::parse(&text, Path::new("/")).unwrap_err();
        assert_eq!(
            &text[problems[0].span.clone()],
            format!("\"{rate}\""),
            "{problems:?}"
        );
        assert!(
            problems[0]
                .message
                .contains("to a share of saturation or back"),
            "{problems:?}"
        );
    }
    let is_refused = |rate: &str| {
        let problems = crate::parse(&file(rate), Path::new("/"))
            .err()
            .unwrap_or_default();
        problems
            .iter()
            .any(|problem| problem.message.contains("or back"))
    };
    assert!(!is_refused("100..600") && !is_refused("20%..60%"));
}

#[test]
fn numbers_of_variables_keep_their_text() {
    let text = "name = \"x\"\n[services.env]\ncommand = [\"x\"]\nport = 8_080\nenv = { A = 1.10, B = 1e3, C = 0x10, D = 1_000, E = true }\n\
                [factors.f]\na = { env.env.A = 1.50 }\nb = { env.env.A = 2 }\n";
    let plan = crate::parse(text, Path::new("/")).unwrap();
    let env = |index: usize| {
        let command = plan.variants[index].services[0].command().unwrap();
        command.env.values().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        [env(0), env(1)],
        ["1.50 1e3 0x10 1_000 true", "2 1e3 0x10 1_000 true"]
    );
}
