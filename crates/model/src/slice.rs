//! What one window of load on one trial gave: counts, times and what it cost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Latencies;

use crate::GeneratorPart;

/// Whether a slice counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SliceKind {
    /// Load before the service is taken to be steady; never part of an estimate.
    WarmUp,
    /// A measured window.
    Measured,
    /// Closed loop before the first block, to find the rate that all variants get; never part of an estimate.
    Capacity,
}

/// Load on one trial: one uninterrupted window, or the sum of several short ones, the turns, between which other trials had theirs.
///
/// Every request sent in the window is in exactly one of `answered`, `timed_out`, `broken`, `unfinished`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Number of the block, from 1; 0 for what came before the first.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Whether it counts.
    pub kind: SliceKind,
    /// Windows that it is the sum of.
    #[serde(default = "one")]
    pub turns: u32,
    /// Start of the (first) window, nanoseconds of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Length of the window in which requests were sent, in nanoseconds, without the lead of turns that have one; of all windows together.
    pub window_ns: u64,
    /// Time of load beside the window, in nanoseconds: waiting for what was in flight, and the lead; likewise.
    pub drain_ns: u64,
    /// Requests sent.
    pub sent: u64,
    /// Complete responses, those of the drain included.
    pub answered: u64,
    /// Responses that met the expectation, those of the drain included.
    pub ok: u64,
    /// Responses that met the expectation and were complete in the window.
    pub ok_in_window: u64,
    /// Requests given up after the time-out.
    pub timed_out: u64,
    /// Requests whose connection failed before the response was complete.
    pub broken: u64,
    /// Requests neither answered nor given up when the drain ended.
    pub unfinished: u64,
    /// Responses by status code.
    pub status: BTreeMap<u16, u64>,
    /// Errors by phase and cause.
    pub errors: Vec<ErrorCount>,
    /// Responses that did not meet the expectation, by kind.
    pub contract_failures: Vec<ContractFailure>,
    /// Bytes received, heads included.
    pub wire_bytes: u64,
    /// Bytes of bodies received, as sent on the wire.
    pub body_bytes: u64,
    /// From sent to done, time-outs and unfinished requests as censored samples; of one endpoint where the design chooses one.
    pub latency: Latencies,
    /// From sent to the first byte of the response.
    pub first_byte: Latencies,
    /// Responses that met the expectation in each 100 ms of the window; empty for more than one turn.
    pub ok_per_100_ms: Vec<u32>,
    /// Connections asked for.
    pub connections: u32,
    /// Connections alive when the window ended.
    pub connections_alive: u32,
    /// Connections opened for this slice, before and during its window.
    pub connections_opened: u64,
    /// What the load generator used; all generators together where there are several.
    pub generator: GeneratorUse,
    /// What each of several generators had to do with it, in their order; empty where load came from the run's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorPart>,
    /// What each service of the trial used, from before the window to after the drain.
    pub services: Vec<ServiceUse>,
    /// What the rest of the machine did meanwhile.
    pub machine: MachineUse,
    /// What came of each request of a load that sends several, in their order; empty where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointCounts>,
    /// What open loop adds; `None` in closed loop. There `latency` is the service time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Box<OpenLoop>>,
}

/// What a slice in open loop gave beside what every slice gives.
///
/// Every request due is either in the slice's `sent` or in `unsent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests that were asked for per second.
    pub rate_per_s: f64,
    /// Requests that were due in the window.
    pub intended: u64,
    /// Requests that were sent in the window.
    pub sent_in_window: u64,
    /// Requests that had found no connection when the drain ended.
    pub unsent: u64,
    /// Requests that found no connection free when they were due.
    pub queued: u64,
    /// From due to done, what got no answer or was never sent as censored samples. Of one endpoint where the design chooses one:
    /// then without what was never sent, for that belongs to none yet.
    pub response: Latencies,
    /// From due to sent where a connection was free: how late the load generator itself was.
    pub schedule_lag: Latencies,
}

/// What came of one of several requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointCounts {
    /// Its name.
    pub name: String,
    /// Requests sent.
    pub sent: u64,
    /// Responses that met the expectation, those of the drain included.
    pub ok: u64,
    /// Requests sent that did not end in an expected response.
    pub failed: u64,
}

/// Errors of one phase and cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// Where in a request's life: `connect`, `send`, `head`, `body` or `idle`.
    pub phase: String,
    /// What happened: `refused`, `reset`, `timeout`, `closed early`, ...
    pub cause: String,
    /// How often.
    pub count: u64,
}

