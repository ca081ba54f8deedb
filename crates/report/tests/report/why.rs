//! Snapshots of an explanation in all forms. No external name has an effect on them.

use analysis::conclude;
use explain::{
    CodeKind, Cost, CostChange, CostComparison, CostInterval, Doubt, DoubtKind, ExplainedService,
    Explanation, Frame, FunctionCost, LineCost, Package, Tax, Tree, TreePlace, TreeUnit,
    WaitingTimes, Why, WorkerShare,
};
use proofload_report::{Document, MeasuredRecord, Report, markdown, text};

use crate::drawn;
use crate::explained::frame;
use crate::records::kept;

fn section(explanation: &Explanation) -> Document {
    Document::new("Where the time goes", Why::of(explanation).blocks())
}

/// The section's text.
fn told(explanation: &Explanation, width: usize) -> String {
    drawn(&section(explanation), width)
}

fn profile(title: &str, tree: &Tree) -> Document {
    explain::profile(title, tree, TreeUnit::Nanoseconds)
}

fn about(value: f64, half: f64) -> CostInterval {
    CostInterval {
        value,
        low: value - half,
        high: value + half,
    }
}

/// A handler that hashes in the event loop, beside express and the idle loop.
fn frames() -> Vec<Frame> {
    let express = Some(Package {
        name: "express".into(),
        version: Some("5.1.0".into()),
    });
    vec![
        frame("parse", "node:_http_server", 9, CodeKind::Core),
        Frame {
            package: express,
            ..frame("handle", "lib/router.js", 40, CodeKind::Framework)
        },
        frame("checkSync", "users.js", 34, CodeKind::Application),
        frame(
            "pbkdf2Sync",
            "node:internal/crypto/pbkdf2",
            66,
            CodeKind::Core,
        ),
        frame("(garbage collector)", "", 0, CodeKind::Gc),
        frame("(idle)", "", 0, CodeKind::Waiting),
    ]
}

fn tree(hash: f64) -> Tree {
    let node = |frame, parent, self_value| TreePlace {
        frame,
        parent,
        self_value,
        lines: Default::default(),
    };
    let mut nodes = vec![
        node(0, None, 0.0),
        node(1, Some(0), 20.0),
        node(2, Some(1), 5.0),
        node(3, Some(2), hash),
        node(4, Some(0), 8.0),
        node(5, Some(0), 1000.0),
    ];
    nodes[2].lines = [(36, 4.0), (37, 1.0)].into();
    Tree {
        frames: frames(),
        nodes,
    }
}

fn subject(variant: &str, hash: f64) -> ExplainedService {
    let (mut tree, frames) = (tree(hash), frames());
    // Waiting is in no subject's tree.
    tree.nodes.truncate(5);
    let row = |at: usize, own: f64, total_us: f64| FunctionCost {
        frame: frames[at].clone(),
        self_us: about(own, own / 20.0),
        total_us,
        workers_us: (own * 0.9, own * 1.1),
        lines: if at == 2 {
            vec![LineCost { line: 36, us: 4.0 }]
        } else {
            Vec::new()
        },
    };
    let cost = |what, us: f64| Cost {
        what,
        us: about(us, us / 20.0),
    };
    ExplainedService {
        variant: variant.into(),
        service: "api".into(),
        requests: 4321,
        cpu_us: about(hash + 36.0, 2.0),
        tax: Tax {
            cpu_ratio: about(1.043, 0.01),
            throughput_ratio: about(0.961, 0.01),
        },
        kinds: vec![
            cost(CodeKind::Core, hash),
            cost(CodeKind::Framework, 20.0),
            cost(CodeKind::Gc, 8.0),
            cost(CodeKind::Application, 5.0),
        ],
        packages: vec![Cost {
            what: "express@5.1.0".into(),
            us: about(20.0, 1.0),
        }],
        functions: vec![
            row(3, hash, hash),
            row(1, 20.0, 25.0 + hash),
            row(2, 5.0, 5.0 + hash),
        ],
        workers: vec![
            WorkerShare {
                round: 1,
                pid: 101,
                requests: Some(3000),
                cpu_ns: 3_000_000,
                profiled: true,
            },
            WorkerShare {
                round: 1,
                pid: 102,
                requests: Some(1000),
                cpu_ns: 1_000_000,
                profiled: true,
            },
        ],
        waiting: Some(WaitingTimes {
            loop_utilisation: 0.993,
            loop_delay_p99_ms: 21.4,
            pool_wait_us: None,
            gc_share: 0.012,
            run_delay_share: 0.08,
        }),
        tree,
        heap: None,
    }
}

