//! An environment without processes: a clock that only the environment advances, and rates and response times
//! drawn from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use analysis::{Conclusion, Outcome};
use model::{AskedOpen, Until};
use plan::{Plan, Preparation};
use proofload_lab::{
    CaptureSpec, Connected, Connecting, Environment, Failure, LabError, LostGenerator, SliceSpec,
    Start, Turn, Update, elapsed,
};
use rand::RngExt;
use rand_pcg::Pcg64;
use record::{
    Capture, CaptureKind, CapturedService, ConnectedGenerator, ContractFailure, Counts,
    DeployedSeen, EndReason, FailureKind, GeneratorPart, GeneratorUse, Header,
    MachineFingerprint as Machine, MachineUse, OpenLoop, Prepared, Record, ServiceStarted,
    ServiceUse, Slice, SliceKind, TrialEnded, TrialStarted, WorkersLost, Writer,
};
use services::Preparing;
use stats::Latencies;

mod plans;
mod queue;

pub use plans::{plan, with_copy, with_data};
pub use queue::{Kind as QueueKind, Queue, capacity_plan};

/// Responses per second of a variant without effect.
const BASE_RATE: f64 = 2000.0;
/// Time of the clock at the beginning of a run.
const BEGAN_S: f64 = 1000.0;
const TIMEOUT_S: f64 = 5.0;
/// Spread between processes, and between slices of one.
pub const BETWEEN_SD: f64 = 0.05;
pub const WITHIN_SD: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    DiesInBlock(u32),
    NeverStarts,
    NoData,
    Interrupt(u32),
    AllFail,
    /// Variant 1 has no responses within the windows of one block.
    Silent(u32),
    /// All requests of this variant time out.
    TimesOut(usize),
    /// All requests of variant 1 get status 500 in one block.
    Breaks(u32),
    /// All responses of this variant lack a header.
    Plain(usize),
    /// This variant loses a worker in its first trial.
    LosesWorker(usize),
    /// Variant 1 dies in this round during this capture.
    DiesCaptured(u32, CaptureKind),
    /// Variant 1 does not start with captures.
    NeverStartsCaptured,
    /// The user stops in this round.
    InterruptCaptured(u32),
    /// The second generator is lost in the measured slices of these blocks, and returns each time.
    LosesGenerator(fn(u32) -> bool),
    /// It is lost permanently in this block.
    LosesGeneratorForGood(u32),
    /// It was lost between blocks, and returned, before this one.
    FindsGeneratorGone(u32),
    NoGenerators,
}

pub struct Simulated {
    random: Pcg64,
    pub clock_s: f64,
    /// Effect of each variant on log throughput.
    effects: Vec<f64>,
    /// Effect of each variant on log response time.
    pub slower: Vec<f64>,
    /// Connections of all later loads, if capacity is measured.
    pub connections: u32,
    /// Maximum number of connections, and the reason.
    pub connections_most: Option<(u32, String)>,
    /// The arrivals requested for each slice in open loop, by variant and block.
    pub arrivals: Vec<(usize, u32, AskedOpen)>,
    pub starts: Vec<Start>,
    /// Cores that the services of each variant use while they may use all four.
    pub cores: Vec<f64>,
    /// Number of running variants when services were confined. Empty if they never were.
    pub confined: Vec<usize>,
    /// The captured windows, by variant.
    pub captures: Vec<(usize, CaptureSpec)>,
    pub fault: Option<Fault>,
    /// The last output of a service that dies.
    pub last_words: String,
    /// Unexpected responses in each slice.
    pub examples: Vec<ContractFailure>,
    /// State of the machine in each slice of a block.
    pub machine: fn(u32) -> MachineUse,
    /// Delay of the second generator's start in a block, in nanoseconds, and its clock error.
    pub late: fn(u32) -> (u64, u64),
    pub connects: u32,
    /// Why the second generator is gone.
    gone: Option<String>,
    /// Response time, which determines the requests in flight at the end of a slice.
    pub response_s: f64,
    /// Whether the load comes from two generators in separate processes.
    pub generators: bool,
    /// The running Service that is loaded.
    pub deployed: Option<DeployedSeen>,
    /// Variant, block, and random speed of its process.
    pub living: Vec<(usize, u32, f64)>,
    /// Start time of a service in a block, in seconds.
    pub start_s: fn(u32) -> f64,
    /// A variant that becomes faster by this logarithm when its process has this age in seconds.
    pub grows_up: Option<(usize, f64, f64)>,
    /// Start time of each variant's process.
    born_s: BTreeMap<usize, f64>,
    /// Peak memory of each variant in megabytes.
    pub peak_mb: Vec<u64>,
    /// Services that are queues, by variant, and the source of their arrivals.
    queues: Vec<Queue>,
    arriving: Pcg64,
}

