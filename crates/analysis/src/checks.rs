//! The validity checks, which derive findings from a run. Each check has a file with its explanation,
//! properties, thresholds and functions.
//!
//! To add a check, add its file, its line in the list and its `mod`. This module contains only the list and
//! does not run checks.

use serde::{Deserialize, Serialize};

/// Passes the list of all checks to a macro: number, variant and file of each.
///
/// They are ordered by subject, related checks next to each other. Reports contain the numbers, so the number
/// of a check never changes. A new check takes the next free number, and the number of a removed check is not
/// reused.
macro_rules! each_check {
    ($define:ident) => {
        $define! {
            V1 = TreatmentNotApplied in v01_treatment_not_applied;
            V2 = EnvironmentLost in v02_environment_lost;
            V3 = StaleServer in v03_stale_server;
            V4 = ProfilerOn in v04_profiler_on;
            V5 = NothingObservable in v05_nothing_observable;
            V58 = CodingNotRequested in v58_coding_not_requested;
            V6 = DifferentWork in v06_different_work;
            V7 = DifferentBodies in v07_different_bodies;
            V8 = Errors in v08_errors;
            V57 = UnknownCoding in v57_unknown_coding;
            V9 = NoSuccess in v09_no_success;
            V54 = Unasked in v54_unasked;
            V10 = ValueMissing in v10_value_missing;
            V11 = GeneratorSaturated in v11_generator_saturated;
            V12 = RateNotKept in v12_rate_not_kept;
            V13 = ClientLate in v13_client_late;
            V48 = GeneratorLost in v48_generator_lost;
            V49 = GeneratorsApart in v49_generators_apart;
            V14 = CoresShared in v14_cores_shared;
            V56 = Silent in v56_silent;
            V15 = ServiceNotSaturated in v15_service_not_saturated;
            V46 = ThroughputInSteps in v46_throughput_in_steps;
            V55 = BreaksFarBelow in v55_breaks_far_below;
            V16 = WorkersIdle in v16_workers_idle;
            V17 = WorkersLost in v17_workers_lost;
            V50 = PodsChanged in v50_pods_changed;
            V18 = WorkersUneven in v18_workers_uneven;
            V19 = TooManyWorkers in v19_too_many_workers;
            V20 = NeverSteady in v20_never_steady;
            V21 = WarmUpInside in v21_warm_up_inside;
            V22 = Leak in v22_leak;
            V23 = Killed in v23_killed;
            V51 = AlreadyRunning in v51_already_running;
            V53 = CoresDiffer in v53_cores_differ;
            V52 = CertificatesUnchecked in v52_certificates_unchecked;
            V24 = SameStall in v24_same_stall;
            V25 = UpstreamConnections in v25_upstream_connections;
            V26 = ConnectionChurn in v26_connection_churn;
            V27 = PortsExhausted in v27_ports_exhausted;
            V28 = BacklogFull in v28_backlog_full;
            V29 = Steal in v29_steal;
            V30 = Throttled in v30_throttled;
            V31 = OtherProcesses in v31_other_processes;
            V32 = SpinVaries in v32_spin_varies;
            V33 = Paging in v33_paging;
            V34 = DiskReads in v34_disk_reads;
            V35 = IdleNotIdle in v35_idle_not_idle;
            V47 = OtherMachine in v47_other_machine;
            V36 = TooFewBlocks in v36_too_few_blocks;
            V37 = QuantileUnresolved in v37_quantile_unresolved;
            V38 = OrderEffect in v38_order_effect;
            V39 = Drift in v39_drift;
            V40 = Autocorrelated in v40_autocorrelated;
            V41 = AaDiffers in v41_aa_differs;
            V42 = Pointless in v42_pointless;
            V43 = BlocksDropped in v43_blocks_dropped;
            V44 = LeftOver in v44_left_over;
            V45 = Damage in v45_damage;
        }
    };
}

