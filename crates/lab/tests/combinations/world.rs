//! The simulated environment, fitted to a plan: its services, requests, generators and queues.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use model::{EndpointCounts, Until};
use plan::{Plan, Preparation, ServiceSource};
use proofload_lab::{
    CaptureSpec, Connected, Connecting, Environment, Failure, SliceSpec, Start, Turn,
};
use record::{
    Capture, Counts, DeployedSeen, Prepared, ServiceStarted, ServiceUse, Slice, TrialEnded,
    TrialStarted,
};
use services::Preparing;

use crate::environment::{Fault, Queue, QueueKind, Simulated};

/// More calls than any run needs within its budget.
const LOADS_MAX: u32 = 20_000;
const PER_S: f64 = 2000.0;

/// Event during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Quiet,
    Faster,
    Disturbed,
    Dies,
    NeverStarts,
    AllFail,
    TimesOut,
    Breaks,
    Silent,
    Interrupted,
    WantsCores,
    StartsSlowly,
    AnswersSlowly,
    FailsRarely,
}

impl Weather {
    pub const ALL: [Weather; 14] = [
        Weather::Quiet,
        Weather::Faster,
        Weather::Disturbed,
        Weather::Dies,
        Weather::NeverStarts,
        Weather::AllFail,
        Weather::TimesOut,
        Weather::Breaks,
        Weather::Silent,
        Weather::Interrupted,
        Weather::WantsCores,
        Weather::StartsSlowly,
        Weather::AnswersSlowly,
        Weather::FailsRarely,
    ];

    fn fault(self) -> Option<Fault> {
        match self {
            Weather::Dies => Some(Fault::DiesInBlock(2)),
            Weather::NeverStarts => Some(Fault::NeverStarts),
            Weather::AllFail => Some(Fault::AllFail),
            Weather::TimesOut => Some(Fault::TimesOut(0)),
            Weather::Breaks => Some(Fault::Breaks(2)),
            Weather::Silent => Some(Fault::Silent(2)),
            Weather::Interrupted => Some(Fault::Interrupt(2)),
            Weather::Quiet
            | Weather::Faster
            | Weather::Disturbed
            | Weather::WantsCores
            | Weather::StartsSlowly
            | Weather::AnswersSlowly
            | Weather::FailsRarely => None,
        }
    }
}

/// A simulated environment for one plan.
pub struct World {
    pub inner: Simulated,
    plan: Plan,
    weather: Weather,
    loads: u32,
}

impl World {
    pub fn new(plan: &Plan, seed: u64, weather: Weather) -> World {
        let variants = plan.variants.len();
        let effect = if weather == Weather::Faster { 0.3 } else { 0.0 };
        let effects: Vec<f64> = (0..variants)
            .map(|index| effect * (index % 2) as f64)
            .collect();
        let queues: Vec<Queue> = effects
            .iter()
            .map(|effect| Queue {
                per_s: PER_S * effect.exp(),
                kind: QueueKind::Exponential(1),
                between_sd: 0.03,
            })
            .collect();
        let is_search = !plan.design.slo.is_empty();
        let inner = if is_search {
            Simulated::queueing(seed, &queues)
        } else {
            Simulated::new(seed, &effects)
        };
        let inner = inner.with(|it| {
            it.fault = weather.fault();
            it.slower = effects.clone();
            it.generators = plan.generators != plan::Generators::default();
            match weather {
                Weather::Disturbed => {
                    it.machine = |block| record::MachineUse {
                        steal_share: f64::from(block % 2) * 0.3,
                        ..record::MachineUse::default()
                    };
                }
                Weather::WantsCores => it.cores = effects.iter().map(|_| 1.6).collect(),
                Weather::StartsSlowly => it.start_s = |_| 9.0,
                Weather::AnswersSlowly => it.response_s = 0.4,
                Weather::Quiet
                | Weather::Faster
                | Weather::Dies
                | Weather::NeverStarts
                | Weather::AllFail
                | Weather::TimesOut
                | Weather::Breaks
                | Weather::Silent
                | Weather::Interrupted
                | Weather::FailsRarely => {}
            }
        });
        World {
            inner,
            plan: plan.clone(),
            weather,
            loads: 0,
        }
    }

