//! Planted costs are found at their place, and missing or wrong data is reported.

mod made;

use std::collections::BTreeMap;

use model::document::{Cell, Table};
use model::{Absence, CaptureKind, FindingCode as _, Missing};
use proptest::prelude::*;

use crate::document::WITHOUT;
use crate::doubt::{DoubtKind, Note};
pub(crate) use crate::tree::together;
use crate::{CodeKind, CostInterval, Explanation, Frame, Tree, TreePlace, compare_trees, tree};
pub(crate) use made::{Made, Worker, calls, packaged, plain_service};

fn spin() -> Frame {
    Frame::new("spin", "spin.js", 7, CodeKind::Application)
}

fn checks(explanation: &Explanation) -> Vec<&str> {
    explanation
        .doubts
        .iter()
        .map(|doubt| doubt.check.code())
        .collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * (1.0 + one.abs().max(other.abs()))
}

/// Two variants. The second spins for 200 µs, in two workers that share the work 3 to 1, and has twice the
/// requests.
fn spinning() -> Made {
    let mut made = Made::new();
    made.rounds(0, &[Worker::with(plain_service())]);
    let whole = together(&[plain_service(), calls(&[&spin()], 200.0)]);
    let whole = tree::scaled(&whole, |_| 2.0);
    let part = |pid: u32, share: f64, requests: u64| Worker {
        pid,
        requests: Some(requests),
        ..Worker::with(tree::scaled(&whole, |_| share))
    };
    made.rounds(1, &[part(100, 0.75, 75), part(200, 0.25, 25)]);
    made.record
        .captures
        .iter_mut()
        .filter(|of| of.variant == 1)
        .for_each(|of| of.requests *= 2);
    made
}

#[test]
fn a_planted_spin_is_found_with_its_cost_and_its_place() {
    let found = spinning().explained(200.0);
    assert_eq!(checks(&found), [""; 0]);
    let comparison = &found.comparisons[0];
    assert_eq!(
        comparison.reconciliation,
        "profiles explain 100 % of +200 µs/request"
    );
    assert_eq!(comparison.functions[0].what, spin());
    assert!(
        near(comparison.functions[0].difference.value, 200.0)
            && near(comparison.profiled_us.value, 200.0)
    );
    let story = comparison.story.as_deref().unwrap_or_default();
    assert!(
        story.contains("spin (spin.js:7) of the service itself"),
        "{comparison:?}"
    );
    let subject = &found.subjects[1];
    assert_eq!(
        (subject.variant.as_str(), subject.requests),
        ("changed", 600)
    );
    // The cost per own request is the same for each worker, regardless of how connections were distributed.
    assert!(
        near(subject.functions[0].workers_us.0, 200.0)
            && near(subject.functions[0].workers_us.1, 200.0)
    );
    let shares: Vec<(u32, Option<u64>, bool)> = subject
        .workers
        .iter()
        .take(2)
        .map(|worker| (worker.pid, worker.requests, worker.profiled))
        .collect();
    assert_eq!(shares, [(100, Some(75), true), (200, Some(25), true)]);
    assert!(near(subject.cpu_us.value, 300.0) && near(subject.tax.cpu_ratio.value, 1.0));
    // Without measured trials, the windows without a profiler serve as the measurement.
    let found = super::explained(&spinning().record, &|_, _| None, &spinning());
    let comparison = &found.comparisons[0];
    assert!(near(comparison.measured_us.value, 200.0) && comparison.explained_share.is_some());
    // If blocks count, a comparison without a figure is void.
    let mut made = spinning();
    made.record.blocks = made::kept().blocks;
    let found = super::explained(&made.record, &|_, _| None, &made);
    let comparison = &found.comparisons[0];
    assert!(
        comparison
            .reconciliation
            .starts_with("the comparison has no figure"),
        "{comparison:?}"
    );
    assert!(comparison.story.is_none() && comparison.explained_share.is_none());
    let row = |found: &Explanation| {
        let tables = crate::Why::of(found).tables;
        tables
            .iter()
            .flat_map(Table::cells)
            .find(|cells| cells[0] == Cell::text(WITHOUT))
            .cloned()
    };
    assert_eq!(row(&found), None, "nothing was measured");
    let mut found = made.explained(200.0);
    let cells = row(&found).expect("it was measured");
    assert!(
        cells[1..3]
            .iter()
            .all(|cell| matches!(cell, Cell::Figure(_))),
        "{cells:?}"
    );
    found.subjects.remove(0);
    assert_eq!(
        row(&found).expect("it was measured")[1],
        Cell::Missing,
        "there is no baseline to sum up"
    );
}

