//! What the kernel shows of a whole machine at one moment, as text: here, or sent by a machine elsewhere.
//!
//! It reads and understands nothing, so that tests can have any machine.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Counters of the machine; empty where it shows none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTexts {
    /// Lines of `/proc/stat` on processors.
    pub stat: String,
    /// `/proc/pressure/cpu`.
    pub pressure: String,
    /// The line of `/proc/vmstat` on pages read back from swap.
    pub vmstat: String,
    /// `cpu.stat` of each control group whose quota may hold us or the services back.
    pub quotas: Vec<String>,
}

impl MachineTexts {
    /// Of this machine now. One of `quota_files` that has gone has no more to tell.
    pub fn read(quota_files: &[PathBuf]) -> MachineTexts {
        MachineTexts {
            stat: lines(&read("/proc/stat"), "cpu"),
            pressure: read("/proc/pressure/cpu"),
            vmstat: lines(&read("/proc/vmstat"), "pswpin "),
            quotas: quota_files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect(),
        }
    }
}

/// Counters of TCP in one network; empty where it shows none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpTexts {
    /// `net/snmp`.
    pub snmp: String,
    /// `net/netstat`.
    pub netstat: String,
    /// `net/sockstat`.
    pub sockstat: String,
    /// `ip_local_port_range`.
    pub ports: String,
}

impl TcpTexts {
    /// Of the calling thread's network.
    pub fn read() -> TcpTexts {
        TcpTexts {
            snmp: read("/proc/thread-self/net/snmp"),
            netstat: read("/proc/thread-self/net/netstat"),
            sockstat: read("/proc/thread-self/net/sockstat"),
            ports: read("/proc/sys/net/ipv4/ip_local_port_range"),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The lines that begin so: of thousands of interrupts nobody wants to hear.
fn lines(text: &str, beginning: &str) -> String {
    text.lines().filter(|line| line.starts_with(beginning)).flat_map(|line| [line, "\n"]).collect()
}
