//! Table of all validity checks, with their section numbers in docs/validity.md.
//!
//! Printed reports contain these numbers, so the number of a check never changes. A new check takes the next
//! free number, whatever its subject, and the number of a removed check is not reused. To add a check, add a
//! row here and, in `analysis`, the function that makes its findings. This module does not read records.

use Subject::{Client, Design, Lab, Machine, Network, Service, Treatment, Work};
use serde::{Deserialize, Serialize};

use crate::grade::Grade::{self, Invalid, Note, Warning};

/// Subject of a check, in reading order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Whether the variants have the configuration that their names claim.
    Treatment,
    /// Whether the variants did the requested work, and the same work.
    Work,
    /// Whether the load generator measured the service and not itself.
    Client,
    /// Whether the service was in a measurable state.
    Service,
    /// Effects of the network between generator and service, and between services.
    Network,
    /// Activity of the machine during the measurement.
    Machine,
    /// Whether there are enough measurements, and whether they are consistent.
    Design,
    /// Problems of the run itself.
    Lab,
}

impl Subject {
    /// The heading of the subject: `The treatment`.
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

/// How a check applies without a comparison, where each slice is judged alone, as in `load`. Findings that
/// only single slices have do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// The check chooses grade and remedy.
    Same,
    /// The check is about compared variants or several blocks, or about facts that the user knows.
    Off,
    /// The findings have this grade and remedy.
    As(Grade, &'static str),
}

/// Properties of a check.
#[derive(Debug)]
pub struct CheckRow {
    /// Subject of the check.
    pub subject: Subject,
    /// Possible grades of the findings, most severe first.
    pub grades: &'static [Grade],
    /// Short description of the detected problem.
    pub title: &'static str,
    /// Whether the findings are about variants relative to each other. Each of two named variants may still
    /// be compared with a third.
    pub of_pairs: bool,
    /// Whether the run ends if the check makes every comparison invalid. Such a check judges single trials,
    /// and further trials cannot outweigh an invalid one. Checks of shares and means may still pass later.
    pub ends_run: bool,
    /// How the check applies without a comparison.
    pub alone: Alone,
}

impl CheckRow {
    const fn of_pairs(self) -> CheckRow {
        CheckRow {
            of_pairs: true,
            ..self
        }
    }

    const fn ending_run(self) -> CheckRow {
        CheckRow {
            ends_run: true,
            ..self
        }
    }

    const fn alone(self, alone: Alone) -> CheckRow {
        CheckRow { alone, ..self }
    }
}

const fn row(subject: Subject, grades: &'static [Grade], title: &'static str) -> CheckRow {
    CheckRow {
        subject,
        grades,
        title,
        of_pairs: false,
        ends_run: false,
        alone: Alone::Same,
    }
}

const OFF: Alone = Alone::Off;
/// For checks of the machine.
const DISTURBED: Alone = Alone::As(
    Warning,
    "it is part of these figures, and a quieter machine would show others",
);

const VOID: &[Grade] = &[Invalid];
const WARNING: &[Grade] = &[Warning];
const EITHER: &[Grade] = &[Invalid, Warning];
const NOTE: &[Grade] = &[Note];
const WARNING_OR_NOTE: &[Grade] = &[Warning, Note];

/// Defines the checks from their numbers, names and rows, and the list of all checks.
macro_rules! checks {
    ($($check:ident = $number:literal, $name:literal: $row:expr;)+) => {
        /// A validity check. Its row describes its findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "their rows say what they find")]
        pub enum Check {
            $(#[serde(rename = $name)] $check,)+
        }

        impl Check {
            /// All checks, by subject.
            pub const ALL: &[Check] = &[$(Check::$check),+];

            /// Section number in docs/validity.md, for example `V8`.
            pub fn number(self) -> &'static str {
                match self { $(Check::$check => $number,)+ }
            }

            /// Stable name, for example `errors`.
            pub fn name(self) -> &'static str {
                match self { $(Check::$check => $name,)+ }
            }

            /// The other properties of the check.
            pub fn row(self) -> &'static CheckRow {
                static ROWS: &[CheckRow] = &[$($row),+];
                &ROWS[self as usize]
            }
        }
    };
}