#[test]
fn a_worker_that_costs_more_than_the_others_shows() {
    let mut made = Made::new();
    made.rounds(0, &[Worker::with(plain_service())]);
    let work = |us: f64| calls(&[&spin()], us);
    let expensive = Worker {
        pid: 200,
        requests: Some(50),
        ..Worker::with(work(30.0))
    };
    made.rounds(
        1,
        &[
            Worker {
                requests: Some(50),
                ..Worker::with(work(10.0))
            },
            expensive,
        ],
    );
    let found = made.explained(-60.0);
    let row = &found.subjects[1].functions[0];
    // 10 and 30 µs of each 100 requests are 20 and 60 of each 50.
    assert!(
        near(row.self_us.value, 40.0)
            && near(row.workers_us.0, 20.0)
            && near(row.workers_us.1, 60.0),
        "{row:?}"
    );
}

#[test]
fn samples_of_a_stolen_processor_are_scaled_down_and_never_up() {
    for (ran, factor) in [(0.5, 0.5), (0.95, 0.95), (2.0, 1.0)] {
        let mut made = Made::new();
        let worker = Worker::with(plain_service());
        let ns = (plain_service().total() * ran) as u64;
        made.rounds(
            0,
            &[Worker {
                main_ns: Some(ns),
                ..worker
            }],
        );
        let found = made.explained(0.0);
        let seen: f64 = found.subjects[0]
            .kinds
            .iter()
            .map(|cost| cost.us.value)
            .sum();
        assert!(near(seen, 100.0 * factor), "{ran}: {seen}");
        assert_eq!(checks(&found).contains(&"samples_stretched"), factor < 0.9);
        // CPU time counted by the kernel beyond the samples is in no profile.
        assert_eq!(checks(&found).contains(&"unexplained"), ran > 1.0);
    }
}

#[test]
fn the_work_of_other_threads_is_not_lost_and_the_kernels_sampling_names_it() {
    let mut made = Made::new();
    let worker = Worker {
        pool_ns: 5_000_000,
        v8_ns: 1_000_000,
        ..Worker::with(plain_service())
    };
    made.rounds(0, std::slice::from_ref(&worker));
    let native = |name: &str, kind: CodeKind| Frame::new(name, "libcrypto.so.3", 0, kind);
    let one = |name: &str, kind: CodeKind, us: f64| calls(&[&native(name, kind)], us);
    let pool = together(&[
        one("sha512_block", CodeKind::Native, 3.0),
        one("memcpy", CodeKind::Native, 1.0),
    ]);
    let main = together(&[
        one("tcp_sendmsg", CodeKind::Kernel, 1.0),
        one("main", CodeKind::Native, 3.0),
    ]);
    made.native(0, &worker, &[(0, main), (7, pool)]);
    let subject = &made.explained(0.0).subjects[0];
    let cost = |name: &str| {
        subject
            .functions
            .iter()
            .find(|row| row.frame.function == name)
            .map(|row| row.self_us.value)
    };
    // Shares of the window with kernel sampling, amounts of the window with profiles.
    assert!(
        near(cost("sha512_block").expect("named"), 37.5)
            && near(cost("memcpy").expect("named"), 12.5)
    );
    assert!(
        near(cost("(kernel)").expect("told apart"), 25.0)
            && near(cost("(program)").expect("there"), 15.0)
    );
    assert!(near(cost("handler").expect("untouched"), 60.0));
    let kinds: BTreeMap<CodeKind, f64> = subject
        .kinds
        .iter()
        .map(|cost| (cost.what, cost.us.value))
        .collect();
    assert!(near(kinds[&CodeKind::ThreadPool], 50.0) && near(kinds[&CodeKind::Gc], 10.0));
}

