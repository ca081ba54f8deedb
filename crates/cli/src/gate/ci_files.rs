//! That the files people copy into their CI are YAML, and name commands and flags that there are.

use std::collections::BTreeSet;

use clap::CommandFactory;
use saphyr::{LoadableYamlNode, Yaml};

const ACTION: &str = include_str!("../../../../action.yml");
const PAGE: &str = include_str!("../../../../docs/ci.md");

/// What lies below these keys.
fn below<'a>(yaml: &'a Yaml<'_>, keys: &[&str]) -> &'a Yaml<'a> {
    keys.iter().fold(yaml, |yaml, key| yaml.as_mapping_get(key).unwrap_or_else(|| panic!("no {key}")))
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

/// Commands of a script as verb and flags; flags that are gathered for later are those of `run`.
fn commands(script: &str) -> Vec<(String, Vec<String>)> {
    let script = script.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let words = || line.split_whitespace().map(|word| word.trim_start_matches("flags+=("));
        let flags = |from: usize| {
            let of_ours =
                words().skip(from).take_while(|word| !["|", "||", "&&", ">", ">>", "-f"].contains(word));
            let flags = of_ours.filter(|word| word.starts_with("--"));
            flags.map(|word| word.trim_end_matches([')', ';']).to_owned()).collect::<Vec<_>>()
        };
        match words().position(|word| word == "proofload" || word.ends_with("/release/proofload")) {
            Some(at) => found.extend(words().nth(at + 1).map(|verb| (verb.to_owned(), flags(at + 2)))),
            None if line.contains("flags+=(") => found.push(("run".to_owned(), flags(0))),
            None => {}
        }
    }
    found
}

/// Verbs that were seen, once all of their flags are known ones.
fn check(scripts: &[&str]) -> BTreeSet<String> {
    let cli = crate::Cli::command();
    let mut verbs = BTreeSet::new();
    for (verb, flags) in scripts.iter().flat_map(|script| commands(script)) {
        let Some(command) = cli.find_subcommand(&verb) else { continue };
        let known: Vec<&str> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
        for flag in &flags {
            assert!(known.contains(&flag.trim_start_matches("--")), "proofload {verb} has no {flag}");
        }
        verbs.insert(verb);
    }
    verbs
}

#[test]
fn the_action_is_yaml_whose_commands_exist_and_into_whose_scripts_nothing_is_written_from_outside() {
    let action = parsed(ACTION);
    let mut found = Vec::new();
    texts(&action, &mut found);
    assert_eq!(check(&found).into_iter().collect::<Vec<_>>(), ["gate", "report", "run"]);
    let steps = steps(&action, &["runs", "steps"]).iter();
    for script in steps.filter_map(|step| step.as_mapping_get("run")?.as_str()) {
        assert!(!script.contains("${{"), "what it stands for would be run: {script}");
    }
    let inputs = below(&action, &["inputs"]);
    for used in ACTION.split("${{ inputs.").skip(1).filter_map(|rest| rest.split(' ').next()) {
        assert!(inputs.as_mapping_get(used).is_some(), "there is no input {used}");
    }
}

#[test]
fn the_pages_workflows_are_yaml_whose_commands_flags_and_inputs_exist() {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let [workflow, gitlab] = blocks.collect::<Vec<_>>()[..] else { panic!("two blocks of YAML") };
    let action = parsed(ACTION);
    let (inputs, workflow) = (below(&action, &["inputs"]), parsed(workflow));
    let is_ours = |step: &&Yaml<'_>| {
        step.as_mapping_get("uses").and_then(Yaml::as_str).is_some_and(|uses| uses.contains("/proofload@"))
    };
    let ours = steps(&workflow, &["jobs", "gate", "steps"]).iter().find(is_ours).expect("a step of ours");
    let with = below(ours, &["with"]).as_mapping().expect("inputs");
    for (key, _) in with {
        let key = key.as_str().expect("a key");
        assert!(inputs.as_mapping_get(key).is_some(), "the action has no input {key}");
    }
    let gitlab = parsed(gitlab);
    let allowed = &steps(&gitlab, &["performance", "allow_failure", "exit_codes"])[0];
    assert_eq!(allowed.as_integer(), Some(i64::from(crate::exit::OPEN)));
    let mut scripts = Vec::new();
    texts(&gitlab, &mut scripts);
    assert_eq!(check(&scripts).into_iter().collect::<Vec<_>>(), ["gate", "run"]);
}
