//! A machine with services on it, as an environment of the dispatcher. Everything except load comes from the
//! tests' simulated environment.
//!
//! It does not know the method under test: it receives requests for windows of load, and returns their
//! results.

use model::Until;
use plan::{Plan, Preparation};
use proofload_lab::{CaptureSpec, Environment, Failure, SliceSpec, Start, Turn};
use record::{Capture, Prepared, Slice, SliceKind, TrialEnded, TrialStarted};
use services::Preparing;
use stats::Latencies;

use super::environment::{Simulated, slice};
use super::machine::{Kind, Machine};
use super::noise::Noise;

/// Requests per second of a busy service without effect, on a machine at normal speed.
const BASE_PER_S: f64 = 5_000.0;
/// Standard deviation of the log of the noise of half a second of load, and of the variation between
/// processes.
const WINDOW_SD: f64 = 0.02;
const PROCESS_SD: f64 = 0.01;
/// CPU use of a busy service.
const BUSY: f64 = 0.98;
/// Probability of a slow process with one-sided noise, and its average slowdown as a log.
const UNLUCKY: (f64, f64) = (0.1, 0.1);
/// Seconds of load until a process is at full speed, and its initial speed as a share.
const WARM_S: f64 = 0.3;
const COLD: f64 = 0.5;
/// CPU time of a request of a service that waits, in seconds.
const WAITING_CPU_S: f64 = 20e-6;
const CONNECTIONS: u32 = 32;
/// Overhead of a turn, and of a slice, beside their windows, in seconds.
const TURN_GAP_S: f64 = 0.001;
const SLICE_GAP_S: f64 = 0.025;

/// Behaviour of a variant's service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// It computes, this much faster than without effect, as a log.
    Busy(f64),
    /// It waits this many seconds for each response, constantly or on average (exponential).
    Waits { mean_s: f64, constant: bool },
    /// It waits, and serves one request at a time, at this rate for any number of connections.
    InLine { per_s: f64 },
}

impl Service {
    /// The log of its true value: requests per second of a core, or of connections.
    pub fn truth(self) -> f64 {
        match self {
            Service::Busy(log) => log,
            Service::Waits { mean_s, .. } => -mean_s.ln(),
            Service::InLine { per_s } => (per_s / f64::from(CONNECTIONS)).ln(),
        }
    }
}

/// See the module's text.
pub struct World {
    base: Simulated,
    kind: Kind,
    noise: Noise,
    machine: Machine,
    services: Vec<Service>,
    now_s: f64,
    /// For each variant, the speed of its current process, and how long it was loaded.
    processes: Vec<(f64, f64)>,
}

/// Results of windows.
#[derive(Default)]
struct Done {
    seconds: f64,
    ok: f64,
    ok_in_window: f64,
    in_flight_s: f64,
    first_ok: f64,
    first_in_flight_s: f64,
    cpu_s: f64,
    stolen_s: f64,
    drain_s: f64,
    latency: Latencies,
    turns: u32,
}

impl World {
    pub fn new(kind: Kind, services: &[Service], run_s: f64, seed: u64) -> World {
        let mut noise = Noise::new(seed);
        let machine = Machine::new(kind, run_s, services.len(), &mut noise);
        let base = Simulated::new(seed, &vec![0.0; services.len()]);
        let processes = vec![(0.0, 0.0); services.len()];
        World {
            base,
            kind,
            noise,
            machine,
            services: services.to_vec(),
            now_s: 0.0,
            processes,
        }
    }

    fn draw(&mut self, sd: f64) -> f64 {
        sd * if self.kind == Kind::HeavyTails {
            self.noise.heavy()
        } else {
            self.noise.normal()
        }
    }

    /// Random speed of a process, as a log.
    fn luck(&mut self) -> f64 {
        let unlucky = self.kind == Kind::OneSided && self.noise.uniform() < UNLUCKY.0;
        let bad = if unlucky {
            UNLUCKY.1 * self.noise.uniform().ln()
        } else {
            0.0
        };
        bad + self.draw(PROCESS_SD)
    }

    /// One window of load on a variant.
    fn window(&mut self, variant: usize, seconds: f64, done: &mut Done) {
        self.machine.pause_until(self.now_s, &mut self.noise);
        let seen = self.machine.window(variant, seconds, &mut self.noise);
        done.seconds += seconds;
        done.stolen_s += seen.stolen * seconds;
        done.turns += 1;
        self.now_s += seconds + TURN_GAP_S;
        match self.services[variant] {
            Service::Busy(log) => {
                let noise = self.draw(WINDOW_SD * (0.5 / seconds).sqrt());
                let (luck, loaded_s) = self.processes[variant];
                let warm = 1.0 - COLD * (-(loaded_s + seconds / 2.0) / WARM_S).exp();
                let ok = BASE_PER_S * seconds * seen.speed * (log + luck + noise).exp() * warm;
                done.ok += ok.round();
                done.ok_in_window += ok.round();
                done.cpu_s += BUSY * seconds * (1.0 - seen.stolen);
                done.in_flight_s += seconds * f64::from(CONNECTIONS);
            }
            Service::Waits { mean_s, constant } => self.wait(mean_s, constant, seconds, done),
            Service::InLine { per_s } => {
                let luck =
                    self.processes[variant].0 + self.draw(WINDOW_SD * (0.5 / seconds).sqrt());
                self.serve_in_line(per_s * luck.exp(), seconds, done);
            }
        }
        self.processes[variant].1 += seconds;
    }

