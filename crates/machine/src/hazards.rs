//! Hazards: facts that impair a measurement, facts worth knowing, and facts that are fine, with figures and
//! remedies. || Pure. A hazard with unknown facts is omitted, because silence is better than a guess. This
//! module prints nothing.

use model::Grade::{Fine, Note, Warning};
use model::quantity::{count, decimal, many, share};
use model::thresholds::{CpuLoss, CpuLossLevel};
use model::{Evidence, Finding, Grade, Quantity, Remedy, evidence};

use crate::facts::Facts;

mod limits;

use limits::{
    accept_queue, accounts, conntrack, io_uring, link, open_files, ports, profiles, programs,
};

/// A property of a machine that measurements depend on, by name. Its grade is a warning if it falsifies
/// figures or widens intervals much. It is a note if it limits the meaning of results or the possible
/// measurements.
pub type Hazard = Finding<&'static str>;

/// The grade, the evidence and the remedy. `None` if the facts are unknown.
type HazardResult = Option<(Grade, Evidence, Remedy)>;

type HazardCheck = fn(&Facts) -> HazardResult;

/// All checks, in the order in which hazards of one grade are reported.
const ALL: [(&str, HazardCheck); 30] = [
    ("processors", processors),
    ("quota", quota),
    ("siblings", siblings),
    ("steal", steal),
    ("others", others),
    ("spin", spin),
    ("governor", governor),
    ("turbo", turbo),
    ("heat", heat),
    ("battery", battery),
    ("clock", clock),
    ("memory", memory),
    ("swap", swap),
    ("huge_pages", huge_pages),
    ("storage", storage),
    ("open_files", open_files),
    ("accept_queue", accept_queue),
    ("ports", ports),
    ("conntrack", conntrack),
    ("link", link),
    ("hypervisor", hypervisor),
    ("container", container),
    ("numa", numa),
    ("address_layout", address_layout),
    ("kernel", kernel),
    ("mitigations", mitigations),
    ("io_uring", io_uring),
    ("accounts", accounts),
    ("profiles", profiles),
    ("programs", programs),
];

/// All hazards, most severe first.
pub fn all(facts: &Facts) -> Vec<Hazard> {
    let of = |(name, look): &(&'static str, HazardCheck)| {
        look(facts).map(|(grade, evidence, remedy)| Hazard::new(*name, grade, evidence, remedy))
    };
    let mut hazards: Vec<Hazard> = ALL.iter().filter_map(of).collect();
    hazards.sort_by_key(|hazard| hazard.grade);
    hazards
}

/// Creates a result. A remedy is included only if there is something to fix.
fn told(grade: Grade, evidence: impl Into<Evidence>, remedy: impl Into<Remedy>) -> HazardResult {
    let remedy = if grade == Fine {
        "".into()
    } else {
        remedy.into()
    };
    Some((grade, evidence.into(), remedy))
}

fn fine(evidence: impl Into<Evidence>) -> HazardResult {
    told(Fine, evidence, "")
}

/// The grade of a figure for which more is worse: a note above `know`, a warning above `bad`.
fn above(value: f64, know: f64, bad: f64) -> Grade {
    if value > bad {
        Warning
    } else if value > know {
        Note
    } else {
        Fine
    }
}

/// The grade of lost CPU time.
fn graded(loss: CpuLoss, share: f64) -> Grade {
    match loss.level(share) {
        CpuLossLevel::Quiet => Fine,
        CpuLossLevel::Noted => Note,
        CpuLossLevel::WidensIntervals | CpuLossLevel::DropsBlock => Warning,
    }
}

/// The grade of a figure for which less is worse: a note below `know`, a warning below `bad`.
fn below(value: f64, know: f64, bad: f64) -> Grade {
    above(-value, -know, -bad)
}

fn by(remedy: impl Into<Remedy>, command: impl Into<std::borrow::Cow<'static, str>>) -> Remedy {
    remedy.into().by(command)
}

/// Number of processors from which generator and services do not compete: one for the generator, one for a
/// service, one for other work of the machine.
const PLENTY: f64 = 3.0;
/// Number of processors below which generator and services have to share one.
const APART: f64 = 2.0;
/// Number of cores from which a sibling of the generator's processor is left idle.
const CORES_APART: usize = 3;

