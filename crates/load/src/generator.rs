//! The generator: engine threads behind a blocking call for each slice.
//!
//! The control plane. It deals connections and requests to the threads, tells them when to begin, and merges what they
//! report; it touches no socket.

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
use crate::connection::TlsSettings;
use crate::error::{no_thread, refuse};
use crate::thread::{Command, Common, PUBLISHED, Published, Report, Shared};
use crate::{Address, Arrivals, Lanes, LoadError, LoadSpec, Request, Until, clock, protocol, thread, trust};

/// How long an interrupt waits at most for a generator that waits for its begin.
const INTERRUPT_LATENCY: Duration = Duration::from_millis(50);

/// Load on one service: threads and connections that live over many slices. Dropping it closes the connections and
/// joins the threads.
#[derive(Debug)]
pub struct Generator {
    threads: Vec<Thread>,
    spec: Arc<LoadSpec>,
    shared: Arc<Shared>,
}

/// Shows how far a slice has come, and ends slices early; see [`Generator::handle`].
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Thread {
    /// Without it the thread ends.
    commands: Sender<Command>,
    reports: Receiver<Report>,
    handle: JoinHandle<()>,
}

impl Generator {
    /// Starts the threads. Connections are opened by the first [`run`](Self::run).
    ///
    /// # Errors
    /// [`LoadError`]: a spec that cannot be, a source address that is not this machine's, too few file descriptors (the soft limit is raised to the hard one where needed), a
    /// CPU that cannot be pinned to, a thread that does not start.
    pub fn start(spec: LoadSpec) -> Result<Generator, LoadError> {
        let (arena, tls) = checked(&spec)?;
        ensure_descriptors(spec.connections, spec.threads)?;
        let spec = Arc::new(spec);
        let threads = (0..spec.threads).map(|_| Published::default()).collect();
        let shared = Arc::new(Shared { threads, ..Shared::default() });
        let mut generator = Generator { threads: Vec::new(), spec: spec.clone(), shared: shared.clone() };
        for index in 0..spec.threads {
            let resume = spec.tls.as_ref().is_some_and(|tls| tls.resumption);
            let tls = tls.as_ref().map(|tls| tls.for_thread(resume));
            generator.threads.push(spawn(&spec, index, (arena.clone(), tls, shared.clone()))?);
        }
        for thread in &generator.threads {
            let Report::Started(started) = thread.next() else { unreachable!("a thread starts once, first") };
            started?;
        }
        Ok(generator)
    }

    /// Runs one slice and returns when it is over. Blocks.
    ///
    /// Connections that are missing are opened first, outside of the window, one after the other within a second. They are waited for, at
    /// most the spec's `connect_timeout`; the window begins with those that are open, the others join when they can. At the end what is
    /// in flight is waited for, at most the spec's `timeout`. Connections stay open and idle afterwards.
    ///
    /// `Until::Requests(n)` sends exactly n requests, dealt to threads in the proportion of their connections; it sends
    /// fewer only if a thread had no open connection for `connect_timeout`, or none that took a request for twice as long, or was interrupted.
    ///
    /// In open loop the slice is made of the requests *due* in its window, or the first n of them. The connect phase and
    /// the drain's limit are the same, but what was due and is not sent when the window ends is sent in the drain as connections
    /// become free, unless it is behind its time by more than half a second, or a tenth of a window that is longer than 5 s.
    /// What is not sent even then counts as `unsent` and is a censored sample of the response time.
    pub fn run(&mut self, until: Until) -> Counts {
        self.prepare(until);
        self.load(until, 0)
    }

    /// The first half of [`run`](Self::run): opens connections that are missing. Those who load together from several machines do this
    /// first, so that they can begin at the same time.
    pub fn prepare(&mut self, until: Until) {
        for (index, thread) in self.threads.iter().enumerate() {
            let allowance = match until {
                Until::Elapsed(_) => None,
                Until::Requests(total) => Some(self.requests_of(index, total)),
            };
            thread.tell(Command::Prepare { allowance });
        }
        for thread in &self.threads {
            let Report::Prepared = thread.next() else { unreachable!("the response to Prepare") };
        }
    }

