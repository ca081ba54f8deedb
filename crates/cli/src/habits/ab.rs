//! ab 2.3, ApacheBench: its options, its defaults, and what it sends and counts otherwise than we do.
//!
//! Checked against ab 2.3 of Apache 2.4. Of our flags it knows the names only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use report::count;

use super::getopt::{self, Grammar};
use super::number::{period, whole};
use super::{Tool, Translation, When, names};
use crate::exit::Failed;

/// apr_getopt's: no long options, and none after the URL.
const AB: Grammar = Grammar {
    short: "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:",
    long: &[],
    permutes: false,
};

/// What -t implies, if no -n follows it.
const REQUESTS_OF_TIME_LIMIT: u64 = 50_000;

/// A checked command line.
#[derive(Debug)]
struct Asked {
    requests: u64,
    concurrency: u64,
    /// Zero: none.
    time_limit_s: u64,
    timeout_s: u64,
    keep_alive: bool,
    percentiles: bool,
    any_length: bool,
    goes_on: bool,
    html: bool,
    verbose: bool,
    method: Option<String>,
    body: Option<String>,
    content_type: Option<String>,
    cookies: Vec<String>,
    credentials: Vec<String>,
    headers: Vec<String>,
    source: Option<String>,
    url: String,
}

/// What a command line of ab means here.
pub fn translate(arguments: &[String]) -> Result<Translation, Failed> {
    let given = getopt::read(&AB, arguments).map_err(|problem| Tool::Ab.refuses(problem).hint(OPTIONS))?;
    let url = match given.plain.as_slice() {
        [url] => url.clone(),
        [] => {
            return Err(Tool::Ab
                .refuses("there is no URL")
                .hint(format!("for example ab {}", Tool::Ab.example())));
        }
        [url, more, ..] => {
            let problem = format!("{more:?} comes after the URL, {url}");
            return Err(Tool::Ab.refuses(problem).hint("ab takes its options before the URL, and one URL"));
        }
    };
    let mut asked = Asked::of(url);
    for (key, value) in given.options {
        asked.option(key, value)?;
    }
    asked.check()?;
    let mut translation = Translation::default();
    asked.write(&mut translation);
    asked.compare(&mut translation);
    Ok(translation)
}

impl Asked {
    fn of(url: String) -> Asked {
        Asked {
            requests: 1,
            concurrency: 1,
            time_limit_s: 0,
            timeout_s: 30,
            keep_alive: false,
            percentiles: true,
            any_length: false,
            goes_on: false,
            html: false,
            verbose: false,
            method: None,
            body: None,
            content_type: None,
            cookies: Vec::new(),
            credentials: Vec::new(),
            headers: Vec::new(),
            source: None,
            url,
        }
    }

    fn option(&mut self, key: char, value: String) -> Result<(), Failed> {
        match key {
            'n' => self.requests = number(key, &value, 1)?,
            'c' => self.concurrency = number(key, &value, 1)?,
            't' => (self.time_limit_s, self.requests) = (number(key, &value, 0)?, REQUESTS_OF_TIME_LIMIT),
            's' => self.timeout_s = number(key, &value, 1)?,
            'k' => self.keep_alive = true,
            'd' => self.percentiles = false,
            'l' => self.any_length = true,
            'r' => self.goes_on = true,
            'w' | 'x' | 'y' | 'z' => self.html = true,
            'v' => self.verbose = true,
            'T' => self.content_type = Some(value),
            'C' => self.cookies.push(value),
            'A' => self.credentials.push(value.trim_start().to_owned()),
            'H' => self.headers.push(value),
            'B' => self.source = Some(value),
            'm' => self.method = Some(value),
            'i' => self.only_method(key, "HEAD")?,
            'p' | 'u' => {
                self.only_method(key, if key == 'p' { "POST" } else { "PUT" })?;
                self.body = Some(value);
            }
            // Progress is shown on terminals only, and ab's estimators of confidence are not printed in any case.
            'q' | 'S' => {}
            refused => return Err(refusal(refused, &value)),
        }
        Ok(())
    }

