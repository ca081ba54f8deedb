//! Limits of the kernel for connections, links and profilers. Pure, as the others.

use model::Grade::{Fine, Note, Warning};
use model::quantity::{count, many};
use model::{Quantity, evidence};

use super::{HazardResult, above, by, fine, told};
use crate::facts::Facts;

/// Descriptors that even a plain load with a few thousand connections needs.
const FILES_HARD_BAD: u64 = 4096;
/// The usual default that services inherit. A proxy uses two for each client.
const FILES_SOFT_KNOW: u64 = 4096;
/// Shorter queues overflow if a few hundred connections open at once. The kernel's default since 5.4 is 4096.
const SOMAXCONN_KNOW: i64 = 1024;
/// Loads of a few thousand connections exhaust fewer local ports than this.
const PORTS_KNOW: u32 = 16_384;
/// Duration of TIME_WAIT in seconds, fixed in the kernel.
const TIME_WAIT_S: u32 = 60;
/// Share of the table of tracked connections above which it may overflow within a run.
const CONNTRACK_BAD: f64 = 0.8;

pub(super) fn open_files(facts: &Facts) -> HazardResult {
    let (soft, hard) = (facts.limits.files_soft?, facts.limits.files_hard?);
    let limit = |limit: u64| {
        if limit == u64::MAX {
            "no limit".to_owned()
        } else {
            count(limit)
        }
    };
    let evidence = match soft == hard {
        true => format!("{} open files", limit(soft)),
        false => format!(
            "{} open files, raised to {} at most",
            limit(soft),
            limit(hard)
        ),
    };
    if hard < FILES_HARD_BAD {
        let remedy =
            "a connection takes one on either side; let this user have more, then log in anew";
        let command = "echo '* hard nofile 1048576' > /etc/security/limits.d/proofload.conf";
        return told(Warning, evidence, by(remedy, command));
    }
    let remedy = "the generator raises its own, services inherit this one, and a proxy takes two for each client";
    let grade = if soft < FILES_SOFT_KNOW { Note } else { Fine };
    told(
        grade,
        evidence,
        by(remedy, format!("ulimit -n {}", hard.min(1 << 20))),
    )
}

pub(super) fn accept_queue(facts: &Facts) -> HazardResult {
    let somaxconn = facts.limits.somaxconn?;
    let length = |length: i64| Quantity::count(u64::try_from(length).unwrap_or(0));
    let half_open = facts
        .limits
        .syn_backlog
        .map(|most| format!(", {} half-open", length(most)));
    let half_open = half_open.unwrap_or_default();
    let evidence = evidence!("{waiting} connections may wait to be accepted{half_open}"; waiting = length(somaxconn));
    let remedy = "when more open at once, the rest try again after 1, 3 and 7 s, and latencies show steps of seconds";
    let grade = if somaxconn < SOMAXCONN_KNOW {
        Note
    } else {
        Fine
    };
    told(
        grade,
        evidence,
        by(remedy, "sysctl -w net.core.somaxconn=4096"),
    )
}

/// Local ports for connections that end.
pub(super) fn ports(facts: &Facts) -> HazardResult {
    let (first, last) = facts.limits.ports?;
    let ports = (first..=last).len() as u32;
    let evidence =
        evidence!("{local} local ports ({first} to {last})"; local = Quantity::count(ports));
    if ports < PORTS_KNOW {
        let remedy = "each connection to one address takes one; allow more, except for those that services listen on";
        return told(
            Note,
            evidence,
            by(
                remedy,
                "sysctl -w net.ipv4.ip_local_port_range='10240 65535'",
            ),
        );
    }
    // Loopback and known addresses may reuse a port after a second.
    if facts.limits.time_wait_reuse.unwrap_or(0) != 0 {
        return fine(evidence);
    }
    let evidence = evidence
        .reworded(|words| format!("{words}, each of which rests {TIME_WAIT_S} s after use"));
    let remedy = format!(
        "with a connection for each request, more than {} a second to one address use them all up",
        count(u64::from(ports / TIME_WAIT_S))
    );
    told(
        Note,
        evidence,
        by(remedy, "sysctl -w net.ipv4.tcp_tw_reuse=2"),
    )
}

