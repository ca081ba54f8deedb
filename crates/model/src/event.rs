//! What can happen in a run, as it is kept: one JSON object a line in `events.jsonl`, with the event's name as its one key.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Capture, ContentSeen, Generator, GeneratorLost, Slice};

/// One thing that happened: what is kept, and what whoever watches is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Generators are connected, all that there are: before anything else, and again where a lost one was had back. Never told where load
    /// comes from the run's own process.
    GeneratorsConnected(Vec<Generator>),
    /// A generator is gone. What was measured with it just then is not kept.
    GeneratorLost(GeneratorLost),
    /// Data that services need is there; told before the first block.
    Prepared(Prepared),
    /// A block began; its trials are started in this order.
    BlockStarted {
        /// Number of the block, from 1. In block 0 the capacity is measured; it never ends.
        block: u32,
        /// Indices of the variants in the order drawn.
        order: Vec<usize>,
    },
    /// All services of a trial are ready.
    TrialStarted(TrialStarted),
    /// A slice ended.
    Slice(Box<Slice>),
    /// A trial's services were stopped.
    TrialEnded(TrialEnded),
    /// Every trial of the block was started, measured and stopped.
    BlockEnded {
        /// Number of the block.
        block: u32,
        /// How long the block took, in seconds.
        seconds: f64,
    },
    /// A block counts for nothing, for a reason that has nothing to do with what was measured in it. One in which a generator was lost has no
    /// end.
    BlockDropped {
        /// Number of the block.
        block: u32,
        /// What machine or generators did meanwhile, in words with figures.
        why: String,
    },
    /// The rate that all variants get in open loop was settled.
    RateChosen(RateChosen),
    /// The connections were settled over which capacity is measured.
    ConnectionsChosen(ConnectionsChosen),
    /// The length of the warm-up was settled, for all variants alike.
    WarmUpChosen(WarmUp),
    /// The processors of the services were chosen, by the processor time they wanted before anything was measured.
    CoresChosen(CoresChosen),
    /// The number of slices a trial was settled.
    SlicesChosen(Allocation),
    /// How many blocks fit the time was estimated.
    BlocksChosen {
        /// In all.
        blocks: u32,
    },
    /// A window of load in which something was captured, to explain what the measured ones show.
    Captured(Box<Capture>),
    /// The run ended.
    Ended(Ended),
}

/// Data that services need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Its name in the experiment.
    pub name: String,
    /// Under which the cache keeps it: SHA-256 over what it was made from, 64 hexadecimal digits.
    pub key: String,
    /// Whether it was made then; otherwise it was found made.
    pub made: bool,
    /// How long that took, in seconds.
    pub seconds: f64,
    /// Size of its files in bytes.
    pub bytes: u64,
}

/// A trial whose services are all ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialStarted {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Time from starting the first service until all were ready, in seconds.
    pub start_s: f64,
    /// Length of the random padding variable in the services' environment, in bytes.
    pub padding_bytes: usize,
    /// What was started, in order.
    pub services: Vec<ServiceStarted>,
    /// Processor numbers of the generator's threads; empty where they are not pinned.
    pub generator_cpus: Vec<usize>,
    /// Whether generator and services share processors: because there is one only, or because the design says so.
    pub cpus_shared: bool,
    /// What the requests of the load got before any load, the first eight of them whose method is GET or HEAD: each was sent twice, or
    /// once where the response took more than a second. What got no whole response is left out, and so is a variant that was slow in an
    /// earlier block, and one whose time-out is above 30 s; empty also in records that do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
    /// What the load was sent to, where that ran already and was not started: then there are no `services`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Deployed>,
}

impl TrialStarted {
    /// Notes that the services of this machine may only use these processors from now on.
    pub fn confine(&mut self, cpus: &[usize]) {
        self.cpus_shared = false;
        for service in self.services.iter_mut().filter(|service| service.host.is_none()) {
            service.cpus = cpus.to_vec();
        }
    }
}

/// One response, looked at whole: what a request of the load gets from this variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The request's name, or its method and path.
    pub request: String,
    /// Content codings that the request said it accepts, as its header has them; `None`: it did not say.
    pub accept_encoding: Option<String>,
    /// Status code.
    pub status: u16,
    /// Headers in their order, names in lower case, values cut at 256 bytes.
    pub headers: Vec<(String, String)>,
    /// Bytes of the body as sent on the wire.
    pub body_bytes: u64,
    /// Bytes of the body with its content coding undone; `None` where it could not be.
    pub decoded_bytes: Option<u64>,
    /// SHA-256 of that body, 64 hexadecimal digits.
    pub decoded_sha256: Option<String>,
    /// Whether a second response had the same decoded body. Where it had not, or none was asked for because the first one took more than
    /// a second, bodies cannot be compared.
    pub repeats: bool,
    /// Content coding of the response to the same request with `accept-encoding: gzip`. None if it is not coded then either, or if that was
    /// not requested: it is once for each variant whose requests do not say what they accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding_on_request: Option<String>,
}

