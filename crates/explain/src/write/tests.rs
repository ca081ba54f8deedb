//! Trees as other tools read them, and as we read them back.

use std::collections::BTreeMap;

use super::*;
use crate::Unit;
use crate::{Kind, Node, Tree};

fn function(name: &str, file: &str, kind: Kind, package: Option<&str>) -> Frame {
    let package = package.map(|name| Package { name: name.into(), version: None });
    Frame { function: name.into(), file: file.into(), line: 3, kind, package }
}

fn tree() -> Tree {
    let frames = vec![
        function("a;b", "server.js", Kind::Application, None),
        function("<script>\u{7}", "lib/x.js", Kind::Framework, Some("express")),
        Frame { line: 0, ..function("(idle)", "", Kind::Waiting, None) },
    ];
    let node = |frame, parent, self_value| Node { frame, parent, self_value, lines: BTreeMap::new() };
    let nodes = vec![
        node(0, None, 1500.0),
        node(1, Some(0), 2_000_000.25),
        node(2, None, 0.0001),
        node(0, Some(1), 0.0),
    ];
    Tree { frames, nodes }
}

#[test]
fn folded_stacks_have_nothing_in_names_that_ends_them() {
    assert_eq!(
        folded(&tree(), Unit::Nanoseconds),
        "a:b server.js:3 1500\na:b server.js:3;<script>  lib/x.js:3 express 2000000.25\n"
    );
    assert_eq!(folded(&Tree::default(), Unit::Nanoseconds), "");
}

#[test]
fn the_firefox_profilers_tables_fit_each_other() {
    let tree = tree();
    let value = firefox(&[("A".to_owned(), &tree), ("B".to_owned(), &tree)], Unit::Nanoseconds);
    let shared = &value["shared"];
    for table in ["funcTable", "frameTable", "stackTable", "sources", "resourceTable", "nativeSymbols"] {
        let columns = shared[table].as_object().expect("a table");
        let length = columns["length"].as_u64().expect("a length") as usize;
        for (name, column) in columns.iter().filter(|(name, _)| *name != "length") {
            assert_eq!(column.as_array().map(Vec::len), Some(length), "{table}.{name}");
        }
    }
    assert_eq!(shared["stackTable"]["prefix"], serde_json::json!([null, 0, null, 1, null, 4, null, 5]));
    assert_eq!(shared["funcTable"]["length"], 3, "functions are shared by threads");
    let samples = &value["threads"][1]["samples"];
    assert_eq!(samples["stack"], serde_json::json!([4, 5, 6]));
    assert_eq!(samples["length"], 3);
    let weights: f64 =
        samples["weight"].as_array().expect("weights").iter().filter_map(serde_json::Value::as_f64).sum();
    assert!((weights - tree.total() / 1e6).abs() < 1e-9);
    let bytes = &firefox(&[("A".to_owned(), &tree)], Unit::Bytes)["threads"][0]["samples"];
    assert_eq!((&bytes["weightType"], &bytes["weight"][0]), (&"bytes".into(), &1500.0.into()));
    let category = shared["frameTable"]["category"][1].as_u64().expect("a number") as usize;
    assert_eq!(value["meta"]["categories"][category]["name"], "framework");
}
