//! wrk 4 and wrk2: their options, their defaults, and what they count and correct otherwise than we do.
//!
//! Checked against wrk 4.1.0 itself, and against the source of wrk2. Of our flags it knows the names only.

use super::getopt::{self, Grammar};
use super::number::{metric, period, seconds};
use super::{Tool, Translation, When, names};
use crate::exit::Failed;

const WRK: Grammar = Grammar { short: "t:c:d:s:H:T:Lvh", long: LONG, permutes: true };
const WRK2: Grammar = Grammar { short: "t:c:d:s:H:T:R:LUBvh", long: LONG, permutes: true };
const LONG: &[(&str, char)] = &[
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
pub fn translate(tool: Tool, arguments: &[String]) -> Result<Translation, Failed> {
    let asked = Asked::read(tool, arguments)?;
    let mut translation = Translation::default();
    asked.write(&mut translation);
    asked.compare(&mut translation);
    asked.compare_latencies(&mut translation);
    Ok(translation)
}

impl Asked {
    fn read(tool: Tool, arguments: &[String]) -> Result<Asked, Failed> {
        let grammar = if tool == Tool::Wrk2 { WRK2 } else { WRK };
        let given = getopt::read(&grammar, arguments).map_err(|problem| unknown(tool, &problem))?;
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

    fn option(&mut self, key: char, value: String) -> Result<(), Failed> {
        let number = |form: &str, read: Option<u64>| {
            let name = if key == 'T' { "--timeout".to_owned() } else { format!("-{key}") };
            let number = read.filter(|&number| number > 0);
            number.ok_or_else(|| self.tool.refuses(format!("{name} {value:?} is no {form}")))
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
                return Err(self
                    .tool
                    .refuses(format!("-s {value}: Lua scripts cannot be run"))
                    .hint(SCRIPTS));
            }
            'h' => {
                return Err(self.tool.refuses("its help is its own").hint("proofload load --help has ours"));
            }
            // Its version belongs to no result of ours.
            _ => {}
        }
        Ok(())
    }

    fn checked(self) -> Result<Asked, Failed> {
        let example = format!("for example {} {}", self.tool.name(), self.tool.example());
        if self.url.is_empty() {
            return Err(self.tool.refuses("there is no URL").hint(example));
        }
        if self.connections < self.threads {
            let problem = format!(
                "{} connections are too few for {} threads, of which each needs one",
                self.connections, self.threads
            );
            return Err(self.tool.refuses(problem).hint("a greater -c or a smaller -t"));
        }
        if self.tool == Tool::Wrk2 && self.rate.is_none() {
            return Err(self.tool.refuses("it needs a rate, -R").hint(example));
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
        if !names(&self.headers, "user-agent") {
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

fn unknown(tool: Tool, problem: &str) -> Failed {
    let letters = if tool == Tool::Wrk2 {
        "-t -c -d -R -s -H -L -U -B --timeout"
    } else {
        "-t -c -d -s -H --latency --timeout"
    };
    tool.refuses(problem)
        .hint(format!("{}'s are {letters}; flags of proofload go before the --", tool.name()))
}

/// The first name that stands in several of these header lines, letter for letter as wrk compares them.
fn twice(headers: &[String]) -> Option<&str> {
    let names: Vec<_> =
        headers.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    names.iter().enumerate().find(|(index, name)| names[index + 1..].contains(name)).map(|(_, name)| *name)
}
