//! The report of a plan that compares nothing: what each slice gave, as whoever knows wrk expects it. Nothing is concluded here.

use analysis::measurement::{Bend, Kept, Stretch};
use analysis::{Finding, Measurement, Window};
use model::document::{Block, Cell, Document, Fit, Line, Remark, Table, Tone};
use model::quantity::{NONE, Quantity, bytes, count, many, micros, rate, share, span, three_digits};
use model::{EndpointCounts, Protocol, Rate, Until};
use plan::{Load, Variant};
use record::Record;
use serde_json::Value;
use stats::{Latencies, Quantile};

use crate::Measured;
use crate::csv::{Field, Figures};
use crate::form::Report;
use crate::page::PageData;
use crate::validity::explained_by;

mod brief;
mod data;

/// The quantiles shown, with their names.
const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
/// The same of the longer distribution.
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

/// A measurement of one variant, and how it is to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Loaded<'a> {
    /// The record and what is concluded of it.
    pub measured: Measured<'a>,
    /// Whether more of the distribution of latencies is shown.
    pub distribution: bool,
    /// What another tool, whose command line was given, would have done or shown otherwise.
    pub differences: &'a [String],
}

impl<'a> Loaded<'a> {
    /// A record as it is shown without being asked for more; `None` where its plan compares.
    pub(crate) fn of(measured: &Measured<'a>) -> Option<Loaded<'a>> {
        let alone = measured.record.header.plan.measure.is_some();
        alone.then_some(Loaded { measured: *measured, distribution: false, differences: &[] })
    }

    fn record(&self) -> &'a Record {
        self.measured.record
    }

