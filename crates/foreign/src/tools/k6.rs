//! k6: the summary at its end, old and new layout, and its two JSON forms (`--summary-export`,
//! `handleSummary`).
//!
//! Metrics of single scenarios, groups and custom thresholds are not parsed, nor rates and durations of
//! several scenarios.

use serde_json::Value;

use super::{
    Beginning, LateResponses, Meaning, Tool, ToolPace, ToolRow, at, between, ended, percent,
    starts, usual, whole,
};
use crate::draft::{LineTaken, Part, RunDraft, keep};
use crate::number;
use crate::run::{ToolRun, ToolScript};

/// k6's output and flags.
pub static K6: ToolRow = ToolRow {
    flags: &[
        (&["u", "vus"], Meaning::Connections),
        (&["d", "duration"], Meaning::Duration),
    ],
    verbs: &["run"],
    late: LateResponses::AtLimit,
    limit_s: Some(60.0),
    failures_within: true,
    rounds_bytes: true,
    pace: ToolPace::Script,
    prints_headings: true,
    json: Some((from_json, &["\"http_req_duration\""])),
    ..usual(Tool::K6, "k6", begins, take)
};

/// Title of the part about all scenarios together. The parts about each scenario follow it.
const WHOLE: &str = "█ TOTAL RESULTS";

fn begins(text: &str) -> Option<Beginning> {
    match text {
        _ if text.starts_with("execution: local") => Beginning::FIRST,
        _ if text.starts_with(WHOLE) || is_metric(text) || is_load(text) => Beginning::LATER,
        _ => None,
    }
}

/// `http_reqs......................: 180    4.36938/s`, with or without the mark of a threshold.
fn is_metric(text: &str) -> bool {
    metric(text).is_some_and(|(name, _)| {
        matches!(
            name,
            "http_reqs"
                | "http_req_duration"
                | "http_req_failed"
                | "http_req_blocked"
                | "data_received"
                | "dropped_iterations"
        )
    })
}

/// `scenarios: (100.00%) 1 scenario, 200 max VUs, 5m30s max duration`
fn is_load(text: &str) -> bool {
    text.starts_with("scenarios: (") && text.contains(" max VUs, ")
}

fn metric(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['✓', '✗', ' ']);
    let (name, value) = text.split_once(": ").or_else(|| text.split_once(':'))?;
    let bare = name.trim_end().trim_end_matches(['.', '…']);
    let word = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (word && name.trim_end().ends_with(['.', '…'])).then_some((bare, value.trim()))
}