impl Simulated {
    pub fn new(seed: u64, effects: &[f64]) -> Simulated {
        Simulated {
            random: Pcg64::new(u128::from(seed), 99),
            clock_s: BEGAN_S,
            effects: effects.to_vec(),
            slower: vec![0.0; effects.len()],
            connections: 32,
            connections_most: None,
            arrivals: Vec::new(),
            starts: Vec::new(),
            cores: Vec::new(),
            confined: Vec::new(),
            captures: Vec::new(),
            fault: None,
            last_words: String::new(),
            examples: Vec::new(),
            machine: |_| MachineUse::default(),
            late: |_| (0, 0),
            connects: 0,
            gone: None,
            response_s: 0.005,
            generators: false,
            deployed: None,
            living: Vec::new(),
            start_s: |_| 0.4,
            grows_up: None,
            born_s: BTreeMap::new(),
            peak_mb: vec![90; effects.len()],
            queues: Vec::new(),
            arriving: Pcg64::new(0, 0),
        }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Simulated)) -> Simulated {
        change(&mut self);
        self
    }

    pub fn failing(self, fault: Fault) -> Simulated {
        self.with(|it| it.fault = Some(fault))
    }

    fn services(&self) -> Vec<ServiceStarted> {
        if self.cores.is_empty() {
            return Vec::new();
        }
        let cpus = if self.confined.is_empty() {
            vec![0, 1, 2, 3]
        } else {
            vec![0, 1, 2]
        };
        vec![ServiceStarted {
            service: "api".into(),
            cpus,
            ..ServiceStarted::default()
        }]
    }

    /// Seconds of a window in which a variant is at full speed.
    fn grown_s(&self, variant: usize, began_s: f64, seconds: f64) -> f64 {
        let Some((_, after_s, _)) = self.grows_up.filter(|(of, ..)| *of == variant) else {
            return 0.0;
        };
        let age_s = began_s + seconds - self.born_s[&variant];
        (age_s - after_s).clamp(0.0, seconds)
    }

    /// A normal variate, as the sum of twelve uniform ones: good to three sigma, which is sufficient.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0
    }
}

impl Environment for Simulated {
    fn now_s(&mut self) -> f64 {
        self.clock_s
    }

