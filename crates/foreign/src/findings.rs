//! Conclusions that runs made with other tools allow or forbid: a table of checks, and a function for each.
//!
//! Each function is pure and returns its figures. A threshold is a named constant beside the check that uses
//! it. This module does not format findings.

mod compression;
mod latency;
mod pasted;
mod repeats;
mod runs;
mod script;

use std::borrow::Cow;

pub(crate) use repeats::distance;
pub use repeats::{HAND_MAX, HAND_MEDIAN, HAND_WIDE};

use model::{Evidence, FAILED_SHARE_MAX, Finding, FindingCode, Grade};
use serde::Serialize;

use crate::group::RunGroup;
use crate::run::ToolRun;
use crate::transcript::Transcript;

/// The figures that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Requests per second.
    Throughput,
    /// Latency.
    Latency,
    /// All figures of a run.
    Run,
    /// Any comparison of runs.
    Comparison,
}

/// An occurrence of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingCase {
    /// The label that it applies to, or several of them.
    pub label: String,
    /// Indices into the list of runs.
    pub runs: Vec<usize>,
    /// The evidence. Names of its figures end in their unit.
    pub evidence: Evidence,
}

/// The result of one check that found something.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckResult {
    /// The finding with its remedy. Its evidence covers all cases.
    pub finding: Finding<OutputCheck>,
    /// The occurrences with figures, at least one.
    pub cases: Vec<FindingCase>,
}

impl std::ops::Deref for CheckResult {
    type Target = Finding<OutputCheck>;

    fn deref(&self) -> &Finding<OutputCheck> {
        &self.finding
    }
}

impl CheckResult {
    /// Whether it concerns one of these runs.
    pub fn concerns(&self, runs: &[usize]) -> bool {
        self.cases.iter().any(|case| case.concerns(runs))
    }

    /// Whether it forbids comparing the requests per second of these runs.
    pub fn voids_throughput_of(&self, runs: &[usize]) -> bool {
        self.grade == Grade::Invalid && self.check.about() != About::Latency && self.concerns(runs)
    }
}

impl FindingCase {
    /// Whether it concerns one of these runs.
    pub fn concerns(&self, runs: &[usize]) -> bool {
        self.runs.iter().any(|run| runs.contains(run))
    }
}

/// The input of the checks.
struct CheckInput<'a> {
    files: &'a [Transcript],
    runs: &'a [ToolRun],
    groups: &'a [RunGroup],
}

/// The result of a check for one run.
type RunFinding = (Grade, Evidence);

