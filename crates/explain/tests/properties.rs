//! Invariants of every profile and every tree, with thousands of random inputs.

use std::collections::BTreeMap;

use proofload_explain::{
    CaptureFiles, CodeKind, CpuProfile, Cut, Frame, HeapProfile, Naming, NativeProfile, Profile,
    TimeWindow, Tree, TreePlace, TreeUnit, cpu_tree, cpuprofile, folded, heap_tree, merge,
    native_tree, read_any, speedscope,
};
use proptest::prelude::*;

struct Nowhere;

impl CaptureFiles for Nowhere {
    fn source_map(&self, script: &str) -> Option<(Vec<u8>, String)> {
        let map =
            br#"{"version":3,"sources":["../src/a.ts"],"names":["x"],"mappings":"AAAAA;AACA"}"#;
        Some((map.to_vec(), script.to_owned()))
    }
}

const NAMING: Naming<'static> = Naming {
    directory: "/srv",
    source: &Nowhere,
};

/// All operations on a profile.
fn everything(bytes: &[u8]) {
    let Ok(profile) = read_any("made up", bytes) else {
        return;
    };
    let windows = [
        TimeWindow {
            start_ns: 5000,
            end_ns: 40_000,
        },
        TimeWindow {
            start_ns: 9,
            end_ns: 3,
        },
    ];
    let mut cuts = vec![profile.cut(&NAMING)];
    if let Profile::Cpu(profile) = &profile {
        cuts.extend(windows.map(|window| cpu_tree(profile, Some(window), &NAMING)));
    }
    for Cut { tree, .. } in cuts {
        let mut nodes = tree.nodes.iter().enumerate();
        assert!(nodes.all(|(index, node)| node.parent.is_none_or(|parent| parent < index)));
        folded(&tree, TreeUnit::Nanoseconds);
        speedscope(&[("x".to_owned(), &tree)], TreeUnit::Nanoseconds);
        tree.bottom_up(50);
        let again = cpuprofile(&tree, TreeUnit::Nanoseconds).to_string();
        CpuProfile::read(again.as_bytes()).expect("ours can be read");
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "|\\(idle\\)|\\(root\\)|\\(garbage collector\\)",
        "[a-c]{1,2}",
        ".{0,4}"
    ]
}

fn url() -> impl Strategy<Value = String> {
    prop_oneof![
        "|node:events|file:///srv/a%20b\\.js|/srv/node_modules/express/i\\.js",
        "(file://|/srv|wasm:|webpack://|node_modules/|@|%|/|\\\\|[a-z.:?#é]){0,6}",
    ]
}

/// A profile that may contradict itself in every way that its types allow.
fn profile_text() -> impl Strategy<Value = String> {
    let (children, parent) = (
        prop::collection::vec(0u32..12, 0..4),
        prop::option::of(0u32..12),
    );
    let node = (0u32..12, name(), url(), -1i64..900, children, parent);
    let nodes = prop::collection::vec(node, 0..12);
    let samples = prop::collection::vec((0u32..12, -3_000i64..9_000), 0..60);
    (nodes, samples, -100i64..100, 0i64..200_000).prop_map(|(nodes, samples, start, end)| {
        let nodes: Vec<serde_json::Value> = nodes
            .into_iter()
            .map(|(id, name, url, line, children, parent)| {
                serde_json::json!({
                    "id": id,
                    "callFrame": {"functionName": name, "scriptId": id % 2, "url": url, "lineNumber": line, "columnNumber": line},
                    "children": children,
                    "parent": parent,
                    "positionTicks": [{"line": 1, "ticks": 3}, {"line": 2, "ticks": u32::MAX}],
                })
            })
            .collect();
        let (samples, deltas): (Vec<u32>, Vec<i64>) = samples.into_iter().unzip();
        serde_json::json!({"nodes": nodes, "samples": samples, "timeDeltas": deltas, "startTime": start, "endTime": end}).to_string()
    })
}