checks! {
    TreatmentNotApplied = "V1", "treatment_not_applied": row(Treatment, VOID, "What a variant is called never happened").ending_run();
    EnvironmentLost = "V2", "environment_lost": row(Treatment, VOID, "A variable did not reach the process").ending_run();
    StaleServer = "V3", "stale_server": row(Treatment, VOID, "Another process listened on the port").ending_run();
    ProfilerOn = "V4", "profiler_on": row(Treatment, VOID, "A profiler ran along").ending_run();
    NothingObservable = "V5", "nothing_observable": row(Treatment, WARNING_OR_NOTE, "Two variants that differ in nothing").alone(OFF);
    CodingNotRequested = "V58", "coding_not_requested": row(Treatment, WARNING_OR_NOTE, "Compression that no request asked for");
    DifferentWork = "V6", "different_work": row(Work, EITHER, "The variants did different work").of_pairs().ending_run().alone(OFF);
    DifferentBodies = "V7", "different_bodies": row(Work, WARNING, "Responses of different size");
    Errors = "V8", "errors": row(Work, VOID, "Too many requests failed");
    UnknownCoding = "V57", "unknown_coding": row(Work, NOTE, "A content coding that is not known");
    NoSuccess = "V9", "no_success": row(Work, WARNING, "Not one request succeeded");
    Unasked = "V54", "unasked": row(Work, VOID, "More was sent than was asked for").ending_run();
    ValueMissing = "V10", "value_missing": row(Work, VOID, "A trial without a value").alone(OFF);
    GeneratorSaturated = "V11", "generator_saturated": row(Client, EITHER, "The load generator was at its limit").alone(Alone::As(
        Warning,
        "the client was at its limit, and the service may do more than this: more threads, or another machine",
    ));
    RateNotKept = "V12", "rate_not_kept": row(Client, EITHER, "Requests were not sent when they were due");
    ClientLate = "V13", "client_late": row(Client, EITHER, "The load generator sent late").alone(Alone::As(
        Warning,
        "the client's own lateness is part of the response times: give it a core of its own, or more threads",
    ));
    GeneratorLost = "V48", "generator_lost": row(Client, EITHER, "A load generator was lost");
    GeneratorsApart = "V49", "generators_apart": row(Client, EITHER, "Load generators that did not begin together");
    CoresShared = "V14", "cores_shared": row(Client, WARNING_OR_NOTE, "Generator and services on the same cores").alone(Alone::As(
        Note,
        "the service has that much less time at most; a machine with more cores would show higher figures",
    ));
    Silent = "V56", "silent": row(Service, EITHER, "No response for a while");
    ServiceNotSaturated = "V15", "service_not_saturated": row(Service, WARNING_OR_NOTE, "Neither services nor generator at their limit").alone(Alone::As(
        Note,
        "this throughput is no capacity: requests waited (for a timer, a lock, a disk, another machine, or for too few connections); \
         more connections raise it until something is at its limit",
    ));
    ThroughputInSteps = "V46", "throughput_in_steps": row(Service, WARNING, "Throughput that moves in steps");
    BreaksFarBelow = "V55", "breaks_far_below": row(Service, VOID, "A limit that breaks far below the capacity");
    WorkersIdle = "V16", "workers_idle": row(Service, EITHER, "Workers that did nothing");
    WorkersLost = "V17", "workers_lost": row(Service, VOID, "Workers ended while they were measured").ending_run();
    PodsChanged = "V50", "pods_changed": row(Service, EITHER, "The pods behind a Service changed").ending_run();
    WorkersUneven = "V18", "workers_uneven": row(Service, WARNING, "One worker had most of the work");
    TooManyWorkers = "V19", "too_many_workers": row(Service, WARNING, "More workers than cores");
    NeverSteady = "V20", "never_steady": row(Service, WARNING, "Never seen steady");
    WarmUpInside = "V21", "warm_up_inside": row(Service, EITHER, "Warm-up inside the figures").alone(OFF);
    Leak = "V22", "leak": row(Service, WARNING, "Memory that only grows").alone(OFF);
    Killed = "V23", "killed": row(Service, NOTE, "A service that had to be killed");
    AlreadyRunning = "V51", "already_running": row(Service, NOTE, "A service that was not started").alone(OFF);
    CoresDiffer = "V53", "cores_differ": row(Service, EITHER, "Variants that had different cores' time, or lacked cores").of_pairs().alone(OFF);
    CertificatesUnchecked = "V52", "certificates_unchecked": row(Network, NOTE, "Certificates that were not checked").alone(Alone::As(
        Note,
        "the handshakes cost what they would otherwise; --cacert FILE trusts an authority of your own",
    ));
    SameStall = "V24", "same_stall": row(Network, VOID, "The same stall in every response").of_pairs().alone(OFF);
    UpstreamConnections = "V25", "upstream_connections": row(Network, WARNING, "A proxy that opens a connection per request");
    ConnectionChurn = "V26", "connection_churn": row(Network, WARNING, "Connections that are not kept, or carry too little");
    PortsExhausted = "V27", "ports_exhausted": row(Network, EITHER, "No local ports left");
    BacklogFull = "V28", "backlog_full": row(Network, EITHER, "The accept queue was full");
    Steal = "V29", "steal": row(Machine, WARNING, "CPU steal").alone(DISTURBED);
    Throttled = "V30", "throttled": row(Machine, WARNING, "Held back by a quota");
    OtherProcesses = "V31", "other_processes": row(Machine, WARNING, "Other processes used the machine").alone(DISTURBED);
    SpinVaries = "V32", "spin_varies": row(Machine, WARNING, "The processor's speed changed").alone(OFF);
    Paging = "V33", "paging": row(Machine, WARNING, "Memory was read back from disk").alone(DISTURBED);
    DiskReads = "V34", "disk_reads": row(Machine, WARNING, "Some trials read from disk, others from memory").alone(OFF);
    IdleNotIdle = "V35", "idle_not_idle": row(Machine, WARNING, "Services worked while others were measured");
    OtherMachine = "V47", "other_machine": row(Machine, VOID, "Records of two machines side by side");
    TooFewBlocks = "V36", "too_few_blocks": row(Design, WARNING, "Too few blocks for a verdict").alone(OFF);
    QuantileUnresolved = "V37", "quantile_unresolved": row(Design, VOID, "Too few requests for the quantile").alone(OFF);
    OrderEffect = "V38", "order_effect": row(Design, WARNING, "The place in the block counts").alone(OFF);
    Drift = "V39", "drift": row(Design, WARNING, "It was not the same all along").alone(OFF);
    Autocorrelated = "V40", "autocorrelated": row(Design, WARNING, "Blocks resemble their neighbours").alone(OFF);
    AaDiffers = "V41", "aa_differs": row(Design, VOID, "The baseline differs from its own copy");
    Pointless = "V42", "pointless": row(Lab, VOID, "Stopped, because going on was pointless");
    BlocksDropped = "V43", "blocks_dropped": row(Lab, EITHER, "Blocks that count for nothing");
    LeftOver = "V44", "left_over": row(Lab, VOID, "Processes outlived their trial").ending_run();
    Damage = "V45", "damage": row(Lab, WARNING, "Part of the record cannot be read");
}

