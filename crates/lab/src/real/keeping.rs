//! What engine and services report, in the record's words. Pure: it moves figures and judges none.

use record::{EndpointCounts, MachineUse, OpenLoop, ServiceUse, Slice, SliceKind};
use services::Sample;
use stats::Latencies;

/// What a living service had used by one moment.
pub(super) struct Sampled {
    /// Index of its variant.
    pub variant: usize,
    pub service: String,
    /// The machine that it runs on; `None` is this one.
    pub host: Option<String>,
    pub sample: Sample,
}

/// What services used between two samples, of those that are wanted.
pub(super) fn uses(
    before: &[Sampled],
    after: &[Sampled],
    wanted: impl Fn(&Sampled) -> bool,
) -> Vec<ServiceUse> {
    let pairs = before.iter().zip(after).filter(|(before, _)| wanted(before));
    pairs.map(|(before, after)| service_use(&before.service, &before.sample, &after.sample)).collect()
}

fn service_use(name: &str, before: &Sample, after: &Sample) -> ServiceUse {
    ServiceUse {
        service: name.to_owned(),
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        run_delay_ns: after.run_delay_ns.saturating_sub(before.run_delay_ns),
        rss_bytes: after.rss_bytes,
        processes: after.processes,
        threads: after.threads,
        switches_voluntary: after.switches_voluntary.saturating_sub(before.switches_voluntary),
        switches_involuntary: after.switches_involuntary.saturating_sub(before.switches_involuntary),
        cpu_by_process_ns: after.cpu_by_process_since(before),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
    }
}

/// Where a slice belongs.
pub(super) struct Place {
    pub block: u32,
    pub variant: usize,
    pub kind: SliceKind,
    pub connections: u32,
    /// Requests asked for per second in open loop.
    pub open: Option<f64>,
    /// Name of the request whose latencies are kept; `None`: those of all.
    pub endpoint: Option<String>,
}

/// The engine's slice in the record's words; what services and machine used is filled in by the caller.
pub(super) fn kept(mut slice: load::Slice, place: Place) -> Slice {
    let endpoints = endpoints(&slice);
    keep_latencies_of(&mut slice, place.endpoint.as_deref());
    let error = |error: &load::ErrorCount| record::ErrorCount {
        phase: error.phase.to_string(),
        cause: error.cause.to_string(),
        count: error.count,
    };
    let failure = |failure: &load::ContractFailure| record::ContractFailure {
        what: failure.kind.to_string(),
        count: failure.count,
        example: failure.example.clone(),
    };
    let open = place.open.map(|rate_per_s| OpenLoop {
        rate_per_s,
        intended: slice.intended,
        sent_in_window: slice.sent_in_window,
        unsent: slice.unsent,
        queued: slice.queued,
        response: slice.response,
        schedule_lag: slice.schedule_lag,
    });
    Slice {
        block: place.block,
        variant: place.variant,
        kind: place.kind,
        turns: 1,
        started_ns: slice.started_ns,
        window_ns: slice.window_ns,
        drain_ns: slice.drain_ns,
        sent: slice.sent,
        answered: slice.answered,
        ok: slice.ok,
        ok_in_window: slice.ok_in_window,
        timed_out: slice.timed_out,
        broken: slice.broken,
        unfinished: slice.unfinished,
        errors: slice.errors.iter().map(error).collect(),
        contract_failures: slice.contract_failures.iter().map(failure).collect(),
        status: slice.status,
        wire_bytes: slice.bytes_wire,
        body_bytes: slice.bytes_body,
        latency: slice.latency,
        first_byte: slice.first_byte,
        ok_per_100_ms: slice.buckets,
        connections: place.connections,
        connections_alive: slice.connections_alive_end,
        connections_opened: slice.opened,
        generator: record::GeneratorUse {
            driver: slice.driver,
            cpu_ns: slice.thread_cpu_ns,
            run_delay_ns: slice.thread_run_delay_ns.into_iter().flatten().collect(),
            wall_ns: slice.thread_wall_ns,
        },
        generators: Vec::new(),
        services: Vec::new(),
        machine: MachineUse::default(),
        endpoints,
        open: open.map(Box::new),
    }
}

/// What came of each of several requests; nothing where there is one.
fn endpoints(slice: &load::Slice) -> Vec<EndpointCounts> {
    let several = if slice.endpoints.len() > 1 { slice.endpoints.as_slice() } else { &[] };
    let counts = |endpoint: &load::Endpoint| EndpointCounts {
        name: endpoint.name.clone(),
        sent: endpoint.sent,
        ok: endpoint.ok,
        failed: endpoint.sent.saturating_sub(endpoint.ok),
    };
    several.iter().map(counts).collect()
}

/// Puts the latencies of one endpoint in the place of those of all.
fn keep_latencies_of(slice: &mut load::Slice, endpoint: Option<&str>) {
    let chosen = slice.endpoints.iter().find(|found| Some(found.name.as_str()) == endpoint);
    let Some(chosen) = chosen else { return };
    let (mut latency, mut response) = (Latencies::new(), Latencies::new());
    for outcome in &chosen.outcomes {
        latency.merge(&outcome.latency);
        response.merge(&outcome.response);
    }
    (slice.latency, slice.response) = (latency, response);
}

pub(super) fn cpu_source(source: services::CpuSource) -> &'static str {
    match source {
        services::CpuSource::Group => "control group",
        services::CpuSource::Processes => "processes",
    }
}

#[cfg(test)]
mod tests {
    use load::{Endpoint, Outcome};

    use super::*;

    fn outcome(status: Option<u16>, ms: &[u64]) -> Outcome {
        let mut response = Latencies::new();
        for ms in ms {
            if status.is_some() { response.record(ms * 1_000_000) } else { response.censor(ms * 1_000_000) }
        }
        Outcome { status, latency: response.clone(), response }
    }

    #[test]
    fn the_latencies_kept_are_those_of_the_chosen_endpoint_however_its_requests_ended() {
        let ping = vec![outcome(Some(200), &[1, 2]), outcome(Some(503), &[3]), outcome(None, &[4])];
        let auth = vec![outcome(Some(200), &[100, 200, 300])];
        let endpoint = |name: &str, ok, outcomes: Vec<Outcome>| Endpoint {
            name: name.into(),
            sent: outcomes.iter().map(|outcome| outcome.latency.count()).sum(),
            ok,
            ok_in_window: ok,
            bytes_body: 0,
            outcomes,
            contents: Vec::new(),
        };
        let slice = || {
            let endpoints = vec![endpoint("ping", 2, ping.clone()), endpoint("auth", 3, auth.clone())];
            let mut slice = load::Slice { endpoints, ..load::Slice::default() };
            (0..7).for_each(|_| slice.response.record(1));
            slice
        };
        let place = |endpoint| Place {
            block: 1,
            variant: 0,
            kind: SliceKind::Measured,
            connections: 4,
            open: Some(10.0),
            endpoint,
        };
        let of_ping = kept(slice(), place(Some("ping".into())));
        let response = &of_ping.open.as_ref().expect("it was at a rate").response;
        assert_eq!((response.count(), response.censored(), of_ping.latency.count()), (4, 1, 4));
        let counts =
            |at: usize| (of_ping.endpoints[at].sent, of_ping.endpoints[at].ok, of_ping.endpoints[at].failed);
        assert_eq!((counts(0), counts(1)), ((4, 2, 2), (3, 3, 0)));
        let of_all = kept(slice(), place(None));
        assert_eq!(of_all.open.expect("it was at a rate").response.count(), 7);
    }
}
