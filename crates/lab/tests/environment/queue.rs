//! Services that are queues: response times in open loop depend on arrivals and service times, so that their
//! capacity is known.

use std::time::Duration;

use model::Rate;
use plan::{LimitFigure, Metric, Plan};
use proofload_lab::SliceSpec;
use rand::RngExt;
use rand_pcg::Pcg64;
use record::{OpenLoop, Slice};
use stats::Latencies;

use super::{Simulated, TIMEOUT_S, seconds_of, slice};

/// A service with a queue.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Maximum responses per second.
    pub per_s: f64,
    pub kind: Kind,
    /// Standard deviation of its logarithm between processes.
    pub between_sd: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Exponential service by this number of servers.
    Exponential(usize),
    Constant,
    /// Exponential, and 25 ms more for one request in 500.
    Pauses,
    /// Exponential, with a limited queue: further requests fail at once.
    Shedding(usize),
}

impl Simulated {
    /// Services that are these queues.
    pub fn queueing(seed: u64, queues: &[Queue]) -> Simulated {
        let random = Pcg64::new(u128::from(seed), 7);
        Simulated {
            queues: queues.to_vec(),
            arriving: random,
            ..Simulated::new(seed, &vec![0.0; queues.len()])
        }
    }

    /// A window of load on a queue.
    pub(super) fn queued(&mut self, variant: usize, wanted: SliceSpec, queue: Queue) -> Slice {
        let seconds = seconds_of(wanted.until);
        let (_, block, luck) = *self
            .living
            .iter()
            .find(|one| one.0 == variant)
            .expect("it lives");
        let per_s = queue.per_s * luck.exp();
        self.clock_s += seconds + 0.03;
        let noise = (self.normal() * 0.015).exp();
        let mut made = slice(
            variant,
            block,
            wanted.kind,
            (per_s * noise * seconds) as u64,
            seconds,
        );
        made.machine = (self.machine)(block);
        made.connections = self.connections;
        if let Some(open) = wanted.open {
            self.clock_s += self.open(&mut made, queue, per_s, open.rate, seconds);
        }
        made
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.arriving.random::<f64>()).ln()
    }

    fn service_s(&mut self, kind: Kind, per_s: f64) -> f64 {
        match kind {
            Kind::Exponential(servers) => self.exponential() * servers as f64 / per_s,
            Kind::Constant => 1.0 / per_s,
            Kind::Pauses => {
                // Its maximum rate is `per_s`: the pauses are included.
                let pause = if self.arriving.random_range(0..500) == 0 {
                    0.025
                } else {
                    0.0
                };
                self.exponential() * (1.0 / per_s - 0.025 / 500.0) + pause
            }
            Kind::Shedding(_) => self.exponential() / per_s,
        }
    }

    /// Results of arrivals at this rate from an empty queue: response times (infinite for failures), and the
    /// end of the last one.
    fn served(
        &mut self,
        kind: Kind,
        per_s: f64,
        rate: Rate,
        seconds: f64,
    ) -> (Vec<(f64, f64)>, f64) {
        let servers = if let Kind::Exponential(servers) = kind {
            servers
        } else {
            1
        };
        let most = if let Kind::Shedding(most) = kind {
            most
        } else {
            usize::MAX
        };
        let (mut free, mut ends) = (vec![0.0_f64; servers], std::collections::VecDeque::new());
        let (mut now, mut last, mut all) = (0.0_f64, 0.0_f64, Vec::new());
        let highest = rate.at(0.0).max(rate.at(seconds));
        loop {
            now += self.exponential() / highest;
            if now >= seconds {
                return (all, last);
            }
            // Thinned if the rate changes.
            if self.arriving.random::<f64>() >= rate.at(now) / highest {
                continue;
            }
            while ends.front().is_some_and(|end| *end <= now) {
                ends.pop_front();
            }
            if ends.len() >= most {
                all.push((now, f64::INFINITY));
                continue;
            }
            let first = (0..servers)
                .min_by(|one, other| free[*one].total_cmp(&free[*other]))
                .unwrap_or(0);
            let service = self.service_s(kind, per_s);
            free[first] = free[first].max(now) + service;
            ends.push_back(free[first]);
            last = last.max(free[first]);
            all.push((now, free[first] - now));
        }
    }

    fn open(
        &mut self,
        slice: &mut Slice,
        queue: Queue,
        per_s: f64,
        rate: Rate,
        seconds: f64,
    ) -> f64 {
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
                done.get_mut(((at + took) * 10.0) as usize)
                    .into_iter()
                    .for_each(|count| *count += 1);
            }
        }
        let (intended, timed_out) = (all.len() as u64, response.censored());
        let counts = &mut slice.counts;
        (counts.sent, counts.responses) = (intended, intended - timed_out);
        (counts.successful, counts.timed_out) = (intended - timed_out - shed, timed_out);
        counts.successful_in_window = done.iter().map(|count| u64::from(*count)).sum();
        counts.successful_per_100_ms = done;
        counts.drain_ns = ((last - seconds).clamp(0.0, TIMEOUT_S) * 1e9) as u64;
        counts.status = [(200, counts.successful), (503, shed)]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
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
        slice
            .services
            .iter_mut()
            .for_each(|service| service.cpu_ns = (intended as f64 / per_s * 1e9) as u64);
        (last - seconds).clamp(0.0, TIMEOUT_S)
    }
}

/// A plan for the capacity of this number of variants with p99 < 50 ms.
pub fn capacity_plan(variants: usize, budget_s: u64) -> Plan {
    let mut plan = super::plan(variants);
    plan.design.metric = Metric::Capacity;
    plan.design.slo = vec![plan::limit("p99 < 50ms").expect("a limit")];
    assert_eq!(plan.design.slo[0].figure, LimitFigure::Metric(Metric::P99));
    plan.design.budget = Duration::from_secs(budget_s);
    if variants == 1 {
        (plan.factors, plan.comparisons) = (Vec::new(), Vec::new());
    }
    plan
}
