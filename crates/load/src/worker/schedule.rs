//! Open loop for one worker: which arrival is next, and which connection is free for it.
//!
//! The queue of arrivals that wait needs no memory: it is what the pacer has left between the oldest arrival that was
//! not taken and now. A connection that can take several requests is listed as often. Free connections are taken longest free first, which keeps all of them in use and says whether an
//! arrival had a connection when it was due: the n-th of them has the connection that was n-th to be free.
//! It must not read a clock, and counts nothing.

use std::collections::VecDeque;

use super::{Action, Gate, Worker};
use crate::pacer::Pacer;

/// Times are absolute.
#[derive(Debug)]
pub(super) struct Schedule {
    pacer: Pacer,
    started_ns: u64,
    /// Connections with room for a request, longest free first; never more than there is room for.
    free: VecDeque<Free>,
    /// How often each connection is in `free`.
    pub(super) listed: Box<[u32]>,
}

#[derive(Debug, Clone, Copy)]
struct Free {
    index: usize,
    since_ns: u64,
}

impl Schedule {
    /// For so many connections, which take `lanes` requests at once in all.
    pub(super) fn new(pacer: Pacer, connections: u32, lanes: usize) -> Schedule {
        let (free, listed) = (VecDeque::with_capacity(lanes), vec![0; connections as usize].into());
        Schedule { pacer, started_ns: 0, free, listed }
    }

    fn restart(&mut self, started_ns: u64) {
        self.pacer.restart();
        self.started_ns = started_ns;
        self.free.clear();
        self.listed.fill(0);
    }

    /// When the oldest arrival that was not taken is due.
    pub(super) fn due_ns(&self) -> u64 {
        self.started_ns.saturating_add(self.pacer.due_ns())
    }

    /// Connection `index` is of no more use.
    pub(super) fn withdraw(&mut self, index: usize) {
        if std::mem::take(&mut self.listed[index]) > 0 {
            self.free.retain(|free| free.index != index);
        }
    }

    fn offer(&mut self, index: usize, now_ns: u64) {
        self.listed[index] += 1;
        self.free.push_back(Free { index, since_ns: now_ns });
    }

    /// The last `count` in the list are one connection: spreads them evenly over all of it, for requests that are due one after the other would
    /// else share that connection while others have none. The times since when connections were free stay what they are.
    fn spread(&mut self, count: usize) {
        let all = self.free.len();
        // The last one stays where it is.
        for number in 1..count {
            let (from, to) = (all - count + number - 1, number * all / count - 1);
            let (one, other) = (self.free[from].index, self.free[to].index);
            (self.free[from].index, self.free[to].index) = (other, one);
        }
    }

    /// Takes the oldest arrival, and the connection that has been free for longest. Returns when the arrival was due,
    /// whether the connection was free then, and the connection.
    pub(super) fn take(&mut self) -> (u64, Option<Taken>) {
        let due_ns = self.due_ns();
        self.pacer.advance();
        let taken = self.free.pop_front().map(|Free { index, since_ns }| {
            self.listed[index] -= 1;
            Taken { index, in_time: since_ns <= due_ns }
        });
        (due_ns, taken)
    }

    /// Puts connection `index`, just offered, in the place of `first`, which becomes free where `index` was: the times
    /// since when connections were free stay what they are.
    fn swap(&mut self, index: usize, first: usize) {
        if index == first {
            return;
        }
        if let Some(last) = self.free.back_mut() {
            debug_assert_eq!(last.index, index);
            last.index = first;
        }
        self.listed[index] -= 1;
        self.listed[first] += 1;
    }
}

/// A connection taken for an arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) index: usize,
    /// It was free when the arrival was due.
    pub(super) in_time: bool,
}

impl Worker {
    /// When [`Worker::start_next`] can next begin a request; `u64::MAX`: not before some connection is free, or never,
    /// as in closed loop without think times.
    pub(crate) fn next_start_ns(&self) -> u64 {
        match &self.schedule {
            Some(schedule) if !schedule.free.is_empty() => self.next_sendable_ns().unwrap_or(u64::MAX),
            _ => self.next_thought_ns(),
        }
    }

