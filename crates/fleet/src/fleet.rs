//! Several generators as one: given their parts of a load, windows at one agreed instant, one slice made of theirs.
//!
//! A fleet outlives what it loads: it is given one load after another. What happens to one of its generators is told and no reason to stop
//! by itself: whether a window without it counts is for the caller to say, and so is whether another takes its place.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use load::{LoadSpec, Slice, Until};

use crate::clock::monotonic_ns;
use crate::member::{Member, Part, SILENCE_MAX};
use crate::remote::Heard;
use crate::{Answer, ClockOffset, FleetError, Order, Ping, Remote, VERSION};

/// Pings for an offset, one after the other.
const PINGS: u64 = 8;
/// Generators that are pinged at the same time: of more the answers would wait for each other, and seem to come from farther away.
const PINGED_TOGETHER: usize = 16;
/// How long a generator may take to say that it is there, to begin a load, and to end one.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is pinged while it is waited for.
const PING_EVERY: Duration = Duration::from_secs(1);
/// Time between the order and the agreed begin, at least; beside it, twice the longest way there and back.
const LEAD_MIN_NS: u64 = 50_000_000;

/// Generators that load one service together. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    heard: Receiver<Heard>,
    /// For those who are still to come.
    to: Sender<Heard>,
    /// Number of the last channel.
    channels: u64,
    /// Number of the last window.
    windows: u64,
    connect_timeout: Duration,
}

/// A generator as it presented itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    /// Where it runs, as people know it.
    pub name: String,
    /// What its machine calls itself.
    pub host: String,
    /// Processors that it may use.
    pub processors: u32,
}

/// What came of a window.
#[derive(Debug)]
pub struct Ran {
    /// All that arrived, as of one generator; times are those of our clock.
    pub slice: Slice,
    /// What each generator had to do with it, in the order of the generators; those that were lost are missing.
    pub parts: Vec<Part>,
    /// Generators that were lost in it.
    pub lost: Vec<FleetError>,
}

impl Fleet {
    /// Takes up these channels, and waits until a generator says at each of them that it is there. Clocks are not compared yet, and nothing
    /// is to be loaded.
    ///
    /// # Errors
    /// All that are not there: before a load a missing generator is a mistake to be mended, and no misfortune.
    pub fn connect(remotes: Vec<Remote>) -> Result<Fleet, Vec<FleetError>> {
        let (to, heard) = channel();
        let (channels, windows, connect_timeout) = (0, 0, Duration::ZERO);
        let mut fleet = Fleet { members: Vec::new(), heard, to, channels, windows, connect_timeout };
        for remote in remotes {
            let member = fleet.greeted(remote);
            fleet.members.push(member);
        }
        fleet.await_ready((0..fleet.members.len()).collect());
        fleet.none_lost().map(|()| fleet)
    }

    /// Who is in it, in order.
    pub fn generators(&self) -> Vec<Generator> {
        let told = |member: &Member| Generator {
            name: member.name(),
            host: member.host.clone(),
            processors: member.processors,
        };
        self.members.iter().map(told).collect()
    }