/// Whether there are enough processors for a generator and services without competition.
fn processors(facts: &Facts) -> HazardResult {
    let seen = &facts.processors;
    let all = seen.allowed.or(seen.online)? as f64;
    let usable = seen
        .group
        .quota
        .as_ref()
        .map_or(all, |quota| quota.processors.min(all));
    let online = seen
        .online
        .map(|online| count(online as u64))
        .unwrap_or_default();
    let allowed = seen.allowed.filter(|allowed| Some(*allowed) != seen.online);
    let allowed =
        allowed.map(|allowed| format!(", {} of them allowed to us", count(allowed as u64)));
    let quota = seen.group.quota.as_ref();
    let quota = quota.map(|quota| format!(", a quota of {}", Quantity::number(quota.processors)));
    let evidence = format!(
        "{online} online{}{}",
        allowed.unwrap_or_default(),
        quota.unwrap_or_default()
    );
    let remedy = if usable < APART {
        "the load generator and the service take time from each other; use a machine with three or more"
    } else {
        "one for the generator and one for the services: what else runs takes from either, and workers cannot be told apart; \
         four or more are better"
    };
    told(below(usable, PLENTY, APART), evidence, remedy)
}

/// A CPU quota: a group that has used it up stops for the rest of the period.
fn quota(facts: &Facts) -> HazardResult {
    let Some(quota) = &facts.processors.group.quota else {
        // A missing quota is known only if the processors were read.
        return facts
            .processors
            .allowed
            .and_then(|_| fine("none on CPU time"));
    };
    let (times, long) = (
        many(quota.throttled, "time"),
        Quantity::ns(quota.throttled_ns),
    );
    let held = format!(", held back {times} so far, {long} in all");
    let held = if quota.throttled > 0 {
        held
    } else {
        String::new()
    };
    let evidence = evidence!("{processors} processors' time in each {period}{held}";
        processors = Quantity::number(quota.processors), period = Quantity::us(quota.period_us as f64));
    let remedy = "whoever has used it up stands still for the rest of the period: stalls of tens of milliseconds that are not the \
                  service's; give whole processors by a cpuset instead, or lift it";
    let lift = if quota.file.ends_with("cpu.max") {
        "max"
    } else {
        "-1"
    };
    told(
        Warning,
        evidence,
        by(remedy, format!("echo {lift} > {}", quota.file)),
    )
}

/// Threads of one core that work for both sides.
fn siblings(facts: &Facts) -> HazardResult {
    let (cores, allowed) = (facts.processors.cores?, facts.processors.allowed?);
    let processors = many(allowed as u64, "processor");
    if cores >= allowed {
        // A guest sees only what its host shows.
        let guest = facts
            .host
            .hypervisor
            .as_ref()
            .map_or("", |_| ", as the hypervisor tells");
        return fine(format!("{processors}, each a core of its own{guest}"));
    }
    let are = if cores == 1 {
        "one core".to_owned()
    } else {
        many(cores as u64, "core")
    };
    let evidence = format!("{processors} are threads of {are}");
    if cores >= CORES_APART {
        return fine(format!("{evidence}; the generator's sibling is left idle"));
    }
    let alone = "generator and services slow each other through what a core shares, and no switch helps with one core; \
                 all variants suffer alike, so compare, and do not quote the figures alone";
    let several = "generator and services may end up on one core and slow each other; switch the second threads off";
    let off = || by(several, "echo off > /sys/devices/system/cpu/smt/control");
    told(
        Note,
        evidence,
        if cores == 1 { alone.into() } else { off() },
    )
}

fn governor(facts: &Facts) -> HazardResult {
    let seen = &facts.frequency;
    if seen.governors.is_empty() {
        let host = facts.host.hypervisor.as_ref()?;
        let remedy = "the host decides about frequency, and may change its mind during a run; blocks spread that over all variants";
        return told(
            Note,
            format!("none to be seen from inside of {host}"),
            remedy,
        );
    }
    let names = seen
        .governors
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let ghz = |khz: u64| decimal(khz as f64 / 1e6, 1);
    let range = seen
        .min_khz
        .zip(seen.max_khz)
        .map(|(min, max)| format!(", {} to {} GHz", ghz(min), ghz(max)));
    let driver = seen
        .driver
        .as_ref()
        .map(|driver| format!(" ({driver})"))
        .unwrap_or_default();
    let evidence = format!("{names}{driver}{}", range.unwrap_or_default());
    let remedy = "the frequency follows the load, so that a service that has less to do gets a slower processor: latencies at a rate \
                  and CPU per request depend on it";
    let grade = if names == "performance" {
        Fine
    } else {
        Warning
    };
    told(
        grade,
        evidence,
        by(remedy, "cpupower frequency-set -g performance"),
    )
}

