//! Plans for the simulated environment.

use std::collections::BTreeMap;
use std::time::Duration;

use plan::{
    ArrivalProcess, Comparison, Contract, Cpus, Load, LoadSettings, LookRule, Metric, Plan,
    Preparation, Variant,
};
use serde_json::json;

/// A plan of one factor whose first level is the baseline.
pub fn plan(variants: usize) -> Plan {
    let names: Vec<String> = (0..variants)
        .map(|index| format!("level-{index}"))
        .collect();
    let variant = |name: &String| Variant {
        name: name.clone(),
        levels: BTreeMap::from([("setting".to_owned(), name.clone())]),
        services: Vec::new(),
        entry: "api".into(),
        load: Load {
            settings: LoadSettings {
                connections: 32,
                ..LoadSettings::default()
            },
            ..Load::default()
        },
        expect: Contract {
            status: vec![200],
            ..Contract::default()
        },
    };
    let comparison = |candidate: usize| {
        let label = format!("level-{candidate} vs level-0");
        Comparison {
            baseline: 0,
            candidate,
            label,
        }
    };
    let plan = json!({
        "name": "simulated",
        "question": "Does the setting matter?",
        "variants": names.iter().map(variant).collect::<Vec<_>>(),
        "factors": [{ "name": "setting", "levels": names }],
        "comparisons": (1..variants).map(comparison).collect::<Vec<_>>(),
        "prepare": [],
        "design": {
            "metric": Metric::Throughput,
            "co_primary": [],
            "cpus": Cpus::Auto,
            "margin": 0.03,
            "budget": Duration::from_secs(300),
            "looks": LookRule::EachBlock,
            "per_core": true,
            "drop_disturbed": true,
            "explain": false,
            "arrivals": ArrivalProcess::Poisson,
        },
    });
    serde_json::from_value(plan).expect("a plan")
}

/// The plan with data to be made first.
pub fn with_data(mut plan: Plan) -> Plan {
    plan.prepare.push(Preparation {
        name: "zips".into(),
        command: vec!["make".into(), "{output}".into()],
        directory: "/".into(),
        env: BTreeMap::new(),
        inputs: Vec::new(),
        space_bytes: None,
        timeout: Duration::from_secs(600),
        mark: None,
    });
    plan
}

/// The plan with a copy of its first variant as the last.
pub fn with_copy(mut plan: Plan) -> Plan {
    let mut copy = plan.variants[0].clone();
    copy.name.push_str(" (again)");
    plan.variants.push(copy);
    let candidate = plan.variants.len() - 1;
    plan.aa = Some(Comparison {
        baseline: 0,
        candidate,
        label: "level-0 vs itself".into(),
    });
    plan
}
