//! The generator: engine threads behind a blocking call for each slice.
//!
//! The control plane. It distributes connections and requests to the threads, starts them, and merges their
//! reports. It uses no socket itself.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use model::quantity::many;
use model::{BUCKET_NS, Counts, Windows, header};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::arena::RequestArena;
use crate::error::{no_thread, refuse};
use crate::thread::{
    Common, PUBLISHED, Published, ThreadCommand, ThreadReport, ThreadsShared, dealt,
};
use crate::trust::TlsSettings;
use crate::{
    Address, Arrivals, Lanes, LoadError, LoadSpec, RequestSpec, Until, clock, protocol, thread,
    trust,
};

/// Maximum delay of an interrupt while a generator waits for its start time.
const INTERRUPT_LATENCY: Duration = Duration::from_millis(50);

/// Load on one service, with threads and connections that live over many slices. Dropping it closes the
/// connections and joins the threads.
#[derive(Debug)]
pub struct Generator {
    threads: Vec<GeneratorThread>,
    spec: Arc<LoadSpec>,
    shared: Arc<ThreadsShared>,
}

/// Reports the progress of a slice and ends slices early. See [`Generator::handle`].
#[derive(Debug, Clone)]
pub struct Handle(Arc<ThreadsShared>);

#[derive(Debug)]
struct GeneratorThread {
    /// The thread ends when this sender is dropped.
    commands: Sender<ThreadCommand>,
    reports: Receiver<ThreadReport>,
    handle: JoinHandle<()>,
}

impl Generator {
    /// Starts the threads. Connections are opened by the first [`run`](Self::run).
    ///
    /// # Errors
    /// Returns a [`LoadError`] for an invalid spec, a source address that is not this machine's, too few file
    /// descriptors (the soft limit is raised to the hard one if needed), a CPU that cannot be pinned to, or a
    /// thread that does not start.
    pub fn start(spec: LoadSpec) -> Result<Generator, LoadError> {
        let (arena, tls) = checked(&spec)?;
        ensure_descriptors(spec.connections, spec.threads)?;
        let spec = Arc::new(spec);
        let threads = (0..spec.threads).map(|_| Published::default()).collect();
        let shared = Arc::new(ThreadsShared {
            threads,
            ..ThreadsShared::default()
        });
        let mut generator = Generator {
            threads: Vec::new(),
            spec: spec.clone(),
            shared: shared.clone(),
        };
        for index in 0..spec.threads {
            let resume = spec.tls.as_ref().is_some_and(|tls| tls.resumption);
            let tls = tls.as_ref().map(|tls| tls.for_thread(resume));
            generator
                .threads
                .push(spawn(&spec, index, (arena.clone(), tls, shared.clone()))?);
        }
        for thread in &generator.threads {
            let ThreadReport::Started(started) = thread.next() else {
                unreachable!("a thread starts once, first")
            };
            started?;
        }
        Ok(generator)
    }

    /// Runs one slice and blocks until it is over.
    ///
    /// Missing connections are opened first, outside of the window, spread over up to a second. This waits
    /// for them for at most the spec's `connect_timeout`. The window begins with the open ones, and the
    /// others join when they can. At the end, requests in flight have at most the spec's `timeout` to finish.
    /// Connections stay open and idle afterwards.
    ///
    /// `Until::Requests(n)` sends exactly n requests, distributed to threads in proportion to their
    /// connections. It sends fewer only if a thread had no open connection for `connect_timeout`, or none
    /// that took a request for twice that time, or was interrupted.
    ///
    /// In open loop a slice consists of the requests *due* in its window, or the first n of them. The connect
    /// phase and the drain's limit are the same. Requests that were due but not sent when the window ends are
    /// sent in the drain as connections become free. Exceptions are requests behind by more than half a
    /// second, or by more than a tenth of a window longer than 5 s. Requests never sent count as `unsent` and
    /// are censored samples of the response time.
    pub fn run(&mut self, until: Until) -> Counts {
        self.prepare(until);
        self.load(until, 0)
    }

