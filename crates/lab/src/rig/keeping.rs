//! What engine and services report, in the record's words. Pure: it moves figures and judges none.

use record::{MachineUse, OpenLoop, ServiceUse, Slice, SliceKind};
use target::Sample;

/// What services used between two samples, of those variants that are wanted.
pub(super) fn uses(
    before: &[(usize, String, Sample)],
    after: &[(usize, String, Sample)],
    wanted: impl Fn(usize) -> bool,
) -> Vec<ServiceUse> {
    let pairs = before.iter().zip(after).filter(|((variant, ..), _)| wanted(*variant));
    pairs.map(|((_, name, before), (.., after))| service_use(name, before, after)).collect()
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
}

/// The engine's slice in the record's words; what services and machine used is filled in by the caller.
pub(super) fn kept(slice: load::Slice, place: Place) -> Slice {
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
            driver: slice.driver.to_owned(),
            cpu_ns: slice.thread_cpu_ns,
            run_delay_ns: slice.thread_run_delay_ns.into_iter().flatten().collect(),
            wall_ns: slice.thread_wall_ns,
        },
        services: Vec::new(),
        machine: MachineUse::default(),
        open: open.map(Box::new),
    }
}

pub(super) fn cpu_source(source: target::CpuSource) -> &'static str {
    match source {
        target::CpuSource::Group => "control group",
        target::CpuSource::Processes => "processes",
    }
}