impl Check {
    /// Finds a check by its printed number (`V8`, `v8`), the bare number, or its name.
    pub fn find(word: &str) -> Option<Check> {
        let figure = word.strip_prefix(['V', 'v']).unwrap_or(word);
        let meant = |check: &Check| {
            check.name() == word || check.number().strip_prefix('V') == Some(figure)
        };
        Check::ALL.iter().copied().find(meant)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_and_names_belong_to_one_check_each() {
        let numbers: BTreeSet<&str> = Check::ALL.iter().map(|check| check.number()).collect();
        let names: BTreeSet<&str> = Check::ALL.iter().map(|check| check.name()).collect();
        assert_eq!(
            (numbers.len(), names.len()),
            (Check::ALL.len(), Check::ALL.len())
        );
        let subjects: Vec<Subject> = Check::ALL.iter().map(|check| check.row().subject).collect();
        assert!(subjects.is_sorted(), "the list is by subject");
    }

    #[test]
    fn grades_without_a_comparison_are_grades_of_the_check() {
        for check in Check::ALL {
            if let Alone::As(grade, _) = check.row().alone {
                assert!(check.row().grades.contains(&grade), "{check:?}");
            }
        }
    }

    #[test]
    fn a_check_is_found_by_its_number_or_any_of_its_names() {
        for word in ["V31", "v31", "31", "other_processes"] {
            assert_eq!(Check::find(word), Some(Check::OtherProcesses), "{word}");
        }
        assert_eq!(
            [Check::find("V0"), Check::find(""), Check::find("V")],
            [None; 3]
        );
    }
}
