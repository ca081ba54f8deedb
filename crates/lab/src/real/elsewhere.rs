//! Generators that are processes of their own, on this machine and on others: a fleet for the whole run.
//!
//! It connects, gives loads, and names those that are gone; whether a run can do without is not its business.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use load::{LoadSpec, Until};
use plan::Plan;
use record::{ConnectedGenerator, Counts, EndReason, GeneratorPart};
use remote::generators::{Fleet, FleetError, FleetWindow};
use remote::{Error, WantedGenerators};

use super::hinted;
use crate::environment::{Connected, Connecting, Failure, LostGenerator, Result};
use crate::stop::Stop;

/// Connections for which a thread of a generator on another machine is worth having: with few of them requests that are due would wait
/// for one of their own thread while others are free.
const CONNECTIONS_PER_THREAD: u32 = 32;

/// Hears how far the connecting is.
type ConnectWatch<'a> = &'a mut dyn FnMut(Connecting<'_>);

/// The generators of a plan, connected or still to be.
pub(super) struct Elsewhere {
    plan: Arc<Plan>,
    run: String,
    /// Arguments with which this program generates load.
    arguments: &'static [&'static str],
    stop: Stop,
    fleet: Option<Fleet>,
    /// Why those are gone that are, by their places.
    gone: BTreeMap<usize, String>,
}

