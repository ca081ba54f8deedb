//! Merges the counts of several threads, generators or turns.

use stats::Latencies;

use super::{Counts, EndpointCounts, OpenLoop, Windows, add, merge_each};
use crate::{ContractFailure, ErrorCount, silence};

impl Counts {
    /// Merges the counts of another window.
    pub fn merge(&mut self, mut other: Counts, windows: Windows) {
        match windows {
            Windows::Parallel => self.merge_parallel(&other),
            Windows::Sequential => self.merge_sequential(&other),
        }
        self.totals()
            .into_iter()
            .zip(other.totals())
            .for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        self.times()
            .into_iter()
            .zip(other.times())
            .for_each(|(sum, more)| sum.merge(more));
        self.generator
            .merge(std::mem::take(&mut other.generator), windows);
        merge_open(&mut self.open, other.open.take(), windows);
        self.merge_lists(other);
    }

    /// The counts that are summed for parallel and sequential windows alike.
    fn totals(&mut self) -> [&mut u64; 17] {
        [
            &mut self.sent,
            &mut self.responses,
            &mut self.responses_in_window,
            &mut self.successful,
            &mut self.successful_in_window,
            &mut self.in_flight_ns,
            &mut self.first_successful,
            &mut self.first_in_flight_ns,
            &mut self.timed_out,
            &mut self.broken,
            &mut self.unfinished,
            &mut self.wire_bytes,
            &mut self.body_bytes,
            &mut self.connections_opened,
            &mut self.reconnects,
            &mut self.log_ins,
            &mut self.tls_resumed,
        ]
    }

    pub(super) fn times(&mut self) -> [&mut Latencies; 4] {
        [
            &mut self.latency,
            &mut self.first_byte,
            &mut self.connect,
            &mut self.handshake,
        ]
    }

    /// Bytes in memory of all histograms read from a record.
    pub fn histogram_bytes(&self) -> usize {
        let times = [
            &self.latency,
            &self.first_byte,
            &self.connect,
            &self.handshake,
        ];
        let open = self
            .open
            .iter()
            .flat_map(|open| [&open.response, &open.schedule_lag]);
        let parts = self.open.iter().flat_map(|open| &open.ramp_parts);
        let open = open.chain(parts.map(|part| &part.response));
        let outcomes = self
            .endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.outcomes);
        let endpoints = outcomes.flat_map(|outcome| [&outcome.response, &outcome.latency]);
        let all = times.into_iter().chain(open).chain(endpoints);
        all.map(Latencies::packed_bytes).sum()
    }

    /// Merges the fields that depend on `windows`, for parallel windows.
    fn merge_parallel(&mut self, other: &Counts) {
        self.silent = silence::in_parallel(&self.silent, &other.silent);
        self.started_ns = self.started_ns.min(other.started_ns);
        self.window_ns = self.window_ns.max(other.window_ns);
        self.drain_ns = self.drain_ns.max(other.drain_ns);
        self.halted_ns = self.halted_ns.max(other.halted_ns);
        add(
            &mut self.successful_per_100_ms,
            &other.successful_per_100_ms,
        );
        self.connections_alive_at_start = self
            .connections_alive_at_start
            .saturating_add(other.connections_alive_at_start);
        self.connections_alive = self
            .connections_alive
            .saturating_add(other.connections_alive);
    }

    /// Merges the fields that depend on `windows`, for the next window of the same threads.
    fn merge_sequential(&mut self, other: &Counts) {
        let before_ns = self.wall_ns();
        self.settle_silences();
        self.silent.extend(
            other
                .silences()
                .into_iter()
                .map(|silence| silence.later(before_ns)),
        );
        self.window_ns = self.window_ns.saturating_add(other.window_ns);
        self.drain_ns = self.drain_ns.saturating_add(other.drain_ns);
        self.halted_ns = self.halted_ns.saturating_add(other.halted_ns);
        self.successful_per_100_ms.clear();
        self.connections_alive = other.connections_alive;
    }

    /// Merges the fields that are neither totals nor times and do not depend on `windows`.
    ///
    /// The pattern names every field, so that a new field does not compile until it is handled here. Unbound
    /// fields are merged in other functions. The test `every_field_is_merged` checks that.
    fn merge_lists(&mut self, other: Counts) {
        let Counts {
            // Merged in `merge_parallel` and `merge_sequential`.
            started_ns: _,
            window_ns: _,
            drain_ns: _,
            halted_ns: _,
            silent: _,
            successful_per_100_ms: _,
            connections_alive_at_start: _,
            connections_alive: _,
            // Merged in `totals`.
            sent: _,
            responses: _,
            responses_in_window: _,
            successful: _,
            successful_in_window: _,
            in_flight_ns: _,
            first_successful: _,
            first_in_flight_ns: _,
            timed_out: _,
            broken: _,
            unfinished: _,
            wire_bytes: _,
            body_bytes: _,
            connections_opened: _,
            reconnects: _,
            log_ins: _,
            tls_resumed: _,
            // Merged in `times`.
            latency: _,
            first_byte: _,
            connect: _,
            handshake: _,
            // Merged in `merge` itself.
            generator: _,
            open: _,
            status,
            errors,
            contract_failures,
            sampled,
            unknown_coding,
            tls_error,
            endpoints,
        } = other;
        for (status, count) in status {
            let sum = self.status.entry(status).or_default();
            *sum = sum.saturating_add(count);
        }
        merge_errors(&mut self.errors, errors);
        merge_contract_failures(&mut self.contract_failures, contract_failures);
        let same_name = |known: &EndpointCounts, more: &EndpointCounts| known.name == more.name;
        merge_each(
            &mut self.endpoints,
            endpoints,
            same_name,
            EndpointCounts::merge,
        );
        self.sampled.merge(sampled);
        self.unknown_coding = self.unknown_coding.take().or(unknown_coding);
        self.tls_error = self.tls_error.take().or(tls_error);
    }
}

fn merge_errors(sum: &mut Vec<ErrorCount>, more: Vec<ErrorCount>) {
    let same_error = |known: &ErrorCount, more: &ErrorCount| {
        (known.phase, known.cause) == (more.phase, more.cause)
    };
    merge_each(
        sum,
        more,
        same_error,
        |known,
         ErrorCount {
             phase: _,
             cause: _,
             count,
         }| { known.count = known.count.saturating_add(count) },
    );
    sum.sort();
}

fn merge_contract_failures(sum: &mut Vec<ContractFailure>, more: Vec<ContractFailure>) {
    let same_kind = |known: &ContractFailure, more: &ContractFailure| known.kind == more.kind;
    // One example is enough.
    merge_each(
        sum,
        more,
        same_kind,
        |known,
         ContractFailure {
             kind: _,
             count,
             example: _,
         }| {
            known.count = known.count.saturating_add(count);
        },
    );
}

fn merge_open(sum: &mut Option<Box<OpenLoop>>, more: Option<Box<OpenLoop>>, windows: Windows) {
    match (&mut *sum, more) {
        (Some(sum), Some(more)) => sum.merge(*more, windows),
        (none, more) => *none = none.take().or(more),
    }
    if windows == Windows::Sequential {
        for open in sum.iter_mut() {
            open.due_per_100_ms.clear();
            open.ramp_parts.clear();
        }
    }
}