/// Frequencies that hold only while the processor is cool and few cores work.
fn turbo(facts: &Facts) -> HazardResult {
    if !facts.frequency.turbo? {
        return fine("off");
    }
    let file = facts.frequency.turbo_file.as_deref().unwrap_or_default();
    let off = if file.ends_with("no_turbo") { 1 } else { 0 };
    let remedy = "the frequency depends on heat and on how many cores work, so that a service alone runs faster than next to a \
                  generator; switch it off while you measure";
    told(Note, "on", by(remedy, format!("echo {off} > {file}")))
}

fn heat(facts: &Facts) -> HazardResult {
    let throttled = facts.frequency.throttled?;
    if throttled == 0 {
        return fine("no core was slowed since boot");
    }
    let remedy = "a long run heats up and what comes late in it is slower; see to the cooling, or forbid turbo";
    told(
        Note,
        format!("cores were slowed {} since boot", many(throttled, "time")),
        remedy,
    )
}

fn battery(facts: &Facts) -> HazardResult {
    match facts.frequency.on_battery? {
        false => fine("on mains"),
        true => told(
            Warning,
            "on battery",
            "processors are slowed to save it; plug it in",
        ),
    }
}

/// Load average per processor above which the machine was not quiet within the last minute.
const LOAD_QUIET: f64 = 0.5;
/// Variation of identical work above which the processor's speed is not constant.
const SPIN_CV_KNOW: f64 = 0.02;
/// Variation above which it is noise that affects a comparison.
const SPIN_CV_BAD: f64 = 0.10;

fn others(facts: &Facts) -> HazardResult {
    let watched = facts.watched.as_ref()?;
    let named = watched
        .busiest
        .iter()
        .map(|one| format!("{} ({}) {}", one.name, one.pid, share(one.share)));
    let named = named.collect::<Vec<_>>().join(", ");
    let named = if named.is_empty() {
        named
    } else {
        format!(": {named}")
    };
    let load = facts.host.load_average;
    let average = load
        .map(|load| format!("; load average {}", decimal(load, 2)))
        .unwrap_or_default();
    let processors = facts.processors.online.unwrap_or(1) as f64;
    let used = watched.others / processors;
    let evidence = evidence!("other processes used {used} of the CPU time in the second watched{named}{average}";
        used = Quantity::share(used));
    let grade = graded(CpuLoss::Others, used);
    if grade == Fine && load.is_some_and(|load| load > processors * LOAD_QUIET) {
        let remedy = "quiet now, but not within the last minute: see whether something comes back by and by (a timer, a build, a backup)";
        return told(Note, evidence, remedy);
    }
    let remedy = "it takes time and caches from generator and services, and comes and goes as it likes; end it, or wait until the \
                  machine is quiet";
    told(grade, evidence, by(remedy, "top -o %CPU"))
}

fn spin(facts: &Facts) -> HazardResult {
    let spin = facts.watched.as_ref()?.spin?;
    let evidence = evidence!("the same work {pieces} times: {median} each, spread (CV) {cv}";
        pieces = Quantity::count(spin.pieces as u64), median = Quantity::us(spin.median_us), cv = Quantity::share(spin.cv));
    let remedy = "the processor's speed changes from moment to moment: frequency, heat, or neighbours on its core. Blocks spread that \
                  over all variants; `proofload doctor calibrate` tells how small a difference can be found all the same";
    told(above(spin.cv, SPIN_CV_KNOW, SPIN_CV_BAD), evidence, remedy)
}

/// Required by the load engine for waits of less than a millisecond.
const KERNEL_MIN: (u32, u32) = (5, 11);
/// Clocks that are read without a system call.
const CLOCKS_FAST: [&str; 4] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];

