//! Writes an experiment file from command-line flags. A run without a file uses the plan of this generated
//! file.
//!
//! It writes text and validates nothing: values are checked when the file is read. It records the flag of
//! each line, so that a problem can be reported at that flag instead of a line in a file that the user never
//! sees.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::slice;

use serde_json::Value as Schema;
use toml::Value;

use crate::factor::NAME_CHARS_MAX;
use crate::problem::{Problem, Refused};
use crate::schema::SCHEMA;
use crate::secret::{anchored, masked_words};
use crate::setting::FlagSetting;
use crate::shown::{fitting, is_bare};

/// Name of the only service of a draft.
pub const SERVICE: &str = "app";
/// The factor of a draft that compares.
const FACTOR: &str = "variant";
/// Set for identical variants, so that the file can contain both. No service reads it.
const COPY: &str = "PROOFLOAD_COPY";
/// Order of tables in the file. Other tables come last.
const ORDER: [&str; 6] = ["services", "factors", "load", "expect", "design", "gate"];

/// Unchecked values of command-line flags.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExperimentDraft {
    /// The command line, for the first lines of the file.
    pub made_by: String,
    /// The command line that runs the saved file in the same way.
    pub again: String,
    /// Name of the experiment.
    pub name: String,
    /// The question. `None` asks how the later variants compare with the first.
    pub question: Option<String>,
    /// Services that get the load, at least one. Further ones are compared with the first.
    pub variants: Vec<DraftVariant>,
    /// Keys of the file, each at most once.
    pub settings: Vec<FlagSetting>,
}

/// A service that gets the load.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftVariant {
    /// Name in reports. `None` derives it from the differences to the others.
    pub name: Option<String>,
    /// Source of the service.
    pub source: DraftSource,
    /// The command-line argument that it comes from, as typed.
    pub from: String,
}

/// Source of a service.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftSource {
    /// A command that is started. Created by [`DraftSource::command`].
    Command {
        /// Environment variables.
        env: Vec<(String, String)>,
        /// Program and arguments.
        words: Vec<String>,
    },
    /// A URL of a running service.
    Url(String),
    /// A container started from a local image. Created by [`DraftSource::image`].
    Image {
        /// Environment variables.
        env: Vec<(String, String)>,
        /// Name of the image.
        image: String,
        /// Arguments that replace the image's own.
        args: Vec<String>,
    },
    /// A Compose project that is started.
    Compose {
        /// The file, relative to the folder of the experiment file.
        file: String,
        /// The service in it that gets the requests.
        service: String,
        /// The port inside. `None` for the exposed one.
        port: Option<u16>,
    },
}

impl DraftSource {
    /// Whether the experiment starts it.
    fn is_started(&self) -> bool {
        match self {
            DraftSource::Command { .. }
            | DraftSource::Image { .. }
            | DraftSource::Compose { .. } => true,
            DraftSource::Url(_) => false,
        }
    }

    /// Whether it is started in a folder of this machine. The experiment file must name the folder if the
    /// file is elsewhere.
    pub fn has_folder(&self) -> bool {
        match self {
            DraftSource::Command { .. } => true,
            DraftSource::Image { .. } | DraftSource::Compose { .. } | DraftSource::Url(_) => false,
        }
    }
}

/// The text of an experiment file, and the origins of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFile {
    /// TOML with comments.
    pub text: String,
    /// Ranges of the text with the flag or argument of each, in order.
    origins: Vec<(Range<usize>, String)>,
}

impl ExperimentDraft {
    /// Indices of variants that equal an earlier one, with the earlier one's index. A comparison of the two
    /// is an A/A test.
    pub fn alike(&self) -> Vec<(usize, usize)> {
        let earlier = |later: usize| {
            self.variants[..later]
                .iter()
                .position(|variant| variant.source == self.variants[later].source)
        };
        (1..self.variants.len())
            .filter_map(|later| Some((earlier(later)?, later)))
            .collect()
    }

