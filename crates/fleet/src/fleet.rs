//! Several generators as one: begun together, windows at one agreed instant, one slice made of theirs.
//!
//! What happens to one of them is told and no reason to stop by itself: whether a window without it counts is for the caller to say.
//!
//! There may be a thousand: what is done for each answer must not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use load::{LoadSpec, Slice, Until};

use crate::clock::monotonic_ns;
use crate::merging::Merging;
use crate::remote::Heard;
use crate::{Answer, ClockOffset, FleetError, Order, Ping, Remote, VERSION};

/// Pings for an offset, one after the other.
const PINGS: u64 = 8;
/// Groups of generators that are pinged one after the other: up to so many generators are pinged alone, for answers that come together wait
/// for each other here; a thousand in a row would take a minute over a long way.
const PING_GROUPS_MAX: usize = 64;
/// Answers that may wait to be taken in. Their readers wait then, and whoever writes them.
const HEARD_MAX: usize = 1024;
/// How long a generator may take to begin.
const BEGIN_MAX: Duration = Duration::from_secs(20);
/// How long one may be silent while it is pinged every second.
const SILENCE_MAX: Duration = Duration::from_secs(6);
/// How often it is pinged while a window runs.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked at who is silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time between the order and the agreed begin, at least; beside it, twice the longest way there and back.
const LEAD_MIN_NS: u64 = 50_000_000;

/// Generators that load one service together. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    heard: Receiver<Heard>,
    /// Number of the last window.
    number: u64,
    connect_timeout: Duration,
}

#[derive(Debug)]
struct Member {
    remote: Remote,
    offset: ClockOffset,
    host: String,
    /// When something last came from it, by our clock.
    heard_ns: u64,
    /// Why it is gone, until it is told.
    lost: Option<FleetError>,
    alive: bool,
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

/// One generator's part in a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The generator.
    pub name: String,
    /// What its machine calls itself.
    pub host: String,
    /// How much later than agreed it began, in nanoseconds, by its own clock.
    pub late_ns: u64,
    /// How wrong its begin may be besides, in nanoseconds, because clocks cannot be compared better.
    pub clock_error_ns: u64,
    /// CPU share of its busiest thread, 0 to 1; `None` where nothing was measured.
    pub busiest_share: Option<f64>,
    /// Share of its machine's CPU time that went to others.
    pub steal_share: Option<f64>,
    /// Requests that it sent.
    pub sent: u64,
}

impl Fleet {
    /// Tells each generator its part of the load, and compares clocks. A fleet has one generator for each spec, in order; `remotes` beyond
    /// that are ended.
    ///
    /// # Errors
    /// If any cannot begin: before a load a missing generator is a mistake to be mended, and no misfortune.
    pub fn begin(mut remotes: Vec<Remote>, specs: Vec<LoadSpec>) -> Result<Fleet, FleetError> {
        remotes.truncate(specs.len());
        let connect_timeout = specs.first().map_or(Duration::ZERO, |spec| spec.connect_timeout);
        let (to, heard) = sync_channel(HEARD_MAX);
        let mut members = Vec::with_capacity(remotes.len());
        for (index, (mut remote, spec)) in remotes.into_iter().zip(specs).enumerate() {
            remote.listen(index, to.clone())?;
            remote.tell(&Order::Begin { version: VERSION, spec: Box::new(spec) })?;
            let offset = ClockOffset { ns: 0, error_ns: 0 };
            let (host, heard_ns) = (String::new(), monotonic_ns());
            members.push(Member { remote, offset, host, heard_ns, lost: None, alive: true });
        }
        let mut fleet = Fleet { members, heard, number: 0, connect_timeout };
        fleet.await_ready()?;
        fleet.compare_clocks()?;
        Ok(fleet)
    }