/// The scope of a check.
enum CheckScope {
    /// Each run separately.
    Run(fn(&ToolRun) -> Option<RunFinding>),
    /// All runs together.
    All(fn(&CheckInput<'_>) -> Vec<(Grade, FindingCase)>),
}
use CheckScope::{All, Run as Each};

/// A row of the table of checks.
struct OutputCheckRow {
    check: OutputCheck,
    /// Its stable name.
    name: &'static str,
    about: About,
    look: CheckScope,
    /// The finding, in one sentence.
    statement: &'static str,
    /// The reason, for the first of the runs that it concerns. Precedes the remedy.
    why: Option<fn(&ToolRun) -> Cow<'static, str>>,
    /// The consequence, with a hint.
    remedy: &'static str,
}

/// Defines the checks and the table, in the order in which findings of one grade are reported.
macro_rules! checks {
    ($($check:ident = $name:literal, $about:ident, $look:expr, $statement:literal, $([$why:path])? $remedy:literal;)+) => {
        /// A check of other tools' output. docs/audit.md describes each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "their rows say what they find")]
        pub enum OutputCheck {
            $($check,)+
        }

        static CHECKS: &[OutputCheckRow] = &[$(OutputCheckRow {
            check: OutputCheck::$check,
            name: $name,
            about: About::$about,
            look: $look,
            statement: $statement,
            why: [$(Some($why as fn(&ToolRun) -> Cow<'static, str>),)? None][0],
            remedy: $remedy,
        }),+];
    };
}

checks! {
    NotUnderstood = "not_understood", Run, Each(runs::not_understood), "lines of the tool were not understood",
        "What they say is missing here: failures may be among it. See the line, and correct it if it was edited.";
    GaveUp = "gave_up", Run, Each(runs::gave_up), "the tool gave up: there is no result",
        "ab ends at the first reset unless it is told not to (-r). That another side was not reset is no result either: it tells \
         of one moment, and of a backlog, not of speed. See `ss -ltn` (Send-Q is the backlog) and the service's log.";
    SameOutput = "same_output", Comparison, All(repeats::same_output), "the same output stands there more than once",
        "Two runs never agree to the last digit: it was pasted twice, or a file was read twice. What it is compared with, or \
         pooled with, is itself.";
    UnlikeRepeats = "unlike_repeats", Throughput, All(repeats::unlike), "runs of one label are not alike, so they are no repeats",
        "They are not pooled. Something differs between them that the text does not say: name it in a heading above each run.";
    NoCompression = "no_compression", Comparison, All(compression::never_negotiated),
        "runs with and without compression moved the same bytes per response",
        [compression::why] "What the labels compare was never there. Look at a response with `curl -sD- -o/dev/null --compressed URL`.";
    LatencyNeverMeasured = "latency_never_measured", Latency, Each(latency::never_measured), "latency was never measured",
        [latency::why] "Ask for fewer connections or for a rate, and set the limit above the slowest response.";
    Timeouts = "timeouts", Latency, Each(latency::timeouts), "requests timed out",
        [latency::why] "Ask for fewer connections or for a rate, and set the limit above the slowest response.";
    FellBehind = "fell_behind", Latency, Each(latency::fell_behind), "the rate was not kept: latency tells how long a queue grew",
        "It would be longer had the run been longer. Ask for a rate that every side can keep.";
    StartUp = "start_up", Run, Each(runs::start_up), "few requests for so many connections: the run was all start and end",
        "Requests that were under way at the end are not counted, and the first ones met an idle service. Take fewer connections, \
         or run many times longer.";
    ErrorsInThroughput = "errors_in_throughput", Throughput, Each(runs::statuses), "failures are no throughput",
        "An error page is often cheaper than the page. Find out why it came, with `curl -i`, and measure again.";
    ConnectionsFailed = "connections_failed", Throughput, Each(runs::connections),
        "connections failed, and what they would have carried was never done",
        "Resets and refusals come from a full backlog, a worker that died or a limit of descriptors: read the service's log and \
         `nstat -az TcpExtListenDrops`. The rest of the load had the service to itself.";
    Ramp = "ramp", Run, Each(script::ramp), "the load changed during the run: its figures are means over all stages",
        "They hold for none of the stages, least of all for the highest. Run one with a constant load for each.";
    ScriptWaits = "script_waits", Throughput, Each(script::script_waits), "the script waits between its requests: the rate is the script's",
        "It says how often the script asked, and not what the service can do. Take the sleep out, or ask for a rate.";
    OneRun = "one_run", Comparison, All(repeats::one_run), "labels with a single run: nothing tells chance from the setting",
        "Two services that were the same came out 8 % apart by single runs of wrk (median of 60 pairs, a shared machine), one pair \
         in ten more than 28 %, the furthest 81 %. Start each side anew several times, in turns, or let `proofload run` do so.";
    OtherContent = "other_content", Comparison, All(repeats::other_content), "the labels got responses of different lengths",
        "Then the services did different work: other pages, other headers, an error page, compression. See both with `curl -i`.";
    InARow = "in_a_row", Comparison, All(repeats::in_a_row), "one label was measured after the other, not in turns",
        "Whatever the machine did meanwhile counts as a difference, and the interval does not contain it. Nor does it contain how \
         services differ from one start to the next, unless each run had one of its own.";
    ConnectionPerRequest = "connection_per_request", Comparison, All(repeats::connection_per_request),
        "the proxied path is so slow that it may open a connection for each request",
        "A suspicion: the figures fit it, they do not prove it. A bare proxy_pass of nginx does so before version 1.29.7 (it wants \
         `keepalive` in `upstream`, `proxy_http_version 1.1` and an empty Connection header), Node without an Agent that keeps \
         connections before version 19. `nstat TcpActiveOpens` before and after a run tells. Look at the number of workers too.";
    BareProxyPass = "bare_proxy_pass", Run, All(pasted::proxy_pass),
        "the configuration of nginx beside the runs keeps no connections to the service behind it",
        "Before version 1.29.7 nginx then opens one for each request. Production has `keepalive` in `upstream`, `proxy_http_version 1.1` \
         and an empty Connection header.";
    ExpressMode = "express_mode", Run, All(pasted::express),
        "the code beside the runs uses Express, and nothing says NODE_ENV",
        "Without NODE_ENV=production Express compiles each view anew for each request, and middleware such as morgan and errorhandler \
         does more. Name the environment of each run.";
    Tail = "tail", Latency, Each(latency::tail), "too few requests for the highest percentile shown",
        "A percentile wants ten requests beyond it, 1,000 for p99; below that it is an anecdote.";
    AtLimit = "at_limit", Latency, Each(latency::at_limit), "latencies end at the tool's limit: they are lower bounds",
        "Requests that took longer are in them with the limit, so the true figures are higher. Raise the limit.";
    Interrupted = "interrupted", Run, Each(script::interrupted), "iterations were interrupted when the run ended",
        "The slowest are the likeliest to be among them, and are in no figure. Allow them more time (gracefulStop).";
    IdleConnections = "idle_connections", Latency, Each(latency::idle), "connections were idle much of the time, or some of them all of it",
        "In closed loop connections divided by throughput is the mean latency. Much more than that means that connections waited to \
         be opened, or never were used: the tool was the limit, or a backlog was full.";
    OwnWarning = "own_warning", Run, Each(runs::own_warning), "the tool itself warns about its figures",
        "Its mean and its median differ more than its spread explains: the run had phases, or a few very slow requests. Run longer.";
    ClosedLoopLatency = "closed_loop_latency", Latency, Each(latency::little),
        "the latency is connections divided by throughput, no second result",
        "In closed loop each connection waits for its response before it sends the next request, so the mean follows from throughput \
         (Little's law); who doubles the connections doubles it. What users wait is measured at a rate: `proofload load URL --rate 60%`.";
    Short = "short", Run, Each(runs::short), "runs shorter than 10 s",
        "A runtime that compiles while it runs is slower in its first seconds; so is whatever fills a cache. Warm up first, and \
         leave that out.";
    NewConnections = "new_connections", Throughput, Each(runs::new_connections), "each request opened a connection of its own",
        "Opening and closing is then part of every request: much of it where responses are quick, little where they take long. ab \
         keeps connections with -k, and only where the service responds to HTTP/1.0 with a Content-Length.";
    Contradiction = "contradiction", Run, Each(runs::contradicting), "figures of one run contradict each other",
        "Something was lost or changed in copying, or lines of two runs were mixed. Compare with the original.";
    Calibration = "calibration", Latency, Each(latency::calibration), "wrk2 forgets the latencies of its first 10 s",
        "It calibrates itself then. Requests/sec is of the whole run, latencies are of the rest.";
    CutOff = "cut_off", Run, Each(runs::cut_off), "the output is not whole",
        "It was stopped, or a part of it was left out. What failed may stand in the missing lines.";
    OtherLengths = "other_lengths", Run, Each(runs::lengths),
        "ab calls responses failed whose length is not that of the first",
        "Pages with a time or a token in them are of different lengths; these are no failures. `ab -l` accepts them.";
    Uneven = "uneven", Run, Each(runs::uneven), "the numbers do not divide, and the tool did less than it says",
        "Take a number of connections that the threads divide, and of requests that the connections divide.";
    Http10 = "http_1_0", Run, Each(runs::http_1_0), "ab speaks HTTP/1.0, which no browser does",
        "A service may respond to it otherwise: without chunks, without compression, closing the connection. ab also has one thread, \
         and may be the limit itself.";
    SameMachine = "same_machine", Throughput, Each(runs::same_machine), "client and service shared a machine",
        "What the client burns is taken from the service, and the faster side pays more of it. Give each processors of its own \
         (taskset), or at least know what the client used.";
}

impl OutputCheck {
    /// The figures that its findings are about.
    pub fn about(self) -> About {
        self.row().about
    }

    fn row(self) -> &'static OutputCheckRow {
        &CHECKS[self as usize]
    }
}

impl FindingCode for OutputCheck {
    fn code(&self) -> &str {
        self.row().name
    }
}

impl OutputCheckRow {
    /// Its findings, one for each grade among its cases.
    fn findings(&self, of: &CheckInput<'_>) -> Vec<CheckResult> {
        let mut seen: Vec<(Grade, FindingCase)> = match self.look {
            CheckScope::All(look) => look(of),
            CheckScope::Run(look) => {
                let case = |(at, run): (usize, &ToolRun)| {
                    let (grade, evidence) = look(run)?;
                    Some((
                        grade,
                        FindingCase {
                            label: run.label.clone(),
                            runs: vec![at],
                            evidence,
                        },
                    ))
                };
                of.runs.iter().enumerate().filter_map(case).collect()
            }
        };
        seen.sort_by_key(|(grade, _)| *grade);
        let found = |seen: &[(Grade, FindingCase)]| {
            let cases: Vec<FindingCase> = seen.iter().map(|(_, case)| case.clone()).collect();
            let first = cases[0].runs.first().map(|at| &of.runs[*at]);
            let remedy: Cow<'static, str> = match self.why.zip(first) {
                Some((why, run)) => format!("{} {}", why(run), self.remedy).into(),
                None => self.remedy.into(),
            };
            CheckResult {
                finding: Finding::new(self.check, seen[0].0, self.statement, remedy),
                cases,
            }
        };
        seen.chunk_by(|(one, _), (other, _)| one == other)
            .map(found)
            .collect()
    }
}

/// All findings, most severe first.
pub fn all(files: &[Transcript], runs: &[ToolRun], groups: &[RunGroup]) -> Vec<CheckResult> {
    let of = CheckInput {
        files,
        runs,
        groups,
    };
    let mut all: Vec<CheckResult> = CHECKS.iter().flat_map(|row| row.findings(&of)).collect();
    all.sort_by_key(|found| found.grade);
    all
}

/// Void if this share of failures would void Proofload's own experiments, otherwise a warning.
fn graded(failed_share: f64) -> Grade {
    if failed_share > FAILED_SHARE_MAX {
        Grade::Invalid
    } else {
        Grade::Warning
    }
}

/// The part as a share of the whole, at most 1.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        1.0
    } else {
        (part as f64 / all as f64).min(1.0)
    }
}
