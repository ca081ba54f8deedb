//! Hazards of what this process may not do: io_uring, accounts of CPU time, profiles; and programs that are not there.

use crate::Facts;
use crate::hazards::Hazard;

/// `kernel.perf_event_paranoid` up to which everyone may profile services with the kernel's part.
pub const PARANOID_FINE: i64 = 1;

/// What moves the bytes of the load.
pub fn io_uring(facts: &Facts) -> Option<Hazard> {
    let answer = facts.asked.io_uring.as_ref()?;
    if answer.granted {
        return Some(Hazard::fine("io_uring", "granted: the load engine uses it"));
    }
    let reason = answer.reason.as_deref().unwrap_or("refused");
    let evidence = format!("not to be had, so the load engine uses epoll: {reason}");
    let effect = "the generator takes more CPU time for the same load; it counts the same";
    let disabled = facts.rights.io_uring_disabled.unwrap_or(0) > 0;
    Some(if disabled {
        Hazard::know("io_uring", evidence, effect).run("sysctl -w kernel.io_uring_disabled=0")
    } else if facts.rights.filtered == Some(true) {
        let remedy = format!(
            "{effect}; a filter stands before system calls, in Docker that is --security-opt seccomp=FILE"
        );
        Hazard::know("io_uring", evidence, remedy)
    } else {
        Hazard::know("io_uring", evidence, format!("{effect}; Linux 6.12 or newer has what it takes"))
    })
}

/// How the CPU time of services is counted.
pub fn accounts(facts: &Facts) -> Option<Hazard> {
    Some(match facts.asked.group_writable? {
        true => Hazard::fine("accounts", "CPU time of services is counted by a control group"),
        false => Hazard::know(
            "accounts",
            "no control group can be made for services",
            "their CPU time is summed up over processes: up to 20 ms of each that starts others is lost, and children that nobody waits \
             for; run as root, or delegate a group",
        )
        .run("systemd-run --user --scope -p Delegate=yes proofload run experiment.toml"),
    })
}

/// Whether services can be profiled below their JavaScript.
pub fn profiles(facts: &Facts) -> Option<Hazard> {
    const RUN: &str = "sysctl -w kernel.perf_event_paranoid=1 kernel.kptr_restrict=0";
    let strict = facts.rights.perf_event_paranoid.is_some_and(|paranoid| paranoid > PARANOID_FINE);
    if let Some(refused) = facts.asked.stacks.as_ref().filter(|stacks| !stacks.granted) {
        let evidence = refused.reason.clone().unwrap_or_else(|| "no native profiles".to_owned());
        let effect = "--explain has JavaScript in full all the same; of compiled code and of the kernel it has CPU time by thread alone";
        let hazard = Hazard::know("profiles", evidence, effect);
        return Some(if strict { hazard.run(RUN) } else { hazard });
    }
    let (paranoid, hidden) = (facts.rights.perf_event_paranoid?, facts.rights.kptr_restrict.unwrap_or(0));
    let evidence = format!("perf_event_paranoid {paranoid}, kptr_restrict {hidden}");
    if facts.rights.root == Some(true) || !strict && hidden == 0 {
        return Some(Hazard::fine("profiles", evidence));
    }
    let effect = if strict {
        "--explain has JavaScript and compiled code in full, and no stacks of the kernel; measurements do not need this"
    } else {
        "functions of the kernel have no names in what --explain says; measurements do not need this"
    };
    Some(Hazard::know("profiles", evidence, effect).run(RUN))
}

/// What the shipped experiments start.
pub fn programs(facts: &Facts) -> Option<Hazard> {
    let all = &facts.asked.programs;
    let there = all.iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
    let there: Vec<String> = there.collect();
    let missing: Vec<&str> =
        all.iter().filter(|(_, version)| version.is_none()).map(|(name, _)| name.as_str()).collect();
    let have = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    (!all.is_empty()).then(|| match missing.as_slice() {
        [] => Hazard::fine("programs", have),
        missing => Hazard::know(
            "programs",
            format!("{have}; not here: {}", missing.join(", ")),
            "shipped experiments need them; your own may not",
        )
        .run("make setup"),
    })
}
