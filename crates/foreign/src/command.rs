//! Command lines of load generators, in a shell or in prose: `$ wrk -t12 …`, "I ran `ab -k -c 20 …`"; and what their flags ask for.
//!
//! It reads the flags that matter to an audit, as the table of each tool has them, and steps over all others.

use crate::number;
use crate::run::Load;
use crate::shell;
use crate::tools::{Meaning, Tool};

/// Longer command lines are cut.
pub const COMMAND_CHARS_MAX: usize = 400;
/// A tool's name further back in a line is not looked for.
const WORDS_MAX: usize = 60;

/// A command line that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The tool.
    pub tool: Tool,
    /// The line, from the tool's name on.
    pub text: String,
    /// What it asks for.
    pub options: Options,
}

/// The command line in a line of text.
pub fn find(text: &str) -> Option<Command> {
    let prompted = shell::typed(text);
    // As root; a heading would not go on with a tool and its flags.
    let line = prompted.or_else(|| text.strip_prefix("# ")).unwrap_or(text);
    let mut offset = 0;
    let mut words = Vec::new();
    for word in line.split(' ').take(WORDS_MAX) {
        words.push((offset, word));
        offset += word.len() + 1;
    }
    words.retain(|(_, word)| !word.is_empty());
    let mut pairs = words.iter().enumerate();
    let (at, tool) = pairs.find_map(|(place, (at, word))| {
        let tool = tool_named(word)?;
        let next = words.get(place + 1).map(|(_, next)| *next)?;
        is_argument(tool, next).then_some((*at, tool))
    })?;
    let start = if tool.row().reads_pipe && prompted.is_some() { 0 } else { at };
    let found = line.get(start..)?.trim_start_matches(['`', '(', '"', '\'', '*']);
    let text = ended(found, tool);
    let options = read(tool, &text);
    let tool = if tool == Tool::Wrk && options.load.rate_per_s.is_some() { Tool::Wrk2 } else { tool };
    Some(Command { tool, options, text })
}

/// The tool that a word names, whatever path stands before it.
fn tool_named(word: &str) -> Option<Tool> {
    let bare = word.trim_matches(['`', '(', ')', '"', '\'', '*', ':']);
    let name = bare.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Tool::all().find(|tool| tool.name() == name)
}

fn is_argument(tool: Tool, word: &str) -> bool {
    let option = word
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'));
    let address = word.trim_start_matches(['"', '\'', '<']).starts_with("http");
    option || address || tool.row().verbs.contains(&word)
}

/// Up to where the command ends: a closing quote of prose, a pipe, a redirection.
fn ended(text: &str, tool: Tool) -> String {
    let mut end = text.find('`').unwrap_or(text.len());
    if !tool.row().reads_pipe {
        let stops = [" |", " >", " 2>", " &&", " ;", "; "];
        end = stops.iter().filter_map(|stop| text.find(stop)).fold(end, usize::min);
    }
    let kept = text.get(..end).unwrap_or(text).trim_end_matches(['&', ' ', '.', ',', '*', '_', '\\']);
    kept.chars().filter(|c| !c.is_control()).take(COMMAND_CHARS_MAX).collect()
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The address.
    pub url: Option<String>,
    /// The load.
    pub load: Load,
}

/// Reads a command line, the tool's name first.
fn read(tool: Tool, command: &str) -> Options {
    let words = split(command);
    let mut options = Options { url: address(&words), ..Options::default() };
    let (mut at, mut each) = (0, false);
    while let Some(word) = words.get(at) {
        at += 1;
        let Some((name, attached)) = flag(tool, word) else { continue };
        let Some((_, meaning)) = tool.row().flags.iter().find(|(known, _)| known.contains(&name.as_str()))
        else {
            continue;
        };
        let takes_value = !matches!(meaning, Meaning::Keep | Meaning::Close | Meaning::NoCompression);
        let value = match attached {
            Some(value) => value,
            None if takes_value => {
                at += 1;
                words.get(at - 1).cloned().unwrap_or_default()
            }
            None => String::new(),
        };
        options.load.set(*meaning, &value);
        if matches!(meaning, Meaning::Rate | Meaning::RateEach) {
            each = *meaning == Meaning::RateEach;
        }
    }
    // Given for each connection; over all of them it is a rate like any other.
    if each && let (Some(rate), Some(connections)) = (options.load.rate_per_s, options.load.connections) {
        options.load.rate_per_s = Some(rate * connections as f64);
    }
    options
}

impl Load {
    fn set(&mut self, meaning: Meaning, value: &str) {
        let count = || number::count(value).map(|(value, _)| value);
        match meaning {
            Meaning::Connections => self.connections = count(),
            Meaning::Threads => self.threads = count(),
            Meaning::Requests => self.requests = count(),
            Meaning::Pipelining => self.pipelining = count(),
            Meaning::Duration => self.duration_s = seconds(value),
            Meaning::Rate | Meaning::RateEach => self.rate_per_s = rate(value),
            Meaning::Keep => self.keep_alive = Some(value != "false"),
            Meaning::Close => self.keep_alive = Some(false),
            Meaning::NoCompression => self.accept_encoding = Some(String::new()),
            Meaning::Header => {
                if let Some((name, value)) = value.split_once([':', '='])
                    && name.trim().eq_ignore_ascii_case("accept-encoding")
                {
                    self.accept_encoding = Some(value.trim().to_owned());
                }
            }
        }
    }
}

