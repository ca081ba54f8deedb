//! wrk 3 and 4, and wrk2, which prints the same and more. wrk counts a response that exceeded its limit as a
//! timeout *and* as a request. wrk2 checks its connections every 2 s, and counts those that wait longer than the
//! limit, so that one response may be counted several times.

use model::quantity::many as nouns;

use super::{
    Beginning, Divides, LateResponses, Meaning, Tool, ToolRow, autocannon, is_start, is_total,
    named_counts, percent, starts, take_total, usual,
};
use crate::compatibility::{
    DifferenceCondition, Given, Grammar, ToolRefusal, Translation, getopt, has_header, metric,
    period, seconds,
};
use crate::draft::{LineTaken, Part, RunDraft, keep};
use crate::number::{self, Lone};

/// wrk's output and command lines.
pub static WRK: ToolRow = ToolRow {
    translate: Some((|given| translate(Tool::Wrk, given), EXAMPLE_WRK)),
    ..wrk(Tool::Wrk, "wrk")
};
/// The same for wrk2.
pub static WRK2: ToolRow = ToolRow {
    prints_as: Some(Tool::Wrk),
    late: LateResponses::Checked,
    translate: Some((|given| translate(Tool::Wrk2, given), EXAMPLE_WRK2)),
    ..wrk(Tool::Wrk2, "wrk2")
};

const fn wrk(tool: Tool, name: &'static str) -> ToolRow {
    ToolRow {
        flags: &[
            (&["c", "connections"], Meaning::Connections),
            (&["t", "threads"], Meaning::Threads),
            (&["d", "duration"], Meaning::Duration),
            (&["R", "rate"], Meaning::Rate),
            (&["H", "header"], Meaning::Header),
            (&["T", "timeout"], Meaning::Timeout),
        ],
        late: LateResponses::Counted,
        limit_s: Some(2.0),
        divides: Divides::ConnectionsByThreads,
        fails_alone: |text, commanded| commanded && text.starts_with("unable to connect to "),
        ..usual(tool, name, begins, take)
    }
}

fn begins(text: &str) -> Option<Beginning> {
    match text {
        _ if text.starts_with("Running ") && text.contains(" test @ ") => Beginning::FIRST,
        _ if making(text).is_some() => Beginning::FIRST,
        _ if starts(
            text,
            "Thread Stats|Requests/sec:|Socket errors:|Non-2xx or 3xx responses:",
        ) =>
        {
            Beginning::LATER
        }
        _ if is_total(text, false) || is_latency(text) => Beginning::LATER,
        _ => None,
    }
}

/// `Making 100000 requests to http://…`, of version 2.
fn making(text: &str) -> Option<(u64, &str)> {
    let (count, url) = text.strip_prefix("Making ")?.split_once(" requests to ")?;
    Some((number::whole(count)?, url.trim()))
}

/// `Latency   635.91us    0.89ms  12.92ms   93.69%`
fn is_latency(text: &str) -> bool {
    let figures = |rest: &str| rest.split_whitespace().count() == 4 && rest.ends_with('%');
    text.strip_prefix("Latency ").is_some_and(figures)
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if let Some(taken) = autocannon::instead_of_wrk(text, draft) {
        return taken;
    }
    // Edited output may be a Markdown table.
    let row = text.contains('|').then(|| text.replace('|', " "));
    let text = row.as_deref().unwrap_or(text);
    if (text.contains(" test @ ") && is_start(text, draft)) || is_corrected(text, draft) {
        return LineTaken::Ours;
    }
    if let Some((requests, url)) = making(text) {
        draft.run.load.requests = Some(requests);
        draft.run.url = Some(url.to_owned());
        return LineTaken::Ours;
    }
    // Only the transfer follows the rate. Users may have pasted a few lines each of several runs.
    if draft.run.requests_per_s.is_some() && begins(text).is_some() {
        return LineTaken::Again;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [threads, "threads" | "thread", "and", connections, word, ..]
            if word.starts_with("connection") =>
        {
            draft.run.load.threads = number::whole(threads);
            draft.run.load.connections = number::whole(connections);
        }
        // Some versions of wrk2 print p99 instead of the maximum.
        ["Thread", "Stats", columns @ ..] => {
            draft.columns = columns.iter().map(|name| (*name).to_owned()).collect();
        }
        ["Latency", "Distribution" | "Distribution:", ..] => draft.part = Part::Quantiles,
        ["Latency", mean, sd, max, ..] => {
            let us = |word: &str| number::micros(word, Lone::Thousands);
            let measured = [mean, max].map(|word| (us(word), word.contains("nan")));
            let quantile = draft.columns.get(2).and_then(|name| percent(name));
            draft.moments(us(mean), us(sd), us(max).filter(|_| quantile.is_none()));
            draft.quantile(quantile, us(max));
            if measured.contains(&(None, false)) {
                draft.not_understood();
            }
        }
        ["Req/Sec", ..] => draft.part = Part::Summary,
        ["Socket", "errors:", ..] => sockets(text, draft),
        ["Non-2xx", "or", "3xx", "responses:", count, ..] => {
            draft.run.failures.status = number::whole(count);
            if draft.run.failures.status.is_none() {
                draft.not_understood();
            }
        }
        ["Socket" | "Non-2xx", ..] => draft.not_understood(),
        ["Requests/sec:", rate, ..] => return draft.rate(rate, Lone::Thousands),
        ["Transfer/sec:", ..] => ended(draft),
        [share, time, ..] if draft.part == Part::Quantiles && percent(share).is_some() => {
            draft.quantile(percent(share), number::micros(time, Lone::Thousands));
        }
        _ if is_total(text, false) => return total(text, draft),
        // Edited output may lack the bytes.
        [requests, "requests", "in", time] if number::micros(time, Lone::Thousands).is_some() => {
            let taken = draft.requests(requests);
            if taken == LineTaken::Ours {
                let us = number::micros(time, Lone::Thousands);
                keep(&mut draft.run.duration_s, us.map(|us| us / 1e6));
            }
            return taken;
        }
        _ => return LineTaken::Foreign,
    }
    LineTaken::Ours
}

