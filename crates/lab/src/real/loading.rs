//! The load of a trial: its source, its path and its requests. The source is threads of this process, or
//! generators in separate processes. Both have the same effect on a service.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use load::{
    Address, Arrivals, ClientCertificate, FirstRequest, Generator, LoadError, LoadSpec,
    RequestSpec, TlsSpec, Trust, Until, Users, Values,
};
use model::{AskedOpen, FailureKind};
use plan::{Generators, Load, LoadSettings, Plan, Secrets, Variant};
use record::{Counts, EndReason, GeneratorPart, MachineUse, Slice};
use services::{Error, NetworkPair};

use super::elsewhere::Elsewhere;
use super::keeping::{keep_contents, kept};
use super::services::check_alive;
use super::{RealEnvironment, hinted, living_of};
use crate::LabError;
use crate::environment::{Failure, Result, SliceSpec};
use crate::stop::Stop;

/// Connections that were idle for this time are reopened before a window. Many servers close them (gunicorn
/// after 2 s, Node.js after 5 s), and a request that is sent at that time is lost because of our pause.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Files that Proofload or a service may need in addition to the sockets of a load.
const FILES_BESIDE: u64 = 128;

/// The source of a trial's load.
pub(super) enum Loader {
    /// Threads of this process.
    Here(Generator),
    /// The fleet, which has one load at a time.
    Elsewhere,
}

impl RealEnvironment {
    /// Prepares the load of a variant's trial, in open loop or with this seed for the order of requests. The
    /// first window opens the connections.
    pub(super) fn loader(
        &mut self,
        variant: &Variant,
        address: &Address,
        (open, seed): (Option<AskedOpen>, u64),
        network: Option<&NetworkPair>,
    ) -> Result<Loader> {
        let (threads, cpus) = (variant.load.settings.threads, &self.division.generator);
        let wanted = threads.unwrap_or(u32::try_from(cpus.len()).unwrap_or(1));
        let arrivals = |AskedOpen {
                            ask: _,
                            rate,
                            process,
                            seed,
                        }| Arrivals::Open {
            rate,
            process,
            seed,
        };
        let spec = spec(&self.plan, variant, address)?;
        let spec = LoadSpec {
            driver: self.driver,
            threads: wanted.clamp(1, spec.connections),
            cpus: cpus.clone(),
            // Each slice at a rate has its own seed. Otherwise all would begin with the same requests.
            seed: open.map_or(seed, |open| open.seed),
            arrivals: open.map_or(Arrivals::Closed, arrivals),
            ..spec
        };
        self.begun(spec, threads, network)
    }

    /// The source of load for these requests. `threads` is the number of threads of each generator, if set.
    pub(super) fn begun(
        &mut self,
        spec: LoadSpec,
        threads: Option<u32>,
        network: Option<&NetworkPair>,
    ) -> Result<Loader> {
        match &mut self.elsewhere {
            Some(elsewhere) => elsewhere
                .give(&spec, threads, &self.division.generator)
                .map(|()| Loader::Elsewhere),
            None => {
                at_client(network, || Generator::start(spec).map_err(not_started)).map(Loader::Here)
            }
        }
    }

    /// Closes the connections of a trial, so that a service that waits for them can end at once.
    pub(super) fn unload(&mut self, loader: Loader) {
        match (loader, &mut self.elsewhere) {
            (Loader::Here(generator), _) => drop(generator),
            (Loader::Elsewhere, elsewhere) => {
                elsewhere.iter_mut().for_each(|elsewhere| elsewhere.rest())
            }
        }
    }

    /// Opens the connections of a trial for its next window, which costs its services CPU time.
    pub(super) fn open_connections(&mut self, variant: usize, until: Until) -> Result<()> {
        let living = living_of(&mut self.living, variant)?;
        prepare(&mut living.loader, &mut self.elsewhere, &self.stop, until)?;
        living.idle_since = Some(Instant::now());
        Ok(())
    }

