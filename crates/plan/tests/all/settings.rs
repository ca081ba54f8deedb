//! Flags as settings: merged before the file is resolved, and checked like its keys.

use std::path::Path;

use proofload_plan::{FlagSetting, Metric, Overrides, Plan, Problem, parse_with};

const FILE: &str = r#"
name = "x"
[services.app]
command = ["node", "a.js"]
[factors.mode]
a = { app.env.MODE = "a", load.rate = 100 }
b = { app.env.MODE = "b", load.rate = 200 }
[design]
metric = "p99"
pooled = true
[gate]
p99 = "< 50ms"
"#;

fn read(overrides: &Overrides) -> Result<Plan, Vec<Problem>> {
    parse_with(FILE, Path::new("/"), overrides, None)
}

fn flags(settings: &[FlagSetting]) -> Overrides {
    Overrides {
        settings: settings.to_vec(),
        ..Overrides::default()
    }
}

#[test]
fn a_flag_replaces_or_extends_the_file() {
    let plan = read(&flags(&[
        FlagSetting::new(&["design", "budget"], "2m", "--budget 2m"),
        FlagSetting::new(&["gate", "p99"], "< 20ms", "--limit 'p99 < 20ms'").added(),
        FlagSetting::new(&["gate", "failed"], "< 1%", "--limit 'failed < 1%'").added(),
    ]))
    .unwrap();
    assert_eq!(plan.design.budget.as_secs(), 120);
    let limits = plan.gate.iter();
    let limits: Vec<(String, Option<u32>)> = limits
        .map(|entry| (entry.limit.to_string(), entry.line))
        .collect();
    // Only a limit of the file has a line.
    let expected = [
        ("p99 < 50ms", Some(12)),
        ("p99 < 20ms", None),
        ("failed < 1%", None),
    ];
    assert_eq!(
        limits,
        expected.map(|(limit, line)| (limit.to_owned(), line))
    );
}

#[test]
fn a_problem_with_a_flag_is_placed_in_the_flag() {
    let problems = read(&flags(&[
        FlagSetting::new(&["design", "seed"], 3, "--seed 3"),
        FlagSetting::new(&["design", "budget"], "1s", "--budget 1s"),
        FlagSetting::new(
            &["gate", "throughput"],
            "> 5/s",
            "--limit 'throughput > 5/s'",
        )
        .added(),
    ]))
    .unwrap_err();
    let told: Vec<(&str, &str)> = problems
        .iter()
        .map(|problem| {
            let flag = problem.flag.as_deref().unwrap();
            (flag, &flag[problem.span.clone()])
        })
        .collect();
    assert_eq!(
        told,
        [
            ("--budget 1s", "1s"),
            ("--limit 'throughput > 5/s'", "--limit 'throughput > 5/s'")
        ]
    );
}

#[test]
fn removed_keys_do_not_apply() {
    let removed = [
        &["design", "metric"][..],
        &["design", "pooled"],
        &["factors", "*", "*", "load", "rate"],
        &["gate", "p99"],
    ];
    let overrides = Overrides {
        settings: vec![FlagSetting::new(
            &["design", "slo"],
            vec!["p99 < 50ms"],
            "--slo 'p99 < 50ms'",
        )],
        removed: removed.map(<[_]>::to_vec).to_vec(),
        requests: None,
    };
    let plan = read(&overrides).unwrap();
    assert_eq!(plan.design.metric, Metric::Capacity);
    assert!(plan.gate.is_empty() && !plan.design.pooled);
    let mut loads = plan.variants.iter().map(|variant| &variant.load);
    assert!(loads.all(|load| load.rate_per_s.is_none()));
}
