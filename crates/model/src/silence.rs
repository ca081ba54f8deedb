//! Silences: stretches of a window without a response. Merges the lists of threads, generators and turns.
//!
//! This module does not judge whether a silence is long for a service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shortest stretch without a response that is recorded, in nanoseconds.
pub const SILENCE_MIN_NS: u64 = 100_000_000;

/// A stretch of a window and its drain in which no response arrived. Times are nanoseconds since the window
/// began.
///
/// ```text
///   last response     a request waits          next response, or the end
///        from ─────────── waiting ────────────────── to
///              nothing was requested │  requests wait
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    /// Start of the stretch.
    pub from_ns: u64,
    /// Time since which requests waited for longer than responses usually take. `u64::MAX` if none did.
    pub waiting_ns: u64,
    /// End of the stretch. `u64::MAX` after a thread's last request has ended.
    pub to_ns: u64,
}

impl Silence {
    /// Time in which requests waited, in nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.waiting_ns.max(self.from_ns))
    }

    /// Shifts the stretch to a timeline that began earlier.
    pub(crate) fn later(self, by_ns: u64) -> Silence {
        let Silence {
            from_ns,
            waiting_ns,
            to_ns,
        } = self;
        let later = |ns: u64| ns.saturating_add(by_ns);
        Silence {
            from_ns: later(from_ns),
            waiting_ns: later(waiting_ns),
            to_ns: later(to_ns),
        }
    }

    /// Returns the overlap of two stretches. Requests wait in it if they wait in either.
    fn common(&self, other: &Silence) -> Option<Silence> {
        let (from_ns, to_ns) = (self.from_ns.max(other.from_ns), self.to_ns.min(other.to_ns));
        let waiting_ns = self.waiting_ns.min(other.waiting_ns).max(from_ns);
        (from_ns < to_ns).then_some(Silence {
            from_ns,
            waiting_ns,
            to_ns,
        })
    }
}

/// Merges the stretches of two threads or generators: stretches without a response on either. Both lists are
/// ordered by time.
pub(crate) fn in_parallel(one: &[Silence], other: &[Silence]) -> Vec<Silence> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut common = Vec::new();
    while let (Some(left), Some(right)) = (one.peek(), other.peek()) {
        common.extend(left.common(right));
        if left.to_ns <= right.to_ns {
            one.next()
        } else {
            other.next()
        };
    }
    common
}

/// Joins adjacent stretches and returns those in which requests waited for at least [`SILENCE_MIN_NS`].
pub(crate) fn settled(stretches: &[Silence]) -> Vec<Silence> {
    let mut joined: Vec<Silence> = Vec::new();
    for stretch in stretches.iter().filter(|stretch| stretch.waited_ns() > 0) {
        let from_ns = stretch.waiting_ns.max(stretch.from_ns);
        match joined.last_mut().filter(|last| last.to_ns == from_ns) {
            Some(last) => last.to_ns = stretch.to_ns,
            None => joined.push(Silence {
                from_ns,
                waiting_ns: from_ns,
                to_ns: stretch.to_ns,
            }),
        }
    }
    joined.retain(|silence| silence.waited_ns() >= SILENCE_MIN_NS);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn silence(from_s: u64, waiting_s: Option<u64>, to_s: Option<u64>) -> Silence {
        let ns = |s: Option<u64>| s.map_or(u64::MAX, |s| s * S);
        Silence {
            from_ns: from_s * S,
            waiting_ns: ns(waiting_s),
            to_ns: ns(to_s),
        }
    }

    fn waited_s(one: &[Silence], other: &[Silence]) -> Vec<u64> {
        settled(&in_parallel(one, other))
            .iter()
            .map(|silence| silence.waited_ns() / S)
            .collect()
    }

    #[test]
    fn threads_are_silent_together_only() {
        let frozen = [silence(2, Some(2), Some(7)), silence(10, None, None)];
        let other = [silence(3, Some(3), Some(8)), silence(10, None, None)];
        let busy = [silence(4, Some(4), Some(5)), silence(10, None, None)];
        let done = [silence(1, None, None)];
        for (name, one, other, expected) in [
            ("overlap", &frozen[..], &other[..], vec![4]),
            ("one is served", &frozen, &busy, vec![1]),
            ("one has nothing to send any more", &frozen, &done, vec![5]),
            ("neither sends", &done, &done, vec![]),
            ("one is served all the time", &frozen, &[], vec![]),
        ] {
            assert_eq!(waited_s(one, other), expected, "{name}");
            assert_eq!(
                waited_s(other, one),
                expected,
                "{name}, the other way round"
            );
        }
    }

    #[test]
    fn idle_time_is_no_silence() {
        let thinks = [silence(2, Some(4), Some(7))];
        let idle = [silence(0, None, None)];
        assert_eq!(waited_s(&thinks, &idle), [3]);
        let pieces = [silence(1, None, Some(3)), silence(3, None, None)];
        assert_eq!(
            waited_s(&thinks, &pieces),
            [3],
            "pieces of one stretch are one"
        );
    }
}
