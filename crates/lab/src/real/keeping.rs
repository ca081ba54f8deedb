//! Converts reports of the engine and of services into records. Pure. It judges nothing.

use std::collections::BTreeMap;

use model::EndpointOutcome;
use record::{ContentSeen, Counts, ServiceUse};
use services::UsageSample;
use stats::Latencies;

/// Resources that a running service had used at one time.
pub(super) struct SampledUsage {
    /// Index of its variant.
    pub variant: usize,
    pub service: String,
    pub sample: UsageSample,
}

/// Resources that the selected services used between two samples.
pub(super) fn uses(
    before: &[SampledUsage],
    after: &[SampledUsage],
    wanted: impl Fn(&SampledUsage) -> bool,
) -> Vec<ServiceUse> {
    let pairs = before
        .iter()
        .zip(after)
        .filter(|(before, _)| wanted(before));
    pairs
        .map(|(before, after)| service_use(&before.service, &before.sample, &after.sample))
        .collect()
}

fn service_use(name: &str, before: &UsageSample, after: &UsageSample) -> ServiceUse {
    let UsageSample {
        cpu_ns,
        // Recorded for the trial as a whole.
        cpu_source: _,
        run_delay_ns,
        switches_voluntary,
        switches_involuntary,
        major_faults,
        read_bytes,
        throttled_ns,
        rss_bytes,
        processes,
        threads,
        // Set by `cpu_by_process_since`.
        cpu_by_process: _,
    } = after;
    ServiceUse {
        service: name.to_owned(),
        cpu_ns: cpu_ns.saturating_sub(before.cpu_ns),
        run_delay_ns: run_delay_ns.saturating_sub(before.run_delay_ns),
        rss_bytes: *rss_bytes,
        processes: *processes,
        threads: *threads,
        switches_voluntary: switches_voluntary.saturating_sub(before.switches_voluntary),
        switches_involuntary: switches_involuntary.saturating_sub(before.switches_involuntary),
        cpu_by_process_ns: after.cpu_by_process_since(before),
        major_faults: major_faults.saturating_sub(before.major_faults),
        read_bytes: read_bytes.saturating_sub(before.read_bytes),
        throttled_ns: throttled_ns.saturating_sub(before.throttled_ns),
    }
}

/// Converts the engine's counts: with the outcome of each request if there are several. If the design chooses
/// a request by name, its latencies replace the latencies of all.
pub(super) fn kept(mut counts: Counts, endpoint: Option<&str>) -> Counts {
    if let Some(chosen) = counts
        .endpoints
        .iter()
        .find(|found| Some(found.name.as_str()) == endpoint)
    {
        let (mut latency, mut response) = (Latencies::new(), Latencies::new());
        for EndpointOutcome {
            status: _,
            response: of_outcome,
            latency: own,
        } in &chosen.outcomes
        {
            latency.merge(own);
            response.merge(of_outcome);
        }
        counts.latency = latency;
        counts
            .open
            .iter_mut()
            .for_each(|open| open.response.clone_from(&response));
    }
    for open in counts.open.iter_mut() {
        open.due_per_100_ms.clear();
        open.ramp_parts.clear();
    }
    if counts.endpoints.len() == 1 {
        counts.endpoints.clear();
    }
    for endpoint in &mut counts.endpoints {
        endpoint.outcomes.clear();
        endpoint.contents.clear();
    }
    counts
}

/// Maximum number of different contents of a request in a record. A second one shows that contents vary.
const CONTENTS_MAX: usize = 2;

/// Adds the contents of a window's sampled responses.
pub(super) fn keep_contents(contents: &mut BTreeMap<String, Vec<ContentSeen>>, counts: &Counts) {
    for endpoint in counts
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.contents.is_empty())
    {
        let kept = contents.entry(endpoint.name.clone()).or_default();
        for seen in &endpoint.contents {
            match kept.iter().position(|known| known.sha256 == seen.sha256) {
                Some(place) => kept[place].merge(seen),
                None if kept.len() < CONTENTS_MAX => kept.push(seen.clone()),
                None => {}
            }
        }
    }
}

pub(super) fn cpu_source(source: services::CpuSource) -> &'static str {
    match source {
        services::CpuSource::Group => "control group",
        services::CpuSource::Processes => "processes",
    }
}

#[cfg(test)]
mod tests {
    use record::{EndpointCounts, OpenLoop};

    use super::*;

    fn outcome(status: Option<u16>, ms: &[u64]) -> EndpointOutcome {
        let mut response = Latencies::new();
        for ms in ms {
            if status.is_some() {
                response.record(ms * 1_000_000)
            } else {
                response.censor(ms * 1_000_000)
            }
        }
        EndpointOutcome {
            status,
            latency: response.clone(),
            response,
        }
    }

    #[test]
    fn keeps_two_contents_of_a_request_at_most() {
        let seen = |text: &str| ContentSeen {
            sha256: text.to_owned(),
            count: 1,
            encoded_bytes: 5,
            decoded_bytes: 7,
        };
        let mut contents = BTreeMap::new();
        for texts in [&["a"][..], &["a"], &["a", "b", "c"]] {
            let endpoint = EndpointCounts {
                contents: texts.iter().map(|text| seen(text)).collect(),
                ..EndpointCounts::new("POST /")
            };
            keep_contents(
                &mut contents,
                &Counts {
                    endpoints: vec![endpoint],
                    ..Counts::default()
                },
            );
        }
        let counts: Vec<_> = contents["POST /"]
            .iter()
            .map(|of| (of.sha256.as_str(), of.count))
            .collect();
        assert_eq!(counts, [("a", 3), ("b", 1)]);
    }

    #[test]
    fn the_latencies_kept_are_those_of_the_chosen_endpoint_however_its_requests_ended() {
        let ping = EndpointCounts {
            outcomes: vec![
                outcome(Some(200), &[1, 2]),
                outcome(Some(503), &[3]),
                outcome(None, &[4]),
            ],
            ..EndpointCounts::new("ping")
        };
        let outcomes = vec![outcome(Some(200), &[100, 200, 300])];
        let auth = EndpointCounts {
            outcomes,
            sent: 3,
            successful: 2,
            ..EndpointCounts::new("auth")
        };
        let counts = || {
            let mut open = OpenLoop::default();
            (0..7).for_each(|_| open.response.record(1));
            let endpoints = vec![ping.clone(), auth.clone()];
            Counts {
                endpoints,
                open: Some(Box::new(open)),
                ..Counts::default()
            }
        };
        let of_ping = kept(counts(), Some("ping"));
        let response = &of_ping.open.as_ref().expect("it was at a rate").response;
        assert_eq!(
            (
                response.count(),
                response.censored(),
                of_ping.latency.count()
            ),
            (4, 1, 4)
        );
        assert_eq!(
            (of_ping.endpoints[1].sent, of_ping.endpoints[1].failed()),
            (3, 1)
        );
        assert!(
            of_ping
                .endpoints
                .iter()
                .all(|endpoint| endpoint.outcomes.is_empty())
        );
        let of_all = kept(counts(), None);
        assert_eq!(of_all.open.expect("it was at a rate").response.count(), 7);
        assert!(
            kept(
                Counts {
                    endpoints: vec![auth],
                    ..Counts::default()
                },
                None
            )
            .endpoints
            .is_empty()
        );
    }
}
