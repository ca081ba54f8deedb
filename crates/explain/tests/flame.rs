//! The flame page and the drawings as files that people open: they run only the page's own script, load
//! nothing and stay small.

extern crate proofload_explain as explain;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use explain::flame::{page, page_of_trees, svg, svg_difference};
use explain::{CodeKind, Explanation, Frame, Package, Tree, TreeUnit};
use sha2::{Digest as _, Sha256};

#[allow(dead_code, reason = "tests of reports use all of it")]
mod explained;

use explained::{between, frame, full, grown, service, simple, subject, vast};

const HOSTILE: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"onload=\"alert(1)",
    "a\u{2028}b\u{202e}c\u{0}]]>",
    "{{script}}",
];

/// An explanation and a tree in which every name is hostile.
fn hostile() -> (Explanation, Tree) {
    let path = |name: &str| {
        let package = Some(Package {
            name: name.into(),
            version: Some(name.into()),
        });
        (
            vec![Frame {
                package,
                ..frame(name, name, 1, CodeKind::Application)
            }],
            10.0,
        )
    };
    let (tree, name) = (grown(HOSTILE.map(path)), HOSTILE[0]);
    let mut explanation = simple();
    explanation.subjects = vec![subject(name, name, tree.clone(), None)];
    explanation.comparisons[0].baseline = name.into();
    explanation.comparisons[0].story = Some(HOSTILE.join(" "));
    (explanation, tree)
}

#[test]
fn a_name_that_is_markup_does_nothing() {
    let (explanation, tree) = hostile();
    let page = page(&explanation, HOSTILE[0]);
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("</script").count()
        ),
        (1, 1),
        "its own script"
    );
    for part in [
        "<img",
        "<!--",
        "\u{2028}",
        "\u{202e}",
        "\u{0}",
        "<script>alert",
    ] {
        assert!(!page.contains(part), "{part:?} came through");
    }
    assert!(
        page.contains("<h1>&lt;/script&gt;&lt;script&gt;alert(1)"),
        "the title is text"
    );
    for name in ["&lt;img src=x onerror=alert(1)&gt;", "{{script}}"] {
        assert!(page.contains(name), "names stay what they are: {name}");
    }
    let difference = svg_difference(
        (HOSTILE[1], &tree),
        ("b", &tree),
        TreeUnit::Nanoseconds,
        HOSTILE[0],
    );
    for drawing in [svg(&tree, TreeUnit::Nanoseconds, HOSTILE[0]), difference] {
        for part in ["<script", "<img", "<!--", "\"onload", "\u{0}", "]]>"] {
            assert!(
                !drawing.contains(part),
                "{part:?} came through to the drawing"
            );
        }
    }
}

