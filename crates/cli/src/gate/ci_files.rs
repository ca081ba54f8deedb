//! The files that users copy into their CI are valid YAML, and contain existing commands and flags.

use std::collections::BTreeSet;

use clap::CommandFactory;
use saphyr::{LoadableYamlNode, Yaml};

const PAGE: &str = include_str!("../../../../docs/ci.md");
const README: &str = include_str!("../../../../README.md");
const GATE: &str = include_str!("../../../../scripts/ci/gate");
const JUDGE: &str = include_str!("../../../../scripts/ci/judge");
/// The action, and the one that judges its record in another job.
const ACTIONS: [&str; 2] = [
    include_str!("../../../../action.yml"),
    include_str!("../../../../verdict/action.yml"),
];
const WORKFLOWS: [&str; 2] = [
    include_str!("../../../../.github/workflows/check.yml"),
    include_str!("../../../../.github/workflows/release.yml"),
];

/// The value below these keys.
fn below<'a>(yaml: &'a Yaml<'_>, keys: &[&str]) -> &'a Yaml<'a> {
    keys.iter().fold(yaml, |yaml, key| {
        yaml.as_mapping_get(key)
            .unwrap_or_else(|| panic!("no {key}"))
    })
}

fn steps<'a>(yaml: &'a Yaml<'_>, keys: &[&str]) -> &'a Vec<Yaml<'a>> {
    below(yaml, keys).as_sequence().expect("a list")
}

fn parsed(text: &str) -> Yaml<'_> {
    let mut documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

/// Every text in it that is a value.
fn texts<'a>(yaml: &'a Yaml<'_>, found: &mut Vec<&'a str>) {
    match yaml {
        Yaml::Sequence(items) => items.iter().for_each(|item| texts(item, found)),
        Yaml::Mapping(entries) => entries.iter().for_each(|(_, value)| texts(value, found)),
        value => found.extend(value.as_str()),
    }
}

/// Commands of a script as verb and flags. Flags that are collected in variables belong to `run`.
fn commands(script: &str) -> Vec<(String, Vec<String>)> {
    let script = script.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let words = || {
            line.split_whitespace()
                .map(|word| word.trim_start_matches("flags+=("))
        };
        let flags = |from: usize| {
            let of_ours = words()
                .skip(from)
                .take_while(|word| !["|", "||", "&&", ">", ">>", "-f"].contains(word));
            let flags = of_ours.filter(|word| word.starts_with("--") && *word != "--");
            flags
                .map(|word| word.trim_end_matches([')', ';']).to_owned())
                .collect::<Vec<_>>()
        };
        match words().position(|word| word == "proofload" || word.ends_with("/release/proofload")) {
            Some(at) => found.extend(
                words()
                    .nth(at + 1)
                    .map(|verb| (verb.to_owned(), flags(at + 2))),
            ),
            None if line.contains("flags+=(") => found.push(("run".to_owned(), flags(0))),
            None => {}
        }
    }
    found
}

/// Verbs of the scripts, after checking that all of their flags exist.
fn check(scripts: &[&str]) -> BTreeSet<String> {
    let cli = crate::Cli::command();
    let mut verbs = BTreeSet::new();
    for (verb, flags) in scripts.iter().flat_map(|script| commands(script)) {
        let Some(command) = cli.find_subcommand(&verb) else {
            continue;
        };
        let known: Vec<&str> = command
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .collect();
        for flag in &flags {
            assert!(
                known.contains(&flag.trim_start_matches("--")),
                "proofload {verb} has no {flag}"
            );
        }
        verbs.insert(verb);
    }
    verbs
}

#[test]
fn the_actions_run_commands_that_exist() {
    assert_eq!(
        check(&[GATE, JUDGE]).into_iter().collect::<Vec<_>>(),
        ["gate", "report", "run"]
    );
    for text in ACTIONS {
        let action = parsed(text);
        let steps = steps(&action, &["runs", "steps"]).iter();
        for script in steps.filter_map(|step| step.as_mapping_get("run")?.as_str()) {
            assert!(
                !script.contains("${{"),
                "what it stands for would be run: {script}"
            );
        }
        let inputs = below(&action, &["inputs"]);
        for used in text
            .split("inputs.")
            .skip(1)
            .filter_map(|rest| rest.split([' ', '}']).next())
        {
            assert!(
                inputs.as_mapping_get(used).is_some(),
                "there is no input {used}"
            );
        }
    }
}