    /// Begins the oldest request that is due, if there is one and a connection for it, which is returned with what to do with
    /// it. Open loop; a driver asks until there is none.
    pub(crate) fn start_next(&mut self, now_ns: u64) -> Option<(usize, Action)> {
        if self.next_start_ns() > now_ns {
            return None;
        }
        if self.schedule.is_none() {
            return self.wake(now_ns);
        }
        let (due_ns, taken) = self.take_due()?;
        let taken = taken?;
        self.depart(taken.index, now_ns, (due_ns, taken.in_time));
        Some((taken.index, self.push(taken.index)))
    }

    /// Connection `index` may have room: it takes the oldest arrivals if some are due, so that a driver that works through
    /// many events at once sends between them, and is free otherwise.
    pub(super) fn offer(&mut self, index: usize, now_ns: u64) {
        let mut offered = 0;
        loop {
            let due = self.next_sendable_ns().is_some_and(|due_ns| due_ns <= now_ns);
            let room = self.connections[index].room(now_ns, &self.settings);
            let Some(schedule) = &mut self.schedule else { return };
            if room <= schedule.listed[index] as usize {
                return schedule.spread(offered);
            }
            schedule.offer(index, now_ns);
            offered += usize::from(!due);
            if due {
                let Some((due_ns, taken)) = self.take_due() else { return };
                let Some(taken) = taken else { unreachable!("one was offered just now") };
                self.schedule.iter_mut().for_each(|schedule| schedule.swap(index, taken.index));
                self.depart(index, now_ns, (due_ns, taken.in_time));
            }
        }
    }

    /// Takes the oldest arrival, as [`Schedule::take`] does, and counts it as due.
    fn take_due(&mut self) -> Option<(u64, Option<Taken>)> {
        let schedule = self.schedule.as_mut()?;
        let started_ns = schedule.started_ns;
        let (due_ns, taken) = schedule.take();
        self.tally.due(due_ns - started_ns);
        Some((due_ns, taken))
    }

    fn depart(&mut self, index: usize, now_ns: u64, (due_ns, in_time): (u64, bool)) {
        self.tally.depart(in_time.then(|| now_ns - due_ns));
        self.begin(index, now_ns, Some(due_ns));
    }

    /// When the oldest arrival that was not taken is due, if it is still to be sent.
    pub(super) fn next_sendable_ns(&self) -> Option<u64> {
        let is_given_up = matches!(self.gate, Gate::Draining { sends: false, .. });
        if is_given_up { None } else { self.next_arrival_ns() }
    }

    /// When the oldest arrival that was not taken is due, if it belongs to this slice.
    pub(super) fn next_arrival_ns(&self) -> Option<u64> {
        let end_ns = match self.gate {
            Gate::Sending { stop_ns, .. } => stop_ns,
            Gate::Draining { stopped_ns, .. } => stopped_ns,
            Gate::Shut | Gate::Opening { .. } => return None,
        };
        let due_ns = self.schedule.as_ref()?.due_ns();
        (due_ns < end_ns && self.allowance != Some(0)).then_some(due_ns)
    }

    /// Since when no request has been under way though one is there to be sent: no connection takes it.
    pub(super) fn refused_since_ns(&self) -> Option<u64> {
        let there_since_ns = match &self.schedule {
            Some(schedule) if schedule.free.is_empty() => self.next_sendable_ns()?,
            None if self.thinking.is_none() => self.idle_since_ns,
            _ => return None,
        };
        (self.in_flight == 0).then_some(there_since_ns.max(self.idle_since_ns))
    }

    /// The window opens, in open loop: connections that are open have been free for longer than anything is due.
    pub(super) fn restart_schedule(&mut self, started_ns: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        schedule.restart(started_ns);
        for (index, connection) in self.connections.iter().enumerate() {
            let room = connection.room(started_ns, &self.settings);
            (0..room).for_each(|_| schedule.offer(index, started_ns));
            schedule.spread(room);
        }
    }

    /// The drain is over: what was due and not sent is entered as such.
    pub(super) fn leave_unsent(&mut self, now_ns: u64) {
        while self.next_arrival_ns().is_some() {
            let Some((due_ns, taken)) = self.take_due() else { return };
            let endpoint = self.sampler.draw().endpoint;
            self.tally.leave_unsent(endpoint, now_ns - due_ns, taken.is_some_and(|taken| taken.in_time));
            if let Some(left) = &mut self.allowance {
                *left -= 1;
            }
        }
    }
}