    fn variant(&self) -> Option<&'a Variant> {
        self.record().header.plan.variants.first()
    }

    fn load(&self) -> Option<&'a Load> {
        self.variant().map(|variant| &variant.load)
    }

    /// What was requested, and where.
    fn title(&self) -> String {
        let title = self.load().map(Load::title).unwrap_or_default();
        let Some(entry) = self.variant().and_then(Variant::entry_service) else { return title };
        let only = self.load().filter(|load| !load.is_mix()).and_then(|load| load.requests.first());
        match (entry.url(), only) {
            (Some(url), Some(only)) => format!("{} {}{}", only.method, url.origin(), only.path),
            (Some(url), None) => format!("{title} at {}", url.origin()),
            (None, _) => format!("{title} at {}", entry.name),
        }
    }

    /// Connections, threads and times, and how it was spoken to where that is not the usual.
    fn asked(&self, of: &Measurement<'_>) -> Vec<String> {
        let Some(load) = self.load() else { return Vec::new() };
        let first = of.windows.first().or(of.capacity.as_ref());
        let window = first.map(|window| match window.asked.until {
            Until::Elapsed(_) if of.planned == 1 => span(window.slice.counts.window_ns as f64 / 1e9),
            Until::Elapsed(length) => span(length.as_secs_f64()),
            Until::Requests(total) => format!("{} requests", count(total)),
        });
        let steps =
            |window| if of.planned > 1 { format!("{} steps of {window}", of.planned) } else { window };
        let kind = first.map(|window| match window.asked.open {
            None => "closed loop".to_owned(),
            Some(open) if of.planned > 1 => format!("open loop, {}", open.process.name()),
            Some(open) => {
                let word = if matches!(open.rate, Rate::Ramp { .. }) { "from" } else { "at" };
                let share = if open.ask.needs_capacity() {
                    format!("{} of saturation, ", open.ask)
                } else {
                    String::new()
                };
                format!("open loop {word} {share}{}, {}", rate_text(open.rate), open.process.name())
            }
        });
        let threads =
            first.map(|window| many(window.slice.counts.generator.wall_ns.len().max(1) as u64, "thread"));
        let parts = [
            Some(many(load.connections.into(), "connection")),
            threads,
            window.map(steps),
            Some(format!("timeout {}", span(load.timeout.as_secs_f64()))),
            kind,
        ];
        let unusual = unusual(load);
        let asked = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        [asked].into_iter().chain((!unusual.is_empty()).then(|| unusual.join(", "))).collect()
    }

    /// How the figures are to be read, which is no finding.
    fn notes(&self, of: &Measurement<'_>) -> Vec<String> {
        let Some(load) = self.load() else { return Vec::new() };
        let responses = of.windows.iter().any(|window| window.slice.counts.responses > 0);
        let closed = responses && of.windows.iter().all(|window| window.asked.open.is_none());
        let tls = if load.tls.is_some() { " and the TLS handshake" } else { "" };
        let under_way = if load.protocol.lanes() > 1 { "requests under way" } else { "connections" };
        let not_begun = of.planned.saturating_sub(of.windows.len());
        let notes = [
            (of.interrupted && not_begun == 0).then(|| "Stopped early: these are the figures up to then.".to_owned()),
            (not_begun > 0 && !of.windows.is_empty())
                .then(|| format!("Stopped early: {not_begun} of {} steps did not begin.", of.planned)),
            (not_begun > 0 && of.windows.is_empty() && of.capacity.is_some())
                .then(|| "This was the measurement of saturation; the load at a share of it did not begin.".to_owned()),
            closed.then(|| {
                format!(
                    "Closed loop: each connection sends its next request when the last one is done. Once the service is saturated, latency \
                     is {under_way} ÷ throughput and says nothing more."
                )
            }),
            matches!(load.protocol, Protocol::Http1 { pipeline: 2.. }).then(|| {
                "Pipelining: no browser does it, and the latency of a request contains the wait for the responses to those before it on \
                 its connection."
                    .to_owned()
            }),
            (!load.keep_alive)
                .then(|| format!("Each request opened a connection of its own: latency includes connecting{tls}.")),
        ];
        notes.into_iter().flatten().collect()
    }

    /// A slice alone: lines, and its latencies.
    fn screen(&self, window: &Window<'_>) -> Vec<Block> {
        let mut blocks = vec![Block::Lines(lines(window)), Block::Table(self.latencies(window))];
        blocks.extend(endpoints(window).map(Block::Table));
        if window.has_success() {
            blocks.extend(ramp(window));
        }
        blocks
    }

    fn latencies(&self, window: &Window<'_>) -> Table {
        let kinds = kinds(window);
        if !self.distribution {
            return latencies(&kinds);
        }
        let columns = kinds.iter().map(|(name, _)| *name);
        let mut table = Table::of_figures("", [("latency", Fit::Whole)], columns);
        for (name, q) in DISTRIBUTION {
            let cells = kinds.iter().map(|(_, latencies)| at(latencies, q));
            table.push([Cell::text(name)].into_iter().chain(cells).collect());
        }
        table
    }
}

impl Report for Loaded<'_> {
    fn document(&self) -> Document {
        let Some(of) = analysis::measurement(self.record()) else { return self.measured.document() };
        let mut blocks: Vec<Block> =
            self.asked(&of).into_iter().map(|asked| Block::Paragraph(Tone::Plain, asked)).collect();
        let void = of.void().map(|finding| format!("Nothing to measure: {}", finding.evidence));
        blocks.extend(void.clone().map(|void| Block::Paragraph(Tone::Bad, void)));
        blocks.extend(capacity(&of).map(|line| Block::Lines(vec![line])));
        match (of.only(), of.capacity.as_ref().filter(|_| of.windows.is_empty())) {
            (Some(window), _) | (None, Some(window)) => blocks.extend(self.screen(window)),
            (None, None) => {
                blocks.push(Block::Table(steps(&of)));
                let about = "p50 to p99.9: response time, from when a request was due. late: how late the client sent at p99 where a \
                             connection was free.";
                blocks.push(Block::Paragraph(Tone::Faint, about.to_owned()));
            }
        }
        let findings = &self.measured.conclusion.findings;
        blocks.push(Block::Findings(remarks(findings), explained_by(findings.iter())));
        let notes = self.notes(&of).into_iter().chain(self.differences.iter().cloned());
        blocks.extend(notes.map(|note| Block::Paragraph(Tone::Faint, note)));
        let headline = void.or(of.only().map(headline));
        Document { headline, ..Document::new(self.title(), blocks) }
    }

    fn brief(&self) -> Document {
        self.first_screen()
    }

    fn data(&self) -> Value {
        analysis::measurement(self.record()).map_or(Value::Null, |of| data::data(self, &of))
    }

    fn figures(&self) -> Option<Figures> {
        Some(csv(&analysis::measurement(self.record())?))
    }

    fn page(&self) -> Option<PageData> {
        self.measured.page()
    }
}

