//! The stdin and stdout of a program in a pod as what blocking readers and writers take. Neither costs a thread or a descriptor: both end
//! in the one thread that speaks with the cluster.

use std::io::{self, Read, Write};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many orders may wait for a pod. It takes in what it is told at once, so that a pod that many wait for is not there any more.
const ORDERS_MAX: usize = 64;
/// How many pieces of what a pod says may wait to be read.
const PIECES_MAX: usize = 16;

/// What came out of a pod.
#[derive(Debug)]
pub(super) enum Heard {
    /// Some of its output.
    Piece(Vec<u8>),
    /// It is gone, and nobody had asked it to go: why, as far as is known.
    Lost(String),
}

/// A program's stdin, which ends when this is dropped. It never waits.
#[derive(Debug)]
pub(super) struct Input(Sender<Vec<u8>>);

/// A program's stdout. Reading waits; where the program is lost, that is an error with the reason.
#[derive(Debug)]
pub(super) struct Output {
    heard: Receiver<Heard>,
    piece: Vec<u8>,
    read: usize,
}

/// The other ends, for the thread that speaks with the cluster.
pub(super) struct Ends {
    pub orders: Receiver<Vec<u8>>,
    pub heard: Sender<Heard>,
}

pub(super) fn pipes() -> (Input, Output, Ends) {
    let (input, orders) = channel(ORDERS_MAX);
    let (heard, output) = channel(PIECES_MAX);
    (Input(input), Output { heard: output, piece: Vec::new(), read: 0 }, Ends { orders, heard })
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(TrySendError::Full(_)) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it takes nothing in any more"))
            }
            Err(TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Output {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            match self.heard.blocking_recv() {
                Some(Heard::Piece(piece)) => (self.piece, self.read) = (piece, 0),
                Some(Heard::Lost(why)) => return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why)),
                None => return Ok(0),
            }
        }
        let rest = &self.piece[self.read..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_arrives_whole_and_what_is_lost_is_told_after_it() {
        let (_input, mut output, ends) = pipes();
        for piece in ["one", "", " two"] {
            ends.heard.blocking_send(Heard::Piece(piece.into())).unwrap();
        }
        ends.heard.blocking_send(Heard::Lost("the pod was deleted".into())).unwrap();
        let mut text = String::new();
        let error = output.read_to_string(&mut text).unwrap_err();
        assert_eq!((text.as_str(), error.to_string().as_str()), ("one two", "the pod was deleted"));
        drop(ends);
        assert_eq!(output.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn a_pod_that_takes_nothing_in_blocks_nobody() {
        let (mut input, _output, ends) = pipes();
        let error = (0..1000).find_map(|_| input.write_all(b"ping\n").err()).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(ends);
        assert_eq!(input.write_all(b"ping\n").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
