//! Open loop for one worker: the next arrival, and the free connection for it.
//!
//! The queue of waiting arrivals needs no memory: it consists of the pacer's arrivals between the oldest one
//! not taken and now. A connection that can take several requests is listed several times. Free connections
//! are taken longest free first. This keeps all of them in use, and shows whether an arrival had a connection
//! when it was due: the n-th arrival gets the n-th connection that became free. This module reads no clock
//! and counts nothing.

use std::collections::VecDeque;

use super::{Action, SlicePart, Worker};
use crate::pacer::Pacer;

/// The schedule of one worker. Times are absolute.
#[derive(Debug)]
pub(super) struct ArrivalSchedule {
    pub(super) pacer: Pacer,
    started_ns: u64,
    /// Connections with room for a request, longest free first. Never more entries than room.
    free: VecDeque<Free>,
    /// Number of entries of each connection in `free`.
    pub(super) listed: Box<[u32]>,
}

#[derive(Debug, Clone, Copy)]
struct Free {
    index: usize,
    since_ns: u64,
}

impl ArrivalSchedule {
    /// Creates a schedule for `connections` connections, which take `lanes` requests at once in total.
    pub(super) fn new(pacer: Pacer, connections: u32, lanes: usize) -> ArrivalSchedule {
        let (free, listed) = (
            VecDeque::with_capacity(lanes),
            vec![0; connections as usize].into(),
        );
        ArrivalSchedule {
            pacer,
            started_ns: 0,
            free,
            listed,
        }
    }

    fn restart(&mut self, started_ns: u64) {
        self.pacer.restart();
        self.started_ns = started_ns;
        self.free.clear();
        self.listed.fill(0);
    }

    /// Due time of the oldest arrival not taken.
    pub(super) fn due_ns(&self) -> u64 {
        self.started_ns.saturating_add(self.pacer.due_ns())
    }

    /// Removes connection `index`, which is no longer usable.
    pub(super) fn withdraw(&mut self, index: usize) {
        if std::mem::take(&mut self.listed[index]) > 0 {
            self.free.retain(|free| free.index != index);
        }
    }

    fn offer(&mut self, index: usize, now_ns: u64) {
        self.listed[index] += 1;
        self.free.push_back(Free {
            index,
            since_ns: now_ns,
        });
    }

    /// Spreads the last `count` entries, which belong to one connection, evenly over the list. Otherwise
    /// consecutive arrivals would share that connection while others are idle. The times since which
    /// connections are free stay.
    fn spread(&mut self, count: usize) {
        let all = self.free.len();
        // The last one stays in place.
        for number in 1..count {
            let (from, to) = (all - count + number - 1, number * all / count - 1);
            let (one, other) = (self.free[from].index, self.free[to].index);
            (self.free[from].index, self.free[to].index) = (other, one);
        }
    }

    /// Takes the oldest arrival and the connection that has been free longest. Returns the due time of the
    /// arrival and the connection, with whether it was free then.
    pub(super) fn take(&mut self) -> (u64, Option<TakenConnection>) {
        let due_ns = self.due_ns();
        self.pacer.advance();
        let taken = self.free.pop_front().map(|Free { index, since_ns }| {
            self.listed[index] -= 1;
            TakenConnection {
                index,
                in_time: since_ns <= due_ns,
            }
        });
        (due_ns, taken)
    }

    /// Swaps connection `index`, just offered, with `first`, which becomes free in its place. The times since
    /// which connections are free stay.
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
pub(super) struct TakenConnection {
    pub(super) index: usize,
    /// It was free when the arrival was due.
    pub(super) in_time: bool,
}

impl Worker {
    /// Time at which [`Worker::start_next`] can next begin a request. `u64::MAX` means not before a
    /// connection is free, or never, as in closed loop without think times.
    pub(crate) fn next_start_ns(&self) -> u64 {
        match &self.schedule {
            Some(schedule) if !schedule.free.is_empty() => {
                self.next_sendable_ns().unwrap_or(u64::MAX)
            }
            _ => self.next_thought_ns(),
        }
    }

