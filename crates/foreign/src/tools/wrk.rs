//! wrk 3 and 4, and wrk2, which prints the same and more. wrk counts a response that took longer than its limit as a
//! timeout *and* as a request.

use super::{Beginning, Divides, Facts, Meaning, Reader, Tool, autocannon, between, percent, starts};
use crate::compatibility::{
    Grammar, Refusal, Translation, When, getopt, has_header, metric, period, seconds,
};
use crate::draft::{Draft, Part, Taken, keep};
use crate::number::{self, Kilo, Lone};

/// Reads what wrk or wrk2 prints, and translates its command lines.
pub struct Wrk(Tool);

pub static WRK: Wrk = Wrk(Tool::Wrk);
pub static WRK2: Wrk = Wrk(Tool::Wrk2);

static FACTS: Facts = Facts {
    flags: &[
        ("c", Meaning::Connections),
        ("connections", Meaning::Connections),
        ("t", Meaning::Threads),
        ("threads", Meaning::Threads),
        ("d", Meaning::Duration),
        ("duration", Meaning::Duration),
        ("R", Meaning::Rate),
        ("rate", Meaning::Rate),
        ("H", Meaning::Header),
        ("header", Meaning::Header),
    ],
    counts_timeouts: true,
    late_responses: Some(
        "wrk counts a response that took more than 2 s (--timeout) as a timeout, leaves it out of every latency, and counts it in \
         Requests/sec all the same. ",
    ),
    divides: Divides::ConnectionsByThreads,
    ..Facts::USUAL
};

impl Reader for Wrk {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn begins(&self, text: &str) -> Option<Beginning> {
        match text {
            _ if text.starts_with("Running ") && text.contains(" test @ ") => Beginning::FIRST,
            _ if starts(text, &["Thread Stats", "Requests/sec:"]) || is_total(text) => Beginning::LATER,
            _ => None,
        }
    }

    fn take(&self, text: &str, draft: &mut Draft) -> Taken {
        autocannon::instead_of_wrk(text, draft).unwrap_or_else(|| take(text, draft))
    }

    fn fails_alone(&self, text: &str, commanded: bool) -> bool {
        commanded && text.starts_with("unable to connect to ")
    }

    fn example(&self) -> Option<&'static str> {
        Some(if self.0 == Tool::Wrk2 { EXAMPLE_WRK2 } else { EXAMPLE_WRK })
    }

    fn translate(&self, arguments: &[String]) -> Option<Result<Translation, Refusal>> {
        Some(translate(self.0, arguments))
    }
}

/// `1234 requests in 10.01s, 5.00MB read`
fn is_total(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(" requests in ")
        && text
            .strip_suffix(" read")
            .and_then(|rest| rest.rsplit_once(", "))
            .is_some_and(|(_, size)| !size.contains(' '))
}

fn take(text: &str, draft: &mut Draft) -> Taken {
    if is_first(text, draft) || is_corrected(text, draft) {
        return Taken::Ours;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [threads, "threads" | "thread", "and", connections, "connections" | "connection"] => {
            draft.run.load.threads = number::whole(threads);
            draft.run.load.connections = number::whole(connections);
        }
        ["Thread", "Stats", ..] => {}
        ["Latency", "Distribution", ..] => draft.part = Part::Quantiles,
        ["Latency", mean, sd, max, ..] => {
            let us = |word: &str| number::micros(word, Lone::Thousands);
            draft.moments(us(mean), us(sd), us(max));
        }
        ["Req/Sec", ..] => draft.part = Part::Summary,
        ["Socket", "errors:", ..] => sockets(text, draft),
        ["Non-2xx", "or", "3xx", "responses:", count, ..] => draft.run.failures.status = number::whole(count),
        ["Requests/sec:", rate, ..] => return draft.rate(rate, Lone::Thousands),
        ["Transfer/sec:", ..] => ended(draft),
        [share, time] if draft.part == Part::Quantiles && share.ends_with('%') => {
            draft.quantile(percent(share), number::micros(time, Lone::Thousands));
        }
        _ if is_total(text) => return total(text, draft),
        _ => return Taken::Foreign,
    }
    Taken::Ours
}

