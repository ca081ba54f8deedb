//! Features of the experiment file in pairs and in random combinations: through the real plan, dispatcher,
//! analysis, report and gate, in a simulated environment. `rules.rs` contains the invariants of every run.

mod choices;
#[allow(dead_code, unused_imports)]
#[path = "../environment/mod.rs"]
mod environment;
mod kept;
mod rules;
mod secrets;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use choices::{CHOICES, Choice, FILES, experiment, parsed, title};
use plan::Plan;
use rand::RngExt;
use rand_pcg::Pcg64;
use serde_json::Value;
use world::{Weather, World};

/// Random combinations, about a third of which are valid.
const DRAWS: u64 = 1500;

/// A folder with the files that choices use.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// The plan of these choices, or the first problem of the file.
fn planned(choices: &[Choice], folder: &Path) -> Result<Plan, String> {
    plan::parse(&experiment(choices), folder).map_err(|problems| {
        let problem = problems.first().expect("a refusal has a reason");
        assert!(!problem.message.is_empty());
        problem.message.clone()
    })
}

/// Runs a plan and checks all rules. Panics if one is broken.
fn tried(plan: Plan, seed: u64, weather: Weather, with_page: bool) {
    let (writer, folder) = environment::begun(plan.clone(), seed);
    let mut world = World::new(&plan, seed, weather);
    let (record, _) = proofload_lab::run(writer, &mut world, &mut |_| {});
    assert!(
        world.inner.living.is_empty(),
        "{:?} lives on",
        world.inner.living
    );
    let printed = rules::printed(&record, with_page);
    rules::check(&record, &printed);
    let opened = record::open(&folder.path().join("record")).expect("it opens");
    assert!(
        opened == record,
        "the record on disk is not the one in memory"
    );
    assert!(
        rules::printed(&opened, with_page) == printed,
        "a record that is read back reports otherwise"
    );
}

/// Calls `attempt` for each item on all processors and panics with the failed ones, grouped by message.
fn all_hold<T: Sync>(items: &[T], name: impl Fn(&T) -> String + Sync, attempt: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed: Vec<(String, String)> = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| attempt(item))) {
                let text = panic.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                failed.push((text.unwrap_or_default(), name(item)));
            }
        }
        failed
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<(String, String)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("it is caught"))
            .collect()
    });
    let mut grouped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (message, name) in failed {
        let kind: String = message
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(60)
            .collect();
        grouped.entry(kind).or_default().push(format!(
            "{name}\n    {}",
            message.chars().take(1500).collect::<String>()
        ));
    }
    let mut report = String::new();
    for names in grouped.values() {
        _ = writeln!(report, "{} times, for example {}", names.len(), names[0]);
    }
    assert!(report.is_empty(), "{report}");
}

/// Every two choices of different axes, and each single one.
fn pairs() -> Vec<Vec<Choice>> {
    let mut pairs: Vec<Vec<Choice>> = CHOICES.iter().map(|choice| vec![*choice]).collect();
    for (index, one) in CHOICES.iter().enumerate() {
        let others = CHOICES[index + 1..]
            .iter()
            .filter(|other| other.axis != one.axis);
        pairs.extend(others.map(|other| vec![*one, *other]));
    }
    pairs
}

#[test]
fn every_pair_of_features_keeps_the_rules() {
    environment::write_to_memory();
    let folder = folder();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut accepted = Vec::new();
    for pair in pairs() {
        match planned(&pair, folder.path()) {
            Ok(plan) => accepted.push((pair, plan)),
            Err(message) => refused.entry(message).or_default().push(title(&pair)),
        }
    }
    let mut list = String::new();
    for (message, names) in &refused {
        _ = writeln!(list, "{message}\n    {}", names.join("\n    "));
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/combinations/refused.txt");
    if env::var_os("UPDATE_REFUSED").is_some() {
        fs::write(&kept, &list).expect("the list can be written");
    }
    let expected = fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        list == expected,
        "other pairs are refused than {} says; UPDATE_REFUSED=1 writes it",
        kept.display()
    );
    let numbered: Vec<(usize, (Vec<Choice>, Plan))> = accepted.into_iter().enumerate().collect();
    let weather = |index: &usize| Weather::ALL[index % Weather::ALL.len()];
    all_hold(
        &numbered,
        |(index, (pair, _))| format!("{} ({:?})", title(pair), weather(index)),
        |(index, (_, plan))| {
            tried(
                plan.clone(),
                *index as u64,
                Weather::Faster,
                index % 50 == 0,
            );
            tried(plan.clone(), *index as u64, weather(index), false);
        },
    );
}

