//! Events of a run. `events.jsonl` stores one JSON object per line, with the event's name as its only key.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, ConnectedGenerator, ContentSeen, Ended, GeneratorLost, Slice};

/// One event. Events are recorded and also sent to observers of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// All load generators are connected. Sent before any other event, and again after a lost generator was
    /// reconnected. Never sent if load comes from the run's own process.
    GeneratorsConnected(Vec<ConnectedGenerator>),
    /// A generator was lost. The measurement in progress is discarded.
    GeneratorLost(GeneratorLost),
    /// Data that services need is available. Sent before the first block.
    Prepared(Prepared),
    /// A block began. Its trials are started in the given order.
    BlockStarted {
        /// Number of the block, from 1. Capacity is measured in block 0, which never ends.
        block: u32,
        /// Indices of the variants in the drawn order.
        order: Vec<usize>,
    },
    /// All services of a trial are ready.
    TrialStarted(TrialStarted),
    /// A slice ended.
    Slice(Box<Slice>),
    /// The services of a trial were stopped.
    TrialEnded(TrialEnded),
    /// Every trial of the block was started, measured and stopped.
    BlockEnded {
        /// Number of the block.
        block: u32,
        /// Duration of the block, in seconds.
        seconds: f64,
    },
    /// A block was discarded for a reason unrelated to its measured values. A block in which a generator was
    /// lost has no end event.
    BlockDropped {
        /// Number of the block.
        block: u32,
        /// The cause in the machine or the generators, as text with figures.
        why: String,
    },
    /// The open-loop rate of all variants was chosen.
    RateChosen(RateChosen),
    /// The number of connections for the capacity measurement was chosen.
    ConnectionsChosen(ConnectionsChosen),
    /// The warm-up length was chosen. It is the same for all variants.
    WarmUpChosen(WarmUp),
    /// The processors of the services were chosen, based on the processor time they wanted before the first
    /// measurement.
    CoresChosen(CoresChosen),
    /// The number of slices per trial was chosen.
    SlicesChosen(Allocation),
    /// The number of blocks that fit into the time budget was estimated.
    BlocksChosen {
        /// Total number of blocks.
        blocks: u32,
    },
    /// A load window was captured, to explain the results of the measured windows.
    Captured(Box<Capture>),
    /// The run ended.
    Ended(Ended),
}

/// Data that services need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Name of the data in the experiment.
    pub name: String,
    /// Cache key: SHA-256 over the inputs of the data, 64 hexadecimal digits.
    pub key: String,
    /// Whether the data was made in this run. False if it was already cached.
    pub made: bool,
    /// Time taken, in seconds.
    pub seconds: f64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
}

/// A trial whose services are all ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialStarted {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Time from starting the first service until all were ready, in seconds.
    pub start_s: f64,
    /// Length of the random padding variable in the services' environment, in bytes.
    pub padding_bytes: usize,
    /// The started services, in order.
    pub services: Vec<ServiceStarted>,
    /// Processor numbers of the generator's threads. Empty if they are not pinned.
    pub generator_cpus: Vec<usize>,
    /// Whether generator and services share processors, because there is only one or because the design
    /// requires it.
    pub cpus_shared: bool,
    /// Responses to the requests of the load before any load. Covers the first eight requests with method GET
    /// or HEAD. Each was sent twice, or once if the response took more than a second. Requests without a
    /// complete response are left out, and so is a variant that was slow in an earlier block or whose timeout
    /// is above 30 s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
    /// The service under load, if it was already deployed and not started by the run. `services` is then
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<DeployedSeen>,
}

impl TrialStarted {
    /// Records that the services are confined to these processors from now on.
    pub fn confine(&mut self, cpus: &[usize]) {
        self.cpus_shared = false;
        for service in &mut self.services {
            service.cpus = cpus.to_vec();
        }
    }
}

/// Length in bytes at which header values of a [`Witness`] are cut.
pub const WITNESS_VALUE_BYTES_MAX: usize = 256;

