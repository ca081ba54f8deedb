//! Planted problems of one of several generators are found in a sound record, with its name, and nowhere
//! else.

use proofload_analysis::Grade::{self, Invalid, Warning};
use proofload_analysis::conclude;
use record::{ConnectedGenerator, EndReason, Ended, Event, GeneratorLost, GeneratorPart, Record};

use crate::given::{Plant, all, each_is_found, found, saturate, slices, sound};

/// The stored sound record as if two generators had sent the load of each slice.
fn shared() -> Record {
    let mut record = sound();
    let generator = |name: &str| ConnectedGenerator {
        name: name.into(),
        host: "h".into(),
        processors: 2,
    };
    record.generators = ["local", "ssh://b"].map(generator).into();
    let part = |name: &str, here: bool, sent: u64| GeneratorPart {
        name: name.into(),
        here,
        late_ns: 40_000,
        clock_error_ns: 100_000,
        busiest_share: Some(0.4),
        cpu_ns: 100_000_000,
        steal_share: Some(0.001),
        sent,
        connections_opened: 0,
        lag_p99_ns: None,
    };
    for slice in slices(&mut record) {
        let (sent, quarter) = (slice.counts.sent, slice.counts.sent / 4);
        slice.generators = vec![
            part("local", true, quarter),
            part("ssh://b", false, sent - quarter),
        ];
    }
    record
}

/// The second generator's part in each slice of these blocks.
fn second(
    record: &mut Record,
    blocks: fn(u32) -> bool,
) -> impl Iterator<Item = (&mut GeneratorPart, u64)> {
    let slices = slices(record).filter(move |slice| blocks(slice.block));
    slices.map(|slice| (&mut slice.generators[1], slice.counts.window_ns))
}

fn lost(block: u32, why: &str) -> GeneratorLost {
    GeneratorLost {
        block,
        generator: "ssh://b".into(),
        why: why.into(),
    }
}

#[test]
fn generators_that_did_their_part_are_told_with_their_shares_and_nothing_else() {
    let record = shared();
    let conclusion = conclude(&record);
    assert_eq!(conclusion.findings, []);
    let shares = conclusion
        .generators
        .iter()
        .map(|one| (one.name.as_str(), (one.share * 100.0).round()));
    assert_eq!(
        shares.collect::<Vec<_>>(),
        [("local", 25.0), ("ssh://b", 75.0)]
    );
    let second = &conclusion.generators[1];
    assert_eq!(
        (second.late_us_max, second.clock_error_us_max, second.lost),
        (40.0, 100.0, 0)
    );
    assert_eq!(
        (second.host.as_deref(), second.processors),
        (Some("h"), Some(2))
    );
    let mut without = record;
    all(&mut without, |slice| slice.generators.clear());
    without.generators.clear();
    assert!(conclude(&without).generators.is_empty());
}

#[test]
fn each_planted_fault_of_a_generator_is_found_with_its_name_and_nothing_else() {
    let faults: [(&str, Grade, &str, Plant); 7] = [
        (
            "generator_lost",
            Warning,
            "in block 3 generator ssh://b exited",
            |record| {
                record.apply(Event::GeneratorLost(lost(
                    3,
                    "generator ssh://b exited before responding",
                )));
            },
        ),
        // The blocks measured before remain valid.
        (
            "generator_lost",
            Warning,
            "in block 11 generator ssh://b: gone",
            |record| {
                record.apply(Event::GeneratorLost(lost(11, "generator ssh://b: gone")));
                let reason = EndReason::GeneratorFailed("generator ssh://b: gone".into());
                record.ended = Some(Ended {
                    reason,
                    seconds: 1.0,
                });
            },
        ),
        ("generators_apart", Warning, "ssh://b began ", |record| {
            second(record, |block| block == 2).for_each(|(part, window_ns)| {
                part.late_ns = window_ns / 50 + 10_000_000;
            });
        }),
        ("generators_apart", Invalid, "ssh://b began ", |record| {
            second(record, |_| true).for_each(|(part, window_ns)| part.late_ns = window_ns / 10);
        }),
        (
            "generators_apart",
            Warning,
            "the clock of ssh://b could be compared",
            |record| {
                second(record, |_| true)
                    .for_each(|(part, window_ns)| part.clock_error_ns = window_ns / 10);
            },
        ),
        (
            "steal",
            Warning,
            "CPU steal on the machine of ssh://b was above 2 % in ",
            |record| {
                second(record, |block| block == 4)
                    .for_each(|(part, _)| part.steal_share = Some(0.3));
            },
        ),
        (
            "generator_saturated",
            Warning,
            "a thread of ssh://b was busy 97 % of the time",
            |record| {
                slices(record)
                    .filter(|slice| slice.variant == 1)
                    .for_each(|slice| {
                        slice.generators[1].busiest_share = Some(0.97);
                    });
            },
        ),
    ];
    let told = faults.map(|(_, _, told, _)| told);
    let faults = faults.map(|(check, grade, _, plant)| (check, grade, plant));
    for (finding, told) in each_is_found(shared, faults).iter().zip(told) {
        assert!(finding.evidence.contains(told), "{}", finding.evidence);
    }
}

#[test]
fn what_clocks_cannot_tell_is_laid_at_nobodys_door_and_all_that_are_late_together_are_together() {
    let mut record = shared();
    second(&mut record, |_| true)
        .for_each(|(part, _)| (part.late_ns, part.clock_error_ns) = (4_900_000, 0));
    assert_eq!(found(&record), []);
    let mut record = shared();
    slices(&mut record)
        .flat_map(|slice| &mut slice.generators)
        .for_each(|part| part.late_ns = 90_000_000);
    assert_eq!(found(&record), []);
}

#[test]
fn the_saturated_one_of_several_voids_where_the_services_were_idle() {
    let mut record = shared();
    for slice in slices(&mut record).filter(|slice| slice.variant == 1) {
        slice.generators[1].busiest_share = Some(0.97);
        saturate(slice);
        slice
            .services
            .iter_mut()
            .for_each(|service| service.cpu_ns /= 3);
    }
    assert_eq!(found(&record), [("generator_saturated", Invalid)]);
}