/// The last line. Lines about failures come before it, and only where there are any.
fn ended(draft: &mut Draft) {
    draft.whole = true;
    if draft.run.requests.is_some() {
        draft.run.failures.status.get_or_insert(0);
        draft.run.failures.timeouts.get_or_insert(0);
    }
}

fn is_first(text: &str, draft: &mut Draft) -> bool {
    let Some(rest) = text.strip_prefix("Running ") else { return false };
    let Some((duration, url)) = rest.split_once(" test @ ") else { return false };
    draft.run.load.duration_s = number::micros(duration, Lone::Decimal).map(|us| us / 1e6);
    draft.run.url = url.split_whitespace().next().map(str::to_owned);
    true
}

/// What only wrk2 prints.
fn is_corrected(text: &str, draft: &mut Draft) -> bool {
    if text.starts_with("Thread calibration:") || text.contains("(HdrHistogram - ") {
        draft.run.tool = Tool::Wrk2;
        // The second distribution is the one that leaves out waiting.
        draft.part = if text.contains("- Recorded") { Part::Quantiles } else { Part::Skipped };
        return true;
    }
    if text.starts_with("Detailed Percentile spectrum") {
        draft.part = Part::Skipped;
        return true;
    }
    let spectrum =
        |text: &str| text.split_whitespace().count() == 4 && text.starts_with(|c: char| c.is_ascii_digit());
    let rest = text.starts_with("#[") || text.starts_with("Value ") || text.starts_with("-----");
    draft.part == Part::Skipped && (rest || spectrum(text) || text.ends_with('s') && text.contains('%'))
}

fn total(text: &str, draft: &mut Draft) -> Taken {
    let count = text.split_whitespace().next().unwrap_or_default();
    let taken = draft.requests(count);
    if taken == Taken::Ours {
        let seconds =
            between(text, " requests in ", ", ").and_then(|time| number::micros(time, Lone::Thousands));
        keep(&mut draft.run.duration_s, seconds.map(|us| us / 1e6));
        let size = text.rsplit_once(", ").and_then(|(_, size)| size.strip_suffix(" read"));
        draft.run.bytes = size.and_then(|size| number::bytes(size, Kilo::Binary));
    }
    taken
}

fn sockets(text: &str, draft: &mut Draft) {
    let failures = &mut draft.run.failures;
    for part in text.split([':', ',']) {
        if let Some((name, count)) = part.trim().split_once(' ') {
            let count = number::whole(count);
            match name {
                "connect" => failures.connect = count,
                "read" => failures.read = count,
                "write" => failures.write = count,
                "timeout" => failures.timeouts = count,
                _ => {}
            }
        }
    }
}

/// Command lines that are understood, for hints.
const EXAMPLE_WRK: &str = "-t2 -c64 -d30s http://127.0.0.1:3000/";
const EXAMPLE_WRK2: &str = "-t2 -c64 -d30s -R1000 http://127.0.0.1:3000/";

const GRAMMAR_WRK: Grammar = Grammar { short: "t:c:d:s:H:T:Lvh", long: GRAMMAR_LONG, permutes: true };
const GRAMMAR_WRK2: Grammar = Grammar { short: "t:c:d:s:H:T:R:LUBvh", long: GRAMMAR_LONG, permutes: true };
const GRAMMAR_LONG: &[(&str, char)] = &[
    ("connections", 'c'),
    ("duration", 'd'),
    ("threads", 't'),
    ("script", 's'),
    ("header", 'H'),
    ("latency", 'L'),
    ("u_latency", 'U'),
    ("batch_latency", 'B'),
    ("timeout", 'T'),
    ("rate", 'R'),
    ("version", 'v'),
    ("help", 'h'),
];

/// wrk2 calibrates itself for so long, and forgets what it measured meanwhile.
const CALIBRATION_S: u64 = 10;

/// A checked command line.
#[derive(Debug)]
struct Asked {
    tool: Tool,
    threads: u64,
    connections: u64,
    duration_s: u64,
    timeout_s: u64,
    /// Requests per second; wrk2 only, and required there.
    rate: Option<u64>,
    latency: bool,
    batches: bool,
    headers: Vec<String>,
    url: String,
}