#[test]
fn a_worker_without_a_profile_is_unexplained_and_told() {
    let mut made = Made::new();
    let silent = Worker {
        pid: 200,
        tree: None,
        main_ns: Some(10_000_000),
        ..Worker::with(plain_service())
    };
    made.rounds(0, &[Worker::with(plain_service()), silent]);
    let found = made.explained(0.0);
    assert_eq!(checks(&found), ["worker_unprofiled", "unexplained"]);
    assert!(
        found.doubts[0]
            .evidence
            .contains("api in plain: process 200 has 50 %"),
        "{:?}",
        found.doubts
    );
    assert!(found.doubts[0].evidence.ends_with("(and 2 more like it)"));
    assert!(!found.subjects[0].workers[1].profiled);
    for capture in made.of(CaptureKind::Cpu) {
        let agent = &mut capture.services[0].processes[1].agents[0];
        agent.versions.insert("node".into(), "16.20.2".into());
        agent.failed = Some("at least 18 is needed".into());
    }
    assert_eq!(
        checks(&made.explained(0.0)),
        ["node_too_old", "unexplained", "versions_differ"]
    );
}

#[test]
fn a_service_without_the_agent_is_told_and_its_threads_are_counted() {
    let mut made = Made::new();
    let silent = Worker {
        tree: None,
        main_ns: Some(10_000_000),
        ..Worker::with(plain_service())
    };
    made.rounds(
        0,
        &[Worker {
            pool_ns: 2_000_000,
            ..silent
        }],
    );
    for capture in &mut made.record.captures {
        capture.services[0].processes[0].agents.clear();
        let missing = Missing::new(Absence::NativeStacks, "kernel.perf_event_paranoid is 4");
        capture.services[0].missing.push(missing);
    }
    let found = made.explained(0.0);
    assert_eq!(
        checks(&found),
        ["agent_missing", "perf_not_allowed", "unexplained"]
    );
    assert_eq!(found.subjects[0].kinds[0].what, CodeKind::ThreadPool);
    // A process that is not Node.js has its threads.
    for capture in &mut made.record.captures {
        capture.services[0].processes[0].command = "nginx: worker process".into();
    }
    let found = made.explained(0.0);
    assert_eq!(checks(&found), ["perf_not_allowed"]);
    assert_eq!(found.subjects[0].kinds[0].what, CodeKind::Native);
}

#[test]
fn where_the_kernel_may_not_be_sampled_its_work_is_no_function_of_the_service() {
    let mut made = Made::new();
    let worker = Worker {
        tree: None,
        main_ns: Some(10_000_000),
        ..Worker::with(plain_service())
    };
    made.rounds(0, std::slice::from_ref(&worker));
    made.native(
        0,
        &worker,
        &[(
            0,
            calls(&[&Frame::new("parse", "nginx", 0, CodeKind::Native)], 30.0),
        )],
    );
    for capture in &mut made.record.captures {
        let process = &mut capture.services[0].processes[0];
        process.agents.clear();
        process.command = "nginx: worker process".into();
    }
    let subject = &made.explained(0.0).subjects[0];
    let kinds: BTreeMap<CodeKind, f64> = subject
        .kinds
        .iter()
        .map(|cost| (cost.what, cost.us.value))
        .collect();
    assert!(
        near(kinds[&CodeKind::Native], 30.0) && near(kinds[&CodeKind::Kernel], 70.0),
        "{kinds:?}"
    );
}

#[test]
fn an_agent_that_was_there_and_is_gone_is_lost() {
    let mut made = Made::new();
    made.counters(0, 0.5, 0);
    made.rounds(
        0,
        &[Worker {
            tree: None,
            main_ns: Some(10_000_000),
            ..Worker::with(plain_service())
        }],
    );
    made.of(CaptureKind::Cpu)
        .for_each(|capture| capture.services[0].processes[0].agents.clear());
    assert_eq!(checks(&made.explained(0.0)), ["agent_lost", "unexplained"]);
}