/// Proofload's process does not have these variables either while services run, except for tokens, which
/// `{env.NAME}` may refer to.
#[test]
fn the_gate_hides_the_runners_files() {
    let is_token = |name: &&str| name.ends_with("TOKEN") || name.starts_with("CI_");
    for name in machine::CI_VARIABLES
        .split_whitespace()
        .filter(|name| !is_token(name))
    {
        let pattern = if name.ends_with('_') {
            format!(" {name}*")
        } else {
            format!(" {name} ")
        };
        assert!(
            GATE.replace(')', " ").contains(&pattern),
            "scripts/ci/gate passes {name} on"
        );
    }
}

#[test]
fn actions_of_others_are_pinned() {
    let used = ACTIONS
        .iter()
        .chain(&WORKFLOWS)
        .chain([&PAGE, &README])
        .flat_map(|text| text.lines());
    for line in used.filter(|line| line.trim_start_matches([' ', '-']).starts_with("uses: ")) {
        let (_, pin) = line.split_once('@').expect("a version");
        let (commit, version) = pin.split_once(" # v").unwrap_or((pin, ""));
        let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(
            is_commit && !version.is_empty() || pin == "COMMIT",
            "{line}"
        );
    }
}

/// The YAML blocks in the page: the workflow, the one for forks, and GitLab's.
fn blocks() -> [Yaml<'static>; 3] {
    let blocks = PAGE
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next());
    let blocks: Vec<Yaml<'_>> = blocks.map(parsed).collect();
    blocks
        .try_into()
        .unwrap_or_else(|found: Vec<_>| panic!("{} blocks of YAML", found.len()))
}

/// Checks that a job uses this action of ours with existing inputs.
fn check_inputs(job: &Yaml<'_>, action: usize) {
    let name = ["/proofload@", "/proofload/verdict@"][action];
    let is_ours = |step: &&Yaml<'_>| {
        step.as_mapping_get("uses")
            .and_then(Yaml::as_str)
            .is_some_and(|uses| uses.contains(name))
    };
    let ours = steps(job, &["steps"])
        .iter()
        .find(is_ours)
        .expect("a step of ours");
    let action = parsed(ACTIONS[action]);
    let inputs = below(&action, &["inputs"]);
    for (key, _) in below(ours, &["with"]).as_mapping().expect("inputs") {
        let key = key.as_str().expect("a key");
        assert!(
            inputs.as_mapping_get(key).is_some(),
            "the action has no input {key}"
        );
    }
}

#[test]
fn the_pages_workflows_use_inputs_that_exist() {
    let [workflow, forks, gitlab] = blocks();
    check_inputs(below(&workflow, &["jobs", "gate"]), 0);
    for job in [
        below(&workflow, &["jobs", "verdict"]),
        below(&forks, &["jobs", "comment"]),
    ] {
        check_inputs(job, 1);
        assert_eq!(
            steps(job, &["steps"]).len(),
            1,
            "it has none of the code that it judges"
        );
    }
    let rights = below(&workflow, &["jobs", "gate", "permissions"])
        .as_mapping()
        .expect("rights");
    let rights = rights.iter().map(|(of, to)| (of.as_str(), to.as_str()));
    assert_eq!(
        rights.collect::<Vec<_>>(),
        [(Some("contents"), Some("read"))]
    );
    let allowed = &steps(&gitlab, &["performance", "allow_failure", "exit_codes"])[0];
    assert_eq!(allowed.as_integer(), Some(i64::from(crate::exit::OPEN)));
    let mut scripts = Vec::new();
    texts(&gitlab, &mut scripts);
    assert_eq!(
        check(&scripts).into_iter().collect::<Vec<_>>(),
        ["gate", "run"]
    );
}