    /// The first half of [`run`](Self::run): opens missing connections. Several machines that load together
    /// do this first, so that they can begin at the same time.
    pub fn prepare(&mut self, until: Until) {
        for (index, thread) in self.threads.iter().enumerate() {
            let allowance = match until {
                Until::Elapsed(_) => None,
                Until::Requests(total) => Some(self.requests_of(index, total)),
            };
            thread.tell(ThreadCommand::Prepare { allowance });
        }
        for thread in &self.threads {
            let ThreadReport::Prepared = thread.next() else {
                unreachable!("the response to Prepare")
            };
        }
    }

    /// The second half of [`run`](Self::run): the window. It begins at `start_at_ns` of CLOCK_MONOTONIC, or
    /// at once if that has passed. An interrupt also ends the wait.
    pub fn load(&mut self, until: Until, start_at_ns: u64) -> Counts {
        self.wait_until(start_at_ns);
        let started_ns = clock::monotonic_ns();
        for thread in &self.threads {
            thread.tell(ThreadCommand::Load { started_ns, until });
        }
        let mut counts = self
            .threads
            .iter()
            .map(GeneratorThread::counts)
            .reduce(merged)
            .unwrap_or_default();
        let buckets = &mut counts.successful_per_100_ms;
        buckets.resize(
            buckets
                .len()
                .max(counts.window_ns.div_ceil(BUCKET_NS) as usize),
            0,
        );
        if let (Some(open), Arrivals::Open { rate, .. }) = (&mut counts.open, self.spec.arrivals) {
            open.rate_per_s = rate.mean(counts.window_ns as f64 / 1e9);
        }
        counts
    }

    fn wait_until(&self, start_at_ns: u64) {
        while !self.shared.interrupted.load(Ordering::Relaxed) {
            let left_ns = start_at_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(INTERRUPT_LATENCY));
        }
    }

    /// Returns a handle with which another thread can observe the running slice, and end it and all later
    /// ones.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Number of requests of one thread. Request r belongs to connection r % connections, which belongs to
    /// thread c % threads. In open loop it belongs to thread r % threads.
    fn requests_of(&self, thread: usize, total: u64) -> u64 {
        if self.spec.arrivals != Arrivals::Closed {
            return dealt(total, self.threads.len() as u64, thread as u64);
        }
        let connections = u64::from(self.spec.connections);
        let mine = (thread as u64..connections).step_by(self.threads.len());
        mine.map(|connection| dealt(total, connections, connection))
            .sum()
    }
}

impl Handle {
    /// Ends the running slice within about a tenth of a second, and every later one at once.
    pub fn stop(&self) {
        self.0.interrupted.store(true, Ordering::Relaxed);
    }

    /// Complete responses in this slice so far. Up to 50 ms old.
    pub fn done(&self) -> u64 {
        self.0
            .threads
            .iter()
            .map(|thread| thread.completed.load(Ordering::Relaxed))
            .sum()
    }

    /// Returns the counts of the running slice so far, or `None` between slices. Takes a tenth of a second
    /// and makes each thread copy its histograms, so call it only every few seconds.
    pub fn so_far(&self) -> Option<Counts> {
        self.0.watched.store(true, Ordering::Relaxed);
        std::thread::sleep(PUBLISHED);
        self.0.watched.store(false, Ordering::Relaxed);
        let seen = |thread: &Published| {
            thread
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
        };
        self.0
            .threads
            .iter()
            .filter_map(seen)
            .map(|counts| *counts)
            .reduce(merged)
    }
}

/// Merges the counts of two threads that ran in parallel.
fn merged(mut one: Counts, other: Counts) -> Counts {
    one.merge(other, Windows::Parallel);
    one
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.handle().stop();
        let handles: Vec<_> = self.threads.drain(..).map(|thread| thread.handle).collect();
        // A thread that panicked has reported that already, and a destructor should not repeat it.
        handles.into_iter().for_each(|handle| drop(handle.join()));
    }
}

impl GeneratorThread {
    fn tell(&self, command: ThreadCommand) {
        self.commands
            .send(command)
            .expect("a load thread has panicked");
    }

    fn next(&self) -> ThreadReport {
        self.reports.recv().expect("a load thread has panicked")
    }

    fn counts(&self) -> Counts {
        let ThreadReport::Done(counts) = self.next() else {
            unreachable!("the response to Load")
        };
        *counts
    }
}

