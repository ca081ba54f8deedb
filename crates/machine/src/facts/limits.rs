//! Limits that a load runs into: descriptors, lines of waiting connections, ports, tracked connections. It reads texts and
//! raises nothing.

use serde::Serialize;

use crate::texts::Texts;

/// Limits of this process and of the network it is in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Open descriptors that this process may have, and those it starts.
    pub files_soft: Option<u64>,
    /// Up to where it may raise that itself; `u64::MAX` is no limit.
    pub files_hard: Option<u64>,
    /// Connections that may wait to be accepted, whatever a service asks for.
    pub somaxconn: Option<i64>,
    /// Half-open connections that may wait.
    pub syn_backlog: Option<i64>,
    /// Local ports that the kernel may give to connections, first and last.
    pub ports: Option<(u32, u32)>,
    /// Whether a port in TIME_WAIT may be used again: 0 no, 1 yes, 2 on loopback.
    pub time_wait_reuse: Option<i64>,
    /// Connections that the packet filter keeps track of; `None` where it keeps none.
    pub conntrack: Option<Conntrack>,
}

/// The table of tracked connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Conntrack {
    /// In it now.
    pub count: i64,
    /// Room in all.
    pub max: i64,
}

impl Limits {
    pub(super) fn of(texts: &Texts) -> Limits {
        let netfilter = |name: &str| texts.number(&format!("/proc/sys/net/netfilter/{name}"));
        let (soft, hard) = files(texts).unzip();
        Limits {
            files_soft: soft,
            files_hard: hard,
            somaxconn: texts.number("/proc/sys/net/core/somaxconn"),
            syn_backlog: texts.number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
            ports: ports(texts.line("/proc/sys/net/ipv4/ip_local_port_range")),
            time_wait_reuse: texts.number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            conntrack: netfilter("nf_conntrack_count")
                .zip(netfilter("nf_conntrack_max"))
                .map(|(count, max)| Conntrack { count, max }),
        }
    }

    /// How many local ports there are.
    pub fn local_ports(&self) -> Option<u32> {
        self.ports.map(|(first, last)| last.saturating_sub(first).saturating_add(1))
    }
}

/// Soft and hard limit on open files.
fn files(texts: &Texts) -> Option<(u64, u64)> {
    let mut lines = texts.get("/proc/self/limits")?.lines();
    let values = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |text: &str| if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() };
    let mut values = values.split_ascii_whitespace();
    limit(values.next()?).zip(limit(values.next()?))
}

fn ports(line: Option<&str>) -> Option<(u32, u32)> {
    let mut ends = line?.split_ascii_whitespace().map(str::parse);
    Some((ends.next()?.ok()?, ends.next()?.ok()?))
}
