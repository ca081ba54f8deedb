//! Any bytes as an access log or a HAR file: paths that can be sent, and no braces but those of columns. An input is the file.

#![no_main]

use foreign::{Choice, Mix};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut mix = Mix::new(Choice {
        with_unsafe: true,
        with_values: true,
        is_secret: plan::is_secret_name,
    });
    let mut source = input;
    let _ = mix.read(&mut source);
    for kind in mix.finish(32) {
        assert!(
            kind.path.starts_with('/') && kind.path.bytes().all(|byte| byte.is_ascii_graphic()),
            "{kind:?}"
        );
        let columns = if kind.rows.is_empty() {
            0
        } else {
            kind.columns.len()
        };
        assert_eq!(kind.path.matches('{').count(), columns, "{kind:?}");
    }
});