    /// Resolves files with secrets relative to this folder, independent of the location of the experiment
    /// file.
    #[must_use]
    pub fn anchored(mut self, folder: &Path) -> ExperimentDraft {
        let anchor = |text: &mut String| *text = anchored(text, folder);
        for setting in &mut self.settings {
            match &mut setting.value {
                Value::String(text) => anchor(text),
                Value::Array(values) => {
                    let texts = values.iter_mut().filter_map(|value| match value {
                        Value::String(text) => Some(text),
                        _ => None,
                    });
                    texts.for_each(anchor);
                }
                _ => {}
            }
        }
        for variant in &mut self.variants {
            match &mut variant.source {
                DraftSource::Command { env, words }
                | DraftSource::Image {
                    env, args: words, ..
                } => {
                    env.iter_mut()
                        .map(|(_, value)| value)
                        .chain(words)
                        .for_each(anchor);
                }
                DraftSource::Url(url) => anchor(url),
                DraftSource::Compose { .. } => {}
            }
        }
        self
    }

    /// Names of the variants.
    pub fn names(&self) -> Vec<String> {
        names(&self.variants)
    }

    /// Writes the file.
    pub fn write(&self) -> WrittenFile {
        let mut out = WrittenFile {
            text: String::new(),
            origins: Vec::new(),
        };
        let _ = writeln!(out.text, "# Made by: {}", one_line(&self.made_by));
        let _ = writeln!(out.text, "# The same again: {}", one_line(&self.again));
        let names = self.names();
        let _ = writeln!(out.text, "\nname = {}", shown(&self.name));
        if let Some(question) = self.question.clone().or_else(|| question(&names)) {
            let _ = writeln!(out.text, "question = {}", shown(&question));
        }
        let mut lines = self.services(&names);
        lines.extend(
            self.settings
                .iter()
                .map(|set| DraftLine::new(set.path.clone(), &set.value, &set.from)),
        );
        // Stable sort: keys keep their order within a table.
        lines.sort_by_key(|line| {
            let tables = line.path[..line.path.len() - 1].to_vec();
            let rank = tables
                .first()
                .map(|first| ORDER.iter().position(|table| table == first));
            (rank.map(|rank| rank.unwrap_or(ORDER.len())), tables)
        });
        let mut table: &[String] = &[];
        for DraftLine { path, value, from } in &lines {
            let Some((key, tables)) = path.split_last() else {
                continue;
            };
            if tables != table {
                let _ = writeln!(out.text, "\n[{}]", dotted(tables));
                if tables == ["factors", FACTOR] {
                    let _ = writeln!(
                        out.text,
                        "# A variant each; the others are compared with the first."
                    );
                }
                table = tables;
            }
            if let Some(about) = about(path) {
                let _ = writeln!(out.text, "# {about}");
            }
            let begin = out.text.len();
            let _ = writeln!(out.text, "{} = {value}", written_key(key));
            out.origins.push((begin..out.text.len(), from.clone()));
        }
        out
    }

