//! The report of a plan without comparison: the results of each slice, as users of wrk expect them. Nothing
//! is concluded here.

use std::time::Duration;

use analysis::Check;
use analysis::measurement::RateKept;
use analysis::{MeasuredWindow, Measurement};
use model::document::{Cell, ColumnFit, Document, DocumentPart, NamedText, Table, Tone};
use model::quantity::{
    NONE, Quantity, bytes, count, many, micros, rate, share, span, three_digits,
};
use model::{FailureKind, Protocol, Rate, Think, Until};
use plan::{Load, Variant};
use stats::{Latencies, Quantile};

use crate::MeasuredRecord;
use crate::csv::CsvRows;
use crate::experiment::{invalid, remarks, warnings};
use crate::validity::explained_by;

mod data;
mod ramp;
mod requests;

pub(crate) use data::{LoadData, data};
use ramp::{failed_of, ramp};
use requests::{all_outcomes, endpoints};

/// The quantiles shown, with their names.
const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];
/// The quantiles of the longer distribution.
const DISTRIBUTION: [(&str, f64); 8] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

/// A record of one variant without a comparison.
pub(crate) struct LoadedRecord<'a> {
    measured: MeasuredRecord<'a>,
    variant: &'a Variant,
    of: Measurement<'a>,
}

impl<'a> LoadedRecord<'a> {
    /// `None` if the plan compares.
    pub(crate) fn of(measured: &MeasuredRecord<'a>) -> Option<LoadedRecord<'a>> {
        let variant = measured.record.header.plan.variants.first()?;
        Some(LoadedRecord {
            measured: *measured,
            variant,
            of: analysis::measurement(measured.record)?,
        })
    }

    /// Whether several steps were planned.
    pub(crate) fn is_ladder(&self) -> bool {
        self.of.planned > 1
    }

    /// A row for each step.
    pub(crate) fn steps(&self) -> Table {
        steps(&self.of)
    }

    /// The request and its target.
    pub(crate) fn title(&self) -> String {
        let load = &self.variant.load;
        let Some(entry) = self.variant.entry_service() else {
            return load.title();
        };
        let only = load.requests.first().filter(|_| !load.is_mix());
        match (entry.url(), only) {
            (Some(url), Some(only)) => format!("{} {}{}", only.method, url.origin(), only.path),
            (Some(url), None) => format!("{} at {}", load.title(), url.origin()),
            (None, _) => format!("{} at {}", load.title(), entry.name),
        }
    }

    /// Connections, threads and times, and protocol settings that are not the default.
    fn asked(&self) -> Vec<String> {
        let (load, planned) = (&self.variant.load, self.of.planned);
        let mut asked = vec![many(load.settings.connections.into(), "connection")];
        let first = self.of.windows.first().or(self.of.capacity.as_ref());
        if let Some(MeasuredWindow {
            slice, asked: of, ..
        }) = first
        {
            asked.push(many(
                slice.counts.generator.wall_ns.len().max(1) as u64,
                "thread",
            ));
            let window = match of.until {
                Until::Elapsed(_) if planned == 1 => span(slice.counts.window_ns as f64 / 1e9),
                Until::Elapsed(length) => span(length.as_secs_f64()),
                Until::Requests(total) => many(total, "request"),
            };
            asked.push(if planned > 1 {
                format!("{planned} steps of {window}")
            } else {
                window
            });
        }
        asked.push(format!("timeout {}", span(load.timeout.as_secs_f64())));
        asked.extend(first.map(|window| match window.asked.open {
            None => "closed loop".to_owned(),
            Some(open) if planned > 1 => format!("open loop, {}", open.process.words()),
            Some(open) => {
                let word = if open.rate.ramp().is_some() {
                    "from"
                } else {
                    "at"
                };
                let share = open
                    .ask
                    .needs_capacity()
                    .then(|| format!("{} of saturation, ", open.ask));
                let (share, process) = (share.unwrap_or_default(), open.process.words());
                format!(
                    "open loop {word} {share}{}, {process}",
                    rate_text(open.rate)
                )
            }
        }));
        let unusual = unusual(load);
        [asked.join(", ")]
            .into_iter()
            .chain((!unusual.is_empty()).then(|| unusual.join(", ")))
            .collect()
    }

    /// Notes on reading the figures, which are not findings.
    fn notes(&self) -> Vec<String> {
        let (load, of) = (&self.variant.load, &self.of);
        // Without latencies, or beside failures, there is more important news.
        let is_clean = |window: &MeasuredWindow<'_>| {
            window.has_success() && window.void().is_none() && window.slice.counts.failed() == 0
        };
        let closed = of.void().is_none()
            && of
                .windows
                .iter()
                .all(|window| window.asked.open.is_none() && is_clean(window));
        let closed = closed && !of.windows.is_empty();
        let tls = if load.tls.is_some() {
            " and the TLS handshake"
        } else {
            ""
        };
        let under_way = if load.protocol.lanes() > 1 {
            "requests under way"
        } else {
            "connections"
        };
        let not_begun = of.planned.saturating_sub(of.windows.len());
        let notes = [
            (of.interrupted && not_begun == 0).then(|| "Stopped early: these are the figures up to then.".to_owned()),
            (not_begun > 0 && !of.windows.is_empty())
                .then(|| format!("Stopped early: {not_begun} of {} did not begin.", many(of.planned as u64, "step"))),
            (not_begun > 0 && of.windows.is_empty() && of.capacity.is_some())
                .then(|| "This was the measurement of saturation; the load at a share of it did not begin.".to_owned()),
            (closed && load.think.is_some()).then(|| {
                "Closed loop with think times: throughput is at most connections ÷ (latency + think time), however fast the service is."
                    .to_owned()
            }),
            (closed && load.think.is_none()).then(|| {
                format!(
                    "Closed loop: latency is {under_way} ÷ throughput once the service is saturated. --rate measures what users wait."
                )
            }),
            load.protocol.pipelines().then(|| {
                "Pipelining: no browser does it, and the latency of a request contains the wait for the responses to those before it on \
                 its connection."
                    .to_owned()
            }),
            (!load.settings.keep_alive)
                .then(|| format!("Each request opened a connection of its own: latency includes connecting{tls}.")),
        ];
        notes.into_iter().flatten().collect()
    }