    /// Compares clocks, anew each time: they drift apart.
    ///
    /// # Errors
    /// Generators that were lost by now.
    pub fn compare_clocks(&mut self) -> Result<(), Vec<FleetError>> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        for together in all.chunks(PINGED_TOGETHER) {
            self.compare_clocks_of(together);
        }
        self.none_lost()
    }

    /// Gives each generator its part of a load, one spec each in their order, in place of what they had before.
    ///
    /// # Errors
    /// Generators that cannot begin it, and those that were lost by now.
    pub fn give(&mut self, specs: Vec<LoadSpec>) -> Result<(), Vec<FleetError>> {
        self.connect_timeout = specs.first().map_or(Duration::ZERO, |spec| spec.connect_timeout);
        let mut waited = BTreeSet::new();
        for (index, spec) in specs.into_iter().enumerate().take(self.members.len()) {
            self.members[index].tell(&Order::Begin { spec: Box::new(spec) });
            waited.extend(Some(index).filter(|index| self.members[*index].alive));
        }
        self.gather(waited, PATIENCE, &|| false, |_, _, answer| matches!(answer, Answer::Begun));
        self.none_lost()
    }

    /// Has all connections closed, and waits until they are. Whoever is lost meanwhile is told of by the next call that can.
    pub fn rest(&mut self) {
        let waited = self.tell_all(|_| Order::Rest);
        self.gather(waited, PATIENCE, &|| false, |_, _, answer| matches!(answer, Answer::Resting));
    }

    /// How wrong the agreed begin is at most for the worst of them, in nanoseconds.
    pub fn clock_error_ns_max(&self) -> u64 {
        self.members.iter().map(|member| member.offset.error_ns).max().unwrap_or(0)
    }

    /// Runs one window on all generators that are there. `stopped` is asked now and then, and ends the window early with the fleet.
    ///
    /// `Until::Requests(n)` is n requests at each generator.
    pub fn run(&mut self, until: Until, stopped: &dyn Fn() -> bool) -> Ran {
        self.windows += 1;
        let number = self.windows;
        let waited = self.tell_all(|_| Order::Prepare { number, until });
        let prepared = |answer: &Answer| matches!(answer, Answer::Prepared { number: of } if *of == number);
        self.gather(waited, self.connect_timeout + SILENCE_MAX, stopped, |_, _, answer| prepared(&answer));
        let start_ns = monotonic_ns() + LEAD_MIN_NS + 4 * self.clock_error_ns_max();
        let offsets: Vec<ClockOffset> = self.members.iter().map(|member| member.offset).collect();
        let waited =
            self.tell_all(|index| Order::Run { number, start_at_ns: offsets[index].theirs(start_ns) });
        let mut arrived = Vec::new();
        self.gather(waited, Duration::MAX, stopped, |index, member, answer| match answer {
            Answer::Slice { number: of, late_ns, steal_share, slice } if of == number => {
                arrived.push((index, member.part(late_ns, steal_share, &slice), slice));
                true
            }
            _ => false,
        });
        arrived.sort_by_key(|(index, ..)| *index);
        let (mut slice, mut parts) = (Slice::default(), Vec::new());
        for (index, part, mut of_one) in arrived {
            of_one.started_ns = offsets[index].ours(of_one.started_ns);
            slice.absorb(*of_one);
            parts.push(part);
        }
        Ran { slice, parts, lost: self.take_lost() }
    }

    /// Those that are gone, by their places, once whatever came from any is heard.
    pub fn missing(&mut self) -> Vec<usize> {
        while let Ok(heard) = self.heard.try_recv() {
            self.take_in(heard, &BTreeSet::new());
        }
        (0..self.members.len()).filter(|index| !self.members[*index].alive).collect()
    }

    /// Why generators are gone of which nobody was told yet.
    pub fn take_lost(&mut self) -> Vec<FleetError> {
        self.members.iter_mut().filter_map(|member| member.lost.take()).collect()
    }

    /// Puts another in the place of one that is gone.
    ///
    /// # Errors
    /// If it is not there either; the place stays empty then.
    pub fn replace(&mut self, index: usize, remote: Remote) -> Result<(), FleetError> {
        let member = self.greeted(remote);
        self.members[index] = member;
        self.await_ready(BTreeSet::from([index]));
        self.members[index].lost.take().map_or(Ok(()), Err)
    }

    /// A channel whose answers are read from now on, and at which a generator was asked whether it is there.
    fn greeted(&mut self, mut remote: Remote) -> Member {
        self.channels += 1;
        let listens = remote.listen(self.channels, self.to.clone());
        let mut member = Member::new(self.channels, remote);
        match listens {
            Ok(()) => member.tell(&Order::Hello { version: VERSION }),
            Err(error) => member.lose(error),
        }
        member
    }

    fn await_ready(&mut self, mut waited: BTreeSet<usize>) {
        waited.retain(|index| self.members[*index].alive);
        self.gather(waited, PATIENCE, &|| false, |_, member, answer| match answer {
            Answer::Ready { version, proofload, host, processors } => {
                (member.host, member.processors) = (host, processors);
                if version != VERSION {
                    let name = member.name();
                    member.lose(FleetError::Version { name, proofload, found: version, expected: VERSION });
                }
                true
            }
            _ => false,
        });
    }

    fn compare_clocks_of(&mut self, indices: &[usize]) {
        let mut pings: Vec<Vec<Ping>> = vec![Vec::new(); self.members.len()];
        for number in 0..PINGS {
            let mut sent_ns = vec![0; self.members.len()];
            for &index in indices {
                sent_ns[index] = monotonic_ns();
                self.members[index].tell(&Order::Ping(number));
            }
            let waited = indices.iter().copied().filter(|index| self.members[*index].alive).collect();
            self.gather(waited, SILENCE_MAX, &|| false, |index, member, answer| match answer {
                Answer::Pong { ping, clock_ns } if ping == number => {
                    let (sent_ns, received_ns) = (sent_ns[index], member.heard_ns);
                    pings[index].push(Ping { sent_ns, clock_ns, received_ns });
                    true
                }
                _ => false,
            });
        }
        for &index in indices {
            if let Some(offset) = ClockOffset::of(&pings[index]) {
                self.members[index].offset = offset;
            }
        }
    }

    fn none_lost(&mut self) -> Result<(), Vec<FleetError>> {
        let lost = self.take_lost();
        if lost.is_empty() { Ok(()) } else { Err(lost) }
    }

    /// Tells all that are there, and gives those who were told.
    fn tell_all(&mut self, order: impl Fn(usize) -> Order) -> BTreeSet<usize> {
        self.members.iter_mut().enumerate().for_each(|(index, member)| member.tell(&order(index)));
        (0..self.members.len()).filter(|index| self.members[*index].alive).collect()
    }

    /// Takes in what came: from whom, and what, if that is an answer.
    fn take_in(&mut self, heard: Heard, waited: &BTreeSet<usize>) -> Option<(usize, Answer)> {
        // One whose place was taken may still have said its last word.
        let index = self.members.iter().position(|member| member.id == heard.from)?;
        self.members[index].heard_ns = heard.at_ns;
        Some((index, self.members[index].heard(heard.answer, waited.contains(&index))?))
    }

    /// Waits until each of `waited` has given what `take` accepts, is lost, or has been waited for too long. Those who are silent while
    /// they are pinged are lost.
    fn gather(
        &mut self,
        mut waited: BTreeSet<usize>,
        longest: Duration,
        stopped: &dyn Fn() -> bool,
        mut take: impl FnMut(usize, &mut Member, Answer) -> bool,
    ) {
        let began_ns = monotonic_ns();
        let mut pinged_ns = began_ns;
        waited.iter().for_each(|index| self.members[*index].heard_ns = began_ns);
        while !waited.is_empty() {
            match self.heard.recv_timeout(PING_EVERY / 10) {
                Ok(heard) => {
                    if let Some((index, answer)) = self.take_in(heard, &waited)
                        && take(index, &mut self.members[index], answer)
                    {
                        waited.remove(&index);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Never, for we hold a sender ourselves; then nobody else would answer.
                Err(RecvTimeoutError::Disconnected) => {
                    waited.iter().for_each(|index| self.members[*index].lose_quietly(true));
                }
            }
            if stopped() {
                waited.iter().for_each(|index| self.members[*index].end());
                waited.clear();
            }
            let now_ns = monotonic_ns();
            for index in &waited {
                self.members[*index].lose_if_silent(now_ns, began_ns, longest);
            }
            waited.retain(|index| self.members[*index].alive);
            if now_ns.saturating_sub(pinged_ns) > PING_EVERY.as_nanos() as u64 {
                pinged_ns = now_ns;
                waited.iter().for_each(|index| self.members[*index].tell(&Order::Ping(u64::MAX)));
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::end);
    }
}