mod chance;
mod exchange;
mod finding;
mod input;
mod missing_values;
mod open_loop;
mod pods;
pub(crate) mod row;
pub(crate) mod runner;
mod same_requests;
mod trial_change;
pub(crate) mod v01_treatment_not_applied;
pub(crate) mod v02_environment_lost;
mod v03_stale_server;
mod v04_profiler_on;
mod v05_nothing_observable;
mod v06_different_work;
mod v07_different_bodies;
mod v08_errors;
mod v09_no_success;
mod v10_value_missing;
mod v11_generator_saturated;
pub(crate) mod v12_rate_not_kept;
pub(crate) mod v13_client_late;
mod v14_cores_shared;
mod v15_service_not_saturated;
mod v16_workers_idle;
mod v17_workers_lost;
mod v18_workers_uneven;
mod v19_too_many_workers;
mod v20_never_steady;
pub(crate) mod v21_warm_up_inside;
mod v22_leak;
mod v23_killed;
mod v24_same_stall;
mod v25_upstream_connections;
mod v26_connection_churn;
mod v27_ports_exhausted;
mod v28_backlog_full;
mod v29_steal;
mod v30_throttled;
mod v31_other_processes;
mod v32_spin_varies;
mod v33_paging;
mod v34_disk_reads;
mod v35_idle_not_idle;
mod v36_too_few_blocks;
mod v37_quantile_unresolved;
mod v38_order_effect;
pub(crate) mod v39_drift;
pub(crate) mod v40_autocorrelated;
pub(crate) mod v41_aa_differs;
mod v42_pointless;
mod v43_blocks_dropped;
mod v44_left_over;
mod v45_damage;
mod v46_throughput_in_steps;
pub(crate) mod v47_other_machine;
mod v48_generator_lost;
pub(crate) mod v49_generators_apart;
mod v50_pods_changed;
mod v51_already_running;
mod v52_certificates_unchecked;
mod v53_cores_differ;
mod v54_unasked;
pub(crate) mod v55_breaks_far_below;
pub(crate) mod v56_silent;
mod v57_unknown_coding;
mod v58_coding_not_requested;
mod waiting_variant;
mod watched_span;

/// Defines the checks and the list of all checks.
macro_rules! define {
    ($($number:ident = $check:ident in $file:ident;)+) => {
        /// A validity check.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each has its file")]
        pub enum Check {
            $($check,)+
        }

        impl Check {
            /// All checks, by subject.
            pub const ALL: &[Check] = &[$(Check::$check),+];

            /// Section number in docs/validity.md, for example `V8`.
            pub fn number(self) -> &'static str {
                match self { $(Check::$check => stringify!($number),)+ }
            }

            /// Name of the file in `checks`, for example `v08_errors`.
            fn file(self) -> &'static str {
                match self { $(Check::$check => stringify!($file),)+ }
            }

            /// The comment at the start of the file.
            fn header(self) -> &'static str {
                match self {
                    $(Check::$check => {
                        const SOURCE: &str = include_str!(concat!("checks/", stringify!($file), ".rs"));
                        static TEXT: [u8; header::<0>(SOURCE).1] = header(SOURCE).0;
                        std::str::from_utf8(&TEXT).unwrap_or_default()
                    })+
                }
            }
        }
    };
}

each_check!(define);

impl Check {
    /// Stable name, for example `errors`.
    pub fn name(self) -> &'static str {
        self.file().split_once('_').map_or("", |(_, name)| name)
    }

    /// Short description of the detected problem.
    pub fn title(self) -> &'static str {
        self.header().lines().next().unwrap_or_default()
    }

    /// The explanation in Markdown: an example, the reason, the remedy and the threshold.
    pub fn explanation(self) -> &'static str {
        let header = self.header().split_once("\n\n");
        header.map_or("", |(_, explanation)| explanation.trim_end())
    }

    /// Finds a check by its printed number (`V8`, `v8`), the bare number, or its name.
    pub fn find(word: &str) -> Option<Check> {
        let figure = word.strip_prefix(['V', 'v']).unwrap_or(word);
        let meant = |check: &Check| {
            check.name() == word || check.number().strip_prefix('V') == Some(figure)
        };
        Check::ALL.iter().copied().find(meant)
    }
}

/// Returns the first `N` bytes of the comment at the start of a source file, and the length of the comment.
const fn header<const N: usize>(source: &str) -> ([u8; N], usize) {
    let source = source.as_bytes();
    let (mut text, mut length, mut at) = ([0; N], 0, 0);
    // Lines are `//! text` or `//!`.
    while matches!(
        [source[at], source[at + 1], source[at + 2]],
        [b'/', b'/', b'!']
    ) {
        at += 3;
        if source[at] == b' ' {
            at += 1;
        }
        loop {
            if length < N {
                text[length] = source[at];
            }
            length += 1;
            at += 1;
            if source[at - 1] == b'\n' {
                break;
            }
        }
    }
    (text, length)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::row::{Alone, Subject};
    use super::*;

    #[test]
    fn numbers_names_and_files_agree() {
        let numbers: BTreeSet<&str> = Check::ALL.iter().map(|check| check.number()).collect();
        assert_eq!(numbers.len(), Check::ALL.len());
        for check in Check::ALL {
            let number: u32 = check.number()[1..].parse().expect("V and a number");
            assert_eq!(check.file(), format!("v{number:02}_{}", check.name()));
            let written = serde_json::to_value(check).expect("JSON");
            assert_eq!(
                written,
                check.name(),
                "the variant has the name of its file"
            );
        }
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
    fn finds_a_check_by_number_or_name() {
        for word in ["V31", "v31", "31", "other_processes"] {
            assert_eq!(Check::find(word), Some(Check::OtherProcesses), "{word}");
        }
        assert_eq!(
            [Check::find("V0"), Check::find(""), Check::find("V")],
            [None; 3]
        );
    }
}
