//! The flame page and the drawings as files that people open: they run nothing but the page's own script, load nothing, stay
//! small, and lose no time.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use explain::{Explanation, Frame, Kind, Node, Package, Tree};
use proofload_report::flame::{page, page_of_trees, svg, svg_difference, svg_in};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::explained::{Grown, frame, full, service, simple, subject, vast};

const HOSTILE: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"onload=\"alert(1)",
    "a\u{2028}b\u{202e}c\u{0}]]>",
    "{{script}}",
];

/// What stands between two texts of a page, the first time.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("the page has it").0
}

/// The data that the page's script reads, read.
fn data(page: &str) -> Value {
    serde_json::from_str(between(page, "id=\"data\">", "</script>")).expect("the data are JSON")
}

fn sum(column: &Value) -> f64 {
    column.as_array().expect("a column").iter().filter_map(Value::as_f64).sum()
}

/// An explanation and a tree, every name of which is hostile.
fn hostile() -> (Explanation, Tree) {
    let mut grown = Grown::default();
    for (index, name) in HOSTILE.iter().enumerate() {
        let package = Some(Package { name: (*name).into(), version: Some((*name).into()) });
        let path = [Frame { package, ..frame(name, name, 1, Kind::Application) }];
        grown.add(&path, 10.0 + index as f64);
    }
    let mut explanation = simple();
    let name = HOSTILE[0];
    explanation.subjects = vec![subject(name, name, grown.tree.clone(), None)];
    explanation.comparisons[0].baseline = name.into();
    explanation.comparisons[0].story = Some(HOSTILE.join(" "));
    (explanation, grown.tree)
}

#[test]
fn a_name_that_is_markup_does_nothing() {
    let (explanation, tree) = hostile();
    let page = page(&explanation, HOSTILE[0]);
    // The data and the page's own script.
    assert_eq!(page.matches("<script").count(), 2, "script elements");
    assert_eq!(page.matches("</script").count(), 2, "ends of script elements");
    for part in ["<img", "<!--", "\u{2028}", "\u{202e}", "\u{0}", "<script>alert"] {
        assert!(!page.contains(part), "{part:?} came through");
    }
    assert!(page.contains("<h1>&lt;/script&gt;&lt;script&gt;alert(1)"), "the title is text");
    let names = data(&page)["frames"].to_string();
    for name in ["<img src=x onerror=alert(1)>", "{{script}}"] {
        assert!(names.contains(name), "names stay what they are: {names}");
    }
    for drawing in [svg(&tree, HOSTILE[0]), svg_difference((HOSTILE[1], &tree), ("b", &tree), HOSTILE[0])] {
        for part in ["<script", "<img", "<!--", "\"onload", "\u{0}", "]]>"] {
            assert!(!drawing.contains(part), "{part:?} came through to the drawing");
        }
    }
}

#[test]
fn the_policy_lets_run_the_page_s_own_script_and_nothing_else() {
    let page = page(&full(), "log-in");
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let (script, style) = (between(&page, "<script>", "</script>"), between(&page, "<style>", "</style>"));
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{}';", hash(script))), "{policy}");
    assert!(policy.contains(&format!("style-src 'sha256-{}';", hash(style))), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    // What the policy would stop must not be in the page, or it would not work.
    for part in [" style=\"", " onclick", "innerHTML", "eval(", "insertAdjacentHTML", "document.write"] {
        assert!(!page.contains(part), "{part} is in the page");
    }
}

#[test]
fn the_page_refers_to_nothing_outside_of_itself() {
    let page = page(&full(), "log-in");
    for part in
        ["http://", "https://", " src=", "@import", "url(", "<link", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!page.contains(part), "{part} is in the page");
    }
}

