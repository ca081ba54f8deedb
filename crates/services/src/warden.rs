//! The warden: Proofload's own program run again, to supervise one service and to leave nothing of it behind.
//!
//! It runs in its own session, so no key press and no closing terminal reaches it. It adopts every orphan of
//! the service, so a daemon cannot escape. It waits for three events: orders (or their end, which means that
//! Proofload has ended), output, and ended children. One thread, one loop:
//!
//! ```text
//! Proofload ──orders──► warden ◄──output── service
//!           ◄─notices──    │   ◄──SIGCHLD─    ├── worker
//!                          └─► log            └── daemon
//! ```
//! The warden does not use the network, measure, or decide anything about the trial.

mod output;
mod tree;

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use machine::clock::process_cpu_ns;
use machine::groups::ControlGroup;
use output::{LoggedPipe, ServiceLog};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tree::{Shutdown, SignalledProcesses};

use crate::container;
use crate::cpus::{hurry, pin};
use crate::marker::{self, HeldFolder, Marker};
use crate::message::{
    Exit, HeadProcess, Leftover, Notice, Order, StartFailure, Stopped, WardenSpec,
};

/// Poll interval for a tree that is being ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// CPU time of the warden that one round of killing orphans may take. Wall-clock time does not work if the
/// warden waits for a CPU.
const CHASE_CPU_NS: u64 = 10_000_000;

/// CPU time that one round of reaping may take. Where processes end as fast as they are reaped, other work
/// must be done as well.
const REAPING_CPU_NS: u64 = 5_000_000;
/// A process number in a file has a few digits.
const PID_BYTES_MAX: u64 = 64;

/// Events that wake the warden.
#[derive(Debug, Clone, Copy)]
enum WakeSource {
    Orders,
    Children,
    Output,
}

struct WardenProcess {
    spec: WardenSpec,
    orders: Orders,
    signals: OwnedFd,
    output: LoggedPipe,
    group: Option<ControlGroup>,
    /// The service's private folder, removed on drop.
    scratch: Option<HeldFolder>,
    first: u32,
    exit: Option<Exit>,
    /// Whether ended processes wait to be reaped.
    behind: bool,
    /// Whether no process is left below the warden.
    empty: bool,
    shutdown: Shutdown,
    ending: SignalledProcesses,
}

/// Runs a warden: the whole hidden subcommand. Its orders come on standard input, see [`crate::Warden`].
///
/// Call it before anything else. It closes all descriptors but the standard three, and must be the only
/// thread.
pub fn warden_main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        say(&Notice::Failed(StartFailure::of_warden(panic)))
    }));
    match prepare().and_then(WardenProcess::start) {
        Ok(warden) => {
            warden.run();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            say(&Notice::Failed(failure));
            ExitCode::FAILURE
        }
    }
}

/// Leaves the caller's session, becomes the parent of orphans, and turns signals into a descriptor to poll.
fn prepare() -> Result<OwnedFd, StartFailure> {
    // `pkill proofload` must not end Proofload and its wardens at once.
    let _ = rustix::thread::set_name(c"pf-warden");
    // Other descriptors that the caller left open are closed: an inherited pipe end would keep the pipe open.
    // Kernels before 5.9 refuse, which is harmless.
    // SAFETY: called first, so this program has opened no descriptors yet that this could close.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    rustix::process::setsid()
        .map_err(|error| StartFailure::because("cannot begin a session", error))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| StartFailure::because("cannot adopt orphans", error))?;
    block_signals().map_err(|error| StartFailure::because("cannot wait for signals", error))
}

