//! Whether the latencies that are printed were measured, of how many requests, and what of. It must not compare runs.

use super::{About, Finding, Grade, Seen, above, cases, finding, graded, share};
use crate::figure::{count, digits, many, micros, share as percent};
use crate::run::Run;
use crate::tools::Pace;

/// From this share of timeouts on, what is left is not worth the name of a sample.
const ALL: f64 = 0.999;
/// A larger share of failures voids, as in Proofload's own experiments.
pub(super) const FAILED_SHARE_MAX: f64 = 0.001;
/// Requests wanted beyond a quantile, as in Proofload's own experiments.
const BEYOND: f64 = 10.0;
/// JSON has higher percentiles than anybody asked for.
const JSON_PERCENT_MAX: f64 = 99.0;
/// How near connections / throughput must be to the latency to be all of it.
const LITTLE_WITHIN: f64 = 0.1;
/// A tool that sent less than this share of its rate fell behind.
const KEPT_UP: f64 = 0.99;

/// Timeouts, the requests they are among, and their share. Some tools count a request that timed out, others do not.
fn timeouts_of(run: &Run) -> (u64, u64, f64) {
    let timeouts = run.failures.timeouts.unwrap_or(0);
    let counted = run.tool.facts().counts_timeouts;
    let requests = run.requests.unwrap_or(0);
    let all = if counted { requests.max(timeouts) } else { requests.saturating_add(timeouts) };
    (timeouts, all, share(timeouts, all))
}

/// Every request timed out, or zeros stand where a latency should.
pub fn never_measured(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let (timeouts, requests, share) = timeouts_of(run);
        let all = timeouts > 0 && share >= ALL;
        let zeros = run.latency.unmeasured && requests > 0;
        if !(all || zeros) {
            return None;
        }
        let printed = if run.latency.unmeasured { "; latency printed as 0 or nan" } else { "" };
        let what = if timeouts > 0 {
            format!("{} of {} timed out", count(timeouts), many(requests, "request"))
        } else {
            format!("{} and no latency", many(requests, "request"))
        };
        Seen::new(
            format!("{what}{printed}{}", wait(run)),
            [("timeouts", timeouts as f64), ("timeout_share", share)],
        )
    });
    let statement = "every request timed out: latency was never measured";
    let zeros = cases.iter().all(|case| case.figures.get("timeouts") == Some(&0.0));
    let statement = if zeros { "the latencies are zeros: none was measured" } else { statement };
    finding("latency_never_measured", (Grade::Void, About::Latency), cases, statement, remedy(runs))
}

/// Some requests timed out, and are not in the latencies.
pub fn timeouts(runs: &[Run]) -> Vec<Finding> {
    let cases = cases(runs, |run| {
        let (timeouts, requests, share) = timeouts_of(run);
        if timeouts == 0 || share >= ALL || run.latency.unmeasured {
            return None;
        }
        let mut evidence =
            format!("{} of {} ({})", count(timeouts), many(requests, "request"), percent(share));
        if share > 0.5 {
            evidence += &format!(
                "; what is printed is the latency of the other {}",
                count(requests.saturating_sub(timeouts))
            );
        }
        Seen::new(evidence + &wait(run), [("timeouts", timeouts as f64), ("timeout_share", share)])
    });
    let statement = "requests timed out, and the slowest are missing from the latencies";
    let is_void = |case: &super::Case| above(case, "timeout_share", FAILED_SHARE_MAX);
    graded("timeouts", About::Latency, cases, is_void, (statement, &remedy(runs)))
}

/// What each request waits where all connections always have one under way (Little's law), if that is long.
fn wait(run: &Run) -> String {
    let closed = !run.is_open_loop();
    match (run.connections_opened(), run.rate()) {
        (Some(connections), Some(rate)) if closed && connections as f64 / rate >= 1.0 => {
            let wait = micros(connections as f64 / rate * 1e6);
            format!("; {} at {}/s wait {wait} each", many(connections, "connection"), digits(rate))
        }
        _ => String::new(),
    }
}

fn remedy(runs: &[Run]) -> String {
    let mut timed_out = runs.iter().filter(|run| run.failures.timeouts.unwrap_or(0) > 0);
    let how = timed_out.find_map(|run| run.tool.facts().late_responses).unwrap_or(
        "What took longer than the tool's limit is in no percentile, so these look better than what users saw. ",
    );
    format!("{how}Ask for fewer connections or for a rate, and set the limit above the slowest response.")
}

/// Open loop: the tool could not send as it should.
pub fn fell_behind(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let told = run.tool.facts().pace == Pace::Responses;
        let (asked, rate) = (run.load.rate_per_s.filter(|_| told)?, run.rate()?);
        let evidence = format!("{}/s asked for, {}/s done", digits(asked), digits(rate));
        if rate < KEPT_UP * asked {
            Seen::new(evidence, [("asked_per_s", asked), ("done_per_s", rate)])
        } else {
            None
        }
    });
    finding(
        "fell_behind",
        (Grade::Void, About::Latency),
        cases,
        "the rate was not kept: latency tells how long a queue grew",
        "It would be longer had the run been longer. Ask for a rate that every side can keep.",
    )
}

/// Too few requests for the highest quantile shown.
pub fn tail(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let requests = run.requests.filter(|requests| *requests > 0 && !run.latency.unmeasured)?;
        let told = |percent: f64| percent < 100.0 && !(run.json && percent > JSON_PERCENT_MAX);
        let shown = run.latency.quantiles.iter().map(|one| one.percent).filter(|percent| told(*percent));
        let highest = shown.fold(0.0, f64::max);
        let beyond = |percent: f64| requests as f64 * (100.0 - percent) / 100.0;
        if highest == 0.0 || beyond(highest) >= BEYOND {
            return None;
        }
        let wanted = (BEYOND / (1.0 - highest / 100.0)).round();
        let rests =
            format!("p{highest} is a matter of {:.1} of {}", beyond(highest), many(requests, "request"));
        let evidence = format!("{rests}; it takes {}", count(wanted as u64));
        Seen::new(
            evidence,
            [("percent", highest), ("requests", requests as f64), ("requests_wanted", wanted)],
        )
    });
    finding(
        "tail",
        (Grade::Warning, About::Latency),
        cases,
        "too few requests for the highest percentile shown",
        "A percentile wants ten requests beyond it, 1,000 for p99; below that it is an anecdote.",
    )
}

/// Closed loop: the mean latency is connections / throughput, and nothing beside it.
pub fn little(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        if run.is_open_loop() || run.tool.facts().pace != Pace::Responses {
            return None;
        }
        let (connections, rate, mean) = (run.connections_opened()?, run.rate()?, run.latency.mean_us?);
        let depth = run.load.pipelining.unwrap_or(1).max(1);
        let little = (connections.saturating_mul(depth)) as f64 / rate * 1e6;
        if little <= 0.0 || (mean / little - 1.0).abs() > LITTLE_WITHIN {
            return None;
        }
        let evidence = format!(
            "{} / {}/s = {}; printed: {}",
            count(connections.saturating_mul(depth)),
            digits(rate),
            micros(little),
            micros(mean)
        );
        Seen::new(evidence, [("connections_over_rate_us", little), ("mean_us", mean)])
    });
    finding(
        "closed_loop_latency",
        (Grade::Warning, About::Latency),
        cases,
        "the latency is connections divided by throughput, no second result",
        "In closed loop each connection waits for its answer before it asks again, so the mean follows from throughput (Little's \
         law); who doubles the connections doubles it. What users wait is measured at a rate: `proofload load URL --rate 60%`.",
    )
}