#[test]
fn no_time_is_lost_between_an_explanation_and_its_page() {
    let explanation = full();
    let data = data(&page(&explanation, "log-in"));
    let variants: Vec<&str> =
        data["variants"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(variants, crate::explained::VARIANTS);
    let groves = data["groves"].as_array().expect("a list");
    let measures: Vec<_> =
        groves.iter().map(|grove| (grove["service"].as_str(), grove["measure"].as_str())).collect();
    let expected = [("api", "CPU time"), ("api", "memory"), ("proxy", "CPU time")];
    assert_eq!(measures, expected.map(|(service, measure)| (Some(service), Some(measure))));
    for (variant, member) in groves[0]["members"].as_array().expect("a list").iter().enumerate() {
        let (shown, real) = (sum(&member["own"]), service(variant).total());
        assert!((shown / real - 1.0).abs() < 1e-4, "{shown} of {real} in variant {variant}");
    }
}

#[test]
fn of_vast_profiles_the_page_sums_up_small_calls_and_says_so() {
    let explanation = vast();
    let page = page(&explanation, "vast");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    let grove = &data(&page)["groves"][0];
    assert!(grove["smaller"].as_u64() > Some(1_000) && grove["share"].as_f64() >= Some(0.0002));
    let members = grove["members"].as_array().expect("a list");
    for (member, subject) in members.iter().zip(&explanation.subjects) {
        let (shown, real) = (sum(&member["own"]), subject.tree.total());
        assert!((shown / real - 1.0).abs() < 1e-3, "{shown} of {real} in {}", subject.variant);
    }
}

#[test]
fn an_explanation_that_was_edited_by_hand_still_opens() {
    let mut explanation = simple();
    let tree = &mut explanation.subjects[0].tree;
    tree.nodes[3].self_value = f64::NAN;
    tree.nodes[4].self_value = -1e300;
    tree.nodes[5].parent = Some(5);
    tree.nodes[6].parent = Some(usize::MAX);
    tree.nodes[7].frame = usize::MAX;
    let data = data(&page(&explanation, "edited"));
    let grove = &data["groves"][0];
    let parents =
        grove["parent"].as_array().expect("a list").iter().map(|parent| parent.as_i64().expect("a number"));
    assert!(
        parents.enumerate().all(|(node, parent)| parent < node as i64),
        "callers stand before what they call"
    );
    assert!(
        grove["members"][0]["own"].as_array().expect("a list").iter().all(|own| own.as_f64() >= Some(0.0))
    );
    let empty = Explanation { subjects: vec![], comparisons: vec![], ..simple() };
    assert_eq!(self::data(&page(&empty, "empty"))["groves"], Value::Array(vec![]));
}

#[test]
fn trees_without_an_explanation_have_a_page_too() {
    let (one, other) = (service(0), service(1));
    let data =
        data(&page_of_trees(&[("before.cpuprofile", &one), ("after.cpuprofile", &other)], "ms", "files"));
    assert_eq!(data["variants"], serde_json::json!(["before.cpuprofile", "after.cpuprofile"]));
    assert_eq!((data["unit"].as_str(), data["comparisons"].as_array().map(Vec::len)), (Some("ms"), Some(0)));
}

/// A handler that hashes, in both of its forms.
fn small() -> [Tree; 2] {
    let server = frame("onRequest", "server.js", 12, Kind::Application);
    let express = Package { name: "express".into(), version: Some("5.1.0".into()) };
    let app = Frame { package: Some(express), ..frame("app", "lib/express.js", 36, Kind::Framework) };
    let (sync, pool) = (
        frame("pbkdf2Sync", "node:internal/crypto/pbkdf2", 63, Kind::Core),
        frame("libuv-worker", "", 0, Kind::ThreadPool),
    );
    let mut trees = [Grown::default(), Grown::default()];
    for (grown, own) in trees.iter_mut().zip([20.0, 21.0]) {
        grown.add(std::slice::from_ref(&app), own);
        grown.add(&[app.clone(), server.clone()], 8.0);
    }
    trees[0].add(&[app, server, sync], 212.0);
    trees[1].add(&[pool], 190.5);
    trees.map(|grown| grown.tree)
}

#[test]
fn a_flame_graph_as_a_drawing() {
    insta::assert_snapshot!(svg(&small()[0], "one & only"));
}

#[test]
fn a_difference_as_a_drawing() {
    let [one, other] = small();
    insta::assert_snapshot!(svg_difference(("sync", &one), ("pool", &other), "sync against pool"));
}

#[test]
fn a_drawing_of_nothing_or_of_endless_recursion_is_a_drawing() {
    let nothing = svg_in(&Tree::default(), "ms", "nothing");
    let node = |number: usize| Node {
        frame: 0,
        parent: number.checked_sub(1),
        self_value: 1.0,
        lines: BTreeMap::new(),
    };
    let deep = Tree {
        frames: vec![frame("f", "f.js", 1, Kind::Application)],
        nodes: (0..20_000).map(node).collect(),
    };
    let deep = svg(&deep, "deep");
    assert!(!nothing.contains("NaN") && !nothing.contains("inf") && nothing.ends_with("</svg>\n"));
    assert!(deep.len() < 1_000_000 && deep.ends_with("</svg>\n"), "{} bytes", deep.len());
}