    /// Runs one window of load on open connections. Resources of services and machine are not read.
    pub(super) fn loaded(&mut self, variant: usize, wanted: SliceSpec) -> Result<Slice> {
        let living = living_of(&mut self.living, variant)?;
        let made = ran(&mut living.loader, &mut self.elsewhere, wanted.until);
        living.idle_since = Some(Instant::now());
        living.services.iter_mut().try_for_each(check_alive)?;
        // Without a comparison, partial results count and are recorded with all details.
        let alone = self.plan.measure.is_some();
        if self.stop.is_requested() && !alone {
            return Err(Failure::INTERRUPTED);
        }
        let (mut counts, generators) = made?;
        keep_contents(&mut living.contents, &counts);
        for failure in &mut counts.contract_failures {
            let name = match &failure.kind {
                FailureKind::Header(name) => Some(name.as_str()),
                // The name of the missing part, without any data of the response.
                FailureKind::LogIn(_) => continue,
                FailureKind::Status
                | FailureKind::BodyBytes
                | FailureKind::Coding
                | FailureKind::Content
                | FailureKind::Other(_) => None,
            };
            failure.example = self.plan.secrets.mask(name, &failure.example);
        }
        let endpoint = self
            .plan
            .design
            .endpoint
            .as_ref()
            .map(|endpoint| endpoint.name.as_str());
        Ok(Slice {
            block: living.block,
            variant,
            kind: wanted.kind,
            turns: 1,
            asked: None,
            connections: self.plan.variants[variant].load.settings.connections,
            waits: false,
            counts: if alone {
                counts
            } else {
                kept(counts, endpoint)
            },
            generators,
            services: Vec::new(),
            machine: MachineUse::default(),
        })
    }

    /// Runs one window of a load that does not belong to a running trial.
    pub(super) fn run(
        &mut self,
        loader: &mut Loader,
        until: Until,
    ) -> Result<(Counts, Vec<GeneratorPart>)> {
        prepare(loader, &mut self.elsewhere, &self.stop, until)?;
        ran(loader, &mut self.elsewhere, until)
    }

    /// Gives a trial a generator for the next window. A closed loop keeps its generator, unless its
    /// connections were idle while other trials had their turn. An open loop gets a new one, because at a low
    /// rate connections are idle even within a slice. New connections are opened before the window.
    pub(super) fn renew_generator(
        &mut self,
        variant: usize,
        open: Option<AskedOpen>,
    ) -> Result<()> {
        let living = self.living_of(variant)?;
        if open.is_none()
            && living
                .idle_since
                .is_none_or(|since| since.elapsed() < IDLE_MAX)
        {
            return Ok(());
        }
        let (address, seed, network) = (
            living.address.clone(),
            living.requests_seed,
            living.network.take(),
        );
        let plan = self.plan.clone();
        let renewed = self.loader(
            &plan.variants[variant],
            &address,
            (open, seed),
            network.as_ref(),
        );
        let living = self.living_of(variant)?;
        living.network = network;
        (living.loader, living.idle_since) = (renewed?, None);
        living.requests_seed = seed.wrapping_add(1);
        Ok(())
    }
}

// The limit of the number of connections.

impl RealEnvironment {
    /// Makes every running trial reopen its connections before the next window.
    pub(super) fn renew_all(&mut self) {
        for living in &mut self.living {
            living.idle_since = Instant::now().checked_sub(IDLE_MAX).or(living.idle_since);
        }
    }

    /// The limit from the open files of this process and of the entry service, whichever is lower.
    pub(super) fn connections_bound(&self, variant: usize) -> Option<(u32, String)> {
        let (_, own) = machine::process::files_limits(std::process::id())?;
        // A new generator opens its connections while the previous one still has its own, and other trials
        // keep theirs.
        let ours = (own / (self.plan.variants.len() as u64 + 1)).saturating_sub(FILES_BESIDE);
        let ours = (ours, format!("Proofload may open {own} files (ulimit -Hn)"));
        let entry = self
            .living
            .iter()
            .find(|living| living.variant == variant)?
            .services
            .last();
        let processes = entry.map(|entry| entry.processes(&[]));
        let limits = processes
            .iter()
            .flatten()
            .filter_map(|process| Some(machine::process::files_limits(process.id.pid)?.0));
        let theirs = limits.min().map(|files| {
            (
                files.saturating_sub(FILES_BESIDE),
                format!("the service may open {files} files (ulimit -n)"),
            )
        });
        let (most, why) = [Some(ours), theirs]
            .into_iter()
            .flatten()
            .min_by_key(|(most, _)| *most)?;
        Some((u32::try_from(most).unwrap_or(u32::MAX).max(1), why))
    }
}

/// Opens the connections of the next window.
fn prepare(
    loader: &mut Loader,
    elsewhere: &mut Option<Elsewhere>,
    stop: &Stop,
    until: Until,
) -> Result<()> {
    match (loader, elsewhere) {
        (Loader::Here(generator), _) => {
            stop.watch(generator.handle());
            generator.prepare(until);
            Ok(())
        }
        (Loader::Elsewhere, Some(elsewhere)) => elsewhere.prepare(until),
        (Loader::Elsewhere, None) => Err(not_connected()),
    }
}

/// Runs the prepared window.
fn ran(
    loader: &mut Loader,
    elsewhere: &mut Option<Elsewhere>,
    until: Until,
) -> Result<(Counts, Vec<GeneratorPart>)> {
    let (mut counts, parts) = match (loader, elsewhere) {
        (Loader::Here(generator), _) => (generator.load(until, 0), Vec::new()),
        (Loader::Elsewhere, Some(elsewhere)) => elsewhere.run(until)?,
        (Loader::Elsewhere, None) => return Err(not_connected()),
    };
    counts.settle_silences();
    Ok((counts, parts))
}

