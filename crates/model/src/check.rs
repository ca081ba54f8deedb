//! Every check, with the number under which docs/validity.md explains it.
//!
//! Printed reports name numbers, so a number stays with its check for good: a new check takes the next free one, whatever its
//! subject, and that of a check that is gone stays empty. Must not: look at a record, or say what a finding says.

use Subject::{Client, Design, Lab, Machine, Network, Service, Treatment, Work};
use serde::Serialize;

use crate::finding::Grade::{self, Note, Void, Warning};

/// What a check is about, in the order in which people read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Whether the variants are what they are called.
    Treatment,
    /// Whether they did the work that was asked for, and the same.
    Work,
    /// Whether the load generator measured the service, and not itself.
    Client,
    /// Whether the service was in a state that may be measured.
    Service,
    /// What lay between the two, and between services.
    Network,
    /// What the machine did meanwhile.
    Machine,
    /// Whether what was measured is enough, and even.
    Design,
    /// What became of the run itself.
    Lab,
}

impl Subject {
    /// As a heading: `The treatment`.
    pub fn heading(self) -> &'static str {
        match self {
            Subject::Treatment => "The treatment",
            Subject::Work => "The work",
            Subject::Client => "The client",
            Subject::Service => "The service",
            Subject::Network => "The network",
            Subject::Machine => "The machine",
            Subject::Design => "The design",
            Subject::Lab => "The run itself",
        }
    }
}

/// A check as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number, for example `V8`.
    pub number: &'static str,
    /// Its stable name, for example `errors`; that of [`crate::Finding::check`].
    pub check: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// The grades that its findings may have, the gravest first.
    pub grades: &'static [Grade],
    /// What it finds, in a few words.
    pub title: &'static str,
}

const VOID: &[Grade] = &[Void];
const WARNING: &[Grade] = &[Warning];
const EITHER: &[Grade] = &[Void, Warning];
const NOTE: &[Grade] = &[Note];

/// All checks, by subject.
pub static ALL: [Entry; 51] = [
    entry("V1", "treatment_not_applied", Treatment, VOID, "What a variant is called never happened"),
    entry("V2", "environment_lost", Treatment, VOID, "A variable did not reach the process"),
    entry("V3", "stale_server", Treatment, VOID, "Somebody else listened on the port"),
    entry("V4", "profiler_on", Treatment, VOID, "A profiler ran along"),
    entry("V5", "nothing_observable", Treatment, WARNING, "Two variants that differ in nothing"),
    entry("V6", "different_work", Work, EITHER, "The variants did different work"),
    entry("V7", "different_bodies", Work, WARNING, "Responses of different size"),
    entry("V8", "errors", Work, VOID, "Too many requests failed"),
    entry("V9", "no_success", Work, WARNING, "Not one request succeeded"),
    entry("V10", "value_missing", Work, VOID, "A trial without a value"),
    entry("V11", "generator_saturated", Client, EITHER, "The load generator was at its limit"),
    entry("V12", "rate_not_kept", Client, EITHER, "Requests were not sent when they were due"),
    entry("V13", "client_late", Client, EITHER, "The load generator sent late"),
    entry("V48", "generator_lost", Client, EITHER, "A load generator was lost"),
    entry("V49", "generators_apart", Client, EITHER, "Load generators that did not begin together"),
    entry("V14", "cores_shared", Client, WARNING, "Generator and services on the same cores"),
    entry("V15", "service_not_saturated", Service, WARNING, "Nobody was at the limit"),
    entry("V46", "throughput_in_steps", Service, WARNING, "Throughput that moves in steps"),
    entry("V16", "workers_idle", Service, EITHER, "Workers that did nothing"),
    entry("V17", "workers_lost", Service, VOID, "Workers ended while they were measured"),
    entry("V50", "pods_changed", Service, EITHER, "The pods behind a Service changed"),
    entry("V18", "workers_uneven", Service, WARNING, "One worker had most of the work"),
    entry("V19", "too_many_workers", Service, WARNING, "More workers than cores"),
    entry("V20", "never_steady", Service, WARNING, "Never seen steady"),
    entry("V21", "warm_up_inside", Service, WARNING, "Warm-up inside the figures"),
    entry("V22", "leak", Service, WARNING, "Memory that only grows"),
    entry("V23", "killed", Service, NOTE, "A service that had to be killed"),
    entry("V51", "already_running", Service, NOTE, "A service that was not started"),
    entry("V24", "same_stall", Network, WARNING, "The same stall in every response"),
    entry("V25", "upstream_connections", Network, WARNING, "A proxy that opens a connection per request"),
    entry("V26", "connection_churn", Network, WARNING, "Connections that are not kept"),
    entry("V27", "ports_exhausted", Network, EITHER, "No local ports left"),
    entry("V28", "backlog_full", Network, EITHER, "The line before accept() was full"),
    entry("V29", "steal", Machine, WARNING, "The host gave time to others"),
    entry("V30", "throttled", Machine, WARNING, "Held back by a quota"),
    entry("V31", "strangers", Machine, WARNING, "Others used the machine"),
    entry("V32", "spin_varies", Machine, WARNING, "The processor's speed changed"),
    entry("V33", "paging", Machine, WARNING, "Memory was read back from disk"),
    entry("V34", "disk_reads", Machine, WARNING, "Some trials read from disk, others from memory"),
    entry("V35", "idle_not_idle", Machine, WARNING, "Services worked while others were measured"),
    entry("V47", "other_machine", Machine, VOID, "Records of two machines side by side"),
    entry("V36", "too_few_blocks", Design, VOID, "Fewer than six blocks"),
    entry("V37", "quantile_unresolved", Design, VOID, "Too few requests for the quantile"),
    entry("V38", "order_effect", Design, WARNING, "The place in the block counts"),
    entry("V39", "drift", Design, WARNING, "It was not the same all along"),
    entry("V40", "autocorrelated", Design, WARNING, "Blocks resemble their neighbours"),
    entry("V41", "aa_differs", Design, VOID, "The baseline differs from its own copy"),
    entry("V42", "pointless", Lab, VOID, "Stopped, because going on was pointless"),
    entry("V43", "blocks_dropped", Lab, WARNING, "Blocks that count for nothing"),
    entry("V44", "left_over", Lab, VOID, "Processes outlived their trial"),
    entry("V45", "damage", Lab, WARNING, "Part of the record cannot be read"),
];

const fn entry(
    number: &'static str,
    check: &'static str,
    subject: Subject,
    grades: &'static [Grade],
    title: &'static str,
) -> Entry {
    Entry { number, check, subject, grades, title }
}

/// The check that people mean by a word: its number as it is printed (`V8`, `v8`), the figure alone, or its name.
pub fn find(word: &str) -> Option<&'static Entry> {
    let figure = word.strip_prefix(['V', 'v']).unwrap_or(word);
    let meant = |entry: &&Entry| entry.check == word || entry.number.strip_prefix('V') == Some(figure);
    ALL.iter().find(meant)
}

/// The check of this name.
pub(crate) fn named(check: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.check == check)
}