    /// Begins the oldest due request if there is one and a connection for it. Returns the connection and the
    /// action for it. Open loop only. A driver calls this until it returns None.
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

    /// Offers the room of connection `index`. It takes the oldest due arrivals, so that a driver that
    /// processes many events at once sends between them. Otherwise it is listed as free.
    pub(super) fn offer(&mut self, index: usize, now_ns: u64) {
        let mut offered = 0;
        loop {
            let due = self
                .next_sendable_ns()
                .is_some_and(|due_ns| due_ns <= now_ns);
            let room = self.connections[index].room(now_ns, &self.settings);
            let Some(schedule) = &mut self.schedule else {
                return;
            };
            if room <= schedule.listed[index] as usize {
                return schedule.spread(offered);
            }
            schedule.offer(index, now_ns);
            offered += usize::from(!due);
            if due {
                let Some((due_ns, taken)) = self.take_due() else {
                    return;
                };
                let Some(taken) = taken else {
                    unreachable!("one was offered just now")
                };
                self.schedule
                    .iter_mut()
                    .for_each(|schedule| schedule.swap(index, taken.index));
                self.depart(index, now_ns, (due_ns, taken.in_time));
            }
        }
    }

    /// Takes the oldest arrival, as [`Schedule::take`] does, and counts it as due.
    fn take_due(&mut self) -> Option<(u64, Option<TakenConnection>)> {
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

    /// Due time of the oldest arrival not taken, if it is still to be sent.
    pub(super) fn next_sendable_ns(&self) -> Option<u64> {
        let is_given_up = matches!(self.gate, SlicePart::Draining { sends: false, .. });
        if is_given_up {
            None
        } else {
            self.next_arrival_ns()
        }
    }

    /// Due time of the oldest arrival not taken, if it belongs to this slice.
    pub(super) fn next_arrival_ns(&self) -> Option<u64> {
        let end_ns = match self.gate {
            SlicePart::Sending { stop_ns, .. } => stop_ns,
            SlicePart::Draining { stopped_ns, .. } => stopped_ns,
            SlicePart::Shut | SlicePart::Opening { .. } => return None,
        };
        let due_ns = self.schedule.as_ref()?.due_ns();
        (due_ns < end_ns && self.allowance != Some(0)).then_some(due_ns)
    }

    /// Start of the period in which no request is in flight although one is to be sent, because no connection
    /// takes it.
    pub(super) fn refused_since_ns(&self) -> Option<u64> {
        let there_since_ns = match &self.schedule {
            Some(schedule) if schedule.free.is_empty() => self.next_sendable_ns()?,
            None if self.thinking.is_none() => self.idle_since_ns,
            _ => return None,
        };
        (self.in_flight == 0).then_some(there_since_ns.max(self.idle_since_ns))
    }

    /// Begins the window in open loop. Open connections count as free since before any arrival is due.
    pub(super) fn restart_schedule(&mut self, started_ns: u64) {
        let Some(schedule) = &mut self.schedule else {
            return;
        };
        schedule.restart(started_ns);
        for (index, connection) in self.connections.iter().enumerate() {
            let room = connection.room(started_ns, &self.settings);
            (0..room).for_each(|_| schedule.offer(index, started_ns));
            schedule.spread(room);
        }
    }

    /// Ends the drain: arrivals that were due and not sent are counted as unsent.
    pub(super) fn leave_unsent(&mut self, now_ns: u64) {
        while self.next_arrival_ns().is_some() {
            let Some((due_ns, taken)) = self.take_due() else {
                return;
            };
            let endpoint = self.sampler.draw().endpoint;
            self.tally.leave_unsent(
                endpoint,
                (due_ns, now_ns),
                taken.is_some_and(|taken| taken.in_time),
            );
            if let Some(left) = &mut self.allowance {
                *left -= 1;
            }
        }
    }
}
