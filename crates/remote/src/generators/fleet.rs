//! Several generators used as one: each gets a part of the load, all windows start at one agreed time, and
//! their slices are merged into one.
//!
//! A fleet outlives its load: it can be given one load after another. When a generator is lost, the others
//! continue. The caller decides whether a window without it counts, and whether to replace it.
//!
//! A fleet may have a thousand generators, so the work per response must not grow with their number.

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

/// Number of consecutive pings for one clock offset.
const PINGS: u64 = 8;
/// Maximum number of groups of generators that are pinged in sequence. A thousand single pings over a long
/// distance would take a minute.
const PING_GROUPS_MAX: usize = 64;
/// Minimum number of generators in a group. Responses that arrive together wait for each other here, which
/// looks like a longer round trip. The larger the group, the less accurate the clock offsets.
const PINGED_TOGETHER: usize = 4;
/// Timeout for a generator to report that it is ready, to begin a load, and to end one.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between pings of a generator that is waited for.
const PING_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks for late generators.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Timeout for a generator to report its counts after its window was stopped.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Minimum time between the request and the agreed start. Twice the longest round trip is added.
const LEAD_MIN_NS: u64 = 50_000_000;

/// Generators that load one service together. Dropping the fleet ends them.
#[derive(Debug)]
pub struct Fleet {
    members: Vec<Member>,
    /// Index in `members` by channel number.
    places: BTreeMap<u64, usize>,
    messages: Receiver<FrameMessage>,
    /// Sender for connections that are opened later.
    to: SyncSender<FrameMessage>,
    /// Number of the last channel.
    channels: u64,
    /// Number of the last window.
    windows: u64,
    /// Maximum time for connections to open before a window, including log-ins.
    opening_max: Duration,
    /// Timeout of one request, from the load.
    timeout: Duration,
    /// Number of connections of each generator, or of threads if the load has a rate. Requests are divided in
    /// proportion.
    takers: Vec<u64>,
    heartbeat: Heartbeat,
}

/// Error of a generator: the fleet could not start, or the generator was lost.
#[derive(Debug, thiserror::Error)]
#[error("generator {generator}{what}")]
pub struct FleetError {
    /// Name of the generator.
    pub generator: String,
    what: String,
    /// Whether the generator refused a request. False if it ended or its connection broke.
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

/// Result of a window.
#[derive(Debug)]
pub struct FleetWindow {
    /// Counts of all generators, merged as if from one. Times are in our clock.
    pub counts: Counts,
    /// Part of each generator, in the order of the generators. Lost generators are missing.
    pub parts: Vec<GeneratorPart>,
    /// Generators that were lost during the window.
    pub lost: Vec<FleetError>,
}

impl Fleet {
    /// Connects to the channels and waits until each generator is ready. Clocks are not compared yet, and
    /// there is no load yet.
    ///
    /// # Errors
    /// All generators that are not ready. Before a load, a missing generator is a mistake that the user can
    /// fix.
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

    /// All generators as they described themselves, in order.
    pub fn generators(&self) -> Vec<ConnectedGenerator> {
        self.members
            .iter()
            .map(|member| member.generator.clone())
            .collect()
    }

    /// Process IDs of the generators on this machine.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.members
            .iter()
            .filter_map(|member| member.connection.process)
    }