    /// Splits settings: common ones go to the service, the others to one level for each variant.
    fn services(&self, names: &[String]) -> Vec<DraftLine> {
        let mut sets: Vec<Vec<(Vec<String>, Value)>> = self
            .variants
            .iter()
            .map(|variant| variant.source.keys())
            .collect();
        for (number, (earlier, later)) in self.alike().into_iter().enumerate() {
            let copies = [(earlier, 1), (later, number + 2)];
            let is_started = |index: usize| self.variants[index].source.is_started();
            for (index, copy) in copies.into_iter().filter(|(index, _)| is_started(*index)) {
                let key = vec!["env".to_owned(), COPY.to_owned()];
                sets[index].retain(|(path, _)| *path != key);
                sets[index].push((key, Value::String(copy.to_string())));
            }
        }
        let Some(first) = sets.first().cloned() else {
            return Vec::new();
        };
        let shared: Vec<_> = first
            .into_iter()
            .filter(|entry| sets.iter().all(|set| set.contains(entry)))
            .collect();
        let of_service =
            |path: &[String]| [&["services", SERVICE].map(str::to_owned)[..], path].concat();
        let in_service = |(path, value): &(Vec<String>, Value)| {
            DraftLine::new(of_service(path), value, &self.variants[0].from)
        };
        let mut lines: Vec<DraftLine> = shared.iter().map(in_service).collect();
        let levels = self
            .variants
            .iter()
            .zip(&sets)
            .zip(names)
            .filter(|_| self.variants.len() > 1);
        for ((variant, set), name) in levels {
            let own: BTreeMap<_, _> = set
                .iter()
                .filter(|entry| !shared.contains(entry))
                .cloned()
                .collect();
            let own = own
                .iter()
                .map(|(path, value)| format!("{SERVICE}.{} = {value}", dotted(path)));
            let level = match own.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "{}".to_owned(),
                own => format!("{{ {own} }}"),
            };
            let path = ["factors", FACTOR, name].map(str::to_owned);
            lines.push(DraftLine::new(path.to_vec(), level, &variant.from));
        }
        // A service without common settings must exist nevertheless.
        let has_any = |setting: &FlagSetting| setting.path.starts_with(&of_service(&[]));
        if shared.is_empty() && !self.settings.iter().any(has_any) {
            lines.push(DraftLine::new(of_service(&[]), "{}", ""));
        }
        lines
    }
}

/// A line of the file: the key with its tables, the formatted value, and its origin.
struct DraftLine {
    path: Vec<String>,
    value: String,
    from: String,
}

impl DraftLine {
    fn new(path: Vec<String>, value: impl ToString, from: &str) -> DraftLine {
        DraftLine {
            path,
            value: value.to_string(),
            from: from.to_owned(),
        }
    }
}

impl DraftSource {
    /// Keys that it sets in a service.
    fn keys(&self) -> Vec<(Vec<String>, Value)> {
        let key = |path: &[&str], value: Value| {
            (path.iter().map(|key| (*key).to_owned()).collect(), value)
        };
        let (env, mut keys) = match self {
            Self::Url(url) => (&[][..], vec![key(&["url"], url.as_str().into())]),
            Self::Command { env, words } => {
                (&env[..], vec![key(&["command"], words.clone().into())])
            }
            Self::Image { env, image, args } => {
                let args = Some(args).filter(|args| !args.is_empty());
                let args = args.map(|args| key(&["container", "args"], args.clone().into()));
                let image = key(&["container", "image"], image.as_str().into());
                (&env[..], std::iter::once(image).chain(args).collect())
            }
            Self::Compose {
                file,
                service,
                port,
            } => {
                let port = port.map(|port| key(&["compose", "port"], i64::from(port).into()));
                let own = [("file", file), ("service", service)];
                let own = own.map(|(name, value)| key(&["compose", name], value.as_str().into()));
                (&[][..], own.into_iter().chain(port).collect())
            }
        };
        keys.extend(
            env.iter()
                .map(|(name, value)| key(&["env", name], value.as_str().into())),
        );
        keys
    }
}

impl WrittenFile {
    /// The flag or argument that a problem comes from, and the byte range of the problem in it, if known.
    pub fn origin<'a>(&'a self, problem: &'a Problem) -> Option<(&'a str, Range<usize>)> {
        if let Some(flag) = &problem.flag {
            return Some((flag, problem.span.clone()));
        }
        let mut origins = self.origins.iter();
        let (_, from) = origins
            .find(|(place, from)| place.contains(&problem.span.start) && !from.is_empty())?;
        let part = self
            .text
            .get(problem.span.clone())
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let begin = from.find(part).filter(|_| !part.is_empty());
        Some((
            from,
            begin.map_or(0..from.len(), |begin| begin..begin + part.len()),
        ))
    }
}