    /// The notes as the last blocks, with the differences to another tool.
    fn noted(&self) -> impl Iterator<Item = DocumentPart> {
        let notes = self
            .notes()
            .into_iter()
            .chain(self.measured.differences.iter().cloned());
        notes.map(|note| DocumentPart::Paragraph(Tone::Faint, note))
    }

    fn latencies(&self, window: &MeasuredWindow<'_>) -> Table {
        let kinds = kinds(window);
        if !self.measured.distribution {
            return latencies(&kinds);
        }
        let columns = kinds.iter().map(|(name, _)| *name);
        let mut table = Table::of_figures("", [("latency", ColumnFit::Whole)], columns);
        for (name, q) in DISTRIBUTION {
            let cells = kinds.iter().map(|(_, latencies)| at(latencies, q));
            table.push([Cell::text(name)].into_iter().chain(cells).collect());
        }
        table
    }

    pub(crate) fn document(&self) -> Document {
        let of = &self.of;
        let asked = self.asked().into_iter();
        let mut blocks: Vec<DocumentPart> = asked
            .map(|asked| DocumentPart::Paragraph(Tone::Plain, asked))
            .collect();
        let void = of.void().map(|finding| match finding.check {
            Check::NoSuccess => format!("Nothing to measure: {}", finding.evidence),
            check => format!("Invalid ({}): {}", check.number(), finding.evidence),
        });
        blocks.extend(
            void.clone()
                .map(|void| DocumentPart::Paragraph(Tone::Bad, void)),
        );
        blocks.extend(capacity(of));
        if let Some(window) = of
            .only()
            .or(of.capacity.as_ref().filter(|_| of.windows.is_empty()))
        {
            if void.is_some() {
                blocks.push(DocumentPart::Lines(self.counted(window)));
                blocks.extend(endpoints(window));
            } else {
                blocks.push(DocumentPart::Lines(lines(window, &self.variant.load)));
                blocks.extend(ramp(window));
                let figures = window.has_success().then(|| self.latencies(window));
                blocks.extend(figures.map(DocumentPart::Table));
                blocks.extend(endpoints(window));
                blocks.extend(unresolved(window, window.has_success()));
            }
        } else {
            blocks.extend(self.ladder());
        }
        let findings = &self.measured.conclusion.findings;
        blocks.push(DocumentPart::Findings(
            remarks(findings),
            explained_by(findings.iter()),
        ));
        blocks.extend(self.noted());
        let headline = void.or(of.only().map(headline));
        Document {
            headline,
            ..Document::new(self.title(), blocks)
        }
    }

