//! A server that stands still for two seconds, on a virtual clock: what the engine says of it against what follows from
//! the timetable. A tool that forgets the requests nobody could send would report a hundredth of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use model::Counts;
use stats::Latencies;

use crate::arena::{RequestArena, RequestSampler};
use crate::pacer::{Pace, Pacer};
use crate::worker::{Action, Settings, Worker};
use crate::{Contract, Process, Protocol, Rate, Request, Until, render};

const S: u64 = 1_000_000_000;
const RATE_PER_S: u64 = 1000;
const WINDOW_NS: u64 = 8 * S;
const STALL_FROM_NS: u64 = 3 * S;
const STALL_UNTIL_NS: u64 = 5 * S;
const SERVICE_NS: u64 = 2_000_000;
const STARTED_NS: u64 = 77;
const REQUEST_BYTES: usize = 100;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A GET of exactly so many bytes, over connections that are kept.
fn settings() -> (Settings, RequestSampler) {
    let headers = vec![("User-Agent".into(), "b".into())];
    let request = |path: String| Request { headers: headers.clone(), ..Request::new("GET", &path, "a") };
    let shortest = render::bytes(&request("/".into())).unwrap().len();
    let path = "/".to_string() + &"x".repeat(REQUEST_BYTES - shortest);
    let arena = Arc::new(RequestArena::render(&[request(path)]).unwrap());
    let settings = Settings {
        arena: arena.clone(),
        protocol: Protocol::Http1 { pipeline: 1 },
        tls: None,
        fresh: false,
        can_skip: true,
        timeout_ns: 5 * S,
        connect_timeout_ns: S,
        contracts: vec![Contract::default()],
        sample_every: 3,
    };
    (settings, RequestSampler::new(arena, 1, 0))
}

/// When a request that is sent then is done, both from the start of the window: the server does not work in the stall.
fn done_ns(sent_ns: u64) -> u64 {
    let done_ns = sent_ns + SERVICE_NS;
    match () {
        () if done_ns <= STALL_FROM_NS || sent_ns >= STALL_UNTIL_NS => done_ns,
        () if sent_ns < STALL_FROM_NS => done_ns + (STALL_UNTIL_NS - STALL_FROM_NS),
        () => STALL_UNTIL_NS + SERVICE_NS,
    }
}

/// The worker at work, with an engine that is never late.
fn measured(connections: u32, process: Process) -> Counts {
    let pace = Pace { rate: Rate::Constant(RATE_PER_S as f64), process, seed: 3 };
    let (settings, sampler) = settings();
    let mut worker = Worker::new(settings, sampler, Some(Pacer::new(pace, 0, 1)), connections);
    worker.prepare(0, None);
    for index in 0..connections as usize {
        worker.connecting(index, 0);
        assert_eq!(worker.opened(index, 0), Action::Free);
    }
    worker.open_window(STARTED_NS, Until::Elapsed(Duration::from_nanos(WINDOW_NS)));
    let (mut responses, mut now_ns) = (BinaryHeap::new(), STARTED_NS);
    while now_ns < STARTED_NS + WINDOW_NS {
        now_ns = turn(&mut worker, &mut responses, now_ns);
    }
    worker.stop_sending(now_ns, 5 * S);
    while !worker.is_drained(now_ns) {
        now_ns = turn(&mut worker, &mut responses, now_ns);
    }
    worker.finish(now_ns, |index| panic!("connection {index} is closed"))
}

/// Lets time pass to the next response or the next arrival for which a connection is free.
fn turn(worker: &mut Worker, responses: &mut BinaryHeap<Reverse<(u64, usize)>>, now_ns: u64) -> u64 {
    let mut sent = Vec::new();
    let answer_ns = responses.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
    let now_ns = answer_ns.min(worker.wake_ns()).max(now_ns);
    if now_ns == answer_ns {
        let Some(Reverse((_, index))) = responses.pop() else { unreachable!() };
        assert_eq!(worker.received(index, now_ns, RESPONSE), Action::Free);
        sent.extend((worker.start(index, now_ns) == Action::Send).then_some(index));
    }
    sent.extend(std::iter::from_fn(|| worker.start_next(now_ns)).map(|(index, _)| index));
    for index in sent {
        worker.wrote(index, REQUEST_BYTES);
        responses.push(Reverse((STARTED_NS + done_ns(now_ns - STARTED_NS), index)));
    }
    now_ns
}