/// Time that the hypervisor gave to other guests.
fn steal(facts: &Facts) -> HazardResult {
    let boot = facts.host.steal_share?;
    let watched = facts.watched.as_ref();
    let worst = watched.map_or(boot, |watched| watched.steal_share.max(boot));
    if worst == 0.0 {
        return fine("no CPU time went to other guests since boot");
    }
    let now = watched.map(|watched| {
        format!(
            ", {} in the {} watched",
            share(watched.steal_share),
            Quantity::seconds(watched.seconds)
        )
    });
    let now = now.unwrap_or_default();
    let evidence = evidence!("other guests took {since_boot} of the CPU time since boot{now}";
        since_boot = Quantity::share(boot));
    let remedy = "the host takes processors away in the middle of a request: means get worse and tails much worse. Blocks spread it \
                  over all variants, so it widens intervals; processors of your own (dedicated vCPUs) narrow them";
    told(graded(CpuLoss::Steal, worst), evidence, remedy)
}

fn hypervisor(facts: &Facts) -> HazardResult {
    let Some(name) = &facts.host.hypervisor else {
        // A kernel that reports nothing at all is not bare metal.
        return facts
            .processors
            .model
            .as_ref()
            .and_then(|_| fine("none: bare metal"));
    };
    let remedy = "neighbours share caches, memory and frequency, which no counter in here shows; compare variants of one run, and do \
                  not quote figures alone";
    told(Note, format!("a virtual machine ({name})"), remedy)
}

fn container(facts: &Facts) -> HazardResult {
    let Some(kind) = &facts.host.container else {
        return facts
            .host
            .kernel
            .as_ref()
            .and_then(|_| fine("none to be seen"));
    };
    let remedy =
        "others may run on these processors, unseen from here; kernel switches are the host's";
    told(Note, format!("inside of one ({kind})"), remedy)
}

fn clock(facts: &Facts) -> HazardResult {
    let clock = facts.host.clock.as_deref()?;
    if CLOCKS_FAST.contains(&clock) {
        return fine(format!("{clock}, read without a system call"));
    }
    let others: Vec<&str> = facts
        .host
        .clocks
        .iter()
        .map(String::as_str)
        .filter(|one| *one != clock)
        .collect();
    let evidence = match others.as_slice() {
        [] => format!("{clock}, and there is no other"),
        others => format!("{clock}; there is also {}", others.join(", ")),
    };
    let remedy = "each look at the clock costs a system call or a slow device, and services and generator look a few times a request: \
                  figures are too low, of those who look often most of all";
    let remedy = match others.iter().find(|other| CLOCKS_FAST.contains(other)) {
        Some(fast) => by(
            remedy,
            format!(
                "echo {fast} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
            ),
        ),
        None => remedy.into(),
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&clock);
    told(if slow { Warning } else { Note }, evidence, remedy)
}

/// Several NUMA nodes, one of which is local.
fn numa(facts: &Facts) -> HazardResult {
    let nodes = facts.host.nodes?;
    if nodes < 2 {
        return fine("one node of memory");
    }
    let moves = match facts.host.numa_balancing {
        Some(true) => ", and the kernel moves pages between them",
        _ => "",
    };
    let remedy = "memory of the other node is slower, and where a process ends up differs from start to start; keep all on one";
    let evidence =
        evidence!("{nodes} nodes of memory{moves}"; nodes = Quantity::count(nodes as u64));
    told(
        Note,
        evidence,
        by(
            remedy,
            "numactl --cpunodebind=0 --membind=0 proofload run experiment.toml",
        ),
    )
}

/// Address space randomisation, over which blocks of fresh processes average.
fn address_layout(facts: &Facts) -> HazardResult {
    if facts.host.address_layout? > 0 {
        return fine("random: blocks of fresh processes average over it");
    }
    let remedy = "where code and data lie shifts speed by per cents. If they always lie alike, a difference may be that of two \
                  layouts, however many blocks there are (Mytkowicz et al. 2009)";
    let evidence = "the same in every process (kernel.randomize_va_space is 0)";
    told(
        Note,
        evidence,
        by(remedy, "sysctl -w kernel.randomize_va_space=2"),
    )
}

fn kernel(facts: &Facts) -> HazardResult {
    let release = facts.host.kernel.as_deref()?;
    let mut numbers = release
        .split(|char: char| !char.is_ascii_digit())
        .map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let (major, minor) = KERNEL_MIN;
    let grade = if version < KERNEL_MIN { Warning } else { Fine };
    let remedy =
        format!("the load engine takes Linux {major}.{minor} or newer and will not start here");
    told(grade, format!("Linux {release}"), remedy)
}

