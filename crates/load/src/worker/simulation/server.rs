//! The simulated server's end of a connection, including the network: when each request is completed, and how
//! the output is cut into pieces.

use std::borrow::Cow;
use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use model::Cause;
use rand::{Rng, RngExt};

use super::Nature;
use super::ledger::{InFlight, Line};
use crate::Digest;

const DELAY_MAX_NS: u64 = 4_000_000;
const THINK_MAX_NS: u64 = 15_000_000;
/// Maximum length delivered byte by byte, because a long body would take too long.
const BYTEWISE_MAX: usize = 300;

#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Counts sockets. Bytes sent to an earlier socket are lost.
    pub(super) socket: u64,
    /// The socket accepts no bytes for now.
    pub(super) blocked: bool,
    /// Bytes on their way to the engine.
    outbox: Vec<u8>,
    ending: Option<Ending>,
    /// The server will send nothing more.
    silent: bool,
    delivering: bool,
    responding: bool,
}

/// An arrival from the network.
#[derive(Debug)]
pub(super) enum Arrival {
    Bytes(Vec<u8>),
    End,
    Reset,
}

impl Peer {
    pub(super) fn new(socket: u64) -> Peer {
        Peer {
            socket,
            ..Peer::default()
        }
    }

    /// Handles the arrival of requests. Returns the time at which the next one is completed, if any.
    pub(super) fn consider(
        &mut self,
        line: &Line,
        nature: Nature,
        rng: &mut impl Rng,
    ) -> Option<u64> {
        next(line, nature)?;
        if self.responding || self.silent {
            return None;
        }
        self.responding = true;
        Some(rng.random_range(0..THINK_MAX_NS))
    }

    /// Answers the line's next request, and sometimes those that follow it.
    pub(super) fn respond(&mut self, line: &mut Line, nature: Nature, rng: &mut impl Rng) {
        self.responding = false;
        while !self.silent
            && let Some(request) = next(line, nature)
        {
            let script = draw(rng, request, nature.trouble);
            self.outbox.extend_from_slice(&script.bytes);
            line.plans.extend(script.plans);
            (self.ending, self.silent) = (script.ending, script.silent);
            if rng.random_bool(0.4) {
                return;
            }
        }
    }

    /// Returns the time at which the next piece arrives, if one is on its way and not scheduled yet.
    pub(super) fn flow(&mut self, nature: Nature, rng: &mut impl Rng) -> Option<u64> {
        if self.delivering || self.outbox.is_empty() && self.ending.is_none() {
            return None;
        }
        self.delivering = true;
        let bytewise =
            nature.bytewise && !self.outbox.is_empty() && self.outbox.len() < BYTEWISE_MAX;
        Some(rng.random_range(0..if bytewise { 50_000 } else { DELAY_MAX_NS }))
    }

    /// Returns the piece that arrives.
    pub(super) fn deliver(&mut self, nature: Nature, rng: &mut impl Rng) -> Option<Arrival> {
        self.delivering = false;
        let many = self.outbox.len();
        let count = match many {
            0 => {
                return self.ending.take().map(|ending| match ending {
                    Ending::Closes => Arrival::End,
                    Ending::Resets => Arrival::Reset,
                });
            }
            ..BYTEWISE_MAX if nature.bytewise => 1,
            _ if rng.random_bool(0.4) => many,
            // A cut near the beginning, as likely as one anywhere.
            _ if rng.random_bool(0.3) => rng.random_range(1..=many.min(100)),
            _ => rng.random_range(1..=many),
        };
        Some(Arrival::Bytes(self.outbox.drain(..count).collect()))
    }
}

/// The line's next request without a response, once enough of it has arrived.
fn next(line: &Line, nature: Nature) -> Option<&InFlight> {
    let next = line.requests.get(line.plans.len())?;
    (next.is_written() || nature.hasty && next.written > 0).then_some(next)
}

// The simulated server's handling of one request, drawn from a seed: the bytes it sends, how it ends the
// connection, and the expected interpretation byte by byte.
//
// It knows HTTP and nothing of the engine.

