//! The warden's input: the spec's line, then orders, then its end, which is an order too.
//!
//! It reads lines and gives no answers.

use std::io;
use std::os::fd::BorrowedFd;

use crate::message::{Order, Spec};

/// Longest line taken. An environment may be large, and files made from templates; what is larger than this is a fault.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Lines from Proofload.
pub(super) struct Orders {
    pending: Vec<u8>,
    open: bool,
}

impl Orders {
    pub fn new() -> Self {
        Self { pending: Vec::new(), open: true }
    }

    /// Waits for the first line.
    pub fn spec(&mut self, input: BorrowedFd<'_>) -> Result<Spec, String> {
        loop {
            if let Some(line) = self.line() {
                return serde_json::from_slice(&line)
                    .map_err(|error| format!("cannot read its orders: {error}"));
            }
            if !self.open {
                return Err("no orders came".to_owned());
            }
            self.read(input);
        }
    }

    /// Reads once; after the end of the input [`Orders::is_open`] is false.
    pub fn read(&mut self, input: BorrowedFd<'_>) {
        let mut buffer = [0; 16 << 10];
        match rustix::io::read(input, &mut buffer) {
            Ok(count) if count > 0 && self.pending.len() < LINE_BYTES_MAX => {
                self.pending.extend_from_slice(&buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => self.open = false,
        }
    }

    /// The next order. Proofload says nothing else, so a line that cannot be read is its end as well.
    pub fn next(&mut self) -> Option<Order> {
        match self.line() {
            Some(line) => Some(serde_json::from_slice(&line).unwrap_or(Order::Stop)),
            None => (!self.open).then_some(Order::Stop),
        }
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.pending.iter().position(|byte| *byte == b'\n')?;
        let rest = self.pending.split_off(end + 1);
        Some(std::mem::replace(&mut self.pending, rest))
    }
}