    /// The slice as the engine would return it for the load of this variant.
    fn fitted(&self, slice: Slice, until: Option<u64>) -> Slice {
        let variant = &self.plan.variants[slice.variant];
        let requests = variant.load.requests.iter();
        let repeated: Vec<&plan::Request> = requests.filter(|request| !request.once).collect();
        let mut slice = slice;
        if let Some(wanted) = until.filter(|_| slice.counts.timed_out == 0) {
            let counts = &mut slice.counts;
            let share = counts.successful as f64 / counts.sent as f64;
            (counts.sent, counts.responses) = (wanted, wanted);
            (counts.successful, counts.successful_in_window) = (
                (wanted as f64 * share) as u64,
                (wanted as f64 * share) as u64,
            );
            let status = if share > 0.0 { 200 } else { 500 };
            counts.status = [(status, wanted)].into();
        }
        if self.weather == Weather::FailsRarely {
            fail_rarely(&mut slice.counts);
        }
        if variant.load.is_mix() {
            let total: u64 = repeated
                .iter()
                .map(|request| u64::from(request.weight))
                .sum();
            let of =
                |count: u64, request: &plan::Request| count * u64::from(request.weight) / total;
            let Counts {
                sent,
                successful,
                successful_in_window,
                body_bytes,
                ..
            } = slice.counts;
            slice.counts.endpoints = repeated
                .iter()
                .map(|request| EndpointCounts {
                    name: request.name.clone(),
                    sent: of(sent, request),
                    successful: of(successful, request),
                    successful_in_window: of(successful_in_window, request),
                    body_bytes: of(body_bytes, request),
                    ..EndpointCounts::default()
                })
                .collect();
        }
        if repeated.len() < variant.load.requests.len() {
            slice.counts.log_ins = u64::from(variant.load.settings.connections);
        }
        let entry = variant
            .services
            .iter()
            .find(|service| service.name == variant.entry);
        match entry.map(|service| &service.source) {
            Some(ServiceSource::Deployed { .. }) => slice.services.clear(),
            Some(ServiceSource::Url { .. } | ServiceSource::Command(_)) | None => {
                let cpu_ns = slice.services.first().map_or(0, |service| service.cpu_ns);
                let count = variant.services.len() as u64;
                slice.services = variant
                    .services
                    .iter()
                    .map(|service| ServiceUse {
                        service: service.name.clone(),
                        cpu_ns: cpu_ns / count,
                        rss_bytes: 80_000_000 + u64::from(self.loads % 7) * 500_000,
                        processes: 1,
                        ..ServiceUse::default()
                    })
                    .collect();
            }
        }
        slice
    }

    fn count(&mut self) {
        self.loads += 1;
        assert!(self.loads < LOADS_MAX, "the run does not end");
    }
}

/// Turns 0.15 % of the responses into errors, at least one. In open loop, as many requests are not sent.
fn fail_rarely(counts: &mut Counts) {
    let failed = (counts.successful * 3 / 2000).max(1).min(counts.successful);
    counts.successful -= failed;
    counts.successful_in_window = counts.successful_in_window.min(counts.successful);
    if let Some(good) = counts.status.get_mut(&200) {
        *good -= failed;
        counts.status.insert(500, failed);
    }
    // As many were never sent.
    if let Some(open) = &mut counts.open {
        open.unsent += failed;
        open.intended += failed;
        (0..failed).for_each(|_| open.response.censor(1_000_000_000));
    }
}

impl Environment for World {
    fn now_s(&mut self) -> f64 {
        self.inner.now_s()
    }

    fn connect(&mut self, watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected, Failure> {
        self.inner.connect(watch)
    }

    fn prepare(
        &mut self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Prepared, Failure> {
        self.inner.prepare(step, watch)
    }

    fn cores_apart(&self) -> usize {
        // One of two processors is the generator's.
        self.inner.cores_apart().min(1)
    }

    fn confine(&mut self) -> Result<Vec<usize>, Failure> {
        self.inner.confine().map(|_| vec![0])
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted, Failure> {
        let started = self.inner.start(start)?;
        let variant = &self.plan.variants[started.variant];
        let cpus = if self.inner.confined.is_empty() {
            vec![0, 1]
        } else {
            vec![0]
        };
        let mut services = Vec::new();
        let mut deployed = None;
        for service in &variant.services {
            match &service.source {
                ServiceSource::Url { .. } | ServiceSource::Deployed { .. } => {
                    deployed = Some(DeployedSeen {
                        service: service.name.clone(),
                        place: "http://127.0.0.1:3000".into(),
                        address: "127.0.0.1:3000".into(),
                        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
                        is_here: true,
                        unseen: None,
                        pods: Vec::new(),
                    });
                }
                ServiceSource::Command(_) => services.push(ServiceStarted {
                    service: service.name.clone(),
                    port: 3000,
                    cpus: cpus.clone(),
                    cpu_source: "processes".into(),
                    ..ServiceStarted::default()
                }),
            }
        }
        Ok(TrialStarted {
            services,
            deployed,
            generator_cpus: vec![1],
            ..started
        })
    }

    fn set_connections(&mut self, connections: u32) {
        self.inner.set_connections(connections);
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        self.count();
        let until = match wanted.until {
            Until::Requests(count) => Some(count),
            Until::Elapsed(_) => None,
        };
        let length = until.map_or(wanted.until, |count| {
            Until::Elapsed(Duration::from_secs_f64(count as f64 / PER_S))
        });
        let slice = self.inner.load(
            variant,
            SliceSpec {
                until: length,
                ..wanted
            },
        )?;
        Ok(self.fitted(slice, until))
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>, Failure> {
        self.count();
        let slices = self.inner.take_turns(order, turn)?;
        Ok(slices
            .into_iter()
            .map(|slice| self.fitted(slice, None))
            .collect())
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture, Failure> {
        self.inner.capture(variant, wanted)
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        let mut ended = self.inner.stop(variant)?;
        ended.peak_rss_bytes += u64::from(self.loads % 7) * 500_000;
        Some(ended)
    }
}