fn not_connected() -> Failure {
    Failure::generator("the generators are not connected")
}

/// The value of the `Host` header: the authority of a URL, otherwise the address.
pub(super) fn host(variant: &Variant, address: &Address) -> String {
    let url = variant.entry_service().and_then(plan::Service::url);
    url.map_or_else(|| address.to_string(), plan::Url::authority)
}

/// Blames the requested load, or the system's limits.
fn not_started(error: LoadError) -> Failure {
    match error {
        LoadError::Spec { .. } => Failure::refused(error.to_string()),
        LoadError::System(_) => Failure::generator(error.to_string()),
    }
}

// The path from the generator to a trial's services: loopback, or a link of the trial. Links are created and
// threads moved to their ends. The caller starts services there.

/// Timeout for opening a connection over loopback.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout from other machines: a lost packet is sent again after 1 s, and then after 2 s.
const CONNECT_TIMEOUT_ELSEWHERE: Duration = Duration::from_secs(5);
/// Bytes that opening a connection sends in one direction: some frames without content.
const CONNECT_BYTES: u64 = 200;

/// The link of a load. `None` is loopback.
pub(super) fn network(load: &Load) -> Result<Option<NetworkPair>> {
    load.network
        .as_ref()
        .map(NetworkPair::make)
        .transpose()
        .map_err(no_way)
}

/// Runs `job` at the client's end. Threads and connections of the generator that are created there stay
/// there.
pub(super) fn at_client<T>(
    network: Option<&NetworkPair>,
    job: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let _there = network
        .map(|network| network.client.visit())
        .transpose()
        .map_err(no_way)?;
    job()
}

/// Runs `job` at the services' end, so that they stay there. Readiness checks do not cross a link.
pub(super) fn at_services<T>(
    network: Option<&NetworkPair>,
    job: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let _there = network
        .map(|network| network.services.visit())
        .transpose()
        .map_err(no_way)?;
    job()
}

/// Timeout for opening a connection. On a link two round trips are added, and the time for the first frames
/// of all connections, which are opened within a second.
pub(super) fn connect_timeout(load: &Load, generators: &Generators) -> Duration {
    let without = if generators.is_elsewhere() {
        CONNECT_TIMEOUT_ELSEWHERE
    } else {
        CONNECT_TIMEOUT
    };
    let Some(link) = &load.network else {
        return without;
    };
    let frames = u64::from(load.settings.connections) * CONNECT_BYTES * 8;
    let queue = link
        .rate_bit_per_s
        .map_or(0.0, |rate| frames as f64 / rate as f64);
    CONNECT_TIMEOUT + link.delay.unwrap_or_default() * 4 + Duration::from_secs_f64(queue)
}

fn no_way(error: Error) -> Failure {
    Failure::generator(format!("{error}{}", hinted(error.hint())))
}

// Converts the plan's load for the engine: reads values, bodies and authorities from files, and fills in
// secrets.

/// The load of a variant on this address, in closed loop on one thread.
fn spec(plan: &Plan, variant: &Variant, address: &Address) -> Result<LoadSpec> {
    let load = &variant.load;
    // All fields are named, so that none is forgotten.
    let Load {
        settings:
            LoadSettings {
                connections,
                keep_alive,
                sources,
                sample_every,
                // Set by the caller that starts it.
                threads: _,
                // Set by `users`.
                cookies: _,
            },
        timeout,
        protocol,
        tls,
        // Set by `requests` and `users`.
        requests: _,
        think: _,
        // Set by callers that request open loop, create the link, or chose the connections.
        rate_per_s: _,
        network: _,
        connections_typed: _,
    } = load;
    let host = host(variant, address);
    Ok(LoadSpec {
        sources: sources.clone(),
        tls: tls.as_ref().map(self::tls).transpose()?,
        protocol: *protocol,
        keep_alive: *keep_alive,
        sample_every: *sample_every,
        connections: *connections,
        threads: 1,
        timeout: *timeout,
        connect_timeout: connect_timeout(load, &plan.generators),
        contract: variant.expect.clone(),
        users: users(load, &host, &plan.secrets)?,
        ..LoadSpec::new(address.clone(), requests(load, &host, &plan.secrets)?)
    })
}

