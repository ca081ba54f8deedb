//! What the flags of a command line ask for. It reads those that matter to an audit and steps over all others.

use crate::number::{self, Lone};
use crate::run::{Load, Tool};

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The address.
    pub url: Option<String>,
    /// The load.
    pub load: Load,
}

/// What a flag means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Connections,
    Threads,
    Duration,
    Requests,
    Rate,
    Pipelining,
    Header,
    Keep,
    Close,
    NoCompression,
    /// A rate for each connection.
    RateEach,
}

const AUTOCANNON: [(&str, Meaning); 16] = {
    use Meaning::*;
    [
        ("c", Connections),
        ("connections", Connections),
        ("d", Duration),
        ("duration", Duration),
        ("a", Requests),
        ("amount", Requests),
        ("w", Threads),
        ("workers", Threads),
        ("p", Pipelining),
        ("pipelining", Pipelining),
        ("R", Rate),
        ("overallRate", Rate),
        ("r", RateEach),
        ("connectionRate", RateEach),
        ("H", Header),
        ("headers", Header),
    ]
};

/// The flags of each tool, the short ones by their letter.
fn meanings(tool: Tool) -> &'static [(&'static str, Meaning)] {
    use Meaning::*;
    match tool {
        Tool::Wrk | Tool::Wrk2 => &[
            ("c", Connections),
            ("connections", Connections),
            ("t", Threads),
            ("threads", Threads),
            ("d", Duration),
            ("duration", Duration),
            ("R", Rate),
            ("rate", Rate),
            ("H", Header),
            ("header", Header),
        ],
        Tool::Ab => &[("c", Connections), ("n", Requests), ("t", Duration), ("k", Keep), ("H", Header)],
        Tool::Oha => &[
            ("c", Connections),
            ("n", Requests),
            ("z", Duration),
            ("q", Rate),
            ("p", Pipelining),
            ("H", Header),
            ("disable-keepalive", Close),
            ("disable-compression", NoCompression),
        ],
        Tool::Hey => &[
            ("c", Connections),
            ("n", Requests),
            ("z", Duration),
            ("q", RateEach),
            ("H", Header),
            ("disable-keepalive", Close),
            ("disable-compression", NoCompression),
        ],
        Tool::Autocannon => &AUTOCANNON,
        Tool::H2load => &[
            ("c", Connections),
            ("clients", Connections),
            ("n", Requests),
            ("requests", Requests),
            ("t", Threads),
            ("threads", Threads),
            ("D", Duration),
            ("duration", Duration),
            ("m", Pipelining),
            ("max-concurrent-streams", Pipelining),
            ("rps", RateEach),
            ("H", Header),
            ("header", Header),
        ],
        Tool::K6 => &[("u", Connections), ("vus", Connections), ("d", Duration), ("duration", Duration)],
        Tool::Vegeta => &[("rate", Rate), ("duration", Duration), ("header", Header), ("keepalive", Keep)],
    }
}

/// Reads a command line, the tool's name first.
pub fn read(tool: Tool, command: &str) -> Options {
    let words = split(command);
    let mut options = Options { url: address(&words), ..Options::default() };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some((name, attached)) = flag(tool, word) else { continue };
        let Some((_, meaning)) = meanings(tool).iter().find(|(known, _)| *known == name) else { continue };
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
    }
    // Given for each connection; over all of them it is a rate like any other.
    let each = meanings(tool).iter().any(|(_, meaning)| *meaning == Meaning::RateEach);
    if each && let (Some(rate), Some(connections)) = (options.load.rate_per_s, options.load.connections) {
        let overall =
            tool == Tool::Autocannon && words.iter().any(|word| word == "-R" || word.contains("overallRate"));
        options.load.rate_per_s = Some(if overall { rate } else { rate * connections as f64 });
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
    let us =
        number::micros(value, Lone::Decimal).or_else(|| Some(number::figure(value, Lone::Decimal)? * 1e6));
    us.map(|us| us / 1e6)
}

/// Requests per second: `2000`, `2k`, `100/1s`, `50/m`.
fn rate(value: &str) -> Option<f64> {
    let (number, per) = value.split_once('/').unwrap_or((value, "1s"));
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let (count, _) = number::count(number)?;
    let per_s = number::micros(&per, Lone::Decimal)? / 1e6;
    (count > 0 && per_s > 0.0).then_some(count as f64 / per_s)
}

/// The name of a flag and the value that is attached to it.
fn flag(tool: Tool, word: &str) -> Option<(String, Option<String>)> {
    let owned = |text: &str| text.to_owned();
    if let Some(long) = word.strip_prefix("--") {
        return Some(match long.split_once('=') {
            Some((name, value)) => (owned(name), Some(owned(value))),
            None => (owned(long), None),
        });
    }
    let short =
        word.strip_prefix('-').filter(|short| short.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    // Go's tools take long names behind one dash.
    if matches!(tool, Tool::Vegeta | Tool::Hey) && short.len() > 1 {
        return Some(match short.split_once('=') {
            Some((name, value)) => (owned(name), Some(owned(value))),
            None => (owned(short), None),
        });
    }
    let mut chars = short.chars();
    let letter = chars.next()?.to_string();
    let rest = chars.as_str().trim_start_matches('=');
    Some((letter, (!rest.is_empty()).then(|| owned(rest))))
}

fn address(words: &[String]) -> Option<String> {
    let is_address = |word: &&String| word.contains("://");
    words.iter().rev().find(is_address).map(|word| word.trim_matches(['<', '>', ',', ')']).to_owned())
}

/// Words as a shell splits them, quotes taken off.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, c) => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

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
