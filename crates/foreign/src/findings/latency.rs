//! Checks of the latencies of a single run: whether they were measured, for which requests, and their meaning.

use std::borrow::Cow;

use model::quantity::{count, decimal, many, span};
use model::{Evidence, Grade, Quantity, evidence};

use super::{RunFinding, graded, share};
use crate::counting::KEPT_UP;
use crate::run::ToolRun;
use crate::tool::Tool;
use crate::tools::{LateResponses, RateOf, ToolPace};

/// From this share of timeouts on, the rest is not a usable sample.
const ALL: f64 = 0.999;
/// Minimum number of requests beyond a quantile, as in Proofload's own experiments.
const BEYOND: f64 = 10.0;
/// JSON has higher percentiles by default.
const JSON_PERCENT_MAX: f64 = 99.0;
/// Maximum relative deviation of connections / throughput from the latency to count as equal.
const LITTLE_WITHIN: f64 = 0.1;
/// A latency between these, as a share of the tool's limit, is the limit.
const LIMIT_BEGIN: f64 = 0.999;
const LIMIT_END: f64 = 1.02;
/// wrk2 calibrates itself for this time.
const CALIBRATION_S: f64 = 10.0;
/// Connections / throughput beyond this multiple of the mean latency are idle connections.
const IDLE_FACTOR: f64 = 2.0;
/// Fewer requests for each connection are mostly start and end.
const IDLE_REQUESTS_MIN: f64 = 10.0;

/// Timeouts, the requests that include them, and their share.
fn timeouts_of(run: &ToolRun) -> (u64, u64, f64) {
    let timeouts = run.failures.timeouts.unwrap_or(0);
    let requests = run.requests.unwrap_or(0);
    let all = match (run.tool.row().failures_within, run.tool.row().late) {
        (true, _) | (false, LateResponses::Counted | LateResponses::Checked) => {
            requests.max(timeouts)
        }
        (false, LateResponses::Lost | LateResponses::AtLimit) => requests.saturating_add(timeouts),
    };
    (timeouts, all, share(timeouts, all))
}

fn timed_out(words: String, timeouts: u64, share: f64) -> Evidence {
    Evidence::new(
        words,
        [
            ("timeouts", Quantity::count(timeouts)),
            ("timeout_share", Quantity::share(share)),
        ],
    )
}

/// Every request timed out, or the latencies are zeros.
pub fn never_measured(run: &ToolRun) -> Option<RunFinding> {
    let (timeouts, requests, share) = timeouts_of(run);
    // Where nothing was answered for other reasons, these have their own finding.
    let answered =
        run.responses().unwrap_or(0) > 0 && run.requests_per_s != Some(0.0) || timeouts > 0;
    let (all, zeros) = (
        timeouts > 0 && is_all(run, share) && run.tool.row().late != LateResponses::Checked,
        run.latency.unmeasured && requests > 0 && answered,
    );
    let what = match timeouts {
        0 => format!("{} and no latency", many(requests, "request")),
        _ => format!(
            "{} of {} timed out",
            count(timeouts),
            many(requests, "request")
        ),
    };
    let printed = if run.latency.unmeasured {
        "; latency printed as 0 or nan"
    } else {
        ""
    };
    let seen = || timed_out(format!("{what}{printed}{}", wait(run)), timeouts, share);
    (all || zeros).then(|| (Grade::Invalid, seen()))
}

/// Whether all requests timed out. Rounded counts do not show it if a latency was printed.
fn is_all(run: &ToolRun, share: f64) -> bool {
    share >= ALL && !(run.rounded && run.latency.mean_us.is_some())
}

