//! What `tc` is told so that a link has a rate. Pure text.
//!
//! Two sizes decide how true a token bucket is to a cable. *Burst* is what may pass at once after a pause: on a cable,
//! nothing. It has to be a frame, or none would ever pass; it should be what the link carries until the kernel's timer
//! is late, or the rate is not reached. A millisecond's worth and no less than two frames is enough for both, and a
//! response is at most that much too early. *Limit* is how much may wait: as much as a link carries in a quarter of a
//! second, which is what routers are built with, and no less than a congestion window or two. What does not fit is
//! lost, as it would be there. A longer queue loses less and is no better: with 64 connections on 20 Mbit/s a second's
//! worth still overflowed, and TCP then waited for more than a second where it waits for 0.2 s now.

use std::time::Duration;

/// The largest frame of Ethernet, without its checksum.
const FRAME_BYTES: u64 = 1514;
/// Frames in a device's own queue. Behind a delay many are under way at once; netem's own limit is set to as many.
pub(super) const QUEUE_FRAMES: u32 = 100_000;
const LATE_PER_S: u64 = 1000;
const QUEUED_PER_S: u64 = 4;
const LIMIT_BYTES_MIN: u64 = 64 << 10;

/// Lines for `tc` that give `device` a rate and, by netem, a delay; empty for neither.
pub(super) fn queues(device: &str, rate_bit_per_s: Option<u64>, netem: Option<Duration>) -> String {
    let delay = netem.map(|delay| format!("netem delay {}us limit {QUEUE_FRAMES}", delay.as_micros()));
    match (delay, rate_bit_per_s.map(bucket)) {
        (None, None) => String::new(),
        (None, Some(bucket)) => format!("qdisc add dev {device} root {bucket}\n"),
        (Some(delay), None) => format!("qdisc add dev {device} root {delay}\n"),
        (Some(delay), Some(bucket)) => format!(
            "qdisc add dev {device} root handle 1: {delay}\n\
             qdisc add dev {device} parent 1:1 handle 10: {bucket}\n"
        ),
    }
}

fn bucket(bit_per_s: u64) -> String {
    let bytes_per_s = bit_per_s / 8;
    let burst = (bytes_per_s / LATE_PER_S).max(2 * FRAME_BYTES);
    let limit = (bytes_per_s / QUEUED_PER_S).max(LIMIT_BYTES_MIN);
    format!("tbf rate {bit_per_s}bit burst {burst} limit {limit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_passes_frames_and_a_fast_one_milliseconds() {
        assert_eq!(bucket(8_000), "tbf rate 8000bit burst 3028 limit 65536");
        assert_eq!(bucket(1_000_000_000), "tbf rate 1000000000bit burst 125000 limit 31250000");
        // Both are 32-bit numbers in the kernel.
        assert_eq!(bucket(10_000_000_000), "tbf rate 10000000000bit burst 1250000 limit 312500000");
        assert_eq!(queues("link0", None, None), "");
    }
}
