//! What a simulated server does with one request: a script of bytes and ends, drawn from a seed, and what must come of it.

use rand::{Rng, RngExt};

use crate::{Cause, Phase};

/// Beyond what any script of ours takes, so that only a script that stalls runs into it.
pub(super) const TIMEOUT_NS: u64 = 300_000_000;
const DELAY_MAX_NS: u64 = 4_000_000;
const PIECES_MAX: usize = 5;

/// Something that arrives from the server.
#[derive(Debug, Clone)]
pub(super) enum Wire {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// How a request must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Answered {
        ok: bool,
        surplus: bool,
    },
    Lost(Phase, Cause),
    /// Nothing more comes: it has to time out in this phase.
    Stalled(Phase),
}

/// A script: what arrives, each so long after the one before, and the request's fate.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) steps: Vec<(u64, Wire)>,
    pub(super) fate: Fate,
    /// The server closes the connection some time after the response, without saying so in it.
    pub(super) closes_later: bool,
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: fiction\r\n";

/// Draws what the server does with a request.
pub(super) fn script(rng: &mut impl Rng) -> Script {
    let good = Fate::Answered { ok: true, surplus: false };
    let plain = response(rng);
    let within_body = plain.len() - 1;
    let (bytes, end, fate) = match rng.random_range(0..24) {
        0 => (format!("{HEAD}Connection: close\r\nContent-Length: 2\r\n\r\nok"), Some(Wire::End), good),
        1 => (format!("{HEAD}\r\nuntil the end"), Some(Wire::End), good),
        2 => (
            "HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nno\n".into(),
            None,
            Fate::Answered { ok: false, surplus: false },
        ),
        3 => (format!("HTTP/1.1 100 Continue\r\n\r\n{plain}"), None, good),
        4 => (plain[..within_body].into(), Some(Wire::End), Fate::Lost(Phase::Body, Cause::ClosedEarly)),
        5 => (plain[..within_body].into(), Some(Wire::Reset), Fate::Lost(Phase::Body, Cause::Reset)),
        6 => (HEAD[..20].into(), Some(Wire::End), Fate::Lost(Phase::Head, Cause::ClosedEarly)),
        7 => (String::new(), Some(Wire::End), Fate::Lost(Phase::Head, Cause::ClosedEarly)),
        8 => (String::new(), Some(Wire::Reset), Fate::Lost(Phase::Head, Cause::Reset)),
        9 => ("220 mail.example ESMTP\r\n".into(), None, Fate::Lost(Phase::Head, Cause::Malformed)),
        10 => (
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz"),
            None,
            Fate::Lost(Phase::Body, Cause::Malformed),
        ),
        11 => (String::new(), None, Fate::Stalled(Phase::Head)),
        12 => (plain[..within_body].into(), None, Fate::Stalled(Phase::Body)),
        13 => return surplus(plain),
        14 => return Script { closes_later: true, ..cut(rng, plain, None, good) },
        _ => (plain, None, good),
    };
    cut(rng, bytes, end, fate)
}

/// A good response, small or large, of known length or chunked.
fn response(rng: &mut impl Rng) -> String {
    let length =
        if rng.random_bool(0.2) { rng.random_range(20_000..60_000) } else { rng.random_range(1..200) };
    let body = "x".repeat(length);
    if rng.random_bool(0.5) {
        return format!("{HEAD}Content-Length: {length}\r\n\r\n{body}");
    }
    let (first, second) = body.split_at(rng.random_range(1..=length));
    let chunk =
        |data: &str| if data.is_empty() { String::new() } else { format!("{:x}\r\n{data}\r\n", data.len()) };
    format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n", chunk(first), chunk(second))
}

/// Bytes that nobody asked for, in one piece with the end of the response.
fn surplus(plain: String) -> Script {
    let steps = vec![(DELAY_MAX_NS, Wire::Bytes(format!("{plain}HTTP/1.1 ").into()))];
    Script { steps, fate: Fate::Answered { ok: true, surplus: true }, closes_later: false }
}

/// Cuts bytes into pieces that arrive one after the other.
fn cut(rng: &mut impl Rng, bytes: String, end: Option<Wire>, fate: Fate) -> Script {
    let mut rest = bytes.into_bytes();
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let last = steps.len() + 1 == PIECES_MAX;
        let at = if last { rest.len() } else { rng.random_range(1..=rest.len()) };
        let tail = rest.split_off(at);
        steps.push((rng.random_range(0..DELAY_MAX_NS), Wire::Bytes(std::mem::replace(&mut rest, tail))));
    }
    steps.extend(end.map(|end| (rng.random_range(0..DELAY_MAX_NS), end)));
    Script { steps, fate, closes_later: false }
}