/// One service of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStarted {
    /// Name of the service.
    pub service: String,
    /// Process id of its first process.
    pub pid: u32,
    /// Port it listens on.
    pub port: u16,
    /// Where that is not where it was told to listen, nor where it was found before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Further ports that it listened on when it became ready, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_ports: Vec<u16>,
    /// Processor numbers of its machine it may run on; empty where it is not pinned.
    pub cpus: Vec<usize>,
    /// The machine that it ran on; `None` is the one of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The image that it was made from, by its digest, where it is a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where its CPU time is read: `control group` or `processes`.
    pub cpu_source: String,
    /// Workers that it was asked to run; `None` where nobody asked for a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Its processes once it was ready, parents first, at most 64; empty in records that do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessSeen>,
}

/// How a service was found that does not listen where it was told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The port that it was given, in the variable PORT and as {port}.
    pub given: u16,
    /// The address that it listens on, where that is another one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A process of a service, as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSeen {
    /// Its number.
    pub pid: u32,
    /// Number of its parent, which is another of the service's processes or none of them; 0 in records that do not say.
    #[serde(default)]
    pub parent: u32,
    /// Its command line, words separated by blanks, cut at 512 bytes.
    pub command: String,
    /// Whether it holds a socket that listens on the service's port. In a cluster of Node.js that is the first process alone.
    pub listens: bool,
    /// Whether Proofload's marker is in its environment, and that environment whole. Without it a variable that is missing proves
    /// nothing: the process was started with an environment of its own, or wrote its title over it as nginx does.
    pub marked: bool,
    /// Of that environment the variables that the experiment sets for the service, and those that turn profilers on.
    pub environment: BTreeMap<String, String>,
}

/// A trial whose services were stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialEnded {
    /// Number of the block.
    pub block: u32,
    /// Index of the variant in the plan.
    pub variant: usize,
    /// Peak resident memory of the trial's services together, in bytes: of each the peaks of its processes, whenever they were.
    /// Pages that processes of a service share count once; in records without `peak_rss_bytes_by_service`, in each of them.
    pub peak_rss_bytes: u64,
    /// The same for each service on its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peak_rss_bytes_by_service: BTreeMap<String, u64>,
    /// Services that did not end on SIGTERM within their time and were killed.
    pub killed: Vec<String>,
    /// Processes that were still alive after everything was done; none on a sound machine.
    pub leftovers: Vec<String>,
    /// Bytes of the services' output that were not kept.
    pub output_dropped_bytes: u64,
    /// Services of whose workers some were gone when the load ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers_lost: Vec<WorkersLost>,
    /// The processes of each service when the load had ended, as in [`ServiceStarted::processes`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes_by_service: BTreeMap<String, Vec<ProcessSeen>>,
    /// Other processes that listened on a service's port when the load had ended, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers_listening: Vec<String>,
    /// Ports that services which do not heed PORT began to listen on after they were ready, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_ports: Vec<String>,
    /// The pods behind what was not started, when the load had ended; `None` also where they could not be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Vec<PodSeen>>,
    /// Contents of sampled good responses by the request's name, at most two different ones of each: with two, contents vary.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contents: BTreeMap<String, Vec<ContentSeen>>,
}

/// A service that lost workers during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersLost {
    /// Name of the service.
    pub service: String,
    /// Workers of the beginning that were gone at the end, also where others had taken their places.
    pub lost: u32,
}

/// The processors of the services, chosen after the first closed loop of every variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoresChosen {
    /// Number of the block in which they were chosen.
    pub block: u32,
    /// Processor numbers that services are confined to from here on. Empty if they share all processors with the generator.
    pub services: Vec<usize>,
    /// Number of processors that confined services have.
    pub apart: u32,
    /// Cores that the services of each variant wanted when they could use all: the time that their threads ran or waited for a core, over the
    /// time that passed. None if nothing succeeded.
    pub wanted: Vec<Option<f64>>,
}

/// How the rate of an open loop was settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChosen {
    /// Requests due per second, at every variant; of a ramp on average over a slice.
    pub per_s: f64,
    /// From which rate to which each slice goes, where it is a ramp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_per_s: Option<(f64, f64)>,
    /// The share of the slowest variant's capacity that was asked for; `None` where it was a rate or a ramp.
    pub share: Option<f64>,
    /// Successful responses per second of each variant in closed loop, over the same connections, 0 where there were none; empty where
    /// it was a rate.
    pub capacities_per_s: Vec<f64>,
}

/// Connections over which capacity is measured, where the plan names no number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionsChosen {
    /// How many are used from now on, for each variant.
    pub connections: u32,
    /// Why there are no more, though more were wanted; `None` if there are as many as wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
}