    /// -i, -p and -u decide the method, so that no other may have done so; -m may come later.
    fn only_method(&mut self, key: char, method: &str) -> Result<(), Failed> {
        match self.method.replace(method.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let problem = format!("-{key} makes it a {method}, but it is a {other} already");
                Err(Tool::Ab.refuses(problem).hint("ab takes one of -i, -p and -u, and -m only after it"))
            }
        }
    }

    fn check(&self) -> Result<(), Failed> {
        if self.concurrency <= self.requests {
            return Ok(());
        }
        let problem = format!("-c {} is more than -n {} requests in all", self.concurrency, self.requests);
        Err(Tool::Ab.refuses(problem).hint("without -n or -t it is one request; ab refuses this too"))
    }

    fn write(&self, translation: &mut Translation) {
        if self.time_limit_s > 0 {
            translation.flag_with("-d", period(self.time_limit_s));
        } else {
            translation.flag_with("-n", self.requests);
        }
        translation.flag_with("-c", self.concurrency);
        translation.flag_with("--timeout", period(self.timeout_s));
        if !self.keep_alive {
            translation.flag("--no-keepalive");
        }
        // The table of percentiles, which -d takes away.
        if self.percentiles {
            translation.flag("--latency");
        }
        if let Some(source) = &self.source {
            translation.flag_with("--source", source);
        }
        self.write_request(translation);
        translation.unchecked_tls(&self.url);
        translation.flag(&self.url);
    }

    fn write_request(&self, translation: &mut Translation) {
        let by_itself = if self.body.is_some() { "POST" } else { "GET" };
        if let Some(method) = self.method.as_deref().filter(|&method| method != by_itself) {
            translation.flag_with("-X", method);
        }
        if let Some(file) = &self.body {
            translation.flag_with("--body", format!("@{file}"));
            let kind = self.content_type.as_deref().unwrap_or("text/plain");
            translation.flag_with("-H", format!("Content-Type: {kind}"));
        }
        if !self.cookies.is_empty() {
            translation.flag_with("-H", format!("Cookie: {}", self.cookies.join("; ")));
        }
        for credentials in &self.credentials {
            translation.flag_with("-H", format!("Authorization: Basic {}", STANDARD.encode(credentials)));
        }
        self.headers.iter().for_each(|line| translation.flag_with("-H", line));
        if !names(&self.headers, "accept") {
            translation.flag_with("-H", "Accept: */*");
        }
    }

    fn compare(&self, translation: &mut Translation) {
        if self.time_limit_s > 0 {
            let text =
                format!("ab would have stopped after {} requests, before -t was over.", count(self.requests));
            translation.differs(When::AnsweredOver(self.requests), text);
        }
        let agent =
            if names(&self.headers, "user-agent") { "" } else { ", and its User-Agent is ApacheBench" };
        let text = format!(
            "Requests are HTTP/1.1. ab's are HTTP/1.0{agent}: a service may answer those otherwise, without chunks, or \
             closing the connection."
        );
        translation.differs(When::Always, text);
        if self.cookies.len() > 1 {
            translation.differs(When::Always, "All cookies are sent. ab sends the last -C only.");
        }
        self.compare_counts(translation);
        self.compare_figures(translation);
    }

    fn compare_counts(&self, translation: &mut Translation) {
        if !self.any_length {
            let text = "ab counts an answer whose length is not the first one's as failed (Length). Here lengths are not \
                        compared, as with its -l.";
            translation.differs(When::Always, text);
        }
        let text = "ab counts every answer in Requests per second, whatever its status. Throughput here is good answers.";
        translation.differs(When::NotGood, text);
        let text = format!(
            "ab ends the whole run once nothing at all has come for {}. Here each request has that time to itself.",
            period(self.timeout_s)
        );
        translation.differs(When::TimedOut, text);
        if !self.goes_on {
            let text = "Without -r ab ends the whole run when a connection is reset. Here it is counted and opened again.";
            translation.differs(When::Lost, text);
        }
    }

    fn compare_figures(&self, translation: &mut Translation) {
        let text = "ab's Time per request is computed from its throughput. The latencies here were measured, one by one.";
        translation.differs(When::Always, text);
        let text = "Transfer is in units of 1000 bytes. ab's Kbytes are of 1024.";
        translation.differs(When::Always, text);
        if self.html {
            let text = "-w, -x, -y and -z do nothing: there is no HTML. --json, given before the --, prints everything.";
            translation.differs(When::Always, text);
        }
        if self.verbose {
            translation.differs(When::Always, "-v does nothing: answers are not printed. curl -v shows one.");
        }
    }
}

const OPTIONS: &str = "ab -h lists its options; flags of proofload go before the --";

/// Why an option of ab cannot be taken, and what to do instead.
fn refusal(key: char, value: &str) -> Failed {
    let (problem, hint) = match key {
        'X' | 'P' => (
            "there is no going through a proxy",
            "load the service itself, or the proxy as if it were the service",
        ),
        'Z' | 'f' | 'E' | 'I' => {
            ("how TLS is spoken cannot be chosen", "leave it out; for http:// it does nothing")
        }
        'b' => ("the size of the socket's buffers is the kernel's choice", "leave it out"),
        'e' | 'g' => (
            "no such file is written",
            "leave it out; --json, given before the --, has every latency as a histogram",
        ),
        'V' => ("its version is its own", "proofload --version has ours"),
        'h' => ("its help is its own", "proofload load --help has ours"),
        _ => ("there is no such option", OPTIONS),
    };
    let space = if value.is_empty() { "" } else { " " };
    Tool::Ab.refuses(format!("-{key}{space}{value}: {problem}")).hint(hint)
}

/// ab reads `10k` as 10, and what is no number as none.
fn number(key: char, value: &str, least: u64) -> Result<u64, Failed> {
    let read = whole(value).filter(|&number| number >= least);
    let refused = || Tool::Ab.refuses(format!("-{key} {value:?} is no whole number from {least}"));
    read.ok_or_else(|| refused().hint("ab knows no units: it would take 10k for 10, and 10s for 10 seconds"))
}
