//! One load for several generators: what each of them does, and one slice made of theirs. Exact both ways.
//!
//! ```text
//! connections  0 1 2 3 4 5 6       connection c belongs to generator c mod generators
//! generator    0 1 2 0 1 2 0
//! lanes        0 1 | 2 3 | 4 5     each generator has so many lanes side by side, a thread each; arrivals are dealt to lanes
//! ```
//! It must not know where generators run, or how one talks to them.

use crate::generator::dealt;
use crate::tally::{add_buckets, add_contents, add_driver, add_errors, add_failures};
use crate::{Endpoint, Lanes, LoadSpec, Outcome, Slice};

impl LoadSpec {
    /// The specs of so many generators that do together what this one says, each with `threads` threads of its own, or fewer where it
    /// gets fewer connections. Never more generators than connections: the list is shorter then.
    ///
    /// What is due in open loop, and when, is the same whether one machine has all lanes or each has some. In closed loop each
    /// generator draws the requests of its own lanes.
    pub fn divided(&self, generators: u32, threads: u32) -> Vec<LoadSpec> {
        self.divided_among(generators, |_, _| threads)
    }

    /// The same where generators have threads of different number: as `threads` says of each, by its place and its connections.
    pub fn divided_among(&self, generators: u32, threads: impl Fn(u32, u32) -> u32) -> Vec<LoadSpec> {
        let generators = generators.clamp(1, self.connections.max(1));
        let connections = |index: u32| dealt(self.connections.into(), generators.into(), index.into()) as u32;
        let threads = |index: u32| threads(index, connections(index)).clamp(1, connections(index).max(1));
        let of = (0..generators).map(threads).sum();
        let mut first = 0;
        let part = |index| {
            let lanes = Some(Lanes { first, of });
            first += threads(index);
            LoadSpec { connections: connections(index), threads: threads(index), lanes, ..self.clone() }
        };
        (0..generators).map(part).collect()
    }
}

impl Slice {
    /// Takes in what another generator did in the same window. Counts, histograms and buckets are those of one generator that did both.
    ///
    /// The window is the longer one of the two, and its begin the earlier: how far generators began apart is for the caller to judge,
    /// who knows their clocks. Their times are as they tell them, so that a caller corrects them before.
    pub fn absorb(&mut self, other: Slice) {
        self.started_ns =
            if self.window_ns == 0 { other.started_ns } else { self.started_ns.min(other.started_ns) };
        self.window_ns = self.window_ns.max(other.window_ns);
        self.drain_ns = self.drain_ns.max(other.drain_ns);
        self.add_counts(&other);
        self.tls_error = self.tls_error.take().or(other.tls_error);
        for (status, count) in other.status {
            *self.status.entry(status).or_default() += count;
        }
        add_driver(&mut self.driver, &other.driver);
        add_buckets(&mut self.buckets, &other.buckets);
        add_errors(&mut self.errors, &other.errors);
        self.errors.sort();
        add_failures(&mut self.contract_failures, other.contract_failures);
        let times = [
            (&mut self.response, &other.response),
            (&mut self.latency, &other.latency),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.schedule_lag, &other.schedule_lag),
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
        ];
        times.into_iter().for_each(|(sum, more)| sum.merge(more));
        for endpoint in other.endpoints {
            match self.endpoints.iter_mut().find(|known| known.name == endpoint.name) {
                Some(known) => known.absorb(endpoint),
                None => self.endpoints.push(endpoint),
            }
        }
        self.thread_cpu_ns.extend(other.thread_cpu_ns);
        self.thread_wall_ns.extend(other.thread_wall_ns);
        self.thread_run_delay_ns.extend(other.thread_run_delay_ns);
    }

    fn add_counts(&mut self, other: &Slice) {
        let counts = [
            (&mut self.intended, other.intended),
            (&mut self.sent, other.sent),
            (&mut self.sent_in_window, other.sent_in_window),
            (&mut self.unsent, other.unsent),
            (&mut self.queued, other.queued),
            (&mut self.answered, other.answered),
            (&mut self.answered_in_window, other.answered_in_window),
            (&mut self.ok, other.ok),
            (&mut self.ok_in_window, other.ok_in_window),
            (&mut self.timed_out, other.timed_out),
            (&mut self.broken, other.broken),
            (&mut self.unfinished, other.unfinished),
            (&mut self.bytes_wire, other.bytes_wire),
            (&mut self.bytes_body, other.bytes_body),
            (&mut self.resumed, other.resumed),
            (&mut self.opened, other.opened),
            (&mut self.reconnects, other.reconnects),
        ];
        counts.into_iter().for_each(|(sum, more)| *sum += more);
        self.connections_alive_start += other.connections_alive_start;
        self.connections_alive_end += other.connections_alive_end;
    }

    /// Packs its histograms, for a slice that is only read or sent from now on.
    pub fn pack(&mut self) {
        let times = [
            &mut self.response,
            &mut self.latency,
            &mut self.first_byte,
            &mut self.schedule_lag,
            &mut self.connect,
            &mut self.handshake,
        ];
        times.into_iter().for_each(stats::Latencies::pack);
        for outcome in self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.outcomes) {
            outcome.latency.pack();
            outcome.response.pack();
        }
    }
}

impl Endpoint {
    fn absorb(&mut self, other: Endpoint) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.ok_in_window += other.ok_in_window;
        self.bytes_body += other.bytes_body;
        for outcome in other.outcomes {
            match self.outcomes.iter_mut().find(|known| known.status == outcome.status) {
                Some(known) => known.absorb(&outcome),
                None => self.outcomes.push(outcome),
            }
        }
        // As one generator has them: status codes in order, then what was not complete.
        self.outcomes.sort_by_key(|outcome| (outcome.status.is_none(), outcome.status));
        add_contents(&mut self.contents, &other.contents);
    }
}

impl Outcome {
    fn absorb(&mut self, other: &Outcome) {
        self.latency.merge(&other.latency);
        self.response.merge(&other.response);
    }
}

#[cfg(test)]
mod tests;