/// What a command line of wrk or wrk2 means here.
fn translate(tool: Tool, arguments: &[String]) -> Result<Translation, Refusal> {
    let asked = Asked::read(tool, arguments)?;
    let mut translation = Translation::default();
    asked.write(&mut translation);
    asked.compare(&mut translation);
    asked.compare_latencies(&mut translation);
    Ok(translation)
}

impl Asked {
    fn read(tool: Tool, arguments: &[String]) -> Result<Asked, Refusal> {
        let grammar = if tool == Tool::Wrk2 { GRAMMAR_WRK2 } else { GRAMMAR_WRK };
        let given = getopt(&grammar, arguments).map_err(|problem| unknown(tool, &problem))?;
        let mut asked = Asked {
            tool,
            threads: 2,
            connections: 10,
            duration_s: 10,
            timeout_s: 2,
            rate: None,
            latency: false,
            batches: false,
            headers: Vec::new(),
            // What follows the URL is for scripts.
            url: given.plain.into_iter().next().unwrap_or_default(),
        };
        for (key, value) in given.options {
            asked.option(key, value)?;
        }
        asked.checked()
    }

    fn option(&mut self, key: char, value: String) -> Result<(), Refusal> {
        let number = |form: &str, read: Option<u64>| {
            let name = if key == 'T' { "--timeout".to_owned() } else { format!("-{key}") };
            let number = read.filter(|&number| number > 0);
            number.ok_or_else(|| Refusal::new(self.tool, format!("{name} {value:?} is no {form}")))
        };
        match key {
            't' => self.threads = number(COUNT, metric(&value))?,
            'c' => self.connections = number(COUNT, metric(&value))?,
            'd' => self.duration_s = number(TIME, seconds(&value))?,
            'T' => self.timeout_s = number(TIME, seconds(&value))?,
            'R' => self.rate = Some(number(COUNT, metric(&value))?),
            'L' | 'U' => self.latency = true,
            'B' => self.batches = true,
            'H' => self.headers.push(value),
            's' => {
                return Err(
                    Refusal::new(self.tool, format!("-s {value}: Lua scripts cannot be run")).hint(SCRIPTS)
                );
            }
            'h' => {
                return Err(
                    Refusal::new(self.tool, "its help is its own").hint("proofload load --help has ours")
                );
            }
            // Its version belongs to no result of ours.
            _ => {}
        }
        Ok(())
    }

    fn checked(self) -> Result<Asked, Refusal> {
        let example = format!("for example {} {}", self.tool.name(), self.tool.example().unwrap_or_default());
        if self.url.is_empty() {
            return Err(Refusal::new(self.tool, "there is no URL").hint(example));
        }
        if self.connections < self.threads {
            let problem = format!(
                "{} connections are too few for {} threads, of which each needs one",
                self.connections, self.threads
            );
            return Err(Refusal::new(self.tool, problem).hint("a greater -c or a smaller -t"));
        }
        if self.tool == Tool::Wrk2 && self.rate.is_none() {
            return Err(Refusal::new(self.tool, "it needs a rate, -R").hint(example));
        }
        Ok(self)
    }

    fn write(&self, translation: &mut Translation) {
        translation.flag_with("-t", self.threads);
        translation.flag_with("-c", self.connections);
        translation.flag_with("-d", period(self.duration_s));
        if let Some(rate) = self.rate {
            translation.flag_with("--rate", rate);
        }
        translation.flag_with("--timeout", period(self.timeout_s));
        if self.latency {
            translation.flag("--latency");
        }
        self.headers
            .iter()
            .filter(|line| line.contains(':'))
            .for_each(|line| translation.flag_with("-H", line));
        translation.unchecked_tls(&self.url);
        translation.flag(&self.url);
    }

    /// What is sent, and how it is counted.
    fn compare(&self, translation: &mut Translation) {
        let tool = self.tool.name();
        let (threads, connections) = (self.threads, self.connections);
        let opened = connections - connections % threads;
        if opened < connections {
            translation.differs(
                When::Always,
                format!(
                    "Asked for {connections} connections, {tool} opens {opened}, a multiple of its {threads} threads, \
                     whatever it prints."
                ),
            );
        }
        translation.differs(
            When::ProcessorsBelow(threads),
            format!(
                "{threads} threads, as {tool} starts, are more than this machine has processors. One of ours does tens of \
                 thousands of requests a second: -t 1 leaves more to the service."
            ),
        );
        self.compare_headers(translation);
        translation.differs(
            When::NotGood,
            format!("{tool} counts every answer in Requests/sec, whatever its status. Throughput here is good answers."),
        );
        translation.differs(
            When::Always,
            format!(
                "Transfer is in units of 1000 bytes. {tool}'s KB and MB are of 1024, so that it shows a smaller number for \
                 the same rate."
            ),
        );
    }

