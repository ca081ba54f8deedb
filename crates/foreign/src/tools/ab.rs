//! ApacheBench 2. Its `Time per request` is connections × time / requests by definition; the mean that it
//! measured is in the table of connection times. It aborts at the first reset without `-r`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::quantity::{count, many};

use super::{Beginning, Meaning, Tool, ToolRow, between, percent, starts, usual};
use crate::compatibility::{
    DifferenceCondition, Given, Grammar, ToolRefusal, Translation, getopt, has_header, period,
    whole,
};
use crate::draft::{LineTaken, Part, RunDraft, keep};
use crate::number::{self, Lone};

/// ab's output and command lines.
pub static AB: ToolRow = ToolRow {
    flags: &[
        (&["c"], Meaning::Connections),
        (&["n"], Meaning::Requests),
        (&["t"], Meaning::Duration),
        (&["k"], Meaning::Keep),
        (&["H"], Meaning::Header),
        (&["s"], Meaning::Timeout),
    ],
    http_1_0: true,
    limit_s: Some(30.0),
    fails_alone: |text, _| text.starts_with("apr_"),
    translate: Some((translate, EXAMPLE)),
    ..usual(Tool::Ab, "ab", begins, take)
};

/// Lines that come before the rate.
const BEFORE_RATE: &str = "Server Software:|Server Hostname:|Document Path:|Concurrency Level:|Time taken for tests:|Complete requests:|\
                           Failed requests:|Non-2xx responses:|Keep-Alive requests:|Write errors:";

fn begins(text: &str) -> Option<Beginning> {
    match text {
        _ if text.starts_with("This is ApacheBench") => Beginning::FIRST,
        _ if text.starts_with("Benchmarking ") && text.contains("(be patient)") => {
            Some(Beginning {
                certain: true,
                first: false,
            })
        }
        _ if starts(text, BEFORE_RATE) || is_rate(text) => Beginning::LATER,
        _ => None,
    }
}

/// `Requests per second:    175.35 [#/sec] (mean)`. Other tools print the name without this unit.
fn is_rate(text: &str) -> bool {
    text.starts_with("Requests per second:") && text.contains("[#/sec]")
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if is_own_warning(text, draft) {
        return LineTaken::Ours;
    }
    if is_abort(text, draft) {
        return LineTaken::Ours;
    }
    if draft.part == Part::Quantiles && quantile(text, draft) {
        return LineTaken::Ours;
    }
    // In edited output failures may follow the rate.
    let failed = text.starts_with("Failed requests:") && draft.run.failures.other.is_none();
    if draft.run.requests_per_s.is_some() && starts(text, BEFORE_RATE) && !failed {
        return LineTaken::Again;
    }
    let Some((name, value)) = text.split_once(':') else {
        return plain(text);
    };
    let value = value.trim();
    let first = value.split_whitespace().next().unwrap_or_default();
    let counted = number::whole(first);
    if COUNTS.contains(&name.trim()) && counted.is_none() {
        draft.not_understood();
    }
    let run = &mut draft.run;
    match name.trim() {
        "Server Software" if run.requests.is_some() => return LineTaken::Again,
        "Server Software" | "Document Length" | "HTML transferred" | "Transfer rate" => {}
        "Server Hostname" => run.url = Some(format!("http://{first}")),
        "Server Port" if matches!(first, "80" | "443") || number::whole(first).is_none() => {}
        "Server Port" => run.url = run.url.take().map(|url| format!("{url}:{first}")),
        "SSL/TLS Protocol" => {
            run.url = run
                .url
                .take()
                .map(|url| url.replacen("http://", "https://", 1))
        }
        "Document Path" => run.url = run.url.take().map(|url| url + first),
        "Concurrency Level" => run.load.connections = counted,
        "Time taken for tests" => run.duration_s = number::decimal(first),
        "Complete requests" => return draft.requests(first),
        "Failed requests" => run.failures.other = counted,
        "Keep-Alive requests" => run.keep_alive_requests = counted,
        "Non-2xx responses" => run.failures.status = counted,
        "Write errors" => run.failures.write = counted,
        "Total transferred" => run.bytes = number::figure(first, Lone::Thousands),
        "Requests per second" if !is_rate(text) && !draft.certain => {
            draft.refused = Some("a tool that prints nearly what ab prints");
        }
        "Requests per second" => return draft.rate(first, Lone::Decimal),
        "Time per request" => time(value, first, draft),
        "Total" => moments(value, draft),
        // Their columns are part of Total.
        "Connect" | "Processing" | "Waiting" => {}
        _ if text.starts_with("(Connect:") => causes(text, draft),
        _ => return plain(text),
    }
    LineTaken::Ours
}