fn take(text: &str, draft: &mut RunDraft) -> LineTaken {
    if starts(text, "█ GROUP:|█ SCENARIO:") {
        draft.part = Part::Skipped;
    } else if text.starts_with(WHOLE) && draft.run.has_figures() {
        return LineTaken::Again;
    } else if text.starts_with(WHOLE) {
        draft.part = Part::Summary;
    }
    let Some((name, value)) = metric(text) else {
        return other(text, draft);
    };
    if draft.part == Part::Skipped {
        return LineTaken::Ours;
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let run = &mut draft.run;
    match name {
        "http_reqs" => {
            // A count wrapped at a blank within it is ignored.
            let Some(rate) = words.get(1).and_then(|word| word.strip_suffix("/s")) else {
                return LineTaken::Ours;
            };
            let taken = draft.requests(first);
            if taken == LineTaken::Ours {
                draft.run.requests_per_s = number::decimal(rate);
                draft.whole = true;
            }
            return taken;
        }
        // Both come before the rate.
        "http_req_duration" | "http_req_failed" if run.requests_per_s.is_some() => {
            return LineTaken::Again;
        }
        "http_req_duration" if run.latency.mean_us.is_some() => return LineTaken::Again,
        "http_req_duration" => durations(&words, draft),
        "http_req_failed" => {
            run.failures.status = failed(&words);
            let printed = percent(first).map(|percent| 1.0 - percent / 100.0);
            run.success_share = printed.filter(|_| run.failures.status.is_some());
            draft.attempts = attempts(&words);
            if run.failures.status.is_none() {
                draft.not_understood();
            }
        }
        "iterations" => script(draft).iterations = number::whole(first),
        "iteration_duration" => {
            let mean = words.iter().find_map(|word| word.strip_prefix("avg="));
            script(draft).iteration_us = mean.and_then(number::us);
        }
        // Before the rate in some versions, after it in others.
        "dropped_iterations" if run.unsent.is_some() => return LineTaken::Again,
        "dropped_iterations" => run.unsent = number::whole(first),
        "vus" => {
            let max = words.iter().find_map(|word| word.strip_prefix("max="));
            draft.users = max.and_then(number::whole);
        }
        "vus_max" => run.load.connections = number::whole(first).or(run.load.connections),
        // Before the rate in old versions, after it in new ones.
        "data_received" if run.bytes.is_some() => return LineTaken::Again,
        "data_received" => {
            let size = words.get(..2).map(|pair| pair.concat());
            run.bytes = size.and_then(|size| number::bytes(&size, 1000.0));
        }
        _ => {}
    }
    LineTaken::Ours
}

fn script(draft: &mut RunDraft) -> &mut ToolScript {
    draft.run.script.get_or_insert_default()
}

/// `running (30.8s), 00/10 VUs, 274 complete and 0 interrupted iterations`: the last one has no VUs at work.
fn progress(text: &str, draft: &mut RunDraft) {
    let ended = between(text, "), ", "/").is_some_and(|active| active.trim_matches('0').is_empty());
    let complete = between(text, "VUs, ", " complete and ").and_then(number::whole);
    if !ended || complete.unwrap_or(0) == 0 {
        return;
    }
    draft.run.duration_s = between(text, "(", ")").and_then(number::seconds);
    script(draft).interrupted =
        between(text, " complete and ", " interrupted").and_then(number::whole);
}

/// `avg=1.2ms min=… med=… max=… p(90)=… p(95)=…`
fn durations(words: &[&str], draft: &mut RunDraft) {
    let mut mean = None;
    let mut max = None;
    for (key, value) in words.iter().filter_map(|word| word.split_once('=')) {
        let us = number::us(value);
        match key {
            "avg" => mean = us,
            "max" => max = us,
            "med" => draft.quantile(Some(50.0), us),
            key => {
                let digits = key
                    .strip_prefix("p(")
                    .and_then(|rest| rest.strip_suffix(')'));
                draft.quantile(digits.and_then(number::decimal), us);
            }
        }
    }
    draft.moments(mean, None, max);
}

/// `0.00%  ✓ 0  ✗ 180` before version 1, `0.00%  0 out of 45` since. In a rate of failures, ✓ counts the
/// failures.
fn failed(words: &[&str]) -> Option<u64> {
    match words {
        [_, "✓", count, "✗", ..] | [_, count, "out", "of", ..] => number::whole(count),
        [_, count, _] => number::whole(count.trim_start_matches('✓')),
        [_, count] => number::whole(count),
        _ => None,
    }
}

/// The number of requests in the same line.
fn attempts(words: &[&str]) -> Option<u64> {
    match words {
        [_, "✓", failed, "✗", passed] => {
            number::whole(failed)?.checked_add(number::whole(passed)?)
        }
        [_, _, "out", "of", all] => number::whole(all),
        _ => None,
    }
}

/// Lines of the summary and of its progress without a parsed figure.
fn other(text: &str, draft: &mut RunDraft) -> LineTaken {
    // The following duration includes the graceful stop. The duration of the load is printed below.
    if is_load(text) && draft.run.requests_per_s.is_some() {
        return LineTaken::Again;
    }
    if let Some((before, _)) = text.split_once(" max VUs, ") {
        let count = before.rsplit(' ').next().and_then(number::whole);
        keep(&mut draft.run.load.connections, count);
        draft.several = before.contains(" scenarios, ");
        return LineTaken::Ours;
    }
    if let Some(script) = text.strip_prefix("script: ") {
        draft.run.near.push_str(script);
        return LineTaken::Ours;
    }
    if let Some(scenario) = text.strip_prefix("* ") {
        take_scenario(scenario, draft);
        return LineTaken::Ours;
    }
    if text.starts_with("running (") {
        progress(text, draft);
        return LineTaken::Ours;
    }
    let known = "execution:|output:|scenarios:|default |█ |{ |✓ |✗ |↳|WARN[|INFO[|time=\"";
    let titles = ["HTTP", "EXECUTION", "NETWORK", "CUSTOM", "THRESHOLDS"];
    if starts(text, known) || titles.contains(&text) {
        LineTaken::Ours
    } else {
        LineTaken::Foreign
    }
}

/// `open: 100.00 iterations/s for 10s (maxVUs: 50)`, `default: 5 looping VUs for 2s (gracefulStop: 30s)`
fn take_scenario(text: &str, draft: &mut RunDraft) {
    let ramp = text.contains(": Up to ");
    if ramp {
        let stages = text
            .split_once(": ")
            .map_or(text, |(_, stages)| stages)
            .split(" (")
            .next();
        script(draft).stages = stages.map(str::to_owned);
    }
    if draft.several || ramp {
        let near = &mut draft.run.near;
        near.push_str(if near.is_empty() { "" } else { ", " });
        near.push_str(text.split(" (").next().unwrap_or_default());
    }
    let found = [" looping VUs for ", " iterations/s for "].map(|middle| text.split_once(middle));
    let Some((before, rest)) = found
        .into_iter()
        .flatten()
        .next()
        .filter(|_| !draft.several)
    else {
        return;
    };
    if found[1].is_some() && !ramp {
        let rate = before.rsplit(' ').next().and_then(number::decimal);
        draft.run.load.rate_per_s = rate.filter(|rate| *rate > 0.0);
    }
    keep(
        &mut draft.run.load.duration_s,
        rest.split_whitespace().next().and_then(number::seconds),
    );
}

fn from_json(value: &Value) -> Option<ToolRun> {
    let metrics = value.get("metrics")?;
    metrics.get("http_reqs")?;
    let mut draft = RunDraft::new(Tool::K6);
    // `handleSummary` nests the figures one level deeper than `--summary-export`.
    let figure = |metric: &str, key: &str| {
        at(metrics, &[metric, "values", key]).or_else(|| at(metrics, &[metric, key]))
    };
    let count = |metric: &str, key: &str| whole(figure(metric, key)?);
    let run = &mut draft.run;
    run.requests = count("http_reqs", "count");
    run.requests_per_s = figure("http_reqs", "rate");
    run.bytes = figure("data_received", "count");
    run.load.connections = count("vus_max", "max").or_else(|| count("vus_max", "value"));
    run.unsent = count("dropped_iterations", "count");
    run.failures.status = count("http_req_failed", "passes");
    run.duration_s = at(value, &["state", "testRunDurationMs"]).map(|ms| ms / 1e3);
    run.script = Some(ToolScript {
        iterations: count("iterations", "count"),
        iteration_us: figure("iteration_duration", "avg").map(|ms| ms * 1e3),
        ..ToolScript::default()
    });
    let us = |key: &str| figure("http_req_duration", key).map(|ms| ms * 1e3);
    draft.moments(us("avg"), None, us("max"));
    draft.quantile(Some(50.0), us("med"));
    let duration = &metrics["http_req_duration"];
    let times = duration.get("values").unwrap_or(duration);
    ended(draft, times, 1e3, |key| {
        key.strip_prefix("p(")?.strip_suffix(')')
    })
}