const TEXT_MAX: usize = 40_000;
static TEXT: [u8; TEXT_MAX] = [b'x'; TEXT_MAX];
/// The decoded gzip body.
static STORY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..200)
        .flat_map(|n: u32| n.to_string().into_bytes())
        .collect()
});
/// The compressed body: intact, with a wrong checksum, and truncated.
static GZIPPED: LazyLock<[Vec<u8>; 3]> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&STORY).unwrap();
    let intact = encoder.finish().unwrap();
    let (mut wrong, mut cut) = (intact.clone(), intact.clone());
    let checksum = wrong.len() - 8;
    wrong[checksum] ^= 1;
    cut.truncate(checksum - 5);
    [intact, wrong, cut]
});
/// Size limit of a head, or of the trailers of a chunked body.
const LINES_MAX: usize = 64 * 1024;

/// How the server ends a connection once everything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Closes,
    Resets,
}

/// The expected interpretation of a response.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) status: u16,
    /// The endpoint that its head names.
    pub(super) served: Option<u16>,
    pub(super) head_end: usize,
    /// Offset of its end. `None` if it ends with the connection.
    pub(super) end: Option<usize>,
    /// Offset of the byte with which it becomes unreadable, and the cause.
    pub(super) error: Option<(usize, Cause)>,
    /// The connection can be reused.
    pub(super) keeps: bool,
    pub(super) content: Content,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    Text(usize),
    Gzip { which: usize },
}

#[derive(Debug)]
pub(super) struct Script {
    pub(super) bytes: Vec<u8>,
    /// Plans of the response, and of unexpected data after it.
    pub(super) plans: Vec<Plan>,
    pub(super) ending: Option<Ending>,
    /// No other request of the connection gets a response.
    pub(super) silent: bool,
}

impl Content {
    pub(super) fn encoded(&self) -> Cow<'static, [u8]> {
        match *self {
            Content::Text(length) => Cow::Borrowed(&TEXT[..length]),
            Content::Gzip { which } => Cow::Borrowed(&GZIPPED[which]),
        }
    }

    /// The decoded content, or None if it cannot be decoded.
    pub(super) fn decoded(&self) -> Option<(Digest, u64)> {
        let decoded = match *self {
            Content::Text(length) => &TEXT[..length],
            Content::Gzip { which: 0 } => &STORY,
            Content::Gzip { .. } => return None,
        };
        Some((Digest::of(decoded), decoded.len() as u64))
    }
}

impl Plan {
    /// Whether its head fulfils the contract of this endpoint.
    pub(super) fn is_good(&self, endpoint: u16) -> bool {
        (200..300).contains(&self.status) && self.served == Some(endpoint)
    }
}

impl Script {
    fn new(bytes: Vec<u8>, plan: Plan) -> Script {
        let ending = (!plan.keeps).then_some(Ending::Closes);
        Script {
            bytes,
            silent: !plan.keeps,
            plans: vec![plan],
            ending,
        }
    }

    fn leaving(self, ending: Option<Ending>) -> Script {
        Script {
            ending,
            silent: true,
            ..self
        }
    }
}

/// Draws the server's handling of a request. `trouble` is the probability of a fault.
pub(super) fn draw(rng: &mut impl Rng, asked: &InFlight, trouble: f64) -> Script {
    if !rng.random_bool(trouble) {
        return response(rng, asked);
    }
    let ending = match rng.random_range(0..4) {
        0 => Some(Ending::Closes),
        1 => Some(Ending::Resets),
        2 => None,
        // The more frequent ways to stay and to go.
        _ => return after(rng, asked),
    };
    match rng.random_range(0..10) {
        0..3 => cut_head(rng, asked).leaving(ending),
        3..6 => cut_body(rng, asked).leaving(ending),
        6 => unreadable_head(rng, asked),
        7 => unreadable_body(rng, asked),
        8 if rng.random_bool(0.2) => too_large(rng, asked),
        _ => Script {
            bytes: Vec::new(),
            ..framed(rng, asked)
        }
        .leaving(ending),
    }
}