impl Elsewhere {
    /// `None` where load comes from this process.
    pub fn of(
        plan: &Arc<Plan>,
        run: String,
        arguments: &'static [&'static str],
        stop: &Stop,
    ) -> Option<Elsewhere> {
        let (plan, stop) = (Arc::clone(plan), stop.clone());
        let (fleet, gone) = (None, BTreeMap::new());
        let elsewhere = !plan.generators.is_here();
        elsewhere.then(|| Elsewhere {
            plan,
            run,
            arguments,
            stop,
            fleet,
            gone,
        })
    }

    /// Has all generators there.
    pub fn connect(&mut self, watch: ConnectWatch<'_>) -> Result<Connected> {
        if let Some(mut fleet) = self.fleet.take() {
            let mended = self.mend(&mut fleet, watch);
            self.fleet = Some(fleet);
            return mended;
        }
        let channels = self.opened(watch, remote::generators)?;
        let fleet = Fleet::connect(channels)
            .map_err(|errors| listed(errors.iter().map(FleetError::to_string)))?;
        let generators = fleet.generators();
        self.fleet = Some(fleet);
        Ok(Connected {
            generators,
            lost: Vec::new(),
        })
    }

    /// Replaces those that are gone, with one attempt each.
    fn mend(&mut self, fleet: &mut Fleet, watch: ConnectWatch<'_>) -> Result<Connected> {
        let (missing, names) = (fleet.missing(), fleet.generators());
        let lost = self.named(&names, &fleet.take_lost());
        if missing.is_empty() {
            return Ok(Connected {
                generators: Vec::new(),
                lost,
            });
        }
        let mut given_up = Vec::new();
        for places in remote::together(&self.plan.generators, &missing) {
            match self.replace(fleet, &places, watch) {
                Ok(()) => {}
                Err(Failure::End(EndReason::GeneratorFailed(why))) => {
                    given_up.extend(places.iter().map(|place| {
                        let first = self.gone.get(place).cloned().unwrap_or_default();
                        let why = format!("{first}, and could not be replaced: {why}");
                        LostGenerator {
                            generator: names[*place].name.clone(),
                            why,
                        }
                    }))
                }
                Err(failure) => return Err(failure),
            }
        }
        if given_up.is_empty() {
            Ok(Connected {
                generators: fleet.generators(),
                lost,
            })
        } else {
            Err(Failure::GeneratorsLost(given_up))
        }
    }

    /// Puts others in the places of those that are gone.
    fn replace(
        &mut self,
        fleet: &mut Fleet,
        places: &[usize],
        watch: ConnectWatch<'_>,
    ) -> Result<()> {
        let channels = self.opened(watch, |wanted| remote::again(wanted, places))?;
        for (place, channel) in places.iter().zip(channels) {
            fleet
                .replace(*place, channel)
                .map_err(|error| Failure::generator(error.to_string()))?;
            self.gone.remove(place);
        }
        Ok(())
    }

    fn opened<T>(
        &self,
        watch: ConnectWatch<'_>,
        open: impl FnOnce(&mut WantedGenerators<'_>) -> Result<T, Vec<Error>>,
    ) -> Result<T> {
        let here = || generate_here(self.arguments);
        let cancelled = || self.stop.is_requested();
        let mut watch =
            |waiting: &[String], for_now: Duration| watch(Connecting { waiting, for_now });
        let mut wanted = WantedGenerators {
            generators: &self.plan.generators,
            run: &self.run,
            arguments: self.arguments,
            here: &here,
            cancelled: &cancelled,
            watch: &mut watch,
        };
        let told = |error: &Error| format!("generator {error}{}", hinted(error.hint()));
        open(&mut wanted).map_err(|errors| match self.stop.is_requested() {
            true => Failure::INTERRUPTED,
            false => listed(errors.iter().map(told)),
        })
    }

    /// Compares clocks, which drift apart.
    pub fn compare_clocks(&mut self) -> Result<()> {
        self.all(Fleet::compare_clocks)
    }

    /// Gives each its part of a load, in place of what it had before: on so many threads of each, where the plan says so, and those on
    /// this machine on these processors.
    pub fn give(&mut self, spec: &LoadSpec, threads: Option<u32>, cpus: &[usize]) -> Result<()> {
        let local = self.plan.generators.local;
        self.all(|fleet| fleet.give(divided(spec, threads, (local, cpus), &fleet.generators())))
    }

    /// Has all of them open the connections of the next window.
    pub fn prepare(&mut self, until: Until) -> Result<()> {
        let stop = self.stop.clone();
        self.fleet()?.prepare(until, &|| stop.is_requested());
        Ok(())
    }

    /// The window that was prepared, of all of them together. It ends early when the user wants no more, with what all of them did.
    pub fn run(&mut self, until: Until) -> Result<(Counts, Vec<GeneratorPart>)> {
        let stop = self.stop.clone();
        let local = usize::try_from(self.plan.generators.local).unwrap_or(usize::MAX);
        let fleet = self.fleet()?;
        let FleetWindow {
            counts,
            parts,
            lost,
        } = fleet.run(until, &|| stop.is_requested());
        // Who does not say how far it came may have sent much.
        if stop.is_requested() && parts.len() < fleet.clocks().count() {
            return Err(Failure::INTERRUPTED);
        }
        if !lost.is_empty() {
            return Err(self.lost(lost));
        }
        let parts = parts
            .into_iter()
            .enumerate()
            .map(|(place, part)| GeneratorPart {
                here: place < local,
                ..part
            });
        Ok((counts, parts.collect()))
    }

    /// Has all connections closed. The next call misses those that are lost meanwhile.
    pub fn rest(&mut self) {
        if let Some(fleet) = &mut self.fleet {
            fleet.rest();
        }
    }

    /// Processes of generators on this machine.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.fleet.iter().flat_map(Fleet::processes)
    }

    fn fleet(&mut self) -> Result<&mut Fleet> {
        self.fleet
            .as_mut()
            .ok_or_else(|| Failure::generator("the generators are not connected"))
    }

    fn all(&mut self, call: impl FnOnce(&mut Fleet) -> Result<(), Vec<FleetError>>) -> Result<()> {
        let done = call(self.fleet()?);
        done.map_err(
            |errors| match errors.iter().find(|error| error.is_refusal) {
                // Another in its place would refuse it too.
                Some(error) => Failure::generator(error.to_string()),
                None => self.lost(errors),
            },
        )
    }

    fn lost(&mut self, errors: Vec<FleetError>) -> Failure {
        let names = self
            .fleet
            .as_ref()
            .map(Fleet::generators)
            .unwrap_or_default();
        Failure::GeneratorsLost(self.named(&names, &errors))
    }

    /// Those that are gone, of these generators; it is kept in mind why.
    fn named(
        &mut self,
        generators: &[ConnectedGenerator],
        errors: &[FleetError],
    ) -> Vec<LostGenerator> {
        let lost = errors.iter().map(|error| {
            let place = generators
                .iter()
                .position(|there| there.name == error.generator);
            self.gone
                .extend(place.map(|place| (place, error.to_string())));
            LostGenerator {
                generator: error.generator.clone(),
                why: error.to_string(),
            }
        });
        lost.collect()
    }
}