/// What is not as usual.
fn unusual(load: &Load) -> Vec<String> {
    let protocol = match load.protocol {
        Protocol::Http1 { pipeline: 1 } => None,
        Protocol::Http1 { pipeline } => Some(format!("pipelining, up to {pipeline} requests a connection")),
        Protocol::Http2 { streams } => {
            Some(format!("HTTP/2, up to {} a connection", many(streams.into(), "stream")))
        }
    };
    let sources = match load.sources.as_slice() {
        [] => None,
        [only] => Some(format!("from {only}")),
        several => Some(format!("from {} addresses", several.len())),
    };
    let parts = [
        protocol,
        (!load.keep_alive).then(|| "a connection for each request".to_owned()),
        load.tls.as_ref().filter(|tls| tls.insecure).map(|_| "certificates not checked".to_owned()),
        sources,
    ];
    parts.into_iter().flatten().collect()
}

/// What was asked for as rates.
fn rate_text(of: Rate) -> String {
    match of {
        Rate::Constant(per_s) => rate(per_s),
        Rate::Ramp { from_per_s, to_per_s, .. } => format!("{} to {}", rate(from_per_s), rate(to_per_s)),
    }
}

fn headline(window: &Window<'_>) -> String {
    let throughput = window.throughput_per_s().map_or(NONE.to_owned(), rate);
    let latencies = kinds(window).into_iter().next();
    let p99 = latencies.and_then(|(name, latencies)| Some((name, shown(latencies, 0.99)?)));
    let p99 = p99.map(|(name, p99)| format!(", p99 {} ({name})", written(p99))).unwrap_or_default();
    format!("{throughput} successful responses{p99}")
}

/// In open loop response time first: it is what a user waits.
fn kinds<'a>(window: &Window<'a>) -> Vec<(&'static str, &'a Latencies)> {
    let counts = &window.slice.counts;
    let first = match &counts.open {
        None => vec![("complete", &counts.latency)],
        Some(open) => vec![("response", &open.response), ("service", &counts.latency)],
    };
    let opening = [("connect", &counts.connect), ("handshake", &counts.handshake)];
    let opening = opening.into_iter().filter(|(_, latencies)| !latencies.is_empty());
    first.into_iter().chain([("first byte", &counts.first_byte)]).chain(opening).collect()
}

fn latencies(kinds: &[(&str, &Latencies)]) -> Table {
    let mut table = Table::of_figures("", [("latency", Fit::Whole)], QUANTILES.map(|(name, _)| name));
    for (name, latencies) in kinds {
        let cells = QUANTILES.iter().map(|(_, q)| at(latencies, *q));
        table.push([Cell::text(*name)].into_iter().chain(cells).collect());
    }
    table
}

/// Quantiles for which there are too few samples are not shown.
fn shown(latencies: &Latencies, q: f64) -> Option<Quantile> {
    latencies.quantile(q).filter(|_| q == 1.0 || latencies.resolves(q))
}

/// Each with a unit of its own: a maximum may be a thousand times the median.
fn at(latencies: &Latencies, q: f64) -> Cell {
    Cell::optional(shown(latencies, q).map(written))
}

fn written(quantile: Quantile) -> String {
    let sign = if quantile.is_exact() { "" } else { "≥ " };
    format!("{sign}{}", Quantity::ns(quantile.ns()))
}