/// Responses that were complete and still not what the experiment expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractFailure {
    /// What differed: `status`, `body length`, or `header NAME`.
    pub what: String,
    /// How often.
    pub count: u64,
    /// One example of what came instead.
    pub example: String,
}

/// CPU of the generator's threads over window and drain, one entry a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorUse {
    /// What moved its bytes: `readiness` (epoll) or `completion` (io_uring); empty in records that do not say.
    #[serde(default)]
    pub driver: String,
    /// CPU time of each thread in nanoseconds.
    pub cpu_ns: Vec<u64>,
    /// Time each thread was runnable and had to wait for a core, in nanoseconds.
    pub run_delay_ns: Vec<u64>,
    /// Wall time of each thread in nanoseconds.
    pub wall_ns: Vec<u64>,
}

impl GeneratorUse {
    /// The same threads, some time later.
    fn absorb(&mut self, turn: &GeneratorUse) {
        let sums = [
            (&mut self.cpu_ns, &turn.cpu_ns),
            (&mut self.run_delay_ns, &turn.run_delay_ns),
            (&mut self.wall_ns, &turn.wall_ns),
        ];
        for (sum, more) in sums {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// CPU share of the busiest thread, 0 to 1; `None` where nothing was measured.
    pub fn busiest_share(&self) -> Option<f64> {
        let shares = self.cpu_ns.iter().zip(&self.wall_ns).filter(|(_, wall)| **wall > 0);
        shares.map(|(cpu, wall)| *cpu as f64 / *wall as f64).reduce(f64::max)
    }
}

/// What one service's process tree used during a slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceUse {
    /// Name of the service.
    pub service: String,
    /// CPU time of the tree in nanoseconds.
    pub cpu_ns: u64,
    /// Time its threads were runnable and waited for a core, in nanoseconds.
    pub run_delay_ns: u64,
    /// Resident memory of the tree after the slice, in bytes (shared pages counted in each process).
    pub rss_bytes: u64,
    /// Processes in the tree after the slice.
    pub processes: u32,
    /// Threads in the tree after the slice.
    pub threads: u32,
    /// Times a thread gave up its core.
    pub switches_voluntary: u64,
    /// Times a thread was taken off its core.
    pub switches_involuntary: u64,
    /// CPU time of its processes in nanoseconds, the busiest first, at most 64 and none without any: which process was which is not
    /// kept. Of measured slices only; empty also in records that do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_by_process_ns: Vec<u64>,
    /// Page faults that had to read from storage.
    #[serde(default)]
    pub major_faults: u64,
    /// Bytes that it had fetched from storage, by `/proc/PID/io`.
    #[serde(default)]
    pub read_bytes: u64,
}

/// What a machine did during a slice, beside generator and services: this one, and in `hosts` those that services run on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// Share of all CPU time that the hypervisor gave to others, 0 to 1.
    pub steal_share: f64,
    /// CPU time of the other living trials' services, which should be idle, in nanoseconds; 0 for more than one turn, where
    /// they had turns of their own.
    pub idle_trials_cpu_ns: u64,
    /// Share of the time in which some task of the machine waited for a core (`/proc/pressure/cpu`, some), 0 to 1; `None` where
    /// the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_share: Option<f64>,
    /// Time that control groups above or around the services were held back for having used up their quota, in nanoseconds.
    #[serde(default)]
    pub throttled_ns: u64,
    /// CPU time of whatever is neither Proofload nor a service of this run, in nanoseconds.
    #[serde(default)]
    pub strangers_cpu_ns: u64,
    /// Pages that were read back from swap.
    #[serde(default)]
    pub swapped_in_pages: u64,
    /// CPU time that a fixed piece of arithmetic took just before, in nanoseconds; `None` where it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_ns: Option<u64>,
    /// What TCP counted in the network where the entry runs; `None` where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpUse>,
    /// The same of each machine elsewhere on which services lived, by host; there without `tcp` and `idle_trials_cpu_ns`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, MachineUse>,
}

/// TCP's own counters over a slice, of all sockets of one network together. Where a slice is the sum of several turns the others' turns
/// are in them as well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpUse {
    /// Connections that were begun, the generator's and those among services (`ActiveOpens`).
    pub opened: u64,
    /// Connections that were finished and found the line before accept() full (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Requests for a connection that a listening socket dropped, those included (`ListenDrops`).
    pub listen_drops: u64,
    /// Requests for a connection that were sent again, after 1, 3, 7 s (`TCPSynRetrans`).
    pub syn_retransmits: u64,
    /// Sockets in TIME_WAIT before the slice.
    pub time_wait_before: u64,
    /// Sockets in TIME_WAIT after it.
    pub time_wait: u64,
    /// Local ports that the kernel may give to connections (`ip_local_port_range`).
    pub local_ports: u64,
}