/// Blocks all signals that can be blocked. The returned descriptor becomes readable when a child ends.
///
/// Signals are blocked so that a SIGCHLD waits until it is read, and so that only SIGKILL ends a warden.
fn block_signals() -> io::Result<OwnedFd> {
    // SAFETY: no handler is installed, the sets are filled before they are used, and the descriptor that signalfd
    // returns is ours alone.
    unsafe {
        // If the caller ignored SIGCHLD, the kernel would not report ended children.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        match libc::signalfd(
            -1,
            &raw const children,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Sends a notice to Proofload, which may be dead.
fn say(notice: &Notice) {
    if let Ok(line) = serde_json::to_string(notice) {
        let mut output = io::stdout().lock();
        let _ = output
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| output.flush());
    }
}

impl WardenProcess {
    fn start(signals: OwnedFd) -> Result<Self, StartFailure> {
        let mut orders = Orders::default();
        let spec = orders
            .spec(io::stdin().as_fd())
            .map_err(|error| StartFailure::because("cannot read its orders", error))?;
        // The service inherits the pinning. Neither may disturb the load generator.
        pin(&spec.cpus).map_err(|error| {
            StartFailure::because(format!("cannot run on CPUs {:?}", spec.cpus), error)
        })?;
        let log = ServiceLog::create(&spec.log).map_err(|error| {
            StartFailure::Other(format!(
                "cannot write its log {}: {error}",
                spec.log.display()
            ))
        })?;
        let scratch = spec.scratch.as_ref().map(|scratch| {
            let place = scratch.directory.display();
            let words =
                format!("cannot make its folder {place} (TMPDIR names another place for such)");
            HeldFolder::create(scratch)
                .map_err(|error| StartFailure::Other(format!("{words}: {error}")))
        });
        let scratch = scratch.transpose()?;
        let (output, inlet) = LoggedPipe::open(log, &spec.logs)
            .map_err(|error| StartFailure::because("no pipe", error))?;
        let (first, group) = spawn(&spec, inlet)?;
        say(&Notice::Started {
            pid: first,
            group: group.clone(),
        });
        Ok(Self {
            spec,
            orders,
            signals,
            output,
            group,
            scratch,
            first,
            exit: None,
            behind: false,
            empty: false,
            shutdown: Shutdown::Off,
            ending: SignalledProcesses::default(),
        })
    }

    fn run(mut self) {
        loop {
            let now = Instant::now();
            while let Some(order) = self.orders.next() {
                match order {
                    Order::Tail => say(&Notice::Tail(self.output.tail())),
                    Order::Stop => {
                        self.shutdown.begin(now, self.spec.stop_timeout);
                        break;
                    }
                }
            }
            match self.shutdown.step(now, self.empty) {
                Shutdown::Off => {}
                Shutdown::Asking { early_until, until } => self.ask(now < early_until, until),
                Shutdown::Killing { .. } => {
                    hurry();
                    self.group.as_ref().map(marker::kill_group);
                    self.chase();
                    self.ending.kill();
                }
                Shutdown::Over => break,
            }
            self.wait(now);
        }
        self.finish();
    }

    /// Waits for an event and handles it.
    fn wait(&mut self, now: Instant) {
        // A tree that is being ended has to be polled.
        let looking = (self.behind || self.shutdown != Shutdown::Off).then_some(LOOK_AGAIN);
        let timeout = looking.into_iter().chain(self.output.pause(now)).min();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let input = io::stdin();
        // Only events of interest: a closed input or output would otherwise wake the loop endlessly.
        let wanted = [
            Some((WakeSource::Orders, input.as_fd())).filter(|_| !self.orders.over),
            Some((WakeSource::Children, self.signals.as_fd())).filter(|_| !self.empty),
            self.output
                .wanted(now)
                .map(|output| (WakeSource::Output, output)),
        ];
        let wait_for = |(source, on)| (source, PollFd::from_borrowed_fd(on, PollFlags::IN));
        let (sources, mut waiting): (Vec<WakeSource>, Vec<PollFd<'_>>) =
            wanted.into_iter().flatten().map(wait_for).unzip();
        if poll(&mut waiting, timeout.as_ref()).is_err() {
            return;
        }
        let ready: Vec<bool> = waiting
            .iter()
            .map(|descriptor| !descriptor.revents().is_empty())
            .collect();
        for (source, _) in sources.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            match source {
                WakeSource::Orders => self.orders.read(input.as_fd()),
                WakeSource::Children => self.reap(),
                WakeSource::Output => self.output.pump(Instant::now()),
            }
        }
        if self.behind {
            self.reap();
        }
    }

    /// Kills orphans until no new one appears. Ended ones are reaped in between, because living ones are hard
    /// to find among thousands of ended processes.
    fn chase(&mut self) {
        let (mut known, until_ns) = (HashSet::new(), process_cpu_ns() + CHASE_CPU_NS);
        while self.ending.kill_children(&mut known) && process_cpu_ns() < until_ns {
            self.reap();
        }
    }

    fn reap(&mut self) {
        let mut signal = [0; 1024];
        while rustix::io::read(&self.signals, &mut signal).is_ok() {}
        let until_ns = process_cpu_ns() + REAPING_CPU_NS;
        loop {
            self.behind = process_cpu_ns() >= until_ns;
            if self.behind {
                return;
            }
            match tree::reap() {
                Ok(None) => return,
                Err(_) => break,
                Ok(Some((pid, exit))) if pid == self.first && self.exit.is_none() => {
                    self.exit = Some(exit);
                    // The root process has ended, so all its output is in the pipe.
                    self.output.drain();
                    say(&Notice::Exited {
                        exit,
                        tail: self.output.tail(),
                    });
                }
                Ok(Some(_)) => {}
            }
        }
        if !std::mem::replace(&mut self.empty, true) {
            say(&Notice::Empty);
        }
    }

    /// Sends SIGTERM to the head alone, if there is one. If that daemon is slow at ending the others, it has
    /// half of the time. After that it must not start them again while the warden ends them.
    fn ask(&mut self, is_early: bool, until: Instant) {
        let head = match &self.spec.head {
            None => None,
            Some(HeadProcess::First) => Some(self.first),
            Some(HeadProcess::Named(file)) => {
                let text = plan::read_text(file, PID_BYTES_MAX);
                let head = text.ok().and_then(|text| text.trim().parse().ok());
                if !is_early {
                    self.ending.kill_head(head);
                }
                head.filter(|_| is_early)
            }
        };
        self.ending.ask(head, until);
    }

    fn finish(mut self) {
        self.output.drain();
        let containers = self
            .spec
            .cleanup
            .as_ref()
            .map(container::clean_up)
            .unwrap_or_default();
        // After the last use of its files, and before the end is reported.
        let stays = self.scratch.take().and_then(HeldFolder::remove);
        let (output_bytes, output_dropped_bytes) = self.output.log.finish();
        self.group.as_ref().map(marker::remove_group);
        let (killed, mut leftovers) = self.ending.result();
        leftovers.extend(containers);
        leftovers.extend(stays.map(|description| Leftover {
            pid: 0,
            description,
        }));
        let exit = self.exit;
        say(&Notice::Stopped(Stopped {
            exit,
            killed,
            leftovers,
            output_bytes,
            output_dropped_bytes,
        }));
    }
}

/// Starts the service, in a control group if possible.
fn spawn(spec: &WardenSpec, inlet: OwnedFd) -> Result<(u32, Option<ControlGroup>), StartFailure> {
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(number) => StartFailure::Execute(number),
        None => StartFailure::because("nothing started", error),
    };
    let marker = spec.group.then(|| Marker::parse(&spec.marker)).flatten();
    if let Some(group) = marker.and_then(|marker| marker::create_group(&marker)) {
        let inlet = inlet.try_clone().map_err(refused)?;
        match marker::entrance(&group).and_then(|entrance| tree::spawn(spec, inlet, Some(entrance)))
        {
            Ok(first) => return Ok((first, Some(group))),
            // Some kernels permit creating a group that cannot be joined.
            Err(_) => marker::remove_group(&group),
        }
    }
    tree::spawn(spec, inlet, None)
        .map(|first| (first, None))
        .map_err(refused)
}

