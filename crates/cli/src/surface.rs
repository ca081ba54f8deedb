//! The layout of the command line: the groups of its help, completions, man pages, schemas. This module does
//! not run commands.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory, FromArgMatches, ValueEnum};
use clap_complete::aot;

use crate::exit::{self, CliError};
use crate::explain::PAGES;
use crate::{Cli, print};

/// The visible commands by purpose. A longer list than a dozen would not be read.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Measure",
        &["compare", "run", "load", "capacity", "tune", "init"],
    ),
    ("Read", &["report", "history", "profile", "explain"]),
    ("CI", &["gate"]),
    ("Machine", &["doctor"]),
];

const EXAMPLES: &str = "\
Examples:
  proofload compare 'node old.js' 'node new.js'   which is faster, by how much
  proofload load http://127.0.0.1:3000/           one load test, as with wrk
  proofload run --against main --gate             this code against main's, with limits

Exit codes: 0 all well; 1 a limit of a gate fails; 2 usage; 3 a service failed; 4 the measurement is
invalid; 5 a limit is inconclusive; 6 Proofload could not do its own part; 130 interrupted.

Topics (proofload help TOPIC): validity";

/// The value name of flags with header fields.
const FIELD: &str = "NAME: VALUE";

/// Length from which an unexpected word may be a secret.
const VALUE_CHARS_MIN: usize = 16;
/// Length of the begin of such a word in a message, if it may be something else.
const BEGIN_CHARS: usize = 3;

/// Parses the arguments, with `help TOPIC` read as `explain TOPIC`.
pub fn parsed(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    if let Some(at) = topic(&words) {
        let all = words[at + 1] == "validity";
        words.splice(at..=at + usize::from(all), ["explain".into()]);
    }
    let has_open_field = words.iter().any(is_open_field);
    let matches = command().try_get_matches_from(words);
    matches
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| without_secrets(error, has_open_field))
}

/// Whether a word is a header field without its value, `Authorization:`. Without quotes, the shell splits a field,
/// and its value becomes an argument.
pub fn is_open_field(word: impl AsRef<OsStr>) -> bool {
    word.as_ref().as_encoded_bytes().ends_with(b":")
}

/// Removes apparent secrets of the arguments from an error of clap. After a header field without its value, each
/// unexpected word may be one.
pub fn without_secrets(mut error: clap::Error, has_open_field: bool) -> clap::Error {
    let of_field = error
        .get(ContextKind::InvalidArg)
        .is_some_and(|arg| arg.to_string().contains(FIELD));
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let is_value = |text: &str| {
        let is_long = text.chars().count() >= VALUE_CHARS_MIN && !text.contains('/');
        is_unknown && (has_open_field || is_long) && !text.starts_with('-')
    };
    let told = |text: &String| match is_value(text) {
        true if has_open_field => "…".to_owned(),
        true => text.chars().take(BEGIN_CHARS).collect::<String>() + "…",
        false => plan::quotable(text),
    };
    // A tip quotes the unknown word, and would itself be taken for a secret: "to pass 'WORD' as a value".
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let advice = |text: &str| match &unknown {
        Some(word) => text.replace(word.as_str(), &told(word)),
        None => text.to_owned(),
    };
    let context: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| {
            let value = match value {
                // All words except the first may be the value of a header field, which is not marked as such.
                ContextValue::String(text) if of_field && kind == ContextKind::InvalidValue => {
                    let mut words = text.split_whitespace();
                    let (first, more) = (
                        words.next().unwrap_or_default(),
                        words.next().map_or("", |_| " …"),
                    );
                    ContextValue::String(told(&first.to_owned()) + more)
                }
                ContextValue::String(text) => ContextValue::String(told(text)),
                ContextValue::Strings(texts) => {
                    ContextValue::Strings(texts.iter().map(told).collect())
                }
                ContextValue::StyledStrs(texts) => {
                    let told = texts
                        .iter()
                        .map(|text| StyledStr::from(advice(&text.to_string())));
                    ContextValue::StyledStrs(told.collect())
                }
                _ => return None,
            };
            Some((kind, value))
        })
        .collect();
    // Help has no such context, and keeps its colours.
    for (kind, value) in context {
        error.insert(kind, value);
    }
    error
}