pub(super) fn conntrack(facts: &Facts) -> HazardResult {
    let table = facts.limits.conntrack?;
    if table.count == 0 {
        return fine("the packet filter tracks no connection");
    }
    let share = table.count as f64 / table.max.max(1) as f64;
    let evidence = evidence!("the packet filter tracks {} of at most {max} ({taken})",
        many(u64::try_from(table.count).unwrap_or(0), "connection");
        max = Quantity::count(u64::try_from(table.max).unwrap_or(0)), taken = Quantity::share(share));
    let remedy = "tracking costs CPU time for each packet, and a full table drops connections; leave loopback out of it";
    let remedy = by(remedy, "iptables -t raw -I OUTPUT -o lo -j NOTRACK");
    told(above(share, 0.0, CONNTRACK_BAD), evidence, remedy)
}

pub(super) fn link(facts: &Facts) -> HazardResult {
    match &facts.asked.link.as_ref()?.reason {
        Some(reason) => told(
            Note,
            format!("none can be made: {reason}"),
            "experiments over loopback work all the same",
        ),
        None => fine("`load.network` may be used"),
    }
}

/// `kernel.perf_event_paranoid` up to which all users may profile services including the kernel.
const PARANOID_FINE: i64 = 1;

pub(super) fn io_uring(facts: &Facts) -> HazardResult {
    let Some(reason) = &facts.asked.io_uring.as_ref()?.reason else {
        return fine("granted: the load engine uses it");
    };
    let evidence = format!("not to be had, so the load engine uses epoll: {reason}");
    let effect = "the generator takes more CPU time for the same load; it counts the same";
    let remedy = if facts.rights.io_uring_disabled.unwrap_or(0) > 0 {
        by(effect, "sysctl -w kernel.io_uring_disabled=0")
    } else if facts.rights.filtered == Some(true) {
        let filter =
            "a filter stands before system calls, in Docker that is --security-opt seccomp=FILE";
        format!("{effect}; {filter}").into()
    } else {
        format!("{effect}; Linux 6.12 or newer has what it takes").into()
    };
    told(Note, evidence, remedy)
}

pub(super) fn accounts(facts: &Facts) -> HazardResult {
    if facts.asked.group_writable? {
        return fine("CPU time of services is counted by a control group");
    }
    let remedy = "their CPU time is summed up over processes: up to 20 ms of each that starts others is lost, and children that nobody \
                  waits for; run as root, or delegate a group";
    let command = "systemd-run --user --scope -p Delegate=yes proofload run experiment.toml";
    told(
        Note,
        "no control group can be made for services",
        by(remedy, command),
    )
}

/// Whether services can be profiled below their JavaScript.
pub(super) fn profiles(facts: &Facts) -> HazardResult {
    const RUN: &str = "sysctl -w kernel.perf_event_paranoid=1 kernel.kptr_restrict=0";
    let strict = facts
        .rights
        .perf_event_paranoid
        .is_some_and(|paranoid| paranoid > PARANOID_FINE);
    if let Some(refusal) = facts
        .asked
        .stacks
        .as_ref()
        .and_then(|stacks| stacks.reason.clone())
    {
        let effect = "--explain has JavaScript in full all the same; of compiled code and of the kernel it has CPU time by thread alone";
        return told(
            Note,
            refusal,
            if strict {
                by(effect, RUN)
            } else {
                effect.into()
            },
        );
    }
    let (paranoid, hidden) = (
        facts.rights.perf_event_paranoid?,
        facts.rights.kptr_restrict.unwrap_or(0),
    );
    let evidence = format!("perf_event_paranoid {paranoid}, kptr_restrict {hidden}");
    if facts.rights.root == Some(true) || !strict && hidden == 0 {
        return fine(evidence);
    }
    let effect = if strict {
        "--explain has JavaScript and compiled code in full, and no stacks of the kernel; measurements do not need this"
    } else {
        "functions of the kernel have no names in what --explain says; measurements do not need this"
    };
    told(Note, evidence, by(effect, RUN))
}

pub(super) fn programs(facts: &Facts) -> HazardResult {
    let all = &facts.asked.programs;
    if all.is_empty() {
        return None;
    }
    let there = all
        .iter()
        .filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
    let there: Vec<String> = there.collect();
    let missing: Vec<&str> = all
        .iter()
        .filter(|(_, version)| version.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let have = if there.is_empty() {
        "none".to_owned()
    } else {
        there.join(", ")
    };
    if missing.is_empty() {
        return fine(have);
    }
    let remedy = by(
        "shipped experiments need them; your own may not",
        "make setup",
    );
    told(
        Note,
        format!("{have}; not here: {}", missing.join(", ")),
        remedy,
    )
}
