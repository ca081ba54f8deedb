//! Any text as a mix file: requests that each can be told by their name and weight, or problems that can be shown. An input is the text.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use proofload_fuzz::show;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/plan");

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match plan::mix(&text, Path::new(FOLDER)) {
        Ok(load) => {
            assert!(!load.requests.is_empty());
            for request in load.requests {
                assert!(
                    request.weight > 0 && request.path.starts_with('/'),
                    "{request:?}"
                );
                assert!(
                    !request.method.is_empty() && !request.name.is_empty(),
                    "{request:?}"
                );
            }
        }
        Err(problems) => show(&text, &problems),
    }
});