#[test]
fn the_page_runs_its_own_script_alone_and_loads_and_links_nothing() {
    let page = page(&full(), "log-in");
    let policy = between(
        &page,
        "http-equiv=\"Content-Security-Policy\" content=\"",
        "\"",
    );
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let (script, style) = (
        between(&page, "<script>", "</script>"),
        between(&page, "<style>", "</style>"),
    );
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(
        policy.contains(&format!("script-src 'sha256-{}';", hash(script))),
        "{policy}"
    );
    assert!(
        policy.contains(&format!("style-src 'sha256-{}';", hash(style))),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    // Anything the policy would block must not be in the page.
    for part in [
        " style=\"",
        " onclick",
        "innerHTML",
        "eval(",
        "insertAdjacentHTML",
        "document.write",
    ] {
        assert!(!page.contains(part), "{part} is in the page");
    }
    // The namespace of SVG is a name that is not loaded.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    let loads = "http: https: src= href= @import url( <link fetch( XMLHttpRequest import(";
    for part in loads.split(' ') {
        assert!(!page.contains(part), "{part} is in the page");
    }
}

#[test]
fn the_page_has_each_comparison_and_each_variant_with_its_services_and_memory() {
    let page = page(&full(), "log-in");
    let titles: Vec<&str> = page
        .split("<summary>")
        .skip(1)
        .filter_map(|rest| rest.split("</summary>").next())
        .collect();
    let differences = titles.iter().filter(|title| title.contains(" vs ")).count();
    // Two comparisons and three variants, each with two services, one of them with memory.
    assert_eq!(
        (differences, titles.len() - differences),
        (2 * 3, 3 * 3),
        "{titles:?}"
    );
    assert!(
        page.contains("profiles explain 96 % of +9 µs/request")
            && page.contains("perf_event_paranoid is 3")
    );
    assert_eq!(page.matches("<svg").count(), titles.len());
}

#[test]
fn two_entries_are_compared_whatever_they_are_called() {
    let mut explanation = simple();
    explanation.subjects[0].service = "express".into();
    let page = page(&explanation, "two servers");
    assert!(page.contains("<summary>hash=pool vs hash=sync, api: CPU time per request"));
}

#[test]
fn graphs_that_have_no_room_are_left_out_and_the_page_says_so() {
    let page = page(&vast(), "vast");
    assert!(page.len() < 3_100_000, "{} bytes", page.len());
    let drawn = page.matches("<svg").count();
    assert!(
        (1..4).contains(&drawn) && page.contains("more graphs have no room"),
        "{drawn} drawn"
    );
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
    let drawn = page(&explanation, "edited");
    assert!(!drawn.contains("NaN") && drawn.ends_with("</html>\n"));
    let empty = Explanation {
        subjects: vec![],
        comparisons: vec![],
        ..simple()
    };
    assert!(page(&empty, "empty").ends_with("</html>\n"));
    let trees = [("a.cpuprofile", &service(0)), ("b.cpuprofile", &service(1))];
    let trees = page_of_trees(&trees, TreeUnit::Nanoseconds, "files");
    assert_eq!(
        trees.matches("<svg").count(),
        3,
        "the difference, and each by itself"
    );
}

#[test]
fn what_only_moved_lies_over_what_it_was() {
    let [before, _] = small();
    let mut after = before.clone();
    after
        .frames
        .iter_mut()
        .filter(|frame| frame.function == "onRequest")
        .for_each(|frame| frame.line += 2);
    let drawing = svg_difference(
        ("a", &before),
        ("b", &after),
        TreeUnit::Nanoseconds,
        "moved",
    );
    assert!(
        !drawing.contains("fill=\"none\""),
        "nothing is gone and nothing new: {drawing}"
    );
}

/// A handler that hashes, in both of its forms.
fn small() -> [Tree; 2] {
    let server = frame("onRequest", "server.js", 12, CodeKind::Application);
    let express = Package {
        name: "express".into(),
        version: Some("5.1.0".into()),
    };
    let app = Frame {
        package: Some(express),
        ..frame("app", "lib/express.js", 36, CodeKind::Framework)
    };
    let sync = frame(
        "pbkdf2Sync",
        "node:internal/crypto/pbkdf2",
        63,
        CodeKind::Core,
    );
    let pool = frame("libuv-worker", "", 0, CodeKind::ThreadPool);
    let both = |own: f64, hashing: (Vec<Frame>, f64)| {
        grown([
            (vec![app.clone()], own),
            (vec![app.clone(), server.clone()], 8.0),
            hashing,
        ])
    };
    let blocking = vec![app.clone(), server.clone(), sync];
    [
        both(20.0, (blocking, 212.0)),
        both(21.0, (vec![pool], 190.5)),
    ]
}

#[test]
fn drawings_of_one_and_of_a_difference() {
    let ([one, other], unit) = (small(), TreeUnit::MicrosPerRequest);
    insta::assert_snapshot!("a_flame_graph_as_a_drawing", svg(&one, unit, "one & only"));
    let difference = svg_difference(("sync", &one), ("pool", &other), unit, "pool vs sync");
    insta::assert_snapshot!("a_difference_as_a_drawing", difference);
}

#[test]
fn a_drawing_of_nothing_or_of_endless_recursion_is_a_drawing() {
    let nothing = svg(&Tree::default(), TreeUnit::Nanoseconds, "nothing");
    let deep = grown([(
        vec![frame("f", "f.js", 1, CodeKind::Application); 20_000],
        1.0,
    )]);
    let deep = svg(&deep, TreeUnit::Nanoseconds, "deep");
    assert!(!nothing.contains("NaN") && !nothing.contains("inf") && nothing.ends_with("</svg>\n"));
    assert!(
        deep.len() < 1_000_000 && deep.ends_with("</svg>\n"),
        "{} bytes",
        deep.len()
    );
}
