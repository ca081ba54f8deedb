//! Think times in closed loop: how long each user waits between a response and its next request, and which is to go on next.
//!
//! Each user draws from a stream of its own, so that a seed means the same times whatever the service does. It must not read a clock, and
//! counts nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Think;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::{Action, Gate, Worker};
use crate::clock::in_ns;

/// Keeps the words from those of requests and arrivals, which are drawn from the same seed. "thinking" in ASCII.
const PURPOSE: u64 = 0x7468_696e_6b69_6e67;

/// Times are absolute.
pub(super) struct Thinking {
    think: Think,
    users: Box<[Thinker]>,
    waking: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Thinker {
    rng: Pcg64Mcg,
    until: Until,
}

#[derive(Clone, Copy)]
enum Until {
    /// He has done nothing in this window.
    First,
    /// He has a request under way, or its response just now.
    Undrawn,
    At(u64),
}

impl Thinking {
    /// For so many connections, those of this thread of so many.
    pub(super) fn new(think: Think, seed: u64, (thread, of): (usize, usize), connections: u32) -> Thinking {
        let mut seeds = Pcg64Mcg::seed_from_u64(seed ^ PURPOSE);
        let seeds = std::iter::from_fn(|| Some(seeds.next_u64())).skip(thread).step_by(of);
        let user = |seed| Thinker { rng: Pcg64Mcg::seed_from_u64(seed), until: Until::First };
        let users = seeds.take(connections as usize).map(user).collect();
        Thinking { think, users, waking: BinaryHeap::new() }
    }

    pub(super) fn restart(&mut self) {
        self.users.iter_mut().for_each(|user| user.until = Until::First);
        self.waking.clear();
    }

    fn next_ns(&self) -> Option<u64> {
        self.waking.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Whether this user may go on; it begins to think if it has not.
    fn is_over(&mut self, index: usize, now_ns: u64) -> bool {
        let user = &mut self.users[index];
        if let Until::At(at_ns) = user.until {
            return at_ns <= now_ns;
        }
        // Above 0 and at most 1.
        let mut part = || ((user.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let think_ns = match (self.think, user.until) {
            (Think::Exponential(mean), _) => -part().ln() * in_ns(mean) as f64,
            // Not all at once.
            (Think::Constant(time), Until::First) => part() * in_ns(time) as f64,
            (Think::Constant(time), _) => in_ns(time) as f64,
        };
        let at_ns = now_ns.saturating_add(think_ns as u64);
        user.until = Until::At(at_ns);
        self.waking.push(Reverse((at_ns, index)));
        false
    }
}

impl Worker {
    /// When the first user has thought; `u64::MAX`: nobody thinks.
    pub(super) fn next_thought_ns(&self) -> u64 {
        match (&self.thinking, self.gate) {
            (Some(thinking), Gate::Sending { .. }) => thinking.next_ns().unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }

    /// Lets the user who has thought for longest go on.
    pub(super) fn wake(&mut self, now_ns: u64) -> Option<(usize, Action)> {
        let Reverse((_, index)) = self.thinking.as_mut()?.waking.pop()?;
        // Where his connection was opened anew just now he may have gone on already, and what is being written is not written twice.
        let has_room = self.connections[index].room(now_ns, &self.settings) > 0;
        Some((index, if has_room { self.start(index, now_ns) } else { Action::Wait }))
    }

    /// Connection `index` is free: its user thinks, or goes on.
    pub(super) fn think(&mut self, index: usize, now_ns: u64) {
        let is_free = self.connections[index].room(now_ns, &self.settings) > 0 && self.may_send(now_ns);
        let Some(thinking) = self.thinking.as_mut().filter(|_| is_free) else { return };
        if thinking.is_over(index, now_ns) {
            thinking.users[index].until = Until::Undrawn;
            self.begin(index, now_ns, None);
        }
    }
}