fn change<W>(what: W, baseline: f64, variant: f64, half: f64) -> CostChange<W> {
    CostChange {
        what,
        was: None,
        baseline,
        variant,
        difference: about(variant - baseline, half),
    }
}

fn explanation() -> Explanation {
    let comparison = CostComparison {
        baseline: "async".into(),
        variant: "sync".into(),
        measured_us: about(20_700.0, 900.0),
        profiled_us: about(20_396.0, 700.0),
        explained_share: Some(0.985),
        kinds: vec![change(CodeKind::Core, 4.0, 20_400.0, 690.0), change(CodeKind::Waiting, 1000.0, 0.0, 10.0)],
        packages: vec![change("express@5.1.0".into(), 20.0, 20.5, 0.7)],
        functions: vec![change(frames().remove(3), 4.0, 20_400.0, 690.0)],
        heap: vec![change(frames().remove(2), 12.0, 10_240.0, 31.0)],
        reconciliation: "profiles explain 99 % of +20,700 µs/request".into(),
        story: Some("checkSync hashes a password with pbkdf2Sync on the main thread, where nothing else can run meanwhile".into()),
        waiting: None,
    };
    let doubt = Doubt::note(
        DoubtKind::PerfNotAllowed,
        "no native profiles: kernel.perf_event_paranoid is 3",
        "sysctl kernel.perf_event_paranoid=1",
    );
    let subjects = vec![subject("async", 4.0), subject("sync", 20_400.0)];
    Explanation {
        rounds: 3,
        subjects,
        comparisons: vec![comparison],
        doubts: vec![doubt],
    }
}