/// Lines without a parsed figure.
fn plain(text: &str) -> LineTaken {
    let known = "This is ApacheBench|Copyright |Licensed to The Apache|Benchmarking |Completed |Finished |Total body sent:|Total POSTed:|Total PUT:|Server Name:|TLS Server Name:|\
                 Server Temp Key:|Connection Times (ms)|\
                 min mean|min  mean|Percentage of the requests served|Percentage of requests served|..done";
    let progress = text
        .split_whitespace()
        .all(|word| word.trim_end_matches('%').parse::<u64>().is_ok());
    let ours = starts(text, known)
        || [
            "(across all concurrent requests)",
            "kb/s sent",
            "kb/s total",
        ]
        .iter()
        .any(|end| text.ends_with(end));
    if ours || (progress && !text.is_empty()) {
        LineTaken::Ours
    } else {
        LineTaken::Foreign
    }
}

/// `Time per request: 1610.3 [ms] (mean)`. The second such line divides by the connections.
fn time(value: &str, first: &str, draft: &mut RunDraft) {
    let each = value.contains("across all concurrent");
    if value.contains("(mean)") || !each && draft.run.latency.mean_us.is_none() {
        let us = number::decimal(first).map(|ms| ms * 1e3);
        draft.run.latency.mean_computed = true;
        keep(&mut draft.run.latency.mean_us, us);
        if us.is_none() {
            draft.not_understood();
        }
    }
    // The last part that is always present. The tables after it may be switched off.
    draft.whole = true;
}

/// Below this the mean of the table, in whole milliseconds, is too coarse.
const WHOLE_MS_MIN: f64 = 10.0;
/// Lines with a count.
const COUNTS: [&str; 6] = [
    "Concurrency Level",
    "Complete requests",
    "Failed requests",
    "Keep-Alive requests",
    "Non-2xx responses",
    "Write errors",
];

/// `WARNING: The median and mean for the total time are not within a normal deviation`, and the line after it.
fn is_own_warning(text: &str, draft: &mut RunDraft) -> bool {
    let grave = text.starts_with("ERROR: The median and mean");
    if grave || text.starts_with("WARNING: The median and mean") {
        if let Some(time) = between(text, "mean for the ", " are") {
            let apart = if grave { "far apart" } else { "apart" };
            draft
                .run
                .warnings
                .push(format!("median and mean of the {time} are {apart}"));
        }
        return true;
    }
    text.contains("These results are NOT reliable")
        || text.contains("These results are probably not that reliable")
}

/// `Total:  1 2 0.5 2 9` is min, mean, sd, median, max in milliseconds.
fn moments(value: &str, draft: &mut RunDraft) {
    let ms: Vec<Option<f64>> = value.split_whitespace().map(number::decimal).collect();
    if let [_, Some(mean), sd, _, max] = ms[..] {
        // Whole milliseconds, so that a mean of less than 10 is better computed.
        if mean >= WHOLE_MS_MIN {
            draft.run.latency.mean_us = Some(mean * 1e3);
            draft.run.latency.mean_computed = false;
        }
        draft.run.latency.sd_us = sd.map(|ms| ms * 1e3);
        draft.run.latency.max_us = max.map(|ms| ms * 1e3);
        draft.part = Part::Quantiles;
    }
}

/// `  99%    298`, in milliseconds.
fn quantile(text: &str, draft: &mut RunDraft) -> bool {
    let mut words = text.split_whitespace();
    let (Some(share), Some(ms)) = (words.next(), words.next()) else {
        return false;
    };
    let Some(percent) = percent(share) else {
        return false;
    };
    draft.quantile(Some(percent), number::decimal(ms).map(|ms| ms * 1e3));
    true
}

/// `(Connect: 0, Receive: 0, Length: 12, Exceptions: 0)` divides the failed requests.
fn causes(text: &str, draft: &mut RunDraft) {
    let failures = &mut draft.run.failures;
    for (name, count) in text
        .trim_matches(['(', ')'])
        .split(',')
        .filter_map(|part| part.split_once(':'))
    {
        let count = number::whole(count.trim());
        match name.trim() {
            "Connect" => failures.connect = count,
            "Receive" => failures.read = count,
            "Length" => failures.length = count,
            "Exceptions" => failures.other = count,
            _ => {}
        }
    }
}

/// `apr_socket_recv: Connection reset by peer (104)`, then `Total of 12 requests completed`.
fn is_abort(text: &str, draft: &mut RunDraft) -> bool {
    if text.starts_with("apr_") || text.starts_with("Test aborted") {
        let kept: String = text.chars().take(120).collect();
        draft.run.abort.get_or_insert(kept);
        draft.certain = true;
        return true;
    }
    let Some(count) = between(text, "Total of ", " requests completed") else {
        return false;
    };
    draft.run.requests = number::whole(count);
    draft.run.abort.get_or_insert_with(|| "gave up".to_owned());
    draft.whole = true;
    true
}