/// The last line. Lines about failures come before it, and only if there are any.
fn ended(draft: &mut RunDraft) {
    draft.whole = true;
    // A line that was not understood may be about failures.
    if draft.run.requests.is_some() && draft.run.unread.is_empty() {
        draft.run.failures.status.get_or_insert(0);
        draft.run.failures.timeouts.get_or_insert(0);
    }
}

/// Handles lines that only wrk2 prints.
fn is_corrected(text: &str, draft: &mut RunDraft) -> bool {
    if text.starts_with("Thread calibration:") || text.contains("(HdrHistogram - ") {
        draft.run.tool = Tool::Wrk2;
        // The second distribution is the one that excludes waiting.
        draft.part = if text.contains("- Recorded") {
            Part::Quantiles
        } else {
            Part::Skipped
        };
        return true;
    }
    if text.starts_with("Detailed Percentile spectrum") {
        draft.part = Part::Skipped;
        return true;
    }
    let spectrum = |text: &str| {
        text.split_whitespace().count() == 4 && text.starts_with(|c: char| c.is_ascii_digit())
    };
    let rest = text.starts_with("#[") || text.starts_with("Value ") || text.starts_with("-----");
    draft.part == Part::Skipped
        && (rest || spectrum(text) || text.ends_with('s') && text.contains('%'))
}

fn total(text: &str, draft: &mut RunDraft) -> LineTaken {
    let taken = draft.requests(text.split_whitespace().next().unwrap_or_default());
    if taken == LineTaken::Ours {
        take_total(text, draft, Lone::Thousands, 1024.0);
        // `Running 2m test` may be one of 90 s, which is `1.50m` here.
        let asked = &mut draft.run.load.duration_s;
        let rounded = |asked: f64, took: f64| {
            asked >= 60.0 && (0.05..=0.5).contains(&(asked / took - 1.0).abs())
        };
        if let (Some(printed), Some(took)) = (*asked, draft.run.duration_s)
            && rounded(printed, took)
        {
            *asked = Some(took.round());
        }
    }
    taken
}

/// Kinds of socket errors in one line.
const SOCKET_ERRORS: u32 = 4;

fn sockets(text: &str, draft: &mut RunDraft) {
    let failures = &mut draft.run.failures;
    let mut read = 0;
    for (name, count) in named_counts(text, false) {
        read += u32::from(count.is_some());
        match name {
            "connect" => failures.connect = count,
            "read" => failures.read = count,
            "write" => failures.write = count,
            "timeout" => failures.timeouts = count,
            _ => {}
        }
    }
    if read < SOCKET_ERRORS {
        draft.not_understood();
    }
}

/// Valid command lines, for hints.
const EXAMPLE_WRK: &str = "-t2 -c64 -d30s http://127.0.0.1:3000/";
const EXAMPLE_WRK2: &str = "-t2 -c64 -d30s -R1000 http://127.0.0.1:3000/";

const GRAMMAR_WRK: Grammar = Grammar {
    short: "t:c:d:s:H:T:Lvh",
    long: GRAMMAR_LONG,
    permutes: true,
};
const GRAMMAR_WRK2: Grammar = Grammar {
    short: "t:c:d:s:H:T:R:LUBvh",
    long: GRAMMAR_LONG,
    permutes: true,
};
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

