//! Several generators as one: given their parts of a load, windows at one agreed instant, one slice made of theirs.
//!
//! A fleet outlives what it loads: it gets one load after another. When a generator is lost the others go on: the caller decides whether a
//! window without it counts, and whether another takes its place.
//!
//! There may be a thousand: what is done for each response must not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use load::{Arrivals, LoadSpec, Until, Users};
use machine::clock::monotonic_ns;
use model::{ConnectedGenerator, Counts, GeneratorPart, GeneratorUse, Windows};

use crate::Channel;
use crate::generators::ClockOffset;
use crate::protocol::{
    AgentConnection, AgentRequest, AgentResponse, FrameMessage, GeneratorRequest,
    GeneratorResponse, Heartbeat, QUEUE_MAX, VERSION, other_version,
};

/// Pings for an offset, one after the other.
const PINGS: u64 = 8;
/// Groups of generators that are pinged one after the other, at most: a thousand in a row would take a minute over a long way.
const PING_GROUPS_MAX: usize = 64;
/// Generators in a group, at least. Responses that come together wait for each other here, and seem to come from farther away: the
/// more, the less is known of clocks.
const PINGED_TOGETHER: usize = 4;
/// How long a generator may take to say that it is there, to begin a load, and to end one.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is pinged while it is waited for.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often late ones are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a generator may take to say how far it came in a window that is stopped.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Time between the request and the agreed begin, at least; beside it, twice the longest way there and back.
const LEAD_MIN_NS: u64 = 50_000_000;

/// Generators that load one service together. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    /// By the number of its channel, the place of each.
    places: BTreeMap<u64, usize>,
    messages: Receiver<FrameMessage>,
    /// For connections that are still to come.
    to: SyncSender<FrameMessage>,
    /// Number of the last channel.
    channels: u64,
    /// Number of the last window.
    windows: u64,
    /// How long connections may take to open before a window, log-ins included.
    opening_max: Duration,
    /// How long a request may take, by the load.
    timeout: Duration,
    /// What requests are dealt to: each generator's connections, or at a rate its threads.
    takers: Vec<u64>,
    heartbeat: Heartbeat,
}

/// Why a fleet could not begin, or a generator is lost.
#[derive(Debug, thiserror::Error)]
#[error("generator {generator}{what}")]
pub struct FleetError {
    /// The generator.
    pub generator: String,
    what: String,
    /// Whether it refused a request, and did not just go.
    pub is_refusal: bool,
}

impl FleetError {
    fn new(generator: String, what: String) -> FleetError {
        FleetError {
            generator,
            what,
            is_refusal: false,
        }
    }
}

/// What came of a window.
#[derive(Debug)]
pub struct FleetWindow {
    /// All that arrived, as of one generator; times are those of our clock.
    pub counts: Counts,
    /// What each generator had to do with it, in the order of the generators; those that were lost are missing.
    pub parts: Vec<GeneratorPart>,
    /// Generators that were lost in it.
    pub lost: Vec<FleetError>,
}

impl Fleet {
    /// Takes these channels, and waits until a generator says at each of them that it is there. Clocks are not compared yet, and nothing
    /// is to be loaded.
    ///
    /// # Errors
    /// All that are not there: before a load a missing generator is a mistake to be mended, and no misfortune.
    pub fn connect(channels: Vec<Channel>) -> Result<Fleet, Vec<FleetError>> {
        let (to, messages) = sync_channel(QUEUE_MAX);
        let first = channels
            .first()
            .map(|channel| channel.name.clone())
            .unwrap_or_default();
        let heartbeat =
            Heartbeat::new().map_err(|error| vec![FleetError::new(first, format!(": {error}"))])?;
        let mut fleet = Fleet {
            members: Vec::with_capacity(channels.len()),
            places: BTreeMap::new(),
            messages,
            to,
            channels: 0,
            windows: 0,
            opening_max: Duration::ZERO,
            timeout: Duration::ZERO,
            takers: Vec::new(),
            heartbeat,
        };
        for channel in channels {
            let member = fleet.greeted(channel).map_err(|error| vec![error])?;
            fleet.places.insert(fleet.channels, fleet.members.len());
            fleet.members.push(member);
        }
        fleet.await_ready((0..fleet.members.len()).collect());
        fleet.none_lost().map(|()| fleet)
    }