fn one() -> u32 {
    1
}

/// Length of a bucket of [`Slice::ok_per_100_ms`].
const BUCKET_NS: u64 = 100_000_000;

impl Slice {
    /// Takes the begin of a window out of what its throughput is counted in, to whole tenths of a second: at most so many that one is
    /// left. Its requests stay in every other count, and its time goes to that of the drain, in which load runs beside the window too.
    pub fn skip_lead(&mut self, lead_ns: u64) {
        let most = self.ok_per_100_ms.len().saturating_sub(1);
        let buckets = usize::try_from(lead_ns.div_ceil(BUCKET_NS)).unwrap_or(usize::MAX).min(most);
        let skipped: u64 = self.ok_per_100_ms.drain(..buckets).map(u64::from).sum();
        let skipped_ns = buckets as u64 * BUCKET_NS;
        self.ok_in_window = self.ok_in_window.saturating_sub(skipped);
        self.window_ns = self.window_ns.saturating_sub(skipped_ns);
        self.drain_ns += skipped_ns;
    }

    /// Takes in the next turn of the same slice. What services and machine used is not summed: that is known of all turns together.
    pub fn absorb(&mut self, turn: Slice) {
        self.turns += turn.turns;
        self.window_ns += turn.window_ns;
        self.drain_ns += turn.drain_ns;
        self.sent += turn.sent;
        self.answered += turn.answered;
        self.ok += turn.ok;
        self.ok_in_window += turn.ok_in_window;
        self.timed_out += turn.timed_out;
        self.broken += turn.broken;
        self.unfinished += turn.unfinished;
        self.wire_bytes += turn.wire_bytes;
        self.body_bytes += turn.body_bytes;
        for (status, count) in turn.status {
            *self.status.entry(status).or_default() += count;
        }
        for error in turn.errors {
            match self
                .errors
                .iter_mut()
                .find(|seen| (&seen.phase, &seen.cause) == (&error.phase, &error.cause))
            {
                Some(seen) => seen.count += error.count,
                None => self.errors.push(error),
            }
        }
        for failure in turn.contract_failures {
            match self.contract_failures.iter_mut().find(|seen| seen.what == failure.what) {
                Some(seen) => seen.count += failure.count,
                None => self.contract_failures.push(failure),
            }
        }
        for endpoint in turn.endpoints {
            match self.endpoints.iter_mut().find(|seen| seen.name == endpoint.name) {
                Some(seen) => {
                    seen.sent += endpoint.sent;
                    seen.ok += endpoint.ok;
                    seen.failed += endpoint.failed;
                }
                None => self.endpoints.push(endpoint),
            }
        }
        self.latency.merge(&turn.latency);
        self.first_byte.merge(&turn.first_byte);
        self.ok_per_100_ms.clear();
        self.connections_alive = turn.connections_alive;
        self.connections_opened += turn.connections_opened;
        self.generator.absorb(&turn.generator);
    }

    /// Packs its histograms, for a slice that is only read from now on.
    pub fn pack(&mut self) {
        self.latency.pack();
        self.first_byte.pack();
        if let Some(open) = &mut self.open {
            open.response.pack();
            open.schedule_lag.pack();
        }
    }

    /// CPU time of all services together, in nanoseconds.
    pub fn services_cpu_ns(&self) -> u64 {
        self.services.iter().map(|service| service.cpu_ns).sum()
    }

    /// CPU time of the load's threads on the machine of the run, in nanoseconds.
    pub fn client_cpu_here_ns(&self) -> u64 {
        match self.generators.as_slice() {
            [] => self.generator.cpu_ns.iter().sum(),
            parts => parts.iter().filter(|part| part.here).map(|part| part.cpu_ns).sum(),
        }
    }

    /// Connections that were opened for it from the machine of the run.
    pub fn connections_opened_here(&self) -> u64 {
        match self.generators.as_slice() {
            [] => self.connections_opened,
            parts => parts.iter().filter(|part| part.here).map(|part| part.connections_opened).sum(),
        }
    }

    /// Requests that there were to send: those due in open loop, those sent in closed loop.
    pub fn due(&self) -> u64 {
        self.open.as_ref().map_or(self.sent, |open| open.intended)
    }

    /// Requests that did not end in an expected response, those that were due and never sent included.
    pub fn failed(&self) -> u64 {
        self.due().saturating_sub(self.ok)
    }
}