/// wrk2's calibration time, whose measurements it discards.
const CALIBRATION_S: u64 = 10;

/// A checked command line.
struct WrkCommand<'a> {
    tool: Tool,
    given: &'a Given,
    threads: u64,
    connections: u64,
    duration_s: u64,
    timeout_s: u64,
    /// Requests per second. Only for wrk2, where it is required.
    rate: Option<u64>,
    url: &'a str,
}

/// Translates a command line of wrk or wrk2.
fn translate(tool: Tool, arguments: &[String]) -> Result<Translation, ToolRefusal> {
    let grammar = if tool == Tool::Wrk2 {
        GRAMMAR_WRK2
    } else {
        GRAMMAR_WRK
    };
    let given = getopt(&grammar, arguments).map_err(|problem| unknown(tool, &problem))?;
    // Arguments after the URL are for scripts.
    let url = given.plain.first().map_or("", String::as_str);
    let (threads, connections, duration_s, timeout_s) = (2, 10, 10, 2);
    let mut asked = WrkCommand {
        tool,
        given: &given,
        threads,
        connections,
        duration_s,
        timeout_s,
        rate: None,
        url,
    };
    for (key, value) in &given.options {
        asked.option(*key, value)?;
    }
    asked.check()?;
    let mut translation = Translation::default();
    asked.write(&mut translation);
    translation.differs(asked.sent());
    translation.differs(asked.header_differences());
    translation.differs(asked.counted());
    Ok(translation)
}