#[test]
fn a_profile_that_is_cut_off_is_a_doubt_and_no_failure() {
    let mut made = spinning();
    for capture in made
        .of(CaptureKind::Cpu)
        .filter(|capture| capture.variant == 1)
    {
        let agent = &mut capture.services[0].processes[0].agents[0];
        agent.profile = agent.profile.take().map(|file| model::ProfileFile {
            path: "nowhere".into(),
            ..file
        });
    }
    let found = made.explained(200.0);
    assert_eq!(checks(&found), ["profile_cut_off", "unexplained"]);
    assert!(found.comparisons[0].story.is_none());
}

#[test]
fn what_the_profiler_costs_is_told() {
    for (added, line, doubt) in [
        (0.8, false, Some("not_steady")),
        (0.95, false, None),
        (1.05, false, None),
        (1.2, true, None),
        (1.4, true, Some("profiler_tax")),
    ] {
        let mut made = spinning();
        for capture in made.of(CaptureKind::Plain) {
            let service = &mut capture.services[0];
            service.cpu_ns = (service.cpu_ns as f64 / added) as u64;
        }
        let found = made.explained(200.0);
        assert_eq!(
            found.comparisons[0]
                .reconciliation
                .contains("the profiler added"),
            line,
            "{added}"
        );
        assert!(
            checks(&found).iter().all(|check| Some(*check) == doubt),
            "{added}: {found:?}"
        );
        assert_eq!(found.doubts.is_empty(), doubt.is_none(), "{added}");
    }
    // Without information there is no figure.
    let mut made = spinning();
    made.record
        .captures
        .retain(|capture| capture.kind != CaptureKind::Plain);
    let found = made.explained(200.0);
    assert_eq!(checks(&found), ["tax_unknown"; 2]);
    assert_eq!(
        (
            found.subjects[0].cpu_us.value,
            crate::Why::of(&found).method.len()
        ),
        (0.0, 1)
    );
}

#[test]
fn too_little_to_go_by_is_told() {
    let mut made = Made::new();
    made.capture(1, 0, &[Worker::with(plain_service())]);
    made.capture(1, 1, &[Worker::with(plain_service())]);
    made.notes.push(Note::new(
        DoubtKind::Minified,
        "dist/app.js: minified, and there is no source map",
    ));
    for capture in made
        .of(CaptureKind::Cpu)
        .filter(|capture| capture.variant == 1)
    {
        (capture.requests, capture.errors) = (0, 50);
        capture.services[0].processes[0].agents[0]
            .versions
            .insert("node".into(), "24.0.0".into());
    }
    let found = made.explained(10.0);
    assert_eq!(
        checks(&found),
        ["one_round", "minified", "no_requests", "versions_differ"]
    );
    assert!(
        found.doubts[3]
            .evidence
            .contains("22.1.0 in changed, plain; 24.0.0 in changed"),
        "{:?}",
        found.doubts
    );
    assert!(found.comparisons.is_empty(), "there is nothing to compare");
}

#[test]
fn a_leak_shows_in_the_heap() {
    let mut made = spinning();
    let keeps = Frame::new("remember", "cache.js", 3, CodeKind::Application);
    for (variant, bytes) in [(0, 10.0), (1, 2058.0)] {
        for round in 1..=3 {
            let half = Worker::with(calls(&[&keeps], bytes / 2e3));
            made.window(
                CaptureKind::Heap,
                round,
                variant,
                &[half.clone(), Worker { pid: 200, ..half }],
            );
        }
    }
    let found = made.explained(200.0);
    assert_eq!(found.comparisons[0].heap[0].what, keeps);
    assert!(
        near(found.comparisons[0].heap[0].difference.value, 2048.0),
        "{found:?}"
    );
    // Without the profile of one process a round would look half as large.
    let last = made.of(CaptureKind::Heap).last().expect("a window");
    let agent = &mut last.services[0].processes[1].agents[0];
    (agent.profile, agent.failed) = (None, Some("the disk is full".into()));
    let found = made.explained(200.0);
    assert_eq!(checks(&found), ["not_captured"]);
    assert!(
        near(found.comparisons[0].heap[0].difference.value, 2048.0),
        "{found:?}"
    );
}

