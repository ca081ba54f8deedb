//! Failures that the figures contain, or leave out. It must not compare runs.

use super::latency::FAILED_SHARE_MAX;
use super::{About, Case, Finding, Grade, Seen, above, cases, finding, graded, share};
use crate::figure::{count, digits, many, share as percent};
use crate::run::Run;
use crate::tools::RateOf;

fn is_void(case: &Case) -> bool {
    above(case, "failed_share", FAILED_SHARE_MAX)
}

/// Error responses counted as requests.
pub fn statuses(runs: &[Run]) -> Vec<Finding> {
    let cases = cases(runs, |run| {
        let bad = run.failures.status.filter(|bad| *bad > 0)?;
        let requests = run.requests.unwrap_or(bad);
        let failed = share(bad, requests);
        let mut evidence = format!("{} of {} ({})", count(bad), many(requests, "response"), percent(failed));
        if let Some(rate) = run.rate().filter(|_| run.tool.facts().rate_of != RateOf::Successes) {
            evidence +=
                &format!("; {}/s without them, not {}/s", digits(rate * (1.0 - failed)), digits(rate));
        }
        Seen::new(evidence, [("failed", bad as f64), ("failed_share", failed)])
    });
    let remedy = "An error page is often cheaper than the page. Find out why it came, with `curl -i`, and measure again.";
    let text = ("error responses are counted as throughput", remedy);
    graded("errors_in_throughput", About::Throughput, cases, is_void, text)
}

/// Connections that failed.
pub fn connections(runs: &[Run]) -> Vec<Finding> {
    let cases = cases(runs, |run| {
        let failed = run.failures.socket();
        if failed == 0 {
            return None;
        }
        let kinds = [
            ("connect", run.failures.connect),
            ("read", run.failures.read),
            ("write", run.failures.write),
            ("other", run.failures.other),
        ];
        let kinds = kinds.iter().filter_map(|(name, number)| {
            number.filter(|number| *number > 0).map(|number| format!("{} {name}", count(number)))
        });
        let kinds: Vec<String> = kinds.collect();
        let of = run.requests.map_or(1.0, |requests| share(failed, requests.saturating_add(failed)));
        let requests =
            run.requests.map(|requests| format!(" beside {} ({})", many(requests, "request"), percent(of)));
        let evidence = format!("{}{}", kinds.join(", "), requests.unwrap_or_default());
        Seen::new(evidence, [("failed", failed as f64), ("failed_share", of)])
    });
    let remedy = "Resets and refusals come from a full backlog, a worker that died or a limit of descriptors: read the service's log and \
                  `nstat -az TcpExtListenDrops`. The rest of the load had the service to itself.";
    let text = ("connections failed, and what they would have carried was never done", remedy);
    graded("connections_failed", About::Throughput, cases, is_void, text)
}

/// ab's failures that are none.
pub fn lengths(runs: &[Run]) -> Option<Finding> {
    let cases = cases(runs, |run| {
        let other = run.failures.length.filter(|other| *other > 0)?;
        let of = run.requests.map(|requests| format!(" of {}", count(requests))).unwrap_or_default();
        Seen::new(format!("{}{of} responses", count(other)), [("responses", other as f64)])
    });
    finding(
        "other_lengths",
        (Grade::Note, About::Run),
        cases,
        "ab calls responses failed whose length is not that of the first",
        "Pages with a time or a token in them are of different lengths; these are no failures. `ab -l` accepts them.",
    )
}