    /// Names of the generators that are still there.
    pub fn alive(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.alive).map(|member| member.remote.name.as_str())
    }

    /// How wrong the agreed begin is at most for the worst of them, in nanoseconds.
    pub fn clock_error_ns_max(&self) -> u64 {
        self.members.iter().map(|member| member.offset.error_ns).max().unwrap_or(0)
    }

    /// Runs one window on all generators that are there. `stopped` is asked now and then, and ends the window early with the fleet.
    ///
    /// `Until::Requests(n)` is n requests at each generator.
    pub fn run(&mut self, until: Until, stopped: &dyn Fn() -> bool) -> Ran {
        self.number += 1;
        let number = self.number;
        let mut waited: BTreeSet<usize> = self.tell_all(|_| Order::Prepare { number, until });
        let prepared = |answer: &Answer| matches!(answer, Answer::Prepared { number: of } if *of == number);
        self.gather(&mut waited, self.connect_timeout + SILENCE_MAX, stopped, |_, _, answer| {
            prepared(&answer)
        });
        let start_ns = monotonic_ns() + LEAD_MIN_NS + 4 * self.clock_error_ns_max();
        let offsets: Vec<ClockOffset> = self.members.iter().map(|member| member.offset).collect();
        let mut waited =
            self.tell_all(|index| Order::Run { number, start_at_ns: offsets[index].theirs(start_ns) });
        let mut merging = Merging::default();
        self.gather(&mut waited, Duration::MAX, stopped, |index, member, answer| match answer {
            Answer::Slice { number: of, late_ns, steal_share, mut slice } if of == number => {
                slice.started_ns = offsets[index].ours(slice.started_ns);
                merging.take(index, member.part(late_ns, steal_share, &slice), *slice);
                true
            }
            _ => false,
        });
        let (slice, parts) = merging.finish();
        let lost = self.members.iter_mut().filter_map(|member| member.lost.take()).collect();
        Ran { slice, parts, lost }
    }

    fn await_ready(&mut self) -> Result<(), FleetError> {
        let mut waited: BTreeSet<usize> = (0..self.members.len()).collect();
        let mut foreign = None;
        self.gather(&mut waited, BEGIN_MAX, &|| false, |_, member, answer| match answer {
            Answer::Ready { version, proofload, host, .. } => {
                member.host = host;
                if version != VERSION {
                    let name = member.remote.name.clone();
                    foreign =
                        Some(FleetError::Version { name, proofload, found: version, expected: VERSION });
                }
                true
            }
            _ => false,
        });
        foreign.map_or(Ok(()), Err)?;
        self.first_lost()
    }

    fn compare_clocks(&mut self) -> Result<(), FleetError> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let group = all.len().div_ceil(PING_GROUPS_MAX).max(1);
        all.chunks(group).for_each(|group| self.compare_clocks_of(group));
        self.first_lost()
    }

    fn compare_clocks_of(&mut self, group: &[usize]) {
        let mut pings: BTreeMap<usize, Vec<Ping>> = BTreeMap::new();
        for number in 0..PINGS {
            let tell = |index: &usize| {
                let sent_ns = monotonic_ns();
                self.tell(*index, &Order::Ping(number));
                (*index, sent_ns)
            };
            let sent_ns: BTreeMap<usize, u64> = group.iter().map(tell).collect();
            let mut waited = group.iter().copied().collect();
            self.gather(&mut waited, SILENCE_MAX, &|| false, |index, member, answer| match answer {
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

    fn first_lost(&mut self) -> Result<(), FleetError> {
        self.members.iter_mut().find_map(|member| member.lost.take()).map_or(Ok(()), Err)
    }

    /// Tells all that are there, and gives those who were told.
    fn tell_all(&mut self, order: impl Fn(usize) -> Order) -> BTreeSet<usize> {
        (0..self.members.len()).for_each(|index| self.tell(index, &order(index)));
        (0..self.members.len()).filter(|index| self.members[*index].alive).collect()
    }

    fn tell(&mut self, index: usize, order: &Order) {
        let member = &mut self.members[index];
        if member.alive
            && let Err(error) = member.remote.tell(order)
        {
            member.lose(error);
        }
    }

    /// Waits until each of `waited` has given what `take` accepts, is lost, or has been waited for too long. Those who are silent while
    /// they are pinged are lost.
    fn gather(
        &mut self,
        waited: &mut BTreeSet<usize>,
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
                Ok(Heard { from, at_ns, answer }) => {
                    let member = &mut self.members[from];
                    member.heard_ns = at_ns;
                    let given = member.heard(answer, waited.contains(&from));
                    if given.is_some_and(|answer| take(from, member, answer)) || !member.alive {
                        waited.remove(&from);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
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
            for index in waited.iter() {
                self.members[*index].lose_if_silent(now_ns, began_ns, longest);
            }
            waited.retain(|index| self.members[*index].alive);
            if now_ns.saturating_sub(pinged_ns) > PING_EVERY.as_nanos() as u64 {
                pinged_ns = now_ns;
                let numbers: Vec<usize> = waited.iter().copied().collect();
                numbers.into_iter().for_each(|index| self.tell(index, &Order::Ping(u64::MAX)));
            }
        }
    }
}

impl Member {
    fn part(&self, late_ns: u64, steal_share: Option<f64>, slice: &Slice) -> Part {
        let times = slice.thread_cpu_ns.iter().zip(&slice.thread_wall_ns).filter(|(_, wall)| **wall > 0);
        Part {
            name: self.remote.name.clone(),
            host: self.host.clone(),
            late_ns,
            clock_error_ns: self.offset.error_ns,
            busiest_share: times.map(|(cpu, wall)| *cpu as f64 / *wall as f64).reduce(f64::max),
            steal_share,
            sent: slice.sent,
        }
    }

    /// What came from it, if that is an answer and not its end.
    fn heard(&mut self, answer: io::Result<Option<Answer>>, waited: bool) -> Option<Answer> {
        match answer {
            Ok(Some(Answer::Failed { message, by_specification })) => {
                let name = self.remote.name.clone();
                self.lose(FleetError::Refused { name, message, by_specification });
            }
            Ok(Some(Answer::Ended) | None) => self.lose_quietly(waited),
            Ok(Some(answer)) => return Some(answer),
            Err(error) => self.lose(self.remote.broken(error)),
        }
        None
    }

    fn lose(&mut self, error: FleetError) {
        self.alive = false;
        self.lost.get_or_insert(error);
    }

    /// One that ends while nothing is asked of it is missed when something is.
    fn lose_quietly(&mut self, waited: bool) {
        let when = if waited { "before it had answered" } else { "between two windows" };
        self.lose(FleetError::Gone { name: self.remote.name.clone(), when });
    }

    fn lose_if_silent(&mut self, now_ns: u64, began_ns: u64, longest: Duration) {
        let silent = Duration::from_nanos(now_ns.saturating_sub(self.heard_ns));
        let waited = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        let (limit, when) = if silent > SILENCE_MAX {
            (SILENCE_MAX, "while it was pinged every second")
        } else if waited > longest {
            (longest, "with what was asked of it")
        } else {
            return;
        };
        let name = self.remote.name.clone();
        self.lose(FleetError::Silent { name, seconds: limit.as_secs(), when });
    }

    /// It may be gone already, and then there is nobody to tell.
    fn end(&mut self) {
        let _ = self.remote.tell(&Order::End);
        self.alive = false;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::end);
    }
}