impl LoadSpec {
    /// Checks the spec as [`Generator::start`] does, without starting anything.
    ///
    /// # Errors
    /// Returns an error for an invalid spec, or a source address that is not this machine's.
    pub fn check(&self) -> Result<(), LoadError> {
        checked(self).map(drop)
    }
}

/// Checks a spec, and returns its rendered requests and TLS settings.
fn checked(spec: &LoadSpec) -> Result<(Arc<RequestArena>, Option<TlsSettings>), LoadError> {
    check(spec)?;
    let arena = Arc::new(RequestArena::render(&requests(spec), &spec.users)?);
    check_requests(spec, &arena)?;
    let tls = spec
        .tls
        .as_ref()
        .map(|tls| trust::settings(tls, crate::protocol::row(spec.protocol).alpn.as_bytes()))
        .transpose()?;
    Ok((arena, tls))
}

/// The requests as they are sent. If each uses its own connection, they carry `Connection: close`.
fn requests(spec: &LoadSpec) -> Vec<RequestSpec> {
    let mut requests: Vec<RequestSpec> = spec.all_requests().cloned().collect();
    for request in requests.iter_mut().filter(|_| !spec.keep_alive) {
        if !header::has(&request.headers, "connection") {
            request.headers.push(("Connection".into(), "close".into()));
        }
    }
    requests
}

fn spawn(spec: &Arc<LoadSpec>, index: u32, common: Common) -> Result<GeneratorThread, LoadError> {
    let (commands, commands_end) = channel();
    let (reports_end, reports) = channel();
    let (spec, ends) = (spec.clone(), (commands_end, reports_end));
    let named = std::thread::Builder::new().name(format!("load-{index}"));
    let handle = named
        .spawn(move || thread::work(&spec, index, common, ends))
        .map_err(no_thread)?;
    Ok(GeneratorThread {
        commands,
        reports,
        handle,
    })
}

// Dividing one load among several generators. [`model::Counts::merge`] merges their counts.
//
// ```text
// connections  0 1 2 3 4 5 6       connection c belongs to generator c mod generators
// generator    0 1 2 0 1 2 0
// lanes        0 1 | 2 3 | 4 5     each generator has some adjacent lanes, one thread each; arrivals go to lanes
// ```
// This part does not depend on where generators run or how they communicate.

impl LoadSpec {
    /// Divides this spec among at most this number of generators, each with `threads` threads, or fewer if it
    /// gets fewer connections. There are never more generators than connections, so the list may be shorter.
    ///
    /// In open loop, the requests and their times are the same whether one machine has all lanes or each has
    /// some. In closed loop each generator draws requests only for its lanes.
    pub fn divided(&self, generators: u32, threads: u32) -> Vec<LoadSpec> {
        self.divided_among(generators, |_, _| threads)
    }

    /// The same for generators with different thread counts. `threads` returns the count for an index and a
    /// number of connections.
    pub fn divided_among(
        &self,
        generators: u32,
        threads: impl Fn(u32, u32) -> u32,
    ) -> Vec<LoadSpec> {
        let generators = generators.clamp(1, self.connections.max(1));
        let connections =
            |index: u32| dealt(self.connections.into(), generators.into(), index.into()) as u32;
        let threads =
            |index: u32| threads(index, connections(index)).clamp(1, connections(index).max(1));
        let of = (0..generators).map(threads).sum();
        let mut first = 0;
        let part = |index| {
            let lanes = Some(Lanes { first, of });
            first += threads(index);
            LoadSpec {
                connections: connections(index),
                threads: threads(index),
                lanes,
                ..self.clone()
            }
        };
        (0..generators).map(part).collect()
    }
}

// Open file limits: raised if needed, or a clear error before the load starts.

/// Files the caller may open while the load runs, such as its record and its own sockets.
const RESERVE: u64 = 32;

