//! Translates other tools' command lines into those of `proofload load`, and lists the differences in the
//! figures. || Each tool's file defines its options. This module contains the shared parts. Pure: it parses
//! none of our own flags, runs nothing and prints nothing.

use std::slice::Iter;

use crate::tool::Tool;

/// The reason a command line cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRefusal {
    /// The problem, the tool's name first.
    pub problem: String,
    /// A hint.
    pub hint: Option<String>,
}

impl ToolRefusal {
    pub(crate) fn new(tool: Tool, problem: impl std::fmt::Display) -> ToolRefusal {
        ToolRefusal {
            problem: format!("{}: {problem}", tool.name()),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> ToolRefusal {
        self.hint = Some(hint.into());
        self
    }
}

/// A command line of `proofload load`, and its differences from the original.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// As typed, with the URL last.
    pub arguments: Vec<String>,
    /// The differences.
    pub differences: Vec<ToolDifference>,
}

/// A difference, and the runs in which it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDifference {
    /// One sentence or two.
    pub text: String,
    /// The condition under which it is reported.
    pub when: DifferenceCondition,
}

/// The condition under which a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceCondition {
    /// Nothing.
    Always,
    /// Requests timed out.
    TimedOut,
    /// Some answers were not good.
    NotGood,
    /// Connections were lost with a request on them.
    Lost,
    /// More than this number of requests were answered.
    AnsweredOver(u64),
    /// The machine has fewer processors than this.
    ProcessorsBelow(u64),
}

/// The facts about a run that decide which differences matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    /// Requests that timed out.
    pub timed_out: u64,
    /// Responses that were not successful.
    pub not_good: u64,
    /// Requests whose connection was lost.
    pub lost: u64,
    /// Responses.
    pub answered: u64,
    /// Processors of this machine.
    pub processors: u64,
}

impl DifferenceCondition {
    /// Whether the condition was met in this run.
    pub fn met(self, came: &Came) -> bool {
        match self {
            DifferenceCondition::Always => true,
            DifferenceCondition::TimedOut => came.timed_out > 0,
            DifferenceCondition::NotGood => came.not_good > 0,
            DifferenceCondition::Lost => came.lost > 0,
            DifferenceCondition::AnsweredOver(requests) => came.answered > requests,
            DifferenceCondition::ProcessorsBelow(threads) => came.processors < threads,
        }
    }
}

impl Translation {
    pub(crate) fn flag(&mut self, name: &str) {
        self.arguments.push(name.to_owned());
    }

    pub(crate) fn flag_with(&mut self, name: &str, value: impl ToString) {
        self.arguments.extend([name.to_owned(), value.to_string()]);
    }

    /// None of these tools checks certificates. Returns whether the URL uses TLS.
    pub(crate) fn unchecked_tls(&mut self, url: &str) -> bool {
        let is_tls = url
            .get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        if is_tls {
            self.flag("--insecure");
        }
        is_tls
    }

    /// Adds those differences that apply, each with its condition.
    pub(crate) fn differs(
        &mut self,
        all: impl IntoIterator<Item = (bool, DifferenceCondition, String)>,
    ) {
        let there = all.into_iter().filter(|(is_there, ..)| *is_there);
        self.differences
            .extend(there.map(|(_, when, text)| ToolDifference { text, when }));
    }
}

/// Whether one of these header lines has this name.
pub(crate) fn has_header<'a>(mut headers: impl Iterator<Item = &'a str>, name: &str) -> bool {
    headers.any(|line| {
        line.split_once(':')
            .is_some_and(|(given, _)| model::header::is_same(given.trim(), name))
    })
}

/// The options of a program.
pub(crate) struct Grammar {
    /// Short options, followed by a colon if they take a value, as in getopt(3): `c:L`.
    pub short: &'static str,
    /// Long options with their short form. A long option whose short form is not in `short` does not exist.
    pub long: &'static [(&'static str, char)],
    /// Whether options may follow other arguments (GNU), or the first such argument ends them (POSIX).
    pub permutes: bool,
}

/// The parsed command line, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Each option with its value. Empty if it takes none.
    pub options: Vec<(char, String)>,
    /// Arguments that are not options.
    pub plain: Vec<String>,
}

impl Given {
    /// Whether one of these options is given.
    pub fn has(&self, keys: &str) -> bool {
        self.options.iter().any(|(key, _)| keys.contains(*key))
    }