#[test]
fn one_common_round_has_no_interval_and_that_is_told() {
    let mut made = spinning();
    for capture in made
        .of(CaptureKind::Cpu)
        .filter(|of| of.variant == 1 && of.round > 1)
    {
        (capture.requests, capture.end_ns) = (0, capture.start_ns);
    }
    let found = made.explained(200.0);
    assert_eq!((checks(&found), found.rounds), (vec!["one_round"], 3));
    assert!(
        found.doubts[0]
            .evidence
            .starts_with("plain and changed have one round"),
        "{:?}",
        found.doubts
    );
}

#[test]
fn equal_cost_and_idle_loops_say_where_requests_wait() {
    let waiting = |loops: f64, pool_us: u64, us: CostInterval| {
        let mut made = Made::new();
        for variant in [0, 1] {
            made.rounds(variant, &[Worker::with(plain_service())]);
            made.counters(variant, loops, if variant == 1 { pool_us } else { 10 });
        }
        made.explained_by(us).comparisons[0].waiting.clone()
    };
    let none = CostInterval {
        value: 0.5,
        low: -2.0,
        high: 3.0,
    };
    let pool = waiting(0.3, 4000, none).expect("it waits");
    assert!(
        pool.contains("a small task waits 4.00 ms for one in api in changed")
            && pool.contains("busy for 30 %"),
        "{pool}"
    );
    let elsewhere = waiting(0.3, 10, none).expect("it waits");
    // 100 requests a second at 32 connections, of 100 µs of CPU time each.
    assert!(
        elsewhere.contains("not seen from here")
            && elsewhere.contains("under way for 320 ms in plain, 100 µs of it CPU time"),
        "{elsewhere}"
    );
    // Not if the loop is busy, nor if CPU time differs by more than 5 % of 100 µs.
    assert_eq!(waiting(0.95, 4000, none), None);
    assert!(
        waiting(
            0.3,
            4000,
            CostInterval {
                value: 4.0,
                low: 3.1,
                high: 4.9
            }
        )
        .is_some()
    );
    assert_eq!(
        waiting(
            0.3,
            4000,
            CostInterval {
                value: 4.0,
                low: 3.0,
                high: 5.1
            }
        ),
        None
    );
}

#[test]
fn the_busiest_thread_tells_of_waiting_and_idling_beside_the_window_counts_for_nothing() {
    let mut made = Made::new();
    made.rounds(0, &[Worker::with(plain_service())]);
    made.counters(0, 0.95, 10);
    for capture in made.of(CaptureKind::Counters) {
        let agents = &mut capture.services[0].processes[0].agents;
        let mut primary = agents[0].clone();
        // As if another thread took ten seconds to respond.
        agents[0].counters.as_mut().expect("counters").loop_idle_ns = 10_000_000_000;
        let idle = primary.counters.as_mut().expect("counters");
        (idle.loop_active_ns, idle.loop_delay_p99_ns) = (1, 0);
        agents.push(primary);
    }
    let waiting = made.explained(0.0).subjects[0]
        .waiting
        .expect("it was counted");
    assert!(
        near(waiting.loop_utilisation, 0.95) && near(waiting.loop_delay_p99_ms, 3.0),
        "{waiting:?}"
    );
}

#[test]
fn an_event_loop_is_idle_at_a_rate_because_nobody_asks() {
    let mut made = Made::new();
    for variant in [0, 1] {
        made.rounds(variant, &[Worker::with(plain_service())]);
        made.counters(variant, 0.3, 10);
    }
    let wide = CostInterval {
        value: 0.5,
        low: -20.0,
        high: 30.0,
    };
    made.record.header.plan.variants[1].load.protocol = model::Protocol::Http2 { streams: 10 };
    let closed = made.explained_by(wide).comparisons[0]
        .waiting
        .clone()
        .expect("it waits");
    let begin = "No difference in CPU time per request was found, and the event loop";
    assert!(
        closed.starts_with(begin) && closed.contains("under way for 3.20 s in changed"),
        "{closed}"
    );
    made.record.header.plan.variants[1].load.rate_per_s = Some(100.0);
    assert_eq!(made.explained_by(wide).comparisons[0].waiting, None);
}