/// How the length of the warm-up was settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// The length used from now on, in seconds.
    pub seconds: f64,
    /// Whether it was measured; if not, the file gave it.
    pub measured: bool,
    /// For each variant, when its throughput became steady, in seconds; `None`: not in the time watched.
    pub steady_after_s: Vec<Option<f64>>,
}

/// How the number of slices a trial was settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// Slices a trial from now on.
    pub slices: u32,
    /// Length of each, in seconds.
    pub slice_s: f64,
    /// Whether it was computed from measured variances; if not, the file gave it.
    pub measured: bool,
    /// Standard deviation between processes of one variant, where measured: of log throughput, in open loop of the log of
    /// the metric.
    pub between_sd: Option<f64>,
    /// The same between slices of one process, where measured.
    pub within_sd: Option<f64>,
    /// Cost of one more trial in seconds: start, warm-up, stop.
    pub trial_s: Option<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Why.
    pub reason: EndReason,
    /// Length of the run in seconds.
    pub seconds: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Every comparison had its verdict.
    Decided,
    /// The last look was taken.
    LastLook,
    /// No further block fits into the budget.
    BudgetSpent,
    /// The budget does not hold the blocks that a verdict needs; this many seconds would.
    BudgetTooSmall {
        /// A budget that is enough, in seconds.
        needed_s: u64,
    },
    /// The experiment compares nothing, and its one pass is done.
    Measured,
    /// The user stopped it.
    Interrupted,
    /// Going on was pointless; the text says why.
    Void(String),
    /// The load that is asked for cannot be sent, or a file of it is not what it should be; the text says why.
    LoadRefused(String),
    /// The load generator could not work; the text says why.
    GeneratorFailed(String),
    /// A service failed; the text says how.
    ServiceFailed(String),
    /// Data that services need could not be made, or they could not be built; the text says why.
    PreparationFailed(String),
}

impl EndReason {
    /// What failed, in words; `None` where nothing did.
    pub fn failure(&self) -> Option<&str> {
        match self {
            EndReason::LoadRefused(why)
            | EndReason::GeneratorFailed(why)
            | EndReason::ServiceFailed(why)
            | EndReason::PreparationFailed(why) => Some(why),
            EndReason::Decided
            | EndReason::LastLook
            | EndReason::BudgetSpent
            | EndReason::BudgetTooSmall { .. }
            | EndReason::Measured
            | EndReason::Interrupted
            | EndReason::Void(_) => None,
        }
    }

    /// Whether the run ended by itself: nobody stopped it, and nothing failed.
    pub fn is_own(&self) -> bool {
        *self != EndReason::Interrupted && self.failure().is_none()
    }

    /// Whether the run ended after as many blocks as it was to have, whatever they showed.
    pub fn is_planned(&self) -> bool {
        match self {
            EndReason::LastLook | EndReason::BudgetSpent | EndReason::Measured => true,
            EndReason::Decided
            | EndReason::BudgetTooSmall { .. }
            | EndReason::Interrupted
            | EndReason::Void(_)
            | EndReason::LoadRefused(_)
            | EndReason::GeneratorFailed(_)
            | EndReason::ServiceFailed(_)
            | EndReason::PreparationFailed(_) => false,
        }
    }

    /// Its name in records and events.
    pub fn name(&self) -> &'static str {
        match self {
            EndReason::Decided => "decided",
            EndReason::LastLook => "last_look",
            EndReason::BudgetSpent => "budget_spent",
            EndReason::BudgetTooSmall { .. } => "budget_too_small",
            EndReason::Measured => "measured",
            EndReason::Interrupted => "interrupted",
            EndReason::Void(_) => "void",
            EndReason::LoadRefused(_) => "load_refused",
            EndReason::GeneratorFailed(_) => "generator_failed",
            EndReason::ServiceFailed(_) => "service_failed",
            EndReason::PreparationFailed(_) => "preparation_failed",
        }
    }
}

/// What ran already, as it was when a trial began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deployed {
    /// Name of the service in the experiment.
    pub service: String,
    /// Which it is: `kubernetes://NAMESPACE/SERVICE`, or a URL without its path.
    pub place: String,
    /// Where the load was sent: of a Service its own address in the cluster and its port.
    pub address: String,
    /// All addresses that the URL's host stood for; none where it is no URL of a host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether it works on this machine, where what it uses is among what all programs use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_here: bool,
    /// Why nothing is known of its processes; of a Service nothing ever is, and `None` otherwise means that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// The pods behind it, by name, ready or not; none behind a URL.
    pub pods: Vec<PodSeen>,
}

/// A pod behind a Service, as the cluster told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodSeen {
    /// Its name; of an address that somebody wrote down, that.
    pub name: String,
    /// What tells it from another pod of this name; empty for a mere address.
    pub uid: String,
    /// The node that it runs on, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Where it listens, such as `10.83.101.7:8080`.
    pub address: String,
    /// Whether the cluster sent requests to it.
    pub ready: bool,
    /// How often its containers were started again, all together; `None` where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The images of its containers, by their digests where those are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}