impl WrkCommand<'_> {
    fn option(&mut self, key: char, value: &str) -> Result<(), ToolRefusal> {
        let number = |form: &str, read: Option<u64>| {
            let name = if key == 'T' {
                "--timeout".to_owned()
            } else {
                format!("-{key}")
            };
            let number = read.filter(|&number| number > 0);
            number.ok_or_else(|| {
                ToolRefusal::new(self.tool, format!("{name} {value:?} is no {form}"))
            })
        };
        let refused = |problem: String, hint| Err(ToolRefusal::new(self.tool, problem).hint(hint));
        match key {
            't' => self.threads = number(COUNT, metric(value))?,
            'c' => self.connections = number(COUNT, metric(value))?,
            'd' => self.duration_s = number(TIME, seconds(value))?,
            'T' => self.timeout_s = number(TIME, seconds(value))?,
            'R' => self.rate = Some(number(COUNT, metric(value))?),
            's' => return refused(format!("-s {value}: Lua scripts cannot be run"), SCRIPTS),
            'h' => {
                return refused(
                    "its help is its own".to_owned(),
                    "proofload load --help has ours",
                );
            }
            // Other options are evaluated where needed. The version is not part of our results.
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ToolRefusal> {
        let example = format!(
            "for example {} {}",
            self.tool.name(),
            self.tool.example().unwrap_or_default()
        );
        let (connections, threads) = (self.connections, self.threads);
        let too_few = format!(
            "-c {connections} is too few for {}, of which each needs a connection",
            nouns(threads, "thread")
        );
        let problems = [
            (self.url.is_empty(), "there is no URL", example.as_str()),
            (
                connections < threads,
                too_few.as_str(),
                "a greater -c or a smaller -t",
            ),
            (
                self.tool == Tool::Wrk2 && self.rate.is_none(),
                "it needs a rate, -R",
                &example,
            ),
        ];
        match problems.into_iter().find(|(is_so, ..)| *is_so) {
            Some((_, problem, hint)) => Err(ToolRefusal::new(self.tool, problem).hint(hint)),
            None => Ok(()),
        }
    }

    fn write(&self, translation: &mut Translation) {
        translation.flag_with("-t", self.threads);
        translation.flag_with("-c", self.connections);
        translation.flag_with("-d", period(self.duration_s));
        if let Some(rate) = &self.rate {
            translation.flag_with("--rate", rate);
            translation.flag_with("--arrivals", "constant");
        }
        translation.flag_with("--timeout", period(self.timeout_s));
        if self.given.has("LU") {
            translation.flag("--latency");
        }
        let headers = self.given.values('H').filter(|line| line.contains(':'));
        headers.for_each(|line| translation.flag_with("-H", line));
        translation.unchecked_tls(self.url);
        translation.flag(self.url);
    }

    /// Differences in the sent requests.
    fn sent(&self) -> [(bool, DifferenceCondition, String); 2] {
        let (tool, threads, connections) = (self.tool.name(), self.threads, self.connections);
        let opened = connections - connections % threads;
        let fewer = format!(
            "Asked for {connections} connections, {tool} opens {opened}, a multiple of its {threads} \
             threads, whatever it prints."
        );
        let many = format!(
            "{threads} threads, as {tool} starts, are more than this machine has processors. One of ours \
             does tens of thousands of requests a second: -t 1 leaves more to the service."
        );
        [
            (opened < connections, DifferenceCondition::Always, fewer),
            (true, DifferenceCondition::ProcessorsBelow(threads), many),
        ]
    }

    fn header_differences(&self) -> Vec<(bool, DifferenceCondition, String)> {
        let tool = self.tool.name();
        let odd = self.given.values('H').filter_map(|line| match line.split_once(':') {
            None => Some(format!("-H {line:?} has no colon and is left out, as {tool} does without a word.")),
            Some((_, value)) if value.starts_with(' ') => None,
            Some(_) => Some(format!(
                "-H {line:?} is sent. {tool} leaves it out, for it wants a space after the colon."
            )),
        });
        // Case-sensitive, as wrk compares them.
        let names = self
            .given
            .values('H')
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name);
        let names: Vec<&str> = names.collect();
        let mut places = names.iter().enumerate();
        let twice = places
            .find(|(at, name)| names[at + 1..].contains(name))
            .map(|(_, name)| name);
        let twice =
            twice.map(|name| format!("All {name} headers are sent. {tool} sends the last only."));
        let agent = (!has_header(self.given.values('H'), "user-agent")).then(|| {
            format!("Requests have a User-Agent, which {tool} does not send; -H sets another.")
        });
        odd.chain(twice)
            .chain(agent)
            .map(|text| (true, DifferenceCondition::Always, text))
            .collect()
    }

    /// Differences in counting responses and latencies.
    fn counted(&self) -> Vec<(bool, DifferenceCondition, String)> {
        let tool = self.tool.name();
        let (wrk, wrk2) = (self.tool == Tool::Wrk, self.tool == Tool::Wrk2);
        [
            (true, DifferenceCondition::NotGood, format!(
                "{tool} counts every response in Requests/sec, whatever its status. Throughput here is successful responses."
            )),
            (true, DifferenceCondition::Always, format!(
                "Transfer is in units of 1000 bytes. {tool}'s KB and MB are of 1024, so that it shows a smaller number for the \
                 same rate."
            )),
            (wrk2, DifferenceCondition::Always,
                "The latency that wrk2 calls corrected is the row \"response\" here; \"service\" is its uncorrected one.".into()),
            (wrk2, DifferenceCondition::Always,
                "wrk2 gives each connection its own part of the rate, and lets it catch up at no more than twice that. Here a \
                 request is sent when it is due, on whichever connection is free.".into()),
            (wrk2 && self.duration_s > CALIBRATION_S, DifferenceCondition::Always, format!(
                "wrk2 calibrates itself for {CALIBRATION_S} s and forgets the latencies of these. Here all count."
            )),
            (wrk2, DifferenceCondition::TimedOut,
                "wrk2 waits on after --timeout. Here the request ends then, and is in the percentiles as at least that long (≥).".into()),
            (wrk2 && self.given.has("B"), DifferenceCondition::Always,
                "-B says nothing here: a connection has one request at a time, and each is measured.".into()),
            (wrk, DifferenceCondition::TimedOut,
                "wrk waits on after --timeout, and leaves such a response out of its percentiles. Here the request ends then, and is \
                 in them as at least that long (≥).".into()),
            (wrk, DifferenceCondition::Always,
                "After each slow response wrk adds latencies that it did not measure, against coordinated omission, which can move all \
                 its percentiles. Here is what was measured; with --rate, waiting is too.".into()),
            (true, DifferenceCondition::Always, format!(
                "{tool}'s Avg, Stdev and +/- Stdev are not printed, for latencies are not normally distributed: read the \
                 percentiles."
            )),
        ]
        .into()
    }
}

const COUNT: &str = "number from 1, such as 400, 1k or 2M";
const TIME: &str = "time from 1s, such as 30s, 2m or 1h";
const SCRIPTS: &str = "what scripts mostly set has a flag: -X METHOD, --body @FILE, -H 'NAME: VALUE', given before the --";

fn unknown(tool: Tool, problem: &str) -> ToolRefusal {
    let letters = if tool == Tool::Wrk2 {
        "-t -c -d -R -s -H -L -U -B --timeout"
    } else {
        "-t -c -d -s -H --latency --timeout"
    };
    ToolRefusal::new(tool, problem).hint(format!(
        "{}'s are {letters}; flags of proofload go before the --",
        tool.name()
    ))
}