/// A valid command line, for hints.
const EXAMPLE: &str = "-k -n 10000 -c 64 http://127.0.0.1:3000/";

/// apr_getopt's grammar: no long options, and none after the URL.
const GRAMMAR: Grammar = Grammar {
    short: "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:",
    long: &[],
    permutes: false,
};

/// The number of requests that -t implies, unless -n follows it.
const REQUESTS_OF_TIME_LIMIT: u64 = 50_000;

/// A checked command line.
struct AbCommand<'a> {
    given: &'a Given,
    requests: u64,
    concurrency: u64,
    /// Zero means none.
    time_limit_s: u64,
    timeout_s: u64,
    method: Option<String>,
}

/// Translates a command line of ab.
fn translate(arguments: &[String]) -> Result<Translation, ToolRefusal> {
    let refused =
        |problem: String, hint: String| Err(ToolRefusal::new(Tool::Ab, problem).hint(hint));
    let given = getopt(&GRAMMAR, arguments)
        .map_err(|problem| ToolRefusal::new(Tool::Ab, problem).hint(OPTIONS))?;
    match given.plain.as_slice() {
        [_] => {}
        [] => {
            return refused(
                "there is no URL".into(),
                format!("for example ab {EXAMPLE}"),
            );
        }
        [url, more, ..] => {
            let problem = format!("{more:?} comes after the URL, {url}");
            return refused(
                problem,
                "ab takes its options before the URL, and one URL".into(),
            );
        }
    }
    let mut asked = AbCommand {
        given: &given,
        requests: 1,
        concurrency: 1,
        time_limit_s: 0,
        timeout_s: 30,
        method: None,
    };
    for (key, value) in &given.options {
        asked.option(*key, value)?;
    }
    let AbCommand {
        requests,
        concurrency,
        ..
    } = asked;
    if concurrency > requests {
        let problem = format!(
            "-c {concurrency} is more than {} in all (-n)",
            many(requests, "request")
        );
        return refused(
            problem,
            "without -n or -t it is one request; ab refuses this too".into(),
        );
    }
    let mut translation = Translation::default();
    asked.write(&mut translation);
    translation.differs(asked.differences());
    Ok(translation)
}

