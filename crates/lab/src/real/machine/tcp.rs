//! What TCP counts in the network of the calling thread: connections begun, dropped, sent again, and ports in use.
//!
//! Of all sockets of that network together. It reads; where the reader has to stand is the caller's business.

use record::TcpUse;
use services::TcpTexts;

/// What was counted since the network was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::real) struct TcpCounters {
    opened: u64,
    listen_overflows: u64,
    listen_drops: u64,
    syn_retransmits: u64,
    time_wait: u64,
    local_ports: u64,
}

impl TcpCounters {
    /// Of the calling thread's network; `None` where the kernel does not say.
    pub fn read() -> Option<TcpCounters> {
        TcpCounters::of(&TcpTexts::read())
    }

    pub fn of(texts: &TcpTexts) -> Option<TcpCounters> {
        let extended = |name| value(&texts.netstat, "TcpExt:", name).unwrap_or(0);
        Some(TcpCounters {
            opened: value(&texts.snmp, "Tcp:", "ActiveOpens")?,
            listen_overflows: extended("ListenOverflows"),
            listen_drops: extended("ListenDrops"),
            syn_retransmits: extended("TCPSynRetrans"),
            time_wait: time_wait(&texts.sockstat).unwrap_or(0),
            local_ports: ports(&texts.ports).unwrap_or(0),
        })
    }

    /// What was counted from then to `later`.
    pub fn until(&self, later: &TcpCounters) -> TcpUse {
        TcpUse {
            opened: later.opened.saturating_sub(self.opened),
            listen_overflows: later.listen_overflows.saturating_sub(self.listen_overflows),
            listen_drops: later.listen_drops.saturating_sub(self.listen_drops),
            syn_retransmits: later.syn_retransmits.saturating_sub(self.syn_retransmits),
            time_wait_before: self.time_wait,
            time_wait: later.time_wait,
            local_ports: later.local_ports,
        }
    }
}

/// A protocol has two lines: the names of its counters, and below them their values.
fn value(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_ascii_whitespace().position(|found| found == name)?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// `TCP: inuse 9 orphan 0 tw 4 alloc 9 mem 1`
fn time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    line.split_ascii_whitespace().skip_while(|word| *word != "tw").nth(1)?.parse().ok()
}

/// How many ports there are from the first to the last, both included.
fn ports(range: &str) -> Option<u64> {
    let mut ends = range.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (first, last) = (ends.next()??, ends.next()??);
    Some((last + 1).saturating_sub(first))
}
