//! Services that are queues: response times in open loop follow from arrivals and service times, so that their capacity is known.

use std::time::Duration;

use model::{Rate, Until};
use plan::{Figure, Metric, Plan, Preparation};
use proofload_lab::{CaptureSpec, Connected, Connecting, Environment, Failure, SliceSpec, Start, Turn};
use rand::RngExt;
use rand_pcg::Pcg64;
use record::{Capture, OpenLoop, Prepared, Slice, TrialEnded, TrialStarted};
use services::Preparing;
use stats::Latencies;

use super::{Simulated, slice};

/// Nobody waits longer than this.
const TIMEOUT_S: f64 = 5.0;

/// A service with a line before it.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Responses per second at its limit.
    pub per_s: f64,
    pub kind: Kind,
    /// Standard deviation of the logarithm of that between processes.
    pub between_sd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Exponential service by so many servers.
    Exponential(usize),
    Constant,
    /// Exponential, and 25 ms more of one request in 500.
    Pauses,
    /// Exponential, and no more than so many in line: the rest fails at once.
    Shedding(usize),
}

pub struct Queues {
    pub inner: Simulated,
    queues: Vec<Queue>,
    random: Pcg64,
}

impl Queues {
    pub fn new(seed: u64, queues: &[Queue]) -> Queues {
        let inner = Simulated::new(seed, &vec![0.0; queues.len()]);
        Queues { inner, queues: queues.to_vec(), random: Pcg64::new(u128::from(seed), 7) }
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.random::<f64>()).ln()
    }

    fn service_s(&mut self, kind: Kind, per_s: f64) -> f64 {
        match kind {
            Kind::Exponential(servers) => self.exponential() * servers as f64 / per_s,
            Kind::Constant => 1.0 / per_s,
            Kind::Pauses => {
                // At its limit it does `per_s`: the pauses are part of that.
                let pause = if self.random.random_range(0..500) == 0 { 0.025 } else { 0.0 };
                self.exponential() * (1.0 / per_s - 0.025 / 500.0) + pause
            }
            Kind::Shedding(_) => self.exponential() / per_s,
        }
    }

    /// What came of arrivals at this rate from an empty line: response times (infinite where it failed), and when the last was done.
    fn served(&mut self, kind: Kind, per_s: f64, rate: Rate, seconds: f64) -> (Vec<(f64, f64)>, f64) {
        let servers = if let Kind::Exponential(servers) = kind { servers } else { 1 };
        let most = if let Kind::Shedding(most) = kind { most } else { usize::MAX };
        let (mut free, mut ends) = (vec![0.0_f64; servers], std::collections::VecDeque::new());
        let (mut now, mut last, mut all) = (0.0_f64, 0.0_f64, Vec::new());
        let highest = rate.at(0.0).max(rate.at(seconds));
        loop {
            now += self.exponential() / highest;
            if now >= seconds {
                return (all, last);
            }
            // Thinned, where the rate changes.
            if self.random.random::<f64>() >= rate.at(now) / highest {
                continue;
            }
            while ends.front().is_some_and(|end| *end <= now) {
                ends.pop_front();
            }
            if ends.len() >= most {
                all.push((now, f64::INFINITY));
                continue;
            }
            let first = (0..servers).min_by(|one, other| free[*one].total_cmp(&free[*other])).unwrap_or(0);
            let service = self.service_s(kind, per_s);
            free[first] = free[first].max(now) + service;
            ends.push_back(free[first]);
            last = last.max(free[first]);
            all.push((now, free[first] - now));
        }
    }

    fn open(&mut self, slice: &mut Slice, queue: Queue, per_s: f64, rate: Rate, seconds: f64) -> f64 {
        let (all, last) = self.served(queue.kind, per_s, rate, seconds);
        let (mut response, mut schedule_lag) = (Latencies::new(), Latencies::new());
        let buckets = (seconds * 10.0).ceil() as usize;
        let (mut due, mut done) = (vec![0; buckets], vec![0; buckets]);
        let mut shed = 0;
        for (at, took) in &all {
            due[(at * 10.0) as usize] += 1;
            schedule_lag.record(20_000);
            if took.is_infinite() {
                shed += 1;
                response.record(100_000);
            } else if *took > TIMEOUT_S {
                response.censor((TIMEOUT_S * 1e9) as u64);
            } else {
                response.record((took * 1e9) as u64);
                done.get_mut(((at + took) * 10.0) as usize).into_iter().for_each(|count| *count += 1);
            }
        }
        let (intended, timed_out) = (all.len() as u64, response.censored());
        let counts = &mut slice.counts;
        (counts.sent, counts.responses) = (intended, intended - timed_out);
        (counts.successful, counts.timed_out) = (intended - timed_out - shed, timed_out);
        counts.successful_in_window = done.iter().map(|count| u64::from(*count)).sum();
        counts.successful_per_100_ms = done;
        counts.drain_ns = ((last - seconds).clamp(0.0, TIMEOUT_S) * 1e9) as u64;
        counts.status =
            [(200, counts.successful), (503, shed)].into_iter().filter(|(_, count)| *count > 0).collect();
        let open = OpenLoop {
            rate_per_s: rate.mean(seconds),
            intended,
            due_per_100_ms: due,
            sent_in_window: intended,
            response,
            schedule_lag,
            ..OpenLoop::default()
        };
        counts.open = Some(Box::new(open));
        slice.services.iter_mut().for_each(|service| service.cpu_ns = (intended as f64 / per_s * 1e9) as u64);
        (last - seconds).clamp(0.0, TIMEOUT_S)
    }
}

