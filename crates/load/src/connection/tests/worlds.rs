//! HTTP/2, with and without TLS, under a simulated driver and servers that misbehave as their seed dictates.
//! The server's actions determine what may be counted. The tests check that only complete responses and
//! justified causes are counted, that nothing is lost, that every slice ends, and that memory stays within
//! the windows. HTTP/1.1 has a stricter simulation in `worker`.
//!
//! To run one seed alone:
//! `PROOFLOAD_SEED=17 cargo test -p proofload-load --lib whatever_a_server_of_streams_does`.

mod peer;

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use model::{Cause, Counts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustls::{ServerConfig, ServerConnection};

use super::tls::{Server, client};
use crate::arena::RequestSampler;
use crate::pacer::{Pacer, SharedPace};
use crate::settings::WorkerSettings;
use crate::trust::TlsSettings;
use crate::worker::simulation::{Sum, add, assert_all_happen, run_seeds, settings, summed};
use crate::worker::{Action, Worker};
use crate::{ArrivalProcess, Protocol, Rate, RequestSpec, Until};
use peer::{Deeds, Ending, Nature, Peer};

const SEEDS: u64 = 600;
const SLICES: usize = 2;
const TIMEOUT_NS: u64 = 300_000_000;
const TICK_NS: u64 = 10_000_000;
const LAG_MAX_NS: u64 = 15_000_000;
/// A slice with more steps than this does not terminate.
const STEPS_MAX: u32 = 400_000;
/// The window of a connection, plus TLS records, heads and acknowledgements.
const OUTPUT_MAX: usize = 256 << 10;

#[derive(Debug)]
enum Event {
    Connected,
    Writable,
    /// The server sends the next piece, or one arrives.
    Moves,
}

/// The other end of a connection, including the network in front of it.
#[derive(Default)]
struct End {
    /// Counts sockets. Events for an earlier socket are ignored.
    socket: u64,
    tls: Option<ServerConnection>,
    peer: Peer,
    /// Bytes on their way to the engine, and the number that have arrived.
    wire: Vec<u8>,
    arrived: usize,
    /// Offsets at which responses end, and whether each is good.
    ends: VecDeque<(usize, bool)>,
    is_connected: bool,
    is_blocked: bool,
    is_moving: bool,
}

struct World {
    rng: Pcg64Mcg,
    now_ns: u64,
    worker: Worker,
    server: Option<Arc<ServerConfig>>,
    nature: Nature,
    deeds: Deeds,
    /// Complete responses that arrived in this slice, and the good ones among them.
    whole: (u64, u64),
    ends: Vec<End>,
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    numbers: u64,
}

impl End {
    fn new(
        socket: u64,
        server: Option<&Arc<ServerConfig>>,
        nature: Nature,
        deeds: &mut Deeds,
    ) -> End {
        let tls = server.map(|config| {
            let mut tls = ServerConnection::new(config.clone()).unwrap();
            tls.set_buffer_limit(None);
            tls
        });
        End {
            socket,
            tls,
            peer: Peer::new(nature, deeds),
            ..End::default()
        }
    }

    /// Handles bytes that the engine has written.
    fn take(&mut self, mut bytes: &[u8], deeds: &mut Deeds) {
        let Some(tls) = &mut self.tls else {
            return self.peer.hear(bytes, deeds);
        };
        let mut plain = Vec::new();
        while !bytes.is_empty() {
            // This fails if the engine has reported an unrecoverable error.
            if tls.read_tls(&mut bytes).is_err() || tls.process_new_packets().is_err() {
                self.peer.is_mute = true;
                break;
            }
            let _ = tls.reader().read_to_end(&mut plain);
        }
        self.peer.hear(&plain, deeds);
    }

    /// Moves pending output to the wire.
    fn flow(&mut self) {
        for (bytes, end) in self.peer.out.drain(..) {
            match &mut self.tls {
                Some(tls) => tls.writer().write_all(&bytes).unwrap(),
                None => self.wire.extend(bytes),
            }
            self.tls
                .iter_mut()
                .for_each(|tls| records(tls, &mut self.wire));
            self.ends
                .extend(end.map(|is_good| (self.arrived + self.wire.len(), is_good)));
        }
        if let Some(tls) = &mut self.tls {
            if self.peer.ending == Some(Ending::Closes) {
                tls.send_close_notify();
            }
            records(tls, &mut self.wire);
        }
    }
}

fn records(tls: &mut ServerConnection, wire: &mut Vec<u8>) {
    while tls.wants_write() {
        tls.write_tls(wire).unwrap();
    }
}

/// TLS settings of both sides.
static SECURE: LazyLock<(TlsSettings, Arc<ServerConfig>)> = LazyLock::new(|| {
    (
        client(Protocol::Http2 { streams: 1 }),
        Server::config(&rustls::version::TLS13, b"h2"),
    )
});

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let fresh = rng.random_bool(0.2);
        let lanes = if fresh {
            1
        } else {
            [1, 3, 10][rng.random_range(0..3)]
        };
        let secure = rng.random_bool(0.5).then(|| SECURE.clone());
        let body = [0, 0, 300, 100_000][rng.random_range(0..4)];
        let method = if body > 0 { "POST" } else { "GET" };
        let request = RequestSpec {
            body: vec![b'y'; body],
            ..RequestSpec::new(method, "/", "proofload.test")
        };
        let settings = WorkerSettings {
            tls: secure.as_ref().map(|(client, _)| client.clone()),
            fresh,
            sample_every: [0, 1, 3][rng.random_range(0..3)],
            ..settings(&[request], Protocol::Http2 { streams: lanes })
        };
        let sampler = RequestSampler::new(settings.arena.clone(), seed, 0);
        let nature = Nature {
            lanes: lanes as usize,
            trouble: [0.0, 0.02, 0.1, 0.4][rng.random_range(0..4)],
            streams: [None, None, Some(0), Some(1), Some(100)][rng.random_range(0..5)],
            narrow: rng.random_bool(0.1),
            starving: rng.random_bool(0.1),
        };
        let mut deeds = Deeds::default();
        if body > 0 && (nature.narrow || nature.starving) {
            deeds.allow(&[Cause::Timeout, Cause::Abandoned], u64::MAX);
        }
        let rate = Rate::Constant(10f64.powf(rng.random_range(1.0..3.0)));
        let pace = SharedPace {
            rate,
            process: ArrivalProcess::Poisson,
            seed,
        };
        let pacer = rng.random_bool(0.4).then(|| Pacer::new(pace, 0, 1));
        let connections = rng.random_range(1..=4);
        let server = secure.map(|(_, server)| server);
        let ends = (0..connections)
            .map(|_| End::new(0, server.as_ref(), nature, &mut Deeds::default()))
            .collect();
        let worker = Worker::new(settings, sampler, pacer, connections);
        let (events, now_ns) = (BTreeMap::new(), 1_000_000_000);
        World {
            rng,
            now_ns,
            worker,
            server,
            nature,
            deeds,
            whole: (0, 0),
            ends,
            events,
            numbers: 0,
        }
    }

    fn after(&mut self, limit_ns: u64, index: usize, event: Event) {
        self.numbers += 1;
        let at_ns = self.now_ns + self.rng.random_range(0..limit_ns);
        self.events.insert(
            (at_ns, self.numbers),
            (index, self.ends[index].socket, event),
        );
    }

    /// Performs the worker's action as a driver does.
    fn perform(&mut self, index: usize, mut act: Action) {
        loop {
            act = match act {
                Action::Wait => break,
                Action::Free => self.worker.start(index, self.now_ns),
                Action::Send => self.write(index),
                Action::Close => {
                    self.close(index);
                    break;
                }
                Action::Reopen => {
                    self.close(index);
                    self.worker.connecting(index, self.now_ns);
                    // Sometimes no process accepts the connection.
                    match self.rng.random_bool(self.nature.trouble / 4.0) {
                        true => self.deeds.allow(&[Cause::Timeout], u64::MAX),
                        false => self.after(3_000_000, index, Event::Connected),
                    }
                    Action::Wait
                }
            }
        }
        self.serve(index);
    }

    fn close(&mut self, index: usize) {
        let socket = self.ends[index].socket + 1;
        self.ends[index] = End::new(socket, self.server.as_ref(), self.nature, &mut self.deeds);
    }

    fn write(&mut self, index: usize) -> Action {
        while let Some(bytes) = self
            .worker
            .output(index)
            .filter(|_| !self.ends[index].is_blocked)
        {
            assert!(
                bytes.len() <= OUTPUT_MAX,
                "{} bytes wait to be written",
                bytes.len()
            );
            let is_full = self.rng.random_bool(0.05);
            let count = if is_full {
                self.rng.random_range(0..=bytes.len())
            } else {
                bytes.len()
            };
            self.ends[index].take(&bytes[..count], &mut self.deeds);
            self.worker.wrote(index, count);
            if is_full {
                self.ends[index].is_blocked = true;
                self.after(3_000_000, index, Event::Writable);
            }
        }
        Action::Wait
    }

    /// Lets server and network act on an open connection.
    fn serve(&mut self, index: usize) {
        let end = &mut self.ends[index];
        if !end.is_connected {
            return;
        }
        end.flow();
        let moves = end.peer.has_more_to_say() || !end.wire.is_empty() || end.peer.ending.is_some();
        if moves && !std::mem::replace(&mut end.is_moving, true) {
            self.after(1_500_000, index, Event::Moves);
        }
    }

    fn happen(&mut self, index: usize, event: Event) {
        let end = &mut self.ends[index];
        let act = match event {
            Event::Connected => {
                end.is_connected = true;
                self.worker.opened(index, self.now_ns)
            }
            Event::Writable => {
                end.is_blocked = false;
                if self.worker.output(index).is_some() {
                    Action::Send
                } else {
                    Action::Wait
                }
            }
            Event::Moves => {
                end.is_moving = false;
                if end.peer.has_more_to_say() && self.rng.random_bool(0.5) {
                    end.peer.speak(&mut self.rng, &mut self.deeds);
                    Action::Wait
                } else {
                    self.arrive(index)
                }
            }
        };
        self.perform(index, act);
    }

    /// Delivers the next piece or the end.
    fn arrive(&mut self, index: usize) -> Action {
        let end = &mut self.ends[index];
        let count = match end.wire.len() {
            0 => match end.peer.ending.take() {
                Some(Ending::Resets) => {
                    return self.worker.failed(index, self.now_ns, Cause::Reset);
                }
                Some(_) => return self.worker.ended(index, self.now_ns),
                None => return Action::Wait,
            },
            many if self.rng.random_bool(0.5) => many,
            many if self.rng.random_bool(0.5) => self.rng.random_range(1..=many.min(40)),
            many => self.rng.random_range(1..=many),
        };
        let mut piece: Vec<u8> = end.wire.drain(..count).collect();
        if end.tls.is_some() && self.rng.random_bool(self.nature.trouble / 20.0) {
            let at = self.rng.random_range(0..count);
            piece[at] ^= 0x20;
            // The changed byte may belong to the length of a record, whose end the engine then waits for.
            let causes = [
                Cause::Tls,
                Cause::Certificate,
                Cause::Timeout,
                Cause::Abandoned,
            ];
            self.deeds.allow(&causes, u64::MAX);
            end.peer.is_mute = true;
        }
        end.arrived += count;
        while let Some(&(at, is_good)) = end.ends.front()
            && at <= end.arrived
        {
            end.ends.pop_front();
            self.whole = (self.whole.0 + 1, self.whole.1 + u64::from(is_good));
        }
        self.worker.received(index, self.now_ns, &mut piece)
    }

    fn sweep(&mut self) {
        let mut from = 0;
        while let Some((index, act)) = self.worker.overdue(from, self.now_ns) {
            from = index + 1;
            self.perform(index, act);
        }
    }

    /// Advances time until `is_over` returns true.
    fn pump(&mut self, is_over: impl Fn(&Worker, u64) -> bool) {
        let mut next_tick_ns = self.now_ns;
        for step in 0.. {
            assert!(step < STEPS_MAX, "it goes on and on");
            if self.now_ns >= next_tick_ns {
                next_tick_ns = self.now_ns + TICK_NS;
                self.sweep();
            }
            if is_over(&self.worker, self.now_ns) {
                return;
            }
            while let Some((index, act)) = self.worker.start_next(self.now_ns) {
                self.perform(index, act);
            }
            let lag_ns = if self.rng.random_bool(0.02) {
                self.rng.random_range(0..LAG_MAX_NS)
            } else {
                0
            };
            let limit_ns = self.worker.wake_ns().min(next_tick_ns).max(self.now_ns);
            match self.events.first_entry() {
                Some(entry) if entry.key().0 <= limit_ns => {
                    let ((at_ns, _), (index, socket, event)) = entry.remove_entry();
                    self.now_ns = self.now_ns.max(at_ns) + lag_ns;
                    if socket == self.ends[index].socket {
                        self.happen(index, event);
                    }
                }
                _ => self.now_ns = limit_ns + lag_ns,
            }
        }
    }

    fn slice(&mut self) -> Counts {
        let until = match self.rng.random_bool(0.5) {
            true => Until::Requests(self.rng.random_range(1..60)),
            false => Until::Elapsed(Duration::from_millis(self.rng.random_range(0..150))),
        };
        let allowance = if let Until::Requests(total) = until {
            Some(total)
        } else {
            None
        };
        self.worker.prepare(self.now_ns, allowance);
        self.pump(Worker::is_prepared);
        self.worker.open_window(self.now_ns, until);
        (0..self.ends.len()).for_each(|index| self.perform(index, Action::Free));
        self.pump(Worker::is_window_over);
        let stopped_ns = self.worker.stop_sending(self.now_ns, TIMEOUT_NS);
        self.pump(Worker::is_drained);
        assert!(self.now_ns - stopped_ns <= TIMEOUT_NS + TICK_NS + 2 * LAG_MAX_NS);
        let mut closed = Vec::new();
        let slice = self.worker.finish(self.now_ns, |index| closed.push(index));
        closed.into_iter().for_each(|index| self.close(index));
        slice
    }

    /// Asserts the invariants of every slice, and returns the number of failures.
    fn check(&self, slice: &Counts) {
        let lost = slice.timed_out + slice.broken + slice.unfinished;
        assert_eq!(slice.sent, slice.responses + lost);
        assert_eq!(
            (slice.latency.count(), slice.latency.censored()),
            (slice.sent, lost)
        );
        assert_eq!(
            (slice.first_byte.count(), self.worker.in_flight),
            (slice.sent, 0)
        );
        if let Some(open) = &slice.open {
            assert_eq!(
                (open.intended, open.response.count()),
                (slice.sent + open.unsent, open.intended)
            );
        }
        let (whole, good) = self.whole;
        assert!(
            slice.responses <= whole,
            "{} responses, {whole} whole ones arrived",
            slice.responses
        );
        assert!(
            slice.successful <= good,
            "{} successful, {good} good ones arrived",
            slice.successful
        );
        assert!(
            whole - slice.responses <= lost,
            "{whole} whole ones arrived: {slice:?}"
        );
    }
}