/// The same by another way: arrivals in order, each to the connection that is free first. The response times in order, and how
/// many arrivals found no connection free.
fn expected(connections: u32, process: Process) -> (Vec<u64>, u64) {
    let pace = Pace { rate: Rate::Constant(RATE_PER_S as f64), process, seed: 3 };
    let mut pacer = Pacer::new(pace, 0, 1);
    pacer.restart();
    let mut free: BinaryHeap<_> = (0..connections).map(|_| Reverse(0)).collect();
    let (mut responses, mut queued) = (Vec::new(), 0);
    while pacer.due_ns() < WINDOW_NS {
        let due_ns = pacer.due_ns();
        pacer.advance();
        let Some(Reverse(free_ns)) = free.pop() else { unreachable!() };
        queued += u64::from(free_ns > due_ns);
        let done_ns = done_ns(free_ns.max(due_ns));
        free.push(Reverse(done_ns));
        responses.push(done_ns - due_ns);
    }
    responses.sort_unstable();
    (responses, queued)
}

fn assert_agrees(latencies: &Latencies, sorted: &[u64], case: &str) {
    assert_eq!(latencies.count(), sorted.len() as u64, "{case}");
    for q in [0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
        let exact = sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1] as f64;
        let quantile = latencies.quantile(q).unwrap();
        assert!(quantile.is_exact(), "{case}, q = {q}");
        // What the histogram rounds is all that may differ.
        let error = (quantile.ns() as f64 - exact).abs() / exact;
        assert!(error < 0.002, "{case}, q = {q}: {quantile:?}, in truth {exact}");
    }
}

#[test]
fn a_stall_is_reported_as_long_as_it_was_for_those_who_came() {
    for process in [Process::Constant, Process::Poisson] {
        for connections in [16, 2500] {
            let case = format!("{process:?}, {connections} connections");
            let counts = measured(connections, process);
            let (responses, queued) = expected(connections, process);
            let open = counts.open.as_deref().unwrap();
            assert_agrees(&open.response, &responses, &case);
            assert_eq!((open.queued, open.unsent), (queued, 0), "{case}");
            assert_eq!(counts.sent, responses.len() as u64, "{case}");
            assert!(open.schedule_lag.max().unwrap().ns() <= 1, "{case}: the engine was never late");
        }
    }
}

#[test]
fn the_stall_is_in_the_response_time_as_the_timetable_has_it_and_not_in_the_service_time() {
    // Who comes in the stall waits for its end: with enough connections that is all, and a closed form.
    let mut waits: Vec<u64> = (0..WINDOW_NS / S * RATE_PER_S)
        .map(|k| match k * S / RATE_PER_S {
            due if (STALL_FROM_NS..STALL_UNTIL_NS).contains(&due) => STALL_UNTIL_NS + SERVICE_NS - due,
            _ => SERVICE_NS,
        })
        .collect();
    // Two were being served when it began: one just now done, the other half way.
    waits[(STALL_FROM_NS / S * RATE_PER_S - 1) as usize] += STALL_UNTIL_NS - STALL_FROM_NS;
    waits.sort_unstable();
    assert_agrees(&measured(2500, Process::Constant).open.unwrap().response, &waits, "closed form");

    let Counts { latency, open, .. } = measured(16, Process::Constant);
    let response = open.unwrap().response;
    let p99 = |latencies: &Latencies| latencies.quantile(0.99).unwrap().ns();
    assert!(p99(&response) > 19 * S / 10, "{response:?}");
    assert!(p99(&latency) < 3_000_000, "only 16 requests saw it from inside: {latency:?}");
}