/// One complete response: what a request of the load returns from this variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    /// Name of the request, or its method and path.
    pub request: String,
    /// Content codings that the request accepts, as in its header. `None` if the header is absent.
    pub accept_encoding: Option<String>,
    /// Status code.
    pub status: u16,
    /// Headers in their order, with names in lower case and values cut at 256 bytes.
    pub headers: Vec<(String, String)>,
    /// Body bytes as sent on the wire.
    pub body_bytes: u64,
    /// Body bytes after content decoding. `None` if decoding failed.
    pub decoded_bytes: Option<u64>,
    /// SHA-256 of the decoded body, 64 hexadecimal digits.
    pub decoded_sha256: Option<String>,
    /// Whether a second response had the same decoded body. Bodies cannot be compared if it differed, or if
    /// no second request was sent because the first response took more than a second.
    pub repeats: bool,
    /// Content coding of the response to the same request with `accept-encoding: gzip`. None if that response
    /// is not coded either, or if it was not requested. It is requested once for each variant whose requests
    /// have no `accept-encoding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding_on_request: Option<String>,
}

/// One service of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStarted {
    /// Name of the service.
    pub service: String,
    /// Process ID of the root process.
    pub pid: u32,
    /// Port that the service listens on.
    pub port: u16,
    /// Actual listen address, if it differs from the given one and from the one found before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PortFound>,
    /// Further listening ports when the service became ready, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_ports: Vec<u16>,
    /// Numbers of the processors that the service may use. Empty if it is not pinned.
    pub cpus: Vec<usize>,
    /// Image digest, if the service is a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Source of the CPU time: `control group` or `processes`.
    pub cpu_source: String,
    /// Configured number of workers. `None` if none was configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Processes when the service became ready, parents first, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessSeen>,
}

/// Listen address of a service that does not listen on the given port or address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortFound {
    /// The given port, in the variable PORT and as {port}.
    pub given: u16,
    /// The actual listen address, if that differs too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A process of a service, as reported by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessSeen {
    /// Process ID.
    pub pid: u32,
    /// Process ID of the parent, which may be outside the service.
    pub parent: u32,
    /// Command line, words separated by blanks, cut at 512 bytes.
    pub command: String,
    /// Whether the process has a socket that listens on the service's port. In a cluster of Node.js only the
    /// first process has one.
    pub listens: bool,
    /// Whether its environment was read completely and contains Proofload's marker. Without the marker a
    /// missing variable proves nothing: the process was started with a different environment, or overwrote
    /// its environment with its title, as nginx does.
    pub marked: bool,
    /// Variables of that environment that the experiment sets for the service or that turn profilers on.
    pub environment: BTreeMap<String, String>,
}

/// A trial whose services were stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialEnded {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Peak resident memory of the trial's services, in bytes: the sum of the peaks of all processes, which
    /// need not coincide. Pages shared by processes of one service count once.
    pub peak_rss_bytes: u64,
    /// Peak resident memory of each service, in bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peak_rss_bytes_by_service: BTreeMap<String, u64>,
    /// Services that did not end on SIGTERM in time and were killed.
    pub killed: Vec<String>,
    /// Processes still alive after all cleanup. Empty on a sound machine.
    pub leftovers: Vec<String>,
    /// Bytes of the services' output that were discarded.
    pub output_dropped_bytes: u64,
    /// Services that had lost workers by the end of the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers_lost: Vec<WorkersLost>,
    /// Processes of each service at the end of the load, as in [`ServiceStarted::processes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes_by_service: BTreeMap<String, Vec<ProcessSeen>>,
    /// Other processes that listened on a service's port at the end of the load, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers_listening: Vec<String>,
    /// Ports on which services that ignore PORT began to listen after they were ready, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_ports: Vec<String>,
    /// Pods behind a deployed service at the end of the load. `None` also if they could not be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Vec<PodSeen>>,
    /// Contents of good sampled responses by request name, at most two distinct ones each. Two mean that
    /// contents vary.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contents: BTreeMap<String, Vec<ContentSeen>>,
}