fn run(seed: u64) -> Sum {
    let mut world = World::new(seed);
    let (mut sum, mut caused) = (Sum::new(), BTreeMap::<Cause, u64>::new());
    let mut sent = 0;
    for _ in 0..SLICES {
        world.whole = (0, 0);
        let slice = world.slice();
        world.check(&slice);
        sent += slice.sent;
        slice
            .errors
            .iter()
            .for_each(|error| *caused.entry(error.cause).or_default() += error.count);
        let (handshakes, resumed) = (slice.handshake.count(), slice.tls_resumed);
        let figures = [
            ("responses", slice.responses),
            ("handshakes", handshakes),
            ("resumed", resumed),
        ];
        sum = add(sum, summed(&slice, figures));
    }
    for (cause, count) in caused {
        let may = world.deeds.may.get(&cause).copied().unwrap_or_default();
        assert!(
            count <= may,
            "{count} x {cause}, for which there was reason {may} times: {sum:?}"
        );
    }
    assert!(
        world.deeds.seen <= sent,
        "{} requests came, {sent} were sent",
        world.deeds.seen
    );
    sum
}

#[test]
fn every_request_ends_once_whatever_a_server_of_streams_does() {
    let Some(sum) = run_seeds("whatever_a_server_of_streams_does", SEEDS, run) else {
        return;
    };
    assert!(
        sum["responses"] > 10_000 && sum["handshakes"] > 1000 && sum["resumed"] > 1000,
        "{sum:?}"
    );
    const WITHIN: [&str; 7] = [
        "closed-early",
        "reset",
        "tls",
        "malformed",
        "stream-reset",
        "stream-refused",
        "timeout",
    ];
    let happens: [(&str, &[&str]); 7] = [
        ("connect", &["timeout"]),
        ("tls", &["tls"]),
        ("send", &["closed-early", "reset", "tls", "timeout"]),
        ("head", &WITHIN),
        ("head", &["abandoned"]),
        ("body", &WITHIN),
        ("idle", &["closed"]),
    ];
    assert_all_happen(&sum, 10, &happens);
}