    /// Compares clocks. Each call measures again, because clocks drift.
    ///
    /// # Errors
    /// Generators that have been lost so far.
    pub fn compare_clocks(&mut self) -> Result<(), Vec<FleetError>> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let group = all.len().div_ceil(PING_GROUPS_MAX).max(PINGED_TOGETHER);
        all.chunks(group)
            .for_each(|group| self.compare_clocks_of(group));
        self.none_lost()
    }

    /// Gives each generator its part of a load, one spec each in the order of the generators. The parts
    /// replace the previous load.
    ///
    /// # Errors
    /// Generators that cannot begin the load, and generators that have been lost so far.
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

    /// Closes all connections and waits until they are closed. Generators lost meanwhile are reported by the
    /// next call that returns lost generators.
    pub fn rest(&mut self) {
        let waited = self.send_all(|_| GeneratorRequest::Rest);
        self.gather(waited, PATIENCE, &|| false, |_, _, response| {
            matches!(
                response,
                AgentResponse::Generator(GeneratorResponse::Resting)
            )
        });
    }

    /// Offset of each generator's clock from ours at the last comparison, in order.
    pub fn clocks(&self) -> impl Iterator<Item = ClockOffset> {
        self.members.iter().map(|member| member.offset)
    }

    /// Divides a window among the generators, as if requests were dealt round-robin to the connections or
    /// threads of all generators together.
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

    /// Opens missing connections for the next window, which [`Fleet::run`] runs.
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

    /// Runs the [prepared](Fleet::prepare) window on all connected generators. `stopped` is polled and ends
    /// the window early. A generator that then does not report its counts in time is ended.
    ///
    /// `Until::Requests(n)` means n requests of all generators together.
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
            // The duration depends on the service.
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
                    // Merged at once, so that only a part and the times of threads are stored for each
                    // generator.
                    match &mut sum {
                        Some(sum) => sum.merge(*counts, Windows::Parallel),
                        None => sum = Some(*counts),
                    }
                    true
                }
                _ => false,
            },
        );
        // Threads and parts are in the order of the generators, not of their responses.
        let (mut counts, mut parts) = (sum.unwrap_or_default(), Vec::with_capacity(arrived.len()));
        for (part, threads) in arrived.into_values() {
            // The driver has already been merged with the counts.
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

    /// Returns the indexes of lost generators, after all received messages have been processed.
    pub fn missing(&mut self) -> Vec<usize> {
        while let Ok(message) = self.messages.try_recv() {
            self.take_in(message, &BTreeSet::new());
        }
        (0..self.members.len())
            .filter(|index| !self.members[*index].alive)
            .collect()
    }

    /// Returns errors of lost generators. Each error is returned once.
    pub fn take_lost(&mut self) -> Vec<FleetError> {
        self.members
            .iter_mut()
            .filter_map(|member| member.lost.take())
            .collect()
    }

    /// Replaces a lost generator. Nothing of the lost one is kept.
    ///
    /// # Errors
    /// If the new generator is not ready either. The generator at `index` then stays lost.
    pub fn replace(&mut self, index: usize, channel: Channel) -> Result<(), FleetError> {
        self.places.retain(|_, place| *place != index);
        self.members[index] = self.greeted(channel)?;
        self.places.insert(self.channels, index);
        self.await_ready(BTreeSet::from([index]));
        self.members[index].lost.take().map_or(Ok(()), Err)
    }

    /// Starts to read responses from a channel and sends the greeting.
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

    /// Sends a request to each connected generator, and returns the indexes of all generators.
    fn send_all(&mut self, request: impl Fn(usize) -> GeneratorRequest) -> BTreeSet<usize> {
        let all = self.members.iter_mut().enumerate();
        all.for_each(|(index, member)| member.send(&AgentRequest::Generator(request(index))));
        (0..self.members.len()).collect()
    }

    /// Processes a message. Returns the index of the generator, and the response unless the message is an
    /// error or the end. Messages from replaced channels are dropped.
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

    /// Waits until each generator in `waited` has sent a response that `take` accepts, is lost, or is late. A
    /// generator that sends nothing while it is pinged is lost.
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
            // This side also has a sender, so the only possible error is a timeout.
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
    /// Ends all generators before waiting for any of them.
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::end);
    }
}

// One generator of a fleet: its connection, its clock offset, and the reason if it is lost.

/// Maximum silence of a generator that is pinged every second. After an outage of 5 s, TCP may need another
/// 2.4 s, because it doubles the pause after each attempt. The transport detects a dead connection after 9 s,
/// and its error is more precise.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(11);

#[derive(Debug)]
pub(crate) struct Member {
    pub connection: AgentConnection,
    pub offset: ClockOffset,
    pub generator: ConnectedGenerator,
    /// When the last message arrived, by our clock.
    pub last_ns: u64,
    /// Why the generator is lost, until the caller takes the error.
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
            // The caller knows whether the generator runs on this machine.
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

    /// Returns the response. If the generator failed or ended, marks it as lost and returns `None`.
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
                " exited before responding".to_owned()
            }
            Ok(Some(AgentResponse::Ended) | None) => " exited between two windows".to_owned(),
            Ok(Some(response)) => return Some(response),
            Err(error) => format!(": {error}"),
        };
        self.lose(why, false);
        None
    }

    pub fn lose(&mut self, what: String, is_refusal: bool) {
        // Later errors of a lost generator have the same cause.
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
            // The generator still reads requests, and may still load the service.
            self.connection.end();
            let seconds = longest.as_secs();
            self.lose(
                format!(" responds to pings, but did not complete its request within {seconds} s"),
                false,
            );
        }
    }

    pub fn end(&mut self) {
        self.connection.end();
        self.alive = false;
    }
}
