//! Deployed services: planted pod changes are found in a sound record, and unknown facts are not reported.

use std::path::Path;

use proofload_analysis::Grade::{self, Invalid, Note, Warning};
use proofload_analysis::{Outcome, conclude};
use record::{DeployedSeen, PodSeen, Record, Trial};

use crate::given::{all, said, saturate, sound, trials};

fn pod(name: &str, ready: bool, restarts: u32) -> PodSeen {
    PodSeen {
        name: name.into(),
        uid: format!("uid-of-{name}"),
        node: Some("n1".into()),
        address: "10.83.101.2:8080".into(),
        ready,
        restarts: Some(restarts),
        images: vec!["shop@sha256:12".into()],
    }
}

/// The stored sound record as if each variant had been a Service with two ready pods and one that is never
/// ready.
fn deployed() -> Record {
    let mut record = sound();
    for (index, variant) in record.header.plan.variants.iter_mut().enumerate() {
        let text = format!(
            "name = \"x\"\n[services.api]\nkubernetes = {{ service = \"shop-{index}\" }}\n"
        );
        let one =
            plan::parse(&text, Path::new(env!("CARGO_MANIFEST_DIR"))).expect("it is an experiment");
        (variant.services, variant.entry) = (
            one.variants[0].services.clone(),
            one.variants[0].entry.clone(),
        );
    }
    for trial in trials(&mut record) {
        let variant = trial.variant();
        let (a, b) = (format!("a-{variant}"), format!("b-{variant}"));
        let pods = vec![pod(&a, true, 0), pod(&b, true, 3), pod("broken", false, 9)];
        trial.started.services.clear();
        trial.started.deployed = Some(DeployedSeen {
            service: "api".into(),
            place: format!("kubernetes://prod/shop-{variant}"),
            address: format!("10.84.0.{variant}:80"),
            addresses: Vec::new(),
            is_here: false,
            unseen: None,
            pods: pods.clone(),
        });
        trial
            .slices
            .iter_mut()
            .for_each(|slice| slice.services.clear());
        let ended = trial.ended.as_mut().expect("it was carried through");
        (ended.peak_rss_bytes, ended.pods) = (0, Some(pods));
        ended.peak_rss_bytes_by_service.clear();
        ended.processes_by_service.clear();
    }
    record
}

/// The second variant's trials from this block on.
fn second(record: &mut Record, from: u32) -> impl Iterator<Item = &mut Trial> {
    trials(record).filter(move |trial| trial.variant() == 1 && trial.started.block >= from)
}

fn begin(trial: &mut Trial) -> &mut Vec<PodSeen> {
    &mut trial.started.deployed.as_mut().expect("it was loaded").pods
}

fn end(trial: &mut Trial) -> &mut Vec<PodSeen> {
    trial
        .ended
        .as_mut()
        .and_then(|ended| ended.pods.as_mut())
        .expect("it was looked at")
}