#[test]
fn section_and_profiles_are_told_as_they_were() {
    let explanation = explanation();
    let (told, all) = (
        told(&explanation, 100),
        drawn(&explain::all_of(&explanation, "Sync or async?"), 100),
    );
    let (first, rest) = all.split_once("\n\nsync\n").expect("two variants");
    // Behind its title.
    let compared = told.split_once("\n\n").expect("a section").1;
    assert!(rest.ends_with(compared), "{all}");
    for (name, text) in [
        ("text_of_the_section", told.clone()),
        ("markdown_of_the_section", markdown(&section(&explanation))),
        (
            "text_of_all_that_a_record_tells_of_one_variant",
            first.to_owned(),
        ),
        (
            "text_of_one_profile_shares_out_what_worked_and_not_what_waited",
            drawn(&profile("before.cpuprofile", &tree(967e6)), 100),
        ),
    ] {
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_report_has_the_section_after_its_verdicts_and_says_where_to_see_more() {
    let record = kept();
    let conclusion = conclude(&record);
    let explanation = explanation();
    let document = MeasuredRecord::new(&record, &conclusion, Some(&explanation)).document();
    let said = drawn(&document, 100);
    let place = |what: &str| said.find(what).unwrap_or_else(|| panic!("{what}: {said}"));
    let section = place("\nWhere the time goes\n");
    assert!(
        place("FASTER") < section && section < place("   blocks  "),
        "{said}"
    );
    assert!(
        place("records/simulated/flame.html") > place("   record  "),
        "{said}"
    );
    let page = markdown(&document);
    assert!(
        page.find("\n#### Where the time goes\n") < page.find("How it was measured"),
        "{page}"
    );
    // The reconciliation and the cause are visible, the tables are folded.
    assert!(
        page.find("explain 99 %") < page.find("<summary>Functions"),
        "{page}"
    );
}

#[test]
fn of_one_capture_there_is_no_interval_and_no_false_digit() {
    let mut one = explanation();
    one.rounds = 1;
    let comparison = &mut one.comparisons[0];
    comparison.profiled_us = about(20_396.0, 0.0);
    comparison.functions[0].difference = about(20_396.123_456, 0.0);
    let said = told(&one, 100);
    assert!(
        said.contains("+20.4 ms") && !said.contains("20.396"),
        "{said}"
    );
    assert!(said.contains("1 round of trials"), "{said}");
}

#[test]
fn what_moved_is_told_with_its_old_place_and_has_its_caller_where_it_costs_more() {
    let mut moved = explanation();
    let change = &mut moved.comparisons[0].functions[0];
    change.was = Some(Frame {
        line: 61,
        ..change.what.clone()
    });
    let said = told(&moved, 140);
    let rows: Vec<&str> = said
        .lines()
        .skip_while(|line| !line.contains("by function"))
        .skip(3)
        .take(3)
        .collect();
    let has = |row: usize, what: &[&str]| what.iter().all(|what| rows[row].contains(what));
    assert!(
        has(0, &["pbkdf2Sync", "node:internal/crypto/pbkdf2:66"]),
        "{said}"
    );
    assert!(
        has(1, &["moved from", "node:internal/crypto/pbkdf2:61"]),
        "{said}"
    );
    assert!(has(2, &["← checkSync", "users.js:34"]), "{said}");
    // A function that costs less now is found in the other profile, under its name there.
    let mut cheaper = moved;
    cheaper.subjects[0].tree.frames[3].line = 61;
    let comparison = &mut cheaper.comparisons[0];
    (
        comparison.functions[0].baseline,
        comparison.functions[0].variant,
    ) = (4.0, 1.0);
    assert!(told(&cheaper, 140).contains("← checkSync"));
}

#[test]
fn without_a_comparison_it_tells_what_the_variant_spends() {
    let mut alone = explanation();
    alone.comparisons.clear();
    alone.subjects.truncate(1);
    let said = told(&alone, 100);
    assert!(
        said.contains("async: by function") && said.contains("lib/router.js:40"),
        "{said}"
    );
}

#[test]
fn names_from_outside_are_text_in_every_form() {
    let evil = "<img src=x onerror=alert(1)>|\u{1b}[2J\n`";
    let mut hostile = explanation();
    hostile.comparisons[0].functions[0].what.function = evil.into();
    hostile.comparisons[0].story = Some(evil.into());
    hostile.subjects[1].variant = evil.into();
    hostile.subjects[1].functions[0].frame.function = evil.into();
    hostile.subjects[1].tree.frames[3].function = evil.into();
    let page = markdown(&section(&hostile));
    assert!(!page.contains("<img") && !page.contains('\u{1b}'), "{page}");
    let tree = &hostile.subjects[1].tree;
    // With colours: plain text would lack the searched sequence.
    for document in [
        section(&hostile),
        explain::all_of(&hostile, evil),
        profile(evil, tree),
    ] {
        assert!(!text(&document, 80).contains("\u{1b}[2J"), "{document:?}");
    }
}

#[test]
fn a_tree_that_leads_nowhere_or_too_deep_is_drawn_as_far_as_it_goes() {
    let mut broken = tree(100.0);
    broken.nodes[1].parent = Some(3);
    broken.nodes[2].parent = Some(2);
    broken.nodes[4].frame = 99;
    broken.nodes[5].parent = Some(77);
    let node = |at: usize| TreePlace {
        frame: 1 + at % 2,
        parent: at.checked_sub(1),
        self_value: 1.0,
        lines: Default::default(),
    };
    let deep = Tree {
        frames: frames(),
        nodes: (0..100_000).map(node).collect(),
    };
    for (tree, there) in [
        (broken, "pbkdf2Sync"),
        (deep, "handle"),
        (Tree::default(), "0 µs of CPU time"),
    ] {
        let said = drawn(&profile("profile", &tree), 100);
        assert!(said.contains(there), "{there}: {said}");
    }
}

#[test]
fn a_difference_of_two_profiles_is_told_in_their_own_unit() {
    let comparison = &explanation().comparisons[0];
    let said = drawn(&explain::difference(comparison, TreeUnit::Nanoseconds), 100);
    assert!(said.starts_with("sync vs async\n"), "{said}");
    assert!(
        said.contains("+20.40 µs (+19.70 to +21.10 µs) of CPU time"),
        "{said}"
    );
    assert!(!said.contains("waiting"), "what waits took no time: {said}");
    let json = explain::difference_json(comparison, TreeUnit::Nanoseconds);
    assert_eq!(json["difference"]["functions"][0]["what"]["line"], 66);
}