impl Environment for Queues {
    fn now_s(&mut self) -> f64 {
        self.inner.now_s()
    }
    fn connect(&mut self, watch: &mut dyn FnMut(Connecting<'_>)) -> Result<Connected, Failure> {
        self.inner.connect(watch)
    }
    fn prepare(&mut self, step: &Preparation, watch: &mut dyn FnMut(Preparing)) -> Result<Prepared, Failure> {
        self.inner.prepare(step, watch)
    }
    fn start(&mut self, start: Start) -> Result<TrialStarted, Failure> {
        let started = self.inner.start(start)?;
        let luck = self.inner.normal() * self.queues[start.variant].between_sd;
        self.inner.living.iter_mut().filter(|one| one.0 == start.variant).for_each(|one| one.2 = luck);
        Ok(started)
    }
    fn load(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice, Failure> {
        let seconds = match wanted.until {
            Until::Elapsed(length) => length.as_secs_f64(),
            Until::Requests(_) => 1.0,
        };
        let (_, block, luck) = *self.inner.living.iter().find(|one| one.0 == variant).expect("it lives");
        let queue = self.queues[variant];
        let per_s = queue.per_s * luck.exp();
        self.inner.clock_s += seconds + 0.03;
        let noise = (self.inner.normal() * 0.015).exp();
        let mut made = slice(variant, block, wanted.kind, (per_s * noise * seconds) as u64, seconds);
        if let Some(open) = wanted.open {
            let drain_s = self.open(&mut made, queue, per_s, open.rate, seconds);
            self.inner.clock_s += drain_s;
        }
        Ok(made)
    }
    fn take_turns(&mut self, _: &[usize], _: Turn) -> Result<Vec<Slice>, Failure> {
        unreachable!("capacity is measured one trial after the other")
    }
    fn capture(&mut self, variant: usize, wanted: CaptureSpec) -> Result<Capture, Failure> {
        self.inner.capture(variant, wanted)
    }
    fn stop(&mut self, variant: usize) -> Option<TrialEnded> {
        self.inner.stop(variant)
    }
}

/// A plan that asks how much so many variants bear within p99 < 50 ms.
pub fn capacity_plan(variants: usize, budget_s: u64) -> Plan {
    let mut plan = super::plan(variants);
    plan.design.metric = Metric::Capacity;
    plan.design.slo = vec![plan::limit("p99 < 50ms").expect("a limit")];
    assert_eq!(plan.design.slo[0].figure, Figure::Metric(Metric::P99));
    plan.design.budget = Duration::from_secs(budget_s);
    if variants == 1 {
        (plan.factors, plan.comparisons) = (Vec::new(), Vec::new());
    }
    plan
}
