//! Exported trees as other tools read them, and as our reader reads them back.

use std::collections::BTreeMap;

use super::*;
use crate::TreeUnit;
use crate::{CodeKind, Tree, TreePlace};

fn function(name: &str, file: &str, kind: CodeKind, package: Option<&str>) -> Frame {
    let package = package.map(|name| Package {
        name: name.into(),
        version: None,
    });
    Frame {
        function: name.into(),
        file: file.into(),
        line: 3,
        kind,
        package,
    }
}

fn tree() -> Tree {
    let frames = vec![
        function("a;b", "server.js", CodeKind::Application, None),
        function(
            "<script>\u{7}",
            "lib/x.js",
            CodeKind::Framework,
            Some("express"),
        ),
        Frame {
            line: 0,
            ..function("(idle)", "", CodeKind::Waiting, None)
        },
    ];
    let node = |frame, parent, self_value| TreePlace {
        frame,
        parent,
        self_value,
        lines: BTreeMap::new(),
    };
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
        folded(&tree(), TreeUnit::Nanoseconds),
        "a:b server.js:3 1500\na:b server.js:3;<script>  lib/x.js:3 express 2000000.25\n"
    );
    assert_eq!(folded(&Tree::default(), TreeUnit::Nanoseconds), "");
}
