//! Think times in closed loop: how long each user waits between a response and its next request, and which
//! user is next.
//!
//! Each user has its own random stream, so a seed yields the same times regardless of the service. This
//! module reads no clock and counts nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Think;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::{Action, SlicePart, Worker};
use crate::clock::in_ns;

/// Separates these words from the words for requests and arrivals, which use the same seed. "thinking" in
/// ASCII.
const PURPOSE: u64 = 0x7468_696e_6b69_6e67;

/// The think state of all users. Times are absolute.
pub(super) struct Thinking {
    think: Think,
    users: Box<[Thinker]>,
    waking: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Thinker {
    rng: Pcg64Mcg,
    until: ThinkingUntil,
}

#[derive(Clone, Copy)]
enum ThinkingUntil {
    /// The user has sent nothing in this window.
    First,
    /// The user has a request in flight, or just got its response.
    Undrawn,
    At(u64),
}

impl Thinking {
    /// Creates the state for `connections` connections of thread `thread` out of `of` threads.
    pub(super) fn new(
        think: Think,
        seed: u64,
        (thread, of): (usize, usize),
        connections: u32,
    ) -> Thinking {
        let mut seeds = Pcg64Mcg::seed_from_u64(seed ^ PURPOSE);
        let seeds = std::iter::from_fn(|| Some(seeds.next_u64()))
            .skip(thread)
            .step_by(of);
        let user = |seed| Thinker {
            rng: Pcg64Mcg::seed_from_u64(seed),
            until: ThinkingUntil::First,
        };
        let users = seeds.take(connections as usize).map(user).collect();
        Thinking {
            think,
            users,
            waking: BinaryHeap::new(),
        }
    }

    pub(super) fn restart(&mut self) {
        self.users
            .iter_mut()
            .for_each(|user| user.until = ThinkingUntil::First);
        self.waking.clear();
    }

    fn next_ns(&self) -> Option<u64> {
        self.waking.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Whether this user has finished thinking. Starts to think if it has not.
    fn is_over(&mut self, index: usize, now_ns: u64) -> bool {
        let user = &mut self.users[index];
        if let ThinkingUntil::At(at_ns) = user.until {
            return at_ns <= now_ns;
        }
        // Above 0 and at most 1.
        let mut part = || ((user.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let think_ns = match (self.think, user.until) {
            (Think::Exponential(mean), _) => -part().ln() * in_ns(mean) as f64,
            // Spreads the first requests.
            (Think::Constant(time), ThinkingUntil::First) => part() * in_ns(time) as f64,
            (Think::Constant(time), _) => in_ns(time) as f64,
        };
        let at_ns = now_ns.saturating_add(think_ns as u64);
        user.until = ThinkingUntil::At(at_ns);
        self.waking.push(Reverse((at_ns, index)));
        false
    }
}

impl Worker {
    /// Time at which the first user finishes thinking. `u64::MAX` if none thinks.
    pub(super) fn next_thought_ns(&self) -> u64 {
        match (&self.thinking, self.gate) {
            (Some(thinking), SlicePart::Sending { .. }) => thinking.next_ns().unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }

    /// Continues with the user whose think time ended first.
    pub(super) fn wake(&mut self, now_ns: u64) -> Option<(usize, Action)> {
        let Reverse((_, index)) = self.thinking.as_mut()?.waking.pop()?;
        // If the connection was just reopened, the user may have continued already, and output must not be
        // written twice.
        let has_room = self.connections[index].room(now_ns, &self.settings) > 0;
        Some((
            index,
            if has_room {
                self.start(index, now_ns)
            } else {
                Action::Wait
            },
        ))
    }

    /// Handles a free connection `index`: its user thinks, or continues.
    pub(super) fn think(&mut self, index: usize, now_ns: u64) {
        let is_free =
            self.connections[index].room(now_ns, &self.settings) > 0 && self.may_send(now_ns);
        let Some(thinking) = self.thinking.as_mut().filter(|_| is_free) else {
            return;
        };
        if thinking.is_over(index, now_ns) {
            thinking.users[index].until = ThinkingUntil::Undrawn;
            self.begin(index, now_ns, None);
        }
    }
}