impl AbCommand<'_> {
    fn option(&mut self, key: char, value: &str) -> Result<(), ToolRefusal> {
        match key {
            'n' => self.requests = number_of(key, value, 1)?,
            'c' => self.concurrency = number_of(key, value, 1)?,
            't' => {
                (self.time_limit_s, self.requests) =
                    (number_of(key, value, 0)?, REQUESTS_OF_TIME_LIMIT)
            }
            's' => self.timeout_s = number_of(key, value, 1)?,
            'm' => self.method = Some(value.to_owned()),
            'i' => self.only_method(key, "HEAD")?,
            'p' => self.only_method(key, "POST")?,
            'u' => self.only_method(key, "PUT")?,
            // Progress (-q) is shown on terminals only, and ab's confidence estimators (-S) are never
            // printed.
            _ if "kdlrwxyzvTCAHBqS".contains(key) => {}
            refused => return Err(refusal(refused, value)),
        }
        Ok(())
    }

    /// -i, -p and -u set the method, so no other option may have set it before. -m may come later.
    fn only_method(&mut self, key: char, method: &str) -> Result<(), ToolRefusal> {
        let Some(other) = self.method.replace(method.to_owned()) else {
            return Ok(());
        };
        let problem = format!("-{key} makes it a {method}, but it is a {other} already");
        Err(ToolRefusal::new(Tool::Ab, problem)
            .hint("ab takes one of -i, -p and -u, and -m only after it"))
    }

    fn write(&self, translation: &mut Translation) {
        match self.time_limit_s {
            0 => translation.flag_with("-n", self.requests),
            limit_s => translation.flag_with("-d", period(limit_s)),
        }
        translation.flag_with("-c", self.concurrency);
        translation.flag_with("--timeout", period(self.timeout_s));
        let given = self.given;
        // -d removes the table of percentiles.
        for (is_so, flag) in [
            (!given.has("k"), "--no-keepalive"),
            (!given.has("d"), "--latency"),
        ] {
            if is_so {
                translation.flag(flag);
            }
        }
        if let Some(source) = given.values('B').next_back() {
            translation.flag_with("--source", source);
        }
        let body = given.values('p').chain(given.values('u')).next();
        let by_itself = if body.is_some() { "POST" } else { "GET" };
        if let Some(method) = self.method.as_deref().filter(|&method| method != by_itself) {
            translation.flag_with("-X", method);
        }
        let mut headers = Vec::new();
        if let Some(file) = body {
            translation.flag_with("--body", format!("@{file}"));
            let kind = given.values('T').next_back().unwrap_or("text/plain");
            headers.push(format!("Content-Type: {kind}"));
        }
        if given.has("C") {
            headers.push(format!(
                "Cookie: {}",
                given.values('C').collect::<Vec<_>>().join("; ")
            ));
        }
        let basic = |credentials: &str| {
            format!(
                "Authorization: Basic {}",
                STANDARD.encode(credentials.trim_start())
            )
        };
        headers.extend(given.values('A').map(basic));
        headers.extend(given.values('H').map(str::to_owned));
        if !has_header(given.values('H'), "accept") {
            headers.push("Accept: */*".to_owned());
        }
        headers
            .iter()
            .for_each(|line| translation.flag_with("-H", line));
        let url = &given.plain[0];
        // ab makes a full handshake for each connection.
        if translation.unchecked_tls(url) && !given.has("k") {
            translation.flag("--no-resume");
        }
        translation.flag(url);
    }

    fn differences(&self) -> [(bool, DifferenceCondition, String); 11] {
        let given = self.given;
        let names_itself = !has_header(given.values('H'), "user-agent");
        let agent = if names_itself {
            ", and its User-Agent is ApacheBench"
        } else {
            ""
        };
        [
            (self.time_limit_s > 0, DifferenceCondition::AnsweredOver(self.requests), format!(
                "ab would have stopped after {} requests, before -t was over.", count(self.requests)
            )),
            (true, DifferenceCondition::Always, format!(
                "Requests are HTTP/1.1. ab's are HTTP/1.0{agent}: a service may answer those otherwise, without chunks, or \
                 closing the connection."
            )),
            (given.values('C').count() > 1, DifferenceCondition::Always, "All cookies are sent. ab sends the last -C only.".into()),
            (!given.has("l"), DifferenceCondition::Always,
                "ab counts a response whose length is not the first one's as failed (Length). Here lengths are not compared, as \
                 with its -l.".into()),
            (true, DifferenceCondition::NotGood,
                "ab counts every response in Requests per second, whatever its status. Throughput here is successful responses.".into()),
            (true, DifferenceCondition::TimedOut, format!(
                "ab ends the whole run once nothing at all has come for {}. Here each request has that time to itself.",
                period(self.timeout_s)
            )),
            (!given.has("r"), DifferenceCondition::Lost,
                "Without -r ab ends the whole run when a connection is reset. Here it is counted and opened again.".into()),
            (true, DifferenceCondition::Always,
                "ab's Time per request is computed from its throughput. The latencies here were measured, one by one.".into()),
            (true, DifferenceCondition::Always, "Transfer is in units of 1000 bytes. ab's Kbytes are of 1024.".into()),
            (given.has("wxyz"), DifferenceCondition::Always,
                "-w, -x, -y and -z do nothing: there is no HTML. --json, given before the --, prints everything.".into()),
            (given.has("v"), DifferenceCondition::Always, "-v does nothing: responses are not printed. curl -v shows one.".into()),
        ]
    }
}

const OPTIONS: &str = "ab -h lists its options; flags of proofload go before the --";

/// The reason an option of ab is not supported, with a hint.
fn refusal(key: char, value: &str) -> ToolRefusal {
    let (problem, hint) = match key {
        'X' | 'P' => (
            "there is no going through a proxy",
            "load the service itself, or the proxy as if it were the service",
        ),
        'Z' | 'f' | 'E' | 'I' => (
            "how TLS is spoken cannot be chosen",
            "leave it out; for http:// it does nothing",
        ),
        'b' => (
            "the size of the socket's buffers is the kernel's choice",
            "leave it out",
        ),
        'e' | 'g' => (
            "no such file is written",
            "leave it out; --json, given before the --, has every latency as a histogram",
        ),
        'V' => ("its version is its own", "proofload --version has ours"),
        'h' => ("its help is its own", "proofload load --help has ours"),
        _ => ("there is no such option", OPTIONS),
    };
    // User and password of a proxy are not repeated in a message.
    let value = if key == 'P' { "" } else { value };
    let space = if value.is_empty() { "" } else { " " };
    ToolRefusal::new(Tool::Ab, format!("-{key}{space}{value}: {problem}")).hint(hint)
}

/// ab reads `10k` as 10, and an invalid number as 0.
fn number_of(key: char, value: &str, least: u64) -> Result<u64, ToolRefusal> {
    let read = whole(value).filter(|&number| number >= least);
    let refused = || {
        ToolRefusal::new(
            Tool::Ab,
            format!("-{key} {value:?} is no whole number from {least}"),
        )
    };
    read.ok_or_else(|| {
        refused().hint("ab knows no units: it would take 10k for 10, and 10s for 10 seconds")
    })
}
