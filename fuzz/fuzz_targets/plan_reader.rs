//! Any text as an experiment file, and its lines as the commands that flags make a file of: a plan that is kept as it is, or problems
//! that can be shown. An input is the text.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use plan::{Draft, DraftSource, DraftVariant, Plan, Problem};
use proofload_fuzz::show;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/plan");
/// Variants of a draft.
const VARIANTS_MAX: usize = 4;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    judge(&text, plan::parse(&text, Path::new(FOLDER)));

    let mut lines = text.lines();
    let name = lines.next().unwrap_or_default().to_owned();
    let variant = |line: &str| {
        let source = DraftSource::command(line)
            .or_else(|_| DraftSource::image(line))
            .ok()?;
        Some(DraftVariant {
            name: None,
            source,
            from: line.to_owned(),
        })
    };
    let variants: Vec<_> = lines.filter_map(variant).take(VARIANTS_MAX).collect();
    if !variants.is_empty() {
        let written = Draft {
            made_by: name.clone(),
            name,
            variants,
            ..Draft::default()
        }
        .write();
        toml::from_str::<toml::Table>(&written.text).expect("a draft is TOML");
        judge(&written.text, plan::parse(&written.text, Path::new(FOLDER)));
    }
});

fn judge(text: &str, outcome: Result<Plan, Vec<Problem>>) {
    match outcome {
        Ok(plan) => {
            let kept = serde_json::to_string(&plan).expect("a plan can be kept");
            let again: Plan = serde_json::from_str(&kept).expect("what was kept can be read");
            assert_eq!(serde_json::to_string(&again).expect("again"), kept);
        }
        Err(problems) => show(text, &problems),
    }
}