/// Asserts that apart from `already_running` there is exactly one finding, with these words.
fn is_said(record: &Record, check: &str, grade: Grade, words: &str) {
    let mut found = said(record);
    found.retain(|(check, ..)| *check != "already_running");
    let [(found, its, evidence)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((*found, *its), (check, grade), "{evidence}");
    assert!(evidence.contains(words), "{evidence}");
}

#[test]
fn pods_that_stay_are_told_with_what_that_means_and_nobody_claims_to_know_their_cost() {
    let record = deployed();
    let conclusion = conclude(&record);
    let [(check, grade, evidence)] = &said(&record)[..] else {
        panic!("one note: {:?}", said(&record))
    };
    assert_eq!((*check, *grade), ("already_running", Note));
    let told = "kubernetes://prod/shop-0 (2 pods on n1) and kubernetes://prod/shop-1";
    assert!(evidence.starts_with(told), "{evidence}");
    assert!(
        conclusion
            .comparisons
            .iter()
            .all(|comparison| comparison.outcome != Outcome::Invalid)
    );
    for variant in &conclusion.variants {
        let costs = (
            variant.busy_cores,
            variant.peak_rss_bytes,
            variant.cpu_us_per_request,
        );
        assert_eq!(costs, (None, None, None));
        assert!(variant.services.is_empty() && variant.throughput_per_s.is_some());
    }
    let explored = conclusion
        .comparisons
        .iter()
        .flat_map(|comparison| &comparison.exploratory);
    assert_eq!(explored.count(), 0);
}

#[test]
fn a_change_within_a_trial_voids_its_variant() {
    type Change = fn(&mut Vec<PodSeen>);
    let changes: [(Change, &str); 4] = [
        (|pods| drop(pods.remove(0)), "in block 3 a-1 went"),
        (
            |pods| pods[1].restarts = Some(4),
            "in block 3 b-1 was started again",
        ),
        (
            |pods| pods[0].ready = false,
            "in block 3 a-1 was not ready any more",
        ),
        (|pods| pods.push(pod("c-1", true, 0)), "in block 3 c-1 came"),
    ];
    for (change, words) in changes {
        let mut record = deployed();
        // The change persists.
        second(&mut record, 3).for_each(|trial| change(end(trial)));
        second(&mut record, 4).for_each(|trial| change(begin(trial)));
        is_said(&record, "pods_changed", Invalid, words);
        is_said(&record, "pods_changed", Invalid, "so it went in 1 of ");
        assert!(
            conclude(&record)
                .comparisons
                .iter()
                .any(|one| one.outcome == Outcome::Invalid)
        );
    }
}

#[test]
fn a_change_between_trials_is_a_warning_unless_a_pod_was_started_again() {
    let mut replaced = deployed();
    for trial in second(&mut replaced, 4) {
        begin(trial)[0] = pod("c-1", true, 0);
        end(trial)[0] = pod("c-1", true, 0);
    }
    let words = "changed between trials: before block 4 a-1 went, c-1 came";
    is_said(&replaced, "pods_changed", Warning, words);
    // A cluster reports a crash under load late.
    let mut restarted = deployed();
    for trial in second(&mut restarted, 4) {
        begin(trial)[0].restarts = Some(1);
        end(trial)[0].restarts = Some(1);
    }
    is_said(&restarted, "pods_changed", Invalid, "");
}

#[test]
fn pods_that_get_no_requests_may_do_what_they_like() {
    let mut record = deployed();
    for trial in second(&mut record, 1) {
        end(trial)[2].restarts = Some(30);
    }
    for trial in second(&mut record, 4) {
        drop((begin(trial).pop(), end(trial).pop()));
    }
    assert_eq!(said(&record).len(), 1, "{:?}", said(&record));
}

#[test]
fn trials_at_whose_end_nobody_could_look_are_counted() {
    let mut record = deployed();
    second(&mut record, 1)
        .take(2)
        .for_each(|trial| trial.ended.as_mut().expect("it ended").pods = None);
    is_said(&record, "pods_changed", Warning, "at the end of 2 of ");
}

#[test]
fn two_services_with_the_same_pods_behind_them_are_told_as_such() {
    let mut record = deployed();
    for trial in second(&mut record, 1) {
        begin(trial)[0] = pod("a-0", true, 0);
        end(trial)[0] = pod("a-0", true, 0);
    }
    let words = "1 of the 2 pods behind kubernetes://prod/shop-1 stand behind";
    is_said(&record, "nothing_observable", Warning, words);
}

#[test]
fn a_client_at_its_limit_is_taken_for_the_limit_where_nobody_knows_of_the_service() {
    let mut record = deployed();
    all(&mut record, saturate);
    let found = said(&record);
    let mut of_it = found
        .iter()
        .filter(|(check, ..)| *check == "generator_saturated");
    let (_, grade, evidence) = of_it.next().expect("it is found");
    assert_eq!(*grade, Invalid, "{found:?}");
    assert!(
        evidence.contains("CPU of the services is unknown"),
        "{found:?}"
    );
}

#[test]
fn what_pods_of_this_machine_use_is_not_taken_for_other_programs() {
    let mut record = deployed();
    all(&mut record, |slice| {
        slice.machine.strangers_cpu_ns = slice.counts.window_ns
    });
    is_said(&record, "other_processes", Warning, "");
    for trial in trials(&mut record) {
        trial
            .started
            .deployed
            .as_mut()
            .expect("it was loaded")
            .is_here = true;
    }
    assert_eq!(said(&record).len(), 1, "{:?}", said(&record));
}

#[test]
fn certificates_that_nobody_checked_are_told_with_whose_they_were() {
    let mut record = sound();
    record.header.plan.variants[1].load.tls = Some(plan::Tls {
        insecure: true,
        ..plan::Tls::default()
    });
    is_said(
        &record,
        "certificates_unchecked",
        Note,
        "certificates were not checked",
    );
}
