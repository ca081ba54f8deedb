//! Text of an audit: the published studies on 80 columns.

use std::path::PathBuf;

use ::foreign::{Audit, Reader};
use proofload_report::Audited;

fn study(name: &str) -> Audit {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../foreign/tests/corpus/studies")
        .join(name);
    let mut reader = Reader::new(name);
    reader.feed(&std::fs::read(path).unwrap());
    Audit::of(vec![reader.finish()])
}

fn text(audit: &Audit, compare: Option<(usize, usize)>) -> String {
    let comparison = compare.and_then(|(one, other)| ::foreign::compare(audit, one, other));
    let text = crate::plain(&Audited { audit, comparison }, 80);
    crate::fits(&text, 80);
    text
}

#[test]
fn studies_are_told_as_they_were() {
    let shorts = text(&study("pbkdf2.md"), None) + "\n" + &text(&study("node-env.txt"), None);
    for (name, text) in [
        (
            "twelve_configurations_once",
            text(&study("express-modes.md"), Some((0, 1))),
        ),
        (
            "every_request_timed_out",
            text(&study("data-endpoints.txt"), None),
        ),
        (
            "repeats_with_an_interval",
            text(&study("reverse-proxy.md"), Some((1, 2))),
        ),
        ("resets_and_shorts", shorts),
    ] {
        insta::assert_snapshot!(name, text);
    }
}