pub fn command_at(words: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(word) = words
        .get(at)
        .and_then(|word| word.to_str())
        .filter(|word| word.starts_with('-'))
    {
        at += if word == "--records" { 2 } else { 1 };
    }
    at
}

/// The position of `help`, if it is about a topic: the checks, or a page.
fn topic(words: &[OsString]) -> Option<usize> {
    let at = command_at(words);
    let named = |word: &OsString| word == "validity" || PAGES.iter().any(|(name, _)| word == name);
    (words.get(at)? == "help" && named(words.get(at + 1)?)).then_some(at)
}

/// The command line with its help in groups.
pub fn command() -> Command {
    let command = Cli::command();
    let groups: String = GROUPS
        .iter()
        .map(|group| section(&command, group))
        .collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{options}}{{after-help}}"
    );
    command.help_template(template).after_help(topics())
}

/// The examples, and all available pages.
fn topics() -> String {
    PAGES
        .iter()
        .fold(EXAMPLES.to_owned(), |text, (name, _)| text + ", " + name)
}

fn section(command: &Command, (heading, names): &(&str, &[&str])) -> String {
    let line = |name: &&str| {
        let about = command.find_subcommand(name)?.get_about()?;
        Some(format!("  \x1b[1m{name:<9}\x1b[0m {about}\n"))
    };
    let lines: String = names.iter().filter_map(line).collect();
    format!("\x1b[1;4m{heading}:\x1b[0m\n{lines}\n")
}

/// Flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: aot::Shell,
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    complete(args.shell, &mut script);
    print::data(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

fn complete(shell: aot::Shell, script: &mut Vec<u8>) {
    aot::generate(shell, &mut Cli::command(), "proofload", script);
}

/// Flags of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder, created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn man(args: &ManArgs) -> anyhow::Result<u8> {
    write_man(&args.folder).map_err(|error| {
        CliError::new(
            exit::SELF,
            format!("{}: cannot be written: {error}", args.folder.display()),
        )
    })?;
    Ok(0)
}

fn write_man(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command().after_help(topics()), folder)
}

/// Flags of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Subject of the schema
    #[arg(long, value_enum, default_value_t = Of::Experiment)]
    of: Of,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// The experiment file, for editors
    Experiment,
    /// The output of `report --json`, for programs that read it
    Report,
}

pub fn schema(args: &SchemaArgs) -> anyhow::Result<u8> {
    let schema = match args.of {
        Of::Experiment => plan::schema(),
        Of::Report => report::schema(),
    };
    print::data(&model::text::json(schema))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_is_shown_stands_in_one_group_and_there_are_a_dozen() {
        let command = command();
        let shown: Vec<&str> = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .map(Command::get_name)
            .collect();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert!(grouped.len() <= 12 && shown.len() <= 12, "{shown:?}");
        for name in shown {
            assert_eq!(
                grouped.iter().filter(|other| **other == name).count(),
                1,
                "{name}"
            );
        }
        let help = command.clone().render_help().to_string();
        assert!(
            help.lines().all(|line| line.chars().count() <= 120),
            "{help}"
        );
        assert!(help.contains("\nMeasure:\n  compare "), "{help}");
    }

    #[test]
    fn completions_and_man_pages_have_the_commands() {
        let mut script = Vec::new();
        complete(aot::Shell::Fish, &mut script);
        assert!(String::from_utf8_lossy(&script).contains("dry-run"));
        let folder = tempfile::tempdir().expect("a folder");
        write_man(&folder.path().join("man1")).expect("it can be written");
        let page = fs::read_to_string(folder.path().join("man1/proofload-run.1")).expect("a page");
        assert!(page.contains("\\-\\-dry\\-run"), "{page}");
        assert!(folder.path().join("man1/proofload.1").exists());
    }

    #[test]
    fn help_knows_its_topics() {
        for name in PAGES.iter().map(|(name, _)| *name).chain(["validity"]) {
            let words = ["proofload", "--records", "a", "help", name].map(OsString::from);
            assert!(parsed(words).is_ok(), "{name}");
        }
        let error =
            parsed(["proofload", "help", "run"].map(OsString::from)).expect_err("that is clap's");
        assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp);
    }
}