    /// The first screen: request, results, duration and doubts. It is the whole document with the longer
    /// distribution.
    pub(crate) fn brief(&self) -> Document {
        if self.measured.distribution {
            return self.document();
        }
        let findings = &self.measured.conclusion.findings;
        let mut blocks = vec![
            DocumentPart::Paragraph(Tone::Plain, self.asked().join(", ")),
            invalid(findings),
        ];
        blocks.extend(capacity(&self.of));
        match (self.of.only(), self.of.void()) {
            (None, _) => blocks.extend(self.ladder()),
            (Some(window), Some(_)) => {
                blocks.push(DocumentPart::Lines(self.counted(window)));
                blocks.extend(endpoints(window));
            }
            (Some(window), None) => blocks.extend(self.results(window)),
        }
        blocks.push(DocumentPart::Lines(warnings(findings, "-v")));
        Document::new(self.title(), blocks.into_iter().chain(self.noted()))
    }

    /// Results of a valid slice on the first screen.
    fn results(&self, window: &MeasuredWindow<'_>) -> Vec<DocumentPart> {
        let mut lines = vec![
            NamedText::new("requests", requests(window)),
            throughput(window),
        ];
        lines.extend(silent(window));
        lines.extend(rate_kept(window).into_iter().chain(service(window)));
        lines.extend(outcomes(window, &self.variant.load));
        lines.extend(errors(window).into_iter().chain(tls_error(window)));
        let mut blocks = vec![DocumentPart::Lines(lines)];
        // At several rates, a quantile over all of them means nothing.
        let ramp = ramp(window);
        let shows_whole = ramp.is_empty() && window.has_success();
        if shows_whole {
            // The response time that a user waits, or the service time if no user waits.
            blocks.push(DocumentPart::Table(latencies(&kinds(window)[..1])));
        }
        blocks.extend(ramp);
        blocks.extend(endpoints(window));
        blocks.extend(unresolved(window, shows_whole));
        blocks
    }

    /// A row for each of several steps.
    fn ladder(&self) -> Vec<DocumentPart> {
        let about = "p50 to p99.9: response time, from when a request was due. late: how late the client sent at p99 where a \
                     connection was free.";
        let responses = self.of.windows.iter().filter_map(|window| {
            let open = window.slice.counts.open.as_deref()?;
            Some(open.response.count())
        });
        let missing = too_few(&responses.collect::<Vec<_>>(), &[]);
        [
            DocumentPart::Table(steps(&self.of)),
            DocumentPart::Paragraph(Tone::Faint, about.to_owned()),
        ]
        .into_iter()
        .chain(missing)
        .collect()
    }

    /// One row for each slice and figure.
    pub(crate) fn figures(&self) -> CsvRows {
        data::figures(&self.of)
    }

    /// What happened to the requests of an invalid slice: counts, and no figure that could be taken for a result.
    fn counted(&self, window: &MeasuredWindow<'_>) -> Vec<NamedText> {
        let outcomes = outcomes(window, &self.variant.load).into_iter();
        let requests = [NamedText::new("requests", requests(window))].into_iter();
        requests
            .chain(outcomes)
            .chain(errors(window))
            .chain(tls_error(window))
            .collect()
    }
}