/// Mitigations of processor vulnerabilities. Only a remark, because they should stay on if the service will
/// run with them.
fn mitigations(facts: &Facts) -> HazardResult {
    let flaws = &facts.host.flaws;
    let all = Some(flaws.len()).filter(|all| *all > 0)?;
    // Each of them costs.
    fine(
        match flaws
            .values()
            .filter(|text| text.starts_with("Mitigation"))
            .count() as u64
        {
            0 => "no mitigation of processor flaws is at work".to_owned(),
            some => {
                let some = many(some, "mitigation");
                format!(
                    "{some} of processor flaws at work ({all} known): system calls cost more than without"
                )
            }
        },
    )
}

/// Available memory below which a service and a generator with some thousand connections may cause swapping.
const AVAILABLE_BAD_BYTES: u64 = 512 << 20;
/// Available memory below which services with several workers may cause swapping.
const AVAILABLE_KNOW_BYTES: u64 = 2 << 30;
/// An idle machine has swapped out less than this.
const SWAPPED_KNOW_BYTES: u64 = 64 << 20;
/// Free space below which a record may not fit: some 100 kB per block, and logs of up to a few megabytes per
/// service.
const FREE_BAD_BYTES: u64 = 256 << 20;
/// Free space below which prepared data, such as two gigabytes of JSON, may not fit.
const FREE_KNOW_BYTES: u64 = 4 << 30;

fn bytes(bytes: u64) -> Quantity {
    Quantity::bytes(bytes as f64)
}

fn memory(facts: &Facts) -> HazardResult {
    let available = facts.memory.available_bytes?;
    let limit = facts.processors.group.memory_max_bytes;
    let limit = limit.filter(|limit| facts.memory.total_bytes.is_none_or(|total| *limit < total));
    let of = facts
        .memory
        .total_bytes
        .map(|total| format!(" of {}", bytes(total)))
        .unwrap_or_default();
    let group = limit.map(|limit| format!(", {} allowed to this control group", bytes(limit)));
    let group = group.unwrap_or_default();
    let evidence = evidence!("{available} available{of}{group}"; available = bytes(available));
    let least = available.min(limit.unwrap_or(u64::MAX)) as f64;
    let grade = below(
        least,
        AVAILABLE_KNOW_BYTES as f64,
        AVAILABLE_BAD_BYTES as f64,
    );
    told(
        grade,
        evidence,
        "what does not fit is swapped or killed, and the file cache goes first; end what is not needed",
    )
}

/// Swapped pages are read back in the middle of a request.
fn swap(facts: &Facts) -> HazardResult {
    let (room, used) = (facts.memory.swap_bytes?, facts.memory.swapped_bytes?);
    if room == 0 {
        return fine("none");
    }
    let swappiness = facts
        .memory
        .swappiness
        .map(|value| format!("; swappiness {value}"))
        .unwrap_or_default();
    let evidence = evidence!("{used} of {room} taken ({part}){swappiness}";
        used = bytes(used), room = bytes(room), part = Quantity::share(used.value / room.value));
    let remedy = "pages that are read back take milliseconds in the middle of a request; do without swap while you measure";
    let grade = if facts.memory.swapped_bytes? > SWAPPED_KNOW_BYTES {
        Note
    } else {
        Fine
    };
    told(grade, evidence, by(remedy, "swapoff -a"))
}

/// Huge pages that the kernel assembles in the background.
fn huge_pages(facts: &Facts) -> HazardResult {
    let mode = facts.memory.huge_pages.as_deref()?;
    let remedy = "whether a heap gets them depends on how memory lies at its start, so equal processes differ in memory and speed; \
                  leave them to programs that ask";
    let remedy = by(
        remedy,
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    );
    let grade = if mode == "always" { Note } else { Fine };
    told(grade, format!("transparent huge pages: {mode}"), remedy)
}

fn storage(facts: &Facts) -> HazardResult {
    let storage = facts.asked.storage.as_ref()?;
    let evidence = evidence!("{free} free where records go ({})", storage.folder; free = bytes(storage.free_bytes));
    let grade = below(
        storage.free_bytes as f64,
        FREE_KNOW_BYTES as f64,
        FREE_BAD_BYTES as f64,
    );
    let remedy = match grade {
        Warning => "a record that cannot be written ends the run; make room",
        _ => "enough for records, but perhaps not for prepared data; make room",
    };
    told(grade, evidence, remedy)
}