/// This program as a generator, in a group of its own: a Ctrl-C is for the run, which then ends it in good order.
fn generate_here(arguments: &[&str]) -> Command {
    let mut command = machine::command("/proc/self/exe");
    command.args(arguments).process_group(0);
    command
}

/// The parts of a load, in the order of the generators: those on this machine have its processors, one after the other.
fn divided(
    spec: &LoadSpec,
    threads: Option<u32>,
    (local, cpus): (u32, &[usize]),
    generators: &[ConnectedGenerator],
) -> Vec<LoadSpec> {
    let cpus_here = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let threads = |place: u32, connections: u32| {
        let processors = generators
            .get(place as usize)
            .map_or(1, |generator| generator.processors);
        let elsewhere = || processors.min(connections / CONNECTIONS_PER_THREAD);
        let fitting = || {
            if place < local {
                cpus_here / local.max(1)
            } else {
                elsewhere()
            }
        };
        threads.unwrap_or_else(fitting).max(1)
    };
    let count = u32::try_from(generators.len()).unwrap_or(u32::MAX);
    let mut next = 0;
    let mut place = |(index, spec): (u32, LoadSpec)| {
        let cpus = if index < local { cpus } else { &[] };
        let first = next;
        next += spec.threads as usize;
        let taken =
            (first..next).filter_map(|thread| cpus.get(thread % cpus.len().max(1)).copied());
        LoadSpec {
            cpus: taken.collect(),
            ..spec
        }
    };
    (0..)
        .zip(spec.divided_among(count, threads))
        .map(&mut place)
        .collect()
}

/// One below the other.
fn listed(errors: impl Iterator<Item = String>) -> Failure {
    Failure::generator(errors.collect::<Vec<_>>().join("\n  "))
}

#[cfg(test)]
mod tests {
    use load::{Address, RequestSpec};

    use super::*;

    fn generator(processors: u32) -> ConnectedGenerator {
        ConnectedGenerator {
            name: "g".into(),
            host: "h".into(),
            processors,
        }
    }

    fn parts(
        connections: u32,
        threads: Option<u32>,
        generators: &[ConnectedGenerator],
    ) -> Vec<(u32, u32, Vec<usize>)> {
        let address = Address::Tcp("127.0.0.1:1".parse().expect("an address"));
        let spec = LoadSpec {
            connections,
            ..LoadSpec::new(address, vec![RequestSpec::new("GET", "/", "a")])
        };
        let parts = divided(&spec, threads, (2, &[6, 7]), generators);
        parts
            .into_iter()
            .map(|part| (part.connections, part.threads, part.cpus))
            .collect()
    }

    #[test]
    fn those_here_share_the_clients_processors_and_others_use_their_own_as_far_as_connections_go() {
        let all = [generator(8), generator(8), generator(8), generator(2)];
        assert_eq!(
            parts(400, None, &all),
            [
                (100, 1, vec![6]),
                (100, 1, vec![7]),
                (100, 3, vec![]),
                (100, 2, vec![])
            ]
        );
        assert_eq!(
            parts(402, Some(2), &all),
            [
                (101, 2, vec![6, 7]),
                (101, 2, vec![6, 7]),
                (100, 2, vec![]),
                (100, 2, vec![])
            ]
        );
        // Few connections are no reason for threads that have one each.
        assert!(
            parts(8, None, &all)
                .iter()
                .all(|(connections, threads, _)| (*connections, *threads) == (2, 1))
        );
    }
}
