//! Hazards of what the machine is: shared, virtual, a container, with a slow clock, or of an old kernel.

use crate::Facts;
use crate::hazards::Hazard;
use crate::wording::{many, percent};

/// Share of the CPU time that went to other guests above which slices are disturbed: that of the check `steal`, on records.
pub const STEAL_BAD: f64 = 0.02;
/// Below this a share since boot is what a quiet host shows, too.
pub const STEAL_KNOW: f64 = 0.005;
/// What the load engine takes: waits of less than a millisecond.
pub const KERNEL_MIN: (u32, u32) = (5, 11);
/// Clocks that are read without a system call.
pub const CLOCKS_FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Time that the hypervisor gave to others.
pub fn steal(facts: &Facts) -> Option<Hazard> {
    let boot = facts.host.steal_share?;
    let watched = facts.watched.as_ref().map(|watched| watched.steal_share);
    if boot == 0.0 && watched.unwrap_or(0.0) == 0.0 {
        return Some(Hazard::fine("steal", "no CPU time went to other guests since boot"));
    }
    let now = facts
        .watched
        .as_ref()
        .map(|watched| format!(", {} in the {:.1} s watched", percent(watched.steal_share), watched.seconds));
    let evidence =
        format!("other guests took {} of the CPU time since boot{}", percent(boot), now.unwrap_or_default());
    let remedy = "the host takes processors away in the middle of a request: means get worse and tails much worse. Blocks spread it \
                  over all variants, so it widens intervals; processors of your own (dedicated vCPUs) narrow them";
    Some(match boot.max(watched.unwrap_or(0.0)) {
        share if share > STEAL_BAD => Hazard::bad("steal", evidence, remedy),
        share if share > STEAL_KNOW => Hazard::know("steal", evidence, remedy),
        _ => Hazard::fine("steal", evidence),
    })
}

/// A machine within a machine.
pub fn hypervisor(facts: &Facts) -> Option<Hazard> {
    let Some(name) = &facts.host.hypervisor else {
        // A kernel that tells nothing at all is no bare metal.
        return facts.processors.model.as_ref().map(|_| Hazard::fine("hypervisor", "none: bare metal"));
    };
    Some(Hazard::know(
        "hypervisor",
        format!("a virtual machine ({name})"),
        "neighbours share caches, memory and frequency, which no counter in here shows; compare variants of one run, and do not quote \
         figures alone",
    ))
}

/// A container on somebody's kernel.
pub fn container(facts: &Facts) -> Option<Hazard> {
    match &facts.host.container {
        None => facts.host.kernel.as_ref().map(|_| Hazard::fine("container", "none to be seen")),
        Some(kind) => Some(Hazard::know(
            "container",
            format!("inside of one ({kind})"),
            "others may run on these processors, unseen from here; kernel switches are the host's",
        )),
    }
}

/// How time is read.
pub fn clock(facts: &Facts) -> Option<Hazard> {
    let clock = facts.host.clock.as_deref()?;
    if CLOCKS_FAST.contains(&clock) {
        return Some(Hazard::fine("clock", format!("{clock}, read without a system call")));
    }
    let others = facts.host.clocks.iter().filter(|other| *other != clock);
    let fast = others.clone().find(|other| CLOCKS_FAST.contains(&other.as_str()));
    let among: Vec<&str> = others.map(String::as_str).collect();
    let evidence = match among.as_slice() {
        [] => format!("{clock}, and there is no other"),
        others => format!("{clock}; there is also {}", others.join(", ")),
    };
    let remedy = "each look at the clock costs a system call or a slow device, and services and generator look a few times a request: \
                  figures are too low, of those who look often most of all";
    let hazard = match clock {
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => Hazard::bad("clock", evidence, remedy),
        _ => Hazard::know("clock", evidence, remedy),
    };
    Some(match fast {
        Some(fast) => hazard
            .run(format!("echo {fast} > /sys/devices/system/clocksource/clocksource0/current_clocksource")),
        None => hazard,
    })
}

/// Several memories, one of which is near.
pub fn numa(facts: &Facts) -> Option<Hazard> {
    let nodes = facts.host.nodes?;
    if nodes < 2 {
        return Some(Hazard::fine("numa", "one node of memory"));
    }
    let moves = match facts.host.numa_balancing {
        Some(true) => ", and the kernel moves pages between them",
        _ => "",
    };
    Some(
        Hazard::know(
            "numa",
            format!("{nodes} nodes of memory{moves}"),
            "memory of the other node is slower, and where a process ends up differs from start to start; keep all on one",
        )
        .run("numactl --cpunodebind=0 --membind=0 proofload run experiment.toml"),
    )
}

/// Random addresses, which blocks of fresh processes average over.
pub fn address_layout(facts: &Facts) -> Option<Hazard> {
    let layout = facts.host.address_layout?;
    if layout > 0 {
        return Some(Hazard::fine("address_layout", "random: blocks of fresh processes average over it"));
    }
    Some(
        Hazard::know(
            "address_layout",
            "the same in every process (kernel.randomize_va_space is 0)",
            "where code and data lie shifts speed by per cents. If they always lie alike, a difference may be that of two layouts, \
             however many blocks there are (Mytkowicz et al. 2009)",
        )
        .run("sysctl -w kernel.randomize_va_space=2"),
    )
}

/// New enough.
pub fn kernel(facts: &Facts) -> Option<Hazard> {
    let release = facts.host.kernel.as_deref()?;
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let evidence = format!("Linux {release}");
    let (major, minor) = KERNEL_MIN;
    Some(if version < KERNEL_MIN {
        let remedy = format!("the load engine takes Linux {major}.{minor} or newer and will not start here");
        Hazard::bad("kernel", evidence, remedy)
    } else {
        Hazard::fine("kernel", evidence)
    })
}

/// What the kernel does about the processors' flaws. A remark: it should stay as it is where the service will run so.
pub fn flaws(facts: &Facts) -> Option<Hazard> {
    let all = facts.host.flaws.len();
    let mitigated = facts.host.mitigated();
    let evidence = match mitigated {
        0 => "no mitigation of processor flaws is at work".to_owned(),
        some => format!(
            "{} of processor flaws at work ({all} known): system calls cost more than without",
            many(some as u64, "mitigation")
        ),
    };
    (all > 0).then(|| Hazard::fine("mitigations", evidence))
}