    /// All of them, in order, as they presented themselves.
    pub fn generators(&self) -> Vec<ConnectedGenerator> {
        self.members
            .iter()
            .map(|member| member.generator.clone())
            .collect()
    }

    /// Processes of generators on this machine.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.members
            .iter()
            .filter_map(|member| member.connection.process)
    }

    /// Compares clocks, anew each time: they drift apart.
    ///
    /// # Errors
    /// Generators that were lost by now.
    pub fn compare_clocks(&mut self) -> Result<(), Vec<FleetError>> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let group = all.len().div_ceil(PING_GROUPS_MAX).max(PINGED_TOGETHER);
        all.chunks(group)
            .for_each(|group| self.compare_clocks_of(group));
        self.none_lost()
    }

    /// Gives each generator its part of a load, one spec each in their order, in place of what they had before.
    ///
    /// # Errors
    /// Generators that cannot begin it, and those that were lost by now.
    pub fn give(&mut self, specs: Vec<LoadSpec>) -> Result<(), Vec<FleetError>> {
        let opening_max = |spec: &LoadSpec| {
            let log_in = if spec.users == Users::default() {
                Duration::ZERO
            } else {
                spec.timeout
            };
            spec.connect_timeout.saturating_add(log_in)
        };
        let longest = specs.first().map(|spec| (opening_max(spec), spec.timeout));
        (self.opening_max, self.timeout) = longest.unwrap_or_default();
        let takers = |spec: &LoadSpec| match spec.arrivals {
            Arrivals::Closed => spec.connections,
            Arrivals::Open { .. } => spec.threads,
        };
        self.takers = specs.iter().map(|spec| takers(spec).into()).collect();
        let mut waited = BTreeSet::new();
        for (index, spec) in specs.into_iter().enumerate().take(self.members.len()) {
            self.members[index].send(&AgentRequest::Generator(GeneratorRequest::Begin {
                spec: Box::new(spec),
            }));
            waited.insert(index);
        }
        self.gather(waited, PATIENCE, &|| false, |_, _, response| {
            matches!(response, AgentResponse::Generator(GeneratorResponse::Begun))
        });
        self.none_lost()
    }

    /// Has all connections closed, and waits until they are. The next call that can returns those that are lost meanwhile.
    pub fn rest(&mut self) {
        let waited = self.send_all(|_| GeneratorRequest::Rest);
        self.gather(waited, PATIENCE, &|| false, |_, _, response| {
            matches!(
                response,
                AgentResponse::Generator(GeneratorResponse::Resting)
            )
        });
    }

    /// How far the clock of each was ahead of ours when they were compared last, in order.
    pub fn clocks(&self) -> impl Iterator<Item = ClockOffset> {
        self.members.iter().map(|member| member.offset)
    }

    /// What each of them has to do of a window, as much as would fall to its connections, or threads, if all were one.
    fn dealt(&self, until: Until) -> Vec<Until> {
        let Some(total) = until.requests() else {
            return vec![until; self.takers.len()];
        };
        let all = self.takers.iter().sum::<u64>().max(1);
        let mut first = 0;
        let part = |takers: &u64| {
            let more = (total % all).saturating_sub(first).min(*takers);
            first += takers;
            Until::Requests(total / all * takers + more)
        };
        self.takers.iter().map(part).collect()
    }

    /// Has connections opened that are missing for the window that [`Fleet::run`] runs next.
    pub fn prepare(&mut self, until: Until, stopped: &dyn Fn() -> bool) {
        self.windows += 1;
        let number = self.windows;
        let parts = self.dealt(until);
        let part = |index: usize| parts.get(index).copied().unwrap_or(until);
        let waited = self.send_all(|index| GeneratorRequest::Prepare {
            number,
            until: part(index),
        });
        self.gather(waited, self.opening_max.saturating_add(SILENCE_MAX), stopped, |_, _, response| {
            matches!(response, AgentResponse::Generator(GeneratorResponse::Prepared { number: of }) if of == number)
        });
    }

    /// Runs the window that was [prepared](Fleet::prepare) on all generators that are there. `stopped` is asked now and then, and ends the
    /// window early; one that does not say then how far it came is ended.
    ///
    /// `Until::Requests(n)` is n requests at all of them together.
    pub fn run(&mut self, until: Until, stopped: &dyn Fn() -> bool) -> FleetWindow {
        let number = self.windows;
        let clock_error_ns = self
            .clocks()
            .map(|offset| offset.error_ns)
            .max()
            .unwrap_or(0);
        let lead_ns = LEAD_MIN_NS + 4 * clock_error_ns;
        let start_ns = monotonic_ns() + lead_ns;
        let longest = match until {
            Until::Elapsed(window) => {
                (Duration::from_nanos(lead_ns) + window + PATIENCE).saturating_add(self.timeout)
            }
            // How long requests take is the service's matter.
            Until::Requests(_) => Duration::MAX,
        };
        let offsets: Vec<ClockOffset> = self.clocks().collect();
        let waited = self.send_all(|index| GeneratorRequest::Run {
            number,
            start_at_ns: offsets[index].theirs(start_ns),
        });
        let (mut sum, mut arrived) = (None::<Counts>, BTreeMap::new());
        self.gather(
            waited,
            longest,
            stopped,
            |index, member, response| match response {
                AgentResponse::Generator(GeneratorResponse::Slice {
                    number: of,
                    late_ns,
                    steal_share,
                    mut counts,
                }) if of == number && !arrived.contains_key(&index) => {
                    counts.started_ns = offsets[index].ours(counts.started_ns);
                    let part = member.part(late_ns, steal_share, &counts);
                    let driver = counts.generator.driver.clone();
                    let threads = GeneratorUse {
                        driver,
                        ..GeneratorUse::default()
                    };
                    arrived.insert(
                        index,
                        (part, std::mem::replace(&mut counts.generator, threads)),
                    );
                    // At once: what grows with the number of generators is a part and a thread's times.
                    match &mut sum {
                        Some(sum) => sum.merge(*counts, Windows::Parallel),
                        None => sum = Some(*counts),
                    }
                    true
                }
                _ => false,
            },
        );
        // Threads and parts are in the order of the generators, whoever came first.
        let (mut counts, mut parts) = (sum.unwrap_or_default(), Vec::with_capacity(arrived.len()));
        for (part, threads) in arrived.into_values() {
            // What moved the bytes is merged as it came.
            let GeneratorUse {
                driver: _,
                cpu_ns,
                run_delay_ns,
                wall_ns,
            } = threads;
            counts.generator.cpu_ns.extend(cpu_ns);
            counts.generator.run_delay_ns.extend(run_delay_ns);
            counts.generator.wall_ns.extend(wall_ns);
            parts.push(part);
        }
        FleetWindow {
            counts,
            parts,
            lost: self.take_lost(),
        }
    }

    /// Those that are gone, by their places, once whatever came from any is taken in.
    pub fn missing(&mut self) -> Vec<usize> {
        while let Ok(message) = self.messages.try_recv() {
            self.take_in(message, &BTreeSet::new());
        }
        (0..self.members.len())
            .filter(|index| !self.members[*index].alive)
            .collect()
    }

    /// Why generators are gone, each once.
    pub fn take_lost(&mut self) -> Vec<FleetError> {
        self.members
            .iter_mut()
            .filter_map(|member| member.lost.take())
            .collect()
    }

    /// Puts another in the place of one that is gone, of which nothing is left then.
    ///
    /// # Errors
    /// If it is not there either; the place stays empty then.
    pub fn replace(&mut self, index: usize, channel: Channel) -> Result<(), FleetError> {
        self.places.retain(|_, place| *place != index);
        self.members[index] = self.greeted(channel)?;
        self.places.insert(self.channels, index);
        self.await_ready(BTreeSet::from([index]));
        self.members[index].lost.take().map_or(Ok(()), Err)
    }

    /// A channel whose responses are read from now on, and that got a greeting.
    fn greeted(&mut self, channel: Channel) -> Result<Member, FleetError> {
        self.channels += 1;
        let name = channel.name.clone();
        let connection =
            AgentConnection::open(channel, self.channels, self.to.clone(), &self.heartbeat);
        let mut member =
            Member::new(connection.map_err(|error| FleetError::new(name, format!(": {error}")))?);
        member.send(&AgentRequest::Hello { version: VERSION });
        Ok(member)
    }

    fn await_ready(&mut self, waited: BTreeSet<usize>) {
        self.gather(
            waited,
            PATIENCE,
            &|| false,
            |_, member, response| match response {
                AgentResponse::Ready {
                    version,
                    proofload,
                    host,
                    processors,
                } => {
                    (member.generator.host, member.generator.processors) = (host, processors);
                    if version != VERSION {
                        member.lose(format!(": {}", other_version(version, &proofload)), false);
                    }
                    true
                }
                _ => false,
            },
        );
    }

    fn compare_clocks_of(&mut self, group: &[usize]) {
        let mut offsets: BTreeMap<usize, ClockOffset> = BTreeMap::new();
        for number in 0..PINGS {
            let send = |index: &usize| {
                let sent_ns = monotonic_ns();
                self.members[*index].send(&AgentRequest::Ping(number));
                (*index, sent_ns)
            };
            let sent_ns: BTreeMap<usize, u64> = group.iter().map(send).collect();
            let waited = group.iter().copied().collect();
            self.gather(
                waited,
                SILENCE_MAX,
                &|| false,
                |index, member, response| match response {
                    AgentResponse::Pong { ping, clock_ns } if ping == number => {
                        let offset = ClockOffset::of(sent_ns[&index], clock_ns, member.last_ns);
                        let best = offsets.entry(index).or_insert(offset);
                        if offset.error_ns < best.error_ns {
                            *best = offset;
                        }
                        true
                    }
                    _ => false,
                },
            );
        }
        offsets
            .into_iter()
            .for_each(|(index, offset)| self.members[index].offset = offset);
    }

    fn none_lost(&mut self) -> Result<(), Vec<FleetError>> {
        let lost = self.take_lost();
        if lost.is_empty() { Ok(()) } else { Err(lost) }
    }

    /// Sends to all that are there, and returns the places of all.
    fn send_all(&mut self, request: impl Fn(usize) -> GeneratorRequest) -> BTreeSet<usize> {
        let all = self.members.iter_mut().enumerate();
        all.for_each(|(index, member)| member.send(&AgentRequest::Generator(request(index))));
        (0..self.members.len()).collect()
    }

    /// Takes in a message: from which place, and what, if that is a response. One from a channel that was replaced is dropped.
    fn take_in(
        &mut self,
        message: FrameMessage,
        waited: &BTreeSet<usize>,
    ) -> Option<(usize, Option<AgentResponse>)> {
        let index = *self.places.get(&message.from)?;
        let member = &mut self.members[index];
        member.last_ns = message.at_ns;
        Some((
            index,
            member.take(message.response, waited.contains(&index)),
        ))
    }

    /// Waits until each of `waited` has sent what `take` accepts, is lost, or is late. One that sends nothing while it is pinged is lost.
    fn gather(
        &mut self,
        mut waited: BTreeSet<usize>,
        longest: Duration,
        stopped: &dyn Fn() -> bool,
        mut take: impl FnMut(usize, &mut Member, AgentResponse) -> bool,
    ) {
        let began_ns = monotonic_ns();
        let (mut looked_ns, mut pinged_ns, mut cancelled_ns) = (began_ns, began_ns, None);
        waited.retain(|index| self.members[*index].alive);
        waited
            .iter()
            .for_each(|index| self.members[*index].last_ns = began_ns);
        while !waited.is_empty() {
            // We hold a sender ourselves, so that an error is always that nothing came.
            if let Ok(message) = self.messages.recv_timeout(LOOK_EVERY)
                && let Some((index, response)) = self.take_in(message, &waited)
            {
                let member = &mut self.members[index];
                if response.is_some_and(|response| take(index, member, response)) || !member.alive {
                    waited.remove(&index);
                }
            }
            let now_ns = monotonic_ns();
            if stopped() && cancelled_ns.is_none() {
                cancelled_ns = Some(now_ns);
                waited
                    .iter()
                    .for_each(|index| self.members[*index].send(&AgentRequest::Cancel));
            }
            if cancelled_ns
                .is_some_and(|at_ns| now_ns.saturating_sub(at_ns) > STOP_MAX.as_nanos() as u64)
            {
                waited.iter().for_each(|index| self.members[*index].end());
                waited.clear();
            }
            if now_ns.saturating_sub(looked_ns) < LOOK_EVERY.as_nanos() as u64 {
                continue;
            }
            looked_ns = now_ns;
            for index in &waited {
                self.members[*index].lose_if_late(now_ns, began_ns, longest);
            }
            waited.retain(|index| self.members[*index].alive);
            if now_ns.saturating_sub(pinged_ns) > PING_EVERY.as_nanos() as u64 {
                pinged_ns = now_ns;
                waited
                    .iter()
                    .for_each(|index| self.members[*index].send(&AgentRequest::Ping(u64::MAX)));
            }
        }
    }
}