/// Seconds; a bare number is seconds in every one of these tools.
fn seconds(value: &str) -> Option<f64> {
    let us = number::us(value).or_else(|| Some(number::decimal(value)? * 1e6));
    us.map(|us| us / 1e6)
}

/// Requests per second: `2000`, `2k`, `100/1s`, `50/m`.
fn rate(value: &str) -> Option<f64> {
    let (number, per) = value.split_once('/').unwrap_or((value, "1s"));
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let (count, _) = number::count(number)?;
    let per_s = number::us(&per)? / 1e6;
    (count > 0 && per_s > 0.0).then_some(count as f64 / per_s)
}

/// The name of a flag and the value that is attached to it.
fn flag(tool: Tool, word: &str) -> Option<(String, Option<String>)> {
    let short = word.strip_prefix('-')?;
    let is_letter = short.starts_with(|c: char| c.is_ascii_alphabetic());
    // Go's tools take long names behind one dash.
    let is_long = is_letter && tool.row().long_behind_one_dash && short.len() > 1;
    if let Some(long) = short.strip_prefix('-').or(is_long.then_some(short)) {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return Some((name.to_owned(), value.map(str::to_owned)));
    }
    let mut chars = short.chars();
    let letter = chars.next().filter(|_| is_letter)?.to_string();
    let rest = chars.as_str().trim_start_matches('=');
    Some((letter, (!rest.is_empty()).then(|| rest.to_owned())))
}

fn address(words: &[String]) -> Option<String> {
    let is_address = |word: &&String| word.contains("://");
    words.iter().rev().find(is_address).map(|word| word.trim_matches(['<', '>', ',', ')']).to_owned())
}

/// Words as a shell splits them, quotes taken off.
fn split(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => words.last_mut().expect("there is always one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_people_write_them() {
        let table = [
            (
                "$ wrk -t12 -c400 http://127.0.0.1:3000/ | tee out",
                Tool::Wrk,
                "wrk -t12 -c400 http://127.0.0.1:3000/",
            ),
            (
                "Ich habe `ab -k -c 20 -n 250 http://127.0.0.1/` benutzt.",
                Tool::Ab,
                "ab -k -c 20 -n 250 http://127.0.0.1/",
            ),
            ("# /usr/local/bin/wrk -c 5 http://127.0.0.1/", Tool::Wrk, "wrk -c 5 http://127.0.0.1/"),
            (
                "ann@b:~$ npx autocannon -d 5 http://127.0.0.1/",
                Tool::Autocannon,
                "autocannon -d 5 http://127.0.0.1/",
            ),
            ("wrk -R2000 http://127.0.0.1/", Tool::Wrk2, "wrk -R2000 http://127.0.0.1/"),
            ("k6 run script.js", Tool::K6, "k6 run script.js"),
        ];
        for (line, tool, text) in table {
            let command = find(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((command.tool, command.text.trim_start_matches("/usr/local/bin/")), (tool, text));
        }
        for prose in
            ["wrk is a tool", "we compared wrk and ab - slowly", "Running 30s test @ http://a/", "oha"]
        {
            assert_eq!(find(prose), None, "{prose}");
        }
    }

    #[test]
    fn flags_are_read_as_each_tool_means_them() {
        let wrk = read(Tool::Wrk, "wrk -t12 -c 400 -d2m -H 'Accept-Encoding: gzip' http://127.0.0.1:3000/a");
        assert_eq!((wrk.load.threads, wrk.load.connections), (Some(12), Some(400)));
        assert_eq!((wrk.load.duration_s, wrk.load.accept_encoding.as_deref()), (Some(120.0), Some("gzip")));
        assert_eq!(wrk.url.as_deref(), Some("http://127.0.0.1:3000/a"));
        let ab = read(Tool::Ab, "ab -k -c 20 -n 250 http://127.0.0.1/");
        assert_eq!(
            (ab.load.keep_alive, ab.load.connections, ab.load.requests),
            (Some(true), Some(20), Some(250))
        );
        let h2load = read(Tool::H2load, "h2load --h1 -c10 --rps=50 -D 5 http://127.0.0.1/");
        assert_eq!((h2load.load.rate_per_s, h2load.load.duration_s), (Some(500.0), Some(5.0)));
        let vegeta =
            read(Tool::Vegeta, "echo GET http://127.0.0.1/ | vegeta attack -rate=100/1s -duration=5s");
        assert_eq!((vegeta.load.rate_per_s, vegeta.load.duration_s), (Some(100.0), Some(5.0)));
        let wild = read(Tool::Wrk, "wrk -c -t nan -d '1e999 -R");
        assert_eq!((wild.load.threads, wild.load.duration_s, wild.load.rate_per_s), (None, None, None));
    }
}