    /// The values of an option, in order.
    pub fn values(&self, key: char) -> impl DoubleEndedIterator<Item = &str> {
        self.options
            .iter()
            .filter(move |(given, _)| *given == key)
            .map(|(_, value)| value.as_str())
    }
}

/// Parses a command line.
///
/// # Errors
/// Returns an error for the first option that is unknown, ambiguous, lacks its value, or has one it does not
/// take.
pub(crate) fn getopt(grammar: &Grammar, arguments: &[String]) -> Result<Given, String> {
    let mut given = Given::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        } else if let Some(long) = argument.strip_prefix("--") {
            given.options.push(grammar.long(long, &mut rest)?);
        } else if let Some(cluster) = argument
            .strip_prefix('-')
            .filter(|cluster| !cluster.is_empty())
        {
            grammar.short(cluster, &mut rest, &mut given)?;
        } else {
            given.plain.push(argument.clone());
            if !grammar.permutes {
                break;
            }
        }
    }
    given.plain.extend(rest.cloned());
    Ok(given)
}

impl Grammar {
    /// Parses `--name`, `--name=value`, `--name value`, or an unambiguous prefix of a name.
    fn long(&self, text: &str, rest: &mut Iter<'_, String>) -> Result<(char, String), String> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        let known = self
            .long
            .iter()
            .filter_map(|(long, key)| Some((*long, *key, self.takes_value(*key)?)));
        let begun: Vec<_> = known.filter(|(long, ..)| long.starts_with(name)).collect();
        let exact = begun.iter().find(|(long, ..)| *long == name);
        let &(long, key, takes_value) = match (exact, begun.as_slice()) {
            (Some(found), _) | (None, [found]) => found,
            (None, []) => return Err(format!("there is no option --{name}")),
            (None, several) => {
                let names: Vec<_> = several
                    .iter()
                    .map(|(long, ..)| format!("--{long}"))
                    .collect();
                return Err(format!("--{name} could be {}", names.join(" or ")));
            }
        };
        let value = match (takes_value, value) {
            (true, Some(value)) => value,
            (true, None) => rest
                .next()
                .cloned()
                .ok_or_else(|| format!("--{long} needs a value"))?,
            (false, None) => String::new(),
            (false, Some(value)) => {
                return Err(format!("--{long} takes no value, but has {value:?}"));
            }
        };
        Ok((key, value))
    }

    /// Parses options after one dash. Only the last one may have a value, attached or as the next argument.
    fn short(
        &self,
        cluster: &str,
        rest: &mut Iter<'_, String>,
        given: &mut Given,
    ) -> Result<(), String> {
        let mut letters = cluster.chars();
        while let Some(key) = letters.next() {
            if !self
                .takes_value(key)
                .ok_or_else(|| format!("there is no option -{key}"))?
            {
                given.options.push((key, String::new()));
                continue;
            }
            let glued = letters.as_str();
            let value = if glued.is_empty() {
                rest.next().cloned()
            } else {
                Some(glued.to_owned())
            };
            given
                .options
                .push((key, value.ok_or_else(|| format!("-{key} needs a value"))?));
            break;
        }
        Ok(())
    }

    /// Whether a short option takes a value. `None` if it does not exist.
    fn takes_value(&self, key: char) -> Option<bool> {
        let at = self.short.find(key).filter(|_| key != ':')?;
        Some(self.short[at + key.len_utf8()..].starts_with(':'))
    }
}

/// wrk's units of a count: each 1000 times the previous one.
const COUNTS: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// A count with wrk's units, in either case: `400`, `1k`, `2M`.
pub(crate) fn metric(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let power = COUNTS
        .iter()
        .position(|name| unit.eq_ignore_ascii_case(name))?;
    number.checked_mul(1000u64.checked_pow(u32::try_from(power).ok()?)?)
}

/// Seconds with wrk's units, in either case: `30`, `30s`, `2m`, `1h`.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// A whole number without a unit.
pub(crate) fn whole(text: &str) -> Option<u64> {
    split_unit(text)
        .filter(|(_, unit)| unit.is_empty())
        .map(|(number, _)| number)
}

/// A time in the syntax of `proofload load`, in its largest integral unit.
pub(crate) fn period(seconds: u64) -> String {
    match seconds {
        s if s > 0 && s.is_multiple_of(3600) => format!("{}h", s / 3600),
        s if s > 0 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}