/// A good response followed by something else.
fn after(rng: &mut impl Rng, asked: &InFlight) -> Script {
    let mut script = framed(rng, asked);
    match rng.random_range(0..4) {
        0 => script.leaving(Some(Ending::Closes)),
        1 => script.leaving(Some(Ending::Resets)),
        whole => {
            // The beginning of an unexpected response, or all of it. Without a body it reads the same after
            // HEAD.
            let extra = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            let count = if whole == 2 {
                extra.len()
            } else {
                rng.random_range(1..extra.len())
            };
            script.bytes.extend_from_slice(&extra[..count]);
            script.plans.push(Plan {
                served: None,
                ..plan(asked, 200, extra.len(), Content::Text(0))
            });
            script.leaving(None)
        }
    }
}

/// A response that ends with its head.
fn plan(asked: &InFlight, status: u16, head_end: usize, content: Content) -> Plan {
    let served = Some(asked.choice.endpoint);
    Plan {
        status,
        served,
        head_end,
        end: Some(head_end),
        error: None,
        keeps: true,
        content,
    }
}

/// A good response in any form.
fn response(rng: &mut impl Rng, asked: &InFlight) -> Script {
    if asked.choice.bodiless {
        return bare(rng, asked, status(asked));
    }
    match rng.random_range(0..20) {
        0 => bare(rng, asked, 204),
        1 => bare(rng, asked, 304),
        2 => {
            let head = head(asked, 500, "Content-Length: 4\r\n");
            let end = Some(head.len() + 4);
            let plan = Plan {
                end,
                ..plan(asked, 500, head.len(), Content::Text(4))
            };
            Script::new([&head, &TEXT[..4]].concat(), plan)
        }
        3 => last(rng, asked, ""),
        4 => last(rng, asked, "Connection: close\r\n"),
        _ => framed(rng, asked),
    }
}

fn status(asked: &InFlight) -> u16 {
    200 + 10 * asked.choice.endpoint + (asked.number % 2) as u16
}

fn head(asked: &InFlight, status: u16, lines: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Fine\r\nServed: {}\r\n{lines}\r\n",
        asked.choice.endpoint
    )
    .into_bytes()
}

/// A response to HEAD, or with a status that has no body. Nothing follows its head.
fn bare(rng: &mut impl Rng, asked: &InFlight, status: u16) -> Script {
    let lines = [
        "Content-Length: 1234\r\n",
        "Transfer-Encoding: chunked\r\n",
        "",
        "Content-Encoding: gzip\r\n",
    ];
    let head = head(asked, status, lines[rng.random_range(0..lines.len())]);
    let plan = plan(asked, status, head.len(), Content::Text(0));
    Script::new(head, plan)
}

/// The last response of its connection. Its body ends with the connection unless there is a length.
fn last(rng: &mut impl Rng, asked: &InFlight, lines: &str) -> Script {
    let content = content(rng);
    let length = format!("{lines}Content-Length: {}\r\n", content.encoded().len());
    let until_close = lines.is_empty();
    let lines = coded(&content, if until_close { lines } else { &length });
    let mut bytes = head(asked, status(asked), &lines);
    let mut plan = plan(asked, status(asked), bytes.len(), content);
    bytes.extend_from_slice(&content.encoded());
    (plan.keeps, plan.end) = (false, (!until_close).then_some(bytes.len()));
    Script::new(bytes, plan)
}

fn coded(content: &Content, lines: &str) -> String {
    let coding = if matches!(content, Content::Gzip { .. }) {
        "Content-Encoding: gzip\r\n"
    } else {
        ""
    };
    format!("{coding}{lines}")
}

fn content(rng: &mut impl Rng) -> Content {
    match rng.random_range(0..40) {
        0 | 1 => Content::Text(rng.random_range(17_000..TEXT_MAX)),
        2 => Content::Text(0),
        3..8 => Content::Gzip {
            which: rng.random_range(0..3),
        },
        _ => Content::Text(rng.random_range(1..200)),
    }
}

/// A good response whose body has a known length or is chunked. No body after HEAD.
fn framed(rng: &mut impl Rng, asked: &InFlight) -> Script {
    if asked.choice.bodiless {
        return bare(rng, asked, status(asked));
    }
    let content = content(rng);
    let encoded = content.encoded();
    let (lines, body) = match rng.random_bool(0.5) {
        true => (
            format!("Content-Length: {}\r\n", encoded.len()),
            encoded.to_vec(),
        ),
        false => (
            "Transfer-Encoding: chunked\r\n".into(),
            chunked(rng, &encoded),
        ),
    };
    let mut bytes = head(asked, status(asked), &coded(&content, &lines));
    let mut plan = plan(asked, status(asked), bytes.len(), content);
    bytes.extend_from_slice(&body);
    plan.end = Some(bytes.len());
    Script::new(bytes, plan)
}