fn question(names: &[String]) -> Option<String> {
    match names {
        [] | [_] => None,
        [first, one] => Some(format!("How does {one} compare with {first}?")),
        [first, others @ .., last] => Some(format!(
            "How do {} and {last} compare with {first}?",
            others.join(", ")
        )),
    }
}

/// The first sentence of a key's description in the schema.
fn about(path: &[String]) -> Option<String> {
    let mut schema: &Schema = &SCHEMA;
    for key in path {
        while let Some(reference) = schema["$ref"].as_str() {
            schema = &SCHEMA["$defs"][reference.trim_start_matches("#/$defs/")];
        }
        let known = &schema["properties"][key.as_str()];
        schema = if known.is_null() {
            &schema["additionalProperties"]
        } else {
            known
        };
    }
    let text = schema["description"].as_str()?;
    Some(format!(
        "{}.",
        text.split(". ").next()?.trim_end_matches('.')
    ))
}

/// Formats a path of keys as a dotted key.
fn dotted(path: &[String]) -> String {
    path.iter()
        .map(|key| written_key(key))
        .collect::<Vec<_>>()
        .join(".")
}

fn shown(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn written_key(key: &str) -> String {
    if is_bare(key) {
        return key.to_owned();
    }
    // A string with both kinds of quotes would need triple quotes, which a key may not have. JSON writes
    // strings like TOML except for one character.
    Schema::from(key).to_string().replace('\u{7f}', "\\u007f")
}

/// A comment ends with its line.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

type Variables = Vec<(String, String)>;

/// Operators of a shell, which mean nothing to a program.
const OPERATORS: [&str; 9] = ["&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"];

impl DraftSource {
    /// Parses a command line. Words of the form `NAME=value` before the program are variables.
    ///
    /// # Errors
    /// If it contains no program to start.
    pub fn command(text: &str) -> Result<DraftSource, Refused> {
        let (env, words) = split(text)?;
        if let Some(operator) = words.iter().find(|word| OPERATORS.contains(&word.as_str())) {
            let message = format!("no shell is involved, and `{operator}` is for a shell");
            return Err(Refused::new(
                message,
                "ask for one: 'sh -c \"… && exec node server.js\"'",
            ));
        }
        if words.first().is_none_or(String::is_empty) {
            let hint =
                "variables come first, then the program: 'NODE_ENV=production node server.js'";
            return Err(Refused::new("there is no program in it", hint));
        }
        Ok(DraftSource::Command { env, words })
    }

    /// Parses an image's name with variables before it and arguments after it, like a command line.
    ///
    /// # Errors
    /// If it contains no name.
    pub fn image(text: &str) -> Result<DraftSource, Refused> {
        let (env, words) = split(text)?;
        let hint = "variables come first, then the image: 'MODE=fast shop:1.5'";
        let none = || Refused::new("there is no image in it", hint);
        let (image, args) = words.split_first().ok_or_else(none)?;
        Ok(DraftSource::Image {
            env,
            image: image.clone(),
            args: args.to_vec(),
        })
    }
}

/// Splits a command line into leading variables and the other words.
fn split(text: &str) -> Result<(Variables, Vec<String>), Refused> {
    let hint = "quote the whole command once for your shell: 'node server.js --title \"a b\"'";
    let mut words = words(text).ok_or_else(|| Refused::new("a quote is not closed", hint))?;
    let typed: Variables = words.iter().map_while(|word| variable(word)).collect();
    words.drain(..typed.len());
    // If a name occurs twice, the last value counts, as in a shell.
    let is_last = |at: usize| {
        !typed[at + 1..]
            .iter()
            .any(|(later, _)| *later == typed[at].0)
    };
    let variables = (0..typed.len())
        .filter(|at| is_last(*at))
        .map(|at| typed[at].clone());
    Ok((variables.collect(), words))
}

/// Splits a line into words like a shell. `None` if a quote is not closed.
pub fn words(line: &str) -> Option<Vec<String>> {
    shlex::split(line)
}

/// Joins words into a line that a shell splits into the same words, for users to read and retype.
pub fn command_line(words: impl IntoIterator<Item = String>) -> String {
    let quoted = words
        .into_iter()
        .map(|word| shlex::try_quote(&word).map_or(word.clone(), Into::into));
    quoted.collect::<Vec<String>>().join(" ")
}

/// `NAME=value`, with a valid shell name.
fn variable(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Unique names for the variants.
fn names(variants: &[DraftVariant]) -> Vec<String> {
    let words: Vec<Vec<String>> = variants
        .iter()
        .map(|variant| masked_words(&source_words(&variant.source)))
        .collect();
    let least = words.iter().map(Vec::len).min().unwrap_or(0);
    let same =
        |at: &dyn Fn(&Vec<String>) -> String| words.iter().all(|one| at(one) == at(&words[0]));
    let before = (0..least)
        .take_while(|index| same(&|one| one[*index].clone()))
        .count();
    let after = (0..least - before)
        .take_while(|index| same(&|one| one[one.len() - 1 - index].clone()))
        .count();
    let apart = |one: &Vec<String>| one[before..one.len() - after].join(" ");
    // If one variant's words are a subset of another's, the differing words give no name to it.
    let whole = words.iter().any(|one| apart(one).trim().is_empty());
    let mut names: Vec<String> = Vec::new();
    for (variant, words) in variants.iter().zip(&words) {
        let made = if whole { words.join(" ") } else { apart(words) };
        let numbers = (2..).map(|number| format!(" ({number})"));
        let suffixes = std::iter::once(String::new()).chain(numbers);
        let mut made =
            suffixes.map(|suffix| fitting(&made, NAME_CHARS_MAX - suffix.len()) + &suffix);
        let name = variant
            .name
            .clone()
            .or_else(|| made.find(|name| !names.contains(name)));
        names.extend(name);
    }
    names
}

fn source_words(source: &DraftSource) -> Vec<String> {
    let (env, words) = match source {
        DraftSource::Command { env, words } => (&env[..], words.clone()),
        DraftSource::Image { env, image, args } => {
            (&env[..], [slice::from_ref(image), args].concat())
        }
        DraftSource::Compose { file, service, .. } => {
            (&[][..], vec![file.clone(), service.clone()])
        }
        DraftSource::Url(url) => (
            &[][..],
            vec![
                url.split_once("://")
                    .map_or(url.as_str(), |(_, rest)| rest)
                    .to_owned(),
            ],
        ),
    };
    env.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .chain(words)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does_and_variables_come_first() {
        let read = DraftSource::command(r#"A=0 A=1 B='x y' node --title="a b" C=2"#).unwrap();
        let env =
            [("A", "1"), ("B", "x y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let words = ["node", "--title=a b", "C=2"].map(str::to_owned);
        assert_eq!(
            read,
            DraftSource::Command {
                env: env.to_vec(),
                words: words.to_vec()
            }
        );
        let image = DraftSource::image("A=1 shop:1.4 --fast").unwrap();
        let env = vec![("A".to_owned(), "1".to_owned())];
        let args = vec!["--fast".to_owned()];
        assert_eq!(
            image,
            DraftSource::Image {
                env,
                image: "shop:1.4".to_owned(),
                args
            }
        );
        let refused = |source: Result<DraftSource, Refused>, part: &str| {
            assert!(
                source.is_err_and(|error| error.to_string().contains(part)),
                "{part}"
            );
        };
        refused(DraftSource::image("A=1"), "no image");
        refused(DraftSource::command("node 'a"), "quote");
        refused(DraftSource::command("A=1 "), "no program");
        refused(
            DraftSource::command("npm run build && node b.js"),
            "`&&` is for a shell",
        );
    }
}
