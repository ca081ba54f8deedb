//! A path through a proxy that is so much slower than the service behind it that a connection per request is likely.

use std::collections::BTreeMap;

use super::{About, Case, Finding, Grade, finding};
use crate::figure::{digits, micros};
use crate::group::Group;
use crate::words;

/// A proxy that keeps its connections costs about as much as a small service: it halves throughput rather than cut it to a
/// third. A mark for a suspicion, not for a verdict.
const FACTOR: f64 = 3.0;

/// Labels that name a proxy against the one that names the origin.
pub fn connection_per_request(groups: &[Group]) -> Option<Finding> {
    let origin = groups.iter().find(|group| words::is_origin(&group.label) && group.rate().is_some())?;
    let direct = origin.rate()?;
    let slow = groups.iter().filter(|group| words::is_proxied(&group.label)).filter_map(|group| {
        let proxied = group.rate().filter(|rate| direct / rate >= FACTOR)?;
        let added = (1.0 / proxied - 1.0 / direct) * 1e6;
        let evidence = format!(
            "{}/s, the service alone {}/s: a factor of {:.1}, {} more for each request",
            digits(proxied),
            digits(direct),
            direct / proxied,
            micros(added)
        );
        Some(Case {
            label: group.label.clone(),
            runs: group.runs.clone(),
            evidence,
            figures: BTreeMap::from([("factor", direct / proxied), ("added_us", added)]),
        })
    });
    let cases = slow.collect();
    finding(
        "connection_per_request",
        (Grade::Warning, About::Comparison),
        cases,
        "the proxied path is so slow that it may open a connection for each request",
        "A suspicion: the figures fit it, they do not prove it. A bare proxy_pass of nginx does so before version 1.29.7 (it wants \
         `keepalive` in `upstream`, `proxy_http_version 1.1` and an empty Connection header), Node without an Agent that keeps \
         connections before version 19. `nstat TcpActiveOpens` before and after a run tells. Look at the number of workers too.",
    )
}