/// A service that lost workers during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersLost {
    /// Name of the service.
    pub service: String,
    /// Number of initial workers that were gone at the end, even if others had replaced them.
    pub lost: u32,
}

/// The processors of the services, chosen after the first closed loop of every variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoresChosen {
    /// Number of the block in which the processors were chosen.
    pub block: u32,
    /// Processor numbers that services are confined to from now on. Empty if they share all processors with
    /// the generator.
    pub services: Vec<usize>,
    /// Number of processors that confined services have.
    pub apart: u32,
    /// Cores that the services of each variant demanded when all were available: the time that their threads
    /// ran or waited for a core, divided by the elapsed time. None if no request succeeded.
    pub wanted: Vec<Option<f64>>,
}

/// The chosen rate of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChosen {
    /// Requests due per second, for every variant. The average over a slice if the rate is a ramp.
    pub per_s: f64,
    /// First and last rate of each slice, if the rate is a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_per_s: Option<(f64, f64)>,
    /// The requested share of the slowest variant's capacity. `None` if a rate or a ramp was given.
    pub share: Option<f64>,
    /// Successful responses per second of each variant in closed loop over the same connections. 0 if there
    /// were none. Empty if a rate was given.
    pub capacities_per_s: Vec<f64>,
}

/// The chosen number of connections for the capacity measurement, if the plan gives none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionsChosen {
    /// Number of connections per variant from now on.
    pub connections: u32,
    /// Why there are fewer connections than wanted. `None` if there are as many as wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
}

/// The chosen length of the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUp {
    /// The length used from now on, in seconds.
    pub seconds: f64,
    /// Whether the length was measured. False if the experiment file gave it.
    pub measured: bool,
    /// Time until the throughput of each variant was steady, in seconds. `None` if it did not become steady
    /// in the time observed.
    pub steady_after_s: Vec<Option<f64>>,
}

/// The chosen number of slices per trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// Slices per trial from now on.
    pub slices: u32,
    /// Length of each slice, in seconds.
    pub slice_s: f64,
    /// Whether the number was computed from measured variances. False if the experiment file gave it.
    pub measured: bool,
    /// Standard deviation between processes of one variant, if measured: of log throughput, in open loop of
    /// the log of the metric.
    pub between_sd: Option<f64>,
    /// Standard deviation between slices of one process, if measured.
    pub within_sd: Option<f64>,
    /// Cost of one more trial in seconds: start, warm-up, stop.
    pub trial_s: Option<f64>,
}

/// An already deployed service, as it was when a trial began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeployedSeen {
    /// Name of the service in the experiment.
    pub service: String,
    /// Location: `kubernetes://NAMESPACE/SERVICE`, or a URL without its path.
    pub place: String,
    /// Address the load was sent to. For a Kubernetes Service, its cluster address and port.
    pub address: String,
    /// All addresses that the URL's host resolved to. Empty if it is not a URL with a host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether the service runs on this machine. The use of other programs then includes its resource use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_here: bool,
    /// Why the processes could not be observed. `None` if they were observed. Processes of a Kubernetes Service
    /// are never observed, even if this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Pods behind the service by name, ready or not. Empty for a URL.
    pub pods: Vec<PodSeen>,
}

/// A pod behind a Kubernetes Service, as reported by the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodSeen {
    /// Name of the pod, or the address if the endpoint was configured by hand.
    pub name: String,
    /// Unique ID that distinguishes pods of the same name. Empty for a mere address.
    pub uid: String,
    /// Node of the pod, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Listen address, such as `10.83.101.7:8080`.
    pub address: String,
    /// Whether the cluster sent requests to the pod.
    pub ready: bool,
    /// Total restarts of the containers. `None` if the cluster does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// Images of the containers, by digest if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}