    /// The second half: the window, which begins at `start_at_ns` of CLOCK_MONOTONIC, or at once where that has passed. An interrupt ends
    /// the waiting too.
    pub fn load(&mut self, until: Until, start_at_ns: u64) -> Counts {
        self.wait_until(start_at_ns);
        let started_ns = clock::monotonic_ns();
        for thread in &self.threads {
            thread.tell(Command::Load { started_ns, until });
        }
        let mut counts = self.threads.iter().map(Thread::counts).reduce(merged).unwrap_or_default();
        let buckets = &mut counts.successful_per_100_ms;
        buckets.resize(buckets.len().max(counts.window_ns.div_ceil(BUCKET_NS) as usize), 0);
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

    /// By which another thread can see how far the running slice is, and end it with all later ones.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Request r belongs to connection r % connections, and that to thread c % threads; in open loop to thread r % threads.
    fn requests_of(&self, thread: usize, total: u64) -> u64 {
        if self.spec.arrivals != Arrivals::Closed {
            return dealt(total, self.threads.len() as u64, thread as u64);
        }
        let connections = u64::from(self.spec.connections);
        let mine = (thread as u64..connections).step_by(self.threads.len());
        mine.map(|connection| dealt(total, connections, connection)).sum()
    }
}

impl Handle {
    /// Ends the running slice within about a tenth of a second, and every later one at once.
    pub fn stop(&self) {
        self.0.interrupted.store(true, Ordering::Relaxed);
    }

    /// Complete responses in this slice so far; up to 50 ms old.
    pub fn done(&self) -> u64 {
        self.0.threads.iter().map(|thread| thread.completed.load(Ordering::Relaxed)).sum()
    }

    /// What has been counted of the slice under way; `None` between slices. Takes a tenth of a second, and has each thread
    /// copy its histograms: for a look every few seconds.
    pub fn so_far(&self) -> Option<Counts> {
        self.0.watched.store(true, Ordering::Relaxed);
        std::thread::sleep(PUBLISHED);
        self.0.watched.store(false, Ordering::Relaxed);
        let seen = |thread: &Published| thread.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.0.threads.iter().filter_map(seen).map(|counts| *counts).reduce(merged)
    }
}

/// What two threads have counted side by side.
fn merged(mut one: Counts, other: Counts) -> Counts {
    one.merge(other, Windows::Parallel);
    one
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.handle().stop();
        let handles: Vec<_> = self.threads.drain(..).map(|thread| thread.handle).collect();
        // A thread that panicked has said so already, and a destructor is no place to say it again.
        handles.into_iter().for_each(|handle| drop(handle.join()));
    }
}

impl Thread {
    fn tell(&self, command: Command) {
        self.commands.send(command).expect("a load thread has panicked");
    }

    fn next(&self) -> Report {
        self.reports.recv().expect("a load thread has panicked")
    }

    fn counts(&self) -> Counts {
        let Report::Done(counts) = self.next() else { unreachable!("the response to Load") };
        *counts
    }
}

/// How many of `total` things the taker `index` gets when they are dealt in turn to so many `takers`.
pub(crate) fn dealt(total: u64, takers: u64, index: u64) -> u64 {
    total / takers + u64::from(index < total % takers)
}

impl LoadSpec {
    /// Checks what the spec asks for as [`Generator::start`] does, and starts nothing.
    ///
    /// # Errors
    /// A spec that cannot be, or a source address that is not this machine's.
    pub fn check(&self) -> Result<(), LoadError> {
        checked(self).map(drop)
    }
}

/// Checks a spec, and returns its rendered requests and its TLS.
fn checked(spec: &LoadSpec) -> Result<(Arc<RequestArena>, Option<TlsSettings>), LoadError> {
    check(spec)?;
    let arena = Arc::new(RequestArena::render(&requests(spec), &spec.users)?);
    check_requests(spec, &arena)?;
    let tls = spec.tls.as_ref().map(|tls| trust::settings(tls, spec.protocol)).transpose()?;
    Ok((arena, tls))
}

/// The requests as they are sent: where each has a connection of its own, it says so.
fn requests(spec: &LoadSpec) -> Vec<Request> {
    let mut requests: Vec<Request> = spec.all_requests().cloned().collect();
    for request in requests.iter_mut().filter(|_| !spec.keep_alive) {
        if !header::has(&request.headers, "connection") {
            request.headers.push(("Connection".into(), "close".into()));
        }
    }
    requests
}

fn spawn(spec: &Arc<LoadSpec>, index: u32, common: Common) -> Result<Thread, LoadError> {
    let (commands, commands_end) = channel();
    let (reports_end, reports) = channel();
    let (spec, ends) = (spec.clone(), (commands_end, reports_end));
    let named = std::thread::Builder::new().name(format!("load-{index}"));
    let handle = named.spawn(move || thread::work(&spec, index, common, ends)).map_err(no_thread)?;
    Ok(Thread { commands, reports, handle })
}

// One load for several generators: what each of them does. [`model::Counts::merge`] makes one of what they counted.
//
// ```text
// connections  0 1 2 3 4 5 6       connection c belongs to generator c mod generators
// generator    0 1 2 0 1 2 0
// lanes        0 1 | 2 3 | 4 5     each generator has so many lanes side by side, a thread each; arrivals are dealt to lanes
// ```
// It must not know where generators run, or how one talks to them.