impl Drop for Fleet {
    /// All of them, before any is waited for.
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::end);
    }
}

// One generator of a fleet: whether it is there, how far its clock is, and why it is lost.

/// How long one may be silent while it is pinged every second. A network that is gone for 5 s may take TCP 2.4 s more, for it waits
/// twice as long after each attempt; and what carries the channel, which notices after 9 s, has better words for it.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(11);

#[derive(Debug)]
pub(crate) struct Member {
    pub connection: AgentConnection,
    pub offset: ClockOffset,
    pub generator: ConnectedGenerator,
    /// When something last came from it, by our clock.
    pub last_ns: u64,
    /// Why it is gone, until the caller has taken it.
    pub lost: Option<FleetError>,
    pub alive: bool,
}

impl Member {
    pub fn new(connection: AgentConnection) -> Member {
        let offset = ClockOffset { ns: 0, error_ns: 0 };
        let generator = ConnectedGenerator {
            name: connection.name.clone(),
            host: String::new(),
            processors: 1,
        };
        Member {
            connection,
            offset,
            generator,
            last_ns: monotonic_ns(),
            lost: None,
            alive: true,
        }
    }

    pub fn part(&self, late_ns: u64, steal_share: Option<f64>, counts: &Counts) -> GeneratorPart {
        let lag = counts
            .open
            .as_ref()
            .map(|open| &open.schedule_lag)
            .filter(|lag| lag.resolves(0.99));
        let lag = lag.and_then(|lag| lag.quantile(0.99));
        GeneratorPart {
            name: self.generator.name.clone(),
            // Where it runs is known to who asked for it.
            here: false,
            late_ns,
            clock_error_ns: self.offset.error_ns,
            busiest_share: counts.generator.busiest_share(),
            cpu_ns: counts.generator.cpu_ns.iter().sum(),
            steal_share,
            sent: counts.sent,
            connections_opened: counts.connections_opened,
            lag_p99_ns: lag.map(|lag| lag.ns()),
        }
    }