    fn compare_headers(&self, translation: &mut Translation) {
        let tool = self.tool.name();
        for line in &self.headers {
            let text = match line.split_once(':') {
                None => format!("-H {line:?} has no colon and is left out, as {tool} does without a word."),
                Some((_, value)) if !value.starts_with(' ') => {
                    format!(
                        "-H {line:?} is sent. {tool} leaves it out, for it wants a space after the colon."
                    )
                }
                Some(_) => continue,
            };
            translation.differs(When::Always, text);
        }
        if let Some(name) = twice(&self.headers) {
            let text = format!("All {name} headers are sent. {tool} sends the last only.");
            translation.differs(When::Always, text);
        }
        if !has_header(&self.headers, "user-agent") {
            let text = format!("Requests have a User-Agent, which {tool} does not send; -H sets another.");
            translation.differs(When::Always, text);
        }
    }

    /// What becomes of latencies.
    fn compare_latencies(&self, translation: &mut Translation) {
        let tool = self.tool.name();
        if self.tool == Tool::Wrk2 {
            self.compare_schedules(translation);
        } else {
            let timeout = "wrk waits on after --timeout, and leaves such an answer out of its percentiles. Here the request \
                           ends then, and is in them as at least that long (≥).";
            translation.differs(When::TimedOut, timeout);
            let correction = "After each slow answer wrk adds latencies that it did not measure, against coordinated omission, \
                              which can move all its percentiles. Here is what was measured; with --rate, waiting is too.";
            translation.differs(When::Always, correction);
        }
        translation.differs(
            When::Always,
            format!(
                "{tool}'s Avg, Stdev and +/- Stdev are not printed, for latencies are not normally distributed: read the \
                 percentiles."
            ),
        );
    }

    fn compare_schedules(&self, translation: &mut Translation) {
        let rows = "The latency that wrk2 calls corrected is the row \"response\" here; \"service\" is its uncorrected one.";
        translation.differs(When::Always, rows);
        let schedule = "wrk2 gives each connection its own part of the rate, and lets it catch up at no more than twice that. \
                        Here a request is sent when it is due, on whichever connection is free.";
        translation.differs(When::Always, schedule);
        if self.duration_s > CALIBRATION_S {
            let text = format!(
                "wrk2 calibrates itself for {CALIBRATION_S} s and forgets the latencies of these. Here all count."
            );
            translation.differs(When::Always, text);
        }
        let timeout = "wrk2 waits on after --timeout. Here the request ends then, and is in the percentiles as at least that \
                       long (≥).";
        translation.differs(When::TimedOut, timeout);
        if self.batches {
            let text = "-B says nothing here: a connection has one request at a time, and each is measured.";
            translation.differs(When::Always, text);
        }
    }
}

const COUNT: &str = "number from 1, such as 400, 1k or 2M";
const TIME: &str = "time from 1s, such as 30s, 2m or 1h";
const SCRIPTS: &str =
    "what scripts mostly set has a flag: -X METHOD, --body @FILE, -H 'NAME: VALUE', given before the --";

fn unknown(tool: Tool, problem: &str) -> Refusal {
    let letters = if tool == Tool::Wrk2 {
        "-t -c -d -R -s -H -L -U -B --timeout"
    } else {
        "-t -c -d -s -H --latency --timeout"
    };
    Refusal::new(tool, problem)
        .hint(format!("{}'s are {letters}; flags of proofload go before the --", tool.name()))
}

/// The first name that stands in several of these header lines, letter for letter as wrk compares them.
fn twice(headers: &[String]) -> Option<&str> {
    let names: Vec<_> =
        headers.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    names.iter().enumerate().find(|(index, name)| names[index + 1..].contains(name)).map(|(_, name)| *name)
}