/// Settings that are not the default.
fn unusual(load: &Load) -> Vec<String> {
    let protocol = match load.protocol {
        Protocol::Http1 { pipeline: 1 } => None,
        Protocol::Http1 { pipeline } => Some(format!(
            "pipelining, up to {} a connection",
            many(pipeline.into(), "request")
        )),
        Protocol::Http2 { streams } => Some(format!(
            "HTTP/2, up to {} a connection",
            many(streams.into(), "stream")
        )),
    };
    let sources = match load.settings.sources.as_slice() {
        [] => None,
        [only] => Some(format!("from {only}")),
        several => Some(format!("from {}", many(several.len() as u64, "address"))),
    };
    let parts = [
        protocol,
        (!load.settings.keep_alive).then(|| "a connection for each request".to_owned()),
        load.tls
            .as_ref()
            .filter(|tls| tls.insecure)
            .map(|_| "certificates not checked".to_owned()),
        sources,
        load.settings
            .cookies
            .then(|| "cookies of each connection".to_owned()),
        load.think.map(thinks),
    ];
    parts.into_iter().flatten().collect()
}

fn thinks(think: Think) -> String {
    let time = |time: Duration| span(time.as_secs_f64());
    match think {
        Think::Constant(always) => format!("{} of think time", time(always)),
        Think::Exponential(mean) => format!("{} of think time on average", time(mean)),
    }
}

/// The requested rates.
fn rate_text(of: Rate) -> String {
    match of {
        Rate::Constant(per_s) => rate(per_s),
        Rate::Ramp {
            from_per_s,
            to_per_s,
            ..
        } => format!("{} to {}", rate(from_per_s), rate(to_per_s)),
    }
}

fn headline(window: &MeasuredWindow<'_>) -> String {
    let throughput = match window.throughput_per_s() {
        Some(per_s) => format!("{} successful responses", rate(per_s)),
        None => window.without_rate().unwrap_or(NONE.to_owned()),
    };
    let latencies = kinds(window).into_iter().next();
    let p99 = latencies.and_then(|(name, latencies)| Some((name, shown(latencies, 0.99)?)));
    let p99 = p99
        .map(|(name, p99)| format!(", p99 {} ({name})", written(p99)))
        .unwrap_or_default();
    format!("{throughput}{p99}")
}

/// In open loop the response time comes first, because it is what a user waits.
fn kinds<'a>(window: &MeasuredWindow<'a>) -> Vec<(&'static str, &'a Latencies)> {
    let counts = &window.slice.counts;
    let first = match &counts.open {
        None => vec![("complete", &counts.latency)],
        Some(open) => vec![("response", &open.response), ("service", &counts.latency)],
    };
    let opening = [
        ("connect", &counts.connect),
        ("handshake", &counts.handshake),
    ];
    let opening = opening
        .into_iter()
        .filter(|(_, latencies)| !latencies.is_empty());
    first
        .into_iter()
        .chain([("first byte", &counts.first_byte)])
        .chain(opening)
        .collect()
}

fn latencies(kinds: &[(&str, &Latencies)]) -> Table {
    let mut table = Table::of_figures(
        "",
        [("latency", ColumnFit::Whole)],
        QUANTILES.map(|(name, _)| name),
    );
    for (name, latencies) in kinds {
        let cells = QUANTILES.iter().map(|(_, q)| at(latencies, *q));
        table.push([Cell::text(*name)].into_iter().chain(cells).collect());
    }
    table
}

/// Quantiles with too few samples are not shown.
fn shown(latencies: &Latencies, q: f64) -> Option<Quantile> {
    latencies
        .quantile(q)
        .filter(|_| q == 1.0 || latencies.resolves(q))
}

/// Names the quantiles that some distributions have too few requests for, and how many they take. `whole` are the
/// numbers of requests of distributions with all quantiles, `parts` of those with p50 and p99 only. `None` if
/// there are none.
fn too_few(whole: &[u64], parts: &[u64]) -> Option<DocumentPart> {
    let lacking = |(name, q): &(&str, f64)| {
        let needed = Latencies::samples_needed(*q);
        let is_lacking = |count: &u64| (1..needed).contains(count);
        let is_of_parts = ["p50", "p99"].contains(name);
        let lacks = whole.iter().any(is_lacking) || is_of_parts && parts.iter().any(is_lacking);
        (*q < 1.0 && lacks).then(|| format!("{name} takes {}", count(needed)))
    };
    let lacking: Vec<String> = QUANTILES.iter().filter_map(lacking).collect();
    (!lacking.is_empty()).then(|| {
        let text = format!("{NONE}: too few requests; {}.", lacking.join(", "));
        DocumentPart::Paragraph(Tone::Faint, text)
    })
}

