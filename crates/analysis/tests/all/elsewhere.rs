//! Services on other machines: each machine is judged by its own processors, and records of other machines are told apart.

use proofload_analysis::{Grade, differences};
use record::{Environment, MachineUse, Record, Slice};

use crate::given::{said, slices, sound, trials};

const HOST: &str = "ssh://bench-1";

/// A sound record whose service ran on a machine of eight processors.
fn elsewhere() -> Record {
    let mut record = sound();
    let there = Environment { cpus: 8, ..Environment::default() };
    record.header.environment.hosts.insert(HOST.into(), there);
    for service in trials(&mut record).flat_map(|trial| &mut trial.started.services) {
        (service.host, service.cpus) = (Some(HOST.into()), (0..8).collect());
    }
    slices(&mut record).for_each(|slice| there_mut(slice).steal_share = 0.0);
    record
}

fn there_mut(slice: &mut Slice) -> &mut MachineUse {
    slice.machine.hosts.entry(HOST.into()).or_default()
}

/// The checks that speak of the record once something was changed in each slice, with what they say.
fn found(change: impl Fn(&mut Slice)) -> Vec<(&'static str, Grade, String)> {
    let mut record = elsewhere();
    slices(&mut record).for_each(change);
    // On eight processors a service for one is at no limit, whatever else happens there.
    let mut found = said(&record);
    found.retain(|(check, ..)| *check != "service_not_saturated");
    found
}

#[test]
fn what_a_machine_elsewhere_does_is_found_by_its_own_measure() {
    assert_eq!(found(|_| ()), []);
    // A tenth of one processor, which would be much of this machine, and is little there.
    assert_eq!(found(|slice| there_mut(slice).strangers_cpu_ns = slice.counts.window_ns / 10), []);
    let [(check, grade, evidence)] =
        &found(|slice| there_mut(slice).strangers_cpu_ns = slice.counts.window_ns)[..]
    else {
        panic!("one finding")
    };
    assert_eq!((*check, *grade), ("other_processes", Grade::Warning));
    assert!(evidence.ends_with("of 8 cores on ssh://bench-1"), "{evidence}");
    type Change = fn(&mut Slice);
    let changes: [(&str, Change); 3] = [
        ("steal", |slice| there_mut(slice).steal_share = 0.2),
        ("throttled", |slice| there_mut(slice).throttled_ns = slice.counts.window_ns / 10),
        ("paging", |slice| there_mut(slice).swapped_in_pages = 100),
    ];
    for (check, change) in changes {
        let found: Vec<(&str, Grade)> =
            found(change).into_iter().map(|(check, grade, _)| (check, grade)).collect();
        assert_eq!(found, [(check, Grade::Warning)]);
    }
    let spun = found(|slice| {
        there_mut(slice).spin_ns = Some(if slice.block <= 4 { 266_000 } else { 400_000 });
    });
    assert!(spun.len() == 1 && spun[0].2.contains(" on ssh://bench-1, the extreme"), "{spun:?}");
}

#[test]
fn records_of_which_the_services_ran_elsewhere_are_of_other_machines() {
    let environment = |hosts: &[(&str, &str)]| Environment {
        hosts: hosts
            .iter()
            .map(|(host, kernel)| {
                (
                    String::from(*host),
                    Environment { kernel: Some((*kernel).into()), ..Environment::default() },
                )
            })
            .collect(),
        ..Environment::default()
    };
    let (here, there) = (environment(&[]), environment(&[(HOST, "6.1")]));
    assert_eq!(differences(&there, &there), Vec::<String>::new());
    assert_eq!(differences(&here, &there), ["services on this machine alone and on ssh://bench-1"]);
    let other = environment(&[("ssh://bench-2", "6.1")]);
    assert_eq!(differences(&there, &other), ["services on ssh://bench-1 and on ssh://bench-2"]);
    let updated = environment(&[(HOST, "6.2")]);
    assert_eq!(differences(&there, &updated), ["on ssh://bench-1 kernel 6.1 and 6.2"]);
    // What is not told there is no difference either.
    let untold =
        Environment { hosts: [(HOST.to_owned(), Environment::default())].into(), ..environment(&[]) };
    assert_eq!(differences(&there, &untold), Vec::<String>::new());
}
