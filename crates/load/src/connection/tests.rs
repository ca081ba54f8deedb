//! Connections with TLS and HTTP/2 against in-memory servers, including hostile ones. The recorded results
//! must not depend on how the bytes were split. No socket, no clock.

mod frames;
mod http2;
mod tls;
mod worlds;

use std::fmt::Write as _;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::arena::RequestSampler;
use crate::connection::Stage;
use crate::settings::WorkerSettings;
use crate::trust::TlsSettings;
use crate::worker::simulation::settings;
use crate::worker::{Action, Worker};
use crate::{Contract, Protocol, RequestSpec, Until};
use model::Counts;

const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 300 * MS;
const CONNECT_TIMEOUT_NS: u64 = 200 * MS;

/// How the bytes of the server are split.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    Whole,
    Bytes,
    Random(u64),
}

impl Cut {
    fn pieces(self, mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut random = Pcg64Mcg::seed_from_u64(if let Cut::Random(seed) = self {
            seed
        } else {
            0
        });
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let most = match self {
                Cut::Whole => bytes.len(),
                Cut::Bytes => 1,
                Cut::Random(_) => {
                    let limit = [3, 60, 20_000][random.random_range(0..3)];
                    random.random_range(1..=limit)
                }
            };
            let (piece, rest) = bytes.split_at(most.min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

/// Runs a case with every cut, and returns the tally, which must be the same for all.
#[track_caller]
fn for_all_cuts(case: impl Fn(Cut) -> String) -> String {
    let whole = case(Cut::Whole);
    let cuts = [Cut::Bytes].into_iter().chain((0..12).map(Cut::Random));
    cuts.for_each(|cut| assert_eq!(case(cut), whole, "{cut:?} and in one piece"));
    whole
}

/// One connection of a worker, whose other end is controlled by the test.
struct Bench {
    worker: Worker,
    cut: Cut,
    now_ns: u64,
    /// Number of bytes that the socket accepts before it is full.
    room: usize,
    said: Vec<u8>,
    has_socket: bool,
}

impl Bench {
    /// A connection, open at the TCP level, that will send `count` requests.
    fn new(
        request: &RequestSpec,
        protocol: Protocol,
        tls: Option<TlsSettings>,
        (cut, count): (Cut, u64),
    ) -> Bench {
        let settings = WorkerSettings {
            tls,
            ..settings(std::slice::from_ref(request), protocol)
        };
        let sampler = RequestSampler::new(settings.arena.clone(), 1, 0);
        let mut worker = Worker::new(settings, sampler, None, 1);
        worker.prepare(0, Some(count));
        let mut bench = Bench {
            worker,
            cut,
            now_ns: 0,
            room: usize::MAX,
            said: Vec::new(),
            has_socket: false,
        };
        bench.pass(1);
        bench
    }

    /// Advances time and handles expired limits.
    fn pass(&mut self, time_ns: u64) {
        self.now_ns += time_ns;
        if let Some((_, act)) = self.worker.overdue(0, self.now_ns) {
            self.perform(act);
        }
    }

    /// Opens the window: requests begin as far as there is room.
    fn load(&mut self) {
        self.worker.open_window(self.now_ns, Until::Requests(0));
        self.perform(Action::Free);
    }

    /// Delivers bytes of the server.
    fn hear(&mut self, bytes: &[u8]) {
        for piece in self.cut.pieces(bytes) {
            if self.has_socket {
                let act = self.worker.received(0, self.now_ns, &mut piece.to_vec());
                self.perform(act);
            }
        }
    }

    /// Ends the connection from the server's side.
    fn end(&mut self) {
        if self.has_socket {
            let act = self.worker.ended(0, self.now_ns);
            self.perform(act);
        }
    }

    /// Bytes sent to the server since the last call.
    fn said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.said)
    }

    fn is_open(&self) -> bool {
        self.worker.connections[0].stage == Stage::Open
    }

    fn perform(&mut self, mut act: Action) {
        loop {
            act = match act {
                Action::Wait => return,
                Action::Free => self.worker.start(0, self.now_ns),
                Action::Send => self.write(),
                Action::Close => {
                    self.has_socket = false;
                    return;
                }
                Action::Reopen => {
                    self.has_socket = true;
                    self.worker.connecting(0, self.now_ns);
                    self.worker.opened(0, self.now_ns)
                }
            }
        }
    }

    fn write(&mut self) -> Action {
        while let Some(bytes) = self.worker.output(0).filter(|_| self.room > 0) {
            let count = bytes.len().min(self.room);
            self.said.extend_from_slice(&bytes[..count]);
            self.room -= count;
            self.worker.wrote(0, count);
        }
        Action::Wait
    }

    fn slice(mut self) -> Counts {
        self.worker.stop_sending(self.now_ns, 0);
        self.worker.finish(self.now_ns, |_| {})
    }

    /// The tally as text.
    fn books(self) -> String {
        let slice = self.slice();
        let mut text = format!("opened {}", slice.connections_opened);
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                write!(text, ", {what} {count}").unwrap();
            }
        };
        slice
            .status
            .iter()
            .for_each(|(status, &count)| add(count, &format!("{status} x")));
        add(slice.responses - slice.successful, "bad");
        add(slice.body_bytes, "bytes");
        for error in &slice.errors {
            add(error.count, &format!("{} {} x", error.phase, error.cause));
        }
        add(slice.unfinished, "unfinished");
        slice.endpoints[0]
            .contents
            .iter()
            .for_each(|seen| add(seen.decoded_bytes, "decoded"));
        text
    }
}

fn get() -> RequestSpec {
    RequestSpec::new("GET", "/", "proofload.test")
}

/// With pipelining a request may begin while bytes of a long body are being discarded, and what follows them
/// is its response.
#[test]
fn only_without_pipelining_the_kernel_throws_away_what_is_left_of_a_body() {
    for (pipeline, skippable) in [(1, 90_001), (2, 0)] {
        let mut bench = Bench::new(&get(), Protocol::Http1 { pipeline }, None, (Cut::Whole, 2));
        bench.load();
        // A bad response is not sampled.
        let head = "HTTP/1.1 500 X\r\nContent-Length: 90000\r\n\r\n";
        bench.hear(format!("{head}{}", "x".repeat(90_000)).as_bytes());
        bench.hear(head.as_bytes());
        assert_eq!(bench.worker.skippable(0), skippable, "{pipeline}");
    }
}

/// A contract that every response fulfils.
fn anything() -> Option<Contract> {
    Some(Contract {
        status: (100..600).collect(),
        ..Contract::default()
    })
}
