//! Several generators as one: given their parts of a load, windows at one agreed instant, one slice made of theirs.
//!
//! A fleet outlives what it loads: it is given one load after another. What happens to one of its generators is told and no reason to stop
//! by itself: whether a window without it counts is for the caller to say, and so is whether another takes its place.
//!
//! There may be a thousand: what is done for each answer must not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use load::{LoadSpec, Until};
use model::Counts;

use crate::generators::beat::Beat;
use crate::generators::clock::monotonic_ns;
use crate::generators::member::{Member, Part, SILENCE_MAX};
use crate::generators::merging::Merging;
use crate::generators::remote::Heard;
use crate::generators::{Answer, ClockOffset, FleetError, Order, Ping, Remote, VERSION};

/// Pings for an offset, one after the other.
const PINGS: u64 = 8;
/// Groups of generators that are pinged one after the other, at most: a thousand in a row would take a minute over a long way.
const PING_GROUPS_MAX: usize = 64;
/// Generators in a group, at least. Answers that come together wait for each other here, and seem to come from farther away: the
/// more, the less is known of clocks.
const PINGED_TOGETHER: usize = 4;
/// Answers that may wait to be taken in. Their readers wait then, and whoever writes them.
const HEARD_MAX: usize = 1024;
/// How long a generator may take to say that it is there, to begin a load, and to end one.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is pinged while it is waited for.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often all are told that we are there. One that hears nothing for [`crate::generators::Host::lease`] ends.
const BEAT: Duration = Duration::from_secs(10);
/// How often it is looked at who is silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between the order and the agreed begin, at least; beside it, twice the longest way there and back.
const LEAD_MIN_NS: u64 = 50_000_000;

/// Generators that load one service together. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    /// By the number of its channel, the place of each.
    places: BTreeMap<u64, usize>,
    heard: Receiver<Heard>,
    /// For those who are still to come.
    to: SyncSender<Heard>,
    /// Number of the last channel.
    channels: u64,
    /// Number of the last window.
    windows: u64,
    connect_timeout: Duration,
    beat: Beat,
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
    pub counts: Counts,
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
        let (to, heard) = sync_channel(HEARD_MAX);
        let unheard =
            |source| remotes.first().map(|first| first.broken(source)).into_iter().collect::<Vec<_>>();
        let beat = Beat::every(BEAT).map_err(unheard)?;
        let (channels, windows, connect_timeout) = (0, 0, Duration::ZERO);
        let (members, places) = (Vec::with_capacity(remotes.len()), BTreeMap::new());
        let mut fleet = Fleet { members, places, heard, to, channels, windows, connect_timeout, beat };
        for remote in remotes {
            let member = fleet.greeted(remote);
            fleet.places.insert(fleet.channels, fleet.members.len());
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
        let group = all.len().div_ceil(PING_GROUPS_MAX).max(PINGED_TOGETHER);
        all.chunks(group).for_each(|group| self.compare_clocks_of(group));
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
        let mut merging = Merging::default();
        self.gather(waited, Duration::MAX, stopped, |index, member, answer| match answer {
            Answer::Slice { number: of, late_ns, steal_share, mut counts } if of == number => {
                counts.started_ns = offsets[index].ours(counts.started_ns);
                merging.take(index, member.part(late_ns, steal_share, &counts), *counts);
                true
            }
            _ => false,
        });
        let (counts, parts) = merging.finish();
        Ran { counts, parts, lost: self.take_lost() }
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
        self.places.retain(|_, place| *place != index);
        self.members[index] = self.greeted(remote);
        self.places.insert(self.channels, index);
        self.await_ready(BTreeSet::from([index]));
        self.members[index].lost.take().map_or(Ok(()), Err)
    }

    /// A channel whose answers are read from now on, and at which a generator was asked whether it is there.
    fn greeted(&mut self, mut remote: Remote) -> Member {
        self.channels += 1;
        let listens = remote.listen(self.channels, self.to.clone());
        remote.hears(&self.beat);
        let mut member = Member::new(remote);
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

    fn compare_clocks_of(&mut self, group: &[usize]) {
        let mut pings: BTreeMap<usize, Vec<Ping>> = BTreeMap::new();
        for number in 0..PINGS {
            let tell = |index: &usize| {
                let sent_ns = monotonic_ns();
                self.members[*index].tell(&Order::Ping(number));
                (*index, sent_ns)
            };
            let sent_ns: BTreeMap<usize, u64> = group.iter().map(tell).collect();
            let waited = group.iter().copied().collect();
            self.gather(waited, SILENCE_MAX, &|| false, |index, member, answer| match answer {
                Answer::Pong { ping, clock_ns } if ping == number => {
                    let ping = Ping { sent_ns: sent_ns[&index], clock_ns, received_ns: member.heard_ns };
                    pings.entry(index).or_default().push(ping);
                    true
                }
                _ => false,
            });
        }
        for (index, pings) in pings {
            if let Some(offset) = ClockOffset::of(&pings) {
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

    /// Takes in what came: from whom, and what, if that is an answer. Nobody's word is that of one whose place was taken.
    fn take_in(&mut self, heard: Heard, waited: &BTreeSet<usize>) -> Option<(usize, Option<Answer>)> {
        let index = *self.places.get(&heard.from)?;
        let member = &mut self.members[index];
        member.heard_ns = heard.at_ns;
        Some((index, member.heard(heard.answer, waited.contains(&index))))
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
        let (mut looked_ns, mut pinged_ns) = (began_ns, began_ns);
        waited.retain(|index| self.members[*index].alive);
        waited.iter().for_each(|index| self.members[*index].heard_ns = began_ns);
        while !waited.is_empty() {
            match self.heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) => {
                    let came = self.take_in(heard, &waited);
                    let (index, answer) = came.unzip();
                    let taken = index.zip(answer.flatten());
                    let done =
                        taken.is_some_and(|(index, answer)| take(index, &mut self.members[index], answer));
                    // Who has answered, and who never will.
                    if let Some(index) = index.filter(|index| done || !self.members[*index].alive) {
                        waited.remove(&index);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Never, for we hold a sender ourselves; then nobody else would answer.
                Err(RecvTimeoutError::Disconnected) => {
                    waited.iter().for_each(|index| self.members[*index].lose_quietly(true));
                    waited.clear();
                }
            }
            if stopped() {
                waited.iter().for_each(|index| self.members[*index].end());
                waited.clear();
            }
            let now_ns = monotonic_ns();
            if now_ns.saturating_sub(looked_ns) < LOOK_EVERY.as_nanos() as u64 {
                continue;
            }
            looked_ns = now_ns;
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