fn lines(window: &Window<'_>) -> Vec<Line> {
    let counts = &window.slice.counts;
    let mut lines = vec![
        Line::new("requests", requests(window)),
        throughput(window),
        Line::new("transfer", transfer(window)),
    ];
    lines.extend(pace(window));
    let made = counts.handshake.count() - counts.handshake.censored();
    lines.extend((made > 0).then(|| {
        Line::new("TLS", format!("{} handshakes, {} of them resumed", count(made), count(counts.tls_resumed)))
    }));
    lines.extend(outcomes(window));
    lines.extend(content(window).map(|content| Line::new("content", content)));
    lines.extend(service(window).map(|used| Line::new("service", used)));
    lines.push(errors(window).unwrap_or_else(|| Line::new("errors", "none")));
    lines.extend(counts.tls_error.as_ref().map(|error| Line::new("TLS error", error.clone())));
    lines
}

/// How many responses had each status, and what was wrong with those that were not expected.
fn throughput(window: &Window<'_>) -> Line {
    let told = window.throughput_per_s().map(|per_s| format!("{}, successful responses", rate(per_s)));
    Line::new("throughput", told.unwrap_or(NONE.to_owned()))
}

fn outcomes(window: &Window<'_>) -> Vec<Line> {
    let counts = &window.slice.counts;
    let status: Vec<String> =
        counts.status.iter().map(|(code, number)| format!("{code} × {}", count(*number))).collect();
    let status = Line::new("status", if status.is_empty() { NONE.to_owned() } else { status.join("   ") });
    let failures = counts.contract_failures.iter().map(|failure| {
        let text = format!("{} × {}, for example {}", failure.kind, count(failure.count), failure.example);
        Line::new("failed", text)
    });
    [status].into_iter().chain(failures).collect()
}

fn errors(window: &Window<'_>) -> Option<Line> {
    let errors = window.slice.counts.errors.iter();
    let errors: Vec<String> =
        errors.map(|error| format!("{} {} × {}", error.phase, error.cause, count(error.count))).collect();
    (!errors.is_empty()).then(|| Line::new("errors", errors.join("   ")))
}

/// Whether the service kept up, of an open loop.
fn verdict(window: &Window<'_>) -> Option<Line> {
    window.kept().map(|kept| Line::new("verdict", kept.words()))
}

/// What the services used, where their processes may be looked at.
fn service(window: &Window<'_>) -> Option<String> {
    let slice = window.slice;
    let (cpu_ns, wall_ns) = (slice.services_cpu_ns(), slice.counts.window_ns + slice.counts.drain_ns);
    let seen = cpu_ns > 0 && slice.counts.successful > 0 && wall_ns > 0;
    let each = || micros(cpu_ns as f64 / 1e3 / slice.counts.successful as f64);
    seen.then(|| {
        format!("{} of CPU time per request, {} cores", each(), three_digits(cpu_ns as f64 / wall_ns as f64))
    })
}

fn requests(window: &Window<'_>) -> String {
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
    let always = [
        format!("{} sent", count(counts.sent)),
        format!("{} responses", count(counts.responses)),
        format!("{} successful", count(counts.successful)),
    ];
    due.into_iter().chain(always).chain(parts).collect::<Vec<_>>().join(", ")
}

fn transfer(window: &Window<'_>) -> String {
    let Some((per_s, each)) = window.transfer_per_s().zip(window.bytes_per_response()) else {
        return NONE.to_owned();
    };
    format!("{}/s, {} a response", bytes(per_s), bytes(each))
}

/// Whether the load was what was asked for.
fn pace(window: &Window<'_>) -> Vec<Line> {
    let Some((asked, open)) = window.asked.open.zip(window.slice.counts.open.as_ref()) else {
        return Vec::new();
    };
    let sent = window.per_s(open.sent_in_window).map_or(NONE.to_owned(), rate);
    let due = match asked.rate {
        Rate::Constant(_) => None,
        Rate::Ramp { .. } => {
            window.per_s(open.intended).map(|due| format!(" of {} due on average", rate(due)))
        }
    };
    let lag =
        open.schedule_lag.quantile(0.99).map_or(NONE.to_owned(), |lag| Quantity::ns(lag.ns()).to_string());
    let paced = [
        Line::new(
            "rate",
            format!("{sent} sent{}, {} asked for", due.unwrap_or_default(), rate_text(asked.rate)),
        ),
        Line::new(
            "queue",
            format!("{} of {} found no connection free", count(open.queued), count(open.intended)),
        ),
        Line::new("client", format!("{lag} late at p99, where one was free")),
    ];
    paced.into_iter().chain(verdict(window)).collect()
}

