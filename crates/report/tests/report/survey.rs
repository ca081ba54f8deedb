//! Text of a machine survey: stored machines on 80 columns, with invented observations.

use analysis::{NoiseCounters, Sensitivity};
use machine::{Busy, Facts, Granted, MachineWatched, Probed, Spin, Storage, Texts, hazards};
use proofload_report::{Report, Surveyed};

const VIRTUAL: &str = include_str!("../../../machine/tests/kept/virtual.txt");
const CONTAINER: &str = include_str!("../../../machine/tests/kept/container-v2.txt");

fn facts(kept: &str) -> Facts {
    let mut facts = Facts::of(&Texts::kept(kept));
    facts.watched = Some(MachineWatched {
        seconds: 1.84,
        steal_share: 0.031,
        others: 0.12,
        busiest: vec![Busy {
            pid: 812,
            name: "dockerd".into(),
            share: 0.08,
        }],
        spin: Some(Spin {
            pieces: 341,
            median_us: 2340.0,
            cv: 0.031,
        }),
    });
    facts.asked = Probed {
        io_uring: Some(Granted {
            granted: false,
            reason: Some("Operation not permitted (os error 1)".into()),
        }),
        link: Some(Granted {
            granted: true,
            reason: None,
        }),
        stacks: Some(Granted {
            granted: true,
            reason: None,
        }),
        group_writable: Some(false),
        storage: Some(Storage {
            folder: "records".into(),
            free_bytes: 56_900_000_000,
        }),
        programs: vec![
            ("node".into(), Some("v22.21.1".into())),
            ("nginx".into(), None),
        ],
    };
    facts
}

fn text(facts: &Facts) -> String {
    let watched = facts.watched.as_ref().expect("it was watched");
    let counters = NoiseCounters {
        work_cv: watched.spin.map_or(0.0, |spin| spin.cv),
        steal_share: watched.steal_share,
        others_share: watched.others / 2.0,
    };
    let hazards = hazards(facts);
    let surveyed = Surveyed {
        facts,
        hazards: &hazards,
        calibration: None,
        sensitivity: Sensitivity::of_counters(counters),
    };
    let text = crate::drawn(&surveyed.brief(), 80);
    let commands: Vec<&str> = hazards
        .iter()
        .filter_map(|hazard| hazard.remedy.command.as_deref())
        .collect();
    text.lines()
        .filter(|line| !commands.contains(&line.trim()))
        .for_each(|line| crate::fits(line, 80));
    text
}

#[test]
fn machines_are_told_as_they_were() {
    insta::assert_snapshot!("a_virtual_machine", text(&facts(VIRTUAL)));
    insta::assert_snapshot!("a_container_with_a_quota", text(&facts(CONTAINER)));
}

#[test]
fn a_quiet_machine_has_nothing_to_improve() {
    let mut quiet = facts(VIRTUAL);
    quiet.watched = Some(MachineWatched {
        seconds: 1.8,
        spin: Some(Spin {
            pieces: 341,
            median_us: 2340.0,
            cv: 0.004,
        }),
        ..MachineWatched::default()
    });
    (quiet.host.steal_share, quiet.host.load_average) = (Some(0.0), Some(0.1));
    quiet.asked.group_writable = Some(true);
    quiet.asked.io_uring = None;
    quiet.asked.programs.clear();
    insta::assert_snapshot!("a_quiet_machine", text(&quiet));
}

#[test]
fn a_calibration_says_what_to_expect() {
    use analysis::{Calibration, Copies, Noise, Steal};
    let record = crate::records::kept();
    let noise = Noise {
        metric: plan::Metric::Throughput,
        copies: Copies {
            ratio: 1.0,
            low: 0.99,
            high: 1.01,
            differ: false,
        },
        sd_log: 0.0205,
        blocks_lag1: None,
        processes_sd: None,
        slices_sd: None,
        slices_lag1: None,
        found: vec![],
    };
    let steal = Steal {
        mean_share: 0.0,
        max_share: 0.0,
    };
    let calibration = Calibration {
        blocks: 14,
        block_s: 5.0,
        first_block_s: 9.0,
        metrics: vec![noise],
        steal,
    };
    let facts = Facts::of(&Texts::kept(VIRTUAL));
    let surveyed = Surveyed {
        facts: &facts,
        hazards: &[],
        calibration: Some((&record, &calibration)),
        sensitivity: Sensitivity::of_calibration(&calibration).expect("it has throughput"),
    };
    let text = crate::plain(&surveyed, 200);
    assert!(text.contains("measured with two copies"), "{text}");
    let earlier = Surveyed {
        sensitivity: Sensitivity::of_records([&record]).expect("it compares"),
        ..surveyed
    };
    let text = crate::plain(&earlier, 200);
    assert!(
        text.contains("variance of 1 earlier record of this machine"),
        "{text}"
    );
    let said = "differed from block to block by σ 2.05 % in throughput, over 14 blocks";
    assert!(text.contains(said), "{text}");
    assert_eq!(surveyed.data()["calibration"]["calibration"]["blocks"], 14);
}