    /// Independent connections of a window on a service that waits.
    fn wait(&mut self, mean_s: f64, constant: bool, seconds: f64, done: &mut Done) {
        let mut last_s = seconds;
        for _ in 0..CONNECTIONS {
            let mut at_s = 0.0;
            while at_s < seconds {
                let takes_s = if constant {
                    mean_s
                } else {
                    -mean_s * self.noise.uniform().ln()
                };
                at_s += takes_s;
                done.in_flight_s += takes_s;
                if at_s == takes_s {
                    done.first_in_flight_s += takes_s;
                    done.first_ok += 1.0;
                }
                done.ok += 1.0;
                done.ok_in_window += f64::from(u8::from(at_s <= seconds));
                done.latency.record((takes_s * 1e9) as u64);
                done.cpu_s += WAITING_CPU_S;
            }
            last_s = last_s.max(at_s);
        }
        done.drain_s += last_s - seconds;
        self.now_s += last_s - seconds;
    }

    /// All connections begin at once, and each later request finds all other connections before it.
    fn serve_in_line(&mut self, per_s: f64, seconds: f64, done: &mut Done) {
        let later = (seconds * per_s).floor();
        let waits_s = f64::from(CONNECTIONS) / per_s;
        let mut first_s = 0.0;
        for number in 1..=CONNECTIONS {
            let takes_s = f64::from(number) / per_s;
            first_s += takes_s;
            done.latency.record((takes_s * 1e9) as u64);
        }
        (0..later as u32).for_each(|_| done.latency.record((waits_s * 1e9) as u64));
        done.first_ok += f64::from(CONNECTIONS);
        done.first_in_flight_s += first_s;
        done.in_flight_s += first_s + later * waits_s;
        done.ok += f64::from(CONNECTIONS) + later;
        done.ok_in_window += later;
        done.cpu_s += WAITING_CPU_S * (f64::from(CONNECTIONS) + later);
        done.drain_s += waits_s;
        self.now_s += waits_s;
    }

    /// A slice from the results.
    fn slice(&self, variant: usize, kind: SliceKind, done: Done) -> Slice {
        let block = self
            .base
            .living
            .iter()
            .find(|living| living.0 == variant)
            .expect("it lives")
            .1;
        let mut slice = slice(variant, block, kind, done.ok as u64, done.seconds);
        slice.turns = done.turns;
        slice.counts.successful_in_window = done.ok_in_window as u64;
        slice.counts.in_flight_ns = (done.in_flight_s * 1e9) as u64;
        slice.counts.first_successful = done.first_ok as u64;
        slice.counts.first_in_flight_ns = (done.first_in_flight_s * 1e9) as u64;
        slice.counts.drain_ns = (done.drain_s * 1e9) as u64;
        if done.latency.count() > 0 {
            slice.counts.latency = done.latency;
        }
        slice.services[0].cpu_ns = (done.cpu_s * 1e9) as u64;
        slice.machine.steal_share = done.stolen_s / done.seconds;
        slice
    }
}

impl Environment for World {
    fn now_s(&mut self) -> f64 {
        self.now_s
    }

    fn prepare(
        &mut self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
    ) -> Result<Prepared, Failure> {
        self.base.prepare(step, watch)
    }

    fn start(&mut self, start: Start) -> Result<TrialStarted, Failure> {
        self.now_s += 0.4 * (0.8 + 0.4 * self.noise.uniform());
        self.processes[start.variant] = (self.luck(), 0.0);
        self.base.start(start)
    }

    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        let SliceSpec { kind, until, .. } = wanted;
        let Until::Elapsed(length) = until else {
            unreachable!("nothing here counts requests")
        };
        let (mut done, mut per_100_ms) = (Done::default(), Vec::new());
        // Tenths of a second, so that the warm-up is visible.
        let tenths = (length.as_secs_f64() * 10.0).round().max(1.0) as u32;
        // For longer responses there would be a wait after each window.
        let windows = match self.services[variant] {
            Service::InLine { .. } => 1,
            Service::Waits { mean_s, .. } if mean_s > 0.1 => 1,
            Service::Waits { .. } | Service::Busy(_) => tenths,
        };
        for _ in 0..windows {
            let before = done.ok_in_window;
            self.window(
                variant,
                length.as_secs_f64() / f64::from(windows),
                &mut done,
            );
            per_100_ms.push((done.ok_in_window - before) as u32);
        }
        if windows < tenths {
            per_100_ms = vec![per_100_ms[0] / tenths; tenths as usize];
        }
        done.turns = 1;
        self.now_s += SLICE_GAP_S;
        let mut slice = self.slice(variant, kind, done);
        slice.counts.successful_per_100_ms = per_100_ms;
        Ok(slice)
    }

    fn take_turns(&mut self, order: &[usize], turn: Turn) -> Result<Vec<Slice>, Failure> {
        let mut done: Vec<Done> = self.services.iter().map(|_| Done::default()).collect();
        for &variant in order {
            self.window(variant, turn.seconds, &mut done[variant]);
        }
        self.now_s += SLICE_GAP_S;
        let done = done
            .into_iter()
            .enumerate()
            .filter(|(_, done)| done.turns > 0);
        Ok(done
            .map(|(variant, done)| self.slice(variant, turn.kind, done))
            .collect())
    }

    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture, Failure> {
        self.base.capture(variant, wanted)
    }

    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        self.now_s += 0.05;
        self.base.stop(variant)
    }
}

/// The plan of a run in this world.
pub fn plan(variants: usize, budget_s: u64, margin: f64) -> Plan {
    let mut plan = super::environment::plan(variants);
    plan.design.budget = std::time::Duration::from_secs(budget_s);
    plan.design.margin = margin;
    plan
}