/// What the sampled responses contained.
fn content(window: &Window<'_>) -> Option<String> {
    let sampled = window.sampled();
    let mean = |all: u64| bytes(all as f64 / sampled.count as f64);
    let different = match sampled.different {
        0 => return None,
        1 => "all the same".to_owned(),
        several => format!("{} different", count(several as u64)),
    };
    let (decoded, encoded) = (mean(sampled.decoded_bytes), mean(sampled.encoded_bytes));
    let sent = if sampled.decoded_bytes == sampled.encoded_bytes {
        String::new()
    } else {
        format!(", sent as {encoded}")
    };
    let of = count(window.slice.counts.responses);
    Some(format!("{} of {of} sampled: {different}, {decoded} on average{sent}", count(sampled.count)))
}

/// What became of each of several requests.
fn endpoints(window: &Window<'_>) -> Option<Table> {
    let endpoints = &window.slice.counts.endpoints;
    use Fit::{CutEnd, Figure, Wrapped};
    let figures = ["sent", "throughput", "p50", "p99"].map(|name| (name, Figure));
    let columns = [("endpoint", CutEnd)].into_iter().chain(figures).chain([("status", Wrapped)]);
    let mut table = Table::new("", columns);
    for endpoint in endpoints {
        let latencies = together(endpoint, window.asked.open.is_some());
        table.push(vec![
            Cell::text(&endpoint.name),
            Cell::figure(Some(Quantity::count(endpoint.sent))),
            Cell::figure(window.per_s(endpoint.successful_in_window).map(Quantity::per_s)),
            at(&latencies, 0.5),
            at(&latencies, 0.99),
            Cell::text(statuses(endpoint)),
        ]);
    }
    (endpoints.len() > 1).then_some(table)
}

/// Of all outcomes: response time where requests were due.
fn together(endpoint: &EndpointCounts, open: bool) -> Latencies {
    let mut all = Latencies::new();
    for ended in &endpoint.outcomes {
        all.merge(if open { &ended.response } else { &ended.latency });
    }
    all
}