    fn connect(&mut self, watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected, Failure> {
        if !self.generators {
            return Ok(Connected::default());
        }
        let names = ["local 1".to_owned(), "ssh://b".to_owned()];
        self.connects += 1;
        let block = self.starts.last().map_or(0, |start| start.block);
        let lost = |why: &str| {
            vec![LostGenerator {
                generator: names[1].clone(),
                why: why.to_owned(),
            }]
        };
        match (self.fault, self.gone.take()) {
            (Some(Fault::NoGenerators), _) => Err(Failure::generator("ssh://b: no route")),
            (Some(Fault::LosesGeneratorForGood(_)), Some(why)) => Err(Failure::GeneratorsLost(
                lost(&format!("{why}, and could not be replaced: no route")),
            )),
            (Some(Fault::FindsGeneratorGone(before)), _) if before == block + 1 => Ok(Connected {
                generators: generators(&names),
                lost: lost("generator ssh://b exited between two windows"),
            }),
            (_, gone) if gone.is_some() || self.connects == 1 => {
                watch(Connecting {
                    waiting: &names[1..],
                    for_now: Duration::ZERO,
                });
                self.clock_s += 2.0;
                Ok(Connected {
                    generators: generators(&names),
                    lost: Vec::new(),
                })
            }
            _ => Ok(Connected::default()),
        }
    }

    fn prepare(
        &mut self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Prepared, Failure> {
        watch(Preparing::Making(Duration::ZERO));
        // Longer than any budget here.
        self.clock_s += 1e4;
        if matches!(self.fault, Some(Fault::NoData)) {
            return Err(Failure::End(EndReason::PreparationFailed(
                "no space left".into(),
            )));
        }
        Ok(Prepared {
            name: step.name.clone(),
            key: "0".repeat(64),
            made: true,
            seconds: 1e4,
            bytes: 1,
        })
    }

    fn cores_apart(&self) -> usize {
        if self.cores.is_empty() { 0 } else { 3 }
    }

    fn confine(&mut self) -> Result<Vec<usize>, Failure> {
        self.confined.push(self.living.len());
        Ok(vec![0, 1, 2])
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted, Failure> {
        let patience_s = start
            .patience
            .map_or(f64::INFINITY, |patience| patience.as_secs_f64());
        let start_s = (self.start_s)(start.block);
        self.clock_s += start_s.min(patience_s);
        self.starts.push(start);
        if patience_s < start_s {
            return Err(Failure::OutOfBudget);
        }
        if matches!(self.fault, Some(Fault::NeverStarts)) && start.variant == 1 {
            return Err(Failure::service("variant 1 does not start"));
        }
        if matches!(self.fault, Some(Fault::NeverStartsCaptured))
            && start.capture.is_some()
            && start.variant == 1
        {
            return Err(Failure::service("variant 1 does not start with an agent"));
        }
        let mut luck = self.normal() * BETWEEN_SD;
        if let Some(queue) = self.queues.get(start.variant).copied() {
            luck = self.normal() * queue.between_sd;
        }
        self.living.push((start.variant, start.block, luck));
        self.born_s.insert(start.variant, self.clock_s);
        Ok(TrialStarted {
            block: start.block,
            variant: start.variant,
            start_s,
            padding_bytes: start.padding_bytes,
            generator_cpus: vec![3],
            cpus_shared: !self.cores.is_empty() && self.confined.is_empty(),
            services: self.services(),
            deployed: self.deployed.clone(),
            ..TrialStarted::default()
        })
    }

    fn set_connections(&mut self, connections: u32) {
        self.connections = connections;
    }

    fn connections_most(&mut self, _variant: usize) -> Option<(u32, String)> {
        self.connections_most.clone()
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        if let Some(queue) = self.queues.get(variant).copied() {
            return Ok(self.queued(variant, wanted, queue));
        }
        let SliceSpec { kind, until, open } = wanted;
        let seconds = seconds_of(until);
        let began_s = self.clock_s;
        // Generators on other machines have to agree on a start first.
        let agreeing_s = if self.generators { 0.175 } else { 0.0 };
        self.clock_s += seconds + self.response_s + 0.025 + agreeing_s;
        let (_, block, luck) = *self
            .living
            .iter()
            .find(|living| living.0 == variant)
            .expect("it lives");
        let luck = luck + self.normal() * WITHIN_SD;
        let mut made = match self.fault {
            Some(Fault::DiesInBlock(dies)) if dies == block && variant == 1 => {
                return Err(Failure::service(format!(
                    "variant 1 died{}",
                    self.last_words
                )));
            }
            Some(Fault::Interrupt(at)) if at == block => return Err(Failure::INTERRUPTED),
            Some(fault) if kind == SliceKind::Measured && fault.loses_generator(block) => {
                let why = "generator ssh://b exited before responding".to_owned();
                self.gone = Some(why.clone());
                return Err(Failure::GeneratorsLost(vec![LostGenerator {
                    generator: "ssh://b".into(),
                    why,
                }]));
            }
            Some(Fault::AllFail) => slice(variant, block, kind, 0, seconds),
            Some(Fault::Breaks(at)) if at == block && variant == 1 => {
                slice(variant, block, kind, 0, seconds)
            }
            Some(Fault::Plain(of)) if of == variant => {
                plain(slice(variant, block, kind, 0, seconds))
            }
            Some(Fault::TimesOut(of)) if of == variant => {
                self.clock_s += TIMEOUT_S;
                timed_out(slice(variant, block, kind, 0, seconds), open)
            }
            _ => match open {
                None => {
                    let grown_s = self.grown_s(variant, began_s, seconds);
                    let grown = self
                        .grows_up
                        .map_or(0.0, |(_, _, log)| log.exp_m1() * grown_s);
                    let ok = BASE_RATE * (self.effects[variant] + luck).exp() * (seconds + grown);
                    slice(variant, block, kind, ok as u64, seconds)
                }
                Some(open) => {
                    self.arrivals.push((variant, block, open));
                    let ok = (open.rate.due_by(seconds)) as u64;
                    let mut slice = slice(variant, block, kind, ok, seconds);
                    slice.counts.open = Some(Box::new(open_loop(
                        open.rate.at(0.0),
                        ok,
                        self.slower[variant] + luck,
                    )));
                    slice
                }
            },
        };
        made.counts.started_ns = (began_s * 1e9) as u64;
        made.counts
            .contract_failures
            .extend(self.examples.iter().cloned());
        if let Some(cores) = self.cores.get(variant) {
            made.services[0].cpu_ns = (seconds * cores * 1e9) as u64;
        }
        made.machine = (self.machine)(block);
        if self.generators {
            made.generators = parts(made.counts.sent, (self.late)(block));
        }
        if made.counts.timed_out == 0 {
            made.counts.drain_ns = (self.response_s * 1e9) as u64;
        }
        if seconds <= self.response_s
            || matches!(self.fault, Some(Fault::Silent(at)) if at == block && variant == 1)
        {
            // Responses came after the window.
            made.counts.successful_in_window = 0;
        }
        Ok(made)
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>, Failure> {
        let mut variants = order.to_vec();
        variants.sort_unstable();
        variants.dedup();
        let slice = |variant: usize| {
            let turns = order.iter().filter(|of| **of == variant).count();
            let seconds = turn.seconds * turns as f64;
            let slice = self.load(
                variant,
                SliceSpec {
                    kind: turn.kind,
                    until: elapsed(seconds),
                    open: None,
                },
            )?;
            Ok(Slice {
                turns: turns as u32,
                ..slice
            })
        };
        variants.into_iter().map(slice).collect()
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture, Failure> {
        let CaptureSpec {
            round,
            kind,
            seconds,
            ..
        } = wanted;
        assert_eq!(self.living.len(), 1, "who is captured is alone");
        match self.fault {
            Some(Fault::DiesCaptured(of, what)) if (of, what, 1) == (round, kind, variant) => {
                return Err(Failure::service(format!(
                    "variant 1 died{}",
                    self.last_words
                )));
            }
            Some(Fault::InterruptCaptured(of)) if of == round => return Err(Failure::INTERRUPTED),
            _ => {}
        }
        let start_ns = (self.clock_s * 1e9) as u64;
        self.clock_s += seconds;
        self.captures.push((variant, wanted));
        let service = CapturedService {
            service: "api".into(),
            directory: "/".into(),
            cpu_ns: (seconds * 0.99e9) as u64,
            processes: Vec::new(),
            missing: Vec::new(),
        };
        let end_ns = (self.clock_s * 1e9) as u64;
        let (requests, services) = ((BASE_RATE * seconds) as u64, vec![service]);
        Ok(Capture {
            round,
            variant,
            kind,
            start_ns,
            end_ns,
            requests,
            errors: 0,
            services,
        })
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        let index = self.living.iter().position(|living| living.0 == variant)?;
        let (_, block, _) = self.living.remove(index);
        self.clock_s += 0.05;
        let peak_rss_bytes = self.peak_mb[variant] * 1_000_000;
        let lost =
            matches!(self.fault, Some(Fault::LosesWorker(of)) if of == variant && block == 1);
        Some(TrialEnded {
            block,
            variant,
            peak_rss_bytes,
            peak_rss_bytes_by_service: BTreeMap::from([("api".to_owned(), peak_rss_bytes)]),
            workers_lost: lost
                .then(|| WorkersLost {
                    service: "api".into(),
                    lost: 1,
                })
                .into_iter()
                .collect(),
            ..TrialEnded::default()
        })
    }
}

impl Fault {
    fn loses_generator(self, block: u32) -> bool {
        match self {
            Fault::LosesGenerator(of) => of(block),
            Fault::LosesGeneratorForGood(of) => of == block,
            _ => false,
        }
    }
}

fn generators(names: &[String]) -> Vec<ConnectedGenerator> {
    names
        .iter()
        .map(|name| ConnectedGenerator {
            name: name.clone(),
            host: "host".into(),
            processors: 2,
        })
        .collect()
}

fn seconds_of(until: Until) -> f64 {
    match until {
        Until::Elapsed(length) => length.as_secs_f64(),
        Until::Requests(_) => 1.0,
    }
}

/// Two generators, of which the second began later.
fn parts(sent: u64, (late_ns, clock_error_ns): (u64, u64)) -> Vec<GeneratorPart> {
    let part = |name: &str, sent| GeneratorPart {
        name: name.into(),
        sent,
        ..GeneratorPart::default()
    };
    let first = GeneratorPart {
        here: true,
        ..part("local 1", sent / 2)
    };
    vec![
        first,
        GeneratorPart {
            late_ns,
            clock_error_ns,
            ..part("ssh://b", sent - sent / 2)
        },
    ]
}

/// The slice as if each response had lacked a header.
fn plain(slice: Slice) -> Slice {
    let failure = ContractFailure {
        kind: FailureKind::Header("content-encoding".into()),
        count: slice.counts.responses,
        example: "absent".into(),
    };
    let status = BTreeMap::from([(200, slice.counts.responses)]);
    Slice {
        counts: Counts {
            status,
            contract_failures: vec![failure],
            ..slice.counts
        },
        ..slice
    }
}

/// The slice as if all requests had timed out.
fn timed_out(slice: Slice, open: Option<AskedOpen>) -> Slice {
    let open = open.map(|open| {
        let due = open.rate.due_by(slice.counts.window_ns as f64 / 1e9) as u64;
        let mut response = Latencies::new();
        (0..due).for_each(|_| response.censor((TIMEOUT_S * 1e9) as u64));
        Box::new(OpenLoop {
            queued: due / 2,
            response,
            ..open_loop(open.rate.at(0.0), due, 0.0)
        })
    });
    let sent = open
        .as_ref()
        .map_or(slice.counts.sent, |open| open.intended);
    let counts = Counts {
        sent,
        timed_out: sent,
        responses: 0,
        drain_ns: (TIMEOUT_S * 1e9) as u64,
        status: BTreeMap::new(),
        open,
        ..slice.counts
    };
    Slice { counts, ..slice }
}

/// Response times from 1 ms on, exponential like a queue's, multiplied by a factor.
fn open_loop(rate_per_s: f64, intended: u64, log: f64) -> OpenLoop {
    let mut response = Latencies::new();
    let mut schedule_lag = Latencies::new();
    for index in 0..intended {
        let share = (index as f64 + 0.5) / intended as f64;
        response.record(((1.0 - (1.0 - share).ln()) * 1e6 * log.exp()) as u64);
        schedule_lag.record(20_000);
    }
    OpenLoop {
        rate_per_s,
        intended,
        sent_in_window: intended,
        response,
        schedule_lag,
        ..OpenLoop::default()
    }
}

pub fn slice(variant: usize, block: u32, kind: SliceKind, ok: u64, seconds: f64) -> Slice {
    let sent = if ok == 0 { 100 } else { ok };
    let buckets = (seconds * 10.0).round() as u64;
    // The first half second of a warm-up is slow.
    let bucket = |index: u64| match kind {
        SliceKind::WarmUp if index < 5 => ok / buckets / 4,
        _ => ok / buckets,
    };
    let mut latency = Latencies::new();
    latency.record(4_000_000);
    Slice {
        block,
        variant,
        kind,
        turns: 1,
        asked: None,
        connections: 32,
        waits: false,
        counts: Counts {
            window_ns: (seconds * 1e9) as u64,
            drain_ns: 5_000_000,
            // Every connection always has a request in flight.
            in_flight_ns: (seconds * 1e9) as u64 * 32,
            sent,
            responses: sent,
            successful: ok,
            successful_in_window: ok,
            status: BTreeMap::from([(if ok == 0 { 500 } else { 200 }, sent)]),
            body_bytes: sent * 1000,
            latency: latency.clone(),
            first_byte: latency,
            successful_per_100_ms: (0..buckets).map(|index| bucket(index) as u32).collect(),
            connections_alive: 32,
            generator: GeneratorUse {
                driver: "simulated".into(),
                cpu_ns: vec![(seconds * 2e8) as u64],
                run_delay_ns: vec![0],
                wall_ns: vec![(seconds * 1e9) as u64],
            },
            ..Counts::default()
        },
        generators: Vec::new(),
        services: vec![ServiceUse {
            service: "api".into(),
            cpu_ns: (seconds * 0.99e9) as u64,
            rss_bytes: 80_000_000,
            processes: 1,
            ..ServiceUse::default()
        }],
        machine: MachineUse::default(),
    }
}

/// Runs a plan. Afterwards no trial is left running, and the record on disk equals the one in memory.
pub fn run(plan: Plan, seed: u64, environment: &mut Simulated) -> (Record, Result<(), LabError>) {
    watched(plan, seed, environment, &mut |_| {})
}

/// The same with an observer.
pub fn watched(
    plan: Plan,
    seed: u64,
    environment: &mut Simulated,
    watch: &mut dyn FnMut(&Update<'_>),
) -> (Record, Result<(), LabError>) {
    let (writer, folder) = begun(plan, seed);
    let (record, result) = proofload_lab::run(writer, environment, watch);
    assert!(
        environment.living.is_empty(),
        "{:?} lives",
        environment.living
    );
    let opened = record::open(&folder.path().join("record")).expect("it opens");
    assert!(
        opened == record,
        "the record on disk is not the one in memory"
    );
    (record, result)
}

/// Runs a plan without errors. A void or early end is not an error.
pub fn finished(plan: Plan, seed: u64, environment: &mut dyn Environment) -> Record {
    let (writer, _folder) = begun(plan, seed);
    let (record, result) = proofload_lab::run(writer, environment, &mut |_| {});
    result.expect("it is no error");
    record
}

/// Its checks with a finding.
pub fn found(conclusion: &Conclusion) -> Vec<&'static str> {
    conclusion
        .findings
        .iter()
        .map(|finding| finding.check.name())
        .collect()
}

pub fn outcomes(conclusion: &Conclusion) -> Vec<Outcome> {
    conclusion
        .comparisons
        .iter()
        .map(|comparison| comparison.outcome)
        .collect()
}

/// Asserts that a run did not exceed its time.
pub fn assert_in_budget(record: &Record) {
    let (ended, budget) = (
        record.ended.as_ref().expect("the run ended"),
        record.header.plan.design.budget,
    );
    assert!(
        ended.seconds <= budget.as_secs_f64() * 1.02,
        "{ended:?} of {budget:?}"
    );
}

pub fn reason(record: &Record) -> &EndReason {
    &record.ended.as_ref().expect("the run ended").reason
}

/// Numbers of the dropped blocks.
pub fn dropped(record: &Record) -> Vec<u32> {
    record
        .blocks
        .iter()
        .filter(|block| block.dropped.is_some())
        .map(|block| block.number)
        .collect()
}

/// Stores records in memory if possible: examples create thousands.
#[allow(dead_code)]
pub fn write_to_memory() {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() {
        let _ = tempfile::env::override_temp_dir(memory);
    }
}

/// A record without events.
pub fn begun(plan: Plan, seed: u64) -> (Writer, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder for the record");
    let header = header(plan, seed, &["proofload"]);
    let directory = folder.path().join("record");
    let writer =
        Writer::create(&directory, header, "name = \"simulated\"\n").expect("the record is made");
    (writer, folder)
}

/// The header of a record with this command line.
pub fn header(plan: Plan, seed: u64, command: &[&str]) -> Header {
    Header {
        version: record::VERSION,
        proofload: "0.0.0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        order: None,
        experiment: "simulated.toml".into(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        repeat: record::Repeat::Command(vec!["run".to_owned(), "simulated.toml".to_owned()]),
        files: Default::default(),
        seed,
        plan,
        environment: Machine {
            cpus: 2,
            ..Machine::default()
        },
    }
}