// The warden's input: the line with the spec, then orders, then end of input, which is an order too.
//
// It only reads lines.

/// Maximum length of a line. An environment may be large, and so may files made from templates. A longer line
/// is a fault.
const LINE_BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
struct Orders {
    pending: Vec<u8>,
    /// Whether the input has ended.
    over: bool,
}

impl Orders {
    /// Waits for the first line.
    fn spec(&mut self, input: BorrowedFd<'_>) -> io::Result<WardenSpec> {
        loop {
            if let Some(line) = self.line() {
                return Ok(serde_json::from_slice(&line)?);
            }
            if self.over {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.read(input);
        }
    }

    /// Reads once.
    fn read(&mut self, input: BorrowedFd<'_>) {
        let mut buffer = [0; 16 << 10];
        match rustix::io::read(input, &mut buffer) {
            Ok(count) if count > 0 && self.pending.len() < LINE_BYTES_MAX => {
                self.pending.extend_from_slice(&buffer[..count]);
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => self.over = true,
        }
    }

    /// Returns the next order. Proofload sends only orders, so an unreadable line counts as end of input.
    fn next(&mut self) -> Option<Order> {
        match self.line() {
            Some(line) => Some(serde_json::from_slice(&line).unwrap_or(Order::Stop)),
            None => self.over.then_some(Order::Stop),
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.pending.iter().position(|byte| *byte == b'\n')?;
        let rest = self.pending.split_off(end + 1);
        Some(std::mem::replace(&mut self.pending, rest))
    }
}