fn statuses(endpoint: &EndpointCounts) -> String {
    let name = |status: Option<u16>| status.map_or("no response".to_owned(), |status| status.to_string());
    match endpoint.outcomes.as_slice() {
        [] => NONE.to_owned(),
        // It is that of all that were sent.
        [only] => name(only.status),
        several => {
            let each = several.iter().map(|o| format!("{} × {}", name(o.status), count(o.latency.count())));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The tenths of a ramp, and in a sentence what it bends at; nothing of another load.
fn ramp(window: &Window<'_>) -> Vec<Block> {
    let stretches = window.stretches();
    if stretches.is_empty() {
        return Vec::new();
    }
    use Fit::{Figure, Whole};
    let columns = [("ramp at", Figure), ("due", Figure), ("throughput", Figure), ("", Whole)];
    let mut table = Table::new("", columns);
    stretches.iter().for_each(|stretch| table.push(tenth(stretch)));
    let sentence = window.bend().map(|bend| Block::Paragraph(Tone::Strong, bend_text(bend)));
    [Block::Table(table)].into_iter().chain(sentence).collect()
}

fn tenth(stretch: &Stretch) -> Vec<Cell> {
    let kept = if stretch.kept { Kept::Up } else { Kept::Behind };
    vec![
        Cell::text(format!("{:.1} s", stretch.from_s)),
        Cell::figure(Some(Quantity::per_s(stretch.due_per_s()))),
        Cell::figure(Some(Quantity::per_s(stretch.ok_per_s()))),
        Cell::Word(tone(kept), kept.words().to_owned()),
    ]
}

fn bend_text(bend: Bend) -> String {
    match bend {
        Bend::At(per_s) => format!("Kept up to about {}.", rate(per_s)),
        Bend::Perhaps(per_s) => {
            format!("Fell behind beyond {} only: a ramp to more says whether it bends there.", rate(per_s))
        }
        Bend::NotUpTo(per_s) => format!("Did not bend up to {}.", rate(per_s)),
        Bend::AtLowest(per_s) => {
            format!("Fell behind from {} on: a ramp from less says what it keeps up with.", rate(per_s))
        }
        Bend::Uneven { kept, gave } => {
            format!(
                "Fell behind beyond {}, but gave {} at another time: no bend to be seen.",
                rate(kept),
                rate(gave)
            )
        }
    }
}

fn tone(kept: Kept) -> Tone {
    match kept {
        Kept::Up => Tone::Good,
        Kept::Behind | Kept::Failing | Kept::NoSuccess => Tone::Bad,
        Kept::ClientLate => Tone::Doubtful,
    }
}

fn capacity(of: &Measurement<'_>) -> Option<Line> {
    let capacity = of.capacity.as_ref()?;
    let per_s = capacity.throughput_per_s().filter(|_| capacity.has_success()).map_or(NONE.to_owned(), rate);
    let window = span(capacity.slice.counts.window_ns as f64 / 1e9);
    Some(Line::new("saturation", format!("{per_s}, successful responses in closed loop for {window}")))
}

/// A line for each rate.
fn steps(of: &Measurement<'_>) -> Table {
    let figures = ["asked", "due", "sent", "throughput", "p50", "p99", "p99.9", "queued", "late"];
    let columns = figures.map(|name| (name, Fit::Figure)).into_iter().chain([("verdict", Fit::Whole)]);
    let mut table = Table::new("", columns);
    for window in &of.windows {
        let open = window.slice.counts.open.as_deref();
        let per_s = |amount: Option<u64>| {
            Cell::figure(amount.and_then(|amount| window.per_s(amount)).map(Quantity::per_s))
        };
        let mut cells = vec![
            Cell::text(&window.name),
            Cell::optional(window.asked.open.map(|open| rate_text(open.rate))),
            per_s(open.map(|open| open.sent_in_window)),
            per_s(Some(window.slice.counts.successful_in_window)),
        ];
        cells.extend([0.5, 0.99, 0.999].map(|q| open.map_or(Cell::Missing, |open| at(&open.response, q))));
        cells.push(Cell::optional(open.and_then(|open| open.queued_share()).map(share)));
        cells.push(open.map_or(Cell::Missing, |open| at(&open.schedule_lag, 0.99)));
        cells.push(
            window.kept().map_or(Cell::Missing, |kept| Cell::Word(tone(kept), kept.words().to_owned())),
        );
        table.push(cells);
    }
    table
}

/// Findings of the same check and remedy as one, with what else was seen below the first.
pub(crate) fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Remark> {
    let alike = findings.into_iter().map(|of| ((of.check, of.grade, &of.remedy.text), of));
    let remark = |(_, all): (_, Vec<&Finding>)| {
        let cases = all[1..].iter().map(|of| of.evidence.to_string()).collect();
        Remark { cases, ..all[0].into() }
    };
    model::grouped(alike).into_iter().map(remark).collect()
}

/// One row for each slice and figure.
fn csv(of: &Measurement<'_>) -> Figures {
    let headings = ["slice", "metric", "unit", "value"].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for window in of.capacity.iter().chain(&of.windows) {
        let counts = &window.slice.counts;
        let mut put = |metric: &'static str, unit: &'static str, value: Option<f64>| {
            rows.push(vec![
                Field::Name(window.name.clone()),
                Field::Word(metric),
                Field::Word(unit),
                Field::Figure(value),
            ]);
        };
        put("throughput", "1/s", window.throughput_per_s());
        put("due", "1", Some(counts.due() as f64));
        put("sent", "1", Some(counts.sent as f64));
        put("successful", "1", Some(counts.successful as f64));
        put("failed", "1", Some(counts.failed() as f64));
        let latencies = counts.open.as_ref().map_or(&counts.latency, |open| &open.response);
        for (name, q) in QUANTILES {
            // A bound is no value.
            let exact = shown(latencies, q).filter(|quantile| quantile.is_exact());
            put(name, "us", exact.map(|quantile| quantile.ns() as f64 / 1e3));
        }
    }
    Figures { headings, rows }
}