/// The note on quantiles that a slice has too few requests for.
fn unresolved(window: &MeasuredWindow<'_>, shows_whole: bool) -> Option<DocumentPart> {
    let whole: Vec<u64> = kinds(window)
        .first()
        .filter(|_| shows_whole)
        .map(|(_, of)| of.count())
        .into_iter()
        .collect();
    let endpoints = &window.slice.counts.endpoints;
    let several = endpoints.iter().filter(|_| endpoints.len() > 1);
    let several = several.map(|endpoint| all_outcomes(window, endpoint).count());
    let ramp = window.ramp_parts().iter().map(|part| part.response.count());
    too_few(&whole, &several.chain(ramp).collect::<Vec<_>>())
}

/// Each in its own unit, because a maximum may be a thousand times the median.
fn at(latencies: &Latencies, q: f64) -> Cell {
    Cell::optional(shown(latencies, q).map(written))
}

fn written(quantile: Quantile) -> String {
    let sign = if quantile.is_exact() { "" } else { "≥ " };
    format!("{sign}{}", Quantity::ns(quantile.ns()))
}

fn lines(window: &MeasuredWindow<'_>, load: &Load) -> Vec<NamedText> {
    let counts = &window.slice.counts;
    let mut lines = vec![
        NamedText::new("requests", requests(window)),
        throughput(window),
        NamedText::new("transfer", transfer(window)),
    ];
    lines.extend(pace(window));
    let made = counts.handshake.count() - counts.handshake.censored();
    lines.extend((made > 0).then(|| {
        NamedText::new(
            "TLS",
            format!(
                "{} handshakes, {} of them resumed",
                count(made),
                count(counts.tls_resumed)
            ),
        )
    }));
    lines.extend(outcomes(window, load));
    lines.extend(content(window).map(|content| NamedText::new("content", content)));
    lines.extend(service(window));
    lines.push(errors(window).unwrap_or_else(|| NamedText::new("errors", "none")));
    lines.extend(tls_error(window));
    lines
}

fn tls_error(window: &MeasuredWindow<'_>) -> Option<NamedText> {
    window
        .slice
        .counts
        .tls_error
        .as_ref()
        .map(|error| NamedText::new("TLS error", error.clone()))
}

fn throughput(window: &MeasuredWindow<'_>) -> NamedText {
    let told = window
        .throughput_per_s()
        .map(|per_s| format!("{}, successful responses", rate(per_s)));
    NamedText::new(
        "throughput",
        told.or_else(|| window.without_rate())
            .unwrap_or(NONE.to_owned()),
    )
}

/// How long the service sent no response, which no other figure of a closed loop shows.
fn silent(window: &MeasuredWindow<'_>) -> Option<NamedText> {
    let finding = window
        .findings
        .iter()
        .find(|finding| finding.check == Check::Silent)?;
    let text = finding.evidence.as_str();
    let text = text
        .strip_prefix(&format!("{}: ", window.name))
        .unwrap_or(text);
    Some(NamedText::new("silent", text.to_owned()))
}

/// Number of responses by status, and the problems of unexpected ones.
fn outcomes(window: &MeasuredWindow<'_>, load: &Load) -> Vec<NamedText> {
    let counts = &window.slice.counts;
    let status: Vec<String> = counts
        .status
        .iter()
        .map(|(code, number)| format!("{code} × {}", count(*number)))
        .collect();
    let status = NamedText::new(
        "status",
        if status.is_empty() {
            NONE.to_owned()
        } else {
            status.join("   ")
        },
    );
    let failures = counts.contract_failures.iter().map(|failure| {
        // Few contents are checked, as a sample of all.
        let is_sampled = matches!(failure.kind, FailureKind::Content | FailureKind::Coding);
        let (all, of) = if is_sampled {
            (counts.sampled.judged, " sampled")
        } else {
            (counts.responses, "")
        };
        let (kind, failed, example) = (&failure.kind, count(failure.count), &failure.example);
        let part = share(failure.count as f64 / all.max(1) as f64);
        let adjective = match kind {
            FailureKind::LogIn(_) => "",
            _ => "unexpected ",
        };
        let text = format!(
            "{failed} of {}{of} ({part}): {adjective}{kind}, for example {example}",
            many(all, "response")
        );
        NamedText::new("failed", text)
    });
    [status]
        .into_iter()
        .chain(log_ins(window, load))
        .chain(failures)
        .collect()
}