/// Some requests timed out, and are missing in the latencies.
pub fn timeouts(run: &ToolRun) -> Option<RunFinding> {
    let (timeouts, requests, share) = timeouts_of(run);
    if timeouts == 0 || run.latency.unmeasured {
        return None;
    }
    if run.tool.row().late == LateResponses::Checked {
        let seen = evidence!("{timeouts} times a connection was found waiting";
            timeouts = Quantity::count(timeouts));
        return Some((Grade::Warning, seen));
    }
    if is_all(run, share) {
        return None;
    }
    let rest = count(requests.saturating_sub(timeouts));
    let lost = run.tool.row().late != LateResponses::AtLimit;
    let rest = match share > 0.5 && lost && requests > timeouts {
        true => format!("; what is printed is the latency of the other {rest}"),
        false => String::new(),
    };
    let part = Quantity::share(share);
    let words = format!(
        "{} of {} ({part}){rest}{}",
        count(timeouts),
        many(requests, "request"),
        wait(run)
    );
    Some((graded(share), timed_out(words, timeouts, share)))
}

/// The wait of each request if all connections always have one in flight (Little's law), if that is long.
fn wait(run: &ToolRun) -> String {
    let closed = run.is_closed_loop();
    match (run.connections_opened(), run.rate()) {
        (Some(connections), Some(rate)) if closed && connections as f64 / rate >= 1.0 => {
            let (rate, each) = (
                Quantity::per_s(rate),
                Quantity::seconds(connections as f64 / rate),
            );
            format!(
                "; {} at {rate} wait {each} each",
                many(connections, "connection")
            )
        }
        _ => String::new(),
    }
}

/// The handling of requests that exceed the tool's limit.
pub fn why(run: &ToolRun) -> Cow<'static, str> {
    let by = match run.load.timeout_s {
        Some(_) => "--timeout",
        None => "if no flag says otherwise",
    };
    let limit = run.limit_s().map_or_else(
        || "its limit".to_owned(),
        |limit| format!("{} ({by})", span(limit)),
    );
    Cow::Owned(match run.tool.row().late {
        LateResponses::Counted => format!(
            "wrk counts a response that took more than {limit} as a timeout, leaves it out of every latency, and counts it in \
             Requests/sec all the same."
        ),
        LateResponses::Checked => format!(
            "wrk2 checks every 2 s which connections wait for more than {limit}, and counts each such check. Late responses are in \
             its latencies."
        ),
        LateResponses::AtLimit => format!(
            "{} gives a request up after {limit}, and has it in its latencies with that time: percentiles there are lower bounds.",
            run.tool.name()
        ),
        LateResponses::Lost => format!(
            "What took longer than {limit} is in no percentile, so these look better than what users saw."
        ),
    })
}

/// Open loop: the tool could not keep the rate.
pub fn fell_behind(run: &ToolRun) -> Option<RunFinding> {
    if let Some(unsent) = run.unsent {
        let sent = run.requests.unwrap_or(0);
        let seen = evidence!("{unsent_requests} were not sent, beside {}", many(sent, "request");
            unsent_requests = Quantity::count(unsent));
        return (share(unsent, sent.saturating_add(unsent)) > 1.0 - KEPT_UP)
            .then_some((Grade::Invalid, seen));
    }
    let told = run.tool.row().pace == ToolPace::Responses;
    let (asked, rate) = (run.load.rate_per_s.filter(|_| told)?, run.rate()?);
    let seen = evidence!("{asked_per_s} requested, {done_per_s} done";
        asked_per_s = Quantity::per_s(asked), done_per_s = Quantity::per_s(rate));
    (rate < KEPT_UP * run.rate_due(asked)).then_some((Grade::Invalid, seen))
}

/// Too few requests for the highest quantile shown.
pub fn tail(run: &ToolRun) -> Option<RunFinding> {
    let all = run
        .responses()
        .filter(|responses| *responses > 0 && !run.latency.unmeasured)?;
    let told = |percent: f64| percent < 100.0 && !(run.json && percent > JSON_PERCENT_MAX);
    let shown = run
        .latency
        .quantiles
        .iter()
        .map(|one| one.percent)
        .filter(|percent| told(*percent));
    let highest = shown.fold(0.0, f64::max);
    let beyond = all as f64 * (100.0 - highest) / 100.0;
    if highest == 0.0 || beyond >= BEYOND {
        return None;
    }
    let wanted = (BEYOND / (1.0 - highest / 100.0)).round() as u64;
    let seen = evidence!("p{highest} is a matter of {} of {}; it takes {requests_wanted}", decimal(beyond, 1), many(all, "request");
        requests_wanted = Quantity::count(wanted));
    let named = [
        ("percent", Quantity::number(highest)),
        ("requests", Quantity::count(all)),
    ];
    Some((Grade::Warning, seen.with(named)))
}

