//! Hazards of limits on connections: descriptors, lines of waiting ones, ports, tracked ones, and links that cannot be made.

use crate::Facts;
use crate::hazards::Hazard;
use crate::wording::{count, many, percent};

/// Descriptors that even a plain load with a few thousand connections takes.
pub const FILES_HARD_BAD: u64 = 4096;
/// What programs get by default and services inherit; a proxy uses two for each client.
pub const FILES_SOFT_KNOW: u64 = 4096;
/// Lines shorter than this overflow when a few hundred connections open at once; the kernel's default since 5.4 is 4096.
pub const SOMAXCONN_KNOW: i64 = 1024;
/// Fewer local ports than this are used up by loads of a few thousand connections.
pub const PORTS_KNOW: u32 = 16_384;
/// How long a port rests in TIME_WAIT, in seconds: fixed in the kernel.
const TIME_WAIT_S: u32 = 60;
/// Share of the table of tracked connections above which it may overflow within a run.
pub const CONNTRACK_BAD: f64 = 0.8;

/// Descriptors.
pub fn open_files(facts: &Facts) -> Option<Hazard> {
    let (soft, hard) = (facts.limits.files_soft?, facts.limits.files_hard?);
    let told = |limit: u64| if limit == u64::MAX { "no limit".to_owned() } else { count(limit) };
    let evidence = match soft == hard {
        true => format!("{} open files", told(soft)),
        false => format!("{} open files, raised to {} at most", told(soft), told(hard)),
    };
    Some(if hard < FILES_HARD_BAD {
        Hazard::bad(
            "open_files",
            evidence,
            "a connection takes one on either side; let this user have more, then log in anew",
        )
        .run("echo '* hard nofile 1048576' > /etc/security/limits.d/proofload.conf")
    } else if soft < FILES_SOFT_KNOW {
        let remedy =
            "the generator raises its own, services inherit this one, and a proxy takes two for each client";
        Hazard::know("open_files", evidence, remedy).run(format!("ulimit -n {}", hard.min(1 << 20)))
    } else {
        Hazard::fine("open_files", evidence)
    })
}

/// The line before accept().
pub fn accept_queue(facts: &Facts) -> Option<Hazard> {
    let somaxconn = facts.limits.somaxconn?;
    let length = |length: i64| count(u64::try_from(length).unwrap_or(0));
    let half_open = facts.limits.syn_backlog.map(|most| format!(", {} half-open", length(most)));
    let evidence =
        format!("{} connections may wait to be accepted{}", length(somaxconn), half_open.unwrap_or_default());
    if somaxconn >= SOMAXCONN_KNOW {
        return Some(Hazard::fine("accept_queue", evidence));
    }
    let remedy =
        "when more open at once, the rest try again after 1, 3 and 7 s, and latencies show steps of seconds";
    Some(Hazard::know("accept_queue", evidence, remedy).run("sysctl -w net.core.somaxconn=4096"))
}

/// Local ports for connections that end.
pub fn ports(facts: &Facts) -> Option<Hazard> {
    let ports = facts.limits.local_ports()?;
    let (first, last) = facts.limits.ports?;
    let evidence = format!("{} local ports ({first} to {last})", count(ports.into()));
    // Loopback and addresses seen before may take a port again after a second.
    let reused = facts.limits.time_wait_reuse.unwrap_or(0) != 0;
    Some(if ports < PORTS_KNOW {
        let remedy =
            "each connection to one address takes one; allow more, except for those that services listen on";
        Hazard::know("ports", evidence, remedy).run("sysctl -w net.ipv4.ip_local_port_range='10240 65535'")
    } else if !reused {
        let evidence = format!("{evidence}, each of which rests {TIME_WAIT_S} s after use");
        let remedy = format!(
            "with a connection for each request, more than {} a second to one address use them all up",
            count(u64::from(ports / TIME_WAIT_S))
        );
        Hazard::know("ports", evidence, remedy).run("sysctl -w net.ipv4.tcp_tw_reuse=2")
    } else {
        Hazard::fine("ports", evidence)
    })
}

/// A packet filter that keeps track of connections.
pub fn conntrack(facts: &Facts) -> Option<Hazard> {
    let table = facts.limits.conntrack?;
    if table.count == 0 {
        return Some(Hazard::fine("conntrack", "the packet filter tracks no connection"));
    }
    let share = table.count as f64 / table.max.max(1) as f64;
    let evidence = format!(
        "the packet filter tracks {} of at most {} ({})",
        many(u64::try_from(table.count).unwrap_or(0), "connection"),
        count(u64::try_from(table.max).unwrap_or(0)),
        percent(share)
    );
    let remedy = "tracking costs CPU time for each packet, and a full table drops connections; leave loopback out of it";
    let command = "iptables -t raw -I OUTPUT -o lo -j NOTRACK";
    Some(match share > CONNTRACK_BAD {
        true => Hazard::bad("conntrack", evidence, remedy).run(command),
        false => Hazard::know("conntrack", evidence, remedy).run(command),
    })
}

/// A link of limited rate or with a delay.
pub fn link(facts: &Facts) -> Option<Hazard> {
    let link = facts.asked.link.as_ref()?;
    Some(match &link.reason {
        Some(reason) if !link.granted => Hazard::know(
            "link",
            format!("none can be made: {reason}"),
            "experiments over loopback work all the same",
        ),
        _ => Hazard::fine("link", "`load.network` may be used"),
    })
}