/// Checks that the load of every variant can be sent, without starting anything: reads its files and renders
/// its requests. Source addresses are checked when the load is sent.
///
/// # Errors
/// [`EndReason::LoadRefused`], with the first file or value that cannot be used.
pub fn check_load(plan: &Plan) -> Result<(), LabError> {
    // The addresses of services are unknown here, and have no effect.
    let address = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let check = |variant: &Variant| {
        // Generators on other machines, or at the other end of a link, have their own addresses.
        let spec = LoadSpec {
            sources: Vec::new(),
            ..spec(plan, variant, &address)?
        };
        spec.check().map_err(not_started)
    };
    let alike = model::grouped(
        plan.variants
            .iter()
            .map(|variant| ((&variant.load, &variant.expect), variant)),
    );
    let failure = alike
        .into_iter()
        .find_map(|(_, variants)| check(variants[0]).err());
    failure.map_or(Ok(()), |failure| {
        Err(LabError::Failed(EndReason::LoadRefused(
            plan.secrets.hide(&failure.to_string()),
        )))
    })
}

/// The repeated requests of a variant, with this `Host` header.
///
/// # Errors
/// [`EndReason::LoadRefused`], with the problem of a file.
pub(super) fn requests(load: &Load, host: &str, secrets: &Secrets) -> Result<Vec<RequestSpec>> {
    let all = load
        .requests
        .iter()
        .enumerate()
        .filter(|(_, request)| !request.once);
    all.map(|(index, _)| one(load, index, host, secrets))
        .collect()
}

/// The requests that each user sends once, and the other properties of users.
fn users(load: &Load, host: &str, secrets: &Secrets) -> Result<Users> {
    let first = load
        .requests
        .iter()
        .enumerate()
        .filter(|(_, request)| request.once);
    let first = first.map(|(index, request)| {
        Ok(FirstRequest {
            request: one(load, index, host, secrets)?,
            capture: request.capture.clone(),
        })
    });
    Ok(Users {
        first: first.collect::<Result<_>>()?,
        cookies: load.settings.cookies,
        think: load.think,
    })
}

fn one(load: &Load, index: usize, host: &str, secrets: &Secrets) -> Result<RequestSpec> {
    let request = &load.requests[index];
    let plan::Request {
        weight,
        method,
        path,
        headers,
        body,
        body_file,
        values,
        expect,
        // Set by the function `name`.
        name: _,
        // Set by `users`.
        once: _,
        capture: _,
    } = request;
    // With rows of values, or after a capture, braces are parsed again.
    let is_template = values.is_some() || !load.captured_before(index).is_empty();
    let filled = |text: &str| secrets.fill_request(text, is_template);
    let path = filled(path);
    let body = match body_file {
        Some(file) => read(file)?,
        None => filled(body).into_bytes(),
    };
    Ok(RequestSpec {
        name: name(request, &path),
        weight: *weight,
        method: method.clone(),
        path,
        headers: headers
            .iter()
            .map(|(name, value)| (name.clone(), filled(value)))
            .collect(),
        body,
        host: host.to_owned(),
        values: values.as_deref().map(self::values).transpose()?,
        contract: expect.clone(),
    })
}

/// The name in reports. Without a name it is the path, unless that contains a secret.
fn name(request: &plan::Request, sent: &str) -> String {
    let kept = plan::masked(None, &request.path);
    if request.name.is_empty() && kept != sent {
        return format!("{} {kept}", request.method);
    }
    request.name.clone()
}

/// TLS with the authorities and the client certificate from files.
///
/// # Errors
/// [`EndReason::LoadRefused`], if a file cannot be read.
pub(super) fn tls(tls: &plan::Tls) -> Result<TlsSpec> {
    let plan::Tls {
        ca,
        server_name,
        insecure,
        cert,
        key,
        resumption,
    } = tls;
    let trust = match (ca, insecure) {
        (_, true) => Trust::Anything,
        (Some(file), false) => Trust::Authorities(read(file)?),
        (None, false) => Trust::System,
    };
    let server_name = server_name.clone().unwrap_or_default();
    let of_client = |cert: &PathBuf| -> Result<ClientCertificate> {
        let key = key.as_ref().unwrap_or(cert);
        Ok(ClientCertificate {
            chain: read(cert)?,
            key: read(key)?,
        })
    };
    let client = cert.as_ref().map(of_client).transpose()?;
    Ok(TlsSpec {
        server_name,
        trust,
        resumption: *resumption,
        client,
    })
}

/// Reads rows of values. The extension of the file determines the format.
fn values(file: &Path) -> Result<Values> {
    let is_csv = file.extension().is_some_and(|end| end == "csv");
    let bytes = read(file)?;
    let rows = if is_csv {
        Values::csv(&bytes)
    } else {
        Values::jsonl(&bytes)
    };
    rows.map_err(|error| Failure::refused(format!("values {}: {error}", file.display())))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    plan::read_file(file, plan::LOAD_FILE_BYTES_MAX)
        .map_err(|error| Failure::refused(format!("cannot read {}: {error}", file.display())))
}