impl LoadSpec {
    /// The specs of so many generators that do together what this one says, each with `threads` threads of its own, or fewer where it
    /// gets fewer connections. Never more generators than connections: the list is shorter then.
    ///
    /// What is due in open loop, and when, is the same whether one machine has all lanes or each has some. In closed loop each
    /// generator draws the requests of its own lanes.
    pub fn divided(&self, generators: u32, threads: u32) -> Vec<LoadSpec> {
        self.divided_among(generators, |_, _| threads)
    }

    /// The same where generators have threads of different number: as `threads` says of each, by its place and its connections.
    pub fn divided_among(&self, generators: u32, threads: impl Fn(u32, u32) -> u32) -> Vec<LoadSpec> {
        let generators = generators.clamp(1, self.connections.max(1));
        let connections = |index: u32| dealt(self.connections.into(), generators.into(), index.into()) as u32;
        let threads = |index: u32| threads(index, connections(index)).clamp(1, connections(index).max(1));
        let of = (0..generators).map(threads).sum();
        let mut first = 0;
        let part = |index| {
            let lanes = Some(Lanes { first, of });
            first += threads(index);
            LoadSpec { connections: connections(index), threads: threads(index), lanes, ..self.clone() }
        };
        (0..generators).map(part).collect()
    }
}

// Open files: as many as the load needs, or a clear refusal before it starts.

/// Files the caller may open while the load runs (its record, sockets of its own) without running into the limit.
const RESERVE: u64 = 32;

/// Checks that `connections` on `threads` fit in, and raises the soft limit to the hard one where only that lets them.
///
/// It is left alone otherwise: processes started later inherit it, and a service should not run under another limit
/// only because a load has begun before.
pub(crate) fn ensure_descriptors(connections: u32, threads: u32) -> Result<(), LoadError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let needed = open + u64::from(connections) + u64::from(threads) + RESERVE;
    let Rlimit { current: soft, maximum: hard } = getrlimit(Resource::Nofile);
    // No limit at all is `None`.
    if soft.is_none_or(|soft| needed <= soft) {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard });
    let limit = if raised.is_ok() { hard } else { soft };
    match limit {
        Some(limit) if needed > limit => {
            let limit = format!("the limit of this process is {limit} (ulimit -n)");
            Err(LoadError::System(format!("{needed} open files are needed, {limit}")))
        }
        _ => Ok(()),
    }
}

// What a spec cannot ask for, refused before anything starts: what is wrong, the value and the limit.
//
// It opens a socket for a moment to see whether a source address is one of this machine's, and sends nothing.

/// Requests under way on one connection: far more than any server takes.
const LANES_MAX: u32 = 1000;
/// Of a unix socket's path: `sun_path` of unix(7), without the byte that ends it.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What the spec says of itself.
fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    let LoadSpec { connections, threads, protocol, .. } = *spec;
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

/// What its requests say, once they are rendered.
fn check_requests(spec: &LoadSpec, arena: &RequestArena) -> Result<(), LoadError> {
    let row = protocol::row(spec.protocol);
    let formless = arena.variants().find(|(_, bytes)| !(row.has_form)(bytes));
    let Some((endpoint, _)) = formless else { return Ok(()) };
    let problem = format!("{endpoint:?} cannot be sent over {}: it needs a host that is one", row.name);
    refuse("load.requests", problem)
}

/// Each source is of the target's family and one of this machine's addresses.
fn check_sources(spec: &LoadSpec, target: SocketAddr) -> Result<(), LoadError> {
    for &source in &spec.sources {
        if source.is_ipv4() != target.is_ipv4() {
            let problem = format!("{source} cannot reach {target}: one is IPv4, the other IPv6");
            return refuse("load.sources", problem);
        }
        let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let bound = rustix::net::socket(family, SocketType::STREAM, None)
            .and_then(|socket| rustix::net::bind(&socket, &SocketAddr::new(source, 0)));
        if let Err(errno) = bound {
            let problem =
                format!("{source} cannot be connected from: {errno}; is it an address of this machine?");
            return refuse("load.sources", problem);
        }
    }
    Ok(())
}

fn check_socket(spec: &LoadSpec, path: &Path) -> Result<(), LoadError> {
    let bytes = path.as_os_str().as_bytes();
    if let Some(source) = spec.sources.first() {
        let problem = format!("{source} for the unix socket {}: sources are for TCP", path.display());
        return refuse("load.sources", problem);
    }
    if bytes.is_empty() || bytes.contains(&0) {
        let problem = format!("{:?} is no path of a unix socket", path.display().to_string());
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