#[test]
fn random_combinations_keep_the_rules() {
    environment::write_to_memory();
    let folder = folder();
    let axes: BTreeSet<&str> = CHOICES.iter().map(|choice| choice.axis).collect();
    let mut drawn = Vec::new();
    for seed in 0..DRAWS {
        let mut random = Pcg64::new(u128::from(seed), 51);
        let mut choices = Vec::new();
        for axis in &axes {
            let of: Vec<&Choice> = CHOICES
                .iter()
                .filter(|choice| choice.axis == *axis)
                .collect();
            if random.random_bool(0.4) {
                choices.push(*of[random.random_range(0..of.len())]);
            }
        }
        let weather = Weather::ALL[random.random_range(0..Weather::ALL.len())];
        if let Ok(plan) = planned(&choices, folder.path()) {
            drawn.push((seed, choices, weather, plan));
        }
    }
    assert!(
        drawn.len() > DRAWS as usize / 10,
        "{} of {DRAWS} are valid",
        drawn.len()
    );
    all_hold(
        &drawn,
        |(seed, choices, weather, _)| format!("{weather:?}, seed {seed}: {}", title(choices)),
        |(seed, _, weather, plan)| tried(plan.clone(), *seed, *weather, false),
    );
}

#[test]
fn every_key_of_the_schema_is_drawn() {
    let schema = plan::schema();
    let mut keys = BTreeSet::new();
    collect_keys(&schema, &schema, "", &mut keys);
    let mut drawn = BTreeSet::new();
    for text in CHOICES
        .iter()
        .map(|choice| choice.toml)
        .chain([choices::BASE])
    {
        let value = serde_json::to_value(parsed(text)).expect("JSON");
        collect_set(&value, &schema, &schema, "", &mut drawn);
    }
    let missing: Vec<&String> = keys.iter().filter(|key| !drawn.contains(*key)).collect();
    assert!(missing.is_empty(), "no choice sets {missing:?}");
}

fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    while let Some(reference) = schema["$ref"].as_str() {
        schema = &root["$defs"][reference.trim_start_matches("#/$defs/")];
    }
    match schema["anyOf"].as_array() {
        Some(branches) => branches
            .iter()
            .flat_map(|branch| resolved(branch, root))
            .collect(),
        None => vec![schema],
    }
}

/// The table that a key below factors belongs to.
fn canonical(path: &str) -> String {
    let path = path.strip_prefix("factors.*.*.").unwrap_or(path);
    path.replace("services.*.", "services.")
        .trim_start_matches("*.")
        .to_owned()
}

/// Paths of all keys, with `*` for names that are free.
fn collect_keys(schema: &Value, root: &Value, path: &str, keys: &mut BTreeSet<String>) {
    for schema in resolved(schema, root) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            // Levels repeat the keys of the file.
            if path != "factors" {
                keys.insert(canonical(&path));
                collect_keys(schema, root, &path, keys);
            }
        }
        if schema["additionalProperties"].is_object() {
            collect_keys(
                &schema["additionalProperties"],
                root,
                &format!("{path}.*"),
                keys,
            );
        }
        if schema["items"].is_object() {
            collect_keys(&schema["items"], root, path, keys);
        }
    }
}

/// Paths of the keys that a file sets.
fn collect_set(
    value: &Value,
    schema: &Value,
    root: &Value,
    path: &str,
    drawn: &mut BTreeSet<String>,
) {
    for schema in resolved(schema, root) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let known = schema["properties"].get(name);
            let part = if known.is_some() { name.as_str() } else { "*" };
            let path = if path.is_empty() {
                part.to_owned()
            } else {
                format!("{path}.{part}")
            };
            if known.is_some() {
                drawn.insert(canonical(&path));
            }
            let below = known.unwrap_or(&schema["additionalProperties"]);
            if below.is_object() {
                collect_set(value, below, root, &path, drawn);
            }
        }
        for item in value.as_array().into_iter().flatten() {
            collect_set(item, &schema["items"], root, path, drawn);
        }
    }
}
