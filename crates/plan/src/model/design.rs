//! The design of an experiment: how it is run and judged.

use std::str::FromStr;
use std::time::Duration;

use ::model::{ArrivalProcess, Metric, Pacing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;
use crate::rate::PlannedRate;

/// How the experiment is run and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The metric of the verdict.
    pub metric: Metric,
    /// Further metrics that get their own verdicts, at the price of wider intervals for all.
    pub co_primary: Vec<Metric>,
    /// The request that latency metrics are about. `None` for all requests together.
    pub endpoint: Option<JudgedEndpoint>,
    /// Which processors the services may use.
    pub cpus: Cpus,
    /// The smallest relative difference that matters, as a fraction: 0.03 is 3 %.
    pub margin: f64,
    /// Time from the first start of a service to the verdict.
    pub budget: Duration,
    /// Seed of every random choice. `None` draws one, which the record contains.
    pub seed: Option<u64>,
    /// Length of the warm-up of each trial. `None` measures it in the first block.
    pub warmup: Option<Duration>,
    /// Length of a slice. `None` is the lab's choice.
    pub slice: Option<Duration>,
    /// Slices in a trial. `None` lets the lab choose from measured variances.
    pub slices: Option<u32>,
    /// Maximum number of blocks. `None` is as many as the budget permits.
    pub blocks: Option<u32>,
    /// When the result is analyzed, and so when the run may end.
    pub looks: LookRule,
    /// Whether throughput is judged per core-second if services keep all of their cores busy.
    pub per_core: bool,
    /// Whether quantiles are computed over the responses of all processes together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pooled: bool,
    /// Whether disturbed blocks are dropped. Has no effect on records, which state what was dropped.
    pub drop_disturbed: bool,
    /// Whether profiles are captured after the last block, in addition to the budget.
    pub explain: bool,
    /// The common rate of all variants in open loop. `None` is closed loop. Always set if the metric is a
    /// latency.
    pub rate: Option<PlannedRate>,
    /// The rate at the end of each slice, reached evenly. `None` for a constant rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_to: Option<PlannedRate>,
    /// Distribution of requests in time in open loop. Has no effect in closed loop.
    pub arrivals: ArrivalProcess,
    /// Service level objectives: capacity is the highest rate at which all of them hold. Empty if capacity is
    /// not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slo: Vec<Limit>,
}

impl Design {
    /// When requests are sent in the slices that count.
    pub fn pacing(&self) -> Pacing {
        match self.rate {
            _ if !self.slo.is_empty() => Pacing::Search,
            Some(_) => Pacing::Open,
            None => Pacing::Closed,
        }
    }

    /// Every metric that gets a verdict. The variances of the first one determine the number of slices in a
    /// trial.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.co_primary.iter().copied())
    }

    /// Average number of requests due per second over a slice. `None` in closed loop, and if it depends on a
    /// capacity.
    pub fn mean_rate_per_s(&self) -> Option<f64> {
        match (self.rate?, self.ramp_to) {
            (PlannedRate::PerSecond(from), Some(PlannedRate::PerSecond(to))) => {
                Some((from + to) / 2.0)
            }
            (PlannedRate::PerSecond(per_s), None) => Some(per_s),
            (PlannedRate::ShareOfCapacity(_), _)
            | (PlannedRate::PerSecond(_), Some(PlannedRate::ShareOfCapacity(_))) => None,
        }
    }

    /// Whether the rate depends on capacities, which are measured first.
    pub fn rate_needs_capacity(&self) -> bool {
        self.rate
            .into_iter()
            .chain(self.ramp_to)
            .any(PlannedRate::is_share)
    }

    /// The metric that needs the most requests in a trial, and their number. If a metric is about one
    /// endpoint, the number is for all endpoints together. See [`Metric::requests_wanted`].
    pub fn most_wanting(&self) -> (Metric, f64) {
        let share = self
            .endpoint
            .as_ref()
            .map_or(1.0, |endpoint| endpoint.share);
        let wanted = self
            .metrics()
            .map(|metric| (metric, (metric.requests_wanted() / share).ceil()));
        wanted
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .unwrap_or((self.metric, 0.0))
    }
}

/// The request whose response times the latency metrics are about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedEndpoint {
    /// Its name, the same in every variant.
    pub name: String,
    /// Its share of all requests, above 0 and at most 1. If variants differ, the smallest share.
    pub share: f64,
}

/// When an experiment analyzes its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LookRule {
    /// After every block. The run ends at the first block at which everything is decided.
    #[default]
    EachBlock,
    /// Only at the end. The intervals are as narrow as possible, and no run ends early.
    Once,
}

impl LookRule {
    /// Whether the result is analyzed only when the run is over.
    pub fn waits_for_end(self) -> bool {
        match self {
            LookRule::Once => true,
            LookRule::EachBlock => false,
        }
    }
}

/// The largest seed. Programs that read the record as JSON may round larger numbers.
pub const SEED_MAX: u64 = (1 << 53) - 1;

/// Maximum number of verdicts of one experiment, comparisons times metrics. The 5 % cannot be divided among
/// more.
pub const VERDICTS_MAX: usize = 64;

/// The processors that services may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// `Separate` if this leaves every variant as many processors as it keeps busy, else `Shared`. Decided
    /// before anything is measured.
    #[default]
    Auto,
    /// All processors that the generator does not run on. If there is only one processor, it is shared.
    Separate,
    /// All processors, including the generator's.
    Shared,
}

impl Cpus {
    /// All values, in the order of the help.
    pub const ALL: [Cpus; 3] = [Cpus::Auto, Cpus::Separate, Cpus::Shared];

    /// Name in an experiment file and as value of `--cpus`.
    pub fn name(self) -> &'static str {
        match self {
            Cpus::Auto => "auto",
            Cpus::Separate => "separate",
            Cpus::Shared => "shared",
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        let named = Cpus::ALL.into_iter().find(|cpus| cpus.name() == text);
        named.ok_or_else(|| format!("expected one of {}", Cpus::ALL.map(Cpus::name).join(", ")))
    }
}
