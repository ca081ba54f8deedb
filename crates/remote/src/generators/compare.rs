//! A look at the clock of a generator that has not begun, and will not: for whoever wants to know how well two machines can agree.

use std::io::{self, BufReader, Read, Write};

use crate::generators::clock::monotonic_ns;
use crate::generators::{Answer, ClockOffset, Order, Ping, line};

/// Pings of which the fastest counts. The first ones may meet a program that is still starting.
const PINGS: u64 = 16;

/// How far the clock (CLOCK_MONOTONIC) of the generator behind these two ends is ahead of ours.
///
/// # Errors
/// If it goes, or answers something else.
pub fn compare_clocks(mut input: impl Write, output: impl Read) -> io::Result<ClockOffset> {
    let mut output = BufReader::new(output);
    let mut pings = Vec::new();
    for number in 0..PINGS {
        let sent_ns = monotonic_ns();
        line::write(&mut input, &Order::Ping(number))?;
        match line::read(&mut output)? {
            Some(Answer::Pong { ping, clock_ns }) if ping == number => {
                pings.push(Ping { sent_ns, clock_ns, received_ns: monotonic_ns() });
            }
            Some(other) => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}"))),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    ClockOffset::of(&pings).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