/// Checks that `connections` on `threads` fit, and raises the soft limit to the hard one only if that is
/// needed.
///
/// Otherwise the limit is unchanged. Processes started later inherit it, and a service should not run under
/// another limit only because a load began before.
pub(crate) fn ensure_descriptors(connections: u32, threads: u32) -> Result<(), LoadError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let needed = open + u64::from(connections) + u64::from(threads) + RESERVE;
    let Rlimit {
        current: soft,
        maximum: hard,
    } = getrlimit(Resource::Nofile);
    // `None` means no limit.
    if soft.is_none_or(|soft| needed <= soft) {
        return Ok(());
    }
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: hard,
            maximum: hard,
        },
    );
    let limit = if raised.is_ok() { hard } else { soft };
    match limit {
        Some(limit) if needed > limit => {
            let limit = format!("the limit of this process is {limit} (ulimit -n)");
            Err(LoadError::System(format!(
                "{needed} open files are needed, {limit}"
            )))
        }
        _ => Ok(()),
    }
}

// Validation of a spec before anything starts. Errors name the problem, the value and the limit.
//
// It briefly opens a socket to check that a source address belongs to this machine, and sends nothing.

/// Maximum requests in flight on one connection, far more than any server takes.
const LANES_MAX: u32 = 1000;
/// Maximum length of a unix socket's path: `sun_path` of unix(7), without the terminating byte.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Checks the spec's own values.
fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    let LoadSpec {
        connections,
        threads,
        protocol,
        ..
    } = *spec;
    if connections == 0 {
        return refuse("load.connections", "0 is too few, at least 1");
    }
    if !(1..=connections).contains(&threads) {
        let problem = format!(
            "{} for {}, from 1 to {connections}",
            many(threads.into(), "thread"),
            many(connections.into(), "connection")
        );
        return refuse("load.threads", problem);
    }
    let (lanes, (field, what)) = (protocol.lanes(), protocol::row(protocol).lanes);
    if !(1..=LANES_MAX).contains(&lanes) {
        return refuse(field, format!("{lanes} {what}, from 1 to {LANES_MAX}"));
    }
    if let Arrivals::Open { rate, .. } = spec.arrivals
        && let Some(problem) = rate.problem()
    {
        return refuse("load.rate", problem);
    }
    match &spec.address {
        Address::Tcp(address) => check_sources(spec, *address),
        Address::Unix(path) => check_socket(spec, path),
    }
}

/// Checks the rendered requests.
fn check_requests(spec: &LoadSpec, arena: &RequestArena) -> Result<(), LoadError> {
    let row = protocol::row(spec.protocol);
    let formless = arena.variants().find(|(_, bytes)| !(row.has_form)(bytes));
    let Some((endpoint, _)) = formless else {
        return Ok(());
    };
    let problem = format!(
        "{endpoint:?} cannot be sent over {}: it needs a host that is one",
        row.name
    );
    refuse("load.requests", problem)
}

/// Checks that each source has the target's address family and is an address of this machine.
fn check_sources(spec: &LoadSpec, target: SocketAddr) -> Result<(), LoadError> {
    for &source in &spec.sources {
        if source.is_ipv4() != target.is_ipv4() {
            let problem = format!("{source} cannot reach {target}: one is IPv4, the other IPv6");
            return refuse("load.sources", problem);
        }
        let family = if source.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let bound = rustix::net::socket(family, SocketType::STREAM, None)
            .and_then(|socket| rustix::net::bind(&socket, &SocketAddr::new(source, 0)));
        if let Err(errno) = bound {
            let problem = format!(
                "{source} cannot be connected from: {errno}; is it an address of this machine?"
            );
            return refuse("load.sources", problem);
        }
    }
    Ok(())
}

fn check_socket(spec: &LoadSpec, path: &Path) -> Result<(), LoadError> {
    let bytes = path.as_os_str().as_bytes();
    if let Some(source) = spec.sources.first() {
        let problem = format!(
            "{source} for the unix socket {}: sources are for TCP",
            path.display()
        );
        return refuse("load.sources", problem);
    }
    if bytes.is_empty() || bytes.contains(&0) {
        let problem = format!(
            "{:?} is no path of a unix socket",
            path.display().to_string()
        );
        return refuse("load.address", problem);
    }
    if bytes.len() > SOCKET_PATH_BYTES_MAX {
        let problem = format!(
            "the path of a unix socket has {} bytes, at most {SOCKET_PATH_BYTES_MAX}: {}; a symbolic link makes it shorter",
            bytes.len(),
            path.display()
        );
        return refuse("load.address", problem);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
