//! Every call of proofload within a sentence of README and docs has names of commands and flags that there are. Must not: run them, as
//! tests/end_to_end/documented.rs does.

use std::fs;
use std::path::Path;

use clap::Command;

use crate::surface;

mod pages;

/// What of a call within a sentence is not known. Words in capitals stand for what a reader puts there.
fn unknown(command: &Command, code: &str) -> Option<String> {
    let mut command = command;
    for word in code.split_whitespace().skip(1).take_while(|word| *word != "--") {
        let flag = word.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or(flag));
        let knows = |flag: &str| {
            let names =
                command.get_arguments().filter_map(|argument| argument.get_long_and_visible_aliases());
            names.flatten().any(|name| name == flag)
        };
        match (flag, command.find_subcommand(word)) {
            (Some(flag), _) if !knows(flag) => return Some(format!("--{flag}")),
            (None, Some(below)) => command = below,
            (None, None) if command.has_subcommands() && word.chars().all(|it| it.is_ascii_lowercase()) => {
                // A command whose subcommands may be left out takes files as well.
                return command.is_subcommand_required_set().then(|| word.to_owned());
            }
            _ => {}
        }
    }
    None
}

#[test]
fn each_call_in_a_sentence_is_one_that_is_taken() {
    let mut command = surface::command();
    command.build();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, page) in pages::pages() {
        let (_, codes) = pages::shell_and_codes(&page);
        for code in codes.iter().filter(|code| code.starts_with("proofload ")) {
            seen += 1;
            wrong.extend(unknown(&command, code).map(|what| format!("{}: `{code}`: {what}", path.display())));
        }
    }
    assert!(seen > 40, "{seen} calls are few: how are they found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_target_of_make_and_each_script_in_the_pages_is_there() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let makefile = fs::read_to_string(root.join("Makefile")).expect("it is there");
    let is_target = |word: &str| {
        let of_pattern = word.split_once('-').map(|(begin, _)| format!("\n{begin}-%:"));
        makefile.contains(&format!("\n{word}:")) || of_pattern.is_some_and(|line| makefile.contains(&line))
    };
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, page) in pages::pages() {
        let (shell, codes) = pages::shell_and_codes(&page);
        for line in shell.iter().chain(&codes) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace().skip_while(|word| word.contains('=') || *word == "sudo");
            let known = match words.next() {
                Some("make") => words.all(is_target),
                Some(script) if ["scripts/", "bench/"].iter().any(|it| script.starts_with(it)) => {
                    root.join(script).exists()
                }
                _ => continue,
            };
            seen += 1;
            wrong.extend((!known).then(|| format!("{}: `{line}`", path.display())));
        }
    }
    assert!(seen > 30, "{seen} are few: how are they found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