/// A well-formed profile of three functions with integer microseconds and an occasional gap.
fn sane_profile() -> impl Strategy<Value = (CpuProfile, u64)> {
    let delta = prop_oneof![40 => 900u64..1100, 1 => 1u64..60_000];
    prop::collection::vec((1u32..5, delta), 1..120).prop_map(|samples| {
        const NODES: &str = r#"[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
            {"id":2,"callFrame":{"functionName":"a","url":"/srv/a.js"},"children":[3]},
            {"id":3,"callFrame":{"functionName":"b","url":"/srv/b.js"},"children":[4]},
            {"id":4,"callFrame":{"functionName":"(idle)"}}]"#;
        let (samples, deltas): (Vec<u32>, Vec<u64>) = samples.into_iter().unzip();
        let span = deltas.iter().sum::<u64>() + 500;
        let text = format!(
            r#"{{"nodes":{NODES},"samples":{samples:?},"timeDeltas":{deltas:?},"startTime":1000,"endTime":{}}}"#,
            1000 + span
        );
        (CpuProfile::read(text.as_bytes()).expect("well formed"), span)
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let node = (0usize..4, prop::option::of(0usize..20), 0u32..100_000);
    prop::collection::vec(node, 0..20).prop_map(|nodes| {
        let frames = ["a", "b;c", "d e", "é"].map(|name| {
            let (function, file) = (name.into(), "x.js".into());
            Frame {
                function,
                file,
                line: 1,
                kind: CodeKind::Application,
                package: None,
            }
        });
        let nodes = nodes
            .into_iter()
            .enumerate()
            .map(|(index, (frame, parent, value))| TreePlace {
                frame,
                parent: parent.filter(|parent| *parent < index),
                self_value: f64::from(value),
                lines: BTreeMap::from([(1, f64::from(value))]),
            });
        Tree {
            frames: frames.to_vec(),
            nodes: nodes.collect(),
        }
    })
}

fn by_name(tree: &Tree) -> BTreeMap<String, f64> {
    let functions = tree.functions();
    functions
        .iter()
        .map(|it| (tree.frames[it.frame].function.clone(), it.self_value))
        .collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_profile_breaks_anything_whole_or_damaged(text in profile_text(), damage in prop::option::of(any::<(prop::sample::Index, u8, bool)>())) {
        let mut bytes = text.into_bytes();
        if let Some((at, byte, cut)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(if cut { at } else { bytes.len() });
        }
        everything(&bytes);
        let _ = HeapProfile::read(&bytes).map(|heap| heap_tree(&heap, &NAMING));
        let _ = NativeProfile::read(&bytes).map(|native| native_tree(&native, &NAMING));
    }

    #[test]
    fn cut_at_any_point_both_parts_make_the_whole((profile, span) in sane_profile(), at in any::<prop::sample::Index>()) {
        let whole = cpu_tree(&profile, None, &NAMING);
        let (begin, end) = (1_000_000, (1000 + span) * 1000);
        let middle = begin + at.index((end - begin) as usize) as u64;
        let parts = [(0, middle), (middle, end)]
            .map(|(start_ns, end_ns)| cpu_tree(&profile, Some(TimeWindow { start_ns, end_ns }), &NAMING));
        prop_assert!(near(whole.tree.total(), whole.covered_ns));
        prop_assert!(near(parts[0].covered_ns + parts[1].covered_ns, whole.covered_ns));
        prop_assert!(near(parts[0].capped_ns + parts[1].capped_ns, whole.capped_ns));
        let joined = merge(&[(&parts[0].tree, 1.0), (&parts[1].tree, 1.0)]);
        for (name, value) in by_name(&whole.tree) {
            prop_assert!(near(by_name(&joined).get(&name).copied().unwrap_or(0.0), value), "{}", name);
        }
        prop_assert!(whole.covered_ns + whole.capped_ns <= (end - begin) as f64);
    }

    #[test]
    fn merging_adds_up_however_it_is_grouped(a in tree(), b in tree(), c in tree()) {
        let all = merge(&[(&a, 1.0), (&b, 2.0), (&c, 0.5)]);
        let ab = merge(&[(&a, 1.0), (&b, 2.0)]);
        let grouped = merge(&[(&ab, 1.0), (&c, 0.5)]);
        prop_assert!(near(all.total(), a.total() + 2.0 * b.total() + 0.5 * c.total()));
        prop_assert_eq!(folded(&all, TreeUnit::Nanoseconds), folded(&grouped, TreeUnit::Nanoseconds));
        let lines: f64 = all.functions().iter().flat_map(|it| it.lines.values()).sum();
        prop_assert!(near(lines, all.total()), "each value has its line");
        let paths: std::collections::HashSet<(Option<usize>, usize)> = all.nodes.iter().map(|node| (node.parent, node.frame)).collect();
        prop_assert_eq!(paths.len(), all.nodes.len(), "a path of calls has one place");
    }

    #[test]
    fn a_heavy_tree_has_the_same_functions(tree in tree(), callers in 0usize..5) {
        let heavy = tree.bottom_up(callers);
        prop_assert!(near(heavy.total(), tree.total()));
        let totals = heavy.totals();
        let (roots, _) = heavy.children();
        for (name, value) in by_name(&tree) {
            let root = roots.iter().find(|root| heavy.frames[heavy.nodes[**root].frame].function == name);
            prop_assert!(near(root.map_or(0.0, |root| totals[*root]), value));
        }
    }
}