/// Number of users' first requests that succeeded and failed.
fn log_ins(window: &MeasuredWindow<'_>, load: &Load) -> Option<NamedText> {
    let counts = &window.slice.counts;
    let is_once = |name: &str| {
        load.requests
            .iter()
            .any(|request| request.once && request.name == name)
    };
    let failed: u64 = counts
        .endpoints
        .iter()
        .filter(|of| is_once(&of.name))
        .map(|of| of.sent)
        .sum();
    let told = [
        (counts.log_ins, "requests succeeded, in no other figure"),
        (failed, "failed, counted as failed requests"),
    ];
    let told = told.into_iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
    (!told.is_empty()).then(|| NamedText::new("logging in", told.join("; ")))
}

fn errors(window: &MeasuredWindow<'_>) -> Option<NamedText> {
    let errors = window.slice.counts.errors.iter();
    let errors: Vec<String> = errors
        .map(|error| format!("{} {} × {}", error.phase, error.cause, count(error.count)))
        .collect();
    (!errors.is_empty()).then(|| NamedText::new("errors", errors.join("   ")))
}

/// Whether the service kept up in open loop.
fn rate_kept(window: &MeasuredWindow<'_>) -> Option<NamedText> {
    window
        .kept()
        .map(|kept| NamedText::new("result", kept.words()))
}

/// Resources used by the services, if their processes can be observed.
fn service(window: &MeasuredWindow<'_>) -> Option<NamedText> {
    let slice = window.slice;
    let (cpu_ns, wall_ns, successful) = (
        slice.services_cpu_ns(),
        slice.counts.wall_ns(),
        slice.counts.successful,
    );
    (cpu_ns > 0 && successful > 0 && wall_ns > 0).then(|| {
        let (each, cores) = (
            cpu_ns as f64 / 1e3 / successful as f64,
            cpu_ns as f64 / wall_ns as f64,
        );
        // Work around a short window would count as done in it.
        let cores = window
            .without_rate()
            .map_or(format!(", {} cores", three_digits(cores)), |_| {
                String::new()
            });
        NamedText::new(
            "service",
            format!("{} of CPU time per request{cores}", micros(each)),
        )
    })
}