/// Encodes data in up to two chunks, sometimes with a trailer.
fn chunked(rng: &mut impl Rng, data: &[u8]) -> Vec<u8> {
    let (first, second) = data.split_at(rng.random_range(0..=data.len()));
    let trailer = if rng.random_bool(0.3) {
        "Took: 5\r\n"
    } else {
        ""
    };
    let mut bytes = Vec::with_capacity(data.len() + 100);
    for chunk in [first, second]
        .into_iter()
        .filter(|chunk| !chunk.is_empty())
    {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
    bytes
}

/// A response that ends within its head.
fn cut_head(rng: &mut impl Rng, asked: &InFlight) -> Script {
    let mut script = framed(rng, asked);
    script
        .bytes
        .truncate(rng.random_range(0..script.plans[0].head_end));
    script
}

/// A response that ends within its body, if it has one.
fn cut_body(rng: &mut impl Rng, asked: &InFlight) -> Script {
    let mut script = framed(rng, asked);
    let head_end = script.plans[0].head_end;
    if script.bytes.len() == head_end {
        script.bytes.truncate(head_end - 1);
        return script;
    }
    let end = script.bytes.len();
    script.bytes.truncate(rng.random_range(head_end..end));
    script
}

/// A script whose response becomes unreadable at byte `at`.
fn flawed(
    asked: &InFlight,
    bytes: Vec<u8>,
    (head_end, at): (usize, usize),
    cause: Cause,
) -> Script {
    let error = Some((at, cause));
    let plan = Plan {
        error,
        end: None,
        ..plan(asked, 200, head_end, Content::Text(0))
    };
    Script::new(bytes, plan).leaving(None)
}

/// Not a response, or one that cannot be framed, which is detected at the end of its head. After HEAD the
/// length is ignored.
fn unreadable_head(rng: &mut impl Rng, asked: &InFlight) -> Script {
    let unframed = b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n";
    match asked.choice.bodiless || rng.random_bool(0.3) {
        true => {
            let bytes = b"220 mail.example ESMTP\r\n".to_vec();
            flawed(asked, bytes, (usize::MAX, 1), Cause::Malformed)
        }
        false => flawed(
            asked,
            unframed.to_vec(),
            (usize::MAX, unframed.len()),
            Cause::Malformed,
        ),
    }
}

/// A body of invalid chunks.
fn unreadable_body(rng: &mut impl Rng, asked: &InFlight) -> Script {
    if asked.choice.bodiless {
        return unreadable_head(rng, asked);
    }
    let (body, at) = [("xyz", 1), ("1\r\nabc", 5)][rng.random_range(0..2)];
    let mut bytes = head(asked, 200, "Transfer-Encoding: chunked\r\n");
    let head_end = bytes.len();
    bytes.extend_from_slice(body.as_bytes());
    flawed(asked, bytes, (head_end, head_end + at), Cause::Malformed)
}

/// A head, or trailers, without end.
fn too_large(rng: &mut impl Rng, asked: &InFlight) -> Script {
    let within_trailers = !asked.choice.bodiless && rng.random_bool(0.5);
    let lines = if within_trailers {
        "Transfer-Encoding: chunked\r\n"
    } else {
        "X: "
    };
    let mut bytes = head(asked, 200, lines);
    let (head_end, at) = match within_trailers {
        true => {
            bytes.extend_from_slice(b"0\r\nX: ");
            // The first byte beyond the limit. The size line counts separately.
            (bytes.len() - 6, bytes.len() - 3 + LINES_MAX + 1)
        }
        false => {
            bytes.truncate(bytes.len() - 2);
            (usize::MAX, LINES_MAX)
        }
    };
    bytes.resize(LINES_MAX + 1000, b'y');
    flawed(asked, bytes, (head_end, at), Cause::TooLarge)
}
