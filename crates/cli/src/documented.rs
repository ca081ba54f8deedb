//! Every call of proofload in README and docs is one that it takes: lines of `sh` blocks whole, those within sentences by their
//! names of commands and flags. Must not: run them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::surface;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The pages that people read, each with its path and text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(ROOT).join("docs")];
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "npm/README.md"]
        .map(|name| Path::new(ROOT).join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of pages").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|it| it == "md") => paths.push(path),
                _ => {}
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The lines of a page's blocks of shell, and the words in backticks outside of all blocks.
fn shell_and_codes(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut shell, mut codes) = (Vec::new(), Vec::new());
    for (place, part) in page.split("```").enumerate() {
        if place % 2 == 0 {
            codes.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
        } else if let Some(script) = part.strip_prefix("sh\n") {
            shell.extend(script.replace("\\\n", " ").lines().map(str::to_owned));
        }
    }
    (shell, codes)
}

/// The calls of proofload in a line of shell, as words.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_default();
    let commands = words.split(|word| ["|", "||", "&&", ";", "&", ">", ">>", "<"].contains(&word.as_str()));
    let call = |command: &[String]| {
        let is_before =
            |word: &&String| word.contains('=') || ["sudo", "npx", "time"].contains(&word.as_str());
        let call: Vec<String> = command.iter().skip_while(is_before).cloned().collect();
        call.first().is_some_and(|name| name.rsplit('/').next() == Some("proofload")).then_some(call)
    };
    commands.filter_map(call).collect()
}

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
fn each_call_in_the_pages_is_one_that_is_taken() {
    let mut command = surface::command();
    command.build();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, page) in pages() {
        let (shell, codes) = shell_and_codes(&page);
        for call in shell.iter().flat_map(|line| calls(line)) {
            seen += 1;
            if let Err(error) = command.clone().try_get_matches_from(&call) {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                wrong.push(format!("{}: {}: {first}", path.display(), call.join(" ")));
            }
        }
        for code in codes.iter().filter(|code| code.starts_with("proofload ")) {
            seen += 1;
            wrong.extend(unknown(&command, code).map(|what| format!("{}: `{code}`: {what}", path.display())));
        }
    }
    assert!(seen > 100, "{seen} calls are few: how are they found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
