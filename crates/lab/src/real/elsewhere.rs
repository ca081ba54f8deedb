//! Generators in separate processes, on this machine and on others: one fleet for the whole run.
//!
//! It connects generators, distributes loads, and reports lost generators. It does not decide whether a run
//! continues without them.

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

/// Minimum number of connections for each thread of a remote generator. With fewer, due requests would wait
/// for a connection of their own thread while other connections are free.
const CONNECTIONS_PER_THREAD: u32 = 32;

/// Callback for the progress of connecting.
type ConnectWatch<'a> = &'a mut dyn FnMut(Connecting<'_>);

/// The generators of a plan, connected or not yet.
pub(super) struct Elsewhere {
    plan: Arc<Plan>,
    run: String,
    /// Arguments that make this program a generator.
    arguments: &'static [&'static str],
    stop: Stop,
    fleet: Option<Fleet>,
    /// Why generators were lost, by index.
    gone: BTreeMap<usize, String>,
}

impl Elsewhere {
    /// `None` if the load comes from this process.
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

    /// Connects all generators.
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

    /// Replaces lost generators, with one attempt each.
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

    /// Connects replacements for lost generators.
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

    /// Distributes a load, which replaces the previous one. `threads` is the number of threads of each
    /// generator, if the plan sets it. Generators on this machine use these processors.
    pub fn give(&mut self, spec: &LoadSpec, threads: Option<u32>, cpus: &[usize]) -> Result<()> {
        let local = self.plan.generators.local;
        self.all(|fleet| fleet.give(divided(spec, threads, (local, cpus), &fleet.generators())))
    }

    /// Opens the connections of the next window on all generators.
    pub fn prepare(&mut self, until: Until) -> Result<()> {
        let stop = self.stop.clone();
        self.fleet()?.prepare(until, &|| stop.is_requested());
        Ok(())
    }

    /// Runs the prepared window on all generators. It ends early if the user stops the run.
    pub fn run(&mut self, until: Until) -> Result<(Counts, Vec<GeneratorPart>)> {
        let stop = self.stop.clone();
        let local = usize::try_from(self.plan.generators.local).unwrap_or(usize::MAX);
        let fleet = self.fleet()?;
        let FleetWindow {
            counts,
            parts,
            lost,
        } = fleet.run(until, &|| stop.is_requested());
        // A generator without a report may have sent many requests.
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

    /// Closes all connections. Generators that are lost meanwhile are reported by the next call.
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
                // A replacement would refuse it as well.
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

    /// Lost generators by name. Stores the reason of each.
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

/// This program as a generator, in its own process group: the run receives Ctrl-C, and then ends the
/// generator in an orderly way.
fn generate_here(arguments: &[&str]) -> Command {
    let mut command = machine::command("/proc/self/exe");
    command.args(arguments).process_group(0);
    command
}

/// The parts of a load in the order of generators. Generators on this machine get its processors in turn.
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

/// All errors, one per line.
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
        // Few connections do not need one thread each.
        assert!(
            parts(8, None, &all)
                .iter()
                .all(|(connections, threads, _)| (*connections, *threads) == (2, 1))
        );
    }
}