    pub fn send(&mut self, request: &AgentRequest) {
        if self.alive
            && let Err(error) = self.connection.send(request)
        {
            self.lose(format!(": {error}"), false);
        }
    }

    /// What came from it, if that is a response and not its end.
    pub fn take(
        &mut self,
        came: io::Result<Option<AgentResponse>>,
        waited: bool,
    ) -> Option<AgentResponse> {
        let why = match came {
            Ok(Some(AgentResponse::Failed(error))) => {
                self.connection.end();
                self.lose(format!(": {error}"), true);
                return None;
            }
            Ok(Some(AgentResponse::Ended) | None) if waited => {
                " ended before it had responded".to_owned()
            }
            Ok(Some(AgentResponse::Ended) | None) => " ended between two windows".to_owned(),
            Ok(Some(response)) => return Some(response),
            Err(error) => format!(": {error}"),
        };
        self.lose(why, false);
        None
    }

    pub fn lose(&mut self, what: String, is_refusal: bool) {
        // What comes of one that is lost already is the same loss again.
        if std::mem::take(&mut self.alive) {
            self.lost = Some(FleetError {
                generator: self.generator.name.clone(),
                what,
                is_refusal,
            });
        }
    }

    pub fn lose_if_late(&mut self, now_ns: u64, began_ns: u64, longest: Duration) {
        let quiet = Duration::from_nanos(now_ns.saturating_sub(self.last_ns));
        let waited = Duration::from_nanos(now_ns.saturating_sub(began_ns));
        if quiet > SILENCE_MAX {
            let seconds = SILENCE_MAX.as_secs();
            self.lose(
                format!(" did not respond within {seconds} s while it was pinged every second"),
                false,
            );
        } else if waited > longest {
            // It still hears, and may still load the service.
            self.connection.end();
            let asked = format!(
                "did not do within {} s what it was asked for",
                longest.as_secs()
            );
            self.lose(format!(" responds to pings, but {asked}"), false);
        }
    }

    pub fn end(&mut self) {
        self.connection.end();
        self.alive = false;
    }
}