#[test]
fn two_profiles_without_a_record_compare() {
    let idle = calls(&[&Frame::new("(idle)", "", 0, CodeKind::Waiting)], 70.0);
    let found = compare_trees(
        ("a", &together(&[plain_service(), idle])),
        ("b", &calls(&[&spin()], 30.0)),
    );
    assert!(near(found.profiled_us.value, -70e5), "{found:?}");
    assert_eq!(found.functions.len(), 3);
    assert!(
        found.story.is_none()
            && found
                .kinds
                .iter()
                .all(|change| change.what != CodeKind::Waiting)
    );
}

#[test]
fn nonsense_is_survived() {
    let empty = Made::new();
    assert!(empty.explained(f64::NAN).comparisons.is_empty());
    let mut made = spinning();
    for (place, capture) in made.record.captures.iter_mut().enumerate() {
        match place % 6 {
            0 => capture.services.clear(),
            1 => capture.services[0].processes.clear(),
            2 => (capture.start_ns, capture.end_ns) = (u64::MAX, 0),
            3 => capture.variant = usize::MAX,
            4 => capture.services[0].processes[0].threads.clear(),
            _ => capture.services[0].cpu_ns = 0,
        }
    }
    made.capture(u32::MAX, 1, &[]);
    let mut bad = plain_service();
    bad.nodes[0].self_value = f64::NAN;
    bad.nodes.push(TreePlace {
        frame: 77,
        parent: Some(900),
        self_value: f64::INFINITY,
        lines: BTreeMap::new(),
    });
    made.rounds(0, &[Worker::with(bad)]);
    let found = made.explained(f64::INFINITY);
    let text = serde_json::to_string(&found).expect("it is kept as JSON");
    assert_eq!(
        serde_json::from_str::<Explanation>(&text).expect("and read again"),
        found,
        "no value is NaN"
    );
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let node = (0usize..6, proptest::option::of(0usize..20), 0.0f64..1e7);
    proptest::collection::vec(node, 1..40).prop_map(|nodes| {
        let kinds = [
            CodeKind::Application,
            CodeKind::Framework,
            CodeKind::Core,
            CodeKind::Native,
            CodeKind::Gc,
            CodeKind::Waiting,
        ];
        let frames = (0u32..)
            .zip(kinds)
            .map(|(line, kind)| Frame::new("f", "a.js", line, kind))
            .collect();
        let node = |(index, (frame, parent, self_value)): (usize, (usize, Option<usize>, f64))| {
            TreePlace {
                frame,
                parent: parent.filter(|parent| *parent < index),
                self_value,
                lines: BTreeMap::new(),
            }
        };
        Tree {
            frames,
            nodes: nodes.into_iter().enumerate().map(node).collect(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn kinds_and_functions_both_sum_up_to_what_was_seen(before in any_tree(), after in any_tree(), pool_ns in 0u64..100_000_000) {
        let mut made = Made::new();
        made.rounds(0, &[Worker { pool_ns, ..Worker::with(before) }]);
        made.rounds(1, &[Worker::with(after)]);
        let found = made.explained(1.0);
        for subject in &found.subjects {
            let total = subject.tree.total();
            prop_assert!(near(subject.kinds.iter().map(|cost| cost.us.value).sum(), total));
            prop_assert!(near(subject.functions.iter().map(|row| row.self_us.value).sum(), total));
            prop_assert!(subject.kinds.iter().all(|cost| cost.what != CodeKind::Waiting));
        }
        let comparison = &found.comparisons[0];
        let total = comparison.profiled_us.value;
        prop_assert!(near(comparison.kinds.iter().map(|change| change.difference.value).sum(), total));
        prop_assert!(near(comparison.functions.iter().map(|change| change.difference.value).sum(), total));
    }
}