fn requests(window: &MeasuredWindow<'_>) -> String {
    let counts = &window.slice.counts;
    let open = counts.open.as_ref();
    let due = open.map(|open| format!("{} due", count(open.intended)));
    let parts = [
        (counts.timed_out, "timed out"),
        (counts.broken, "broken"),
        (counts.unfinished, "unfinished"),
        (open.map_or(0, |open| open.unsent), "never sent"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts = parts.map(|(number, what)| format!("{} {what}", count(number)));
    // What follows from the others is left out.
    let is_due = open.is_some_and(|open| open.intended == counts.sent);
    let sent = (!is_due).then(|| format!("{} sent", count(counts.sent)));
    let responses = (counts.responses != counts.sent).then(|| many(counts.responses, "response"));
    let successful = format!("{} successful", count(counts.successful));
    due.into_iter()
        .chain(sent)
        .chain(responses)
        .chain([successful])
        .chain(parts)
        .collect::<Vec<_>>()
        .join(", ")
}

fn transfer(window: &MeasuredWindow<'_>) -> String {
    let Some((per_s, each)) = window.transfer_per_s().zip(window.bytes_per_response()) else {
        return NONE.to_owned();
    };
    format!("{}/s, {} a response", bytes(per_s), bytes(each))
}

/// Whether the load was as requested.
fn pace(window: &MeasuredWindow<'_>) -> Vec<NamedText> {
    let Some((asked, open)) = window.asked.open.zip(window.slice.counts.open.as_ref()) else {
        return Vec::new();
    };
    let sent = window
        .per_s(open.sent_in_window)
        .map_or(NONE.to_owned(), rate);
    let due = window
        .per_s(open.intended)
        .filter(|_| asked.rate.ramp().is_some());
    let due = due
        .map(|due| format!(" of {} due on average", rate(due)))
        .unwrap_or_default();
    let lag = shown(&open.schedule_lag, 0.99).map_or(NONE.to_owned(), written);
    let queue = format!(
        "{} of {} found no connection free",
        count(open.queued),
        count(open.intended)
    );
    let paced = [
        NamedText::new(
            "rate",
            format!("{sent} sent{due}, {} asked for", rate_text(asked.rate)),
        ),
        NamedText::new("queue", queue),
        NamedText::new("client", format!("{lag} late at p99, where one was free")),
    ];
    paced.into_iter().chain(rate_kept(window)).collect()
}

/// Contents of the sampled responses.
fn content(window: &MeasuredWindow<'_>) -> Option<String> {
    let sampled = window.sampled();
    let mean = |all: u64| bytes(all as f64 / sampled.count as f64);
    let different = match sampled.different {
        0 => return None,
        1 => "all the same".to_owned(),
        several => format!("{} different", count(several as u64)),
    };
    let decoded = mean(sampled.decoded_bytes);
    let sent = format!(", sent as {}", mean(sampled.encoded_bytes));
    let sent = if sampled.decoded_bytes == sampled.encoded_bytes {
        ""
    } else {
        &sent
    };
    let (sampled, of) = (count(sampled.count), count(window.slice.counts.responses));
    Some(format!(
        "{sampled} of {of} sampled: {different}, {decoded} on average{sent}"
    ))
}

fn tone(kept: RateKept) -> Tone {
    match kept {
        RateKept::Up => Tone::Good,
        RateKept::Behind | RateKept::Failing | RateKept::NoSuccess => Tone::Bad,
        RateKept::ClientLate | RateKept::NothingDue => Tone::Doubtful,
    }
}

fn capacity(of: &Measurement<'_>) -> Option<DocumentPart> {
    let capacity = of.capacity.as_ref()?;
    let per_s = capacity
        .throughput_per_s()
        .filter(|_| capacity.has_success())
        .map_or(NONE.to_owned(), rate);
    let window = span(capacity.slice.counts.window_ns as f64 / 1e9);
    let text = format!("{per_s}, successful responses in closed loop for {window}");
    Some(DocumentPart::Lines(vec![NamedText::new(
        "saturation",
        text,
    )]))
}

/// A line for each rate.
fn steps(of: &Measurement<'_>) -> Table {
    let figures = [
        "asked",
        "due",
        "sent",
        "throughput",
        "p50",
        "p99",
        "p99.9",
        "queued",
        "late",
    ];
    let mut table = Table::of_figures("", [], figures);
    table.columns.push(("result", ColumnFit::Whole).into());
    for window in &of.windows {
        let open = window.slice.counts.open.as_deref();
        let per_s = |amount: u64| Cell::figure(window.per_s(amount).map(Quantity::per_s));
        let time = |of: Option<&Latencies>, q| of.map_or(Cell::Missing, |of| at(of, q));
        let response = open.map(|open| &open.response);
        let result = window
            .kept()
            .map(|kept| Cell::Word(tone(kept), kept.words().to_owned()));
        table.push(vec![
            Cell::text(&window.name),
            Cell::optional(window.asked.open.map(|open| rate_text(open.rate))),
            open.map_or(Cell::Missing, |open| per_s(open.sent_in_window)),
            per_s(window.slice.counts.successful_in_window),
            time(response, 0.5),
            time(response, 0.99),
            time(response, 0.999),
            Cell::optional(open.and_then(|open| open.queued_share()).map(share)),
            time(open.map(|open| &open.schedule_lag), 0.99),
            result.unwrap_or(Cell::Missing),
        ]);
    }
    table
}