/// Closed loop: the mean latency is just connections / throughput.
pub fn little(run: &ToolRun) -> Option<RunFinding> {
    // ab computes its own mean by this formula.
    if !run.is_closed_loop() || run.latency.mean_computed {
        return None;
    }
    let (connections, rate, mean) = (run.connections_opened()?, run.rate()?, run.latency.mean_us?);
    let at_once = connections.saturating_mul(run.load.pipelining.unwrap_or(1).max(1));
    let little = at_once as f64 / rate * 1e6;
    if little <= 0.0 || (mean / little - 1.0).abs() > LITTLE_WITHIN {
        return None;
    }
    let seen = evidence!("{} / {} = {connections_over_rate_us}; printed: {mean_us}", count(at_once), Quantity::per_s(rate);
        connections_over_rate_us = Quantity::us(little), mean_us = Quantity::us(mean));
    Some((Grade::Warning, seen))
}

/// Quantiles or a maximum at the limit, of tools that record it for what took longer.
pub fn at_limit(run: &ToolRun) -> Option<RunFinding> {
    if run.tool.row().late != LateResponses::AtLimit {
        return None;
    }
    let limit_s = run.limit_s()?;
    let is_limit = |us: f64| (LIMIT_BEGIN..=LIMIT_END).contains(&(us / 1e6 / limit_s));
    let quantiles = run.latency.quantiles.iter().filter(|one| is_limit(one.us));
    let mut names: Vec<String> = quantiles.map(|one| format!("p{}", one.percent)).collect();
    names.extend(
        run.latency
            .max_us
            .filter(|us| is_limit(*us))
            .map(|_| "max".to_owned()),
    );
    if names.is_empty() {
        return None;
    }
    let seen = evidence!("{}: the limit of {}, {limit_s}", names.join(", "), run.tool.name();
        limit_s = Quantity::seconds(limit_s));
    Some((Grade::Warning, seen))
}

/// The time that wrk2 does not record.
pub fn calibration(run: &ToolRun) -> Option<RunFinding> {
    let seconds = run
        .seconds()
        .filter(|_| run.tool == Tool::Wrk2 && run.latency.mean_us.is_some())?;
    let rest = (seconds - CALIBRATION_S).max(0.0);
    let seen = evidence!("latencies are of {measured_s} of {}", Quantity::seconds(seconds);
        measured_s = Quantity::seconds(rest));
    let grade = if rest < CALIBRATION_S / 2.0 {
        Grade::Warning
    } else {
        Grade::Note
    };
    Some((grade, seen))
}

/// A mean latency far below connections / throughput.
pub fn idle(run: &ToolRun) -> Option<RunFinding> {
    let failed = run.failures.unanswered() > 0;
    let measured = !run.latency.mean_computed && !run.latency.unmeasured && !failed;
    if !run.is_closed_loop() || !measured || run.tool == Tool::H2load {
        return None;
    }
    let (connections, rate, mean) = (run.connections_opened()?, run.rate()?, run.latency.mean_us?);
    let enough = run.requests? as f64 >= IDLE_REQUESTS_MIN * connections as f64;
    let little =
        connections.saturating_mul(run.load.pipelining.unwrap_or(1).max(1)) as f64 / rate * 1e6;
    // Tools print some means in whole milliseconds.
    let coarse = mean < 1e3 && run.tool.row().rate_of == RateOf::Samples;
    if !enough || coarse || little < IDLE_FACTOR * mean {
        return None;
    }
    let seen = evidence!("{} / {} = {connections_over_rate_us}; printed: {mean_us}", count(connections), Quantity::per_s(rate);
        connections_over_rate_us = Quantity::us(little), mean_us = Quantity::us(mean));
    Some((Grade::Warning, seen))
}
