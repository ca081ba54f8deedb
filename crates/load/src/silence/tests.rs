//! Periods computed by hand: how long a service was silent, and cases that are only slow.

use super::*;

const MS: u64 = 1_000_000;
const STARTED_NS: u64 = 77;

/// Requests of endpoints with their latencies, and silences of the window in milliseconds.
struct Thread {
    watch: SilenceWatch,
    latencies: Vec<Latencies>,
    in_flight: Vec<(u16, u64)>,
}

impl Thread {
    fn new(endpoints: usize) -> Thread {
        let mut watch = SilenceWatch::new(endpoints);
        watch.open_window(STARTED_NS);
        Thread {
            watch,
            latencies: vec![Latencies::new(); endpoints],
            in_flight: Vec::new(),
        }
    }

    fn begin(&mut self, endpoint: u16, at_ms: u64) {
        self.watch.begin(endpoint, STARTED_NS + at_ms * MS);
        self.in_flight.push((endpoint, at_ms));
    }

    /// Completes the oldest request and begins the next one.
    fn respond(&mut self, at_ms: u64, next: Option<u16>) {
        let (endpoint, sent_ms) = self.in_flight.remove(0);
        self.latencies[usize::from(endpoint)].record((at_ms - sent_ms) * MS);
        self.watch.response(
            endpoint,
            STARTED_NS + at_ms * MS,
            self.in_flight.len() as u32,
        );
        next.into_iter()
            .for_each(|endpoint| self.begin(endpoint, at_ms));
    }

    fn lose(&mut self, at_ms: u64) {
        let (endpoint, sent_ms) = self.in_flight.remove(0);
        self.latencies[usize::from(endpoint)].censor((at_ms - sent_ms) * MS);
        self.watch.lose(endpoint);
    }

    fn silent_ms(self, end_ms: u64) -> Vec<(u64, u64)> {
        self.silent_after(end_ms, &mut [None, None])
    }

    fn silent_after(self, end_ms: u64, usual_ns: &mut [Option<u64>]) -> Vec<(u64, u64)> {
        let known: Vec<_> = self
            .latencies
            .iter()
            .map(|of| Some(of).filter(|of| !of.is_empty()))
            .collect();
        let silent = self
            .watch
            .finish(STARTED_NS + end_ms * MS, &known, usual_ns);
        let counts = model::Counts {
            silent,
            ..model::Counts::default()
        };
        counts
            .silences()
            .iter()
            .map(|silence| (silence.from_ns / MS, silence.to_ns / MS))
            .collect()
    }

    /// Four connections that get responses at once, from one time to another.
    fn works(&mut self, from_ms: u64, to_ms: u64) {
        (0..4 - self.in_flight.len()).for_each(|_| self.begin(0, from_ms));
        (from_ms + 1..=to_ms).for_each(|at_ms| self.respond(at_ms, Some(0)));
    }
}

#[test]
fn a_frozen_service_is_silent_for_as_long() {
    let mut thread = Thread::new(1);
    thread.works(0, 2500);
    thread.works(7500, 10_000);
    assert_eq!(thread.silent_ms(10_000), [(2500, 7501)]);
}

#[test]
fn a_service_that_never_comes_back_is_silent_to_the_end() {
    let mut thread = Thread::new(1);
    thread.works(0, 3000);
    (0..4).for_each(|_| thread.lose(13_000));
    assert_eq!(thread.silent_ms(13_000), [(3000, 13_000)]);
}

#[test]
fn a_service_that_begins_late_is_silent_before() {
    let mut thread = Thread::new(1);
    (0..4).for_each(|_| thread.begin(0, 0));
    thread.works(7000, 9000);
    assert_eq!(thread.silent_ms(9000), [(0, 7001)]);
}

#[test]
fn slow_responses_are_no_silence() {
    for connections in [1, 4] {
        let mut thread = Thread::new(1);
        (0..connections).for_each(|_| thread.begin(0, 0));
        for second in 1..=10 {
            (0..connections).for_each(|_| thread.respond(second * 1000, Some(0)));
        }
        (0..connections).for_each(|_| thread.respond(11_000, None));
        assert_eq!(thread.silent_ms(11_000), [], "{connections} connections");
    }
    // All requests take as long, so it is unknown whether that is unusual.
    let mut thread = Thread::new(1);
    (0..4).for_each(|_| thread.begin(0, 0));
    (0..4).for_each(|_| thread.respond(1500, None));
    assert_eq!(thread.silent_ms(1500), []);
}

#[test]
fn a_slow_endpoint_of_a_mix_is_no_silence() {
    let slow_at = |frozen: u64| {
        let mut thread = Thread::new(2);
        thread.begin(0, 0);
        let mut now_ms = 0;
        for number in 0..500u64 {
            let is_slow = thread.in_flight[0].0 == 1;
            now_ms += if is_slow { 1000 } else { 1 } + if number == 250 { frozen } else { 0 };
            thread.respond(now_ms, Some(u16::from(number % 100 == 99)));
        }
        thread.silent_ms(now_ms)
    };
    assert_eq!(slow_at(0), []);
    assert_eq!(slow_at(4000).len(), 1);
}

#[test]
fn thinking_is_no_silence() {
    let mut thread = Thread::new(1);
    for second in 0..10 {
        thread.begin(0, second * 1000 + 900);
        thread.respond(second * 1000 + 910, None);
    }
    thread.begin(0, 12_000);
    thread.respond(14_000, None);
    assert_eq!(thread.silent_ms(20_000), [(12_000, 14_000)]);
}

#[test]
fn time_in_which_the_thread_was_away_is_left_out() {
    let mut thread = Thread::new(1);
    thread.works(0, 1000);
    thread.watch.was_away(600 * MS);
    thread.works(1620, 2000);
    assert_eq!(thread.silent_ms(2000), []);
}

#[test]
fn a_turn_of_stuck_requests_is_held_against_earlier_turns() {
    let mut usual_ns = [None];
    let mut thread = Thread::new(1);
    thread.works(0, 20);
    assert_eq!(thread.silent_after(20, &mut usual_ns), []);
    let mut thread = Thread::new(1);
    (0..4).for_each(|_| thread.begin(0, 0));
    (0..4).for_each(|_| thread.respond(5000, None));
    assert_eq!(thread.silent_after(5000, &mut usual_ns), [(0, 5000)]);
}
